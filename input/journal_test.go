package input_test

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drawbridge/input"
	"drawbridge/input/recorder"
)

// onFirstThread runs the tests; where a platform wants its main loop to run on
// the first thread meanwhile, another function.
var onFirstThread = func(run func() int) int { return run() }

// TestMain runs the child of TestKilledMidDrag: it drags forever.
func TestMain(m *testing.M) {
	path := os.Getenv("DRAWBRIDGE_TEST_DRAG")
	if path == "" {
		os.Exit(onFirstThread(m.Run))
	}
	j, err := input.OpenJournal(path)
	if err != nil {
		panic(err)
	}
	h := input.NewHand(&recorder.Driver{Out: os.Stdout}, input.HandOptions{Journal: j})
	line := make([]input.Point, 100_000)
	if err := h.Drag(context.Background(), line, input.Left, []input.Key{input.Shift, input.Command}); err != nil {
		panic(err)
	}
}

func TestKilledMidDrag(t *testing.T) {
	path := filepath.Join(t.TempDir(), "input.journal")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DRAWBRIDGE_TEST_DRAG="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := false
	for s := bufio.NewScanner(out); s.Scan(); {
		if strings.HasPrefix(s.Text(), "drag ") {
			seen = true
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if !seen {
		t.Fatal("the child never came to dragging")
	}

	d := &recorder.Driver{}
	released, err := input.Recover(t.Context(), d, path)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"left button", "command key", "shift key"}; !slices.Equal(released, want) {
		t.Errorf("released %q, want %q", released, want)
	}
	if want := []string{"left up 1", "key command up", "key shift up", "stray"}; !slices.Equal(d.Lines(), want) {
		t.Errorf("posted %q, want %q", d.Lines(), want)
	}
	if again, err := input.Recover(t.Context(), d, path); len(again) != 0 || err != nil || len(d.Lines()) != 4 {
		t.Errorf("a second Recover did %q, %v", again, err)
	}
}

func TestJournalAfterRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "input.journal")
	if released, err := input.Recover(t.Context(), &recorder.Driver{}, path); len(released) != 0 || err != nil {
		t.Fatalf("no journal yet: %q, %v", released, err)
	}
	j, err := input.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	h := input.NewHand(&recorder.Driver{}, input.HandOptions{Journal: j})
	if err := h.Click(t.Context(), input.Point{}, input.Left, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	d := &recorder.Driver{}
	if released, err := input.Recover(t.Context(), d, path); len(released) != 0 || err != nil || len(d.Lines()) != 0 {
		t.Errorf("after a clean end: %q, %v, %q", released, err, d.Lines())
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode().Perm())
	}
}

// A process that dies while typing holds keys that only its driver knew of.
func TestJournalOfTyping(t *testing.T) {
	path := filepath.Join(t.TempDir(), "input.journal")
	j, err := input.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := input.NewHand(&recorder.Driver{}, input.HandOptions{Journal: j}).Type(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	d := &recorder.Driver{}
	if _, err := input.Recover(t.Context(), d, path); err != nil || !slices.Equal(d.Lines(), []string{"stray"}) {
		t.Errorf("posted %q, %v; want one ReleaseStray", d.Lines(), err)
	}
}

func TestRecoverBadJournals(t *testing.T) {
	for name, data := range map[string]string{
		"garbage":      "\x00\xff{",
		"torn":         `{"pid":12,"injecting":tr`,
		"wrong button": `{"pid":1,"injecting":true,"buttons":[77]}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "input.journal")
			if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
			d := &recorder.Driver{}
			if _, err := input.Recover(t.Context(), d, path); err != nil || !slices.Equal(d.Lines(), []string{"stray"}) {
				t.Errorf("posted %q, %v; want one ReleaseStray", d.Lines(), err)
			}
			if _, err := input.Recover(t.Context(), d, path); err != nil || len(d.Lines()) != 1 {
				t.Errorf("not cleared: %q, %v", d.Lines(), err)
			}
		})
	}
}

func TestJournalKeepsWhatCouldNotBeReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "input.journal")
	if err := os.WriteFile(path, []byte(`{"pid":1,"injecting":true,"keys":["shift"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &recorder.Driver{Before: func(context.Context, string) error { return input.ErrGone }}
	if _, err := input.Recover(t.Context(), d, path); !errors.Is(err, input.ErrGone) {
		t.Fatalf("got %v", err)
	}
	d.Before = nil
	if released, err := input.Recover(t.Context(), d, path); err != nil || !slices.Equal(released, []string{"shift key"}) {
		t.Errorf("second try: %q, %v", released, err)
	}
}

func TestJournalRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "precious")
	if err := os.WriteFile(target, []byte("keep me"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "input.journal")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if _, err := input.OpenJournal(link); err == nil || !strings.Contains(err.Error(), "is a link") || !strings.Contains(err.Error(), "remove") {
		t.Errorf("OpenJournal of a link: %v", err)
	}
	if _, err := input.Recover(t.Context(), &recorder.Driver{}, link); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Recover followed a link: %v", err)
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "keep me" {
		t.Errorf("the link's target is now %q, %v", data, err)
	}
}

// Whatever the file holds, Recover ends with nothing held and a cleared journal.
func FuzzRecover(f *testing.F) {
	f.Add([]byte(`{"pid":1,"injecting":true,"buttons":[1,5],"keys":["shift","é"]}`))
	f.Add([]byte(`{"pid":-1,"injecting":false,"keys":["a"]}`))
	f.Add([]byte("  \n"))
	f.Add([]byte(`{"injecting":true,"keys":[1]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "input.journal")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		d := &recorder.Driver{}
		if _, err := input.Recover(t.Context(), d, path); err != nil {
			t.Fatal(err)
		}
		if len(d.Held()) != 0 {
			t.Errorf("pressed something: %q", d.Held())
		}
		n := len(d.Lines())
		if _, err := input.Recover(t.Context(), d, path); err != nil || len(d.Lines()) != n {
			t.Errorf("not cleared: %q, %v", d.Lines()[n:], err)
		}
	})
}
