//go:build darwin || standin

package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"time"

	"drawbridge/input"
	"drawbridge/internal/quartz"
)

// appPatience is how long an application may take to answer Accessibility.
const appPatience = time.Second

// appLines is how many lines are typed: more than a window shows.
const appLines = 60

const hintApp = "open a window with an empty text in it, click into it, leave mouse and keyboard alone, then run doctor again"

// testApp clicks, types and scrolls in an application of the person's, and reads it
// back through Accessibility. It sends nothing unless that has the keyboard.
func testApp(ctx context.Context, o Options, hand Gestures) []Check {
	namer, ok := o.Desk.Input.(input.Namer)
	if !ok {
		return appFailed(errors.New("this backend cannot tell which application has the keyboard"))
	}
	if err := quartz.LoadAX(); err != nil {
		return appFailed(err)
	}
	a := &app{name: o.App, namer: namer, hand: hand, driver: o.Desk.Input}
	if err := a.open(ctx); err != nil {
		return appFailed(err)
	}
	return []Check{
		a.check(ctx, "app_click", a.click),
		a.check(ctx, "app_type", a.typing),
		a.check(ctx, "app_scroll", a.scroll),
	}
}

func appFailed(err error) (checks []Check) {
	for _, name := range []string{"app_click", "app_type", "app_scroll"} {
		checks = append(checks, Check{Name: name, Detail: "not tried: " + err.Error(), Next: hintApp})
	}
	return checks
}

// app is an application of the person's that gestures are made into.
type app struct {
	name   string
	namer  input.Namer
	hand   Gestures
	driver input.Driver
	pid    int
}

// open brings the application to the front and waits until it has the keyboard.
func (a *app) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "open", "-a", a.name).CombinedOutput(); err != nil {
		return fmt.Errorf("open -a %s: %w %s", a.name, err, strings.TrimSpace(string(out)))
	}
	return a.await(ctx)
}

// await waits until the application has the keyboard: it, or Accessibility, may
// take its time.
func (a *app) await(ctx context.Context) error {
	for {
		err := a.focused(ctx)
		if err == nil {
			return nil
		}
		if rest(ctx, 10*cocoaLook) != nil {
			return err
		}
	}
}

// focused fails unless the application has the keyboard.
func (a *app) focused(ctx context.Context) error {
	w, err := a.namer.Focused(ctx)
	switch {
	case err != nil:
		return err
	case w == nil:
		return fmt.Errorf("no application has the keyboard, %s is to have it", a.name)
	case !strings.EqualFold(w.App, a.name):
		return fmt.Errorf("%s has the keyboard, and not %s", w.App, a.name)
	}
	a.pid = w.PID
	return nil
}

// check makes one gesture, with nothing held after it.
func (a *app) check(ctx context.Context, name string, gesture func(context.Context, quartz.Element) (string, error)) Check {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	detail, err := a.in(ctx, gesture)
	if _, released := a.hand.Release(ctx); released != nil {
		err = errors.Join(err, released)
	}
	if err != nil {
		return Check{Name: name, Detail: err.Error(), Next: hintApp}
	}
	return Check{Name: name, OK: true, Detail: detail}
}

// in finds the part of the application that has its keyboard.
func (a *app) in(ctx context.Context, gesture func(context.Context, quartz.Element) (string, error)) (string, error) {
	if err := a.await(ctx); err != nil {
		return "", err
	}
	quartz.AXSystem(appPatience).Release()
	application := quartz.AXApplication(a.pid)
	defer application.Release()
	part, err := application.Element("AXFocusedUIElement")
	if err != nil {
		return "", fmt.Errorf("find what has the keyboard in %s: %w", a.name, err)
	}
	defer part.Release()
	return gesture(ctx, part)
}

// middle is the middle of a part, where the application must be on top.
func (a *app) middle(ctx context.Context, part quartz.Element) (input.Point, error) {
	r, err := part.Bounds()
	if err != nil {
		return input.Point{}, fmt.Errorf("where it is: %w", err)
	}
	p := input.Point{X: math.Round(r.Origin.X + r.Size.Width/2), Y: math.Round(r.Origin.Y + r.Size.Height/2)}
	w, err := a.namer.Under(ctx, p)
	if err == nil && (w == nil || w.PID != a.pid) {
		err = fmt.Errorf("%s is covered at %g, %g", a.name, p.X, p.Y)
	}
	return p, err
}

func (a *app) click(ctx context.Context, part quartz.Element) (string, error) {
	p, err := a.middle(ctx, part)
	if err == nil {
		err = a.hand.Click(ctx, p, input.Left, nil)
	}
	if err == nil {
		err = a.await(ctx)
	}
	if err != nil {
		return "", err
	}
	at, err := a.driver.Pointer(ctx)
	if err == nil && !near(at, p) {
		err = fmt.Errorf("the pointer is at %g, %g, and not at %g, %g", at.X, at.Y, p.X, p.Y)
	}
	return fmt.Sprintf("seen: %s kept the keyboard after a click at %g, %g", a.name, p.X, p.Y), err
}

func (a *app) typing(ctx context.Context, part quartz.Element) (string, error) {
	before, err := part.Text("AXValue")
	if err != nil {
		return "", fmt.Errorf("read the text: %w", err)
	}
	text := strings.Repeat("Drawbridge\n", appLines)
	if _, err := a.hand.Type(ctx, text); err != nil {
		return "", err
	}
	for {
		after, err := part.Text("AXValue")
		if err != nil {
			return "", fmt.Errorf("read the text: %w", err)
		}
		if strings.Count(after, text) > strings.Count(before, text) {
			return fmt.Sprintf("seen: %d lines of text", appLines), nil
		}
		if rest(ctx, cocoaLook) != nil {
			return "", fmt.Errorf("of %d characters typed, the text grew by %d", len(text), len(after)-len(before))
		}
	}
}

// scroll turns the wheel up, since what was typed is at the end.
func (a *app) scroll(ctx context.Context, part quartz.Element) (string, error) {
	bar, err := a.bar(part)
	if err != nil {
		return "", fmt.Errorf("find the scroll bar: %w", err)
	}
	defer bar.Release()
	p, err := a.middle(ctx, part)
	if err != nil {
		return "", err
	}
	before, err := bar.Number("AXValue")
	if err != nil {
		return "", fmt.Errorf("read the scroll bar: %w", err)
	}
	const up = -240
	if err := a.hand.Scroll(ctx, p, 0, up, nil); err != nil {
		return "", err
	}
	for {
		after, err := bar.Number("AXValue")
		switch {
		case err != nil:
			return "", fmt.Errorf("read the scroll bar: %w", err)
		case after < before:
			return fmt.Sprintf("seen: scrolled up, from %.3g to %.3g of the way", before, after), nil
		case after > before:
			return "", errors.New("it scrolled down when it was to scroll up: run doctor --test-input, which measures the wheel")
		}
		if rest(ctx, cocoaLook) != nil {
			return "", errors.New("nothing was scrolled")
		}
	}
}

// bar is the scroll bar of the area that a part is in.
func (a *app) bar(part quartz.Element) (quartz.Element, error) {
	if bar, err := part.Element("AXVerticalScrollBar"); err == nil {
		return bar, nil
	}
	area, err := part.Element("AXParent")
	if err != nil {
		return area, err
	}
	defer area.Release()
	return area.Element("AXVerticalScrollBar")
}
