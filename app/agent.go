package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/app/config"
	"drawbridge/bridge"
	"drawbridge/bridge/audit"
	"drawbridge/bridge/computer"
	"drawbridge/bridge/control"
	"drawbridge/bridge/desk"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/host"
	"drawbridge/bridge/hostllm"
	"drawbridge/bridge/private"
	"drawbridge/bridge/seal"
	"drawbridge/bridge/stop"
	"drawbridge/bridge/tally"
	"drawbridge/bridge/token"
	"drawbridge/input"
	"drawbridge/packaging/install"
	"drawbridge/ui"
)

// Names of files in the state directory that no other package names.
const (
	rulesName   = "rules.yaml"
	journalName = "held.json"
	leaseName   = "desktop.lease"
)

// agent is the running agent: the parts, wired.
type agent struct {
	cli   *cli
	flags runOptions
	dir   string
	log   zerolog.Logger
	end   context.CancelCauseFunc // ends the agent, for a reason

	terminal *ui.Terminal // nil where there is none

	audit    *audit.Log
	desk     *computer.Desk
	lost     atomic.Pointer[string] // a warning, once the desktop is gone
	journal  *input.Journal
	lease    *gate.Lease
	gate     *gate.Gate
	models   *hostllm.Switch
	gateway  *hostllm.Gateway
	tool     *computer.Tool
	hosts    *host.Set
	server   *bridge.Server
	exposed  exposure
	login    atomic.Pointer[ui.Login] // nil before it was looked at
	requests tally.Tally              // what programs asked beside calls
	pulse    ui.Pulse                 // told of every change that a person may want to see

	activity *ui.Activity
	previews ui.Previews
	history  ui.History

	accepted  chan struct{} // told when a person accepted what loosens
	unsaved   chan struct{} // told when something could not be saved
	chord     panicChord
	reloading sync.Mutex      // one reload at a time
	holding   sync.Mutex      // one configuration is put in force at a time
	mu        sync.Mutex      // guards what follows
	read      *config.Loaded  // as it was read last
	conf      *config.Loaded  // as it is in force
	begun     *config.Loaded  // as it was in force at the start
	waiting   map[string]bool // hosts that wait for a person
	noChord   string          // why the panic chord stops nothing
	url       string          // of the endpoint; empty before it serves
	show      func()          // makes the agent seen by the person; nil: there is nothing to show

	undo []func() // what close does, in the order in which it was begun
}

// newAgent opens everything that the agent holds. It undoes what it began when
// it fails.
func newAgent(ctx context.Context, c *cli, o runOptions, conf *config.Loaded, dir string, terminal *ui.Terminal, log zerolog.Logger, end context.CancelCauseFunc) (_ *agent, err error) {
	a := &agent{cli: c, flags: o, dir: dir, terminal: terminal, log: log, end: end, read: conf, accepted: make(chan struct{}, 1), unsaved: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	tokens, err := token.Open(dir)
	if err == nil {
		err = tokens.EnsureDefault()
	}
	if err != nil {
		return nil, staying(err)
	}
	if a.audit, err = audit.Open(auditDir(dir), audit.Options{MaxSize: conf.Audit.MaxBytes, Generations: conf.Audit.Generations, Log: log}); err != nil {
		return nil, staying(err)
	}
	a.onClose("audit", a.audit.Close)
	if err := a.openGate(); err != nil {
		return nil, err
	}
	if conf, err = a.hold(); err != nil {
		return nil, err
	}
	if named := a.read.Computer.Backend; named != conf.Computer.Backend && named != a.read.Written.Computer.Backend {
		return nil, usagef("%s is not used: to leave the backend %s, which the configuration had, takes a person, who is asked when it stands in the configuration",
			a.read.From("computer.backend"), conf.Computer.Backend)
	}
	a.begun = conf
	a.exposed.set(conf.Config)
	if err := a.openDesk(ctx); err != nil {
		return nil, err
	}
	if err := a.openModels(); err != nil {
		return nil, staying(err)
	}
	a.tool = computer.New(computer.Options{
		Desk: a.desk, Config: toolConfig(conf.Config), Lease: a.lease,
		Quiet: a.gate.Quiet, MayLook: a.mayLook, Limits: a.limits, HandBack: a.handBack, Journal: a.journal, Log: log,
	})
	a.onClose("computer", func() error { a.tool.Close(); return nil })
	if a.hosts, err = host.NewSet(host.Options{
		Log: log, Version: buildVersion(), Main: conf.MainHost, Hosts: conf.Hosts,
		Note: func(r audit.Record) { // a host that asks is one
			a.audit.Append(r)
			a.pulse.Touch()
		},
		Changed: func() { // not before Start
			a.server.ToolsChanged()
			a.pulse.Touch()
		},
		Reserved: func(name, _ string) bool { return hasHostToken(tokens, name) },
		Trusted:  a.gate.TrustHint,
		Withheld: a.isWaiting,
		Models:   a.models,
	}); err != nil {
		return nil, staying(err)
	}
	a.onClose("hosts", func() error { a.hosts.Close(); return nil })
	a.newActivity(ctx)
	l := conf.Limits
	a.server = bridge.New(bridge.Options{
		Log: log, Version: buildVersion(), Sources: []bridge.Source{a.tool}, Hosts: a.hosts, Gate: a.gate, Audit: a.audit, Tokens: tokens,
		Limits: bridge.Limits{
			Connections: l.Connections, ConnectionsPerClient: l.ConnectionsPerClient, CallsPerConnection: l.CallsPerConnection,
			FrameBytes: l.FrameBytes, ResultBytesWS: l.ResultBytesWebsocket, ResultBytesHTTP: l.ResultBytesHTTP, QueueBytes: l.QueueBytes,
		},
		Exposed: a.exposed.allows, AllowedHosts: conf.AllowedHosts, AllowedOrigins: conf.AllowedOrigins,
		Status:     a.fillStatus,
		HostLLM:    a.models.Serve,
		Changed:    a.pulse.Touch,
		Count:      a.count,
		Ended:      a.history.Add,
		Activity:   a.activity,
		ConnClosed: func(c bridge.Caller) { a.gate.ConnClosed(c.Conn) },

		TokensChanged: a.gate.KeepTokens,
	})
	return a, nil
}

// hasHostToken tells whether a host's token has this name: no other token's
// session may be called so.
func hasHostToken(tokens *token.Store, name string) bool {
	all, err := tokens.List()
	return err != nil || slices.ContainsFunc(all, func(e token.Entry) bool { return e.Role == token.Host && e.Name == name })
}

func (a *agent) onClose(what string, do func() error) {
	a.undo = append(a.undo, func() {
		if err := do(); err != nil {
			a.log.Error().Err(err).Msg("closing: " + what)
		}
	})
}

// close undoes what was begun, the last first.
func (a *agent) close() {
	for _, undo := range slices.Backward(a.undo) {
		undo()
	}
	a.undo = nil
}

// openDesk opens the desktop, and lets go of what a dead process left held on
// it.
func (a *agent) openDesk(ctx context.Context) error {
	o := deskOptions(a.conf.Config, a.dir, a.log)
	// The agent lives on: hosts' tools need no desktop, and calls that do are
	// told that it is gone.
	o.Lost = func(err error) {
		text := fmt.Sprintf("the virtual desktop is gone (%v); start the agent again to have one", err)
		a.lost.Store(&text)
		a.audit.Append(audit.Record{Phase: audit.Note, Outcome: text})
	}
	d, err := desk.Open(ctx, o)
	if err != nil {
		return err
	}
	a.desk = d
	a.onClose("desktop", d.Close)
	if len(a.flags.allow) > 0 && !d.Own {
		return errAllow(d.Backend)
	}
	path := filepath.Join(a.dir, journalName)
	released, err := input.Recover(ctx, d.Input, path)
	if err != nil {
		a.log.Warn().Err(err).Msg("letting go of what an earlier process held")
	}
	if len(released) > 0 {
		a.log.Warn().Strs("released", released).Msg("an earlier process had died holding these")
		a.audit.Append(audit.Record{Phase: audit.Note, Outcome: "released what a dead process held: " + strings.Join(released, ", ")})
	}
	if a.journal, err = input.OpenJournal(path); err != nil {
		return staying(err)
	}
	a.onClose("journal", a.journal.Close)
	lease, err := leasePath(a.dir, d)
	if err != nil {
		return staying(err)
	}
	a.lease = gate.NewLease(lease, a.conf.Computer.LeaseQueue)
	return nil
}

// leasePath is where the lock of a desktop is. A desktop of our own has no other
// user; the person's is shared by every agent of this user on this machine,
// whatever its state directory.
func leasePath(stateDir string, d *computer.Desk) (string, error) {
	if d.Own {
		return filepath.Join(stateDir, leaseName), nil
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("drawbridge-%d", os.Geteuid()))
	if err := private.Dir(dir); err != nil {
		return "", fmt.Errorf("the directory of the desktop's lock: %w", err)
	}
	name := "main"
	if d.Display != "" {
		name = strings.Map(func(r rune) rune {
			if r == '/' || r == ':' {
				return '-'
			}
			return r
		}, d.Display)
	}
	return filepath.Join(dir, name+"."+leaseName), nil
}

func (a *agent) openGate() error {
	var allow []gate.Glob
	for _, text := range a.flags.allow {
		g, err := gate.ParseNames(gate.NamedTool, text)
		if err != nil {
			return err
		}
		allow = append(allow, g)
	}
	// Hosts' programs act with the agent's grants, whatever desktop the tool drives.
	var allowFor string
	if holdsGrants() {
		allowFor = bridge.OwnSource
	}
	rules := rulesFile(a.dir)
	a.gate = gate.New(gate.Options{
		Allow: allow, AllowFor: allowFor, Rules: rules, Accepted: openSeals(a.dir).accepted(),
		Deadline: a.read.Approvals.Deadline, PerClient: a.read.Approvals.MaxPendingPerClient, CoolDown: a.read.Approvals.CoolDown,
		Answered: a.note, Changed: a.pulse.Touch, Unsaved: a.tellUnsaved, Log: a.log,
		OnAccept: func() {
			select {
			case a.accepted <- struct{}{}:
			default: // it has been told, and looks at all that was accepted
			}
		},
	})
	a.onClose("gate", func() error { a.gate.Close(); return nil })
	// Before the policy, which may have to ask there.
	if a.terminal != nil {
		a.gate.AddSurface(a.terminal)
	}
	policy, err := readPolicy(a.read.Written, rules)
	if err == nil {
		err = a.gate.SetPolicy(policy)
	}
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	return nil
}

// openModels reads the state of the model switch and opens the gateway, which
// does not serve before run.
func (a *agent) openModels() error {
	var err error
	a.models, err = hostllm.Open(hostllm.Options{
		Dir: a.dir, Seal: openSeals(a.dir).models(), Configured: a.conf.HostLLM, ModelHosts: a.conf.ModelGateway.ModelHosts, Doubt: a.gate.Lost(),
		Person: a.gate, Audit: a.audit, Changed: a.pulse.Touch, Unsaved: a.tellUnsaved, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.gateway, err = hostllm.OpenGateway(hostllm.GatewayOptions{
		Dir: a.dir, Listen: a.conf.ModelGateway.Listen, Providers: a.conf.ModelGateway.Providers, Switch: a.models, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.onClose("model gateway", a.gateway.Close)
	return nil
}

// readPolicy is what configuration and rules file allow.
func readPolicy(c config.Config, rules gate.RulesFile) (gate.Policy, error) {
	own, err := rules.Load()
	if err != nil {
		return gate.Policy{}, err
	}
	p := configPolicy(c)
	p.Rules = own
	return p, nil
}

// configPolicy is what a configuration allows.
func configPolicy(c config.Config) gate.Policy {
	p := gate.Policy{ConfigRules: c.Rules, AllowedActions: map[string][]string{}, Settings: config.Settings{Config: c, Granted: holdsGrants()}}
	narrow := func(client string, actions []computer.ActionType) {
		if actions == nil {
			return
		}
		names := make([]string, len(actions))
		for i, t := range actions {
			names[i] = string(t)
		}
		p.AllowedActions[client] = names
	}
	for name, h := range c.Hosts {
		if h.TrustHints {
			p.TrustHints = append(p.TrustHints, name)
		}
	}
	slices.Sort(p.TrustHints)
	narrow("", c.Computer.AllowedActions)
	for name, client := range c.Clients {
		narrow(name, client.AllowedActions)
	}
	return p
}

// toolConfig is the tool's part of a configuration. Which actions exist is the
// gate's to say: a wider list holds only once a person accepted it.
func toolConfig(c config.Config) computer.Config {
	t := c.Computer
	t.AllowedActions = nil
	return t
}

// handBack says how batches give way to the person, as in force. On a desktop of
// our own there is nobody to give way to but whoever made it so.
func (a *agent) handBack() computer.HandBack {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.conf.HandBack
	if a.desk.Own {
		h = a.read.HandBack
	}
	return computer.HandBack{Quiet: h.Quiet, AllowUnwatched: h.AllowUnwatched}
}

// limits narrows the computer tool for a client, as in force.
func (a *agent) limits(client string) computer.Limits {
	var l computer.Limits
	if names := a.gate.AllowedActions(client); names != nil {
		l.AllowedActions = make([]computer.ActionType, len(names))
		for i, n := range names {
			l.AllowedActions[i] = computer.ActionType(n)
		}
	}
	l.Display = a.config().Clients[client].Display
	return l
}

// mayLook tells whether a batch that only looks would run unasked.
func (a *agent) mayLook(c bridge.Caller) bool {
	looks := gate.DefaultAskFirst
	if a.desk.Own {
		looks = gate.DefaultAllow
	}
	return a.gate.MayRunUnasked(&gate.Request{
		Client: c.Client, Token: c.Token, Conn: c.Conn, Host: bridge.OwnSource, Tool: "computer",
		Args: json.RawMessage(`{"actions":[{"type":"screenshot"}]}`), Default: looks,
	})
}

// config is the configuration in force.
func (a *agent) config() config.Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.conf.Config
}

// deskOptions says which desktop a configuration asks for.
func deskOptions(c config.Config, stateDir string, log zerolog.Logger) desk.Options {
	return desk.Options{
		Backend: c.Computer.Backend, Capture: c.Computer.Capture, StateDir: stateDir,
		Width: c.Virtual.Width, Height: c.Virtual.Height,
		AllowXWayland: c.AllowXWayland, Log: log,
	}
}

// run serves until ctx ends, then closes everything.
func (a *agent) run(ctx context.Context) error {
	defer a.close()
	ln, warning, err := bridge.Listen(a.config().Listen)
	if err != nil {
		return staying(err)
	}
	if warning != "" {
		a.server.Warn(warning)
		a.log.Warn().Msg(warning)
	}
	a.hearSystem()
	a.followAccepted(ctx)
	a.saveAgain(ctx)
	remove, err := bridge.WriteEndpoint(a.dir, bridge.Endpoint{
		PID: os.Getpid(), Started: time.Now().UTC(), URL: bridge.URL(ln), Control: control.Path(a.dir),
		Gateway: a.gateway.URL(), Proxy: a.gateway.URL(),
	})
	if err != nil {
		ln.Close()
		return staying(err)
	}
	a.onClose(bridge.EndpointFile, remove)
	a.mu.Lock()
	a.url = bridge.URL(ln)
	a.mu.Unlock()
	// After endpoint.json: who reaches this socket must not find the address of
	// an agent that is dead.
	ctl, err := control.Listen(a.dir, a.verbs(), a.count, a.log)
	if err != nil {
		ln.Close()
		return staying(err)
	}
	a.onClose("control socket", ctl.Close)
	a.hosts.Start()
	a.gateway.Own(ln.Addr())
	if text := a.gateway.Warning(); text != "" {
		a.server.Warn(text)
		a.log.Warn().Msg(text)
	}
	// Told to end before it began to serve, the server closes the listener too.
	served := make(chan error, 1)
	go func() { served <- a.server.Serve(ctx, ln) }()
	gateway := make(chan struct{})
	go func() {
		defer close(gateway)
		if err := a.gateway.Serve(ctx); err != nil {
			a.log.Error().Err(err).Msg("hosts reach no models until the agent is started again")
			a.server.Warn(err.Error())
		}
	}()
	a.onClose("model gateway", func() error { <-gateway; return nil })

	a.openSurfaces(ctx)
	a.log.Info().Str("url", bridge.URL(ln)).Str("backend", a.desk.Backend).Str("state", a.dir).Msg("serving")
	a.serveTerminal(ctx)
	a.note(a.howStarted())
	if a.gate.Lost() {
		a.note("what was accepted before is lost: every call is denied until a person accepts the configuration")
	}

	err = <-served
	if err != nil {
		a.end(err)
	}
	reason := "the endpoint failed"
	if cause := context.Cause(ctx); cause != nil {
		reason = cause.Error()
	}
	a.audit.Append(audit.Record{Phase: audit.Note, Outcome: "agent ended: " + reason})
	return err
}

// howStarted says how the agent was started: by what, with which flags that loosen
// and which files.
func (a *agent) howStarted() string {
	text := fmt.Sprintf("agent started: version %s, backend %s", buildVersion(), a.desk.Backend)
	if a.read.Found {
		text += ", configuration " + a.read.Path
	}
	if a.flags.backend != "" {
		text += ", --backend " + a.flags.backend
	}
	if a.flags.noTray {
		text += ", --no-tray"
	}
	for _, g := range a.flags.allow {
		text += ", --allow " + strconv.Quote(g)
	}
	return text
}

// terminal is where the person who started the agent can be asked; nil where
// that is no terminal. In the background it is left alone; see ui.Terminal.
func (c *cli) terminal() *ui.Terminal {
	in, ok := c.in.(*os.File)
	out, ok2 := c.err.(*os.File)
	if !ok || !ok2 || !isTerminal(in) || !isTerminal(out) {
		return nil
	}
	t := ui.NewTerminal(in, out)
	t.TillEnd = seal.Platform(install.Identifier) != nil
	return t
}

// serveTerminal asks at the terminal what waits to be asked, from now on.
func (a *agent) serveTerminal(ctx context.Context) {
	if a.terminal == nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := a.terminal.Run(ctx); err != nil && ctx.Err() == nil {
			a.log.Error().Err(err).Msg("the terminal asks nobody any more")
		}
	}()
	a.onClose("terminal", func() error { <-ended; return nil })
}

// fillStatus adds to the status what the server does not know.
func (a *agent) fillStatus(st *bridge.Status) {
	st.Backend, st.Reason, st.Display = a.desk.Backend, a.desk.Reason, a.desk.Display
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for name, state := range a.desk.Permissions(ctx) {
		st.Permissions[name] = string(state)
	}
	st.Pending, _ = a.gate.Quiet()
	_, st.Paused = a.gate.Paused()
	st.Hosts = a.hosts.Status()
	st.Warnings = append(st.Warnings, a.hosts.Warnings()...)
	models, _ := a.models.Watch()
	st.HostLLM = string(models.Mode)
	st.Warnings = append(st.Warnings, a.models.Warnings()...)
	st.Warnings = append(st.Warnings, a.gate.Warnings()...)
	if names := a.awaitsRestart(); len(names) > 0 {
		st.Warnings = append(st.Warnings, "in force after a restart: "+strings.Join(names, ", "))
	}
	a.mu.Lock()
	if a.noChord != "" {
		st.Warnings = append(st.Warnings, a.noChord)
	}
	a.mu.Unlock()
	unseen := a.desk.Unwatched
	if a.desk.Person != nil {
		unseen = a.desk.Person.Err()
	}
	if unseen != nil && !a.desk.Own {
		st.Warnings = append(st.Warnings, fmt.Sprintf("your own mouse and keyboard cannot be seen (%v), so batches cannot stop when you use them", unseen))
	}
	if text := a.lost.Load(); text != nil {
		st.Warnings = append(st.Warnings, *text)
	}
	if err := a.audit.Healthy(); err != nil {
		st.Warnings = append(st.Warnings, err.Error())
	}
}

// reloadOnSignal reloads where only the log can be told what came of it.
func (a *agent) reloadOnSignal() {
	a.note(verbReload + ", by a signal")
	if _, err := a.reload(); err != nil {
		a.log.Error().Err(err).Msg("reload failed; what was in force stays")
	}
}

// verbs are what the control socket answers.
func (a *agent) verbs() map[string]control.Handler {
	plain := func(do func() (any, error)) control.Handler {
		return func(context.Context, json.RawMessage, func(any) error) (any, error) { return do() }
	}
	verbs := map[string]control.Handler{
		verbStatus: plain(func() (any, error) { return a.server.Status(), nil }),
		verbShow: plain(func() (any, error) {
			a.mu.Lock()
			show := a.show
			a.mu.Unlock()
			if show != nil {
				show()
			}
			return map[string]int{"pid": os.Getpid()}, nil
		}),
		verbConfig: plain(func() (any, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			return shown(a.conf), nil
		}),
		verbTools: plain(func() (any, error) { return a.tools(), nil }),
		verbStop: plain(func() (any, error) {
			return a.stopAll(stop.Stopped, "everything was stopped from the command line"), nil
		}),
		verbQuit: plain(func() (any, error) {
			s := a.stopAll(stop.Stopped, "the agent is ending")
			a.end(told("drawbridge stop --quit"))
			return s, nil
		}),
		verbPause: plain(func() (any, error) {
			return a.pauseAll("the command line"), nil
		}),
		verbReload:   plain(func() (any, error) { return a.reload() }),
		verbTokens:   plain(func() (any, error) { return nil, a.server.ReloadTokens() }),
		verbActivity: plain(func() (any, error) { return nil, a.openActivity() }),
		verbRules:    plain(func() (any, error) { return a.rules(), nil }),
		verbRevoke:   a.revokeRule,
		verbDoctor:   a.examine,
		verbLogin: func(ctx context.Context, _ json.RawMessage, _ func(any) error) (any, error) {
			a.readLogin(ctx)
			return nil, nil
		},
	}
	for _, v := range []string{verbStop, verbQuit, verbPause, verbReload, verbTokens, verbActivity, verbRevoke} {
		do := verbs[v]
		verbs[v] = func(ctx context.Context, args json.RawMessage, emit func(any) error) (any, error) {
			a.note(v + ", over the control socket")
			return do(ctx, args, emit)
		}
	}
	return verbs
}

// note puts into the audit what somebody did beside calls.
func (a *agent) note(what string) {
	a.log.Info().Msg(what)
	a.audit.Append(audit.Record{Phase: audit.Note, Outcome: what})
}

// count takes note of a request by kind. The person sees the first refused one of
// a kind at once, and later ones with whatever changes next.
func (a *agent) count(what, why, said string) {
	if n := a.requests.Add(what, why, said); why != "" && (n == 1 || n%50 == 0) {
		a.pulse.Touch()
	}
}

func (a *agent) pauseAll(by string) stopped {
	a.gate.Pause(by)
	s := stopped{Paused: true, Stopped: a.server.StopRunning(&stop.Error{Reason: stop.Paused, Message: "everything was paused from " + by})}
	s.GoOn = a.gate.HowToResume()
	a.log.Warn().Int("stopped", s.Stopped).Msg("paused")
	return s
}

func (a *agent) stopAll(reason stop.Reason, message string) stopped {
	// First, so that no call slips in on an answer from before.
	a.gate.Forget()
	s := stopped{Stopped: a.server.Stop(&stop.Error{Reason: reason, Message: message})}
	_, s.Paused = a.gate.Paused()
	a.log.Warn().Int("stopped", s.Stopped).Msg(message)
	return s
}

// tools lists what the default client sees.
func (a *agent) tools() listing {
	l := listing{Tools: []listed{}}
	for _, t := range a.server.Catalogue(token.DefaultName) {
		l.Tools = append(l.Tools, listed{t.Host, t.Definition})
	}
	return l
}
