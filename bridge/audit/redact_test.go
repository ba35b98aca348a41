package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// long is what a string over the limit becomes, worked out the slow way.
func long(s string) string {
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf(`"<len:%d,sha256:%s>"`, utf8.RuneCountInString(s), hex.EncodeToString(sum[:])[:8])
}

func TestRedact(t *testing.T) {
	a120, a121 := strings.Repeat("a", 120), strings.Repeat("a", 121)
	e121 := strings.Repeat("é", 121)
	deep := strings.Repeat("[", 32) + "1" + strings.Repeat("]", 32)
	tests := []struct{ name, tool, in, want string }{
		{"plain", "read", `{"path":"/etc/hosts","n":3}`, `{"path":"/etc/hosts","n":3}`},
		{"spaces go", "read", " { \"a\" : [ 1 ,\n\t2 ] } \r\n", `{"a":[1,2]}`},
		{"numbers as sent", "x", `[1e300,-0.0,12345678901234567890,1.10]`, `[1e300,-0.0,12345678901234567890,1.10]`},
		{"words", "x", `[true,false,null]`, `[true,false,null]`},
		{"empty containers", "x", `[{},[]]`, `[{},[]]`},
		{"120 stay", "x", `"` + a120 + `"`, `"` + a120 + `"`},
		{"121 go", "x", `"` + a121 + `"`, long(a121)},
		{"characters, not bytes", "x", `"` + strings.Repeat("é", 120) + `"`, `"` + strings.Repeat("é", 120) + `"`},
		{"121 of two bytes", "x", `"` + e121 + `"`, long(e121)},
		{"escapes are characters", "x", `"` + strings.Repeat(`\u00e9`, 121) + `"`, long(e121)},
		{"pairs are one character", "x", `"` + strings.Repeat(`\ud83d\ude00`, 120) + `"`, `"` + strings.Repeat(`\ud83d\ude00`, 120) + `"`},
		{"121 pairs", "x", `"` + strings.Repeat(`\ud83d\ude00`, 121) + `"`, long(strings.Repeat("😀", 121))},
		{"every escape", "x", `"` + a120 + `\"\\\/\b\f\n\r\t"`, long(a120 + "\"\\/\b\f\n\r\t")},
		{"long names", "x", `{"` + a121 + `":1}`, `{` + long(a121) + `:1}`},
		{"every depth", "edit", `{"a":{"b":[{"old":"` + a121 + `"}]}}`, `{"a":{"b":[{"old":` + long(a121) + `}]}}`},
		{"long numbers", "x", strings.Repeat("1", 121), long(strings.Repeat("1", 121))},
		{"depth 32 stays", "x", deep, deep},
		{"depth 33 goes", "x", "[" + deep + "]", strings.Repeat("[", 32) + `"<max-depth>"` + strings.Repeat("]", 32)},

		{"secrets", "x", `{"token":"t","API-Key":1,"Set-Cookie":["a"],"db_password":{"a":"b"},"max_tokens":5}`,
			`{"token":"<secret>","API-Key":"<secret>","Set-Cookie":"<secret>","db_password":"<secret>","max_tokens":5}`},
		{"secrets in a deep place", "x", `[{"headers":{"Authorization":"Bearer abc"}}]`, `[{"headers":{"Authorization":"<secret>"}}]`},
		{"escaped names", "x", `{"pass\u0077ord":"p"}`, `{"pass\u0077ord":"<secret>"}`},
		{"separators", "x", `{"private key":1,"private.key":2,"PrivateKey":3,"passwd":4,"clientSecret":5,"x-api-key":6}`,
			`{"private key":"<secret>","private.key":"<secret>","PrivateKey":"<secret>","passwd":"<secret>","clientSecret":"<secret>","x-api-key":"<secret>"}`},
		{"no secrets", "x", `{"tokenizer":"a","token_count":1,"key":"k","author":"b"}`, `{"tokenizer":"a","token_count":1,"key":"k","author":"b"}`},

		{"typed", "computer", `{"actions":[{"type":"type","text":"hunter2"}]}`, `{"actions":[{"type":"type","text":"<len:7>"}]}`},
		{"typed before type", "computer", `{"actions":[{"text":"héé","type":"type"}]}`, `{"actions":[{"text":"<len:3>","type":"type"}]}`},
		{"typed by a host", "omp_computer", `{"text":"abc"}`, `{"text":"<len:3>"}`},
		{"typed, other case and shape", "computer", `{"TEXT":["ab",{"x":"c"}]}`, `{"TEXT":["<len:2>",{"x":"<len:1>"}]}`},
		{"typed and long", "computer", `{"text":"` + a121 + `"}`, `{"text":"<len:121>"}`},
		{"a number as text", "computer", `{"actions":[{"type":"type","text":1234}]}`, `{"actions":[{"type":"type","text":"<len:4>"}]}`},
		{"other members", "computer", `{"actions":[{"type":"type","text":"a","value":"hunter2","n":1,"more":[{"type":"hunter2"}]},"hunter2"],"why":"hunter2"}`,
			`{"actions":[{"type":"type","text":"<len:1>","value":"<len:7>","n":1,"more":[{"type":"<len:7>"}]},"<len:7>"],"why":"<len:7>"}`},
		{"words", "computer", `{"actions":[{"type":"double_click","button":"left","x":1},{"type":"hunter2"},{"type":["a"],"button":{"a":"b"}}]}`,
			`{"actions":[{"type":"double_click","button":"left","x":1},{"type":"<len:7>"},{"type":["<len:1>"],"button":{"a":"<len:1>"}}]}`},
		{"picture and expectation", "computer", `{"picture":"pg28vjjiu","actions":[{"type":"click","expect":{"app":"Mail","window":"Inbox 1","x":"y"}}]}`,
			`{"picture":"pg28vjjiu","actions":[{"type":"click","expect":{"app":"Mail","window":"Inbox 1","x":"<len:1>"}}]}`},
		{"keys that type", "computer", `{"actions":[{"type":"keypress","keys":["h"]},{"type":"keypress","keys":["SHIFT","U"]},{"type":"keypress","keys":["shift+n"]},{"type":"keypress","keys":["minus"]},{"type":"keypress","keys":["Digit2"]},{"type":"keypress","keys":["SPACE"]},{"type":"keypress","keys":["KP_7"]},{"type":"keypress","keys":["\u00e9"]}]}`,
			`{"actions":[{"type":"keypress","keys":["<len:1>"]},{"type":"keypress","keys":["SHIFT","<len:1>"]},{"type":"keypress","keys":["<len:1>"]},{"type":"keypress","keys":["<len:1>"]},{"type":"keypress","keys":["<len:1>"]},{"type":"keypress","keys":["<len:1>"]},{"type":"keypress","keys":["<len:1>"]},{"type":"keypress","keys":["<len:1>"]}]}`},
		{"keys that do not", "computer", `{"actions":[{"keys":["ENTER"]},{"keys":["Tab"]},{"keys":["SHIFT","TAB"]},{"keys":["Escape"]},{"keys":["ArrowLeft"]},{"keys":["F5"]},{"keys":[]}]}`,
			`{"actions":[{"keys":["ENTER"]},{"keys":["Tab"]},{"keys":["SHIFT","TAB"]},{"keys":["Escape"]},{"keys":["ArrowLeft"]},{"keys":["F5"]},{"keys":[]}]}`},
		{"commands", "computer", `{"actions":[{"keys":["CTRL","C"]},{"keys":["v","Meta"]},{"keys":["ctrl+shift+t"]},{"keys":["OPTION","e"]},{"keys":["SHIFT"],"type":"click"}]}`,
			`{"actions":[{"keys":["CTRL","C"]},{"keys":["v","Meta"]},{"keys":["ctrl+shift+t"]},{"keys":["OPTION","e"]},{"keys":["SHIFT"],"type":"click"}]}`},
		{"keys that are none", "computer", `{"actions":[{"keys":["hunter2"]},{"keys":["CTRL","hunter2"]},{"keys":"q"},{"keys":{"a":"b"}},{"keys":["a",["b"],1]}]}`,
			`{"actions":[{"keys":["<len:7>"]},{"keys":["CTRL","<len:7>"]},{"keys":"<len:1>"},{"keys":{"a":"<len:1>"}},{"keys":["<len:1>",["<len:1>"],1]}]}`},
		{"keys cut off", "computer", `{"actions":[{"keys":["h",`, `"<invalid-json,len:25>"`},
		{"keys of another tool", "piano", `{"keys":["h"]}`, `{"keys":["h"]}`},
		{"text elsewhere", "write", `{"text":"abc"}`, `{"text":"abc"}`},
		{"not a computer", "microcomputer", `{"text":"abc"}`, `{"text":"abc"}`},

		{"no UTF-8", "x", "\"a\xffb\"", "\"a\ufffdb\""},
		{"lone half", "x", `"\ud800"`, `"\ud800"`},
		{"cut", "x", `{"a":"hunter2`, `"<invalid-json,len:13>"`},
		{"two values", "x", `{} {}`, `"<invalid-json,len:5>"`},
		{"nothing", "x", ``, `"<invalid-json,len:0>"`},
		{"bad escape", "x", `"\x"`, `"<invalid-json,len:4>"`},
		{"newline in a string", "x", "\"a\nb\"", `"<invalid-json,len:5>"`},
		{"leading zero", "x", `01`, `"<invalid-json,len:2>"`},
		{"trailing comma", "x", `[1,]`, `"<invalid-json,len:4>"`},
		{"no colon", "x", `{"a" 1}`, `"<invalid-json,len:7>"`},
		{"secret cut off", "x", `{"token":["hunter2"`, `"<invalid-json,len:19>"`},
		{"a million brackets", "x", strings.Repeat("[", 1_000_000), `"<invalid-json,len:1000000>"`},
		{"too much", "x", `["` + strings.Repeat(`a","`, 40<<10) + `"]`, `"<oversize,len:163844>"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := string(Redact([]byte("kept"), tt.tool, []byte(tt.in)))
			if got, ok := strings.CutPrefix(got, "kept"); !ok || got != tt.want {
				t.Errorf("Redact(%.200q)\n got %.300s\nwant %.300s", tt.in, got, tt.want)
			}
		})
	}
}

// FuzzRedact holds the promises against any bytes: the output is JSON on one
// line, no string in it is long, no secret and no typed text is in it, and what
// is neither is unchanged.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,"x",{"token":"s"}],"text":"t"}`, `{"pass\u0077ord":{"a":[1]}}`, `[[[[]]]]`, "\"\xff\"", `1e5`, `{"a":`, `"\ud83d\ude00"`,
		`{"actions":[{"type":"keypress","keys":["a"]},{"keys":["ctrl","a"]}],"picture":"p"}`,
		`{"a":"` + strings.Repeat("b", 130) + `"}`, strings.Repeat("[", 40) + strings.Repeat("]", 40), `{"secret":[}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out := Redact(nil, "x", in)
		if !json.Valid(out) || !utf8.Valid(out) || bytes.ContainsAny(out, "\n\r") {
			t.Fatalf("not one line of JSON: %q", out)
		}
		var got any
		d := json.NewDecoder(bytes.NewReader(out))
		d.UseNumber()
		if err := d.Decode(&got); err != nil {
			t.Fatal(err)
		}
		check(t, got)
		computer := Redact(nil, "computer", in)
		var typed any
		d = json.NewDecoder(bytes.NewReader(computer))
		d.UseNumber()
		if err := d.Decode(&typed); err != nil || d.More() || !utf8.Valid(computer) || bytes.ContainsAny(computer, "\n\r") {
			t.Fatalf("not one line of JSON: %q", computer)
		}
		check(t, typed)
		checkTyped(t, typed)
		var want any
		if len(in) < 1000 && json.Valid(in) && utf8.Valid(in) {
			d := json.NewDecoder(bytes.NewReader(in))
			d.UseNumber()
			if d.Decode(&want) == nil && unchanged(want, 0) && !reflect.DeepEqual(got, want) {
				t.Fatalf("changed without need: %q to %q", in, out)
			}
		}
	})
}

// slowSecret is the rule for names, written another way.
func slowSecret(name string) bool {
	n := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return r
		}
		return -1
	}, name)
	n = strings.ToLower(n)
	for _, w := range []string{"password", "passwd", "passphrase", "secret", "apikey", "privatekey", "signingkey",
		"encryptionkey", "accesskey", "authorization", "cookie", "credential", "bearer"} {
		if strings.Contains(n, w) {
			return true
		}
	}
	return strings.HasSuffix(n, "token") || strings.HasSuffix(n, "pwd") || strings.HasSuffix(n, "jwt") || n == "tokens"
}

func check(t *testing.T, v any) {
	switch v := v.(type) {
	case string:
		if utf8.RuneCountInString(v) > 120 {
			t.Fatalf("a long string leaked: %q", v)
		}
	case []any:
		for _, e := range v {
			check(t, e)
		}
	case map[string]any:
		for k, e := range v {
			if slowSecret(k) && e != "<secret>" {
				t.Fatalf("a secret leaked: %q: %v", k, e)
			}
			check(t, k)
			check(t, e)
		}
	}
}

// checkTyped holds that of the computer tool no string is left but in members
// whose strings are no typed text, and no key that types by itself.
func checkTyped(t *testing.T, v any) {
	switch v := v.(type) {
	case string:
		if !strings.HasPrefix(v, "<") {
			t.Fatalf("a string leaked: %q", v)
		}
	case []any:
		for _, e := range v {
			checkTyped(t, e)
		}
	case map[string]any:
		for k, e := range v {
			text, isText := e.(string)
			switch name := letters(k); {
			case isText && (name == "type" || name == "action" || name == "button"):
				if strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") != "" && !strings.HasPrefix(text, "<") {
					t.Fatalf("%q leaked as %s", text, name)
				}
			case isText && (name == "picture" || name == "app" || name == "window"):
			case name == "keys" || name == "key":
				list, isList := e.([]any)
				if isText {
					list, isList = []any{e}, true
				}
				if one, ok := lone(list); isList && ok && utf8.RuneCountInString(one) == 1 {
					t.Fatalf("the key %q leaked", one)
				}
			default:
				checkTyped(t, e)
			}
		}
	}
}

func lone(list []any) (string, bool) {
	if len(list) != 1 {
		return "", false
	}
	s, ok := list[0].(string)
	return s, ok
}

// letters is how names are compared.
func letters(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name))
}

// unchanged tells that nothing in v needs redacting.
func unchanged(v any, depth int) bool {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v) <= 120
	case json.Number:
		return len(v) <= 120
	case []any:
		for _, e := range v {
			if !unchanged(e, depth+1) {
				return false
			}
		}
		return depth < 32
	case map[string]any:
		for k, e := range v {
			if slowSecret(k) || !unchanged(k, depth) || !unchanged(e, depth+1) {
				return false
			}
		}
		return depth < 32
	}
	return true
}
