package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/godbus/dbus/v5"
	"github.com/jezek/xgb/xproto"
	"github.com/jezek/xgb/xtest"

	"drawbridge/bridge"
	"drawbridge/bridge/control"
	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"
	"drawbridge/internal/x11"
)

var pictures = flag.String("pictures", "", "write pictures of menu, notification and page into this `directory`")

// patience is for programs that the machine may be slow to run.
const patience = 2 * time.Minute

// personDesk is a desktop with a panel and a notification daemon, an agent that
// drives it, and a person in front of it.
type personDesk struct {
	t     *testing.T
	dir   string
	state string
	env   []string
	x     *x11.Conn
	agent *exec.Cmd
	url   string
	audit string
	// answered are the notifications that the person has looked at: one that was
	// withdrawn may stand there for a while.
	answered map[xproto.Window]bool
}

// panelConfig is a panel at the top with nothing but status items.
const panelConfig = `<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
  <property name="configver" type="int" value="2"/>
  <property name="panels" type="array">
    <value type="int" value="1"/>
    <property name="panel-1" type="empty">
      <property name="position" type="string" value="p=6;x=0;y=0"/>
      <property name="length" type="uint" value="100"/>
      <property name="position-locked" type="bool" value="true"/>
      <property name="size" type="uint" value="30"/>
      <property name="plugin-ids" type="array"><value type="int" value="1"/></property>
    </property>
  </property>
  <property name="plugins" type="empty">
    <property name="plugin-1" type="string" value="systray">
      <property name="square-icons" type="bool" value="true"/>
    </property>
  </property>
</channel>
`

// personConfig gives a person on a slow machine time to answer.
const personConfig = "listen: 127.0.0.1:0\napprovals: {deadline: 15m}\n"

func newPersonDesk(t *testing.T) *personDesk {
	t.Helper()
	for program, pkg := range map[string]string{"Xvfb": "xvfb", "dbus-daemon": "dbus", "xfce4-panel": "xfce4-panel"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (Debian package %s)", program, pkg)
		}
	}
	if found, _ := filepath.Glob("/usr/lib/*/xfce4/notifyd/xfce4-notifyd"); len(found) == 0 {
		t.Skip("xfce4-notifyd is not installed (Debian package xfce4-notifyd)")
	}
	d := &personDesk{t: t, dir: t.TempDir(), answered: map[xproto.Window]bool{}}
	d.state = filepath.Join(d.dir, "state")
	xfconf := filepath.Join(d.dir, "config/xfce4/xfconf/xfce-perchannel-xml")
	for _, dir := range []string{xfconf, filepath.Join(d.dir, "run"), filepath.Join(d.dir, "tmp"), filepath.Join(d.dir, "bin")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.write(filepath.Join(xfconf, "xfce4-panel.xml"), panelConfig, 0o600)
	// The browser that the agent opens is the test: it finds the address here.
	d.write(filepath.Join(d.dir, "bin", "xdg-open"), "#!/bin/sh\nprintf '%s\\n' \"$1\" >> "+filepath.Join(d.dir, "browsed")+"\n", 0o700)
	d.env = []string{
		"PATH=" + filepath.Join(d.dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + d.dir, "XDG_CONFIG_HOME=" + filepath.Join(d.dir, "config"),
		"XDG_RUNTIME_DIR=" + filepath.Join(d.dir, "run"), "XDG_DATA_HOME=" + d.dir, "XDG_CACHE_HOME=" + d.dir,
		"TMPDIR=" + filepath.Join(d.dir, "tmp"), "LANG=C.UTF-8", "NO_AT_BRIDGE=1", "GTK_A11Y=none",
	}

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	xvfb := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset")
	xvfb.ExtraFiles = []*os.File{w}
	d.start(xvfb)
	w.Close()
	display := ":" + readLine(t, r)
	d.env = append(d.env, "DISPLAY="+display)
	if d.x, err = x11.Dial(t.Context(), display, nil); err != nil {
		t.Fatal(err)
	}
	if err := xtest.Init(d.x.Conn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.x.Close)

	bus := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address")
	out, err := bus.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.start(bus)
	d.env = append(d.env, "DBUS_SESSION_BUS_ADDRESS="+readLine(t, out))
	d.start(exec.Command("xfce4-panel", "--disable-wm-check"))
	if _, err := exec.LookPath("xterm"); err == nil { // something to look at
		d.start(exec.Command("xterm", "-geometry", "80x24+60+90", "-e", "printf 'A program on the desktop of the person.\\n'; exec cat"))
	}

	d.write(filepath.Join(d.dir, "config.yaml"), personConfig, 0o600)
	d.startAgent()
	return d
}

func readLine(t *testing.T, r io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func (d *personDesk) write(path, text string, mode os.FileMode) {
	d.t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		d.t.Fatal(err)
	}
}

// start starts a program that ends with the test, with all that it starts.
func (d *personDesk) start(cmd *exec.Cmd) *exec.Cmd {
	d.t.Helper()
	if cmd.Env == nil {
		cmd.Env = d.env
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return cmd
}

// startAgent builds the program, without the race detector since the library
// under the tray has races of its own, and runs it on the desktop until the test
// ends.
func (d *personDesk) startAgent() {
	d.t.Helper()
	program := filepath.Join(d.dir, "drawbridge")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	d.t.Cleanup(func() {
		d.stopAgent()
		if d.t.Failed() {
			text, _ := os.ReadFile(filepath.Join(d.dir, "agent.log"))
			d.t.Logf("the agent's log:\n%s", text)
		}
	})
	d.runAgent()
}

// stopAgent ends the agent as its quit does.
func (d *personDesk) stopAgent() {
	d.t.Helper()
	if err := d.agent.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Error(err)
	}
	hangs := time.AfterFunc(patience, func() { _ = d.agent.Process.Kill() })
	defer hangs.Stop()
	if err := d.agent.Wait(); err != nil {
		d.t.Errorf("the agent ended with %v", err)
	}
}

func (d *personDesk) runAgent() {
	d.t.Helper()
	d.agent = exec.Command(filepath.Join(d.dir, "drawbridge"), "--config", filepath.Join(d.dir, "config.yaml"), "--state", d.state, "run", "--backend", "native")
	log, err := os.Create(filepath.Join(d.dir, "agent.log"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	d.agent.Stderr, d.agent.Env = log, d.env
	if err := d.agent.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.until("the agent serves", func() bool {
		_, err := control.Dial(d.t.Context(), d.state)
		return err == nil
	})
	d.until("the person can be asked at tray and notification", func() bool {
		text, err := os.ReadFile(log.Name())
		return err == nil && strings.Contains(string(text), `"surface":"tray"`) && strings.Contains(string(text), `"surface":"notification"`)
	})
	end, err := bridge.ReadEndpoint(d.state)
	if err != nil {
		d.t.Fatal(err)
	}
	d.url = end.URL
	d.audit = auditDir(d.state)
}

// until waits until something is so.
func (d *personDesk) until(what string, so func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.picture("failed")
			d.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// picture writes a picture of the screen where the test was asked for one.
func (d *personDesk) picture(name string) {
	if *pictures == "" {
		return
	}
	cmd := exec.Command("scrot", "-o", filepath.Join(*pictures, name+".png"))
	cmd.Env = d.env
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Errorf("scrot: %v: %s", err, out)
	}
}

// window is a window on the screen.
type window struct {
	id         xproto.Window
	x, y, w, h int
}

// windows lists what is on the screen of a program, by the class of its windows.
func (d *personDesk) windows(class string) []window {
	d.t.Helper()
	tree, err := xproto.QueryTree(d.x.Conn, d.x.Root).Reply()
	if err != nil {
		d.t.Fatal(err)
	}
	var out []window
	for _, id := range tree.Children {
		attributes, err := xproto.GetWindowAttributes(d.x.Conn, id).Reply()
		if err != nil || attributes.MapState != xproto.MapStateViewable {
			continue // or it is gone meanwhile
		}
		name, err := xproto.GetProperty(d.x.Conn, false, id, xproto.AtomWmClass, xproto.AtomString, 0, 100).Reply()
		if err != nil || !strings.Contains(strings.ToLower(string(name.Value)), class) {
			continue
		}
		g, err := xproto.GetGeometry(d.x.Conn, xproto.Drawable(id)).Reply()
		if err != nil || g.Width < 20 || g.Height < 20 || g.X < 0 {
			continue
		}
		out = append(out, window{id, int(g.X), int(g.Y), int(g.Width), int(g.Height)})
	}
	return out
}

func (d *personDesk) move(x, y int) {
	d.t.Helper()
	if err := xtest.FakeInputChecked(d.x.Conn, xproto.MotionNotify, 0, 0, d.x.Root, int16(x), int16(y), 0).Check(); err != nil {
		d.t.Fatal(err)
	}
}

// click is the person's: from a connection that the agent knows nothing of.
func (d *personDesk) click(x, y int) {
	d.t.Helper()
	d.move(x, y)
	time.Sleep(50 * time.Millisecond) // as a hand has it; toolkits look at hovering first
	for _, kind := range []byte{xproto.ButtonPress, xproto.ButtonRelease} {
		if err := xtest.FakeInputChecked(d.x.Conn, kind, 1, 0, d.x.Root, 0, 0, 0).Check(); err != nil {
			d.t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// notification waits for a new one on the screen that has stood still for long
// enough that an answer to it counts.
func (d *personDesk) notification() window {
	d.t.Helper()
	var w window
	var since time.Time
	d.until("there is a new notification", func() bool {
		now := window{}
		for _, n := range d.windows("notifyd") {
			if !d.answered[n.id] {
				now = n
			}
		}
		if now != w {
			w, since = now, time.Now()
		}
		return w.id != 0 && time.Since(since) > 700*time.Millisecond
	})
	d.answered[w.id] = true
	return w
}

// The buttons of a notification with three, from its lower right corner.
const (
	allowButton = 251
	denyButton  = 156
	buttonUp    = 31
	// Of one with three numbers and a wide last button.
	firstNumber = 355
	numberStep  = 92
)

func (d *personDesk) press(w window, button int) { d.click(w.x+w.w-button, w.y+w.h-buttonUp) }

// menus are the windows of the tray's menu and its sub-menu: the panel's plugin
// has them.
func (d *personDesk) menus() []window {
	var out []window
	for _, w := range d.windows("wrapper") {
		if w.h > 60 {
			out = append(out, w)
		}
	}
	return out
}

// openPrompt opens the tray's menu and the sub-menu of its first prompt.
func (d *personDesk) openPrompt() (sub window) {
	d.t.Helper()
	wait := func(pause time.Duration, so func() bool) bool {
		for end := time.Now().Add(pause); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if so() {
				return true
			}
		}
		return false
	}
	// Down the upper half of the menu, where prompts are, again and again and slower
	// each time: nothing tells that an item under the pointer has no sub-menu.
	y, pause := 0, 400*time.Millisecond
	d.until("the sub-menu of a prompt is open", func() bool {
		menus := d.menus()
		if len(menus) == 0 {
			d.click(15, 15)
			// Not again too soon: that would close a menu that comes late.
			wait(patience/4, func() bool { return len(d.menus()) > 0 })
			return false
		}
		menu := menus[0]
		if y += 8; y >= menu.h/2 {
			y, pause = 20, 2*pause
		}
		d.move(menu.x+60, menu.y+y)
		return wait(pause, func() bool {
			for _, w := range d.menus() {
				if w.id != menu.id {
					sub = w
					return true
				}
			}
			return false
		})
	})
	return sub
}

// choose clicks one of the rows of a menu without lines.
func (d *personDesk) choose(menu window, row, rows int) {
	d.t.Helper()
	const edge = 4
	d.click(menu.x+60, menu.y+edge+(2*row+1)*(menu.h-2*edge)/(2*rows))
}

// client is an MCP client of the agent.
type client struct {
	d    *personDesk
	name string
	conn *wire.Conn
	next int
}

// client adds a client and connects it.
func (d *personDesk) client(name string) *client {
	d.t.Helper()
	store, err := token.Open(d.state)
	if err != nil {
		d.t.Fatal(err)
	}
	secret, err := store.Add(name, token.Client, "")
	if err != nil {
		d.t.Fatal(err)
	}
	conn, err := wire.Dial(d.t.Context(), d.url, secret)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	c := &client{d: d, name: name, conn: conn}
	<-c.send("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	if err := conn.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		d.t.Fatal(err)
	}
	return c
}

// send sends a request and returns where its answer comes; one at a time.
func (c *client) send(method, params string) <-chan string {
	c.d.t.Helper()
	c.next++
	if err := c.conn.WriteFrame(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.next, method, params)); err != nil {
		c.d.t.Fatal(err)
	}
	out := make(chan string, 1)
	go func() {
		defer close(out)
		for {
			b, err := c.conn.ReadFrame(1 << 26)
			if err != nil {
				return
			}
			if strings.Contains(string(b[:min(len(b), 60)]), `"id":`) {
				out <- string(b)
				return
			}
		}
	}()
	return out
}

func (c *client) act(actions string) <-chan string {
	return c.send("tools/call", `{"name":"computer","arguments":{"actions":`+actions+`}}`)
}

// answer waits for one.
func (d *personDesk) answer(c <-chan string) string {
	d.t.Helper()
	select {
	case s, ok := <-c:
		if !ok {
			d.t.Fatal("the connection was closed")
		}
		return s
	case <-time.After(patience):
		d.picture("failed")
		d.t.Fatal("no answer to the call")
		panic("unreached")
	}
}

// records lists what the audit has of a client: phase and outcome.
func (d *personDesk) records(client string) string {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.audit, "audit.jsonl"))
	if err != nil {
		d.t.Fatal(err)
	}
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var r struct{ Phase, Client, Outcome string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			d.t.Fatal(err)
		}
		if r.Client == client {
			out = append(out, strings.TrimSpace(r.Phase+" "+r.Outcome))
		}
	}
	return strings.Join(out, ", ")
}

func once(surface string) string {
	return "start, ask, verdict allowed: person at the " + surface + ", done ok"
}

// browser is a page in a real Chromium.
func (d *personDesk) browser() context.Context {
	d.t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		d.t.Skip("chromium is not installed (Debian package chromium)")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(patience), chromedp.WindowSize(1280, 900),
		chromedp.Env("HOME="+d.dir, "TMPDIR="+filepath.Join(d.dir, "tmp")))
	ctx, cancel := chromedp.NewExecAllocator(d.t.Context(), opts...)
	d.t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	d.t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil { // starts it
		d.t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(ctx, 3*patience)
	d.t.Cleanup(cancel)
	return ctx
}

// page runs actions in the browser.
func (d *personDesk) page(ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	d.t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		d.picture("failed")
		d.t.Fatal(err)
	}
}

// read gets a value out of the page.
func read[T any](d *personDesk, ctx context.Context, a chromedp.Action[T]) T {
	d.t.Helper()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		d.t.Fatal(err)
	}
	return v
}

// shoot writes a picture of the page, where pictures are wanted.
func (d *personDesk) shoot(ctx context.Context, name string, width, height int64) {
	d.t.Helper()
	if *pictures == "" {
		return
	}
	d.page(ctx, chromedp.EmulateViewport(width, height), chromedp.Sleep(500*time.Millisecond))
	png := read(d, ctx, chromedp.CaptureScreenshot())
	d.write(filepath.Join(*pictures, name+".png"), string(png), 0o644)
}

const shift = `[{"type":"keypress","keys":["SHIFT"]}]`

// TestPersonAnswers: one call is allowed by a click on the notification, another
// in the tray's menu, a third on the page once it was confirmed; each runs once,
// and a late answer elsewhere runs nothing and says so.
func TestPersonAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a desktop")
	}
	d := newPersonDesk(t)

	one := d.client("one")
	call := one.act(shift)
	n := d.notification()
	d.picture("notification")
	d.press(n, allowButton)
	if got := d.answer(call); !strings.Contains(got, `"isError":false`) && strings.Contains(got, `"isError":true`) {
		t.Errorf("%.500s", got)
	}
	d.until("one's call is on record", func() bool { return d.records("one") == once("notification") })

	two := d.client("two")
	call = two.act(shift)
	d.notification()
	sub := d.openPrompt()
	d.picture("menu")
	// Who runs what, the arguments, the rule; allow once is the fourth of nine.
	d.choose(sub, 3, 9)
	d.answer(call)
	d.until("two's call is on record", func() bool { return d.records("two") == once("tray") })
	d.until("the notification is withdrawn", func() bool { return len(d.windows("notifyd")) == 0 })

	// The page: opened by the running agent, confirmed by a click on the number.
	ctx := d.browser()
	address := d.openActivity()
	three := d.client("three")
	call = three.act(`[{"type":"screenshot"}]`)
	d.press(d.notification(), allowButton)
	d.answer(call)
	call = three.act(`[{"type":"click","x":200,"y":300},{"type":"drag","path":[[120,200],[420,200],[420,260]]},{"type":"keypress","keys":["SHIFT"]}]`)
	d.notification()
	notified := d.eavesdrop()
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
	buttons := d.notice(notified, "A page asks to answer for you").actions
	n = d.notification()
	d.picture("confirm")
	d.press(n, firstNumber-numberStep*(slices.Index(buttons, number)/2)) // name and text by turns
	d.page(ctx, chromedp.WaitVisible(chromedp.Search(`//button[.="Allow once" and not(@disabled)]`)))
	d.shoot(ctx, "page", 1280, 900)
	d.shoot(ctx, "page-narrow", 390, 844)
	time.Sleep(500 * time.Millisecond) // to have read it
	d.page(ctx, chromedp.Click(chromedp.Search(`//button[.="Allow once"]`)))
	d.answer(call)
	d.until("three's call is on record", func() bool { return d.records("three") == once("notification")+", "+once("activity page") })
	d.until("the notification is withdrawn", func() bool { return len(d.windows("notifyd")) == 0 })

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

// openActivity has the running agent open its page, and returns the address that
// the browser is given: as everybody can read it off a command line.
func (d *personDesk) openActivity() string {
	d.t.Helper()
	cmd := exec.Command(filepath.Join(d.dir, "drawbridge"), "--state", d.state, "activity")
	cmd.Env = d.env
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		d.t.Fatalf("%v: %s", err, out)
	}
	var address string
	d.until("the browser is opened", func() bool {
		b, err := os.ReadFile(filepath.Join(d.dir, "browsed"))
		address = strings.TrimSpace(string(b))
		return err == nil && strings.HasSuffix(string(b), "\n")
	})
	return address
}

// notice is a notification as it goes over the bus.
type notice struct {
	summary, body string
	actions       []string
}

// eavesdrop reads the notifications as they go over the bus, as the person reads
// them on the screen.
func (d *personDesk) eavesdrop() <-chan notice {
	d.t.Helper()
	address := ""
	for _, e := range d.env {
		if v, ok := strings.CutPrefix(e, "DBUS_SESSION_BUS_ADDRESS="); ok {
			address = v
		}
	}
	conn, err := dbus.Connect(address)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.BusObject().Call("org.freedesktop.DBus.Monitoring.BecomeMonitor", 0,
		[]string{"interface='org.freedesktop.Notifications',member='Notify'"}, uint32(0)).Err; err != nil {
		d.t.Fatal(err)
	}
	messages := make(chan *dbus.Message, 100)
	conn.Eavesdrop(messages)
	out := make(chan notice, 100)
	go func() {
		for m := range messages {
			var n notice
			if len(m.Body) > 5 && dbus.Store(m.Body[3:6], &n.summary, &n.body, &n.actions) == nil {
				out <- n
			}
		}
	}()
	return out
}

// notice waits for a notification of this summary.
func (d *personDesk) notice(notices <-chan notice, summary string) notice {
	d.t.Helper()
	late := time.After(patience)
	for {
		select {
		case n := <-notices:
			if n.summary == summary {
				return n
			}
		case <-late:
			d.picture("failed")
			d.t.Fatalf("nothing says %q", summary)
		}
	}
}

// TestPersonHoldsInput: while a prompt is up, an allowed batch of another client
// that would click on it is held, and runs after the person's verdict.
func TestPersonHoldsInput(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a desktop")
	}
	d := newPersonDesk(t)
	allowed, other := d.client("allowed"), d.client("other")
	call := allowed.act(`[{"type":"screenshot"}]`)
	d.press(d.notification(), allowButton)
	d.answer(call)
	call = allowed.act(shift)
	d.notification()
	d.choose(d.openPrompt(), 5, 9) // for 15 minutes
	d.answer(call)
	d.until("nothing is shown", func() bool { return len(d.windows("notifyd")) == 0 })

	asked := other.act(shift)
	n := d.notification()
	held := allowed.act(fmt.Sprintf(`[{"type":"click","x":%d,"y":%d}]`, n.x+n.w-allowButton, n.y+n.h-buttonUp))
	d.until("the other batch has begun", func() bool { return strings.Count(d.records("allowed"), "start") == 3 })
	select {
	case got := <-held:
		t.Fatalf("a batch acted while a person was asked: %.300s", got)
	case got := <-asked:
		t.Fatalf("the prompt was answered by a program: %.300s", got)
	case <-time.After(2 * time.Second):
	}
	d.press(n, denyButton)
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

// TestAttack: a program of the same user, with every token, every route and
// verb, the page's code read off a command line, every file of ours edited, the
// agent restarted, and an agent of its own. The person answers nothing but no.
// Nothing is approved, nothing is loosened, and each attempt shows.
func TestAttack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a desktop")
	}
	d := newPersonDesk(t)
	notices := d.eavesdrop()
	secret, err := token.ReadDefault(d.state)
	if err != nil {
		t.Fatal(err)
	}
	attacker := d.client("attacker")
	call := attacker.act(shift)
	d.notice(notices, "attacker wants to run computer")

	// Every route with the tokens of clients, which are all tokens on disk.
	base := "http" + strings.TrimSuffix(strings.TrimPrefix(d.url, "ws"), "/mcp")
	request := func(method, path, token, body string) (int, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+token)
		q.Header.Set("Content-Type", "application/json")
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(b)
	}
	for _, path := range []string{"answer", "confirm", "resume", "revoke", "state", "session"} {
		for _, method := range []string{"GET", "POST", "PUT"} {
			if status, body := request(method, "/activity/"+path, secret, `{"id":"a-1","answer":"always","code":"x"}`); status < 400 {
				t.Errorf("%s %s: %d %s", method, path, status, body)
			}
		}
	}
	for _, path := range []string{"/approve", "/host-llm", "/rules", "/status"} {
		request("POST", path, secret, `{"id":"a-1","then":"allow"}`)
	}

	// Every verb of the control socket, and some that are none.
	control, err := control.Dial(t.Context(), d.state)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{verbShow, verbPause, verbReload, verbTools, verbRules, verbTokens, verbConfig, "resume", "answer", "approve", "accept", "confirm"} {
		_ = control.Do(t.Context(), verb, map[string]string{"id": "a-1", "answer": "once"}, nil, nil)
	}
	d.notice(notices, "Everything is paused")

	// The page, with its code stolen: it shows, and answers nothing.
	address := d.openActivity()
	_, code, _ := strings.Cut(address, "#")
	status, body := request("POST", "/activity/session", "", `{"code":"`+code+`"}`)
	var page struct{ Token, Number string }
	if err := json.Unmarshal([]byte(body), &page); err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	status, body = request("POST", "/activity/confirm", page.Token, "{}")
	if err := json.Unmarshal([]byte(body), &page); err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	asked := d.notice(notices, "A page asks to answer for you")
	if !slices.Contains(asked.actions, page.Number) {
		t.Errorf("%v, shown %s", asked.actions, page.Number)
	}
	for i := range 20 {
		for _, answer := range []string{"once", "15m", "always"} {
			if status, body := request("POST", "/activity/answer", page.Token, fmt.Sprintf(`{"id":"a-%d","answer":%q}`, i, answer)); status != 403 {
				t.Errorf("a-%d %s: %d %s", i, answer, status, body)
			}
		}
	}
	request("POST", "/activity/resume", page.Token, "{}")

	// Every file that loosens, read again.
	loose := "- {tool: \"*\", then: allow}\n"
	d.write(filepath.Join(d.state, rulesName), loose, 0o600)
	d.write(filepath.Join(d.dir, "config.yaml"), personConfig+"rules:\n"+loose, 0o600)
	if err := control.Do(t.Context(), verbReload, nil, nil, nil); err != nil {
		t.Errorf("reload: %v", err)
	}
	if n := d.notice(notices, "Allow more than before?"); !strings.Contains(n.body, "then: allow") {
		t.Errorf("%q", n.body)
	}
	if _, paused := d.pausedNow(secret); !paused {
		t.Error("it goes on")
	}
	if got := d.records("attacker"); got != "start, ask" {
		t.Errorf("attacker: %s", got)
	}

	// The agent started anew: what was pending is denied, what loosens asks again.
	d.stopAgent()
	<-call
	d.runAgent()
	d.notice(notices, "Allow more than before?")
	again := d.client("again")
	call = again.act(shift)
	d.notice(notices, "again wants to run computer")

	// An agent of its own, which allows everything, is not the person's.
	own := exec.Command(filepath.Join(d.dir, "drawbridge"), "--config", filepath.Join(d.dir, "own.yaml"), "--state", filepath.Join(d.dir, "own"),
		"run", "--backend", "simulated", "--allow", "*", "--listen", "127.0.0.1:0")
	d.write(filepath.Join(d.dir, "own.yaml"), "{}\n", 0o600)
	d.start(own)
	d.until("the attacker's agent serves", func() bool {
		_, err := bridge.ReadEndpoint(filepath.Join(d.dir, "own"))
		return err == nil
	})
	select {
	case got := <-call:
		t.Errorf("answered: %.300s", got)
	case <-time.After(time.Second):
	}
	for _, name := range []string{"attacker", "again"} {
		if got := d.records(name); strings.Contains(got, "allowed") || strings.Contains(got, "done ok") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// pausedNow asks the agent's status.
func (d *personDesk) pausedNow(secret string) (pending int, paused bool) {
	d.t.Helper()
	q, err := http.NewRequestWithContext(d.t.Context(), "GET", "http"+strings.TrimSuffix(strings.TrimPrefix(d.url, "ws"), "/mcp")+"/status", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+secret)
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Body.Close()
	var st bridge.Status
	if err := json.NewDecoder(r.Body).Decode(&st); err != nil {
		d.t.Fatal(err)
	}
	return st.Pending, st.Paused
}
