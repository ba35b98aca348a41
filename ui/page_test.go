package ui

import (
	"context"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/rs/zerolog"

	"drawbridge/bridge/gate"
)

// TestPageInBrowser: in a real browser the page fits wide and narrow, in light
// and dark, can be used with the keyboard, and shows what programs say as text.
func TestPageInBrowser(t *testing.T) {
	const nasty = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed (Debian package chromium)")
	}
	r := &pageRig{t: t, history: &History{}, native: &nativeDesk{}, models: Models{Hosts: []ModelHost{{nasty, false}}}}
	r.gateAgent = newGateAgent(gate.Options{Surfaces: []gate.Surface{r.native}})
	var address string
	r.activity = NewActivity(t.Context(), ActivityOptions{
		Agent: r, Previews: &Previews{}, History: r.history, Log: zerolog.Nop(),
		Browse: func(_ context.Context, url string, _ <-chan struct{}) error { address = url; return nil },
	})
	server := httptest.NewServer(r.activity)
	t.Cleanup(server.Close)
	if err := r.activity.Open(server.URL); err != nil {
		t.Fatal(err)
	}
	asked, cancel := context.WithCancel(t.Context())
	defer cancel()
	var verdicts []<-chan gate.Verdict
	for i, client := range []string{nasty, strings.Repeat("w", 200)} { // in this order
		verdicts = append(verdicts, r.ask(asked, client))
		for len(r.gate.List()) <= i {
			time.Sleep(time.Millisecond)
		}
	}

	home := t.TempDir()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.WSURLReadTimeout(2*time.Minute), chromedp.Env("HOME="+home, "TMPDIR="+home))
	ctx, end := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil { // starts it
		t.Fatal(err)
	}
	ctx, end = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(end)
	do := func(actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			t.Fatal(err)
		}
	}
	evaluate := func(js string) string {
		t.Helper()
		v, err := chromedp.Run(ctx, chromedp.Evaluate[string](js))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	do(chromedp.Navigate(address), chromedp.WaitVisible(`#pending article`), chromedp.WaitVisible(`#confirming button`))
	if got := evaluate(`document.querySelector('#pending h3').textContent`); !strings.HasPrefix(got, nasty) {
		t.Errorf("%q", got)
	}
	if got := evaluate(`String(window.hacked) + document.querySelectorAll('#pending img, #pending script').length + document.cookie + localStorage.length + sessionStorage.length`); got != "undefined000" {
		t.Errorf("%q", got)
	}
	grounds := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}))
		for _, width := range []int64{1280, 390} {
			do(chromedp.EmulateViewport(width, 844))
			if got := evaluate(`String(document.documentElement.scrollWidth <= window.innerWidth)`); got != "true" {
				t.Errorf("%s, %d wide: the page is wider", scheme, width)
			}
		}
		grounds[scheme] = evaluate(`getComputedStyle(document.body).backgroundColor + getComputedStyle(document.body).color`)
	}
	if grounds["light"] == grounds["dark"] {
		t.Errorf("light and dark are the same: %v", grounds)
	}
	// With the keyboard alone: from the top to the button that asks, and press it.
	for range 20 {
		do(chromedp.KeyEvent(kb.Tab))
		if evaluate(`document.activeElement.textContent`) == "Let this page answer" {
			break
		}
	}
	if got := evaluate(`getComputedStyle(document.activeElement).outlineStyle`); got != "solid" {
		t.Errorf("the focus shows as %q", got)
	}
	do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`#number`))
	if n := evaluate(`document.querySelector('#number').textContent`); len(n) != 2 {
		t.Errorf("number %q", n)
	}
	// The person picks the number natively; then a verdict is given by the keyboard
	// alone, from the top of the page: each stop shows that it has the focus.
	confirm := r.native.last()
	if err := confirm.Answer(gate.Answer{Scope: gate.Once, Choice: evaluate(`document.querySelector('#number').textContent`), By: "desk"}); err != nil {
		t.Fatal(err)
	}
	do(chromedp.WaitVisible(chromedp.Search(`//button[.="Allow once" and not(@disabled)]`)), chromedp.Evaluate[chromedp.Void](`document.querySelector('h1').tabIndex = -1; document.querySelector('h1').focus();`))
	const where = `(() => { const e = document.activeElement; return e.tagName + ' ' + (e.placeholder || e.textContent) + (getComputedStyle(e).outlineStyle === 'solid' ? '' : ', which does not show'); })()`
	var stops []string
	tab := func(until string) {
		t.Helper()
		for range 20 {
			do(chromedp.KeyEvent(kb.Tab))
			at := evaluate(where)
			stops = append(stops, at)
			if at == until {
				return
			}
		}
		t.Fatalf("the keyboard comes by %q, and to no %q", stops, until)
	}
	tab("BUTTON Allow once")
	if want := []string{"BUTTON Stop now", "BUTTON Pause everything", "PRE {}", "BUTTON Deny", "BUTTON Allow once"}; !slices.Equal(stops, want) {
		t.Errorf("the keyboard comes by %q, want %q", stops, want)
	}
	time.Sleep(reflex) // to have read it
	do(chromedp.KeyEvent(kb.Enter))
	select {
	case v := <-verdicts[0]:
		if v.Outcome != gate.Allowed || v.By != "person at the activity page" {
			t.Errorf("%+v", v)
		}
	case <-ctx.Done():
		t.Fatalf("Enter on the button answered nothing; the page says %q", evaluate(`document.querySelector('#message').textContent`))
	}
	// What was answered goes away, and the focus is on no answer to something else.
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](`document.querySelectorAll('#pending article').length === 1`)); err != nil {
		t.Fatal(err)
	}
	if got := evaluate(where); got != "H2 Waiting for you" {
		t.Errorf("after the verdict the focus is on %q", got)
	}
	tab("INPUT Reason for a denial")
	do(chromedp.KeyEvent("not now"))
	for range 10 {
		do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)))
		if evaluate(where) == "BUTTON Deny" {
			break
		}
	}
	do(chromedp.KeyEvent(" "))
	select {
	case v := <-verdicts[1]:
		if v.Outcome != gate.Denied || v.Message != "a person denied this call: not now" {
			t.Errorf("%+v", v)
		}
	case <-ctx.Done():
		t.Fatalf("Space on the button answered nothing; the focus is on %q", evaluate(where))
	}
	// The model switch.
	if got := evaluate(`document.querySelector('#models').textContent`); !strings.Contains(got, "Models: allowed") || !strings.Contains(got, nasty+": may call its model") {
		t.Errorf("the model switch shows %q", got)
	}
	do(chromedp.Click(`#models button`))
	for !slices.Contains(r.deeds(), string(VerbNoModels)) {
		select {
		case <-ctx.Done():
			t.Fatalf("denying the models did %q", r.deeds())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
