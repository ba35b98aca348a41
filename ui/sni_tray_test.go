//go:build linux && !race && !standin

// The library under the tray has races of its own, so this file is left out of
// runs with the race detector.

package ui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
	"github.com/rs/zerolog"

	"drawbridge/bridge/gate"
	"drawbridge/internal/dbusmenu"
)

// watcher is a StatusNotifierWatcher with a host, as a panel has one.
type watcher struct {
	items chan string // service and path of each item that registers
}

// RegisterStatusNotifierItem is part of the protocol.
func (w *watcher) RegisterStatusNotifierItem(service string, sender dbus.Sender) *dbus.Error {
	if strings.HasPrefix(service, "/") {
		service = string(sender)
	}
	w.items <- service
	return nil
}

// RegisterStatusNotifierHost is part of the protocol.
func (w *watcher) RegisterStatusNotifierHost(string) *dbus.Error { return nil }

func startWatcher(t *testing.T) (*watcher, *dbus.Conn) {
	t.Helper()
	conn := busConn(t)
	w := &watcher{items: make(chan string, 8)}
	if _, err := prop.Export(conn, sniWatcherPath, prop.Map{sniWatcher: {
		"IsStatusNotifierHostRegistered": {Value: true, Emit: prop.EmitTrue},
		"RegisteredStatusNotifierItems":  {Value: []string{}, Emit: prop.EmitTrue},
		"ProtocolVersion":                {Value: int32(0), Emit: prop.EmitTrue},
	}}); err != nil {
		t.Fatal(err)
	}
	if err := conn.Export(w, sniWatcherPath, sniWatcher); err != nil {
		t.Fatal(err)
	}
	if r, err := conn.RequestName(sniWatcher, dbus.NameFlagDoNotQueue); err != nil || r != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(r, err)
	}
	return w, conn
}

// panel looks at an item over the bus, as xfce4-panel does.
type panel struct {
	t    *testing.T
	conn *dbus.Conn
	item string
}

func (p panel) items() []dbusmenu.Item {
	p.t.Helper()
	items, err := dbusmenu.Read(p.t.Context(), p.conn, p.item)
	if err != nil {
		p.t.Fatal(err)
	}
	return items
}

// text is what the menu shows.
func (p panel) text() string {
	var b strings.Builder
	for _, it := range p.items() {
		if it.Separator {
			it.Label = "----"
		}
		if it.Checked {
			it.Label += " (checked)"
		}
		b.WriteString(it.Label + "\n")
		for _, sub := range it.Sub {
			b.WriteString("    " + sub.Label + "\n")
		}
	}
	return b.String()
}

// wait waits until the menu has a line.
func (p panel) wait(line string, there bool) {
	p.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for strings.Contains(p.text(), line) != there {
		if time.Now().After(deadline) {
			p.t.Fatalf("%q is there: %v\n%s", line, !there, p.text())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// click clicks the first item of a label.
func (p panel) click(label string) {
	p.t.Helper()
	for _, it := range p.items() {
		for _, k := range append([]dbusmenu.Item{it}, it.Sub...) {
			if k.Label == label {
				if err := dbusmenu.Click(p.t.Context(), p.conn, p.item, k.ID); err != nil {
					p.t.Fatal(err)
				}
				return
			}
		}
	}
	p.t.Fatalf("no %q in\n%s", label, p.text())
}

// TestSNITray drives the real status item over a real bus. There can be one in a
// process, hence one test for everything.
func TestSNITray(t *testing.T) {
	startBus(t)
	a := newGateAgent(gate.Options{})
	a.login.Known = true
	hosted := make(chan struct{}, 8)
	r := NewRenderer(zerolog.Nop(), func() { hosted <- struct{}{} })
	tray := NewTray(TrayOptions{Renderer: r, Agent: a, Log: zerolog.Nop()})
	if tray.Ready() {
		t.Error("ready before it runs")
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- tray.Run(ctx) }()
	// A panel that comes later is noticed, and gets the item.
	w, conn := startWatcher(t)
	<-hosted
	if !tray.Ready() {
		t.Error("not ready with a panel")
	}
	p := panel{t, conn, <-w.items}
	p.text() // the library answers the very first question with one level alone
	a.gate.AddSurface(tray)
	p.wait("Ready\n----\nStop now\nPause everything\n----\nNo client yet\nModels: allowed\n    Switch hosts' models off\n----\nOpen activity\nCopy client configuration\n    Claude Code\n", true)

	var pix []struct {
		W, H int32
		Data []byte
	}
	v, err := conn.Object(p.item, "/StatusNotifierItem").GetProperty("org.kde.StatusNotifierItem.IconPixmap")
	if err == nil {
		err = v.Store(&pix)
	}
	if err != nil || len(pix) != 1 || pix[0].W != trayIconSize || len(pix[0].Data) != 4*trayIconSize*trayIconSize {
		t.Errorf("icon: %d, %v", len(pix), err)
	}

	v1, v2 := a.ask(t.Context(), "one_client"), a.ask(t.Context(), "two")
	p.wait("one__client: bash {} (2 min left)\n    one__client runs bash of omp\n    {}\n    Allow once\n    Allow bash for this connection\n    Allow bash for 15 minutes\n    Deny\n", true)
	p.wait("two: bash {} (2 min left)\n", true)
	p.wait("2 questions for you\n", true)
	time.Sleep(reflex)
	p.click("Deny") // of the first in the menu
	got, allowed := <-either(v1, v2), a.gate.List()
	if got.Outcome != gate.Denied || len(allowed) != 1 {
		t.Fatalf("%+v, %d left", got, len(allowed))
	}
	p.wait("1 question for you\n", true)
	p.click("Allow once")
	if got := <-either(v1, v2); got.Outcome != gate.Allowed {
		t.Errorf("%+v", got)
	}
	p.wait("Ready\n----\n", true)
	if strings.Contains(p.text(), "Allow") {
		t.Errorf("answered prompts are left\n%s", p.text())
	}
	p.wait("Run doctor\nStart at login\n", true)
	p.click("Start at login")
	p.wait("Run doctor\nStart at login (checked)\n", true)
	p.click("Start at login")
	p.wait("Run doctor\nStart at login\n", true)
	p.click("Pause everything")
	p.click("goose")
	deadline := time.Now().Add(time.Minute)
	for len(a.deeds()) < 4 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if tray.Ready() {
		t.Error("ready after its end")
	}
	if got := strings.Join(a.deeds(), " "); got != "loginon loginoff pause copygoose" {
		t.Errorf("done: %s", got)
	}
}

func either(a, b <-chan gate.Verdict) <-chan gate.Verdict {
	c := make(chan gate.Verdict, 1)
	select {
	case v := <-a:
		c <- v
	case v := <-b:
		c <- v
	}
	return c
}
