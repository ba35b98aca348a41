package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/control"
	"drawbridge/bridge/desk"
	"drawbridge/bridge/doctor"
	"drawbridge/bridge/grant"
	"drawbridge/bridge/measured"
	"drawbridge/input"
)

// doctorRequest is what the control socket's verb doctor takes.
type doctorRequest struct {
	TestInput bool   `json:"test_input"`
	App       string `json:"app,omitempty"`
	Ask       bool   `json:"ask,omitempty"`
}

var errInterrupted = errors.New("interrupted")

func (c *cli) doctorCommand() *cobra.Command {
	var o runOptions
	var req doctorRequest
	cmd := &cobra.Command{
		Use: "doctor", Short: "Say what works here, and what to do about what does not",
		Long: `Say what works here, and what to do about what does not. The running agent is
asked, since it holds the permissions; with none, or with --backend, this
command looks for itself.

With --test-input every kind of gesture is made into a window of our own and
read back from it; with --app NAME, on macOS, some are made in that application,
which types into the text that is open there. Exit code 0 means that all that was asked works.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if req.App != "" && len(grant.List()) == 0 {
				return usagef("--app exists only on macOS; without it the test uses a window of its own")
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			r, err := c.examine(ctx, o, req)
			if err != nil && ctx.Err() != nil {
				return errInterrupted
			}
			if err != nil {
				return err
			}
			stop() // whoever reads the output may not
			if c.flags.json {
				err = c.printJSON(r)
			} else {
				err = r.Write(c.out)
			}
			if err == nil && !r.OK {
				err = &exitError{code: exitFailed}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&req.TestInput, "test-input", false, "make every kind of gesture and read it back")
	f.StringVar(&req.App, "app", "", "click, type and scroll in the application of this `name`, and read that back")
	f.BoolVar(&req.Ask, "ask", false, "on macOS, have it ask for what is missing, and open System Settings there")
	f.StringVar(&o.backend, "backend", "", "look at this backend: auto, native, applescript, virtual or simulated")
	return cmd
}

// ask has macOS ask for the grants that are missing, if that is wanted, and opens
// System Settings at the first of them. It returns what did not work.
func (r doctorRequest) ask(ctx context.Context) (warnings []string) {
	opened := !r.Ask
	for _, g := range grant.List() {
		if !r.Ask || grant.Look(g.Name) != computer.Missing {
			continue
		}
		err := grant.Request(g.Name)
		if err == nil && !opened {
			opened, err = true, grant.OpenSettings(ctx, g.Name)
		}
		if err != nil {
			warnings = append(warnings, err.Error())
		}
	}
	return warnings
}

// examine asks the running agent, or looks for itself.
func (c *cli) examine(ctx context.Context, o runOptions, req doctorRequest) (doctor.Report, error) {
	var r doctor.Report
	if o.backend == "" {
		dir, err := c.stateDir()
		if err != nil {
			return r, err
		}
		agent, err := control.Dial(ctx, dir)
		if err == nil {
			err = agent.Do(ctx, verbDoctor, req, &r, nil)
		}
		if !errors.Is(err, control.ErrNoAgent) {
			return r, err
		}
	}
	conf, err := c.loadConfig(o)
	if err != nil {
		return r, err
	}
	// No state directory: looking leaves nothing behind.
	d, err := desk.Open(ctx, deskOptions(conf.Config, "", zerolog.Nop()))
	if err != nil {
		return r, err
	}
	warnings := req.ask(ctx)
	r = doctor.Run(ctx, doctor.Options{Desk: d, TestInput: req.TestInput, App: req.App, InvertScroll: conf.Computer.InvertScroll})
	r.Warnings = append(r.Warnings, warnings...)
	if err := d.Close(); err != nil {
		return r, fmt.Errorf("closing the desktop: %w", err)
	}
	return r, ctx.Err()
}

// examine answers the verb doctor.
func (a *agent) examine(ctx context.Context, raw json.RawMessage, _ func(any) error) (any, error) {
	var req doctorRequest
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &req); err != nil {
			return nil, fmt.Errorf("the arguments of doctor: %w", err)
		}
	}
	o := doctor.Options{Desk: a.desk, TestInput: req.TestInput, App: req.App, Held: a.held, InvertScroll: a.config().Computer.InvertScroll}
	if why, _ := a.held(); why == "" && (req.TestInput || req.App != "") {
		// The test makes gestures: it takes its turn on the desktop like a batch,
		// and posts nothing where a batch may not.
		release, err := a.lease.Acquire(ctx, "doctor", nil)
		if err != nil {
			return nil, err
		}
		defer release()
		o.Hand = input.NewHand(a.desk.Input, input.HandOptions{Guard: a.mayAct, Journal: a.journal})
	}
	warnings := append(req.ask(ctx), a.gate.Warnings()...)
	r := doctor.Run(ctx, o)
	r.Warnings = append(r.Warnings, warnings...)
	// What failed may have been measured wrongly, and is measured again.
	if r.Measured != nil && r.OK {
		if err := measured.Save(a.dir, *r.Measured); err != nil {
			r.Warnings = append(r.Warnings, err.Error())
		}
	}
	return r, ctx.Err()
}

// mayAct refuses input while it is held.
func (a *agent) mayAct(ctx context.Context) error {
	if why, _ := a.held(); why != "" {
		return errors.New(why)
	}
	return ctx.Err()
}

// held says why no input is made: everything is paused, or a person is asked, whose
// answer must be their own. next is what they can do about it; why is empty
// otherwise.
func (a *agent) held() (why, next string) {
	if by, paused := a.gate.Paused(); paused {
		return "everything is paused by " + by, a.gate.HowToResume() + "; then run doctor again"
	}
	if n, _ := a.gate.Quiet(); n > 0 {
		return fmt.Sprintf("%d calls wait for a person, and no input is made meanwhile", n), "answer them, then run doctor again"
	}
	return "", ""
}
