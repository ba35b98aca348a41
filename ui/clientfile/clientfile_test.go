package clientfile

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// entry is as a client's is: some fields, and one with fields in it.
var entry = Entry{
	Path: []string{"servers", "ours"},
	Fields: Fields{
		{Name: "command", Value: "/bin/x y"}, {Name: "args", Value: []string{"a", "b\"c"}}, {Name: "timeout", Value: 180, Keep: true},
		{Name: "env", Value: Fields{{Name: "TOKEN", Value: "s3"}}}, {Name: "old", Value: Absent{}},
	},
	Not: []string{"url"},
}

// TestMerge: what a file says besides stays as it is, to the byte.
func TestMerge(t *testing.T) {
	for _, tt := range []struct {
		name      string
		format    Format
		old, want string
	}{
		{"json, none", JSON, "", `{
  "servers": {
    "ours": {
      "command": "/bin/x y",
      "args": [
        "a",
        "b\"c"
      ],
      "timeout": 180,
      "env": {
        "TOKEN": "s3"
      }
    }
  }
}
`},
		{"json, others, comments, tabs, no newline at the end", JSON, `// mine
{
	"b": 1.50, // half
	/* the servers */
	"servers": {
		"a": {"x": [1, 2]} // the last
	},
	"z": null
}`, `// mine
{
	"b": 1.50, // half
	/* the servers */
	"servers": {
		"a": {"x": [1, 2]}, // the last
		"ours": {
			"command": "/bin/x y",
			"args": [
				"a",
				"b\"c"
			],
			"timeout": 180,
			"env": {
				"TOKEN": "s3"
			}
		}
	},
	"z": null
}`},
		{"json, an older entry, with fields that it does not know", JSON, `{"servers":{
    "ours": {"url": "http://x", "disabled": true, "old": 1, "timeout": 5, "env": {"TOKEN": "s1", "LANG": "C"}},
    "other": {}, },
}
`, `{"servers":{
    "ours": {
      "command": "/bin/x y",
      "args": [
        "a",
        "b\"c"
      ],
      "timeout": 5,
      "env": {
        "TOKEN": "s3",
        "LANG": "C"
      },
      "disabled": true
    },
    "other": {}, },
}
`},
		{"json, trailing commas", JSON, "{\n  \"x\": 1,\n}\n", "{\n  \"x\": 1,\n  \"servers\": {\n    \"ours\": {\n      \"command\": \"/bin/x y\",\n      \"args\": [\n        \"a\",\n        \"b\\\"c\"\n      ],\n      \"timeout\": 180,\n      \"env\": {\n        \"TOKEN\": \"s3\"\n      }\n    }\n  },\n}\n"},
		{"json, an empty object", JSON, "{}", "{\n  \"servers\": {\n    \"ours\": {\n      \"command\": \"/bin/x y\",\n      \"args\": [\n        \"a\",\n        \"b\\\"c\"\n      ],\n      \"timeout\": 180,\n      \"env\": {\n        \"TOKEN\": \"s3\"\n      }\n    }\n  }\n}"},
		{"json, null", JSON, "{\"servers\": null}\n", "{\"servers\": {\n  \"ours\": {\n    \"command\": \"/bin/x y\",\n    \"args\": [\n      \"a\",\n      \"b\\\"c\"\n    ],\n    \"timeout\": 180,\n    \"env\": {\n      \"TOKEN\": \"s3\"\n    }\n  }\n}}\n"},
		{"toml, none", TOML, "", `[servers.ours]
command = "/bin/x y"
args = ["a", "b\"c"]
timeout = 180

[servers.ours.env]
TOKEN = "s3"
`},
		{"toml, others", TOML, "# mine\nmodel = 'x'\n[servers.a]\ncommand = \"y\" # why\n\n[later]\nn = 1.50\n\n\n", `# mine
model = 'x'
[servers.a]
command = "y" # why

[later]
n = 1.50

[servers.ours]
command = "/bin/x y"
args = ["a", "b\"c"]
timeout = 180

[servers.ours.env]
TOKEN = "s3"
`},
		{"toml, an older entry in the middle", TOML, `[servers.ours]
url = "http://x"
args = [
  "old",
]
extra = { a = 1, b = ["x"] }
timeout = 5

[servers."ours".env]
LANG = "C"
TOKEN = "s1"

# about the next
[servers.z]
command = "z"
`, `[servers.ours]
command = "/bin/x y"
args = ["a", "b\"c"]
timeout = 5
extra = { a = 1, b = ["x"] }

[servers.ours.env]
TOKEN = "s3"
LANG = "C"

# about the next
[servers.z]
command = "z"
`},
		{"yaml, none", YAML, "", `servers:
  ours:
    command: "/bin/x y"
    args:
      - "a"
      - "b\"c"
    timeout: 180
    env:
      TOKEN: "s3"
`},
		{"yaml, others", YAML, `# mine
servers:
    a:   # the first
        x: [1, 2]

# later things
later: 'yes'
`, `# mine
servers:
    a:   # the first
        x: [1, 2]
    ours:
      command: "/bin/x y"
      args:
        - "a"
        - "b\"c"
      timeout: 180
      env:
        TOKEN: "s3"

# later things
later: 'yes'
`},
		{"yaml, an older entry, the last of the file", YAML, "servers:\n  b: {}\n  ours:\n    url: x\n    bundled: null\n    timeout: 5\n    env: {LANG: C}\n# the end", `servers:
  b: {}
  ours:
    command: "/bin/x y"
    args:
      - "a"
      - "b\"c"
    timeout: 5
    env:
      TOKEN: "s3"
      LANG: "C"
    bundled: null
# the end`},
		{"yaml, nothing in it", YAML, "a: 1\nservers: {} # none yet\nb: 2\n", "a: 1\nservers:  # none yet\n  ours:\n    command: \"/bin/x y\"\n    args:\n      - \"a\"\n      - \"b\\\"c\"\n    timeout: 180\n    env:\n      TOKEN: \"s3\"\nb: 2\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Merge(tt.format, []byte(tt.old), entry)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			again, err := Merge(tt.format, got, entry)
			if err != nil || string(again) != string(got) {
				t.Errorf("merged again, %v:\n%s", err, again)
			}
			// As programs on Windows, or that came from there, write it.
			crlf := "\ufeff" + strings.ReplaceAll(tt.old, "\n", "\r\n")
			got, err = Merge(tt.format, []byte(crlf), entry)
			if want := "\ufeff" + strings.ReplaceAll(tt.want, "\n", "\r\n"); strings.Contains(tt.old, "\n") && (err != nil || string(got) != want) {
				t.Errorf("with other line ends, %v:\n%q\nwant\n%q", err, got, want)
			}
		})
	}
}

// TestMergeRefused: what cannot be read, or changed without a doubt, is refused,
// with the line where there is one.
func TestMergeRefused(t *testing.T) {
	for _, tt := range []struct {
		format Format
		old    string
		line   int
		want   string
	}{
		{JSON, "{\n  \"a\": 1\n  \"b\": 2\n}", 3, "a comma or } is missing"},
		{JSON, "{\n\"a\": tru\n}", 2, `"tru" is no value`},
		{JSON, "{\"a\": 1, \"a\": 2}", 1, "is there twice"},
		{JSON, "[]", 1, "no object"},
		{JSON, "{}\n{}", 2, "something follows"},
		{JSON, "{\n/* ", 2, "a comment has no end"},
		{JSON, "{\n\"a", 2, "a string has no end"},
		{JSON, `{"servers": []}`, 0, "servers is a list, where named entries must stand: make it {}"},
		{JSON, `{"servers": {"ours": 1}}`, 0, "servers.ours is text, a number or the like, where named entries must stand"},
		{JSON, strings.Repeat("[", 1000), 1, "too deep"},
		{JSON, `{"a":` + strings.Repeat("[", 1000), 1, "too deep"},
		{TOML, "a = 1\nb =\n", 2, "expected value"},
		{TOML, "[servers]\nours = { command = \"x\" }\n", 0, "not a table of its own"},
		{TOML, "servers = { a = 1 }\n", 0, "not written as tables"},
		{TOML, "servers.a.x = 1\n", 0, "not written as tables"},
		{TOML, "[[servers.ours]]\nx = 1\n", 0, "servers.ours is a list"},
		{YAML, "a: [1\nb: 2\n", 2, "must be specified"},
		{YAML, "a: b: c\n", 1, ""},
		{YAML, "servers: {a: {x: 1}}\n", 1, "in one line"},
		{YAML, "servers: [1]\n", 0, "servers is a list"},
		{YAML, "a: 1\n---\nb: 2\n", 0, "more than one document"},
		{YAML, "a:\n" + strings.Repeat("[", 1000), 2, "too deep"},
	} {
		got, err := Merge(tt.format, []byte(tt.old), entry)
		var e *Error
		if !errors.As(err, &e) || e.Line != tt.line || !strings.Contains(e.Text, tt.want) {
			t.Errorf("%.40q: %v, want line %d: %s\n%s", tt.old, err, tt.line, tt.want, got)
		}
	}
}

// FuzzMerge: whatever a file holds, it is refused, or keeps all of it and reads
// back with the entry.
func FuzzMerge(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"servers":{"a":1,/**/},}`, "// x\n{\"servers\": null}", "[servers.ours]\nx=1\n[servers.z]\n", "a='''\n[servers.ours]\n'''\n",
		"servers:\n  a: 1\n  ours:\n    x: y\nz: |\n  servers:\n", "servers: {}\n", "- a\n", "? a\n: b\n", "servers: &a\n  b: *a\n", "%YAML 1.2\n---\nservers:\n",
	} {
		for format := range uint8(3) {
			f.Add(format, s)
		}
	}
	f.Fuzz(func(t *testing.T, format uint8, old string) {
		if format > 2 || len(old) > 1<<12 {
			return
		}
		got, err := Merge(Format(format), []byte(old), entry)
		if err != nil {
			return
		}
		read := []func(string) (map[string]any, error){readJSON, readTOML, readYAML}[format]
		before, err := read(strings.TrimPrefix(old, "\ufeff"))
		if err != nil {
			t.Fatalf("%q was merged and cannot be read: %v", old, err)
		}
		after, err := read(strings.TrimPrefix(string(got), "\ufeff"))
		if err != nil {
			t.Fatalf("%q became %q, which cannot be read: %v", old, got, err)
		}
		if !reflect.DeepEqual(without(before, entry.Path), without(after, entry.Path)) {
			t.Fatalf("%q became %q, which says something else", old, got)
		}
		if now, err := lookup(after, entry.Path); err != nil || now["command"] != "/bin/x y" {
			t.Fatalf("%q became %q, without the entry: %v", old, got, err)
		}
	})
}
