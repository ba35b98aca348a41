package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/godbus/dbus/v5"
	"github.com/jezek/xgb/xproto"

	"drawbridge/bridge"
	"drawbridge/bridge/control"
	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"
	"drawbridge/internal/dbusmenu"
	"drawbridge/internal/x11"
	hands "drawbridge/internal/x11/person"
	"drawbridge/internal/x11/person/eyes"
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
	bus   string // address of the session bus
	x     *x11.Conn
	hand  *hands.Person
	eyes  *eyes.Bus
	agent *exec.Cmd
	url   string
	audit string
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

// newPersonDesk makes the desktop and starts the agent, with config in its
// configuration besides.
func newPersonDesk(t *testing.T, config string) *personDesk {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a desktop")
	}
	for program, pkg := range map[string]string{"Xvfb": "xvfb", "dbus-daemon": "dbus", "xfce4-panel": "xfce4-panel", "/usr/libexec/at-spi-bus-launcher": "at-spi2-core"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (Debian package %s)", program, pkg)
		}
	}
	if found, _ := filepath.Glob("/usr/lib/*/xfce4/notifyd/xfce4-notifyd"); len(found) == 0 {
		t.Skip("xfce4-notifyd is not installed (Debian package xfce4-notifyd)")
	}
	d := &personDesk{t: t, dir: t.TempDir()}
	d.state = filepath.Join(d.dir, "state")
	xfconf := filepath.Join(d.dir, "config/xfce4/xfconf/xfce-perchannel-xml")
	for _, dir := range []string{xfconf, filepath.Join(d.dir, "run"), filepath.Join(d.dir, "tmp"), filepath.Join(d.dir, "bin")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.write(filepath.Join(xfconf, "xfce4-panel.xml"), panelConfig, 0o600)
	// The browser that the agent opens is the test: it finds the address here. It
	// runs for as long as it is held up.
	d.write(filepath.Join(d.dir, "bin", "xdg-open"), "#!/bin/sh\nprintf '%s\\n' \"$1\" > "+filepath.Join(d.dir, "browsed")+"\nwhile [ -e "+filepath.Join(d.dir, "browsing")+" ]; do sleep 0.1; done\n", 0o700)
	d.env = []string{
		"PATH=" + filepath.Join(d.dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + d.dir, "XDG_CONFIG_HOME=" + filepath.Join(d.dir, "config"),
		"XDG_RUNTIME_DIR=" + filepath.Join(d.dir, "run"), "XDG_DATA_HOME=" + d.dir, "XDG_CACHE_HOME=" + d.dir,
		"TMPDIR=" + filepath.Join(d.dir, "tmp"), "LANG=C.UTF-8",
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
	t.Cleanup(d.x.Close)
	if d.hand, err = hands.Open(t.Context(), display); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.hand.Close)

	bus := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address", "--address=unix:dir="+filepath.Join(d.dir, "run"))
	out, err := bus.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.start(bus)
	d.bus = readLine(t, out)
	d.env = append(d.env, "DBUS_SESSION_BUS_ADDRESS="+d.bus)
	if d.eyes, err = eyes.Open(t.Context(), d.bus); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.eyes.Close() })
	d.start(exec.Command("xfce4-panel", "--disable-wm-check"))
	if _, err := exec.LookPath("xterm"); err == nil { // something to look at
		d.start(exec.Command("xterm", "-geometry", "80x24+60+90", "-e", "printf 'A program on the desktop of the person.\\n'; exec cat"))
	}

	d.write(filepath.Join(d.dir, "config.yaml"), "listen: 127.0.0.1:0\n"+config, 0o600)
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

// move moves the mouse, by its own device, until the pointer is there: the server
// may make a movement larger or smaller.
func (d *personDesk) move(to image.Point) {
	d.t.Helper()
	d.until(fmt.Sprintf("the pointer is at %v", to), func() bool {
		at, err := xproto.QueryPointer(d.x.Conn, d.x.Root).Reply()
		if err != nil {
			d.t.Fatal(err)
		}
		dx, dy := to.X-int(at.RootX), to.Y-int(at.RootY)
		if dx == 0 && dy == 0 {
			return true
		}
		if err := d.hand.Move(dx, dy); err != nil {
			d.t.Fatal(err)
		}
		return false
	})
}

// click is the person's, on the mouse.
func (d *personDesk) click(at image.Point) {
	d.t.Helper()
	d.move(at)
	time.Sleep(100 * time.Millisecond) // as a hand has it; toolkits look at hovering first
	for _, down := range []bool{true, false} {
		if err := d.hand.Button(1, down); err != nil {
			d.t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// read is how long the person looks at something before they answer: longer than
// what does not count.
func (d *personDesk) read() { time.Sleep(time.Second) }

// Programs, as they name themselves to assistive technologies.
const (
	notifyDaemon = "xfce4-notifyd"
	trayPlugin   = "wrapper-2.0" // the panel runs it as a program of its own
	panelProgram = "xfce4-panel"
)

func (d *personDesk) showing(app string) []eyes.Item {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	items, err := d.eyes.Showing(ctx, app)
	if err != nil {
		d.t.Fatal(err)
	}
	return items
}

// noticeOnScreen is a notification on the screen.
type noticeOnScreen struct {
	frame   eyes.Item
	buttons map[string]eyes.Item // by their labels
}

// notifications are those on the screen, the buttons and the frame of each found
// by where they are.
func (d *personDesk) notifications() map[string]noticeOnScreen {
	d.t.Helper()
	items := d.showing(notifyDaemon)
	out := map[string]noticeOnScreen{}
	for _, f := range items {
		if f.Role != "frame" {
			continue
		}
		n, summary := noticeOnScreen{f, map[string]eyes.Item{}}, ""
		for _, it := range items {
			switch {
			case !it.At.In(f.At):
			case it.Role == "push button":
				n.buttons[it.Name] = it
			case it.Role == "label" && summary == "": // the summary is the uppermost
				summary = it.Name
			}
		}
		out[summary] = n
	}
	return out
}

// notification waits for the one with this summary, until it stands still with
// all its buttons, and has read it.
func (d *personDesk) notification(summary string) noticeOnScreen {
	d.t.Helper()
	var n noticeOnScreen
	d.until("there is a notification "+summary, func() bool {
		before := n.frame
		n = d.notifications()[summary]
		return n.frame.At == before.At && len(n.buttons) > 1
	})
	d.read()
	return n
}

// press presses a button of a notification.
func (d *personDesk) press(summary, button string) {
	d.t.Helper()
	b, ok := d.notification(summary).buttons[button]
	if !ok {
		d.t.Fatalf("the notification %q has no button %q", summary, button)
	}
	d.click(b.Middle())
}

// nothingNotified waits until no notification is on the screen.
func (d *personDesk) nothingNotified() {
	d.t.Helper()
	d.until("no notification is left", func() bool { return len(d.notifications()) == 0 })
}

// session is a connection to the session bus.
func (d *personDesk) session() *dbus.Conn {
	d.t.Helper()
	conn, err := dbus.Connect(d.bus)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// menuName is the name under which the agent's status item is on the bus.
func (d *personDesk) menuName() string {
	return fmt.Sprintf("org.kde.StatusNotifierItem-%d-1", d.agent.Process.Pid)
}

// menu is what the panel was told to show.
func (d *personDesk) menu(conn *dbus.Conn) []dbusmenu.Item {
	d.t.Helper()
	items, err := dbusmenu.Read(d.t.Context(), conn, d.menuName())
	if err != nil {
		d.t.Fatal(err)
	}
	return items
}

// row is a line of a menu on the screen.
type row struct {
	dbusmenu.Item
	at eyes.Item
}

// rows are the lines that a menu's window shows. The panel has their labels from
// items, and does not pass them on to assistive technologies once they change; so
// the places come from there and the labels from items. Nil while the two do not
// fit together: the panel draws yet.
func (d *personDesk) rows(window eyes.Item, items []dbusmenu.Item) []row {
	var out []row
	for _, it := range d.showing(trayPlugin) {
		switch {
		case !it.At.In(window.At) || it.At == window.At:
		case it.Role == "separator" || strings.HasSuffix(it.Role, "menu item") || it.Role == "menu":
			out = append(out, row{at: it})
		}
	}
	if len(out) != len(items) {
		return nil
	}
	for i := range out {
		out[i].Item = items[i]
		if items[i].Separator != (out[i].at.Role == "separator") {
			return nil
		}
	}
	return out
}

// menuWindows are the windows of the tray's menu and its sub-menu, the first
// opened first.
func (d *personDesk) menuWindows() []eyes.Item {
	return slices.DeleteFunc(d.showing(trayPlugin), func(it eyes.Item) bool { return it.Role != "window" })
}

// openMenu opens the tray's menu by a click on the icon, and returns its lines.
func (d *personDesk) openMenu(conn *dbus.Conn) (window eyes.Item, rows []row) {
	d.t.Helper()
	d.until("the tray's menu is open", func() bool {
		// The icon is the innermost of what the panel has.
		items := d.showing(panelProgram)
		if len(items) == 0 {
			return false
		}
		icon := slices.MinFunc(items, func(a, b eyes.Item) int { return cmp.Compare(a.At.Dx()*a.At.Dy(), b.At.Dx()*b.At.Dy()) })
		d.click(icon.Middle())
		for range 100 {
			if all := d.menuWindows(); len(all) > 0 {
				window = all[0]
				return true
			}
			time.Sleep(50 * time.Millisecond)
		}
		return false
	})
	d.until("the tray's menu is drawn", func() bool {
		rows = d.rows(window, d.menu(conn))
		return rows != nil
	})
	return window, rows
}

// find returns the line whose label begins so.
func (d *personDesk) find(rows []row, label string) row {
	d.t.Helper()
	i := slices.IndexFunc(rows, func(r row) bool { return strings.HasPrefix(r.Label, label) })
	if i < 0 {
		d.picture("failed")
		d.t.Fatalf("no line %q in the menu: %v", label, rows)
	}
	return rows[i]
}

// openPrompt opens the tray's menu and in it the sub-menu whose label begins so.
func (d *personDesk) openPrompt(label string) []row {
	d.t.Helper()
	conn := d.session()
	window, rows := d.openMenu(conn)
	prompt := d.find(rows, label)
	d.move(prompt.at.Middle())
	var sub []row
	d.until("the sub-menu is drawn", func() bool {
		for _, w := range d.menuWindows() {
			if w.At != window.At {
				sub = d.rows(w, prompt.Sub)
			}
		}
		return sub != nil
	})
	d.read()
	return sub
}

// choose clicks the line whose label begins so.
func (d *personDesk) choose(rows []row, label string) {
	d.t.Helper()
	d.click(d.find(rows, label).at.Middle())
}

// client is an MCP client of the agent.
type client struct {
	d      *personDesk
	secret string
	conn   *wire.Conn
	next   int
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
	return (&client{d: d, secret: secret}).again()
}

// again is another connection of the same client.
func (c *client) again() *client {
	d := c.d
	d.t.Helper()
	conn, err := wire.Dial(d.t.Context(), d.url, c.secret)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	n := &client{d: d, secret: c.secret, conn: conn}
	<-n.send("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	n.notify("notifications/initialized", "{}")
	return n
}

func (c *client) notify(method, params string) {
	c.d.t.Helper()
	if err := c.conn.WriteFrame(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)); err != nil {
		c.d.t.Fatal(err)
	}
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

// shoot writes a picture of the page in light or dark, where pictures are wanted.
func (d *personDesk) shoot(ctx context.Context, scheme, name string, width, height int64) {
	d.t.Helper()
	if *pictures == "" {
		return
	}
	if scheme != "light" {
		name += "-" + scheme
	}
	d.page(ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}), chromedp.EmulateViewport(width, height), chromedp.Sleep(500*time.Millisecond))
	png := read(d, ctx, chromedp.CaptureScreenshot())
	d.write(filepath.Join(*pictures, name+".png"), string(png), 0o644)
}

// openActivity has the running agent open its page, and returns the address that
// the browser is given: as everybody can read it off a command line.
func (d *personDesk) openActivity() string {
	d.t.Helper()
	browsed := filepath.Join(d.dir, "browsed")
	if err := os.Remove(browsed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(d.dir, "drawbridge"), "--state", d.state, "activity")
	cmd.Env = d.env
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		d.t.Fatalf("%v: %s", err, out)
	}
	var address string
	d.until("the browser is opened", func() bool {
		b, err := os.ReadFile(browsed)
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
	conn := d.session()
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
