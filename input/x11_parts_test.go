//go:build linux

package input

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drawbridge/input/virtual"
	"drawbridge/internal/session/saver"
	"drawbridge/internal/x11/program"
)

// openForm starts a session on a desk, and in it a form.
func openForm(t *testing.T, v *virtual.Virtual) *program.Program {
	t.Helper()
	if err := program.Available(); err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat("/usr/libexec/at-spi-bus-launcher"); err != nil {
		t.Skip("there is no accessibility: apt-get install at-spi2-core")
	}
	env, stop, err := program.Session(t.TempDir(), v.Env())
	if errors.Is(err, saver.ErrNoDaemon) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	p, err := program.Start(ctx, env, program.Form, "Form", formPlace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if err := p.Await(ctx, "focused"); err != nil {
		t.Fatal(err)
	}
	return p
}

var formPlace = program.Place{X: 200, Y: 100, Width: 400, Height: 400}

// partOf is the middle of one of the form's four parts.
func partOf(t *testing.T, d *x11Driver, n int) Point {
	t.Helper()
	w, err := d.Focused(t.Context())
	if err != nil || w == nil || w.App != "Form" {
		t.Fatalf("the keyboard is with %+v, %v", w, err)
	}
	return Point{w.Bounds.X + w.Bounds.Width/2, w.Bounds.Y + w.Bounds.Height*(float64(n)+0.5)/4}
}

// role asks until the answer comes in time: the machine may be busy.
func roleOf(t *testing.T, want string, ask func() (*Part, error)) {
	t.Helper()
	var got *Part
	var err error
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if got, err = ask(); got != nil && got.Role == want && got.Secure == (want == "password text") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("the part is %+v, %v; want %q", got, err, want)
}

func TestParts(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	ctx := t.Context()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	if p, err := d.PartFocused(ctx); p != nil || err != nil {
		t.Errorf("without a bus: %+v, %v", p, err)
	}
	form := openForm(t, v)
	at := func(n int) func() (*Part, error) {
		p := partOf(t, d, n)
		return func() (*Part, error) { return d.PartUnder(ctx, p) }
	}
	focused := func() (*Part, error) { return d.PartFocused(ctx) }
	for n, want := range []string{"text", "password text", "text", "push button"} {
		roleOf(t, want, at(n))
	}
	roleOf(t, "text", focused)
	// By the keyboard alone, to where nobody has pointed last.
	hand := NewHand(d, HandOptions{})
	if err := hand.Chord(ctx, nil, Tab); err != nil {
		t.Fatal(err)
	}
	roleOf(t, "password text", focused)
	if p, err := d.PartUnder(ctx, Point{1270, 10}); p != nil || err != nil {
		t.Errorf("beside the window: %+v, %v", p, err)
	}

	// One that hangs costs what it may once, and then nothing for a while.
	if err := form.Hang(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	p, err := d.PartUnder(ctx, Point{400, 200})
	if p != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a program that hangs: %+v, %v", p, err)
	}
	t.Logf("a program that hangs cost %v", time.Since(begin))
	begin = time.Now()
	if p, err := focused(); p != nil {
		t.Errorf("right after that: %+v, %v", p, err)
	}
	t.Logf("and again %v", time.Since(begin))
	if err := form.Wake(); err != nil {
		t.Fatal(err)
	}
	roleOf(t, "password text", focused)

	// What the next program is asked does not come from the last one.
	form.Close()
	openForm(t, v)
	roleOf(t, "text", focused)
}

// A text does not lead into a password field.
func TestTypeIntoPassword(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	form := openForm(t, v)
	ctx := t.Context()
	roleOf(t, "text", func() (*Part, error) { return d.PartFocused(ctx) })
	const text = "name\tsecret"
	hand := NewHand(d, HandOptions{})
	for end := time.Now().Add(limit); ; {
		before := form.Told("changed secret")
		n, err := d.Type(ctx, text)
		if err == nil && time.Now().Before(end) {
			// The program was too busy to tell: once more, from the start.
			if err := hand.Click(ctx, partOf(t, d, 0), Left, nil); err != nil {
				t.Fatal(err)
			}
			roleOf(t, "text", func() (*Part, error) { return d.PartFocused(ctx) })
			continue
		}
		if n != len("name\t") || !errors.Is(err, ErrSecureInput) || strings.Contains(err.Error(), "secret") {
			t.Errorf("typed %d bytes: %v", n, err)
		}
		if got := form.Told("changed secret"); got != before {
			t.Errorf("%d letters came into the password field", got-before)
		}
		break
	}
	// In a text of several lines a Tab is text.
	if err := hand.Click(ctx, partOf(t, d, 2), Left, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := d.Type(ctx, text); n != len(text) || err != nil {
		t.Errorf("typed %d bytes into the notes: %v", n, err)
	}
	eventually(t, "the notes hold the text", func() bool { return form.Told("changed notes") == len(text) })
}
