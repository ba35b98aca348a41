package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"drawbridge/bridge/control"
	"drawbridge/bridge/desk"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/private"
)

// runOptions are the flags of run.
type runOptions struct {
	backend string
	listen  string
	noTray  bool
	allow   []string
}

func (c *cli) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "run", Short: "Start the agent",
		Long: `Start the agent in the foreground. A second start on the same state directory
hands over to the one that runs.

SIGHUP reads the configuration again when the agent does not run in a terminal.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.start(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.backend, "backend", "", "auto, native, applescript, virtual or simulated")
	f.StringVar(&o.listen, "listen", "", "loopback `address` and port of the endpoint")
	f.BoolVar(&o.noTray, "no-tray", false, "show no menu-bar item and no notifications")
	f.StringArrayVar(&o.allow, "allow", nil, "run tools that match `glob` unasked while this agent lives; virtual and simulated only, and on macOS not the tools of hosts")
	return cmd
}

// closeWithin is how long the agent may take to end once it was told to. The
// parts have shorter bounds of their own; this one is for a part that hangs.
const closeWithin = 10 * time.Second

// told is the cause with which the agent ends when it was told to.
type told string

func (t told) Error() string { return string(t) }

// start runs the agent until it is told to end, or hands over to the one that
// runs already. However it ends, the log says why, where there is one.
func (c *cli) start(ctx context.Context, o runOptions) error {
	endByCrash()
	logged := false
	err := c.serve(ctx, o, &logged)
	if err != nil && !logged {
		c.logBeside(func(log zerolog.Logger) { log.Error().Err(err).Msg("not started") })
	}
	return forLaunchd(err, c.getenv)
}

// serve is start. logged tells that the log has the reason of an error.
func (c *cli) serve(ctx context.Context, o runOptions, logged *bool) error {
	if moved, err := c.leaveVolatile(ctx); moved || err != nil {
		return err
	}
	conf, err := c.loadConfig(o)
	if err != nil {
		return err
	}
	if err := checkAllow(o.allow, conf.Computer.Backend); err != nil {
		return err
	}
	dir, err := c.stateDir()
	if err != nil {
		return err
	}
	if err := makeStateDir(dir); err != nil {
		return err
	}
	lock, held, pid, err := lockState(dir)
	if err != nil {
		return staying(err)
	}
	if held {
		return c.handOver(ctx, dir, pid)
	}
	defer lock.Close()
	upgraded, err := openState(dir)
	if err != nil {
		return staying(err)
	}
	swept := private.Sweep(dir, private.Leftover)

	// The log waits while a question stands at the same terminal.
	terminal, shown := c.terminal(), c.err
	if terminal != nil {
		shown = terminal.Logs()
	}
	log, logFile, err := newLog(conf.Log, shown, isTerminal(c.err), dir)
	if err != nil {
		return staying(err)
	}
	defer logFile.Close()
	*logged = true
	if upgraded != "" {
		log.Warn().Msg(upgraded)
	}
	if swept != nil {
		log.Warn().Err(swept).Msg("what killed processes left in the state directory stays there")
	}
	// What a command fails with is written to standard error anyway.
	onlyFile := zerolog.New(logFile).With().Timestamp().Logger()
	// Standard error may go away with whoever started us; the agent stays.
	signal.Ignore(syscall.SIGPIPE)

	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	// Opening a desktop can take a while; a signal ends that too.
	opened, done := make(chan *agent, 1), make(chan error, 1)
	go func() {
		a, err := newAgent(ctx, c, o, conf, dir, terminal, log, end)
		if err != nil {
			done <- err
			return
		}
		opened <- a
		done <- a.run(ctx)
	}()
	var a *agent
	var late <-chan time.Time
	for {
		select {
		case a = <-opened:
		case s := <-signals:
			if s == syscall.SIGHUP && !isTerminal(c.in) {
				if a != nil {
					go a.reloadOnSignal()
				}
				continue
			}
			end(told("signal: " + s.String()))
		case <-ctx.Done():
			if late == nil {
				late = time.After(closeWithin)
			}
		case err := <-done:
			// Told to end, it ends well, whatever was under way.
			var asked told
			if err != nil && !errors.As(context.Cause(ctx), &asked) {
				onlyFile.Error().Err(err).Msg("ended")
				return err
			}
			log.Info().AnErr("reason", context.Cause(ctx)).Msg("ended")
			return nil
		case <-late:
			err := fmt.Errorf("ending took longer than %s; leaving what hangs behind", closeWithin)
			onlyFile.Error().AnErr("reason", context.Cause(ctx)).Err(err).Msg("ended")
			return err
		}
	}
}

// checkAllow refuses --allow where it would let programs act on the person's own
// desktop unasked. With auto it is known only once a desktop was chosen; see
// newAgent.
func checkAllow(allow []string, backend string) error {
	for _, g := range allow {
		if _, err := gate.ParseNames(gate.NamedTool, g); err != nil {
			return usagef("--allow %q: %w", g, err)
		}
	}
	switch backend {
	case desk.Auto, desk.Virtual, desk.Simulated:
		return nil
	}
	if len(allow) > 0 {
		return errAllow(backend)
	}
	return nil
}

func errAllow(backend string) error {
	return usagef("--allow works only with a desktop of the agent's own, --backend virtual or simulated, not with %s: on the person's desktop, write a rule", backend)
}

// handOver brings the running agent to the front instead of starting another.
func (c *cli) handOver(ctx context.Context, dir, pid string) error {
	if pid == "" {
		pid = "unknown"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	// An agent that is just starting or ending does not answer yet or any more.
	if agent, err := control.Dial(ctx, dir); err == nil {
		if err := agent.Do(ctx, verbShow, nil, nil, nil); err != nil && !errors.Is(err, control.ErrNoAgent) {
			return fmt.Errorf("already running, pid %s, but it does not answer: %w", pid, err)
		}
	}
	c.logBeside(func(log zerolog.Logger) { log.Info().Str("to", pid).Msg("handed over to the agent that runs") })
	if c.flags.json {
		return c.printJSON(map[string]string{"already_running": pid})
	}
	_, err := fmt.Fprintf(c.out, "already running, pid %s\n", pid)
	return err
}
