package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"drawbridge/internal/x11/person/eyes"
)

const shift = `[{"type":"keypress","keys":["SHIFT"]}]`

// TestPersonAnswers: one call is allowed by a click on the notification, another
// in the tray's menu, a third on the page once it was confirmed; each runs once,
// and a late answer elsewhere runs nothing and says so.
func TestPersonAnswers(t *testing.T) {
	d := newPersonDesk(t, "")

	one := d.client("one")
	call := one.act(shift)
	d.notification("one wants to run computer")
	d.picture("notification")
	d.press("one wants to run computer", "Allow once")
	if got := d.answer(call); strings.Contains(got, `"isError":true`) {
		t.Errorf("%.500s", got)
	}
	d.until("one's call is on record", func() bool { return d.records("one") == once("notification") })

	two := d.client("two")
	call = two.act(shift)
	d.notification("two wants to run computer")
	rows := d.openPrompt("two: computer")
	d.picture("menu")
	d.choose(rows, "Allow once")
	d.answer(call)
	d.until("two's call is on record", func() bool { return d.records("two") == once("tray") })
	d.nothingNotified()

	// The page: opened by the running agent, confirmed by a click on the number.
	ctx := d.browser()
	address := d.openActivity()
	three := d.client("three")
	call = three.act(`[{"type":"screenshot"}]`)
	d.press("three wants to run computer", "Allow once")
	d.answer(call)
	call = three.act(`[{"type":"click","x":200,"y":300},{"type":"type","text":"hello"},{"type":"scroll","x":480,"y":320,"scroll_y":200},{"type":"drag","path":[[120,200],[420,200],[420,260]]}]`)
	d.notification("three wants to run computer")
	d.page(ctx, chromedp.Navigate(address), chromedp.WaitVisible(`#pending article`), chromedp.WaitVisible(`#pending img`))
	if location := read(d, ctx, chromedp.Location()); strings.Contains(location, "#") {
		t.Errorf("the code is left in the address: %s", location)
	}
	id := read(d, ctx, chromedp.Evaluate[string](`JSON.parse(document.querySelector('#pending article').dataset.state)[0].id`))
	if !read(d, ctx, chromedp.Evaluate[bool](`[...document.querySelectorAll('#pending button:not(.picture)')].every((b) => b.disabled)`)) {
		t.Error("a page that nobody confirmed offers answers")
	}
	d.page(ctx, chromedp.Click(`#confirming button`), chromedp.WaitVisible(`#number`))
	number := read(d, ctx, chromedp.Text(`#number`))
	d.notification("A page asks to answer for you")
	d.picture("confirm")
	d.press("A page asks to answer for you", number)
	d.page(ctx, chromedp.WaitVisible(chromedp.Search(`//button[.="Allow once" and not(@disabled)]`)))
	for _, scheme := range []string{"light", "dark"} {
		d.shoot(ctx, scheme, "page", 1280, 900)
		d.shoot(ctx, scheme, "page-narrow", 390, 844)
	}
	time.Sleep(500 * time.Millisecond) // to have read it
	d.page(ctx, chromedp.Click(chromedp.Search(`//button[.="Allow once"]`)))
	d.answer(call)
	d.until("three's call is on record", func() bool { return d.records("three") == once("notification")+", "+once("activity page") })
	d.nothingNotified()

	// A late answer, as of a page that does not know yet.
	d.page(ctx, chromedp.Evaluate[chromedp.Void](`act('answer', {id: '`+id+`', answer: 'once'})`), chromedp.WaitVisible(`#message .note`))
	message := read(d, ctx, chromedp.Text(`#message`))
	if !strings.Contains(message, "too late, nothing was run") {
		t.Errorf("a late answer: %q", message)
	}
	for name, surface := range map[string]string{"one": "notification", "two": "tray", "three": "activity page"} {
		want := once(surface)
		if name == "three" { // it was allowed to look before
			want = once("notification") + ", " + want
		}
		if got := d.records(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestPersonHoldsInput: while a prompt is up, an allowed batch of another client
// that would click on it is held, and runs after the person's verdict.
func TestPersonHoldsInput(t *testing.T) {
	d := newPersonDesk(t, "")
	allowed, other := d.client("allowed"), d.client("other")
	call := allowed.act(`[{"type":"screenshot"}]`)
	d.press("allowed wants to run computer", "Allow once")
	d.answer(call)
	call = allowed.act(shift)
	d.notification("allowed wants to run computer")
	d.choose(d.openPrompt("allowed: computer"), "Allow computer for 15 minutes")
	d.answer(call)
	d.nothingNotified()

	asked := other.act(shift)
	button := d.notification("other wants to run computer").buttons["Allow once"].Middle()
	held := allowed.act(fmt.Sprintf(`[{"type":"click","x":%d,"y":%d}]`, button.X, button.Y))
	d.until("the other batch has begun", func() bool { return strings.Count(d.records("allowed"), "start") == 3 })
	select {
	case got := <-held:
		t.Fatalf("a batch acted while a person was asked: %.300s", got)
	case got := <-asked:
		t.Fatalf("the prompt was answered by a program: %.300s", got)
	case <-time.After(2 * time.Second):
	}
	d.press("other wants to run computer", "Deny")
	if got := d.answer(asked); !strings.Contains(got, "a person denied this call") {
		t.Errorf("%.300s", got)
	}
	if got := d.answer(held); strings.Contains(got, `"isError":true`) {
		t.Errorf("the batch that was held did not run after the verdict: %.500s", got)
	}
	if got := d.records("other"); got != "start, ask, verdict denied: person at the notification, done refused: denied" {
		t.Errorf("other: %s", got)
	}
	if got := d.records("allowed"); strings.Count(got, "done ok") != 3 {
		t.Errorf("allowed: %s", got)
	}
}

// TestPersonWithdrawn: who cancels, hangs up or has waited too long is gone from
// every surface, which the open menu in the panel, the notification on the screen
// and the page in the browser show. How soon is written down, and is due within
// 200 ms of a machine that has nothing else to do.
func TestPersonWithdrawn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config string
		end    func(d *personDesk, c *client, answer <-chan string) time.Time // when it ended
		record string
	}{
		{"cancelled", "", func(d *personDesk, c *client, _ <-chan string) time.Time {
			now := time.Now()
			c.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%d}`, c.next))
			return now
		}, "start, ask, verdict withdrawn: caller, done cancelled"},
		{"hung up", "", func(d *personDesk, c *client, _ <-chan string) time.Time {
			now := time.Now()
			if err := c.conn.Close(); err != nil {
				t.Error(err)
			}
			return now
		}, "start, ask, verdict withdrawn: caller, done cancelled"},
		{"waited too long", "approvals:\n  deadline: 30s\n", func(d *personDesk, c *client, answer <-chan string) time.Time {
			if got := d.answer(answer); !strings.Contains(got, "nobody answered within 30s") {
				t.Errorf("%.300s", got)
			}
			return time.Now()
		}, "start, ask, verdict expired: deadline, done refused: expired"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newPersonDesk(t, tt.config)
			ctx := d.browser()
			d.page(ctx, chromedp.Navigate(d.openActivity()), chromedp.WaitVisible(`#confirming button`))
			c := d.client("c")
			answer := c.act(shift)
			d.until("the notification is there", func() bool { return len(d.notifications()) == 1 })
			frame := d.notifications()["c wants to run computer"].frame
			_, rows := d.openMenu(d.session())
			line := d.find(rows, "c: computer").at
			d.page(ctx, chromedp.WaitVisible(`#pending article`), chromedp.Evaluate[chromedp.Void](`
				window.gone = 0;
				new MutationObserver(() => { if (!window.gone && !document.querySelector('#pending article')) window.gone = Date.now(); }).observe(document.querySelector('#pending'), { childList: true });`))

			ended := tt.end(d, c, answer)
			after := map[string]time.Duration{}
			d.until("the prompt is off the screen", func() bool {
				for what, it := range map[string]eyes.Item{"notification": frame, "line in the menu": line} {
					if _, gone := after[what]; !gone && !d.eyes.Shows(t.Context(), it) {
						after[what] = time.Since(ended)
					}
				}
				return len(after) == 2
			})
			d.until("the prompt is off the page", func() bool {
				at := read(d, ctx, chromedp.Evaluate[int64](`window.gone`))
				after["page"] = time.UnixMilli(at).Sub(ended)
				return at > 0
			})
			for what, took := range after {
				t.Logf("%s: %s gone from the screen after %d ms", tt.name, what, took.Milliseconds())
			}
			d.until("it is on record", func() bool { return d.records("c") == tt.record })
		})
	}
}

// TestPersonJoined: an identical call that comes while the first waits is no
// second question; both are answered by the one run.
func TestPersonJoined(t *testing.T) {
	d := newPersonDesk(t, "")
	notices := d.eavesdrop()
	first := d.client("twice")
	second := first.again()
	one := first.act(shift)
	d.notification("twice wants to run computer")
	two := second.act(shift)
	other := d.client("other") // what it asks comes after what the second would have asked
	three := other.act(shift)
	d.notification("other wants to run computer")
	d.press("twice wants to run computer", "Allow once")
	d.press("other wants to run computer", "Deny") // nothing is sent before this is answered, too
	if a, b := d.answer(one), d.answer(two); strings.Contains(a, `"isError":true`) || strings.Contains(b, `"isError":true`) {
		t.Errorf("%.300s\n%.300s", a, b)
	}
	d.answer(three)
	if got := d.records("twice"); got != "start, ask, note joined by an identical call, verdict allowed: person at the notification, done ok" {
		t.Errorf("twice: %s", got)
	}
	d.nothingNotified()
	asked := 0
	for len(notices) > 0 {
		if n := <-notices; n.summary == "twice wants to run computer" {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}
