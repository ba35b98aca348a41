package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	"drawbridge/bridge/computer"
	"drawbridge/input"
)

// keyboard is a driver that only grabs, and notes what it holds.
type keyboard struct {
	input.Driver
	held []string
	fail error
}

type grabbed struct {
	on   *keyboard
	keys string
}

func (k *keyboard) Grab(_ context.Context, mods []input.Key, key input.Key, _ func()) (io.Closer, error) {
	if k.fail != nil {
		return nil, k.fail
	}
	g := &grabbed{k, fmt.Sprint(mods, key)}
	k.held = append(k.held, g.keys)
	return g, nil
}

func (g *grabbed) Close() error {
	g.on.held = slices.DeleteFunc(g.on.held, func(keys string) bool { return keys == g.keys })
	return nil
}

// TestPanicChord: other keys take the place of those that were grabbed, none lets
// them go, and what cannot be had is told until it can.
func TestPanicChord(t *testing.T) {
	k := &keyboard{}
	a := &agent{log: zerolog.Nop(), desk: &computer.Desk{Input: k}}
	a.grabPanicChord("ctrl+option+escape")
	if len(k.held) != 0 {
		t.Errorf("before it runs it holds %q", k.held)
	}
	a.chord.ctx = t.Context()
	holds := func(chord string) {
		t.Helper()
		var want []string
		if chord != "" {
			mods, key, err := computer.ParseChord(chord)
			if err != nil {
				t.Fatal(err)
			}
			want = []string{fmt.Sprint(mods, key)}
		}
		if !slices.Equal(k.held, want) {
			t.Errorf("it holds %q, want %q", k.held, want)
		}
	}
	for _, chord := range []string{"ctrl+option+escape", "ctrl+option+escape", "ctrl+f9", "", "ctrl+f9"} {
		a.grabPanicChord(chord)
		holds(chord)
		if a.noChord != "" {
			t.Error(a.noChord)
		}
	}
	k.fail = errors.New("another program has it")
	a.grabPanicChord("ctrl+f10")
	holds("")
	if want := "the panic chord ctrl+f10 stops nothing: another program has it"; a.noChord != want {
		t.Errorf("%q, want %q", a.noChord, want)
	}
	k.fail = nil
	a.grabPanicChord("ctrl+f11")
	holds("ctrl+f11")
	if err := a.chord.release(); err != nil || a.noChord != "" {
		t.Errorf("%v, %q", err, a.noChord)
	}
	holds("")
}
