package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"drawbridge/bridge/computer"
)

// client uses an agent as any client does; here by way of the drawbridge
// command, which speaks MCP over the websocket for it.
type client struct {
	command  string
	state    string // the agent's state folder
	pictures string // where pictures are saved
}

// do runs a command of drawbridge and decodes what it prints. A command that
// fails may still have printed an answer.
func (c *client) do(ctx context.Context, into any, args ...string) error {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, c.command, append([]string{"--state", c.state, "--json"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("drawbridge %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	if out.Len() > 0 || err == nil {
		if decode := json.Unmarshal(out.Bytes(), into); decode != nil {
			err = errors.Join(err, fmt.Errorf("drawbridge %s printed no JSON: %w", args[0], decode))
		}
	}
	return err
}

// listTools prints the tools that a client sees.
func (c *client) listTools(ctx context.Context) error {
	var list struct {
		Tools []struct {
			Host       string `json:"host"`
			Definition struct {
				Name  string `json:"name"`
				Title string `json:"title"`
			} `json:"definition"`
		} `json:"tools"`
	}
	if err := c.do(ctx, &list, "tools"); err != nil {
		return err
	}
	found := false
	for _, t := range list.Tools {
		fmt.Printf("tool  %s (%s)\n", t.Definition.Name, t.Host)
		found = found || t.Definition.Name == "computer"
	}
	if !found {
		return errors.New("there is no computer tool")
	}
	return nil
}

// answer is the result of a call of the computer tool.
type answer struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
		Path string `json:"path"` // of a picture that was saved
	} `json:"content"`
	Structured computer.Structured `json:"structuredContent"`
	IsError    bool                `json:"isError"`
}

// action is one action as it is sent.
type action map[string]any

// batch sends actions, and checks that the record says of each of them that it
// was executed. The answer always has a picture.
func (c *client) batch(ctx context.Context, actions ...action) (answer, error) {
	var a answer
	arguments, err := json.Marshal(map[string]any{"actions": actions})
	if err != nil {
		return a, err
	}
	if err := c.do(ctx, &a, "call", "computer", string(arguments), "--out", c.pictures); err != nil {
		return a, fmt.Errorf("%w%s", err, a.text())
	}
	if a.IsError || a.Structured.Stopped != nil {
		return a, fmt.Errorf("the batch did not go through: %s", a.text())
	}
	if len(a.Structured.Executed) != len(actions) {
		return a, fmt.Errorf("%d actions were sent, the record has %d", len(actions), len(a.Structured.Executed))
	}
	for i, e := range a.Structured.Executed {
		if e.Index != i || string(e.Type) != actions[i]["type"] || e.Status != computer.Executed {
			return a, fmt.Errorf("action %d (%v) is recorded as number %d, %s, %s", i, actions[i]["type"], e.Index, e.Type, e.Status)
		}
	}
	if a.Structured.Picture == nil || a.picture() == "" {
		return a, errors.New("the answer has no picture")
	}
	return a, nil
}

// picture is the path of the answer's picture; empty: it has none.
func (a answer) picture() string {
	for _, b := range a.Content {
		if b.Type == "image" {
			return b.Path
		}
	}
	return ""
}

func (a answer) text() string {
	var b strings.Builder
	for _, block := range a.Content {
		if block.Type == "text" {
			b.WriteString("\n" + strings.TrimSpace(block.Text))
		}
	}
	return b.String()
}

// place turns a point of the desktop into the picture's pixels, in which actions
// are sent. It is the way back of the mapping that the agent states.
func (a answer) place(x, y float64) (px, py float64) {
	d, p := a.Structured.Display, a.Structured.Picture
	return (x - d.Origin[0]) / p.Scale[0], (y - d.Origin[1]) / p.Scale[1]
}

// print shows the record as a table.
func (a answer) print() {
	s := a.Structured
	fmt.Printf("\nrecord (backend %s, picture %s of %dx%d pixels: %s)\n", s.Backend, s.Picture.ID, s.Picture.Width, s.Picture.Height, a.picture())
	for _, e := range s.Executed {
		point := ""
		if e.Point != nil {
			point = fmt.Sprintf("at %g,%g", e.Point[0], e.Point[1])
		}
		fmt.Fprintf(os.Stdout, "  %2d  %-12s %-9s %-16s %6.1f ms  %s\n", e.Index, e.Type, e.Status, point, e.MS, e.Summary)
	}
}
