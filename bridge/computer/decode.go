package computer

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"drawbridge/input"
)

// Limits on single fields.
const (
	maxText       = 1 << 20 // bytes of one type action
	maxPath       = 1000    // points of one drag
	maxKeys       = 8       // names in one keys list
	maxExpect     = 200     // characters of one expectation
	maxScroll     = 100_000 // pixels
	maxCoordinate = 1e6     // no picture is as large
	maxTold       = 5       // problems that one answer lists
)

// action is one decoded action. Coordinates are the picture's pixels.
type action struct {
	spec   actionSpec
	at     [2]float64   // the target of click, double_click, move and scroll
	path   [][2]float64 // of a drag
	scroll [2]float64
	button input.Button
	mods   []input.Key
	key    input.Key // of a keypress; empty when it is modifiers alone
	text   string
	expect *expect // nil: anything may be there
}

// expect is what an action must meet. Empty fields ask for nothing.
type expect struct {
	app    string // the program's name
	window string // a part of the window's title
}

// targets are the places of the picture that the action uses.
func (a *action) targets() [][2]float64 {
	switch {
	case a.path != nil:
		return a.path
	case a.spec.pointer():
		return [][2]float64{a.at}
	}
	return nil
}

// acts reports whether the action posts events.
func (a *action) acts() bool { return a.spec.typ != Screenshot && a.spec.typ != Wait }

// batch is a decoded call.
type batch struct {
	actions []action
	picture string // the id of the picture that is meant; empty: the last one
}

// acts reports whether any action of the batch posts events.
func (b *batch) acts() bool {
	return slices.ContainsFunc(b.actions, func(a action) bool { return a.acts() })
}

// firstTarget is the index of the first action with coordinates, or -1.
func (b *batch) firstTarget() int {
	return slices.IndexFunc(b.actions, func(a action) bool { return a.spec.pointer() })
}

// decodeLimits are what holds for one client.
type decodeLimits struct {
	maxActions int
	allowed    []ActionType // never nil
}

// problems is everything that is wrong with a call. Nothing of it has run.
type problems []string

func (p problems) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the batch was not run: %s", plural(len(p), "problem"))
	for _, one := range p[:min(len(p), maxTold)] {
		b.WriteString("\n" + one)
	}
	if len(p) > maxTold {
		fmt.Fprintf(&b, "\nand %d more", len(p)-maxTold)
	}
	return b.String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// decode reads the arguments of a call. The error, if any, is of type problems.
func decode(raw json.RawMessage, l decodeLimits) (*batch, error) {
	if len(raw) == 0 {
		return nil, problems{`arguments are missing; give {"actions": [{"type": "screenshot"}]}`}
	}
	args, err := parseStrict(raw)
	if err != nil {
		return nil, problems{err.Error()}
	}
	if args.kind != kindObject {
		return nil, problems{fmt.Sprintf("arguments are %s; an object with the field actions is needed", args.kind)}
	}
	d := decoder{limits: l}
	b := d.batch(args)
	if len(d.problems) > 0 {
		return nil, d.problems
	}
	return b, nil
}

type decoder struct {
	limits   decodeLimits
	problems problems
	where    string // "actions[2] (click)": what the next problem is about
}

// fail notes a problem with a field of the action at hand.
func (d *decoder) fail(field, format string, args ...any) {
	where := d.where
	if field != "" {
		where += ", field " + field
	}
	d.problems = append(d.problems, where+": "+fmt.Sprintf(format, args...))
}

func (d *decoder) batch(args value) *batch {
	b := &batch{}
	d.where = "arguments"
	known := []string{"actions", "picture"}
	for _, f := range args.fields {
		if !slices.Contains(known, f.name) {
			d.fail("", "the field %s is not known%s; known are actions and picture", quote(f.name), didYouMean(f.name, known))
		}
	}
	if v, ok := args.get("picture"); ok && v.kind != kindNull {
		if v.kind != kindString || v.text == "" {
			d.fail("picture", "is %s; the id of a picture, a string, is needed", described(v))
		}
		b.picture = v.text
	}
	list, ok := args.get("actions")
	switch {
	case !ok:
		d.fail("actions", "is missing; a list of at least one action is needed")
	case list.kind != kindArray:
		d.fail("actions", "is %s; a list of actions is needed", list.kind)
	case len(list.items) == 0:
		d.fail("actions", `is empty; to look only, send [{"type": "screenshot"}]`)
	case len(list.items) > d.limits.maxActions:
		d.fail("actions", "holds %d actions; at most %d may be sent in one call", len(list.items), d.limits.maxActions)
	default:
		for i, item := range list.items {
			b.actions = append(b.actions, d.action(i, item))
		}
	}
	return b
}

// action decodes one action. After a problem what it returns is of no use.
func (d *decoder) action(index int, v value) (a action) {
	d.where = fmt.Sprintf("actions[%d]", index)
	if v.kind != kindObject {
		d.fail("", "is %s; an object with the field type is needed", v.kind)
		return a
	}
	t, ok := v.get("type")
	if !ok {
		var near string
		for _, f := range v.fields {
			if nearest(f.name, []string{"type"}) != "" {
				near = fmt.Sprintf(" (%s is not it)", quote(f.name))
			}
		}
		d.fail("type", "is missing%s; it is one of %s", near, listed(d.limits.allowed))
		return a
	}
	if t.kind != kindString {
		d.fail("type", "is %s; it is one of %s", t.kind, listed(d.limits.allowed))
		return a
	}
	spec, ok := specOf(ActionType(t.text))
	if !ok {
		d.fail("type", "%s is not known%s; it is one of %s", quote(t.text), didYouMean(t.text, names(d.limits.allowed)), listed(d.limits.allowed))
		return a
	}
	d.where = fmt.Sprintf("actions[%d] (%s)", index, spec.typ)
	if !slices.Contains(d.limits.allowed, spec.typ) {
		d.fail("type", "is not allowed here; allowed are %s", listed(d.limits.allowed))
		return a
	}
	a = action{spec: spec, button: input.Left}
	for _, f := range v.fields {
		if !slices.Contains(spec.fieldNames(), f.name) {
			d.fail("", "the field %s is not known%s; %s takes %s", quote(f.name), didYouMean(f.name, spec.fieldNames()), spec.typ, strings.Join(spec.fieldNames(), ", "))
		}
	}
	for _, fs := range spec.fields {
		fv, ok := v.get(fs.name)
		switch {
		case (!ok || fv.kind == kindNull) && fs.required:
			d.fail(fs.name, "is missing; %s", needed(fs.kind))
		case ok && fv.kind != kindNull: // null in an optional field is as good as none
			d.field(&a, fs, fv)
		}
	}
	if spec.typ == Scroll {
		x, hasX := v.get("scroll_x")
		y, hasY := v.get("scroll_y")
		if (!hasX || x.kind == kindNull) && (!hasY || y.kind == kindNull) {
			d.fail("scroll_y", "is missing; give scroll_x, scroll_y or both, in pixels")
		}
	}
	return a
}

// needed says what a field of this kind holds.
func needed(k fieldKind) string {
	switch k {
	case coordinate:
		return "a number of the picture's pixels, 0 or more, is needed"
	case delta:
		return fmt.Sprintf("a number of pixels, %d to %d, is needed", -maxScroll, maxScroll)
	case buttonName:
		all := make([]string, len(buttons))
		for i, b := range buttons {
			all[i] = b.name
		}
		return "it is one of " + strings.Join(all, ", ")
	case modifiers, chord:
		return `a list of key names, such as ["CTRL"], is needed`
	case pathPoints:
		return "a list of two or more points, each [x, y] or {x, y}, is needed"
	case expectation:
		return "an object with app, window or both, strings of 1 to 200 characters, is needed"
	}
	return "a string is needed"
}

func (d *decoder) field(a *action, fs fieldSpec, v value) {
	switch fs.kind {
	case coordinate:
		axis := 0
		if fs.name == "y" {
			axis = 1
		}
		a.at[axis] = d.coordinate(fs.name, v)
	case delta:
		axis := 0
		if fs.name == "scroll_y" {
			axis = 1
		}
		n, ok := d.number(fs, fs.name, v)
		if ok && math.Abs(n) > maxScroll {
			d.fail(fs.name, "%s is too far; %s", v.text, needed(delta))
		}
		a.scroll[axis] = n
	case buttonName:
		b, ok := buttonNamed(v.text)
		if v.kind != kindString || !ok {
			d.fail(fs.name, "is %s; %s", described(v), needed(buttonName))
		}
		a.button = b
	case modifiers:
		mods, err := parseModifiers(d.words(fs, v))
		if err != nil {
			d.fail(fs.name, "%v", err)
		}
		a.mods = mods
	case chord:
		before := len(d.problems)
		words := d.words(fs, v)
		if len(d.problems) > before {
			return
		}
		mods, key, err := parseChord(words)
		if err != nil {
			d.fail(fs.name, "%v", err)
		}
		a.mods, a.key = mods, key
	case pathPoints:
		a.path = d.path(fs, v)
	case literal:
		a.text = d.text(fs, v)
	case expectation:
		a.expect = d.expect(fs, v)
	}
}

func (d *decoder) coordinate(name string, v value) float64 {
	n, ok := d.number(fieldSpec{kind: coordinate}, name, v)
	switch {
	case !ok:
	case n < 0:
		d.fail(name, "%s is negative; %s", v.text, needed(coordinate))
	case n > maxCoordinate:
		d.fail(name, "%s is outside every picture; %s", short(v.text), needed(coordinate))
	}
	return n
}

func (d *decoder) number(fs fieldSpec, name string, v value) (float64, bool) {
	if v.kind != kindNumber {
		d.fail(name, "is %s; %s", described(v), needed(fs.kind))
		return 0, false
	}
	n, err := strconv.ParseFloat(v.text, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		d.fail(name, "%s is out of range; %s", short(v.text), needed(fs.kind))
		return 0, false
	}
	return n, true
}

func (d *decoder) words(fs fieldSpec, v value) []string {
	if v.kind != kindArray {
		d.fail(fs.name, "is %s; %s", described(v), needed(fs.kind))
		return nil
	}
	if len(v.items) > maxKeys {
		d.fail(fs.name, "holds %d names; at most %d are taken", len(v.items), maxKeys)
		return nil
	}
	var words []string
	for _, item := range v.items {
		if item.kind != kindString {
			d.fail(fs.name, "holds %s; %s", described(item), needed(fs.kind))
			return nil
		}
		words = append(words, item.text)
	}
	return words
}

func (d *decoder) path(fs fieldSpec, v value) [][2]float64 {
	if v.kind != kindArray || len(v.items) < 2 {
		got := described(v)
		if v.kind == kindArray {
			got = "a list of " + strconv.Itoa(len(v.items))
		}
		d.fail(fs.name, "is %s; %s", got, needed(pathPoints))
		return nil
	}
	if len(v.items) > maxPath {
		d.fail(fs.name, "holds %d points; at most %d are taken", len(v.items), maxPath)
		return nil
	}
	path := make([][2]float64, len(v.items))
	for i, item := range v.items {
		name := fmt.Sprintf("path[%d]", i)
		x, okX := item.get("x")
		y, okY := item.get("y")
		switch {
		case item.kind == kindArray && len(item.items) == 2:
			x, y = item.items[0], item.items[1]
		case item.kind == kindObject && okX && okY && len(item.fields) == 2:
		default:
			d.fail(name, "is no point; each is [x, y] or {x, y}, with numbers")
			continue
		}
		path[i] = [2]float64{d.coordinate(name+".x", x), d.coordinate(name+".y", y)}
	}
	return path
}

// text takes literal text. It never repeats it: it may be a secret.
func (d *decoder) text(fs fieldSpec, v value) string {
	if v.kind != kindString {
		d.fail(fs.name, "is %s; %s", v.kind, needed(literal))
		return ""
	}
	if len(v.text) > maxText {
		d.fail(fs.name, "is %d bytes; at most %d may be typed by one action", len(v.text), maxText)
		return ""
	}
	for i, r := range v.text {
		if unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
			d.fail(fs.name, "holds the control character U+%04X at byte %d, which no key types; of control characters only newline and tab can be typed, for other keys use keypress", r, i)
			return ""
		}
	}
	return v.text
}

func (d *decoder) expect(fs fieldSpec, v value) *expect {
	if v.kind != kindObject || len(v.fields) == 0 {
		d.fail(fs.name, "is %s; %s", described(v), needed(expectation))
		return nil
	}
	known := []string{"app", "window"}
	e := &expect{}
	for _, f := range v.fields {
		name := fs.name + "." + f.name
		switch {
		case !slices.Contains(known, f.name):
			d.fail(fs.name, "the field %s is not known%s; known are app and window", quote(f.name), didYouMean(f.name, known))
			continue
		case f.value.kind != kindString || f.value.text == "" || utf8.RuneCountInString(f.value.text) > maxExpect:
			d.fail(name, "is %s; %s", described(f.value), needed(expectation))
			continue
		}
		if f.name == "app" {
			e.app = f.value.text
		} else {
			e.window = f.value.text
		}
	}
	return e
}

// inside checks the batch's coordinates against the picture that is meant.
func (b *batch) inside(id string, width, height int) error {
	d := decoder{}
	check := func(name string, n float64, limit int, side string) {
		if n >= float64(limit) {
			d.fail(name, "%s is outside the picture %s, which is %d pixels %s; 0 to %d are inside", strconv.FormatFloat(n, 'g', -1, 64), id, limit, side, limit-1)
		}
	}
	for i := range b.actions {
		a := &b.actions[i]
		d.where = fmt.Sprintf("actions[%d] (%s)", i, a.spec.typ)
		for j, t := range a.targets() {
			prefix := ""
			if a.path != nil {
				prefix = fmt.Sprintf("path[%d].", j)
			}
			check(prefix+"x", t[0], width, "wide")
			check(prefix+"y", t[1], height, "high")
		}
	}
	if len(d.problems) > 0 {
		return d.problems
	}
	return nil
}

// described names a value in an error: its kind, and what it says if short.
func described(v value) string {
	switch v.kind {
	case kindString:
		return quote(v.text)
	case kindNumber:
		return short(v.text)
	}
	return v.kind.String()
}

// short cuts the text of a number.
func short(number string) string {
	if len(number) > maxQuoted {
		return number[:maxQuoted] + "…"
	}
	return number
}

func names(types []ActionType) []string {
	s := make([]string, len(types))
	for i, t := range types {
		s[i] = string(t)
	}
	return s
}

func listed(types []ActionType) string { return strings.Join(names(types), ", ") }
