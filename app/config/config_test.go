package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/host"
)

// paths lists the option key of every field by reflection.
func paths(t reflect.Type, p place) []string {
	var out []string
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			name := fieldName(f)
			if name == "" {
				panic("field without a yaml name: " + t.String() + "." + f.Name)
			}
			q := p.field(name)
			out = append(append(out, q.key), paths(f.Type, q)...)
		}
	case reflect.Map, reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			q := p.entry("x")
			out = append(append(out, q.key), paths(t.Elem(), q)...)
		}
	}
	return out
}

func TestOptionsCoverEveryField(t *testing.T) {
	fields := paths(reflect.TypeFor[Config](), place{})
	for _, f := range fields {
		if o, ok := options[f]; !ok || (o.doc == "" && !strings.HasSuffix(f, ".*")) {
			t.Errorf("field %s has no option with a doc", f)
		}
	}
	for o := range options {
		if !slices.Contains(fields, o) {
			t.Errorf("option %s belongs to no field", o)
		}
	}
}

func TestExampleIsTheDefaults(t *testing.T) {
	example := Example()
	got, lines, err := Parse([]byte(example), "example")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, Default()) {
		t.Errorf("the example parses to\n%+v\nwant the defaults\n%+v", got, Default())
	}
	for _, f := range paths(reflect.TypeFor[Config](), place{}) {
		if strings.Contains(f, "*") {
			continue
		}
		_, null := lines[f]
		if !null && f != "computer.allowed_actions" {
			t.Errorf("the example does not set %s", f)
		}
	}
	// The options that stand in comments are real ones too.
	uncommented := regexp.MustCompile(`(?m)^(clients|rules|hosts): (\{\}|\[\])$`).ReplaceAllString(example, "$1:")
	uncommented = regexp.MustCompile(`(?m)^#   `).ReplaceAllString(uncommented, "  ")
	got, _, err = Parse([]byte(uncommented), "example")
	if err != nil {
		t.Fatal(err)
	}
	display := 0
	client := Client{AllowedActions: []computer.ActionType{"screenshot", "wait"}, Display: &display, Expose: []string{"computer"}, Hide: []string{"bash"}}
	rule := gate.Rule{Tool: "computer", Client: "editor", Host: "drawbridge", When: map[string]string{"/actions/*/type": "screenshot"}, Then: "allow"}
	prefix := "notes-"
	notes := host.Config{Command: "notes-server", Args: []string{"--stdio"}, Env: map[string]string{"NOTES_DIR": "/srv/notes"}, Cwd: "/srv", Prefix: &prefix, Timeout: 10 * time.Minute, TrustHints: true}
	if !reflect.DeepEqual(got.Hosts, map[string]host.Config{"name": notes}) {
		t.Errorf("uncommented, the example holds hosts %+v", got.Hosts)
	}
	if !reflect.DeepEqual(got.Clients, map[string]Client{"name": client}) || !reflect.DeepEqual(got.Rules, []gate.Rule{rule}) {
		t.Errorf("uncommented, the example holds clients %+v and rules %+v", got.Clients, got.Rules)
	}
}

func TestDefaultsPassTheirOwnChecks(t *testing.T) {
	var walk func(p place, v reflect.Value)
	walk = func(p place, v reflect.Value) {
		if v.Kind() == reflect.Slice && v.IsNil() {
			return
		}
		if check := p.option().check; check != nil {
			if msg := check(v); msg != "" {
				t.Errorf("default of %s must be %s", p, msg)
			}
		}
		if v.Kind() == reflect.Struct {
			for i := range v.NumField() {
				walk(p.field(fieldName(v.Type().Field(i))), v.Field(i))
			}
		}
	}
	walk(place{}, reflect.ValueOf(Default()))
}

func TestParse(t *testing.T) {
	const file = `# mine
listen: "[::1]:0"
computer:
  backend: virtual
  allowed_actions: [screenshot, move, scroll, wait]
  picture:
    max_edge: 1000
clients:
  my.display:
    allowed_actions:
      - screenshot
    display: 1
  "42":
rules:
  - tool: bash
    when: {"/command": "git *"}
    then: ask
approvals: {deadline: 90s}
log:
`
	got, lines, err := Parse([]byte(file), "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Listen = "[::1]:0"
	want.Computer.Backend = "virtual"
	want.Computer.AllowedActions = []computer.ActionType{"screenshot", "move", "scroll", "wait"}
	want.Computer.Picture.MaxEdge = 1000
	one := 1
	want.Clients = map[string]Client{
		"my.display": {AllowedActions: []computer.ActionType{"screenshot"}, Display: &one},
		"42":         {},
	}
	want.Rules = []gate.Rule{{Tool: "bash", When: map[string]string{"/command": "git *"}, Then: "ask"}}
	want.Approvals.Deadline = 90 * time.Second
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	for path, line := range map[string]int{
		"listen": 2, "computer.backend": 4, "computer.picture.max_edge": 7,
		"clients.my.display.display": 12, "rules.0.then": 17, "approvals.deadline": 18,
	} {
		if lines[path] != line {
			t.Errorf("%s is said to be set in line %d, want %d", path, lines[path], line)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("[", 200)
	for name, tc := range map[string]struct {
		in   string
		want []string // one for each error, in any order
	}{
		"unknown camel case":     {"computer:\n  maxActionsPerCall: 5\n", []string{`c.yaml:2: unknown field "maxActionsPerCall" in computer; did you mean max_actions_per_call?`}},
		"unknown typo":           {"lissen: x\n", []string{`c.yaml:1: unknown field "lissen" at the top level; did you mean listen?`}},
		"unknown elsewhere":      {"wait_ms: 5\n", []string{`c.yaml:1: unknown field "wait_ms" at the top level; did you mean computer.wait_ms?`}},
		"unknown in a client":    {"clients:\n  a:\n    alowed_actions: [wait]\n", []string{`c.yaml:3: unknown field "alowed_actions" in clients.a; did you mean allowed_actions?`}},
		"unknown without a hint": {"zzzzzz: 1\n", []string{`c.yaml:1: unknown field "zzzzzz" at the top level; known are listen,`}},
		"helper cache":           {"computer:\n  helperCacheDir: /tmp\n", []string{`compiles no helper`}},
		"helper cache, ours":     {"computer:\n  helper_cache_dir: /tmp\n", []string{`compiles no helper`}},
		"text for a number":      {"computer:\n  wait_ms: long\n", []string{`c.yaml:2: computer.wait_ms must be a whole number, not the text "long"`}},
		"quoted number":          {"computer:\n  wait_ms: \"5\"\n", []string{`must be a whole number, not the text "5"`}},
		"fraction":               {"computer:\n  wait_ms: 2.5\n", []string{`must be a whole number, not the number 2.5`}},
		"infinity":               {"computer:\n  wait_ms: .inf\n", []string{`must be a whole number, not no finite number`}},
		"huge number":            {"computer:\n  wait_ms: 18446744073709551615\n", []string{`that a computer can count`}},
		"number for text":        {"computer:\n  backend: 5\n", []string{`computer.backend must be text; put it in quotes if it is meant, not the number 5`}},
		"word for a truth":       {"computer:\n  enabled: maybe\n", []string{`computer.enabled must be true or false, not the text "maybe"`}},
		"list for a section":     {"computer: [1]\n", []string{`c.yaml:1: computer must be a section (name: value lines), not a list`}},
		"section for a list":     {"hide: {a: b}\n", []string{`hide must be a list`}},
		"text for a list":        {"hide: bash\n", []string{`hide must be a list, such as [a, b], not the text "bash"`}},
		"scalar document":        {"hello\n", []string{`c.yaml:1: the configuration must be a section`}},
		"null scalar":            {"listen:\n", []string{`listen must be text, not nothing`}},
		"duration as number":     {"approvals: {deadline: 120}\n", []string{`approvals.deadline must be a duration with its unit, such as 10s or 2m, not the number 120`}},
		"duration as words":      {"approvals: {deadline: two minutes}\n", []string{`must be a duration with its unit`}},
		"duration out of range":  {"approvals: {deadline: 25h}\n", []string{`approvals.deadline must be between 1s and 1h, not 25h`}},
		"out of range":           {"\ncomputer:\n  max_actions_per_call: 0\n", []string{`c.yaml:3: computer.max_actions_per_call must be between 1 and 1000, not 0`}},
		"negative display":       {"clients:\n  a:\n    display: -1\n", []string{`c.yaml:3: clients.a.display must be between 0 and 63, not -1`}},
		"not one of":             {"computer:\n  backend: virtuel\n", []string{`computer.backend must be one of auto, native, applescript, virtual, simulated, not "virtuel"; did you mean virtual?`}},
		"empty allow-list":       {"computer:\n  allowed_actions: []\n", []string{`c.yaml:2: computer.allowed_actions must be null (all) or name at least one of screenshot,`}},
		"empty client list":      {"clients:\n  a:\n    allowed_actions: []\n", []string{`c.yaml:3: clients.a.allowed_actions must be null (all)`}},
		"unknown action":         {"computer:\n  allowed_actions:\n  - screenshot\n  - clik\n", []string{`c.yaml:4: computer.allowed_actions.1 must be one of screenshot, click,`, `did you mean click?`}},
		"duplicate":              {"listen: 127.0.0.1:1\nhide: []\nlisten: 127.0.0.1:2\n", []string{`c.yaml:3: listen is written twice; the first is in line 1`}},
		"duplicate in map":       {"clients:\n  a:\n  a:\n", []string{`c.yaml:3: clients.a is written twice`}},
		"not loopback":           {"listen: 0.0.0.0:7317\n", []string{`"0.0.0.0" is not loopback`, `ssh -L`}},
		"no port":                {"listen: 127.0.0.1\n", []string{`listen must be a loopback address and a port`}},
		"bad port":               {"listen: 127.0.0.1:99999\n", []string{`"99999" is no port`}},
		"bad host":               {"allowed_hosts: [\"http://x\"]\n", []string{`allowed_hosts.0 must be host names without scheme`}},
		"wildcard origin":        {"allowed_origins: [\"*\"]\n", []string{`allowed_origins.0 must be origins`}},
		"chord of no key":        {"hand_back: {panic_chord: ctrl+fnord}\n", []string{`c.yaml:1: hand_back.panic_chord must be keys joined by plus signs`, `"fnord"`}},
		"chord without a mod":    {"hand_back: {panic_chord: escape}\n", []string{`hand_back.panic_chord must be a key with modifiers`}},
		"chord of mods":          {"hand_back: {panic_chord: ctrl+alt}\n", []string{`one key besides is needed`}},
		"quiet forever":          {"hand_back: {quiet: 2h}\n", []string{`hand_back.quiet must be between`}},
		"bad glob":               {"hide:\n- ok\n- \"[a\"\n", []string{`c.yaml:3: hide.1 must be a glob`}},
		"bad client name":        {"clients:\n  a b: {}\n", []string{`c.yaml:2: clients: each name must be a client's name`}},
		"another mode":           {"host_llm: off\n", []string{`host_llm must be one of allow, deny, not "off"`}},
		"gateway for all":        {"model_gateway: {listen: \"0.0.0.0:0\"}\n", []string{`model_gateway.listen must be a loopback address`}},
		"provider's name":        {"model_gateway:\n  providers: {a/b: https://x.example}\n", []string{`c.yaml:2: model_gateway.providers: each name must be 1 to 64 letters`}},
		"header as a text":       {"hosts:\n  a: {url: 'https://h', headers: {Authorization: sk-secret}}\n", []string{`hosts.a.headers.Authorization must be a section (name: value lines), not a plain value`}},
		"env as a text":          {"hosts:\n  a: {command: x, env: sk-secret}\n", []string{`hosts.a.env must be a section (name: value lines), not a plain value`}},
		"provider with a key":    {"model_gateway:\n  providers: {x: 'https://u:sk-secret@h/v1?key=sk-secret'}\n", []string{`with neither credentials nor query`}},
		"provider's address":     {"model_gateway:\n  providers: {x: api.example}\n", []string{`c.yaml:2: model_gateway.providers.x must be base addresses such as`}},
		"model host":             {"model_gateway:\n  model_hosts: [\"https://x.example\"]\n", []string{`model_gateway.model_hosts.0 must be host names`}},
		"bad pointer":            {"rules:\n- {tool: x, then: deny, when: {\"a\": \"b\"}}\n", []string{`rules.0.when: each name must be a JSON pointer`}},
		"bad when glob":          {"rules:\n- {tool: x, then: deny, when: {\"/a\": \"[\"}}\n", []string{`rules.0.when./a must be a glob`}},
		"rule that never fits":   {"rules:\n- {tool: x, then: deny}\n- {tool: \"{a,b}\", then: deny}\n", []string{`c.yaml:3: rules.1: tool: pattern "{a,b}" fits no tool: braces stand for themselves`}},
		"client that is none":    {"rules:\n- {tool: x, client: \"a b\", then: deny}\n", []string{`c.yaml:2: rules.0: client: pattern "a b" fits no client`}},
		"pointer to nowhere":     {"rules:\n- {tool: computer, then: deny, when: {/action/*/type: type}}\n", []string{`c.yaml:2: rules.0: when "/action/*/type" fits no call of computer`, `did you mean "actions"?`}},
		"hide of nothing":        {"hide:\n- bash\n- \"bash \"\n", []string{`c.yaml:3: hide.1: pattern "bash " fits no tool`}},
		"expose of nothing":      {"clients:\n  a:\n    expose: [\"{a}\"]\n", []string{`c.yaml:3: clients.a.expose.0: pattern "{a}" fits no tool`}},
		"rule without then":      {"rules:\n- tool: x\n", []string{`c.yaml:2: rules.0: then is "": it must be allow, ask or deny`}},
		"rule without a tool":    {"rules:\n- then: allow\n", []string{`rules.0: a rule needs a tool`}},
		"bad then":               {"rules:\n- {tool: x, then: permit}\n", []string{`rules.0.then must be one of allow, ask, deny`}},
		"settle order":           {"computer:\n  settle_ms: 3000\n", []string{`c.yaml:2: computer.settle_max_ms (2000) must not be under computer.settle_ms (3000)`}},
		"connections order":      {"limits:\n  connections: 2\n", []string{`c.yaml:2: limits.connections_per_client (64) must not be over limits.connections (2)`}},
		"anchor":                 {"hide: &a [x]\nexpose: *a\n", []string{`c.yaml:1: hide must be a list, such as [a, b], not an anchor or alias`, `c.yaml:2:`}},
		"merge":                  {"computer:\n  <<: {wait_ms: 5}\n", []string{`names are plain text here`}},
		"tag":                    {"listen: !!str 127.0.0.1:1\n", []string{`not a tag`}},
		"two documents":          {"hide: []\n---\nhide: []\n", []string{`c.yaml:3: a second document starts here`}},
		"broken":                 {"computer: {\n", []string{`c.yaml:1: not valid YAML`}},
		"tabs":                   {"computer:\n\twait_ms: 5\n", []string{`c.yaml:2: not valid YAML`}},
		"deep":                   {"hide: " + deep, []string{`c.yaml:1: nested deeper`}},
		"large":                  {"# " + strings.Repeat("x", maxFile), []string{`c.yaml: the file has`}},
		"several":                {"lissen: x\ncomputer:\n  wait_ms: x\n  display: 99\n", []string{`c.yaml:1: unknown`, `c.yaml:3: computer.wait_ms`, `c.yaml:4: computer.display must be between`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse([]byte(tc.in), "c.yaml")
			if err == nil {
				t.Fatal("accepted")
			}
			if strings.Contains(err.Error(), "sk-secret") { // errors go into logs
				t.Errorf("tells a secret: %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error\n%s\ndoes not hold\n%s", err, want)
				}
			}
			var one *Error
			if !errors.As(err, &one) {
				t.Errorf("no *Error in %T", err)
			}
		})
	}
}

func TestParseEmpty(t *testing.T) {
	for _, in := range []string{"", "\ufeff", "\ufeffhide: []\n", "\n", "# nothing\n", "---\n", "null\n", "{}\n"} {
		got, _, err := Parse([]byte(in), "c.yaml")
		if err != nil || !reflect.DeepEqual(got, Default()) {
			t.Errorf("%q: %v, want the defaults", in, err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	good := write("good.yaml", "computer:\n  wait_ms: 5\n", 0o644)
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.yaml"):        "no such file",
		link:                                   "is a symbolic link",
		dir:                                    "is a directory",
		write("group.yaml", "hide: []", 0o620): "can be written by others (mode 0620); run chmod go-w",
		write("world.yaml", "hide: []", 0o602): "can be written by others",
		write("bad.yaml", "hide: 1\n", 0o600):  "bad.yaml:1: hide must be a list",
		os.DevNull:                             "is no regular file",
	} {
		if _, err := Load(path, true); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want one that names the file and says %q", path, err, want)
		}
	}
	// Where anybody could put another file in its place.
	for _, c := range []struct {
		mode fs.FileMode
		ok   bool
	}{{0o777, false}, {0o757, false}, {0o777 | fs.ModeSticky, true}, {0o755, true}} {
		open := filepath.Join(t.TempDir(), "open")
		inner := filepath.Join(open, "inner")
		if err := errors.Join(os.MkdirAll(inner, 0o755), os.Chmod(open, c.mode)); err != nil {
			t.Fatal(err)
		}
		for _, where := range []string{open, inner} {
			p := filepath.Join(where, "c.yaml")
			if err := os.WriteFile(p, []byte("hide: []"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(p, true)
			if c.ok != (err == nil) || err != nil && !strings.Contains(err.Error(), open+", which can be written by everybody") {
				t.Errorf("%s below a directory of mode %v: %v", p, c.mode, err)
			}
		}
	}
	if os.Geteuid() == 0 {
		foreign := write("foreign.yaml", "hide: []", 0o600)
		if err := os.Chown(foreign, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(foreign, true); err == nil || !strings.Contains(err.Error(), "belongs to another user (uid 12345)") {
			t.Errorf("foreign owner: %v", err)
		}
	}

	l, err := Load(filepath.Join(dir, "none.yaml"), false)
	if err != nil || l.Found || !reflect.DeepEqual(l.Config, Default()) {
		t.Errorf("a default file that is missing: %v", err)
	}
	l, err = Load(good, true)
	if err != nil || !l.Found || l.Computer.WaitMS != 5 {
		t.Fatalf("good file: %v", err)
	}
	if err := l.Set("listen", "127.0.0.1:1", "flag --listen"); err != nil {
		t.Fatal(err)
	}
	if err := l.Set("computer.backend", "nonsense", "flag --backend"); err == nil || !strings.Contains(err.Error(), "flag --backend: must be one of auto") {
		t.Errorf("bad flag: %v", err)
	}
	from := map[string]string{}
	for _, v := range l.Values() {
		from[v.Name] = v.From
	}
	if from["computer.wait_ms"] != good+":2" || from["listen"] != "flag --listen" || from["hide"] != "default" {
		t.Errorf("values came from %v", from)
	}
}

func TestShowReadsBack(t *testing.T) {
	const file = "hide: [\"a\\\\ b\", yes-man, \"true\", \"ü\\\\\\n\"]\ncomputer:\n  allowed_actions: [wait]\n" +
		"clients:\n  my.wait_ms: {display: 2, expose: [x]}\n  b:\n" +
		"rules:\n- {tool: t, then: deny, when: {\"/a/*\": \"x*\", \"/b\": \"\"}}\n- {tool: \"*\", host: h, then: allow}\n"
	dir := t.TempDir()
	p := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(p, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(p, true)
	if err != nil {
		t.Fatal(err)
	}
	shown := l.Show()
	again, _, err := Parse([]byte(shown), "shown")
	if err != nil {
		t.Fatalf("%v in\n%s", err, shown)
	}
	// An absent list of a client and an empty one mean the same, so compare what is written.
	if a, b := (&Loaded{Config: again}).Show(), (&Loaded{Config: l.Config}).Show(); a != b {
		t.Errorf("shown, then parsed:\n%s\nwant\n%s", a, b)
	}
	for _, want := range []string{
		"listen: 127.0.0.1:7317  # default\n",
		"  allowed_actions: [wait]  # " + p + ":3\n",
		"    display: 2  # " + p + ":5\n",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("shown\n%s\ndoes not hold\n%s", shown, want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := slices.Sorted(maps.Keys(options))
	for in, want := range map[string]string{
		"maxActionsPerCall": "computer.max_actions_per_call",
		"MAX-ACTIONS":       "",
		"invertScrol":       "computer.invert_scroll",
		"heigth":            "virtual.height",
		"":                  "",
		"qqqqqqqq":          "",
	} {
		if got := nearest(in, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(Example()))
	for _, s := range []string{"", "a: b", "computer: {wait_ms: 5}", "clients: {a.b: {display: 0}}", "rules: [{tool: x, then: deny, when: {/a: b}}]",
		"? a\n: b", "- - - -", "a: |\n  b\n", "a: !!int x", "&a a: *a", "<<: *x", "\xff\xfe", "a: \"\\u0000\"", "%YAML 1.1\n---\n", "listen: [", "{", "'", "\"", "---\n---\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := Parse(data, "f")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Fatalf("error does not begin with the file: %v", err)
			}
			return
		}
		shown := (&Loaded{Config: c}).Show()
		again, _, err := Parse([]byte(shown), "shown")
		if err != nil {
			t.Fatalf("%v in\n%s", err, shown)
		}
		if s := (&Loaded{Config: again}).Show(); s != shown {
			t.Fatalf("shown twice:\n%s\n%s", shown, s)
		}
	})
}
