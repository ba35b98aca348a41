//go:build linux

package program_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"drawbridge/input"
	"drawbridge/input/virtual"
	"drawbridge/internal/session/saver"
	"drawbridge/internal/x11/program"
)

func TestPrograms(t *testing.T) {
	for _, err := range []error{virtual.Available(), program.Available()} {
		if err != nil {
			t.Skip(err)
		}
	}
	v, err := virtual.Start(context.Background(), virtual.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	env, stop, err := program.Session(t.TempDir(), v.Env())
	if errors.Is(err, saver.ErrNoDaemon) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	d, err := input.OpenX11(v.Display(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	hand := input.NewHand(d, input.HandOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	named := func(what string, ok func(*input.Window) bool) {
		t.Helper()
		var w *input.Window
		for ctx.Err() == nil {
			if w, err = d.(input.Namer).Focused(ctx); err == nil && w != nil && ok(w) {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Fatalf("%s: the keyboard is with %+v, %v", what, w, err)
	}
	await := func(p *program.Program, what string) {
		t.Helper()
		if err := p.Await(ctx, what); err != nil {
			t.Errorf("nothing was told of %s: %v", what, err)
		}
	}
	at := program.Place{X: 300, Y: 200, Width: 200, Height: 200}
	for kind, told := range map[string][]string{program.Deaf: {"press", "key"}, program.Form: {"changed name"}, program.Mover: nil, program.Thief: {"press", "key"}} {
		if err := hand.Move(ctx, input.Point{X: 1200, Y: 700}, nil); err != nil {
			t.Fatal(err)
		}
		p, err := program.Start(ctx, env, kind, strings.ToTitle(kind[:1])+kind[1:], at)
		if err != nil {
			t.Fatal(err)
		}
		await(p, "focused")
		named(kind, func(w *input.Window) bool { return strings.EqualFold(w.App, kind) && w.Bounds.X > 200 })
		if kind == program.Mover {
			if err := hand.Move(ctx, input.Point{X: 400, Y: 300}, nil); err != nil {
				t.Fatal(err)
			}
			named("it moved away", func(w *input.Window) bool { return w.Bounds.X < 100 })
		} else if kind != program.Form {
			if err := hand.Click(ctx, input.Point{X: 400, Y: 300}, input.Left, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := hand.Chord(ctx, nil, "a"); err != nil {
			t.Fatal(err)
		}
		for _, what := range told {
			await(p, what)
		}
		if kind == program.Thief {
			other, err := program.Start(ctx, env, program.Deaf, "Other", program.Place{X: 700, Y: 200, Width: 200, Height: 200})
			if err != nil {
				t.Fatal(err)
			}
			await(other, "focused")
			named("it takes the keyboard back", func(w *input.Window) bool { return w.App == "Thief" })
			other.Close()
		}
		before := p.Told("focused")
		if err := errors.Join(p.Hang(), p.Wake()); err != nil || before == 0 || p.PID() <= 0 {
			t.Errorf("%s: %v", kind, err)
		}
		p.Close()
	}
	if _, err := program.Start(ctx, env, "no such kind", "X", at); err == nil {
		t.Error("a window of no kind shows")
	}
}
