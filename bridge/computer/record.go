package computer

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"image"
	"math"
	"time"

	"drawbridge/capture"
	"drawbridge/input"
)

// nameTime is what one question about a window may cost: an application that
// hangs is not waited for, and the record goes without its name.
const nameTime = 50 * time.Millisecond

// hiddenTitle stands for a title that the configuration keeps out of the record.
const hiddenTitle = "<hidden>"

// before notes what an action will meet: the window under its first event, the
// one with the keyboard, and how the screen looks where it should show. That fails
// no action; it is refused where what it meets is not what was expected, or where
// another program has taken the keyboard.
func (r *run) before(ctx context.Context, i int) error {
	a, e := &r.batch.actions[i], &r.entries[i]
	if !a.acts() {
		return nil
	}
	r.retrace(ctx)
	var area image.Rectangle
	if targets := a.targets(); targets != nil {
		p := r.geo.point(targets[0])
		asked := r.part(ctx, func(ctx context.Context, i input.Inspector) (*input.Part, error) { return i.PartUnder(ctx, p) })
		w, _ := r.under(ctx, p)
		r.tool.aimed = func(ctx context.Context, p input.Point) error { return r.aimed(ctx, p, w) }
		r.clicked(ctx, a, w)
		part := asked()
		e.Target = r.target(w, part)
		if ctx.Err() != nil {
			return context.Cause(ctx) // and not what was not told because of it
		}
		if err := r.expected(a, w, "is there"); err != nil {
			return err
		}
		if a.spec.typ != Move && a.spec.typ != Scroll {
			r.secure = part != nil && part.Secure
		}
		if a.spec.typ == Move {
			return nil // the pointer's place tells more than the screen
		}
		area = r.around(targets)
	} else {
		// After a click the keyboard may still have to come to where it belongs, and only
		// then tells which part it is in.
		var asked func() *input.Part
		if r.click == nil {
			asked = r.part(ctx, focusedPart)
		}
		w, stolen := r.settledFocus(ctx)
		if asked == nil {
			asked = r.part(ctx, focusedPart)
		}
		part := asked()
		e.Focus, r.keyboard = &Focus{Before: r.target(w, part)}, w
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.expected(a, w, "has the keyboard"); err != nil {
			return err
		}
		if stolen != nil {
			return stolen
		}
		// A program that has just shown a password field to a click, and tells nothing
		// now, has it still.
		if part != nil {
			r.secure = part.Secure
		}
		if r.secure {
			err := fmt.Errorf("%w in a password field", input.ErrSecureInput)
			if w != nil {
				err = fmt.Errorf("%w of %s", err, quote(w.App))
			}
			return err
		}
		if w != nil {
			area = pixels(r.now, w.Bounds)
		}
	}
	r.trace(ctx, i, area)
	return nil
}

// after notes where the keyboard is once the keys of an action were sent.
func (r *run) after(ctx context.Context, i int) {
	if e := &r.entries[i]; e.Focus != nil {
		ctx := context.WithoutCancel(ctx)
		part := r.part(ctx, focusedPart)
		w, _ := r.focused(ctx)
		e.Focus.After = r.target(w, part())
	}
}

// focused asks who has the keyboard, and again where that is not told at once: a busy
// machine may be late.
func (r *run) focused(ctx context.Context) (w *input.Window, known bool) {
	return r.name(ctx, func(ctx context.Context, n input.Namer) (w *input.Window, err error) {
		for {
			if w, err = n.Focused(ctx); !errors.Is(err, input.ErrLate) || sleep(ctx, focusLook) != nil {
				return w, err
			}
		}
	})
}

func (r *run) under(ctx context.Context, p input.Point) (w *input.Window, known bool) {
	return r.name(ctx, func(ctx context.Context, n input.Namer) (*input.Window, error) { return n.Under(ctx, p) })
}

// name asks the platform for a window, for at most nameTime. known is false where
// it did not answer.
func (r *run) name(ctx context.Context, ask func(context.Context, input.Namer) (*input.Window, error)) (w *input.Window, known bool) {
	namer, ok := r.tool.desk.Input.(input.Namer)
	if !ok {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, nameTime)
	defer cancel()
	w, err := ask(ctx, namer)
	if err != nil {
		r.tool.log.Debug().Err(err).Msg("name a window for the record")
		return nil, false
	}
	return w, true
}

// part asks the platform for a part of a window, for at most nameTime, and does not
// wait: another program answers, and other things can be asked meanwhile. answer waits.
func (r *run) part(ctx context.Context, ask func(context.Context, input.Inspector) (*input.Part, error)) (answer func() *input.Part) {
	inspector, ok := r.tool.desk.Input.(input.Inspector)
	if !ok {
		return func() *input.Part { return nil }
	}
	told := make(chan *input.Part, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, nameTime)
		defer cancel()
		p, err := ask(ctx, inspector)
		if err != nil {
			r.tool.log.Debug().Err(err).Msg("find a part of a window for the record")
			p = nil
		}
		told <- p
	}()
	return func() *input.Part { return <-told }
}

func focusedPart(ctx context.Context, i input.Inspector) (*input.Part, error) {
	return i.PartFocused(ctx)
}

// target is a window as the record shows it, with the role of the part that is
// meant, where that is known.
func (r *run) target(w *input.Window, part *input.Part) *Target {
	if w == nil {
		return nil
	}
	t := Target{App: w.App, Window: w.Title, Role: w.Role}
	if part != nil && part.Role != "" {
		t.Role = part.Role
	}
	if !r.cfg.RecordTitles && t.Window != "" {
		t.Window = hiddenTitle
	}
	return &t
}

// The part of the screen around a target, in points to each side of it, that is
// compared to tell whether an action did anything. It is cheap to look at, and
// holds what reacts to a click: the button, the field, the menu that opens.
const effectX, effectY = 160, 120

// trace is an action whose effect on the screen has not been seen.
type trace struct {
	index  int
	area   image.Rectangle // pixels of the display
	before uint64          // sum of what was there
}

// around is the part of the display in which an action at these places of the
// picture should show.
func (r *run) around(targets [][2]float64) image.Rectangle {
	x, y := int(effectX*r.now.Scale), int(effectY*r.now.Scale)
	var area image.Rectangle
	for _, at := range [][2]float64{targets[0], targets[len(targets)-1]} {
		p := r.geo.pixel(at)
		area = area.Union(image.Rect(p.X-x, p.Y-y, p.X+x+1, p.Y+y+1))
	}
	return area
}

// pixels is the part of a display that a rectangle of points covers.
func pixels(d capture.Display, p input.Rect) image.Rectangle {
	at := func(v, origin float64) int {
		return int(math.Max(-1e6, math.Min(1e6, math.Round((v-origin)*d.Scale))))
	}
	return image.Rect(at(p.X, d.Origin[0]), at(p.Y, d.Origin[1]), at(p.X+p.Width, d.Origin[0]), at(p.Y+p.Height, d.Origin[1]))
}

// trace remembers how the screen looks where action i should show. Without an
// area nothing can be told of the action's effect.
func (r *run) trace(ctx context.Context, i int, area image.Rectangle) {
	t := trace{index: i, area: area.Intersect(image.Rect(0, 0, r.now.Pixels[0], r.now.Pixels[1]))}
	var ok bool
	if t.before, ok = r.sum(ctx, t.area); ok {
		r.traces = append(r.traces, t)
	}
}

// retrace looks again where actions have not shown yet, and forgets those that
// have. It runs before the next action's events and after the batch has settled,
// so that it costs no waiting: what shows late is blamed on a later action at
// the worst, and never makes an action look as if it had done nothing.
func (r *run) retrace(ctx context.Context) {
	waiting := r.traces[:0]
	for _, t := range r.traces {
		if now, ok := r.sum(ctx, t.area); ok && now == t.before {
			waiting = append(waiting, t)
		}
	}
	r.traces = waiting
}

// grade marks the actions after which nothing changed.
func (r *run) grade() {
	for _, t := range r.traces {
		if e := &r.entries[t.index]; e.Effect != nil && *e.Effect == Delivered {
			e.effect(SuspectedNoop)
		}
	}
}

var areaSeed = maphash.MakeSeed()

// sum is a hash of a part of the display.
func (r *run) sum(ctx context.Context, area image.Rectangle) (uint64, bool) {
	if area.Empty() {
		return 0, false
	}
	f, err := r.tool.desk.Source.Grab(ctx, r.now, area)
	if err != nil {
		r.tool.log.Debug().Err(err).Msg("look around a target")
		return 0, false
	}
	defer f.Release()
	var h maphash.Hash
	h.SetSeed(areaSeed)
	for y := range f.Height {
		h.Write(f.Pix[y*f.Stride:][:f.Width*4])
	}
	return h.Sum64(), true
}
