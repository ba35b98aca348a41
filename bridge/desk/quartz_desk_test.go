//go:build standin

package desk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/computer"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/measured"
	"drawbridge/bridge/stop"
	"drawbridge/input"
	"drawbridge/input/virtual"
	"drawbridge/internal/quartz"
	"drawbridge/internal/x11/person"
	"drawbridge/packaging/standin"
)

// The computer tool on macOS's own backend, over the stand-in: events land in a
// real editor on a real X display, pictures come from there.

func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	code := 1
	quartz.Loop(func() { code = m.Run() })
	os.Exit(code)
}

type macDesk struct {
	*standin.Desk
	v    *virtual.Virtual
	tool *computer.Tool
	desk *computer.Desk
}

type answer struct {
	Content []struct {
		Type, Text string
		Data       []byte
	}
	StructuredContent computer.Structured
	IsError           bool
}

func openMac(t *testing.T, o Options, displays string, display int, settings ...string) *macDesk {
	t.Helper()
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	v, err := virtual.Start(t.Context(), virtual.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	s, err := standin.Open(v.Display(), environment(v, "XAUTHORITY"), displays, filepath.Join(t.TempDir(), "posted"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, each := range settings {
		name, value, _ := strings.Cut(each, "=")
		if err := s.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	o.Log = zerolog.Nop()
	d, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	cfg := computer.DefaultConfig()
	cfg.Display = display
	tool := computer.New(computer.Options{Desk: d, Config: cfg, Lease: gate.NewLease(filepath.Join(t.TempDir(), "lease"), 4),
		HandBack: func() computer.HandBack { return computer.HandBack{AllowUnwatched: o.Backend == AppleScript} }, Log: zerolog.Nop()})
	t.Cleanup(tool.Close)
	return &macDesk{s, v, tool, d}
}

func environment(v *virtual.Virtual, name string) string {
	for _, e := range v.Env() {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

func (m *macDesk) set(t *testing.T, name, value string) {
	t.Helper()
	if err := m.Set(name, value); err != nil {
		t.Fatal(err)
	}
}

func (m *macDesk) posted(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(m.noted(t), func(e string) bool { return strings.HasPrefix(e, "awake ") })
}

// noted is what was posted, and what was done to keep the display awake.
func (m *macDesk) noted(t *testing.T) []string {
	t.Helper()
	all, err := m.Posted()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e string) bool { return strings.HasPrefix(e, "capture ") || proof.MatchString(e) })
}

// proof is the event that proves that the person can be seen: the pointer is moved
// to where it is.
var proof = regexp.MustCompile(`^moved \S+ delta=0,0 flags=0 `)

func (m *macDesk) call(ctx context.Context, t *testing.T, actions string) (r answer) {
	t.Helper()
	p, a := m.tool.Prepare(ctx, &bridge.Call{Caller: bridge.Caller{Client: "tester", Conn: "1"}, Arguments: json.RawMessage(`{"actions":` + actions + `}`)})
	if a == nil {
		got := p.Run(ctx)
		a = &got
	}
	if err := json.Unmarshal(a.Result, &r); err != nil {
		t.Fatalf("%v in %.2000s", err, a.Result)
	}
	return r
}

// editor starts mousepad on an empty file and waits until the screen stands still.
func (m *macDesk) editor(t *testing.T) (file string) {
	t.Helper()
	if _, err := exec.LookPath("mousepad"); err != nil {
		t.Skip("mousepad is missing: apt-get install mousepad")
	}
	home := t.TempDir()
	file = filepath.Join(home, "text.txt")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := m.call(t.Context(), t, `[{"type":"screenshot"}]`)
	if before.IsError {
		t.Fatal(before.Content[0].Text)
	}
	cmd := exec.Command("mousepad", "--disable-server", file)
	cmd.Env = append(m.v.Env(), "LC_ALL=C.UTF-8", "HOME="+home, "GSETTINGS_BACKEND=memory", "NO_AT_BRIDGE=1",
		"XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "XDG_CACHE_HOME="+home, "DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	last := before.Content[1].Data
	for end := time.Now().Add(time.Minute); ; {
		now := m.call(t.Context(), t, `[{"type":"screenshot"}]`).Content[1].Data
		if bytes.Equal(now, last) && !bytes.Equal(now, before.Content[1].Data) {
			return file
		}
		last = now
		if time.Now().After(end) {
			t.Fatal("the editor never showed itself")
		}
	}
}

func TestQuartzEditor(t *testing.T) {
	const text = "Grüße, 世界 👩‍🚀🏳️‍🌈\n\tÀ demain +-/\n"
	for _, c := range []struct {
		name, displays string
		display        int
		layout, source string
		points         [2]float64
		pixels         [2]int
		backingScale   float64
		imageX, imageY float64 // into the editor, in the picture
		pointX, pointY float64 // the same in points
	}{
		{"plain", "1:0,0,1280,800,1,0,0", 0, "us", "US", [2]float64{1280, 800}, [2]int{1280, 800}, 1, 300, 300, 300, 300},
		{"retina", "1:0,0,640,400,2,0,0", 0, "us", "US", [2]float64{640, 400}, [2]int{1280, 800}, 2, 300, 300, 150, 150},
		{"negative origin", "1:0,0,320,400,2,640,0 2:-640,-100,640,800,1,0,0", 1, "us", "US", [2]float64{640, 800}, [2]int{640, 800}, 1, 300, 300, -340, 200},
		{"azerty", "1:0,0,640,400,2,0,0", 0, "fr -variant mac", "French", [2]float64{640, 400}, [2]int{1280, 800}, 2, 300, 300, 150, 150},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := openMac(t, Options{Backend: Native}, c.displays, c.display)
			cmd := exec.Command("setxkbmap", strings.Fields(c.layout)...)
			cmd.Env = m.v.Env()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("setxkbmap: %v\n%s", err, out)
			}
			m.set(t, "source", "com.apple.keylayout."+c.source)
			file := m.editor(t)
			m.posted(t)
			in, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			// Ctrl+A is a chord whose letter is elsewhere on AZERTY: were it not
			// found there, the text would not be replaced.
			r := m.call(t.Context(), t, fmt.Sprintf(`[{"type":"click","x":%g,"y":%g},{"type":"type","text":"to be replaced"},
				{"type":"keypress","keys":["CTRL","A"]},{"type":"type","text":%s},{"type":"keypress","keys":["CTRL","S"]}]`, c.imageX, c.imageY, in))
			if r.IsError {
				t.Fatal(r.Content[0].Text)
			}
			for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
				got, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if string(got) == text {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("the file holds %q, want %q", got, text)
				}
			}
			for _, e := range m.posted(t) {
				for _, fault := range []string{"dropped", "blocked", "not-dragged", "no-deltas", "no-change-of-flags", "suppresses", "tag=0"} {
					if strings.HasSuffix(e, fault) {
						t.Errorf("posted: %s", e)
					}
				}
			}
			s := r.StructuredContent
			if s.Backend != Native || s.Display.Points != c.points || s.Display.Pixels != c.pixels || s.Display.Scale != c.backingScale || s.Display.Index != c.display {
				t.Errorf("display %+v of %s", s.Display, s.Backend)
			}
			if len(s.Executed) != 5 || s.Executed[0].Point == nil || *s.Executed[0].Point != [2]float64{c.pointX, c.pointY} || *s.Executed[0].Pointer != [2]float64{c.pointX, c.pointY} {
				t.Errorf("executed %+v", s.Executed)
			}
			img, err := png.Decode(bytes.NewReader(r.Content[1].Data))
			if err != nil {
				t.Fatal(err)
			}
			if img.Bounds().Dx() != s.Picture.Width || img.Bounds().Dy() != s.Picture.Height {
				t.Errorf("the picture is %v, told as %+v", img.Bounds(), s.Picture)
			}
		})
	}
}

// TestQuartzWithheld: each missing grant and each state of the session refuses by
// name, and nothing is posted.
func TestQuartzWithheld(t *testing.T) {
	m := openMac(t, Options{Backend: Native}, "1:0,0,640,400,2,0,0", 0)
	const (
		look = `[{"type":"screenshot"}]`
		act  = `[{"type":"move","x":10,"y":10}]`
		typ  = `[{"type":"type","text":"secret"}]`
	)
	if r := m.call(t.Context(), t, look); r.IsError {
		t.Fatal(r.Content[0].Text)
	}
	for _, c := range []struct {
		name, value, back string
		actions           string
		reason            stop.Reason // empty: it runs
		says              string
	}{
		{"trusted", "0", "1", act, stop.Permission, "ccessibility"},
		{"trusted", "0", "1", look, "", ""},
		{"post", "0", "1", act, stop.Permission, "ccessibility"},
		{"screen", "0", "1", look, stop.Permission, "creen"},
		{"locked", "1", "0", act, stop.Locked, "locked"},
		{"locked", "1", "0", look, stop.Locked, "locked"},
		{"asleep", "1", "0", act, stop.Asleep, "asleep"},
		{"console", "0", "1", act, stop.LoginWindow, "another user"},
		{"graphic", "0", "1", look, stop.LoginWindow, "login window"},
		{"secure", fmt.Sprint(os.Getpid()), "0", typ, stop.SecureInput, "desk.test"},
		{"secure", fmt.Sprint(os.Getpid()), "0", act, "", ""},
	} {
		m.set(t, c.name, c.value)
		time.Sleep(250 * time.Millisecond) // an answer about the session may be that old
		r := m.call(t.Context(), t, c.actions)
		m.set(t, c.name, c.back)
		time.Sleep(250 * time.Millisecond)
		s := r.StructuredContent.Stopped
		switch {
		case c.reason == "" && (r.IsError || s != nil):
			t.Errorf("%s=%s %s: %s", c.name, c.value, c.actions, r.Content[0].Text)
		case c.reason != "" && (!r.IsError || s == nil || s.Reason != c.reason || !strings.Contains(r.Content[0].Text, c.says) || strings.Contains(r.Content[0].Text, "secret")):
			t.Errorf("%s=%s %s: %+v, want %s that says %q\n%s", c.name, c.value, c.actions, s, c.reason, c.says, r.Content[0].Text)
		}
		if got := m.posted(t); c.reason != "" && len(got) > 0 {
			t.Errorf("%s=%s %s: posted %q", c.name, c.value, c.actions, got)
		}
	}
	p := m.desk.Permissions(t.Context())
	if p[computer.PermAccessibility] != computer.Granted || p[computer.PermScreenRecording] != computer.Granted {
		t.Errorf("permissions %v", p)
	}
}

// whenDragging acts as soon as a drag is under way, and tells what became of it.
// What was posted before is to be taken first.
func (m *macDesk) whenDragging(act func() error) <-chan error { return m.when("dragged ", act) }

// when acts as soon as something that begins so is posted.
func (m *macDesk) when(posted string, act func() error) <-chan error {
	acted := make(chan error, 1)
	go func() {
		for {
			log, err := os.ReadFile(m.Log())
			if err == nil && bytes.Contains(log, []byte("\n"+posted)) {
				err = act()
			} else if err == nil {
				time.Sleep(time.Millisecond)
				continue
			}
			acted <- err
			return
		}
	}()
	return acted
}

// TestQuartzNothingHeld: cancelled in mid-drag, nothing stays down.
func TestQuartzNothingHeld(t *testing.T) {
	m := openMac(t, Options{Backend: Native}, "1:0,0,640,400,2,0,0", 0)
	if r := m.call(t.Context(), t, `[{"type":"screenshot"}]`); r.IsError {
		t.Fatal(r.Content[0].Text)
	}
	m.posted(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	acted := m.whenDragging(func() error { cancel(&stop.Error{Reason: stop.Stopped, Message: "stop"}); return nil })
	r := m.call(ctx, t, `[{"type":"drag","path":[[10,10],[1200,700],[10,10],[1200,700]],"keys":["SHIFT"]}]`)
	if err := <-acted; err != nil {
		t.Fatal(err)
	}
	if r.StructuredContent.Stopped == nil || !strings.Contains(r.Content[0].Text, "let go of: left button, shift key") {
		t.Fatal(r.Content[0].Text)
	}
	log := m.posted(t)
	if n := len(log); n < 2 || !strings.HasPrefix(log[n-2], "up 0 at ") || !strings.HasPrefix(log[n-1], "flags-changed 56 units=0 flags=0 ") {
		t.Errorf("the last events are %q", log[max(0, len(log)-3):])
	}
}

// TestQuartzUnwatched: no event is sent where the person's own input cannot be
// seen, unless they allowed it.
func TestQuartzUnwatched(t *testing.T) {
	m := openMac(t, Options{Backend: Native}, "1:0,0,640,400,2,0,0", 0)
	m.set(t, "counters", "none")
	for _, c := range []struct{ name, value, back, says string }{
		{"listen", "0", "1", "Input Monitoring is not granted"},
		{"tap", "deaf", "ok", "delivers nothing"},
	} {
		m.set(t, c.name, c.value)
		if c.name == "listen" {
			// What was listened to before does not stop: a grant that is taken away
			// ends the process on a Mac.
			d, err := Open(t.Context(), Options{Backend: Native, Log: zerolog.Nop()})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			m.tool = computer.New(computer.Options{Desk: d, Config: computer.DefaultConfig(),
				Lease: gate.NewLease(filepath.Join(t.TempDir(), "lease"), 4), Log: zerolog.Nop()})
			defer m.tool.Close()
		}
		r := m.call(t.Context(), t, `[{"type":"keypress","keys":["a"]}]`)
		if s := r.StructuredContent.Stopped; s == nil || s.Reason != stop.Unwatched || !strings.Contains(s.Message, c.says) {
			t.Errorf("%s=%s: the answer is %s", c.name, c.value, r.Content[0].Text)
		}
		if log := m.posted(t); len(log) != 0 {
			t.Errorf("%s=%s: posted all the same: %q", c.name, c.value, log)
		}
		m.set(t, c.name, c.back)
		if r := m.call(t.Context(), t, `[{"type":"keypress","keys":["a"]}]`); r.IsError {
			t.Errorf("%s=%s: %s", c.name, c.back, r.Content[0].Text)
		}
		m.posted(t)
	}
}

// TestQuartzHandBack: the person ends a batch, seen by the tap and by the counters.
func TestQuartzHandBack(t *testing.T) {
	for _, c := range []struct{ name, value string }{{"tap", "ok"}, {"tap", "deaf"}, {"listen", "0"}} {
		m := openMac(t, Options{Backend: Native}, "1:0,0,640,400,2,0,0", 0, c.name+"="+c.value)
		p, err := person.Open(t.Context(), m.v.Display())
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if r := m.call(t.Context(), t, `[{"type":"screenshot"}]`); r.IsError {
			t.Fatal(r.Content[0].Text)
		}
		m.posted(t)
		acted := m.whenDragging(func() error { return errors.Join(p.Key(38, true), p.Key(38, false)) })
		r := m.call(t.Context(), t, `[{"type":"drag","path":[[10,10],[1200,700],[10,10],[1200,700]]},{"type":"click","x":5,"y":5}]`)
		if err := <-acted; err != nil {
			t.Fatal(err)
		}
		s := r.StructuredContent
		if s.Stopped == nil || s.Stopped.Reason != stop.HandBack || s.Stopped.Index != 0 || s.Executed[1].Status != computer.Skipped || s.Picture == nil {
			t.Errorf("%s=%s: %s", c.name, c.value, r.Content[0].Text)
		}
		log := m.posted(t)
		if n := len(log); n < 2 || !strings.HasPrefix(log[n-1], "up 0 at ") {
			t.Errorf("%s=%s: the last events are %q", c.name, c.value, log[max(0, len(log)-3):])
		}
	}
}

// clumsy is a driver that fails at its first key.
type clumsy struct {
	input.Driver
	fail func() error
}

func (c *clumsy) Key(context.Context, input.Key, bool) error { return c.fail() }

// TestQuartzKeptAwake: macOS keeps the display awake from before the first event of a
// batch to after the last one, however it ends, and no longer.
func TestQuartzKeptAwake(t *testing.T) {
	m := openMac(t, Options{Backend: Native}, "1:0,0,640,400,2,0,0", 0)
	p, err := person.Open(t.Context(), m.v.Display())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if r := m.call(t.Context(), t, `[{"type":"screenshot"}]`); r.IsError {
		t.Fatal(r.Content[0].Text)
	}
	const (
		drag = `[{"type":"drag","path":[[10,10],[1200,700],[10,10],[1200,700]]}]`
		key  = `[{"type":"click","x":5,"y":5},{"type":"keypress","keys":["a"]}]`
	)
	ctx, cancel := context.WithCancelCause(t.Context())
	for _, c := range []struct {
		name    string
		actions string
		ctx     context.Context
		when    string       // is posted,
		act     func() error // is done
		fail    func() error // of the driver
		reason  stop.Reason  // empty: it runs to its end
	}{
		{"to the end", drag, t.Context(), "", nil, nil, ""},
		{"cancelled", drag, ctx, "dragged ", func() error { cancel(&stop.Error{Reason: stop.Stopped, Message: "stop"}); return nil }, nil, stop.Stopped},
		{"handed back", drag, t.Context(), "dragged ", func() error { return errors.Join(p.Key(38, true), p.Key(38, false)) }, nil, stop.HandBack},
		{"failed", key, t.Context(), "", nil, func() error { return errors.New("broken") }, stop.Err},
		{"panicked", key, t.Context(), "", nil, func() error { panic("broken") }, stop.Err},
		{"locked meanwhile", `[{"type":"click","x":5,"y":5},{"type":"wait"},{"type":"click","x":5,"y":5}]`, t.Context(),
			"up 0 at ", func() error { return m.Set("locked", "1") }, nil, stop.Locked},
		{"only looked", `[{"type":"screenshot"},{"type":"wait"}]`, t.Context(), "", nil, nil, ""},
	} {
		m.noted(t)
		tool := m.tool
		if c.fail != nil {
			d := *m.desk
			d.Input = &clumsy{m.desk.Input, c.fail}
			m.tool = computer.New(computer.Options{Desk: &d, Config: computer.DefaultConfig(), Lease: gate.NewLease(filepath.Join(t.TempDir(), "lease"), 4),
				HandBack: func() computer.HandBack { return computer.HandBack{} }, Log: zerolog.Nop()})
			m.call(t.Context(), t, `[{"type":"screenshot"}]`)
		}
		var acted <-chan error
		if c.act != nil {
			acted = m.when(c.when, c.act)
		}
		r := m.call(c.ctx, t, c.actions)
		if c.act != nil {
			if err := <-acted; err != nil {
				t.Fatal(err)
			}
		}
		m.set(t, "locked", "0")
		m.tool = tool
		s := r.StructuredContent.Stopped
		if c.reason == "" && s != nil || c.reason != "" && (s == nil || s.Reason != c.reason) {
			t.Errorf("%s: stopped %+v\n%s", c.name, s, r.Content[0].Text)
		}
		log := m.noted(t)
		if c.name == "only looked" {
			if len(log) > 0 {
				t.Errorf("%s: %q", c.name, log)
			}
			continue
		}
		var awake []string
		var last string
		for _, e := range log {
			if strings.HasPrefix(e, "awake ") {
				awake = append(awake, e)
			}
			if !strings.HasPrefix(e, "up ") { // what was held is let go of after all else
				last = e
			}
		}
		if want := []string{"awake held: Drawbridge: a program uses the desktop", "awake given back"}; !slices.Equal(awake, want) || log[0] != want[0] || last != want[1] {
			t.Errorf("%s: %q", c.name, log)
		}
	}

	// Where macOS refuses, the batch runs all the same.
	m.set(t, "power", "0")
	if r := m.call(t.Context(), t, `[{"type":"click","x":5,"y":5}]`); r.IsError {
		t.Error(r.Content[0].Text)
	}
	if log := m.noted(t); len(log) < 2 || slices.ContainsFunc(log, func(e string) bool { return strings.HasPrefix(e, "awake ") }) {
		t.Errorf("posted %q", log)
	}
}

// fake puts a command onto the path. It notes its arguments, one a line.
func fake(t *testing.T, dir, name, script string) (calls string) {
	t.Helper()
	calls = filepath.Join(dir, name+".calls")
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done >>"+calls+"\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return calls
}

func TestQuartzAppleScript(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	scripts := fake(t, dir, "osascript", `[ ! -e `+dir+`/refuse ] || { cat `+dir+`/refuse >&2; exit 1; }`)
	fake(t, dir, "screencapture", `for a; do f=$a; done; DISPLAY=$SHOT_DISPLAY XAUTHORITY=$SHOT_COOKIE exec scrot -o "$f"`)
	m := openMac(t, Options{Backend: AppleScript}, "1:0,0,640,400,2,0,0", 0)
	t.Setenv("SHOT_DISPLAY", m.v.Display())
	t.Setenv("SHOT_COOKIE", environment(m.v, "XAUTHORITY"))
	if r := m.call(t.Context(), t, `[{"type":"screenshot"}]`); r.IsError {
		t.Fatal(r.Content[0].Text)
	}
	r := m.call(t.Context(), t, `[{"type":"click","x":300,"y":201},{"type":"type","text":"a \"b\" $(c)\n\td"},{"type":"keypress","keys":["CMD","SHIFT","S"]},{"type":"keypress","keys":["F5"]}]`)
	if r.IsError || r.StructuredContent.Backend != AppleScript || r.StructuredContent.Executed[0].Pointer != nil {
		t.Fatalf("%s\n%+v", r.Content[0].Text, r.StructuredContent)
	}
	b, err := os.ReadFile(scripts)
	if err != nil {
		t.Fatal(err)
	}
	tell := func(what string, args ...string) string {
		return "-e\non run argv\ntell application \"System Events\" to " + what + "\nend run\n\n--\n" + strings.Join(args, "\n") + "\n"
	}
	want := tell("click at {(item 1 of argv) as integer, (item 2 of argv) as integer}", "150", "100") +
		tell("keystroke (item 1 of argv)", `a "b" $(c)`) + tell("key code ((item 1 of argv) as integer)", "36") +
		tell("key code ((item 1 of argv) as integer)", "48") + tell("keystroke (item 1 of argv)", "d") +
		tell("keystroke (item 1 of argv) using {command down, shift down}", "s") + tell("key code ((item 1 of argv) as integer)", "96")
	if string(b) != want {
		t.Errorf("scripts\n%s\nwant\n%s", b, want)
	}
	if got := m.posted(t); len(got) > 0 {
		t.Errorf("posted %q", got)
	}
	for _, c := range []struct{ said, want string }{
		{"execution error: Not authorized to send Apple events to System Events. (-1743)", "Automation"},
		{"execution error: osascript is not allowed assistive access. (-25211)", "Accessibility is not granted"},
		{"syntax error", "syntax error"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "refuse"), []byte(c.said+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := m.call(t.Context(), t, `[{"type":"type","text":"secret"},{"type":"click","x":1,"y":1}]`)
		e := r.StructuredContent.Executed
		if !r.IsError || !strings.Contains(r.Content[0].Text, c.want) || len(e) != 2 || e[0].Status == computer.Executed || e[1].Status != computer.Skipped {
			t.Errorf("%s: %+v\n%s", c.said, e, r.Content[0].Text)
		}
	}
	for actions, want := range map[string]string{
		`[{"type":"drag","path":[[1,1],[2,2]]}]`:          "is not allowed here",
		`[{"type":"click","x":1,"y":1,"button":"right"}]`: "only left",
		`[{"type":"type","text":"é"}]`:                    "no ASCII",
	} {
		if r := m.call(t.Context(), t, actions); !r.IsError || !strings.Contains(r.Content[0].Text, want) {
			t.Errorf("%s: %s", actions, r.Content[0].Text)
		}
	}
	if p := m.desk.Permissions(t.Context()); p[computer.PermAccessibility] != computer.Unknown || p[computer.PermScreenRecording] != computer.Granted {
		t.Errorf("permissions %v", p)
	}
}

func TestQuartzOpen(t *testing.T) {
	for _, c := range []struct {
		o    Options
		says string
	}{
		{Options{Backend: Virtual}, "exists only on Linux"},
		{Options{Backend: AppleScript, Capture: "native"}, "screencapture"},
	} {
		if d, err := Open(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.says) || d != nil {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	d, err := Open(t.Context(), Options{Backend: Auto, Log: zerolog.Nop()})
	if err != nil || d.Backend != Native || d.Reason == "" {
		t.Fatalf("%+v, %v", d, err)
	}
	d.Close()
}

// TestQuartzMeasured: a wheel that was measured to turn the other way is turned the
// other way, on the version of macOS that it was measured on.
func TestQuartzMeasured(t *testing.T) {
	state := t.TempDir()
	if err := measured.Save(state, measured.Facts{System: "15.1 (24B83)", WheelReversed: true}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ version, wheel string }{{"15.1", "wheel 60,30 "}, {"15.2", "wheel -60,-30 "}} {
		m := openMac(t, Options{Backend: Native, StateDir: state}, "1:0,0,640,400,2,0,0", 0, "macos="+c.version)
		if r := m.call(t.Context(), t, `[{"type":"screenshot"}]`); r.IsError {
			t.Fatal(r.Content[0].Text)
		}
		m.posted(t)
		r := m.call(t.Context(), t, `[{"type":"scroll","x":100,"y":100,"scroll_x":30,"scroll_y":60}]`)
		if log := m.posted(t); r.IsError || len(log) != 2 || !strings.HasPrefix(log[1], c.wheel) {
			t.Errorf("macOS %s: %q\n%s", c.version, log, r.Content[0].Text)
		}
	}
}
