//go:build standin

package input

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/x11/person"
)

// watched is a desktop of the stand-in with a person in front of it.
type watched struct {
	*macDesk
	person *person.Person
	w      *quartzWatcher
}

func openWatched(t *testing.T, settings ...string) *watched {
	t.Helper()
	m := openMac(t, onePlain)
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		m.set(t, name, value)
	}
	p, err := person.Open(t.Context(), m.v.Display())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	w, err := m.d.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return &watched{m, p, w.(*quartzWatcher)}
}

func (w *watched) prove(t *testing.T, tap bool) {
	t.Helper()
	if err := w.w.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.w.Err() != nil || w.listens() != tap {
		t.Fatalf("by the tap: %v, want %v; %v", w.listens(), tap, w.w.Err())
	}
}

func (w *watched) listens() bool { return w.w.How() == "by a tap on their events" }

// sees waits until the person has done one more thing, and wants it to be that.
func (w *watched) sees(t *testing.T, before Person, what string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		p, _ := w.w.Person()
		if p.Acts > before.Acts {
			if p.What != what || time.Since(p.Last) > 30*time.Second {
				t.Errorf("the person %s %v ago, want that they %s", p.What, time.Since(p.Last), what)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it was not seen that the person %s", what)
		}
	}
}

func (w *watched) quiet(t *testing.T, before Person, why string) {
	t.Helper()
	if p, _ := w.w.Person(); p.Acts != before.Acts {
		t.Errorf("%s: seen as the person's, who %s", why, p.What)
	}
}

// ways are how the person can be seen.
var ways = []struct {
	name     string
	settings []string
	tap      bool
}{
	{"tap", nil, true},
	{"deaf tap", []string{"tap=deaf"}, false},
	{"deaf tap, ours not counted", []string{"tap=deaf", "counted=0"}, false},
	{"no grant", []string{"listen=0"}, false},
	{"no tap", []string{"tap=none", "counted=0"}, false},
}

func TestQuartzWatch(t *testing.T) {
	for _, c := range ways {
		t.Run(c.name, func(t *testing.T) {
			w := openWatched(t, c.settings...)
			// Something must have been counted for the counters to be believed.
			counted := hardwareCount(kCGEventMouseMoved)
			do(t, w.person.Move(1, 0))
			w.await(t, func() bool { return hardwareCount(kCGEventMouseMoved) != counted })
			w.prove(t, c.tap)
			before, _ := w.w.Person()
			hand := NewHand(w.d, HandOptions{})
			_, err := hand.Type(t.Context(), "x")
			do(t, err,
				hand.Click(t.Context(), Point{300, 300}, Left, []Key{Shift}), hand.DoubleClick(t.Context(), Point{400, 300}, nil),
				hand.Drag(t.Context(), []Point{{300, 300}, {350, 320}}, Left, nil), hand.Scroll(t.Context(), Point{300, 300}, 0, 600, nil),
				hand.Chord(t.Context(), []Key{Control}, "a"), hand.Click(t.Context(), Point{300, 300}, Right, nil))
			w.quiet(t, before, "our own events")
			do(t, w.person.Move(2, 1))
			do(t, hand.Chord(t.Context(), nil, "b"))
			w.quiet(t, before, "a drift")
			for _, act := range []struct {
				what string
				do   func() error
			}{
				{movedPointer, func() error { return w.person.Move(9, -9) }},
				{pressedKey, func() error { return w.person.Key(38, true) }},
				{pressedKey, func() error { return w.person.Key(38, false) }},
				{pressedButton, func() error { return w.person.Button(1, true) }},
				{pressedButton, func() error { return w.person.Button(1, false) }},
				{turnedWheel, func() error { return w.Set("person", "wheel") }},
			} {
				before, _ := w.w.Person()
				do(t, act.do())
				w.sees(t, before, act.what)
			}
			if before, _ := w.w.Person(); c.tap {
				w.set(t, "person", "momentum")
				w.prove(t, true)
				w.quiet(t, before, "what rolls on")
			}
			for _, e := range w.posted(t) {
				if strings.HasPrefix(e, "prompt") {
					t.Errorf("the person was asked: %s", e)
				}
			}
		})
	}
}

func (w *watched) await(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came")
		}
	}
}

// macOS turns a tap off that is slow: it is turned on again.
func TestQuartzTapTurnedOff(t *testing.T) {
	w := openWatched(t)
	w.prove(t, true)
	for i, why := range []string{"timeout", "user"} {
		w.set(t, "tap", why)
		w.await(t, func() bool { return w.w.tap.off.Load() == int64(i+1) })
		before, _ := w.w.Person()
		do(t, w.person.Key(38, true), w.person.Key(38, false))
		w.sees(t, before, pressedKey)
	}
	// One that was not told of it is turned on before the next batch.
	cgEventTapEnable(w.w.tap.port, false)
	w.prove(t, true)
}

// A tap that hears nothing any more, in the middle of a batch.
func TestQuartzTapGoesDeaf(t *testing.T) {
	w := openWatched(t)
	do(t, w.person.Move(1, 0))
	w.prove(t, true)
	w.set(t, "tap", "deaf")
	hand := NewHand(w.d, HandOptions{})
	before, _ := w.w.Person()
	w.await(t, func() bool {
		do(t, hand.Chord(t.Context(), nil, "b"))
		return !w.listens()
	})
	w.quiet(t, before, "our own events")
	do(t, w.person.Button(1, true), w.person.Button(1, false))
	w.sees(t, before, pressedButton)
	w.set(t, "tap", "ok")
	w.prove(t, true)
}

func TestQuartzBlind(t *testing.T) {
	for _, c := range []struct {
		settings []string
		says     string
	}{
		{[]string{"listen=0", "counters=none"}, "Input Monitoring is not granted"},
		{[]string{"tap=deaf", "counters=none"}, "delivers nothing"},
		{[]string{"tap=none", "counters=none"}, "makes no tap"},
	} {
		w := openWatched(t, c.settings...)
		before := w.countersNow()
		err := w.w.Prove(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.says) || w.w.Err() == nil {
			t.Errorf("%v: %v, %v; counted %v", c.settings, err, w.w.Err(), before)
		}
		// The grant that comes later counts without a new start.
		w.set(t, "listen", "1")
		w.set(t, "tap", "ok")
		w.set(t, "counters", "ok")
		w.prove(t, true)
	}
}

func (w *watched) countersNow() (all []uint32) {
	for _, kind := range quartzWatched {
		all = append(all, hardwareCount(kind))
	}
	return all
}

func TestQuartzOff(t *testing.T) {
	for _, c := range []struct {
		p, a, b Point
		want    float64
	}{
		{Point{3, 4}, Point{0, 0}, Point{0, 0}, 5},
		{Point{5, 3}, Point{0, 0}, Point{10, 0}, 3},
		{Point{-3, 4}, Point{0, 0}, Point{10, 0}, 5},
		{Point{13, -4}, Point{0, 0}, Point{10, 0}, 5},
	} {
		if got := off(c.p, c.a, c.b); got != c.want {
			t.Errorf("%v is %g off the way from %v to %v, want %g", c.p, got, c.a, c.b, c.want)
		}
	}
	if slices.Contains(quartzWatched, 0) {
		t.Error("nothing is watched")
	}
}
