package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"drawbridge/bridge/desk"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/host"
)

// A configuration can be written by any program of the person, so what loosens in
// it holds only once the person accepted it. Each option says in the table how it
// is held against what was accepted, or why it does not loosen.

// InForce is a configuration as it holds: the stricter of what is written and what
// was accepted.
type InForce struct {
	Config
	// Waiting are the hosts that nothing may be started or dialled for, and whose
	// names no session may take, since no person has accepted them as they are
	// written, or that they are gone.
	Waiting map[string]bool
	// reserved is what was accepted of those that are written otherwise now.
	reserved map[string]program
}

// Settings are a configuration that is held against what was accepted of one.
type Settings struct {
	Config Config
	// Granted tells that programs which this one starts act with what was granted
	// to it (macOS's Accessibility and Screen Recording), and that its own desktop
	// is out of reach of those that were granted nothing. Elsewhere, whoever can
	// write the configuration can start a program, and drive the desktop, by itself.
	Granted bool
}

var _ gate.Settings = Settings{}

// kept is what is kept of settings: the options that loosen, by name. It holds no
// secrets.
type kept map[string]json.RawMessage

// Over implements [gate.Settings].
func (s Settings) Over(accepted json.RawMessage) (stricter json.RawMessage, wider []gate.Item, err error) {
	held, wider, err := s.held(accepted)
	return s.keep(&held), wider, err
}

// Keep implements [gate.Settings].
func (s Settings) Keep() json.RawMessage { return s.keep(&InForce{Config: s.Config}) }

// Hold returns the stricter of the settings and what was kept of accepted ones.
func (s Settings) Hold(accepted json.RawMessage) (InForce, error) {
	held, _, err := s.held(accepted)
	return held, err
}

func (s Settings) held(accepted json.RawMessage) (InForce, []gate.Item, error) {
	held := InForce{Config: s.Config, Waiting: map[string]bool{}, reserved: map[string]program{}}
	// What is put into these must not show in the settings.
	held.Clients, held.Hosts = maps.Clone(held.Clients), maps.Clone(held.Hosts)
	var was kept
	if len(accepted) > 0 {
		if err := json.Unmarshal(accepted, &was); err != nil {
			return held, nil, fmt.Errorf("the accepted settings: %w", err)
		}
	}
	var items []gate.Item
	for _, name := range s.guarded() {
		ask := func(what, format string, args ...any) {
			items = append(items, gate.Item{Key: name + ":" + what, Text: fmt.Sprintf(format, args...)})
		}
		if err := options[name].guard.hold(was[name], &held, ask); err != nil {
			return held, nil, fmt.Errorf("the accepted %s: %w", name, err)
		}
	}
	return held, items, nil
}

func (s Settings) keep(c *InForce) json.RawMessage {
	k := map[string]any{}
	for _, name := range s.guarded() {
		k[name] = options[name].guard.keep(c)
	}
	b, err := json.Marshal(k)
	if err != nil { // lists, names and numbers always marshal
		panic(err)
	}
	return b
}

// guarded names the options that are held against what was accepted.
func (s Settings) guarded() []string {
	var names []string
	for name, o := range options {
		if o.guard != nil && (s.Granted || !o.granted) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ask is told of one thing that would be wider: a key for what it is, and what the
// person reads.
type ask func(what, format string, args ...any)

// guard holds an option against what was accepted of it.
type guard interface {
	// keep returns what is kept of the option as it stands in c, for JSON.
	keep(c *InForce) any
	// hold puts the stricter of what was kept and what stands in c into c. kept is
	// nil where nothing was.
	hold(kept json.RawMessage, c *InForce, ask ask) error
}

// guardOf is a guard of a value that get takes out of a configuration and set puts
// into one.
type guardOf[T any] struct {
	get      func(*InForce) T
	set      func(*InForce, T)
	stricter func(accepted, next T, ask ask) T
	// first takes the first value that comes without a question: none is wider than
	// another, and only a change is. Else the first one is held against the default.
	first bool
}

func (g guardOf[T]) keep(c *InForce) any { return g.get(c) }

func (g guardOf[T]) hold(kept json.RawMessage, c *InForce, ask ask) error {
	var accepted T
	switch {
	case kept != nil:
		if err := json.Unmarshal(kept, &accepted); err != nil {
			return err
		}
	case g.first:
		return nil
	default:
		accepted = g.get(&InForce{Config: Default()})
	}
	g.set(c, g.stricter(accepted, g.get(c), ask))
	return nil
}

// field is a guard of a single field.
func field[T any](at func(*Config) *T, stricter func(accepted, next T, ask ask) T) guardOf[T] {
	return guardOf[T]{
		get:      func(c *InForce) T { return *at(&c.Config) },
		set:      func(c *InForce, v T) { *at(&c.Config) = v },
		stricter: stricter,
	}
}

// widens is a list of what is let in: each further one loosens.
func widens(at func(*Config) *[]string, format string) guard {
	return field(at, func(accepted, next []string, ask ask) []string {
		in := []string{}
		for _, s := range next {
			if slices.Contains(accepted, s) {
				in = append(in, s)
			} else {
				ask(s, format, quote(s))
			}
		}
		return in
	})
}

// narrows is a list of what is refused: each that goes loosens.
func narrows(at func(*Config) *[]string, format string) guard {
	return field(at, func(accepted, next []string, ask ask) []string {
		return union(accepted, next, slices.Contains, ask, format)
	})
}

// union is next with what of accepted it does not hold.
func union(accepted, next []string, holds func([]string, string) bool, ask ask, format string, args ...any) []string {
	both := slices.Clone(next)
	for _, s := range accepted {
		if !holds(next, s) {
			both = append(both, s)
			ask(s, format, append(args, quote(s))...)
		}
	}
	return both
}

// switchedOn is what loosens when it is on.
func switchedOn(at func(*Config) *bool, text string) guard {
	return field(at, func(accepted, next bool, ask ask) bool {
		if next && !accepted {
			ask("on", "%s", text)
		}
		return next && accepted
	})
}

// atLeast is a time that loosens when it gets shorter.
func atLeast(at func(*Config) *time.Duration, format string) guard {
	return field(at, func(accepted, next time.Duration, ask ask) time.Duration {
		if next < accepted {
			ask(human(next), format, human(next), human(accepted))
		}
		return max(accepted, next)
	})
}

// stays is a value of which none is wider than another, but each change may be.
func stays[T comparable](at func(*Config) *T, say func(accepted, next T) string) guardOf[T] {
	return field(at, func(accepted, next T, ask ask) T {
		if next != accepted {
			ask(fmt.Sprint(next), "%s", say(accepted, next))
		}
		return accepted
	})
}

// fromFirst is g, with the first value taken without a question.
func fromFirst[T any](g guardOf[T]) guard {
	g.first = true
	return g
}

// desktop is the backend: one with a desktop of its own is narrower than the
// person's.
func desktop(at func(*Config) *string) guard {
	own := func(backend string) bool { return backend == desk.Simulated || backend == desk.Virtual }
	return field(at, func(accepted, next string, ask ask) string {
		if !own(accepted) || own(next) {
			return next
		}
		ask(next, "the computer tool drives your own desktop (backend %s), not one of its own (%s); after a restart", next, accepted)
		return accepted
	})
}

// shown is a list of globs for the tools that are shown.
func shown(accepted, next []string, ask ask, who string) []string {
	in := []string{}
	for _, g := range next {
		if g == nothing || covers(accepted, g) {
			in = append(in, g)
		} else {
			ask(who+g, "%s may see the tools that fit %s", client(who), quote(g))
		}
	}
	for _, g := range accepted {
		if g != nothing && covers(next, g) && !slices.Contains(in, g) {
			in = append(in, g)
		}
	}
	return in
}

// hidden is a list of globs for the tools that are not shown.
func hidden(accepted, next []string, ask ask, who string) []string {
	return union(accepted, next, covers, func(what, format string, args ...any) { ask(who+what, format, args...) },
		"%s may see the tools that fit %s, which were hidden", client(who))
}

// forAll is stricter for the list that holds for every client.
func forAll(stricter func(accepted, next []string, ask ask, who string) []string) func(accepted, next []string, ask ask) []string {
	return func(accepted, next []string, ask ask) []string { return stricter(accepted, next, ask, "") }
}

// client names who something is for; empty: every client.
func client(name string) string {
	if name == "" {
		return "every client"
	}
	return "client " + name
}

// forClients is a guard of a list that each client has; without an entry, or with
// an empty one, it has what free says.
func forClients(at func(*Client) *[]string, free []string, stricter func(accepted, next []string, ask ask, who string) []string) guard {
	return guardOf[map[string][]string]{
		get: func(c *InForce) map[string][]string {
			lists := map[string][]string{}
			for name, e := range c.Clients {
				if list := *at(&e); len(list) > 0 {
					lists[name] = list
				}
			}
			return lists
		},
		set: func(c *InForce, lists map[string][]string) {
			for name, list := range lists {
				e := c.Clients[name]
				if !slices.Equal(*at(&e), list) {
					*at(&e) = list
					c.put(name, e)
				}
			}
		},
		stricter: func(accepted, next map[string][]string, ask ask) map[string][]string {
			held := map[string][]string{}
			of := func(lists map[string][]string, name string) []string {
				if list, ok := lists[name]; ok {
					return list
				}
				return free
			}
			for _, name := range names(accepted, next) {
				list := stricter(of(accepted, name), of(next, name), ask, name)
				if len(list) == 0 && len(free) > 0 {
					list = []string{nothing} // an empty list would mean everything
				}
				if !slices.Equal(list, free) {
					held[name] = list
				}
			}
			return held
		},
	}
}

// nothing is a glob that no tool fits, since each has a name. It cannot be written.
const nothing = ""

// put puts a client's entry into a configuration that is held.
func (c *InForce) put(name string, e Client) {
	if c.Clients == nil {
		c.Clients = map[string]Client{}
	}
	c.Clients[name] = e
}

// names are the names of two maps, in order.
func names[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// covers tells whether a list of globs surely has one that fits all that g fits.
func covers(list []string, g string) bool {
	return slices.ContainsFunc(list, func(outer string) bool {
		if outer == g {
			return true
		}
		const special = `*?[\`
		if !strings.ContainsAny(g, special) {
			o, err := gate.ParseGlob(outer)
			return err == nil && o.Match(g)
		}
		// What begins like outer, whose only special character is a * at its end.
		head, star := strings.CutSuffix(outer, "*")
		return star && !strings.ContainsAny(head, special) && strings.HasPrefix(g, head)
	})
}

// displays are which displays are driven.
type displays struct {
	All int            `json:"all"`
	Of  map[string]int `json:"of,omitempty"` // by client
}

func (d displays) of(client string) int {
	if n, ok := d.Of[client]; ok {
		return n
	}
	return d.All
}

// theDisplays guards which display is driven: a client that was let see one has not
// been let see another.
func theDisplays() guard {
	return guardOf[displays]{
		first: true,
		get: func(c *InForce) displays {
			d := displays{c.Computer.Display, map[string]int{}}
			for name, e := range c.Clients {
				if e.Display != nil {
					d.Of[name] = *e.Display
				}
			}
			return d
		},
		set: func(c *InForce, d displays) {
			c.Computer.Display = d.All
			for name, n := range d.Of {
				if e := c.Clients[name]; e.Display == nil || *e.Display != n {
					e.Display = &n
					c.put(name, e)
				}
			}
		},
		stricter: func(accepted, next displays, ask ask) displays {
			const format = "%s drives display %d, not %d"
			held := displays{All: accepted.All, Of: map[string]int{}}
			if next.All != accepted.All {
				ask(fmt.Sprint(next.All), format, client(""), next.All, accepted.All)
			}
			for _, name := range names(accepted.Of, next.Of) {
				was, now := accepted.of(name), next.of(name)
				if was != now {
					ask(fmt.Sprint(name, now), format, client(name), now, was)
				}
				if _, own := next.Of[name]; own || was != held.All {
					held.Of[name] = was
				}
			}
			return held
		},
	}
}

// program is what is started or dialled for a host. Only hashes are kept: the rest
// may hold secrets. The zero one is that of a session that dials in, or of no host.
type program struct {
	Hash  string `json:"hash,omitempty"`
	Shape string `json:"shape,omitempty"` // the hash without values that are not shown
	// Stale tells that the host is written otherwise since: its name stays its own,
	// but it is not started again as it was, either.
	Stale bool `json:"stale,omitempty"`

	verb, what, tail string // for the person
	values           string // names of what has values that are not shown
}

// UnmarshalJSON also takes what earlier versions kept, a hash alone.
func (p *program) UnmarshalJSON(b []byte) error {
	*p = program{}
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &p.Hash)
	}
	type plain program // without this method
	return json.Unmarshal(b, (*plain)(p))
}

func programOf(name string, h *host.Config) program {
	if h.Kind() == host.KindAttached {
		return program{}
	}
	env, headers := maps.Clone(h.Env), maps.Clone(h.Headers)
	hash := func() string {
		b, err := json.Marshal(map[string]any{
			"command": h.Command, "args": append([]string{}, h.Args...), "env": env, "cwd": h.Cwd, "url": h.URL, "headers": headers,
		})
		if err != nil { // texts always marshal
			panic(err)
		}
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	p := program{Hash: hash(), verb: "starts"}
	for k := range env {
		env[k] = ""
	}
	for k, s := range headers {
		s.Prefix = ""
		headers[k] = s
	}
	p.Shape = hash()

	var what strings.Builder
	var list []string
	kind := "variable"
	if h.Kind() == host.KindRemote {
		p.verb, kind = "is", "header"
		fmt.Fprintf(&what, "the server %s", address(h.URL))
		for _, k := range slices.Sorted(maps.Keys(headers)) {
			list = append(list, quote(k))
		}
	} else {
		fmt.Fprintf(&what, "the program %s", quote(h.Command))
		for _, a := range h.Args {
			what.WriteString(" " + quote(a))
		}
		if h.Cwd != "" {
			what.WriteString(", in " + quote(h.Cwd))
		}
		for _, k := range slices.Sorted(maps.Keys(env)) {
			shown := quote(k)
			if decidesCode(k) {
				shown += "=" + quote(h.Env[k])
			}
			list = append(list, shown)
		}
	}
	p.what = what.String()
	if len(list) > 0 {
		if len(list) > 1 {
			kind += "s"
		}
		p.values = "the " + kind + " " + strings.Join(list, ", ")
	}
	if prefix := prefixOf(name, h); prefix != name+"_" {
		p.tail = "; its tools are called " + called(prefix)
	}
	return p
}

// told says what p is to a person who accepted was for the host.
func (p program) told(name string, was program) string {
	values := ""
	if p.values != "" {
		values = ", with " + p.values
	}
	if was.Hash == "" || was.Hash == p.Hash {
		return "host " + name + " " + p.verb + " " + p.what + values + p.tail
	}
	now := "now starts"
	if p.verb == "is" {
		now = "is now"
	}
	if was.Shape == p.Shape {
		values = ", with other values of " + p.values
	}
	return "host " + name + " " + now + " " + p.what + values + ", other than what you accepted" + p.tail
}

// codeVariables are variables that decide what code a program runs, in upper case;
// those that end with _ are beginnings.
var codeVariables = []string{
	"PATH", "LD_", "DYLD_", "SHELL", "ENV", "BASH_ENV", "ZDOTDIR", "NODE_OPTIONS", "NODE_PATH", "NPM_CONFIG_",
	"PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONUSERBASE", "RUBYOPT", "RUBYLIB", "PERL5OPT", "PERL5LIB", "PERL5DB",
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "PHPRC", "PHP_INI_SCAN_DIR",
}

// decidesCode tells whether a variable decides what code runs, so that its value is
// shown.
func decidesCode(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc(codeVariables, func(v string) bool {
		return name == v || strings.HasSuffix(v, "_") && strings.HasPrefix(name, v)
	})
}

// address is an address without its query, in which a key may stand.
func address(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "that cannot be read"
	}
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	return u.Redacted()
}

// programs guards what is started and dialled for hosts. One that has changed is
// not what was accepted, of which only hashes are left: it waits, too. Rules and
// hints go by a host's name, so a name stays that of the program that was accepted
// under it until a person accepted that it is another's.
func programs() guard {
	return guardOf[map[string]program]{
		get: func(c *InForce) map[string]program {
			all := map[string]program{}
			maps.Copy(all, c.reserved)
			for name, h := range c.Hosts {
				if !c.Waiting[name] {
					all[name] = programOf(name, &h)
				}
			}
			return all
		},
		set: func(c *InForce, held map[string]program) {
			for name, p := range held {
				if p.Stale {
					c.Waiting[name], c.reserved[name] = true, p
				}
			}
			for name := range c.Hosts {
				if _, ok := held[name]; !ok {
					c.Waiting[name] = true
				}
			}
		},
		stricter: func(accepted, next map[string]program, ask ask) map[string]program {
			held := map[string]program{}
			for _, name := range names(accepted, next) {
				was := accepted[name]
				now, has := next[name]
				switch {
				case has && now.Hash == was.Hash && !was.Stale:
					held[name] = now
					continue
				case now.Hash != "":
					ask(name+":"+now.Hash, "%s", now.told(name, was))
				case was.Hash == "":
					continue
				case has:
					ask(name+":session", "host %s is a session that dials in, no longer the program or server that you accepted", name)
				default:
					ask(name+":gone", "the name %s is free for any session, no longer kept for the program or server that you accepted", name)
				}
				if was.Hash != "" {
					held[name] = program{Hash: was.Hash, Shape: was.Shape, Stale: true}
				}
			}
			return held
		},
	}
}

// naming is what a host's tools are called.
type naming struct {
	Prefix   string `json:"prefix"`
	Attached bool   `json:"attached,omitempty"` // of a session, which needs no entry to dial in
	Program  string `json:"program,omitempty"`  // hash of the program or server
}

// renamed finds what the tools of a program were called under a name that it no
// longer has.
func renamed(accepted, next map[string]naming, now naming) (was naming, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(accepted)) {
		if _, still := next[name]; !still && now.Program != "" && accepted[name].Program == now.Program {
			return accepted[name], true
		}
	}
	return was, false
}

func prefixOf(name string, h *host.Config) string {
	if h.Prefix != nil {
		return *h.Prefix
	}
	return name + "_"
}

// called says what tools with a prefix are called.
func called(prefix string) string {
	if prefix == "" {
		return "by their own names"
	}
	return prefix + "…"
}

// mainHostOnly guards whose tools keep their own names.
func mainHostOnly() guard {
	return fromFirst(stays(func(c *Config) *string { return &c.MainHost }, func(accepted, next string) string {
		whose := func(name string) string {
			if name == "" {
				return "the session that claims it"
			}
			return "host " + name
		}
		return fmt.Sprintf("the tools that keep their own names are those of %s, no longer those of %s", whose(next), whose(accepted))
	}))
}

// panicChordOnly guards the chord: one that the person does not know stops nothing.
func panicChordOnly() guard {
	return stays(func(c *Config) *string { return &c.HandBack.PanicChord }, func(accepted, next string) string {
		if next == "" {
			return fmt.Sprintf("no keys stop everything any more; %s did", quote(accepted))
		}
		return fmt.Sprintf("the keys %s stop everything, no longer %s", quote(next), quote(accepted))
	})
}

// prefixes guards what the tools of hosts are called: rules, expose and hide go by
// it.
func prefixes() guard {
	return guardOf[map[string]naming]{
		first: true,
		get: func(c *InForce) map[string]naming {
			all := map[string]naming{}
			for name, h := range c.Hosts {
				all[name] = naming{prefixOf(name, &h), h.Kind() == host.KindAttached, programOf(name, &h).Hash}
			}
			return all
		},
		set: func(c *InForce, held map[string]naming) {
			for name, n := range held {
				h, is := c.Hosts[name]
				if !is {
					h.Attached = true
				}
				if !is || prefixOf(name, &h) != n.Prefix {
					h.Prefix = &n.Prefix
					if c.Hosts == nil {
						c.Hosts = map[string]host.Config{}
					}
					c.Hosts[name] = h
				}
			}
		},
		stricter: func(accepted, next map[string]naming, ask ask) map[string]naming {
			held := map[string]naming{}
			for _, name := range names(accepted, next) {
				was, had := accepted[name]
				now, has := next[name]
				usual := naming{Prefix: name + "_", Attached: true}
				switch old, is := renamed(accepted, next, now); {
				case !had && is:
					was = old
				case !has && was.Attached: // the session may still come
					now = usual
				case !has:
					continue // there is nothing to be named
				case !had && now.Attached: // the session may have been there
					was = usual
				case !had:
					was = now // nothing was named otherwise
				}
				if now.Prefix != was.Prefix {
					ask(name+":"+now.Prefix, "the tools of host %s are called %s, no longer %s", name, called(now.Prefix), called(was.Prefix))
				}
				if has || now.Prefix != was.Prefix {
					held[name] = naming{was.Prefix, now.Attached, now.Program}
				}
			}
			return held
		},
	}
}

// providers guards where model requests go.
func providers() guard {
	g := field(func(c *Config) *map[string]string { return &c.ModelGateway.Providers }, func(accepted, next map[string]string, ask ask) map[string]string {
		for _, name := range names(accepted, next) {
			was, had := accepted[name]
			now, has := next[name]
			switch {
			case !has:
				ask(name, "model requests for %s no longer go to %s; after a restart", name, was)
			case !had:
				ask(name+":"+now, "model requests for %s go to %s; after a restart", name, now)
			case now != was:
				ask(name+":"+now, "model requests for %s go to %s, no longer to %s; after a restart", name, now, was)
			}
		}
		return accepted
	})
	return fromFirst(g)
}
