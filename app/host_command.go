package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"drawbridge/bridge"
	"drawbridge/bridge/control"
	"drawbridge/bridge/host"
	"drawbridge/bridge/token"
	"drawbridge/packaging/hosts"
	"drawbridge/ui"
)

func (c *cli) hostCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "host", Short: "Hosts: where tools beside our own come from"}
	kinds := strings.Join(hosts.Kinds, "|")
	cmd.AddCommand(
		&cobra.Command{
			Use: "add NAME", Short: "Make a token with which a session dials in, and print it once", Args: exactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return c.addHost(args[0]) },
		},
		&cobra.Command{
			Use: "list", Short: "List the hosts", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return c.listHosts(cmd) },
		},
		&cobra.Command{
			Use: "test NAME", Short: "Start or dial a configured host, list its tools, and say what is wrong", Args: exactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return c.testHost(cmd, args[0]) },
		},
		&cobra.Command{
			Use: "revoke NAME", Short: "Make a host's token worthless, and drop its connection", Args: exactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return c.revoke(cmd, args[0], token.Host) },
		},
		&cobra.Command{
			Use: "install " + kinds, Short: "Put the extension into omp or pi, with a token of its own", Args: exactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return c.installHost(cmd, args[0]) },
		},
		&cobra.Command{
			Use: "uninstall " + kinds, Short: "Take the extension out of omp or pi, and its token away", Args: exactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return c.uninstallHost(cmd, args[0]) },
		},
		c.hostRunCommand(),
	)
	return cmd
}

func (c *cli) addHost(name string) error {
	if err := host.CheckName(name); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	store, err := c.tokens()
	if err != nil {
		return err
	}
	secret, err := store.Add(name, token.Host, "")
	if err != nil {
		return err
	}
	if c.flags.json {
		return c.printJSON(map[string]string{"name": name, "token": secret})
	}
	fmt.Fprintln(c.out, secret)
	fmt.Fprintf(c.err, "This is the token of host %s. It is shown only now. The host dials /host with it.\n", name)
	return nil
}

// hostEntry is one line of the list: what the running agent says of a host, or
// what is known of it without one.
type hostEntry struct {
	bridge.HostStatus
	Token bool `json:"token"` // it has one to dial in with
}

func (c *cli) listHosts(cmd *cobra.Command) error {
	store, err := c.tokens()
	if err != nil {
		return err
	}
	all, err := store.List()
	if err != nil {
		return err
	}
	entries := map[string]hostEntry{}
	var order []string
	add := func(st bridge.HostStatus) {
		if _, ok := entries[st.Name]; !ok {
			order = append(order, st.Name)
			entries[st.Name] = hostEntry{HostStatus: st}
		}
	}
	var st bridge.Status
	running := true
	switch err := c.ask(cmd, verbStatus, nil, &st); {
	case errors.Is(err, control.ErrNoAgent):
		running = false
		conf, err := c.loadConfig(runOptions{})
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(conf.Hosts)) {
			h := conf.Hosts[name]
			add(bridge.HostStatus{Name: name, Kind: h.Kind(), State: "no agent"})
		}
	case err != nil:
		return err
	}
	for _, h := range st.Hosts {
		add(h)
	}
	for _, e := range all {
		if e.Role != token.Host {
			continue
		}
		state := string(host.StateDown)
		if !running {
			state = "no agent"
		}
		add(bridge.HostStatus{Name: e.Name, Kind: host.KindAttached, State: state, Reason: "it has not dialled in"})
		h := entries[e.Name]
		h.Token = true
		entries[e.Name] = h
	}
	list := make([]hostEntry, 0, len(order))
	for _, name := range order {
		list = append(list, entries[name])
	}
	if c.flags.json {
		return c.printJSON(map[string]any{"hosts": list})
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tKIND\tSTATE\tTOOLS\t")
	for _, h := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", h.Name, ui.Escape(h.Kind, 40), h.State, h.Tools, ui.Escape(h.Reason, 200))
	}
	return w.Flush()
}

func (c *cli) testHost(cmd *cobra.Command, name string) error {
	conf, err := c.loadConfig(runOptions{})
	if err != nil {
		return err
	}
	h, ok := conf.Hosts[name]
	if !ok {
		there := "it has none: add one under hosts"
		if known := slices.Sorted(maps.Keys(conf.Hosts)); len(known) > 0 {
			there = "there are: " + strings.Join(known, ", ")
		}
		return usagef("no host %q in %s; %s", name, conf.Path, there)
	}
	// What the host says on stderr is shown as it comes, quoted.
	log := zerolog.New(zerolog.ConsoleWriter{Out: c.err, NoColor: true, TimeFormat: time.TimeOnly}).With().Timestamp().Str("host", name).Logger()
	r, err := host.Try(cmd.Context(), name, h, buildVersion(), log)
	if err != nil {
		return fmt.Errorf("host %s: %w", name, err)
	}
	if c.flags.json {
		return c.printJSON(struct {
			Name string `json:"name"`
			host.Report
		}{name, r})
	}
	return writeReport(c.out, name, r)
}

func writeReport(w io.Writer, name string, r host.Report) error {
	fmt.Fprintf(w, "host %s answers: MCP %s, %d tools, in %s\n", name, r.Revision, len(r.Tools), r.Took.Round(time.Millisecond))
	if r.Server != "" {
		fmt.Fprintf(w, "it says it is %s\n", ui.Escape(r.Server, 200))
	}
	for _, t := range r.Tools {
		fmt.Fprintf(w, "  %s\n", ui.Escape(t, 128))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", ui.Escape(n, 400))
	}
	return nil
}

// extensionDir is where a program of this kind looks for extensions.
func (c *cli) extensionDir(kind string) (string, error) {
	home, err := homeDir(c.getenv)
	if err != nil {
		return "", err
	}
	dir, err := hosts.Dir(kind, home, c.getenv)
	if err != nil {
		return "", &exitError{code: exitUsage, err: err}
	}
	return dir, nil
}

func (c *cli) installHost(cmd *cobra.Command, kind string) error {
	dir, err := c.extensionDir(kind)
	if err != nil {
		return err
	}
	state, err := c.stateDir()
	if err != nil {
		return err
	}
	if state, err = filepath.Abs(state); err != nil {
		return err
	}
	store, err := c.tokens()
	if err != nil {
		return err
	}
	// An update gets a new token: the old one is stored only as its hash.
	if err := c.dropHostToken(cmd, store, kind); err != nil {
		return err
	}
	secret, err := store.Add(kind, token.Host, "")
	if err != nil {
		return err
	}
	path, err := hosts.Install(dir, hosts.Settings{Endpoint: filepath.Join(state, bridge.EndpointFile), Token: secret, Name: kind, Main: true})
	if err != nil {
		// A token that nobody holds is of no use.
		return errors.Join(err, store.Revoke(kind, token.Host))
	}
	if c.flags.json {
		return c.printJSON(map[string]string{"installed": path})
	}
	_, err = fmt.Fprintf(c.out, "installed %s\nSessions of %s that start from now on attach themselves.\n", path, kind)
	return err
}

func (c *cli) uninstallHost(cmd *cobra.Command, kind string) error {
	dir, err := c.extensionDir(kind)
	if err != nil {
		return err
	}
	found, err := hosts.Uninstall(dir)
	if err != nil {
		return err
	}
	store, err := c.tokens()
	if err != nil {
		return err
	}
	if err := c.dropHostToken(cmd, store, kind); err != nil {
		return err
	}
	if c.flags.json {
		return c.printJSON(map[string]any{"uninstalled": found})
	}
	what := "uninstalled the extension from " + dir
	if !found {
		what = "there is no extension of Drawbridge in " + dir
	}
	_, err = fmt.Fprintln(c.out, what)
	return err
}

// dropHostToken revokes a host's token where it has one, and its connection.
func (c *cli) dropHostToken(cmd *cobra.Command, store *token.Store, name string) error {
	all, err := store.List()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(e token.Entry) bool { return e.Role == token.Host && e.Name == name }) {
		return nil
	}
	if err := store.Revoke(name, token.Host); err != nil {
		return err
	}
	if err := c.ask(cmd, verbTokens, nil, nil); err != nil && !errors.Is(err, control.ErrNoAgent) {
		return fmt.Errorf("the token is revoked, but the running agent could not be told to drop its connection: %w", err)
	}
	return nil
}
