package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
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
	call = three.act(`[{"type":"click","x":200,"y":300},{"type":"drag","path":[[120,200],[420,200],[420,260]]},{"type":"keypress","keys":["SHIFT"]}]`)
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
	d.shoot(ctx, "page", 1280, 900)
	d.shoot(ctx, "page-narrow", 390, 844)
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
