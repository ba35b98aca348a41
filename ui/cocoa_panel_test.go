//go:build standin

package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ebitengine/purego/objc"
	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/computer"
	"drawbridge/bridge/desk"
	"drawbridge/bridge/gate"
	"drawbridge/internal/cocoa"
	"drawbridge/internal/quartz"
)

const panelClassName = "DrawbridgePanel"

// panelRig is a gate that asks by panels.
type panelRig struct {
	*macDesk
	t      *testing.T
	panels *Panels
	gate   *gate.Gate
	rules  string
	ready  chan struct{}
}

func newPanelRig(t *testing.T, o PanelOptions, g gate.Options) *panelRig {
	t.Helper()
	r := &panelRig{macDesk: openMac(t), t: t, ready: make(chan struct{}), rules: filepath.Join(t.TempDir(), "rules.yaml")}
	o.Changed = func() { close(r.ready) }
	r.panels = NewPanels(o)
	g.Rules = gate.RulesFile{Path: r.rules}
	r.gate = gate.New(g)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.panels.Run(ctx) }()
	<-r.ready
	r.gate.AddSurface(r.panels)
	t.Cleanup(func() {
		r.gate.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := len(r.windows(t, panelClassName)); n != 0 {
			t.Errorf("%d panels are left", n)
		}
	})
	return r
}

// ask asks about a call.
func (r *panelRig) ask(edit func(*gate.Request)) <-chan gate.Verdict {
	q := &gate.Request{Client: "claude", Token: "t", Conn: "c1", Host: "omp", Tool: "bash", Args: json.RawMessage(`{"command":"ls -l"}`)}
	if edit != nil {
		edit(q)
	}
	c := make(chan gate.Verdict, 1)
	go func() { c <- r.gate.Decide(context.Background(), q) }()
	return c
}

// panel waits for the panel, and until it has been up for as long as an answer
// needs to count.
func (r *panelRig) panel() objc.ID {
	r.t.Helper()
	w := r.window(r.t, panelClassName)
	time.Sleep(2 * reflex)
	return w
}

func (r *panelRig) pick(label string) {
	r.click(r.t, r.find(r.t, r.panel(), "DrawbridgeButton", label))
}

func (r *panelRig) verdict(c <-chan gate.Verdict) gate.Verdict {
	r.t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		r.t.Fatal("no verdict within 30 s")
	}
	return gate.Verdict{}
}

// TestCocoaPanelVerdicts clicks every verdict of a call and sees what the gate
// makes of it: of this call and of the next ones.
func TestCocoaPanelVerdicts(t *testing.T) {
	for _, c := range []struct {
		label   string
		outcome gate.Outcome
		asked   bool // the same call again, on the same connection
		other   bool // and on another connection
	}{
		{"Allow once", gate.Allowed, true, true},
		{"Allow bash for this connection", gate.Allowed, false, true},
		{"Allow bash for 15 minutes", gate.Allowed, false, false},
		{"Always: write that rule", gate.Allowed, false, false},
		{"Deny", gate.Denied, true, true},
	} {
		t.Run(c.label, func(t *testing.T) {
			r := newPanelRig(t, PanelOptions{}, gate.Options{CoolDown: time.Nanosecond})
			v := r.ask(nil)
			r.pick(c.label)
			if got := r.verdict(v); got.Outcome != c.outcome || got.By != "person at the panel" {
				t.Errorf("%+v", got)
			}
			r.gone(t, panelClassName)
			_, err := os.Stat(r.rules)
			if written := err == nil; written != (c.label == "Always: write that rule") {
				t.Errorf("a rule was written: %v", written)
			}
			for conn, asked := range map[string]bool{"c1": c.asked, "c2": c.other} {
				v := r.ask(func(q *gate.Request) { q.Conn = conn })
				if asked {
					r.pick("Deny")
				}
				if got := r.verdict(v); (got.By == "person at the panel") != asked {
					t.Errorf("again on %s: %+v", conn, got)
				}
				r.gone(t, panelClassName)
			}
		})
	}
}

// TestCocoaPanelDenies: whatever is not an explicit yes denies.
func TestCocoaPanelDenies(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(r *panelRig)
		reason string
	}{
		"a reason and Deny": {func(r *panelRig) {
			r.click(t, r.reasonField())
			r.keys(t, keyN, keyO)
			r.await(r.reasonField(), "no")
			r.pick("Deny")
		}, ": no"},
		"a reason and Return": {func(r *panelRig) {
			r.click(t, r.reasonField())
			r.keys(t, keyN, keyO)
			r.await(r.reasonField(), "no")
			r.keys(t, keyReturn)
		}, ": no"},
		"Escape": {func(r *panelRig) {
			r.click(t, r.reasonField())
			r.keys(t, keyEscape)
		}, ""},
		"the close button": {func(r *panelRig) {
			// GNUstep draws it at the right end of the title.
			x, y, w, _ := r.on(t, r.content())
			r.moveTo(t, x+w-12, y-11)
			r.press(t)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPanelRig(t, PanelOptions{}, gate.Options{CoolDown: time.Nanosecond})
			v := r.ask(nil)
			r.panel()
			c.do(r)
			if got := r.verdict(v); got.Outcome != gate.Denied || got.Message != "a person denied this call"+c.reason {
				t.Errorf("%+v", got)
			}
			r.gone(t, panelClassName)
		})
	}
}

func (r *panelRig) content() (v objc.ID) {
	w := r.window(r.t, panelClassName)
	r.main(r.t, func() { v = cocoa.Content(w) })
	return v
}

// reasonField is the one field that can be written into.
func (r *panelRig) reasonField() (found objc.ID) {
	r.views(r.t, r.window(r.t, panelClassName), func(v objc.ID, class, _ string) {
		if class == "NSTextField" && objc.Send[bool](v, cocoa.Sel("isEditable")) {
			found = v
		}
	})
	if found == 0 {
		r.t.Fatal("there is no field for a reason")
	}
	return found
}

// await waits until a field says something. While it is written into, its editor
// has the text.
func (r *panelRig) await(field objc.ID, text string) {
	until(r.t, "the field says "+text, func() (so bool) {
		r.main(r.t, func() { so = cocoa.Written(field) == text })
		return so
	})
}

// TestCocoaPanelTooSoon: an answer right after an event of ours does not count,
// and says so.
func TestCocoaPanelTooSoon(t *testing.T) {
	sent := time.Now().Add(time.Hour)
	r := newPanelRig(t, PanelOptions{Injected: func() time.Time { return sent }}, gate.Options{})
	v := r.ask(nil)
	r.pick("Allow once")
	until(t, "the panel says that it was too quick", func() bool {
		return r.says(t, r.window(t, panelClassName), "Too quick to have been read")
	})
	if len(r.gate.List()) != 1 {
		t.Error("it was answered")
	}
	if err := r.gate.List()[0].Answer(gate.Answer{By: "elsewhere"}); err != nil {
		t.Error(err)
	}
	r.verdict(v)
	r.gone(t, panelClassName) // an answer from elsewhere takes it away
}

var left = regexp.MustCompile(`(\d+:\d\d) left`)

// TestCocoaPanelCountdown: the time that is left is renewed, and when it is over,
// the panel goes.
func TestCocoaPanelCountdown(t *testing.T) {
	r := newPanelRig(t, PanelOptions{}, gate.Options{Deadline: 6 * time.Second})
	v := r.ask(nil)
	w := r.window(t, panelClassName)
	seen := map[string]bool{}
	until(t, "a second time that is left", func() bool {
		r.views(t, w, func(_ objc.ID, _, s string) {
			if m := left.FindStringSubmatch(s); m != nil {
				seen[m[1]] = true
			}
		})
		return len(seen) >= 2
	})
	if got := r.verdict(v); got.Outcome != gate.Expired {
		t.Errorf("%+v", got)
	}
	r.gone(t, panelClassName)
}

// TestCocoaPanelQueue: one panel at a time, the oldest first, and it says how
// many wait.
func TestCocoaPanelQueue(t *testing.T) {
	r := newPanelRig(t, PanelOptions{}, gate.Options{CoolDown: time.Nanosecond})
	first := r.ask(nil)
	r.window(t, panelClassName)
	second := r.ask(func(q *gate.Request) { q.Client, q.Tool = "other", "read" })
	until(t, "it says that one more waits", func() bool {
		return r.says(t, r.window(t, panelClassName), "and 1 more question")
	})
	r.pick("Allow once")
	if got := r.verdict(first); got.Outcome != gate.Allowed {
		t.Errorf("%+v", got)
	}
	until(t, "the second one is up", func() bool { return r.says(t, r.window(t, panelClassName), "other wants to run read") })
	r.pick("Allow once")
	if got := r.verdict(second); got.Outcome != gate.Allowed {
		t.Errorf("%+v", got)
	}
}

// TestCocoaPanelKinds: what is asked beside calls.
func TestCocoaPanelKinds(t *testing.T) {
	r := newPanelRig(t, PanelOptions{}, gate.Options{})
	r.gate.Pause("me")
	if err := r.gate.OfferResume(); err != nil {
		t.Fatal(err)
	}
	r.pick("Go on")
	until(t, "not paused", func() bool { _, paused := r.gate.Paused(); return !paused })
	r.gone(t, panelClassName)

	if err := r.gate.SetPolicy(gate.Policy{TrustHints: []string{"o\u202emp"}}); err != nil {
		t.Fatal(err)
	}
	if w := r.panel(); !r.says(t, w, "o⟨U+202E⟩mp") {
		t.Error("what loosens is not shown, or not safely")
	}
	r.pick("Accept all of this")
	until(t, "in force", func() bool { return r.gate.TrustHint("o\u202emp") })
	r.gone(t, panelClassName)

	loosened := make(chan gate.Verdict, 1)
	go func() {
		loosened <- r.gate.Loosen(context.Background(), "claude", gate.Item{Key: "models", Text: "hosts call their models"})
	}()
	r.pick("Keep it as it is")
	if got := r.verdict(loosened); got.Outcome != gate.Denied {
		t.Errorf("%+v", got)
	}
	r.gone(t, panelClassName)

	page := make(chan bool, 1)
	go func() {
		ok, err := r.gate.ConfirmPage(context.Background(), []string{"17", "42", "58"}, "42")
		if err != nil {
			t.Error(err)
		}
		page <- ok
	}()
	r.pick("42")
	if !<-page {
		t.Error("the number that the page shows was clicked and not taken")
	}
}

// TestCocoaPanelToTheEnd: what loosens is accepted once the end of it was in view,
// and not before.
func TestCocoaPanelToTheEnd(t *testing.T) {
	r := newPanelRig(t, PanelOptions{}, gate.Options{})
	p := gate.Policy{}
	for i := range 60 {
		p.Rules = append(p.Rules, gate.Rule{Tool: fmt.Sprint("harmless", i), Then: gate.ThenAllow})
	}
	if err := r.gate.SetPolicy(p); err != nil {
		t.Fatal(err)
	}
	w := r.panel()
	if !r.says(t, w, "harmless59") || !r.says(t, w, "60 changes.") {
		t.Error("not all is in the panel")
	}
	r.pick("Accept all of this")
	until(t, "the panel says that it was not read", func() bool { return r.says(t, w, "Scroll to the end of the text first") })
	if len(r.gate.List()) != 1 {
		t.Fatal("it was accepted, and its end was never in view")
	}
	scroller := r.find(t, w, "NSScrollView", "")
	r.main(t, func() { cocoa.ScrollTo(scroller, quartz.CGPoint{Y: 1e5}) })
	r.pick("Accept all of this")
	until(t, "accepted", func() bool { return len(r.gate.List()) == 0 })
	r.gone(t, panelClassName)
}

// TestCocoaPanelShows the whole of the arguments, safely, the rule and the
// picture.
func TestCocoaPanelShows(t *testing.T) {
	red := image.NewRGBA(image.Rect(0, 0, 320, 200))
	for i := range red.Pix {
		red.Pix[i] = []byte{255, 0, 0, 255}[i%4]
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, red); err != nil {
		t.Fatal(err)
	}
	r := newPanelRig(t, PanelOptions{Preview: func(context.Context, *gate.Pending) []byte { return picture.Bytes() }}, gate.Options{})
	v := r.ask(func(q *gate.Request) {
		q.Client = "cla\u202eude"
		q.Args, _ = json.Marshal(map[string]string{"command": strings.Repeat("x", 3000) + "\u202eend"})
	})
	w := r.panel()
	for _, text := range []string{
		strings.Repeat("x", 3000) + "⟨U+202E⟩end", "cla⟨U+202E⟩ude wants to run bash", "A tool of omp.", "Always would write the rule",
	} {
		if !r.says(t, w, text) {
			t.Errorf("it does not say %.60q", text)
		}
	}
	x, y, width, height := r.on(t, r.find(t, w, "NSImageView", ""))
	im, err := png.Decode(bytes.NewReader(r.picture(t, image.Rectangle{})))
	if err != nil {
		t.Fatal(err)
	}
	if c := color.RGBAModel.Convert(im.At(x+width/2, y+height/2)); c != (color.RGBA{255, 0, 0, 255}) {
		t.Errorf("in the middle of the picture is %v", c)
	}
	r.pick("Deny")
	r.verdict(v)
}

// TestCocoaPanelMarked asks about a real batch of the computer tool, with the
// picture of its desktop and the targets marked.
func TestCocoaPanelMarked(t *testing.T) {
	d, err := desk.Open(t.Context(), desk.Options{Backend: desk.Simulated, Width: 960, Height: 600, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	tool := computer.New(computer.Options{Desk: d, Config: computer.DefaultConfig(), Lease: gate.NewLease(filepath.Join(t.TempDir(), "lease"), 1), Log: zerolog.Nop()})
	defer tool.Close()
	prepare := func(args string) (*bridge.Prepared, json.RawMessage) {
		p, answer := tool.Prepare(t.Context(), &bridge.Call{Caller: bridge.Caller{Client: "claude", Conn: "c1"}, Tool: "computer", Arguments: json.RawMessage(args)})
		if answer != nil {
			t.Fatalf("%s", answer.Result)
		}
		return p, json.RawMessage(args)
	}
	look, _ := prepare(`{"actions":[{"type":"screenshot"}]}`)
	look.Run(t.Context())
	batch, args := prepare(`{"actions":[{"type":"click","x":300,"y":200},{"type":"type","text":"hello"},{"type":"drag","path":[[200,420],[600,300]]}]}`)

	var previews Previews
	r := newPanelRig(t, PanelOptions{Preview: previews.PNG}, gate.Options{})
	v := r.ask(func(q *gate.Request) {
		q.Host, q.Tool, q.Args, q.Preview = bridge.OwnSource, "computer", args, batch.Preview
	})
	w := r.panel()
	r.find(t, w, "NSImageView", "")
	r.pictureOf(t, "mac-panel.png", w)
	r.pick("Allow once")
	if got := r.verdict(v); got.Outcome != gate.Allowed {
		t.Errorf("%+v", got)
	}
}

// TestCocoaPanelUnseen: where nobody sees our session, nobody is asked there.
func TestCocoaPanelUnseen(t *testing.T) {
	r := newPanelRig(t, PanelOptions{Log: zerolog.Nop()}, gate.Options{})
	if err := r.Set("console", "0"); err != nil {
		t.Fatal(err)
	}
	defer r.Set("console", "1")
	if got := r.verdict(r.ask(nil)); got.Outcome != gate.Nobody {
		t.Errorf("%+v", got)
	}
	if err := r.panels.Show(&gate.Pending{}); err == nil {
		t.Error("a panel is shown that nobody sees")
	}
	if err := NewPanels(PanelOptions{}).Show(&gate.Pending{}); err == nil {
		t.Error("a panel is shown that nobody runs")
	}
}
