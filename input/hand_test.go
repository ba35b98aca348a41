package input_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/input"
	"drawbridge/input/recorder"
)

// timed is a driver whose recorded lines start with the milliseconds since the
// test began, in synctest's time.
func timed(lines *[]string) *recorder.Driver {
	start := time.Now()
	return &recorder.Driver{Before: func(_ context.Context, line string) error {
		*lines = append(*lines, fmt.Sprintf("%d %s", time.Since(start).Milliseconds(), line))
		return nil
	}}
}

// The sequences and pauses are those that applications accept: see the package
// documentation of each gesture and the ranges given there.
func TestGestures(t *testing.T) {
	p := input.Point{X: 10, Y: 20}
	tests := []struct {
		name string
		do   func(ctx context.Context, h *input.Hand) error
		want []string
	}{
		{"move", func(ctx context.Context, h *input.Hand) error { return h.Move(ctx, p, nil) },
			[]string{"0 move 10,20"}},
		{"click", func(ctx context.Context, h *input.Hand) error { return h.Click(ctx, p, input.Right, nil) },
			[]string{"0 move 10,20", "0 right down 1", "20 right up 1"}},
		{"click with keys", func(ctx context.Context, h *input.Hand) error {
			return h.Click(ctx, p, input.Left, []input.Key{input.Control, input.Shift})
		}, []string{"0 key control down", "0 key shift down", "0 move 10,20", "0 left down 1", "20 left up 1", "20 key shift up", "20 key control up"}},
		{"double click", func(ctx context.Context, h *input.Hand) error { return h.DoubleClick(ctx, p, nil) },
			[]string{"0 move 10,20", "0 left down 1", "20 left up 1", "70 left down 2", "90 left up 2"}},
		{"scroll", func(ctx context.Context, h *input.Hand) error { return h.Scroll(ctx, p, 0, 300, nil) },
			[]string{"0 move 10,20", "20 scroll 0,300"}},
		{"large scroll", func(ctx context.Context, h *input.Hand) error { return h.Scroll(ctx, p, -7, 1000.5, nil) },
			[]string{"0 move 10,20", "20 scroll -2,333", "30 scroll -2,333", "40 scroll -3,334.5"}},
		{"no scroll", func(ctx context.Context, h *input.Hand) error { return h.Scroll(ctx, p, 0, 0, nil) },
			[]string{"0 move 10,20"}},
		{"chord", func(ctx context.Context, h *input.Hand) error {
			return h.Chord(ctx, []input.Key{input.Control, input.Shift}, "a")
		}, []string{"0 key control down", "0 key shift down", "0 key a down", "12 key a up", "12 key shift up", "12 key control up"}},
		{"modifier alone", func(ctx context.Context, h *input.Hand) error { return h.Chord(ctx, []input.Key{input.Command}, "") },
			[]string{"0 key command down", "12 key command up"}},
		{"type", func(ctx context.Context, h *input.Hand) error { _, err := h.Type(ctx, "é\n"); return err },
			[]string{`0 type "é\n"`}},
		{"type nothing", func(ctx context.Context, h *input.Hand) error { _, err := h.Type(ctx, ""); return err }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				d := timed(&lines)
				h := input.NewHand(d, input.HandOptions{})
				if err := tt.do(t.Context(), h); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(lines, tt.want) {
					t.Errorf("posted\n%q\nwant\n%q", lines, tt.want)
				}
				if h.Posted() != len(tt.want) {
					t.Errorf("Posted() = %d, want %d", h.Posted(), len(tt.want))
				}
				if len(d.Held()) != 0 || len(h.Holding()) != 0 {
					t.Errorf("held after the gesture: %q, %q", d.Held(), h.Holding())
				}
			})
		})
	}
}

func TestDrag(t *testing.T) {
	line := func(points ...input.Point) []input.Point { return points }
	tests := []struct {
		name  string
		path  []input.Point
		steps int
	}{
		{"short: at least 10", line(input.Point{}, input.Point{X: 8}), 10},
		{"40 points long: 4 points each", line(input.Point{}, input.Point{X: 80}), 20},
		{"long: at most 60", line(input.Point{}, input.Point{X: 3000, Y: 2000}), 60},
		{"a corner", line(input.Point{}, input.Point{X: 100}, input.Point{X: 100, Y: 33}), 34},
		{"on the spot", line(input.Point{X: 5, Y: 5}, input.Point{X: 5, Y: 5}), 10},
		{"there and back in three", line(input.Point{}, input.Point{X: 7}, input.Point{}, input.Point{X: 7}), 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				d := timed(&lines)
				h := input.NewHand(d, input.HandOptions{})
				if err := h.Drag(t.Context(), tt.path, input.Left, nil); err != nil {
					t.Fatal(err)
				}
				if len(lines) != tt.steps+3 {
					t.Fatalf("%d motions, want %d: %q", len(lines)-3, tt.steps, lines)
				}
				first, last := tt.path[0], tt.path[len(tt.path)-1]
				want := []string{fmt.Sprintf("0 move %g,%g", first.X, first.Y), "40 left down 1"}
				if !slices.Equal(lines[:2], want) {
					t.Errorf("began %q, want %q", lines[:2], want)
				}
				if got, want := lines[len(lines)-1], fmt.Sprintf("%d left up 1", 80+5*tt.steps); got != want {
					t.Errorf("ended %q, want %q", got, want)
				}
				var at []input.Point
				for _, l := range lines[2 : len(lines)-1] {
					var ms int
					var p input.Point
					if _, err := fmt.Sscanf(l, "%d drag %g,%g", &ms, &p.X, &p.Y); err != nil {
						t.Fatalf("%q is no drag motion: %v", l, err)
					}
					at = append(at, p)
				}
				if at[len(at)-1] != last {
					t.Errorf("ends at %v, want %v", at[len(at)-1], last)
				}
				for _, corner := range tt.path[1:] {
					if !slices.Contains(at, corner) {
						t.Errorf("the path's point %v is not among the motions", corner)
					}
				}
			})
		})
	}
}

func TestDragOfManyPoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var path []input.Point
		for i := range 200 {
			path = append(path, input.Point{X: float64(i) * 3, Y: math.Sqrt(float64(i))})
		}
		d := &recorder.Driver{}
		if err := input.NewHand(d, input.HandOptions{}).Drag(t.Context(), path, input.Middle, []input.Key{input.Alt}); err != nil {
			t.Fatal(err)
		}
		motions := 0
		for _, l := range d.Lines() {
			if strings.HasPrefix(l, "drag ") {
				motions++
			}
		}
		if motions != 199 {
			t.Errorf("%d motions, want one for each of 199 points", motions)
		}
	})
	if err := input.NewHand(&recorder.Driver{}, input.HandOptions{}).Drag(t.Context(), []input.Point{{}}, input.Left, nil); err == nil {
		t.Error("a drag of one point was accepted")
	}
}

// Whatever event fails, Release leaves nothing down, in the one order.
func TestReleaseAfterEachFailure(t *testing.T) {
	gesture := func(ctx context.Context, h *input.Hand) error {
		return h.Drag(ctx, []input.Point{{}, {X: 40}}, input.Left, []input.Key{input.Control, input.Shift})
	}
	synctest.Test(t, func(t *testing.T) {
		whole := &recorder.Driver{}
		if err := gesture(t.Context(), input.NewHand(whole, input.HandOptions{})); err != nil {
			t.Fatal(err)
		}
		for fail := range whole.Lines() {
			broken := errors.New("broken")
			count := 0
			d := &recorder.Driver{}
			h := input.NewHand(d, input.HandOptions{Guard: func(context.Context) error {
				if count++; count > fail {
					return broken
				}
				return nil
			}})
			if err := gesture(t.Context(), h); !errors.Is(err, broken) {
				t.Fatalf("event %d: got %v, want the guard's error", fail, err)
			}
			if h.Posted() != fail || len(d.Lines()) != fail {
				t.Errorf("event %d: %d posted, %d arrived", fail, h.Posted(), len(d.Lines()))
			}
			held := h.Holding()
			released, err := h.Release(t.Context())
			if err != nil {
				t.Fatalf("event %d: %v", fail, err)
			}
			if len(d.Held()) != 0 {
				t.Errorf("event %d: still down: %q", fail, d.Held())
			}
			if len(released) != len(held) {
				t.Errorf("event %d: released %q of %q", fail, released, held)
			}
			if len(held) == 3 && !slices.Equal(released, []string{"left button", "shift key", "control key"}) {
				t.Errorf("event %d: order %q", fail, released)
			}
			if again, err := h.Release(t.Context()); len(again) != 0 || err != nil {
				t.Errorf("event %d: a second Release did %q, %v", fail, again, err)
			}
		}
	})
}

// A press that failed may have been posted all the same: it is released too.
func TestReleaseOfAnUnsurePress(t *testing.T) {
	d := &recorder.Driver{Before: func(_ context.Context, line string) error {
		if line == "left down 1" {
			return input.ErrGone
		}
		return nil
	}}
	h := input.NewHand(d, input.HandOptions{})
	if err := h.Click(t.Context(), input.Point{}, input.Left, nil); !errors.Is(err, input.ErrGone) {
		t.Fatalf("got %v", err)
	}
	if released, err := h.Release(t.Context()); err != nil || !slices.Equal(released, []string{"left button"}) {
		t.Errorf("released %q, %v", released, err)
	}
}

func TestReleaseTellsWhatItCould(t *testing.T) {
	stuck := true
	d := &recorder.Driver{Before: func(_ context.Context, line string) error {
		if stuck && line == "key shift up" {
			return input.ErrGone
		}
		if line == "key a down" {
			return input.ErrNoKey
		}
		return nil
	}}
	h := input.NewHand(d, input.HandOptions{})
	if err := h.Chord(t.Context(), []input.Key{input.Control, input.Shift}, "a"); !errors.Is(err, input.ErrNoKey) {
		t.Fatalf("got %v", err)
	}
	released, err := h.Release(t.Context())
	if !slices.Equal(released, []string{"a key", "control key"}) {
		t.Errorf("released %q", released)
	}
	if !errors.Is(err, input.ErrGone) || !strings.Contains(err.Error(), "shift key") {
		t.Errorf("error %v does not name the key that stayed", err)
	}
	stuck = false
	if released, err := h.Release(t.Context()); err != nil || !slices.Equal(released, []string{"shift key"}) {
		t.Errorf("second try: %q, %v", released, err)
	}
}

func TestReleaseSurvivesAPanic(t *testing.T) {
	d := &recorder.Driver{}
	h := input.NewHand(d, input.HandOptions{})
	d.Before = func(_ context.Context, line string) error {
		switch line {
		case "key a down":
			return input.ErrNoKey
		case "key shift up":
			panic("fault")
		}
		return nil
	}
	if err := h.Chord(t.Context(), []input.Key{input.Control, input.Shift}, "a"); err == nil {
		t.Fatal("the chord went through")
	}
	released, err := h.Release(t.Context())
	if !slices.Equal(released, []string{"a key", "control key"}) || err == nil || !strings.Contains(err.Error(), "shift key: the driver failed: fault") {
		t.Errorf("released %q, %v", released, err)
	}
}

// Cancelling ends a gesture within its pause; Release works all the same.
func TestCancelMidDrag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the person said stop")
		time.AfterFunc(102*time.Millisecond, func() { cancel(why) }) // between two motions
		d := &recorder.Driver{}
		h := input.NewHand(d, input.HandOptions{})
		start := time.Now()
		err := h.Drag(ctx, []input.Point{{}, {X: 400}}, input.Left, []input.Key{input.Shift})
		if !errors.Is(err, why) {
			t.Fatalf("got %v, want the cause", err)
		}
		if got := time.Since(start); got != 102*time.Millisecond {
			t.Errorf("ended after %v, want at once", got)
		}
		if _, err := h.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if len(d.Held()) != 0 {
			t.Errorf("still down: %q", d.Held())
		}
	})
}
