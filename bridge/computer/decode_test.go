package computer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"drawbridge/input"
)

var allLimits = decodeLimits{maxActions: 25, allowed: ActionTypes}

func TestDecode(t *testing.T) {
	spec := func(typ ActionType) actionSpec {
		s, ok := specOf(typ)
		if !ok {
			t.Fatalf("no spec of %s", typ)
		}
		return s
	}
	tests := []struct {
		name, in string
		want     action
	}{
		{"screenshot", `{"type":"screenshot"}`, action{spec: spec(Screenshot), button: input.Left}},
		{"click", `{"type":"click","x":10,"y":20.25}`, action{spec: spec(Click), at: [2]float64{10, 20.25}, button: input.Left}},
		{"no negative zero", `{"type":"click","x":-0,"y":-0.0}`, action{spec: spec(Click), button: input.Left}},
		{"click with all", `{"type":"click","x":0,"y":1e2,"button":"right","keys":["SHIFT","Meta"]}`,
			action{spec: spec(Click), at: [2]float64{0, 100}, button: input.Right, mods: []input.Key{input.Shift, input.Command}}},
		{"wheel is middle", `{"type":"click","x":0,"y":0,"button":"wheel"}`, action{spec: spec(Click), button: input.Middle}},
		{"back", `{"type":"click","x":0,"y":0,"button":"back"}`, action{spec: spec(Click), button: input.Back}},
		{"forward", `{"type":"click","x":0,"y":0,"button":"forward"}`, action{spec: spec(Click), button: input.Forward}},
		{"null for optional", `{"type":"click","x":0,"y":0,"button":null,"keys":null}`, action{spec: spec(Click), button: input.Left}},
		{"double click", `{"type":"double_click","x":3,"y":4,"keys":["alt"]}`,
			action{spec: spec(DoubleClick), at: [2]float64{3, 4}, button: input.Left, mods: []input.Key{input.Alt}}},
		{"drag of pairs", `{"type":"drag","path":[[1,2],[3,4]],"button":"middle"}`,
			action{spec: spec(Drag), path: [][2]float64{{1, 2}, {3, 4}}, button: input.Middle}},
		{"drag of objects", `{"type":"drag","path":[{"x":1,"y":2},{"y":4,"x":3},[5,6]]}`,
			action{spec: spec(Drag), path: [][2]float64{{1, 2}, {3, 4}, {5, 6}}, button: input.Left}},
		{"scroll", `{"type":"scroll","x":1,"y":2,"scroll_x":-3,"scroll_y":40.5}`,
			action{spec: spec(Scroll), at: [2]float64{1, 2}, scroll: [2]float64{-3, 40.5}, button: input.Left}},
		{"scroll one way", `{"type":"scroll","x":1,"y":2,"scroll_y":400}`,
			action{spec: spec(Scroll), at: [2]float64{1, 2}, scroll: [2]float64{0, 400}, button: input.Left}},
		{"keypress", `{"type":"keypress","keys":["CTRL","C"]}`,
			action{spec: spec(Keypress), mods: []input.Key{input.Control}, key: "c", button: input.Left}},
		{"type", `{"type":"type","text":"a \"b\"\n\té😀"}`, action{spec: spec(Type), text: "a \"b\"\n\té😀", button: input.Left}},
		{"type in escapes", `{"type":"type","text":"\ud83d\ude00\\ud83d"}`, action{spec: spec(Type), text: "😀\\ud83d", button: input.Left}},
		{"type nothing", `{"type":"type","text":""}`, action{spec: spec(Type), button: input.Left}},
		{"wait", `{"type":"wait"}`, action{spec: spec(Wait), button: input.Left}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := decode(json.RawMessage(`{"actions":[`+tt.in+`],"picture":"p1"}`), allLimits)
			if err != nil {
				t.Fatal(err)
			}
			if len(b.actions) != 1 || !reflect.DeepEqual(b.actions[0], tt.want) ||
				math.Signbit(b.actions[0].at[0]) || math.Signbit(b.actions[0].at[1]) {
				t.Errorf("got\n%+v\nwant\n%+v", b.actions, tt.want)
			}
			if b.picture != "p1" {
				t.Errorf("picture %q", b.picture)
			}
		})
	}
}

// Each error names where, what is wrong, and what is allowed.
func TestDecodeErrors(t *testing.T) {
	nested := strings.Repeat("[", 50) + strings.Repeat("]", 50)
	tests := []struct {
		name, in string
		want     []string
	}{
		{"nothing", ``, []string{"arguments are missing"}},
		{"no object", `[]`, []string{"arguments are an array"}},
		{"broken", `{"actions":[}`, []string{"not valid JSON", "byte"}},
		{"cut", `{"actions":[`, []string{"not valid JSON"}},
		{"two values", `{"actions":[{"type":"wait"}]} {}`, []string{"more than one JSON value"}},
		{"bytes", "{\"actions\":[{\"type\":\"type\",\"text\":\"\xff\"}]}", []string{"not valid UTF-8"}},
		{"half a pair", `{"actions":[{"type":"type","text":"\ud83d"}]}`, []string{"surrogate", "byte 35"}},
		{"the other half", `{"actions":[{"type":"type","text":"\\\ude00"}]}`, []string{"surrogate"}},
		{"half and a letter", `{"actions":[{"type":"type","text":"\ud83d\u0041"}]}`, []string{"surrogate"}},
		{"nested", `{"actions":` + nested + `}`, []string{"nested deeper than 12"}},
		{"many values", `{"actions":[` + strings.Repeat("0,", 100_000) + `0]}`, []string{"more than 100000 values"}},
		{"no actions", `{}`, []string{"field actions: is missing"}},
		{"actions is null", `{"actions":null}`, []string{"field actions: is null; a list"}},
		{"actions is an object", `{"actions":{"type":"wait"}}`, []string{"field actions: is an object; a list"}},
		{"empty", `{"actions":[]}`, []string{"field actions: is empty", "screenshot"}},
		{"too many", `{"actions":[` + strings.Repeat(`{"type":"wait"},`, 25) + `{"type":"wait"}]}`, []string{"holds 26 actions; at most 25"}},
		{"unknown field", `{"actions":[{"type":"wait"}],"pictures":"p"}`, []string{`"pictures" is not known (did you mean "picture"?)`, "known are actions and picture"}},
		{"case variant", `{"Actions":[{"type":"wait"}],"actions":[{"type":"wait"}]}`, []string{`"Actions" is not known (did you mean "actions"?)`}},
		{"key twice", `{"actions":[{"type":"wait"}],"actions":[]}`, []string{`the key "actions" is given twice`}},
		{"key twice inside", `{"actions":[{"type":"click","x":1,"x":2,"y":3}]}`, []string{`the key "x" is given twice`}},
		{"picture is a number", `{"actions":[{"type":"wait"}],"picture":7}`, []string{"field picture: is 7; the id of a picture"}},
		{"no action", `{"actions":["wait"]}`, []string{"actions[0]: is a string"}},
		{"no type", `{"actions":[{"type":"wait"},{"x":1}]}`, []string{"actions[1], field type: is missing; it is one of screenshot, click, double_click, move, drag, scroll, keypress, type, wait"}},
		{"type misspelt", `{"actions":[{"Type":"wait"}]}`, []string{`field type: is missing ("Type" is not it)`}},
		{"type is a number", `{"actions":[{"type":3}]}`, []string{"field type: is a number; it is one of screenshot"}},
		{"unknown type", `{"actions":[{"type":"doubleClick"}]}`, []string{`actions[0], field type: "doubleClick" is not known (did you mean "double_click"?)`, "screenshot, click, double_click, move, drag, scroll, keypress, type, wait"}},
		{"upper case type", `{"actions":[{"type":"CLICK","x":1,"y":1}]}`, []string{`did you mean "click"?`}},
		{"unknown action field", `{"actions":[{"type":"scroll","x":1,"y":2,"scrollY":3}]}`, []string{`actions[0] (scroll): the field "scrollY" is not known (did you mean "scroll_y"?)`, "scroll takes type, x, y, scroll_x, scroll_y, keys"}},
		{"field of another type", `{"actions":[{"type":"wait","ms":3}]}`, []string{`actions[0] (wait): the field "ms" is not known; wait takes type`}},
		{"button of a double click", `{"actions":[{"type":"double_click","x":1,"y":1,"button":"left"}]}`, []string{`the field "button" is not known`}},
		{"case variant of a field", `{"actions":[{"type":"click","x":1,"y":2,"X":3}]}`, []string{`"X" is not known (did you mean "x"?)`}},
		{"x missing", `{"actions":[{"type":"click","y":2}]}`, []string{"actions[0] (click), field x: is missing; a number"}},
		{"x null", `{"actions":[{"type":"click","x":null,"y":2}]}`, []string{"field x: is missing"}},
		{"x a string", `{"actions":[{"type":"click","x":"3","y":2}]}`, []string{`field x: is "3"; a number`}},
		{"x negative", `{"actions":[{"type":"click","x":-1,"y":2}]}`, []string{"field x: -1 is negative"}},
		{"1e300", `{"actions":[{"type":"click","x":1e300,"y":2}]}`, []string{"field x: 1e300 is outside every picture"}},
		{"1e999", `{"actions":[{"type":"click","x":1e999,"y":2}]}`, []string{"field x: 1e999 is out of range"}},
		{"NaN", `{"actions":[{"type":"click","x":NaN,"y":2}]}`, []string{"not valid JSON"}},
		{"button", `{"actions":[{"type":"click","x":1,"y":2,"button":"lef"}]}`, []string{`field button: is "lef"; it is one of left, right, middle, wheel, back, forward`}},
		{"button a number", `{"actions":[{"type":"click","x":1,"y":2,"button":1}]}`, []string{"field button: is 1; it is one of left"}},
		{"keys a string", `{"actions":[{"type":"click","x":1,"y":2,"keys":"SHIFT"}]}`, []string{`field keys: is "SHIFT"; a list of key names`}},
		{"keys with a letter", `{"actions":[{"type":"click","x":1,"y":2,"keys":["SHIFT","a"]}]}`, []string{`field keys: holds "a", which is no modifier`, "SHIFT, CTRL, ALT, CMD and FN"}},
		{"keys of numbers", `{"actions":[{"type":"keypress","keys":[1]}]}`, []string{"field keys: holds 1; a list of key names"}},
		{"keys many", `{"actions":[{"type":"keypress","keys":["a","a","a","a","a","a","a","a","a"]}]}`, []string{"holds 9 names; at most 8"}},
		{"keys empty", `{"actions":[{"type":"keypress","keys":[]}]}`, []string{"field keys: is empty; name a key"}},
		{"two keys", `{"actions":[{"type":"keypress","keys":["a","b"]}]}`, []string{`holds two keys that are no modifiers, "a" and "b"`}},
		{"unknown key", `{"actions":[{"type":"keypress","keys":["ENTRE"]}]}`, []string{`holds "ENTRE", which is no key (did you mean "enter"?)`, "F1 to F24"}},
		{"empty key", `{"actions":[{"type":"keypress","keys":[""]}]}`, []string{"holds an empty key name"}},
		{"path of one", `{"actions":[{"type":"drag","path":[[1,2]]}]}`, []string{"field path: is a list of 1; a list of two or more points"}},
		{"path a string", `{"actions":[{"type":"drag","path":"1,2"}]}`, []string{`field path: is "1,2"`}},
		{"path too long", `{"actions":[{"type":"drag","path":[` + strings.Repeat("[1,2],", 1000) + `[1,2]]}]}`, []string{"holds 1001 points; at most 1000"}},
		{"point of three", `{"actions":[{"type":"drag","path":[[1,2],[1,2,3]]}]}`, []string{"field path[1]: is no point; each is [x, y] or {x, y}"}},
		{"point with more", `{"actions":[{"type":"drag","path":[[1,2],{"x":1,"y":2,"z":3}]}]}`, []string{"field path[1]: is no point"}},
		{"point negative", `{"actions":[{"type":"drag","path":[[1,2],{"x":1,"y":-2}]}]}`, []string{"field path[1].y: -2 is negative"}},
		{"no scroll", `{"actions":[{"type":"scroll","x":1,"y":2}]}`, []string{"field scroll_y: is missing; give scroll_x, scroll_y or both"}},
		{"far scroll", `{"actions":[{"type":"scroll","x":1,"y":2,"scroll_y":1e6}]}`, []string{"field scroll_y: 1e6 is too far", "-100000 to 100000"}},
		{"text missing", `{"actions":[{"type":"type"}]}`, []string{"actions[0] (type), field text: is missing; a string"}},
		{"text a number", `{"actions":[{"type":"type","text":12345}]}`, []string{"field text: is a number; a string"}},
		{"text with escape", `{"actions":[{"type":"type","text":"ab\u001b"}]}`, []string{"control character U+001B at byte 2", "keypress"}},
		{"text too long", `{"actions":[{"type":"type","text":"` + strings.Repeat("x", maxText+1) + `"}]}`, []string{"is 1048577 bytes; at most 1048576"}},
		{"arguments too long", `{"actions":[{"type":"type","text":"` + strings.Repeat("x", maxArguments) + `"}]}`, []string{"at most 8388608 are taken"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := decode(json.RawMessage(tt.in), allLimits)
			var p problems
			if !errors.As(err, &p) || b != nil {
				t.Fatalf("got %v, %v; want problems", b, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q\nlacks %q", err, want)
				}
			}
		})
	}
}

func TestDecodeTellsFirstFive(t *testing.T) {
	in := `{"actions":[` + strings.Repeat(`{"type":"click","x":-1,"y":-1},`, 4) + `{"type":"wait"}]}`
	_, err := decode(json.RawMessage(in), allLimits)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"8 problems", "actions[2] (click), field x", "and 3 more"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q\nlacks %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "actions[3]") {
		t.Errorf("%q\ntells more than five", err)
	}
}

func TestDecodeNeverRepeatsText(t *testing.T) {
	_, err := decode(json.RawMessage(`{"actions":[{"type":"type","text":["hunter2"]},{"type":"type","text":"hunter2\u0007"}]}`), allLimits)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}

func TestAllowList(t *testing.T) {
	look := decodeLimits{maxActions: 3, allowed: []ActionType{Screenshot, Wait}}
	if _, err := decode(json.RawMessage(`{"actions":[{"type":"wait"},{"type":"screenshot"}]}`), look); err != nil {
		t.Error(err)
	}
	_, err := decode(json.RawMessage(`{"actions":[{"type":"wait"},{"type":"type","text":"x"}]}`), look)
	if err == nil || !strings.Contains(err.Error(), "actions[1] (type), field type: is not allowed here; allowed are screenshot, wait") {
		t.Errorf("got %v", err)
	}
}

func TestInside(t *testing.T) {
	tests := []struct {
		in   string
		want string // empty: inside
	}{
		{`{"type":"click","x":0,"y":0}`, ""},
		{`{"type":"click","x":99.99,"y":49}`, ""},
		{`{"type":"click","x":100,"y":49}`, "actions[0] (click), field x: 100 is outside the picture pX, which is 100 pixels wide; 0 to 99 are inside"},
		{`{"type":"move","x":5,"y":50.5}`, "field y: 50.5 is outside the picture pX, which is 50 pixels high"},
		{`{"type":"drag","path":[[1,1],[1,50]]}`, "actions[0] (drag), field path[1].y: 50 is outside"},
		{`{"type":"wait"}`, ""},
	}
	for _, tt := range tests {
		b, err := decode(json.RawMessage(`{"actions":[`+tt.in+`]}`), allLimits)
		if err != nil {
			t.Fatal(err)
		}
		err = b.inside("pX", 100, 50)
		if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.in, err, tt.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, spec := range vocabulary {
		f.Add(fmt.Sprintf(`{"actions":[{"type":%q,"x":1,"y":2,"button":"left","keys":["CTRL","a"],"path":[[1,2],{"x":3,"y":4}],"scroll_y":5,"text":"é"}]}`, spec.typ))
	}
	f.Add(`{"actions":[{"type":"click","x":1e300,"y":-0.5}],"picture":"p"}`)
	f.Add(`{"actions":[{"type":"type","text":"\ud83d\ude00\u0000"}]}`)
	f.Add(`{"actions":[{"type":"keypress","keys":["ctrl++"]}],"actions":1}`)
	f.Add(`[[[[[[[[[[[[[[[[[[`)
	f.Fuzz(func(t *testing.T, in string) {
		b, err := decode(json.RawMessage(in), allLimits)
		if err != nil {
			if !utf8.ValidString(err.Error()) {
				t.Errorf("the error is no UTF-8: %q", err)
			}
			if len(err.Error()) > 5000 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
			return
		}
		// What is accepted means the same to a lenient reader.
		var lenient struct {
			Actions []struct {
				Type string
				Text string
			}
		}
		if err := json.Unmarshal([]byte(in), &lenient); err != nil || len(lenient.Actions) != len(b.actions) {
			t.Fatalf("encoding/json reads %d actions, %v; we read %d", len(lenient.Actions), err, len(b.actions))
		}
		if len(b.actions) == 0 || len(b.actions) > 25 {
			t.Errorf("%d actions accepted", len(b.actions))
		}
		for i := range b.actions {
			a := &b.actions[i]
			if string(a.spec.typ) != lenient.Actions[i].Type || a.text != lenient.Actions[i].Text {
				t.Errorf("action %d is another to encoding/json", i)
			}
			for _, p := range a.targets() {
				for _, n := range p {
					if math.IsNaN(n) || n < 0 || n > maxCoordinate {
						t.Errorf("coordinate %v accepted", n)
					}
				}
			}
			for _, m := range a.mods {
				if !m.Modifier() {
					t.Errorf("modifier %q accepted", m)
				}
			}
			a.describe(true)
		}
	})
}
