package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"drawbridge/bridge"
	"drawbridge/bridge/control"
	"drawbridge/bridge/token"
	"drawbridge/ui"
	"drawbridge/ui/clientfile"
)

func (c *cli) clientCommand() *cobra.Command {
	var images string
	cmd := &cobra.Command{Use: "client", Short: "Clients and their tokens"}
	add := &cobra.Command{
		Use: "add NAME", Short: "Make a client's token, and print it once", Args: exactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.addClient(args[0], images) },
	}
	add.Flags().StringVar(&images, "images", "", "`yes|no`: whether the client's model reads pictures (default: what the client says)")
	var kind string
	var write bool
	conf := &cobra.Command{
		Use: "config NAME", Short: "Print or write the configuration with which a program connects as a client",
		Long: `Print what has to be written into another program's configuration so that it
connects as the client NAME. The token is taken from ` + tokenEnv + `; without one the
text says TOKEN in its place. The client ` + token.DefaultName + ` needs none.

With --write it is put into that program's own file: everything else in it stays as
it is, the file as it was is kept beside it, and one that cannot be read is left
alone. An entry of ours that is there already is written anew: what else it says
stays, but comments within it do not. A client that is not there yet is added. A file with a token is made readable
by its owner alone.`,
		Args: exactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if write {
				return c.writeClientConfig(args[0], kind)
			}
			return c.printClientConfig(args[0], kind)
		},
	}
	conf.Flags().BoolVar(&write, "write", false, "put it into the program's own file")
	conf.Flags().StringVar(&kind, "for", "", "`program`: "+strings.Join(clientKinds(), ", "))
	cmd.AddCommand(add, conf,
		&cobra.Command{
			Use: "list", Short: "List the clients", Args: noArgs,
			RunE: func(*cobra.Command, []string) error { return c.listClients() },
		},
		&cobra.Command{
			Use: "revoke NAME", Short: "Make a client's token worthless, and drop its connections", Args: exactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return c.revoke(cmd, args[0], token.Client) },
		},
	)
	return cmd
}

func clientKinds() []string {
	var names []string
	for _, k := range ui.ClientKinds {
		names = append(names, k.Name)
	}
	return names
}

// kindOf checks what client config is asked for.
func kindOf(name, kind string) (ui.ClientKind, error) {
	if err := token.CheckName(name); err != nil {
		return ui.ClientKind{}, &exitError{code: exitUsage, err: err}
	}
	if kind == "" {
		return ui.ClientKind{}, usagef("--for says which program the configuration is for: one of %s", strings.Join(clientKinds(), ", "))
	}
	k, err := ui.Kind(kind)
	if err != nil {
		return k, &exitError{code: exitUsage, err: err}
	}
	return k, nil
}

func (c *cli) printClientConfig(name, kind string) error {
	k, err := kindOf(name, kind)
	if err != nil {
		return err
	}
	conf, err := c.clientConfig(name)
	if err != nil {
		return err
	}
	text := k.Text(conf)
	if c.flags.json {
		return c.printJSON(map[string]string{"for": kind, "where": k.Where, "text": text})
	}
	fmt.Fprint(c.out, text)
	fmt.Fprintf(c.err, "This belongs into %s.\n", k.Where)
	if conf.Token == tokenPlace {
		fmt.Fprintf(c.err, "Put the token that drawbridge client add %s printed in the place of %s.\n", name, tokenPlace)
	}
	return nil
}

// writeClientConfig puts a client's configuration into another program's file.
func (c *cli) writeClientConfig(name, kind string) error {
	k, err := kindOf(name, kind)
	if err != nil {
		return err
	}
	conf, err := c.clientConfig(name)
	if err != nil {
		return err
	}
	path := k.File
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := homeDir(c.getenv)
		if err != nil {
			return err
		}
		path = filepath.Join(home, rest)
	} else if path, err = filepath.Abs(path); err != nil {
		return err
	}
	added := false
	put := func(old []byte) ([]byte, error) {
		if _, err := k.Merge(conf, old); err != nil || name == token.DefaultName {
			return k.Merge(conf, old)
		}
		// Nothing is wrong with the file, so a token is worth having.
		secret, isNew, err := c.tokenToWrite(name)
		if err != nil {
			return nil, err
		}
		added, conf.Token = isNew, secret
		return k.Merge(conf, old)
	}
	w, err := clientfile.Write(path, name != token.DefaultName, put)
	if err != nil {
		if added { // whose token nobody has
			store, serr := c.tokens()
			if serr == nil {
				serr = store.Revoke(name, token.Client)
			}
			err = errors.Join(err, serr)
		}
		return fmt.Errorf("nothing was written: %w", err)
	}
	if c.flags.json {
		return c.printJSON(map[string]any{"for": kind, "file": w.File, "backup": w.Backup, "changed": w.Changed, "client_added": added})
	}
	if added {
		fmt.Fprintf(c.out, "added the client %s\n", name)
	}
	if !w.Changed {
		fmt.Fprintf(c.out, "%s has it already\n", w.File)
		return nil
	}
	fmt.Fprintf(c.out, "put drawbridge into %s\n", w.File)
	if w.Backup != "" {
		fmt.Fprintf(c.out, "the file as it was: %s\n", w.Backup)
	}
	if conf.Token != "" {
		fmt.Fprintln(c.out, "it holds a token: only you may read it; keep it out of what you share")
	}
	return nil
}

// tokenToWrite is the token that a client's configuration shall hold: the one that
// was given, or that of a new client.
func (c *cli) tokenToWrite(name string) (secret string, isNew bool, err error) {
	store, err := c.tokens()
	if err != nil {
		return "", false, err
	}
	if secret = c.getenv(tokenEnv); secret != "" {
		if e, ok := store.Find(secret); !ok || e.Name != name || e.Role != token.Client {
			return "", false, fmt.Errorf("what %s holds is not the token of client %s", tokenEnv, name)
		}
		return secret, false, nil
	}
	all, err := store.List()
	if err != nil {
		return "", false, err
	}
	for _, e := range all {
		if e.Name == name && e.Role == token.Client {
			return "", false, fmt.Errorf("client %s has a token already, which is known to nobody but who was shown it: give it in %s, or drawbridge client revoke %s first", name, tokenEnv, name)
		}
	}
	secret, err = store.Add(name, token.Client, "")
	return secret, err == nil, err
}

// tokenPlace stands for a token that we do not know: they are stored hashed.
const tokenPlace = "TOKEN"

// clientConfig is what a program must know to connect as the client name.
func (c *cli) clientConfig(name string) (ui.ClientConfig, error) {
	exe, err := os.Executable()
	if err != nil {
		return ui.ClientConfig{}, fmt.Errorf("where this program is cannot be told: %w", err)
	}
	var conf ui.ClientConfig
	var state string
	if c.flags.state != "" || c.getenv("DRAWBRIDGE_STATE") != "" {
		if state, err = c.stateDir(); err != nil {
			return conf, err
		}
	}
	conf.Command = exe
	if name == token.DefaultName {
		conf.Args = ui.ConnectArgs("", state)
		return conf, nil
	}
	conf.Args, conf.Token = ui.ConnectArgs(name, state), cmp.Or(c.getenv(tokenEnv), tokenPlace)
	dir, err := c.stateDir()
	if err != nil {
		return conf, err
	}
	// Where the running agent is, else where it will be.
	if end, err := bridge.ReadEndpoint(dir); err == nil {
		conf.URL = end.URL
	} else if l, err := c.loadConfig(runOptions{}); err == nil {
		conf.URL = "ws://" + l.Listen + "/mcp"
	}
	return conf, nil
}

// tokens opens the token store, with the state directory made if need be: a
// client may be added before the first start.
func (c *cli) tokens() (*token.Store, error) {
	dir, err := c.stateDir()
	if err != nil {
		return nil, err
	}
	if err := makeStateDir(dir); err != nil {
		return nil, err
	}
	return token.Open(dir)
}

func (c *cli) addClient(name, images string) error {
	if err := token.CheckName(name); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	if images != "" && images != "yes" && images != "no" {
		return usagef("--images must be yes or no, not %q", images)
	}
	store, err := c.tokens()
	if err != nil {
		return err
	}
	secret, err := store.Add(name, token.Client, images)
	if err != nil {
		return err
	}
	if name == token.DefaultName {
		// After a revoke: the file still holds what is worthless.
		if err := store.KeepDefault(secret); err != nil {
			return err
		}
	}
	if c.flags.json {
		return c.printJSON(map[string]string{"name": name, "token": secret})
	}
	fmt.Fprintln(c.out, secret)
	fmt.Fprintf(c.err, "This is the token of client %s. It is shown only now.\n", name)
	return nil
}

func (c *cli) listClients() error {
	store, err := c.tokens()
	if err != nil {
		return err
	}
	all, err := store.List()
	if err != nil {
		return err
	}
	type client struct {
		Name    string `json:"name"`
		Images  string `json:"images"`
		Created string `json:"created"`
	}
	clients := []client{}
	for _, e := range all {
		if e.Role == token.Client {
			clients = append(clients, client{e.Name, e.Images, e.Created.Format("2006-01-02 15:04:05Z07:00")})
		}
	}
	if c.flags.json {
		return c.printJSON(map[string]any{"clients": clients})
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tIMAGES\tCREATED")
	for _, e := range clients {
		images := e.Images
		if images == "" {
			images = "as it says"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", e.Name, images, e.Created)
	}
	return w.Flush()
}

// revoke makes a client's or a host's token worthless.
func (c *cli) revoke(cmd *cobra.Command, name string, role token.Role) error {
	store, err := c.tokens()
	if err != nil {
		return err
	}
	if err := store.Revoke(name, role); err != nil {
		return err
	}
	// The agent sees the file's change with the next request of anybody; telling
	// it drops the open connections at once.
	var dropped bool
	switch err := c.ask(cmd, verbTokens, nil, nil); {
	case err == nil:
		dropped = true
	case !errors.Is(err, control.ErrNoAgent):
		return fmt.Errorf("the token is revoked, but the running agent could not be told to drop connections: %w", err)
	}
	if c.flags.json {
		return c.printJSON(map[string]any{"revoked": name, "dropped": dropped})
	}
	_, err = fmt.Fprintf(c.out, "revoked %s\n", name)
	return err
}
