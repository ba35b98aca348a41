package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drawbridge/bridge/hostllm"
	"drawbridge/ui"
)

func (c *cli) hostLLMCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "host-llm", Short: "Say, or change, whether hosts may call their own models",
		Long: `While models are denied, no model request of a host leaves this machine, in the
layers that status names; what they do not cover, it names too.`,
	}
	do := func(use, short, long string, change hostllm.Mode) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Long: long, Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return c.hostLLM(cmd.Context(), change) },
		}
	}
	cmd.AddCommand(
		do("status", "Say what is asked and what is in force", "", ""),
		do("deny", "Let no model request of a host leave, now", "", hostllm.Deny),
		do("allow", "Ask the person whether hosts may call their models again", `Ask the person at the agent, and wait for the answer. Exit code 3: refused.`, hostllm.Allow),
	)
	return cmd
}

// hostLLM asks for a change, if any, and shows the report.
func (c *cli) hostLLM(ctx context.Context, change hostllm.Mode) error {
	status, body, err := c.askHostLLM(ctx, change)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		var e struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(body, &e); err != nil || e.Error.Message == "" {
			return fmt.Errorf("the agent answered %d", status)
		}
		err := errors.New(e.Error.Message)
		if status == http.StatusForbidden {
			return &exitError{code: exitRefused, err: err}
		}
		return err
	}
	if c.flags.json {
		return c.printJSON(json.RawMessage(body))
	}
	var r hostllm.Report
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("the agent's answer has another shape than expected: %w", err)
	}
	return writeHostLLM(c.out, r)
}

// askHostLLM does one request as a client, and returns its answer.
func (c *cli) askHostLLM(ctx context.Context, change hostllm.Mode) (status int, body []byte, err error) {
	end, secret, err := c.endpoint(ctx, "")
	if err != nil {
		return 0, nil, err
	}
	method, sent := http.MethodGet, []byte(nil)
	if change != "" {
		method = http.MethodPost
		if sent, err = json.Marshal(map[string]hostllm.Mode{"mode": change}); err != nil {
			return 0, nil, err
		}
	}
	url := strings.TrimSuffix(strings.Replace(end.URL, "ws://", "http://", 1), "/mcp") + "/host-llm"
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(sent))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Content-Type", "application/json")
	// Not through a proxy that the environment names.
	res, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("asking the agent: %w", err)
	}
	defer res.Body.Close()
	body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	return res.StatusCode, body, err
}

func writeHostLLM(w io.Writer, r hostllm.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "models\t%s since %s, by %s\n", r.Asked, r.Since.Local().Format(time.DateTime), ui.Escape(r.By, 64))
	for _, h := range r.Hosts {
		var layers []string
		for _, l := range h.Layers {
			state := "open"
			if l.InForce {
				state = "refusing"
			}
			layers = append(layers, fmt.Sprintf("%s %s", l.Name, state))
		}
		if len(layers) == 0 {
			layers = []string{"no layer"}
		}
		fmt.Fprintf(t, "host\t%s: %s; %d attempts, %d refused, %d left\n", h.ID, strings.Join(layers, ", "), h.Attempts, h.Refused, h.Left)
		for _, residual := range h.Residuals {
			fmt.Fprintf(t, "\tnot covered: %s\n", ui.Escape(residual, 400))
		}
	}
	return t.Flush()
}
