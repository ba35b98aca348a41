package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"drawbridge/bridge/hostllm"
	"drawbridge/bridge/token"
)

func (c *cli) hostRunCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "run [--name NAME] -- COMMAND [ARG…]", Short: "Start a host whose model requests pass the model switch",
		Long: `Start a command with base addresses and a proxy in its environment, by which its
model requests pass the running agent: while models are denied, they do not
leave. What is set is said on standard error. The command takes this process's
place.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("usage: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.hostRun(cmd.Context(), name, args) },
	}
	cmd.Flags().StringVar(&name, "name", "", "the host's `name` in counts and audit (default: the command's)")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func (c *cli) hostRun(ctx context.Context, name string, args []string) error {
	if name == "" {
		name = hostName(args[0])
	}
	if err := token.CheckName(name); err != nil {
		return &exitError{code: exitUsage, err: err, hint: "give another one with --name"}
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	dir, end, err := c.runningAgent(ctx)
	if err != nil {
		return err
	}
	access, err := hostllm.AccessFor(dir, name)
	if err != nil {
		return fmt.Errorf("how hosts reach the model gateway: %w", err)
	}
	if err := greet(ctx, access.Base(end.Gateway, "")); err != nil {
		return err
	}
	vars := access.Environment(end.Gateway, end.Proxy)
	env := slices.DeleteFunc(os.Environ(), func(have string) bool {
		key, _, _ := strings.Cut(have, "=")
		return slices.ContainsFunc(vars, func(v hostllm.Variable) bool { return v.Name == key })
	})
	for _, v := range vars {
		old, had := os.LookupEnv(v.Name)
		switch {
		case v.Value == "" && had:
			fmt.Fprintf(c.err, "drawbridge: took %s out of the environment\n", v.Name)
		case v.Value != "":
			note := ""
			if had && old != v.Value {
				note = ", in place of another"
			}
			fmt.Fprintf(c.err, "drawbridge: set %s=%s%s\n", v.Name, v.Shown, note)
		}
		if v.Value != "" {
			env = append(env, v.Name+"="+v.Value)
		}
	}
	return fmt.Errorf("starting %s: %w", program, syscall.Exec(program, args, env))
}

// hostName is what a command is called where no name was given.
func hostName(command string) string {
	name := strings.Map(func(r rune) rune {
		if r < 128 && token.CheckName(string(r)) == nil {
			return r
		}
		return '-'
	}, filepath.Base(command))
	return name[:min(len(name), 64)]
}

// greet asks the gateway whether it knows the host that is about to start.
func greet(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
	if err != nil {
		return errors.New("the model gateway does not answer; start the agent again")
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("the model gateway answered %d; start the agent again", res.StatusCode)
	}
	return nil
}
