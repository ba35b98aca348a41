package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"drawbridge/bridge/gate"
)

// leaves lists the option keys of the fields that hold a value, not a section.
func leaves(t reflect.Type, p place) []string {
	var out []string
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			out = append(out, leaves(f.Type, p.field(fieldName(f)))...)
		}
		return out
	case reflect.Map, reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return leaves(t.Elem(), p.entry("x"))
		}
	}
	return []string{p.key}
}

// TestEveryOptionSaysWhetherItLoosens: a new option cannot be forgotten.
func TestEveryOptionSaysWhetherItLoosens(t *testing.T) {
	fields := leaves(reflect.TypeFor[Config](), place{})
	for _, f := range fields {
		o := options[f]
		said := 0
		for _, is := range []bool{o.guard != nil, o.with != "", o.safe != ""} {
			if is {
				said++
			}
		}
		if said != 1 {
			t.Errorf("option %s says %d times whether it loosens: give it one of guard, with and safe", f, said)
		}
		if o.with != "" && o.with != byGate && options[o.with].guard == nil {
			t.Errorf("option %s is held with %s, which has no guard", f, o.with)
		}
		if o.granted && o.guard == nil {
			t.Errorf("option %s has no guard that could count somewhere", f)
		}
	}
	for name, o := range options {
		if !slices.Contains(fields, name) && (o.guard != nil || o.with != "" || o.safe != "") {
			t.Errorf("%s is a section; its fields say whether they loosen", name)
		}
	}
}

func parsed(t *testing.T, text string) Config {
	t.Helper()
	c, _, err := Parse([]byte(text), "c.yaml")
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return c
}

func texts(items []gate.Item) []string {
	out := []string{}
	for _, it := range items {
		out = append(out, it.Text)
	}
	return out
}

// none stands for a first start: nothing was accepted.
const none = "none"

// TestGuards: what was accepted, what is written then, what the person is asked,
// and what is in force until they answer, as a configuration.
func TestGuards(t *testing.T) {
	const notes, twice = "hosts: {notes: {command: notes-server}}", "hosts: {notes: {command: notes-server, args: [--twice]}}"
	for name, c := range map[string]struct {
		accepted, next string
		asked          []string
		inForce        string // empty: what is written
		waiting        []string
	}{
		"defaults at first":    {none, "", nil, "", nil},
		"nothing changed":      {"hide: [a]\nmain_host: x\n" + notes, "hide: [a]\nmain_host: x\n" + notes, nil, "", nil},
		"what does not loosen": {"", "listen: 127.0.0.1:1\ncomputer: {wait_ms: 1, picture: {size: original}}\nlimits: {connections: 1000}\nlog: {level: debug}\n", nil, "", nil},

		"host names":       {"allowed_hosts: [a]", "allowed_hosts: [a, b, c]", []string{"requests that name this machine b are let in", "requests that name this machine c are let in"}, "allowed_hosts: [a]", nil},
		"no host names":    {"allowed_hosts: [a, b]", "allowed_hosts: [b]", nil, "", nil},
		"origins at first": {none, "allowed_origins: ['https://a.example']", []string{`web pages of "https://a.example" may connect`}, "allowed_origins: []", nil},

		"tool on":            {"computer: {enabled: false}", "", []string{"the computer tool is offered"}, "computer: {enabled: false}", nil},
		"tool off":           {"", "computer: {enabled: false}", nil, "", nil},
		"titles":             {"computer: {record_titles: false}", "", []string{"results and records hold the titles of windows"}, "computer: {record_titles: false}", nil},
		"backend":            {"computer: {backend: simulated}", "computer: {backend: native}", []string{"the computer tool drives your own desktop (backend native), not one of its own (simulated); after a restart"}, "computer: {backend: simulated}", nil},
		"backend, own":       {"computer: {backend: simulated}", "computer: {backend: virtual}", nil, "", nil},
		"backend, narrower":  {"", "computer: {backend: simulated}", nil, "", nil},
		"backend, as before": {"", "computer: {backend: applescript}", nil, "", nil},

		"display":                  {"", "computer: {display: 1}", []string{"every client drives display 1, not 0"}, "computer: {display: 0}", nil},
		"display at first":         {none, "computer: {display: 1}\nclients: {a: {display: 2}}", nil, "", nil},
		"display of a client":      {"clients: {a: {display: 1}}", "clients: {a: {display: 0}}", []string{"client a drives display 0, not 1"}, "clients: {a: {display: 1}}", nil},
		"display of a client gone": {"clients: {a: {display: 1}}", "", []string{"client a drives display 0, not 1"}, "clients: {a: {display: 1}}", nil},
		"display of a new client":  {"", "clients: {a: {display: 1}}", []string{"client a drives display 1, not 0"}, "clients: {a: {display: 0}}", nil},
		"display, for all": {"computer: {display: 1}\nclients: {a: {display: 2}}", "clients: {a: {display: 2}}", []string{"every client drives display 0, not 1"},
			"computer: {display: 1}\nclients: {a: {display: 2}}", nil},

		"quiet shorter":          {"hand_back: {quiet: 10s}", "", []string{"batches go on 3s after you used mouse or keyboard, not only 10s after"}, "hand_back: {quiet: 10s}", nil},
		"quiet shorter at first": {none, "hand_back: {quiet: 0s}", []string{"batches go on 0s after you used mouse or keyboard, not only 3s after"}, "hand_back: {quiet: 3s}", nil},
		"quiet longer":           {"", "hand_back: {quiet: 10s}", nil, "", nil},
		"unwatched":              {"", "hand_back: {allow_unwatched: true}", []string{unwatched}, "hand_back: {allow_unwatched: false}", nil},
		"no chord":               {none, "hand_back: {panic_chord: ''}", []string{`no keys stop everything any more; "ctrl+option+escape" did`}, "hand_back: {panic_chord: ctrl+option+escape}", nil},
		"another chord":          {"", "hand_back: {panic_chord: ctrl+alt+f12}", []string{`the keys "ctrl+alt+f12" stop everything, no longer "ctrl+option+escape"`}, "hand_back: {panic_chord: ctrl+option+escape}", nil},
		"a chord again":          {"hand_back: {panic_chord: ''}", "", []string{`the keys "ctrl+option+escape" stop everything, no longer ""`}, "hand_back: {panic_chord: ''}", nil},

		"shown more":           {"expose: [computer, a_*]", "expose: [computer, bash, a_b, 'a_[xy]*']", []string{"every client may see the tools that fit bash"}, "expose: [computer, a_b, 'a_[xy]*']", nil},
		"shown all":            {"expose: [computer]", "", []string{`every client may see the tools that fit "*"`}, "expose: [computer]", nil},
		"shown less":           {"", "expose: [computer]", nil, "", nil},
		"shown others":         {"expose: [a]", "expose: [b]", []string{"every client may see the tools that fit b"}, "expose: []", nil},
		"shown none":           {"expose: [a]", "expose: []", nil, "", nil},
		"shown, some":          {"expose: []", "expose: [a]", []string{"every client may see the tools that fit a"}, "expose: []", nil},
		"hidden less":          {"hide: [bash, s_*]", "hide: [s_*, x]", []string{"every client may see the tools that fit bash, which were hidden"}, "hide: [s_*, x, bash]", nil},
		"hidden otherwise":     {"hide: [bash, 'b_[x]']", "hide: [b*]", nil, "", nil},
		"hidden at first":      {none, "hide: [bash]", nil, "", nil},
		"shown to a client":    {"clients: {a: {expose: [computer]}}", "clients: {a: {expose: [computer, bash]}, b: {expose: [x]}}", []string{"client a may see the tools that fit bash"}, "clients: {a: {expose: [computer]}, b: {expose: [x]}}", nil},
		"a client's list goes": {"clients: {a: {expose: [computer], hide: [x]}}", "", []string{`client a may see the tools that fit "*"`, "client a may see the tools that fit x, which were hidden"}, "clients: {a: {expose: [computer], hide: [x]}}", nil},
		"to a client, others":  {"clients: {a: {expose: [x]}}", "clients: {a: {expose: [z]}}", []string{"client a may see the tools that fit z"}, "clients: {a: {expose: [nothing-at-all]}}", nil},
		"hidden from a client": {"", "clients: {a: {hide: [x]}}", nil, "", nil},

		"a program":              {"", notes, []string{"host notes starts the program notes-server"}, "", []string{"notes"}},
		"a program at first":     {none, twice, []string{`host notes starts the program notes-server "--twice"`}, "", []string{"notes"}},
		"a program changed":      {notes, twice, []string{`host notes now starts the program notes-server "--twice", other than what you accepted`}, "", []string{"notes"}},
		"a program gone":         {notes, "", []string{"the name notes is free for any session, no longer kept for the program or server that you accepted"}, "", []string{"notes"}},
		"a session in its place": {notes, "hosts: {notes: {attached: true}}", []string{"host notes is a session that dials in, no longer the program or server that you accepted"}, "", []string{"notes"}},
		"a server in its place":  {notes, "hosts: {notes: {url: 'https://t.example/mcp'}}", []string{"host notes is now the server https://t.example/mcp, other than what you accepted"}, "", []string{"notes"}},
		"a session gone":         {"hosts: {notes: {attached: true}}", "", nil, "", nil},
		"a program, its time":    {notes, "hosts: {notes: {command: notes-server, timeout: 1s, trust_hints: true}}", nil, "", nil},
		"variables": {notes, "hosts: {notes: {command: notes-server, env: {A: s3cret, B: s3cret}, cwd: /srv}}",
			[]string{`host notes now starts the program notes-server, in "/srv", with the variables A, B, other than what you accepted`}, "", []string{"notes"}},
		"a variable's value": {"hosts: {notes: {command: x, env: {A: s3cret}}}", "hosts: {notes: {command: x, env: {A: other}}}", []string{"host notes now starts the program x, with other values of the variable A, other than what you accepted"}, "", []string{"notes"}},
		"variables that decide what runs": {"hosts: {notes: {command: x, env: {PATH: /bin, B: s3cret}}}", "hosts: {notes: {command: x, env: {PATH: /evil, B: s3cret}}}",
			[]string{`host notes now starts the program x, with other values of the variables B, PATH="/evil", other than what you accepted`}, "", []string{"notes"}},
		"variables that decide, at first": {none, "hosts: {notes: {command: x, env: {LD_PRELOAD: a.so, dyld_library_path: /y, NODE_OPTIONS: '--require x', BASH_ENV: z, LDX: s3cret}}}",
			[]string{`host notes starts the program x, with the variables BASH_ENV=z, LDX, LD_PRELOAD="a.so", NODE_OPTIONS="--require x", dyld_library_path="/y"`}, "", []string{"notes"}},
		"a server": {"", "hosts: {far: {url: 'https://t.example/mcp?key=s3cret', headers: {Authorization: {file: /f, prefix: 'Bearer s3cret'}}}}",
			[]string{"host far is the server https://t.example/mcp?…, with the header Authorization"}, "", []string{"far"}},
		"a header's file": {"hosts: {far: {url: 'https://t.example/', headers: {A: {file: /f}}}}", "hosts: {far: {url: 'https://t.example/', headers: {A: {file: /g}}}}",
			[]string{"host far is now the server https://t.example/, with the header A, other than what you accepted"}, "", []string{"far"}},
		"a header's value": {"hosts: {far: {url: 'https://t.example/', headers: {A: {file: /f, prefix: s3cret}}}}", "hosts: {far: {url: 'https://t.example/', headers: {A: {file: /f}}}}",
			[]string{"host far is now the server https://t.example/, with other values of the header A, other than what you accepted"}, "", []string{"far"}},
		"a program instead of a session": {"hosts: {omp: {attached: true}}", "hosts: {omp: {command: x}}", []string{"host omp starts the program x"}, "", []string{"omp"}},
		"a session":                      {"", "hosts: {omp: {attached: true}}", nil, "", nil},
		"control characters":             {"", "hosts: {x: {command: \"a\\e[2Jb\", args: [\"c d\"]}}", []string{`host x starts the program "a\u001b[2Jb" "c d"`}, "", []string{"x"}},

		"names":                {"hosts: {omp: {attached: true}}", "hosts: {omp: {attached: true, prefix: ''}}", []string{"the tools of host omp are called by their own names, no longer omp_…"}, "hosts: {omp: {attached: true, prefix: omp_}}", nil},
		"names at first":       {none, "hosts: {omp: {attached: true, prefix: ''}}\nmain_host: omp", nil, "", nil},
		"names of a session":   {"", "hosts: {omp: {attached: true, prefix: ''}}", []string{"the tools of host omp are called by their own names, no longer omp_…"}, "hosts: {omp: {attached: true, prefix: omp_}}", nil},
		"names, entry gone":    {"hosts: {omp: {attached: true, prefix: o-}}", "", []string{"the tools of host omp are called omp_…, no longer o-…"}, "hosts: {omp: {attached: true, prefix: o-}}", nil},
		"names of a program":   {"", "hosts: {x: {command: z, prefix: ''}}", []string{"host x starts the program z; its tools are called by their own names"}, "", []string{"x"}},
		"names, program gone":  {"hosts: {x: {command: y, prefix: p}}", "", []string{"the name x is free for any session, no longer kept for the program or server that you accepted"}, "", []string{"x"}},
		"names, program stays": {"hosts: {x: {command: y, prefix: p}}", "hosts: {x: {command: y}}", []string{"the tools of host x are called x_…, no longer p…"}, "hosts: {x: {command: y, prefix: p}}", nil},
		"names, program renamed": {"hosts: {x: {command: y}}", "hosts: {z: {command: y}}",
			[]string{"the name x is free for any session, no longer kept for the program or server that you accepted", "host z starts the program \"y\"", "the tools of host z are called z_…, no longer x_…"},
			"hosts: {z: {command: y, prefix: x_}}", []string{"x", "z"}},
		"names, program renamed with its prefix": {"hosts: {x: {command: y}}", "hosts: {z: {command: y, prefix: x_}}",
			[]string{"the name x is free for any session, no longer kept for the program or server that you accepted", "host z starts the program \"y\"; its tools are called x_…"}, "", []string{"x", "z"}},
		"main":      {"", "main_host: omp", []string{"the tools that keep their own names are those of host omp, no longer those of the session that claims it"}, "main_host: ''", nil},
		"main gone": {"main_host: omp", "", []string{"the tools that keep their own names are those of the session that claims it, no longer those of host omp"}, "main_host: omp", nil},

		"providers at first": {none, "model_gateway: {providers: {openai: 'http://127.0.0.1:1'}}", nil, "", nil},
		"providers": {"model_gateway: {providers: {a: 'https://a.example', b: 'https://b.example'}}", "model_gateway: {providers: {a: 'https://e.example', openai: 'https://f.example'}}",
			[]string{"model requests for a go to https://e.example, no longer to https://a.example; after a restart", "model requests for b no longer go to https://b.example; after a restart", "model requests for openai go to https://f.example; after a restart"},
			"model_gateway: {providers: {a: 'https://a.example', b: 'https://b.example'}}", nil},
		"model hosts": {"model_gateway: {model_hosts: [a.example, b.example]}", "model_gateway: {model_hosts: [b.example, c.example]}",
			[]string{`models are no longer known to answer at "a.example", which is refused while models are off; after a restart`}, "model_gateway: {model_hosts: [b.example, c.example, a.example]}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			next := Settings{parsed(t, c.next), true}
			var accepted json.RawMessage
			if c.accepted != none {
				accepted = Settings{parsed(t, c.accepted), true}.Keep()
			}
			stricter, items, err := next.Over(accepted)
			if err != nil {
				t.Fatal(err)
			}
			if c.asked == nil {
				c.asked = []string{}
			}
			if got := texts(items); !slices.Equal(got, c.asked) {
				t.Errorf("asked about\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.asked, "\n"))
			}
			held, err := next.Hold(accepted)
			if err != nil {
				t.Fatal(err)
			}
			want := c.next
			if c.inForce != "" {
				want = c.inForce
			}
			shown := strings.ReplaceAll((&Loaded{Config: held.Config}).Show(), `expose: [""]`, `expose: [nothing-at-all]`) // which cannot be written
			if got, want := shown, (&Loaded{Config: parsed(t, want)}).Show(); got != want {
				t.Errorf("in force is\n%s\nwant\n%s", got, want)
			}
			if got := slices.Sorted(maps.Keys(held.Waiting)); !slices.Equal(got, c.waiting) {
				t.Errorf("%q wait, want %q", got, c.waiting)
			}
			// What is kept of it asks the same, and puts the same in force.
			if _, again, err := next.Over(stricter); c.accepted != none && (err != nil || !slices.Equal(again, items)) {
				t.Errorf("asked again about %v, %v", again, err)
			}
			// Once accepted, nothing is asked, and all is in force.
			if _, items, err := next.Over(next.Keep()); err != nil || len(items) != 0 {
				t.Errorf("accepted, and asked about %v, %v", items, err)
			}
			if held, err := next.Hold(next.Keep()); err != nil || len(held.Waiting) != 0 || !reflect.DeepEqual(held.Config, next.Config) {
				t.Errorf("accepted, and in force is %+v, %v", held, err)
			}
			for _, text := range append(texts(items), string(next.Keep()), string(stricter)) {
				if strings.Contains(text, "s3cret") {
					t.Errorf("tells a secret: %s", text)
				}
			}
		})
	}
}

// TestGuardsWithoutGrants: where a program that we start can do no more than the
// one that writes the configuration, it is started, and the desktop is not guarded.
func TestGuardsWithoutGrants(t *testing.T) {
	const before, after = "computer: {backend: virtual}", "computer: {backend: native}\nhosts: {x: {command: y, prefix: ''}}\nhide: [z]"
	for _, accepted := range []json.RawMessage{nil, Settings{parsed(t, before), false}.Keep()} {
		next := Settings{parsed(t, after), false}
		held, err := next.Hold(accepted)
		_, items, _ := next.Over(accepted)
		if err != nil || len(items) != 0 || len(held.Waiting) != 0 || !reflect.DeepEqual(held.Config, next.Config) {
			t.Errorf("asked about %v, in force %+v, %v", items, held, err)
		}
	}
}

// TestRenamedWithoutGrants: a program that goes on under another name keeps what its
// tools are called, so that what was hidden or denied stays so.
func TestRenamedWithoutGrants(t *testing.T) {
	accepted := Settings{parsed(t, "hosts: {tools: {command: prog, args: [a]}}\nhide: [tools_sh]"), false}.Keep()
	next := Settings{parsed(t, "hosts: {other: {command: prog, args: [a]}, third: {command: prog}}\nhide: [tools_sh]"), false}
	held, err := next.Hold(accepted)
	_, items, _ := next.Over(accepted)
	if want := []string{"the tools of host other are called other_…, no longer tools_…"}; err != nil || !slices.Equal(texts(items), want) {
		t.Errorf("asked about %v, %v", texts(items), err)
	}
	if p := held.Hosts["other"].Prefix; p == nil || *p != "tools_" || len(held.Waiting) != 0 {
		t.Errorf("in force %+v", held)
	}
	if _, items, err := next.Over(next.Keep()); err != nil || len(items) != 0 {
		t.Errorf("accepted, and asked about %v, %v", texts(items), err)
	}
}

func TestGuardsRefuseWhatIsNotKept(t *testing.T) {
	for _, accepted := range []string{`[]`, `{"hide":"x"}`, `{"hand_back.quiet":"long"}`, `{"hosts.*.prefix":[1]}`, `{`} {
		if _, err := (Settings{Default(), true}).Hold(json.RawMessage(accepted)); err == nil {
			t.Errorf("%s was taken", accepted)
		}
	}
	// Of an older version, which kept less, and of a newer one, which kept more.
	c := parsed(t, "allowed_hosts: [x]\nhide: [y]\nmain_host: z")
	_, items, err := Settings{c, true}.Over(json.RawMessage(`{"hide":["y"],"what.is.not":{"a":1}}`))
	if err != nil || !slices.Equal(texts(items), []string{"requests that name this machine x are let in"}) {
		t.Errorf("asked about %v, %v", items, err)
	}
}

// TestHoldLeavesTheRead: what is in force is put together beside what was read.
func TestHoldLeavesTheRead(t *testing.T) {
	read := parsed(t, "clients: {a: {hide: [x]}}\nhosts: {o: {attached: true}}")
	before := parsed(t, "clients: {a: {hide: [x]}}\nhosts: {o: {attached: true}}")
	accepted := Settings{parsed(t, "clients: {a: {expose: [w]}, b: {display: 1}}\nhosts: {o: {attached: true, prefix: p}, q: {attached: true, prefix: r}}"), true}.Keep()
	l := &Loaded{Config: read, Written: read, from: map[string]string{"clients.a.hide": "c.yaml:1"}}
	held, _, err := l.Hold(gate.Policy{Kept: accepted}, true)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, before) {
		t.Errorf("what was read is %+v now", read)
	}
	if got := held.Changed(l); !slices.Equal(got, []string{"clients", "hosts"}) {
		t.Errorf("in force differ %q", got)
	}
	shown := held.Show()
	for _, want := range []string{"    hide: [x]  # c.yaml:1\n", "    expose: [w]  # as before, until ", "    display: 1  # as before, until ", "    prefix: p  # as before, until ", "    prefix: r  # as before, until "} {
		if !strings.Contains(shown, want) {
			t.Errorf("shown is\n%s\nwithout\n%s", shown, want)
		}
	}
}

// TestHoldMarksWhatWaits: a host that waits is not shown as if it were in force, and
// rules go with where they came from.
func TestHoldMarksWhatWaits(t *testing.T) {
	c := parsed(t, "hosts: {x: {command: prog, args: [z]}, o: {attached: true}}\nrules: [{tool: a, then: allow}, {tool: b, then: deny}]")
	l := &Loaded{Config: c, Written: c, from: map[string]string{"hosts": "c.yaml:1", "hosts.x.command": "c.yaml:1", "hosts.o.attached": "c.yaml:1", "rules.0.tool": "c.yaml:2", "rules.1.tool": "c.yaml:3"}}
	held, waiting, err := l.Hold(gate.Policy{ConfigRules: []gate.Rule{{Tool: "old", Then: gate.ThenDeny}, c.Rules[1]}}, true)
	if err != nil || !waiting["x"] {
		t.Fatal(waiting, err)
	}
	shown := held.Show()
	for _, want := range []string{
		"    command: prog  # c.yaml:1; not in force until a person accepts it\n", "    args: [z]  # default; not in force until a person accepts it\n",
		"    attached: true  # c.yaml:1\n", "    tool: old  # as before, until ", "    tool: b  # c.yaml:3\n",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("shown is\n%s\nwithout\n%s", shown, want)
		}
	}
	if strings.Contains(shown, "tool: a ") || !strings.Contains(held.From("hosts"), "in part as before") {
		t.Errorf("hosts are from %s, shown is\n%s", held.From("hosts"), shown)
	}
}

// TestShowHidesSecrets: the names of variables are shown, what they are is not, as
// text and as values.
func TestShowHidesSecrets(t *testing.T) {
	c := parsed(t, "hosts:\n  a: {command: x, env: {TOKEN: s3cret, EMPTY: ''}}\n  b: {url: 'https://h', headers: {Authorization: {env: V, prefix: 'Bearer s3cret'}, X: {file: /f}}}\n")
	l := &Loaded{Config: c}
	b, err := json.Marshal(l.Values())
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{l.Show(), string(b)} {
		if strings.Contains(shown, "s3cret") {
			t.Errorf("tells a secret:\n%s", shown)
		}
		for _, want := range []string{"TOKEN", "EMPTY", "Authorization", "(secret)", "/f"} {
			if !strings.Contains(shown, want) {
				t.Errorf("shown is\n%s\nwithout %s", shown, want)
			}
		}
	}
	other := parsed(t, "hosts:\n  a: {command: x, env: {TOKEN: other, EMPTY: ''}}\n  b: {url: 'https://h', headers: {Authorization: {env: V, prefix: 'Bearer s3cret'}, X: {file: /f}}}\n")
	if got := l.Changed(&Loaded{Config: other}); !slices.Equal(got, []string{"hosts"}) {
		t.Errorf("a changed secret changes %q", got)
	}
}

// sees tells whether a client may see a tool, as the lists are documented.
func sees(c *Config, client, tool string) bool {
	fits := func(list []string) bool {
		return slices.ContainsFunc(list, func(text string) bool {
			g, err := gate.ParseGlob(text)
			return err == nil && g.Match(tool)
		})
	}
	e := c.Clients[client]
	return fits(c.Expose) && !fits(c.Hide) && (len(e.Expose) == 0 || fits(e.Expose)) && !fits(e.Hide)
}

// FuzzGuards: whatever was accepted and whatever is written then, what is in force
// is no wider than what was accepted, and shows no tool that either hides.
func FuzzGuards(f *testing.F) {
	for _, s := range [][2]string{
		{"", "expose: [a]"}, {"expose: [a*]", "expose: ['a?', ab]"}, {"hide: [x]", "hide: ['[x]']"},
		{"clients: {a: {expose: [b]}}", "clients: {a: {expose: [c]}}"}, {"clients: {a: {expose: [x]}}", "clients: {a: {hide: ['*']}}"},
		{"hosts: {a: {command: b}}", "hosts: {a: {command: b, prefix: x}}"}, {"hosts: {a: {attached: true, prefix: ''}}", ""},
		{"allowed_hosts: [a]", "allowed_hosts: [b]"}, {"computer: {display: 1, backend: virtual, enabled: false}", "clients: {a: {display: 3}}"},
		{"model_gateway: {model_hosts: [a.b], providers: {x: 'https://y'}}", "hand_back: {quiet: 0s, panic_chord: '', allow_unwatched: true}"},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
		f.Add([]byte(s[1]), []byte(s[0]))
	}
	f.Fuzz(func(t *testing.T, before, after []byte) {
		was, _, err := Parse(before, "f")
		if err != nil {
			return // no configuration, so nothing to hold
		}
		now, _, err := Parse(after, "f")
		if err != nil {
			return // no configuration, so nothing to hold
		}
		accepted := Settings{was, true}.Keep()
		held, err := Settings{now, true}.Hold(accepted)
		if err != nil {
			t.Fatal(err)
		}
		_, items, err := (Settings{held.Config, true}).Over(accepted)
		items = slices.DeleteFunc(items, func(it gate.Item) bool { // those that wait are not in force
			name, is := strings.CutPrefix(it.Key, "hosts.*.command:")
			name, _, _ = strings.Cut(name, ":")
			return is && held.Waiting[name]
		})
		if err != nil || len(items) != 0 {
			t.Errorf("in force is wider: %v, %v", texts(items), err)
		}
		for _, client := range names(was.Clients, now.Clients) {
			for _, tool := range []string{"computer", "a", "ab", "b", "x", "x_y", "abc"} {
				if sees(&held.Config, client, tool) && !(sees(&was, client, tool) && sees(&now, client, tool)) {
					t.Errorf("client %s sees %s", client, tool)
				}
			}
		}
		if _, err := json.Marshal(held.Config); err != nil {
			t.Error(fmt.Errorf("in force is no configuration: %w", err))
		}
	})
}
