package computer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/jsonschema-go/jsonschema"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/stop"
	"drawbridge/capture"
)

func TestDefaults(t *testing.T) {
	const look, act = `{"actions":[{"type":"screenshot"},{"type":"wait"}]}`, `{"actions":[{"type":"screenshot"},{"type":"type","text":"x"}]}`
	tests := []struct {
		own  bool
		args string
		want gate.Default
	}{
		{false, look, gate.DefaultAskFirst},
		{true, look, gate.DefaultAllow},
		{false, act, gate.DefaultAsk},
		{true, act, gate.DefaultAsk},
	}
	for _, tt := range tests {
		r := newRig(t, func(o *Options) { o.Desk.Own = tt.own })
		p, a := r.prepare(tt.args)
		if a != nil {
			t.Fatalf("%s", a.Result)
		}
		if p.Default != tt.want {
			t.Errorf("own %v, %s: default %v, want %v", tt.own, tt.args, p.Default, tt.want)
		}
	}
}

func TestPrepareDoesNotAct(t *testing.T) {
	r := newRig(t)
	r.look()
	if _, a := r.prepare(`{"actions":` + everything + `}`); a != nil {
		t.Fatalf("%s", a.Result)
	}
	if len(r.driver.Lines()) != 0 || !r.lease.free() || r.screen.Lent() != 0 {
		t.Errorf("posted %q, lease free %v, %d frames lent", r.driver.Lines(), r.lease.free(), r.screen.Lent())
	}
}

func TestRefusedArguments(t *testing.T) {
	r := newRig(t)
	r.look()
	for args, want := range map[string]string{
		`{"actions":[{"type":"tap"}]}`:                   `actions[0], field type: "tap" is not known`,
		`{"actions":[{"type":"click","x":80,"y":0}]}`:    "field x: 80 is outside the picture",
		`{"actions":[{"type":"click","x":79.9,"y":60}]}`: "field y: 60 is outside the picture",
	} {
		p, a := r.prepare(args)
		if p != nil || a == nil {
			t.Fatalf("%s was taken", args)
		}
		res := r.parse(*a)
		if !res.IsError || res.outcome != "error" || len(res.Content) != 1 || !strings.Contains(res.Content[0].Text, want) {
			t.Errorf("%s: %+v lacks %q", args, res, want)
		}
	}
}

func TestImageCapable(t *testing.T) {
	r := newRig(t)
	r.caller.Images = bridge.ImagesNo
	p, a := r.prepare(`{"actions":[{"type":"screenshot"}]}`)
	if p != nil || a == nil {
		t.Fatal("a client that reads no pictures was given one")
	}
	text := r.parse(*a).Content[0].Text
	for _, want := range []string{"nothing was run", "drawbridge client add tester --images=yes", "computer.require_image_capable_model to false"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	for _, images := range []bridge.Images{bridge.ImagesUnknown, bridge.ImagesYes} {
		r.caller.Images = images
		r.look()
	}
	cfg := DefaultConfig()
	cfg.RequireImageCapableModel = false
	r.tool.SetConfig(cfg)
	r.caller.Images = bridge.ImagesNo
	r.look()
}

func TestLimits(t *testing.T) {
	second := display(50, 40, 1, 0, 0)
	second.Index, second.Name = 1, "second"
	one := 1
	r := newRig(t, func(o *Options) {
		o.Config.AllowedActions = []ActionType{Wait, Screenshot, Move, Scroll}
		o.Limits = func(client string) Limits {
			if client == "looker" {
				return Limits{AllowedActions: []ActionType{Screenshot, Click, Wait}, Display: &one}
			}
			return Limits{}
		}
	})
	r.screen.SetDisplays(rigDisplay, second)
	if _, a := r.prepare(`{"actions":[{"type":"type","text":"x"}]}`); a == nil || !strings.Contains(string(a.Result), "allowed are screenshot, move, scroll, wait") {
		t.Error("the configuration's lock does not hold")
	}
	r.caller.Client = "looker"
	if _, a := r.prepare(`{"actions":[{"type":"click","x":1,"y":1}]}`); a == nil || !strings.Contains(string(a.Result), "allowed are screenshot, wait") {
		t.Error("the client's limits widen the configuration")
	}
	if d := r.look().StructuredContent.Display; d.Index != 1 {
		t.Errorf("display %d, want the client's", d.Index)
	}
	kinds := func(client string) (got []string) {
		var d struct {
			InputSchema struct {
				Properties struct {
					Actions struct {
						Items struct {
							OneOf []struct {
								Properties struct{ Type struct{ Const string } }
							}
						}
					}
				}
			}
			Annotations struct{ ReadOnlyHint, DestructiveHint, OpenWorldHint bool }
		}
		if err := json.Unmarshal(r.tool.Tools(client)[0].Definition, &d); err != nil {
			t.Fatal(err)
		}
		for _, k := range d.InputSchema.Properties.Actions.Items.OneOf {
			got = append(got, k.Properties.Type.Const)
		}
		look := client == "looker"
		if a := d.Annotations; a.ReadOnlyHint != look || a.DestructiveHint == look || !a.OpenWorldHint {
			t.Errorf("%s: annotations %+v", client, a)
		}
		return got
	}
	if got := kinds("other"); !slices.Equal(got, []string{"screenshot", "move", "scroll", "wait"}) {
		t.Errorf("listed %q", got)
	}
	if got := kinds("looker"); !slices.Equal(got, []string{"screenshot", "wait"}) {
		t.Errorf("listed %q", got)
	}
	off := DefaultConfig()
	off.Enabled = false
	r.tool.SetConfig(off)
	if tools := r.tool.Tools("other"); len(tools) != 0 {
		t.Errorf("a tool that is off is listed: %v", tools)
	}
}

func TestStalePictures(t *testing.T) {
	const click = `{"actions":[{"type":"screenshot"},{"type":"click","x":1,"y":1},{"type":"wait"}]}`
	mayLook := false
	r := newRig(t, func(o *Options) { o.MayLook = func(bridge.Caller) bool { return mayLook } })
	stale := func(args, why string) result {
		t.Helper()
		p, a := r.prepare(args)
		if p != nil || a == nil {
			t.Fatal("coordinates of a stale picture were taken")
		}
		res := r.parse(*a)
		r.ended(res, stop.StalePicture, 1, "skipped refused skipped")
		if !strings.Contains(res.StructuredContent.Stopped.Message, why) {
			t.Errorf("message %q lacks %q", res.StructuredContent.Stopped.Message, why)
		}
		if (res.StructuredContent.Picture != nil) != mayLook || (len(res.Content) == 2) != mayLook {
			t.Errorf("picture %+v; may look: %v", res.StructuredContent.Picture, mayLook)
		}
		return res
	}
	stale(click, "no screenshot was given")
	stale(click, "no screenshot was given") // refusing gave none either
	first := r.look().StructuredContent.Picture.ID
	if _, a := r.prepare(click); a != nil {
		t.Fatalf("%s", a.Result)
	}
	stale(`{"actions":[{"type":"screenshot"},{"type":"click","x":1,"y":1},{"type":"wait"}],"picture":"pnever"}`, `the picture "pnever" is not known`)

	// Another client's pictures mean nothing here.
	r.caller.Client = "another"
	stale(strings.Replace(click, `}]}`, `}],"picture":"`+first+`"}`, 1), "is not known")
	r.caller.Client = "tester"

	// The display changes: old pictures are stale by any way of naming them.
	grown := display(160, 60, 2, -80, 5)
	r.screen.SetDisplays(grown)
	stale(click, "the displays changed")
	stale(strings.Replace(click, `}]}`, `}],"picture":"`+first+`"}`, 1), "the displays changed")

	// Where looking is free, the fresh picture comes along and counts.
	mayLook = true
	fresh := stale(click, "the displays changed")
	if !strings.Contains(fresh.Content[0].Text, "a fresh screenshot is attached") || fresh.StructuredContent.Display.Points != [2]float64{80, 30} {
		t.Errorf("%s\n%+v", fresh.Content[0].Text, fresh.StructuredContent.Display)
	}
	if _, a := r.prepare(click); a != nil {
		t.Errorf("the fresh picture does not count: %s", a.Result)
	}

	mayLook = false
	r.screen.SetDisplays()
	stale(click, "display 0 does not exist now; there are no displays")
}

// A picture is meant per connection; another is meant by its id.
func TestWhichPicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		small := DefaultConfig()
		small.Picture.MaxEdge = 40
		whole := r.look().StructuredContent.Picture
		r.caller.Conn = "c2"
		r.tool.SetConfig(small)
		half := r.look().StructuredContent.Picture
		if whole.Width != 80 || half.Width != 40 || half.Scale != [2]float64{1, 1} {
			t.Fatalf("pictures %+v and %+v", whole, half)
		}
		point := func(picture string) [2]float64 {
			args := `{"actions":[{"type":"move","x":10,"y":10}],"picture":"` + picture + `"}`
			if picture == "" {
				args = `{"actions":[{"type":"move","x":10,"y":10}]}`
			}
			p, a := r.prepare(args)
			if a != nil {
				t.Fatalf("%s", a.Result)
			}
			return *r.parse(p.Run(t.Context())).StructuredContent.Executed[0].Point
		}
		if got := point(whole.ID); got != [2]float64{-35, 10} {
			t.Errorf("by the whole picture: %v", got)
		}
		if got := point(""); got != [2]float64{-30, 15} {
			t.Errorf("by the connection's last one: %v", got)
		}
		if got := point(half.ID); got != [2]float64{-30, 15} {
			t.Errorf("by the half picture: %v", got)
		}
		r.tool.ConnClosed(r.caller)
		r.caller.Conn = "c1"
		if got := point(""); got != [2]float64{-35, 10} {
			t.Errorf("by the first connection's own: %v", got)
		}
	})
}

func TestPictureConfig(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Config.Picture.Format = "jpeg" })
	res := r.look()
	if res.StructuredContent.Picture.Mime != "image/jpeg" || res.Content[1].MimeType != "image/jpeg" || !bytes.HasPrefix(res.Content[1].Data, []byte{0xff, 0xd8}) {
		t.Errorf("picture %+v", res.StructuredContent.Picture)
	}
}

// Only what changed around the targets asks a person again.
func TestChanged(t *testing.T) {
	big := display(400, 300, 2, 0, 0)
	r := newRig(t)
	r.screen.SetDisplays(big)
	r.look()
	p, a := r.prepare(`{"actions":[{"type":"click","x":100,"y":100},{"type":"drag","path":[[300,50],[350,250]]}]}`)
	if a != nil {
		t.Fatalf("%s", a.Result)
	}
	is := func(want bool, what string) {
		t.Helper()
		if got, err := p.Changed(t.Context()); err != nil || got != want {
			t.Errorf("%s: changed %v, %v", what, got, err)
		}
	}
	is(false, "nothing")
	r.screen.Paint(0, image.Rect(160, 160, 260, 290), color.RGBA{R: 255})
	is(false, "far from the targets")
	r.screen.Paint(0, image.Rect(100, 90, 102, 120), color.RGBA{R: 255})
	is(false, "a text cursor")
	r.screen.Paint(0, image.Rect(60, 60, 120, 120), color.RGBA{R: 255})
	is(true, "the click's target")
	is(false, "what was shown again")
	r.screen.Paint(0, image.Rect(320, 220, 400, 300), color.RGBA{G: 255})
	is(true, "the end of the drag")
	r.screen.Paint(0, image.Rect(320, 220, 400, 300), color.RGBA{B: 255})
	if _, err := p.Preview(t.Context()); err != nil { // shows it
		t.Fatal(err)
	}
	is(false, "what the preview showed")
	r.screen.SetDisplays(rigDisplay)
	is(true, "another display")
	r.screen.SetDisplays(big)
	r.screen.Before = func(context.Context, capture.Display, image.Rectangle) error { return capture.ErrLocked }
	if _, err := p.Changed(t.Context()); !errors.Is(err, capture.ErrLocked) {
		t.Errorf("nothing to see: %v", err)
	}
	if r.screen.Lent() != 0 {
		t.Errorf("%d frames lent", r.screen.Lent())
	}
}

func TestPreview(t *testing.T) {
	d := display(400, 300, 1, 0, 0)
	r := newRig(t)
	r.screen.SetDisplays(d)
	r.look()
	p, a := r.prepare(`{"actions":[{"type":"click","x":100,"y":100},{"type":"drag","path":[[0,299],[399,0]]},{"type":"type","text":"x"}]}`)
	if a != nil {
		t.Fatalf("%s", a.Result)
	}
	data, err := p.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil || img.Bounds() != image.Rect(0, 0, 400, 300) {
		t.Fatalf("%v, %v", img.Bounds(), err)
	}
	near, err := png.Decode(bytes.NewReader(p.Closeup()))
	if err != nil || near.Bounds() != image.Rect(0, 0, 400, 300) { // all of a small display
		t.Fatalf("%v, %v", near, err)
	}
	if got := color.RGBAModel.Convert(near.At(100, 100)); got != markColor {
		t.Errorf("no mark in the closeup: %v", got)
	}
	for _, at := range []image.Point{{100, 100}, {0, 299}, {399, 0}, {200, 149}} {
		if got := color.RGBAModel.Convert(img.At(at.X, at.Y)); got != markColor {
			t.Errorf("no mark at %v: %v", at, got)
		}
	}
	if got := color.RGBAModel.Convert(img.At(50, 50)); got != (color.RGBA{A: 255}) {
		t.Errorf("the ground at 50,50 is %v", got)
	}
	// On a larger one it is a piece, which does not go over the edge.
	r.screen.SetDisplays(display(2000, 1000, 1, 0, 0))
	r.look()
	if p, a = r.prepare(`{"actions":[{"type":"click","x":1,"y":300}]}`); a != nil {
		t.Fatalf("%s", a.Result)
	}
	if p.Closeup() != nil {
		t.Error("a closeup of what was not shown")
	}
	if _, err := p.Preview(t.Context()); err != nil {
		t.Fatal(err)
	}
	if near, err = png.Decode(bytes.NewReader(p.Closeup())); err != nil || near.Bounds() != image.Rect(0, 0, nearWidth, nearHeight) {
		t.Fatalf("%v", err)
	}
	marked := 0
	for y := range nearHeight {
		if color.RGBAModel.Convert(near.At(1, y)) == markColor {
			marked++
		}
	}
	if marked == 0 || marked > 100 {
		t.Errorf("%d marked pixels at the target", marked)
	}
	// Without coordinates the desktop as it is.
	p, a = r.prepare(`{"actions":[{"type":"type","text":"x"}]}`)
	if a != nil {
		t.Fatalf("%s", a.Result)
	}
	if p.Changed != nil || p.Closeup != nil {
		t.Error("a batch without targets compares something")
	}
	if data, err = p.Preview(t.Context()); err != nil || !bytes.HasPrefix(data, []byte("\x89PNG")) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

var (
	anyID   = regexp.MustCompile(`\bp[a-z2-9]{8}\b`)
	anyMS   = regexp.MustCompile(`"ms":[0-9.]+`)
	anyData = regexp.MustCompile(`"data":"[^"]+"`)
)

// stable takes out of a result what differs from run to run.
func stable(a bridge.Answer) []byte {
	out := anyID.ReplaceAll(a.Result, []byte("pPICTURE"))
	out = anyMS.ReplaceAll(out, []byte(`"ms":0`))
	out = anyData.ReplaceAll(out, []byte(`"data":"BASE64"`))
	var b bytes.Buffer
	if err := json.Indent(&b, out, "", "  "); err != nil {
		return out
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func TestGoldenResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Desk.Backend = "simulated" })
		p, a := r.prepare(`{"actions":[{"type":"click","x":1,"y":1}]}`)
		if p != nil {
			t.Fatal("taken")
		}
		golden(t, "stale.golden", stable(*a))
		r.look()

		if p, a = r.prepare(`{"actions":` + everything + `}`); a != nil {
			t.Fatalf("%s", a.Result)
		}
		golden(t, "batch.golden", stable(p.Run(t.Context())))

		r.driver.Before = func(_ context.Context, line string) error {
			if strings.HasPrefix(line, "drag ") {
				return errors.New("the wire is cut")
			}
			return nil
		}
		if p, a = r.prepare(`{"actions":` + middle + `}`); a != nil {
			t.Fatalf("%s", a.Result)
		}
		golden(t, "stopped.golden", stable(p.Run(t.Context())))

		_, a = r.prepare(`{"actions":[{"type":"scroll","x":1,"y":80,"scrollY":3}],"Picture":"x"}`)
		golden(t, "refused.golden", stable(*a))
	})
}

func TestGoldenDefinition(t *testing.T) {
	r := newRig(t)
	tools := r.tool.Tools("anybody")
	if len(tools) != 1 || tools[0].Name != "computer" || r.tool.Name() != "drawbridge" {
		t.Fatalf("tools %+v of %s", tools, r.tool.Name())
	}
	var b bytes.Buffer
	if err := json.Indent(&b, tools[0].Definition, "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	golden(t, "definition.golden", b.Bytes())
}

// The schemas say what the decoder takes and what results hold.
func TestSchemas(t *testing.T) {
	r := newRig(t)
	var d struct {
		InputSchema, OutputSchema *jsonschema.Schema
	}
	if err := json.Unmarshal(r.tool.Tools("anybody")[0].Definition, &d); err != nil {
		t.Fatal(err)
	}
	in, err := d.InputSchema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.OutputSchema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(s *jsonschema.Resolved, raw []byte) error {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		return s.Validate(v)
	}
	for args, want := range map[string]bool{
		`{"actions":` + everything + `,"picture":"p"}`:                true,
		`{"actions":[{"type":"scroll","x":1,"y":1,"scroll_y":5}]}`:    true,
		`{"actions":[{"type":"click","x":1,"y":1,"button":"wheel"}]}`: true,
		`{"actions":[]}`: false,
		`{}`:             false,
		`{"actions":[{"type":"scroll","x":1,"y":1}]}`:                                 false,
		`{"actions":[{"type":"tap"}]}`:                                                false,
		`{"actions":[{"type":"click","x":1}]}`:                                        false,
		`{"actions":[{"type":"click","x":-1,"y":1}]}`:                                 false,
		`{"actions":[{"type":"wait","ms":1}]}`:                                        false,
		`{"actions":[{"type":"drag","path":[[1,2]]}]}`:                                false,
		`{"actions":[{"type":"click","x":1,"y":1,"button":"lef"}]}`:                   false,
		`{"actions":[` + strings.Repeat(`{"type":"wait"},`, 25) + `{"type":"wait"}]}`: false,
	} {
		err := valid(in, []byte(args))
		if (err == nil) != want {
			t.Errorf("the schema on %s: %v", args, err)
		}
		if _, err := decode(json.RawMessage(args), allLimits); (err == nil) != want {
			t.Errorf("the decoder on %s: %v", args, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		check := func(a bridge.Answer) {
			t.Helper()
			var res struct{ StructuredContent json.RawMessage }
			if err := json.Unmarshal(a.Result, &res); err != nil {
				t.Fatal(err)
			}
			if err := valid(out, res.StructuredContent); err != nil {
				t.Errorf("%v in %s", err, res.StructuredContent)
			}
		}
		_, a := r.prepare(`{"actions":` + everything + `}`)
		check(*a) // stale, without a picture
		r.look()
		p, a := r.prepare(`{"actions":` + everything + `}`)
		if a != nil {
			t.Fatalf("%s", a.Result)
		}
		check(p.Run(t.Context()))
		r.screen.SetDisplays()
		check(p.Run(t.Context())) // stopped, without a display
	})
}

// A display that reports nonsense ends in an answer, not in broken JSON.
func TestUnwritableResult(t *testing.T) {
	r := newRig(t)
	odd := rigDisplay
	odd.Points[0] /= float64(len(r.driver.Lines())) // 0: +Inf
	r.screen.SetDisplays(odd)
	res := r.call(t.Context(), `[{"type":"screenshot"}]`)
	if !res.IsError || !strings.Contains(res.Content[0].Text, "the result cannot be written") {
		t.Errorf("%+v", res)
	}
}
