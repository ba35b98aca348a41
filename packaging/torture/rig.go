//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/computer"
	"drawbridge/bridge/gate"
	"drawbridge/internal/x11"
	"drawbridge/internal/x11/person"
)

// rig is the real computer tool on a virtual desktop, a person in front of it, and
// a record of what every device did.
type rig struct {
	*ground
	tool   *computer.Tool
	person *person.Person
	conn   *x11.Conn
	log    *deviceLog
	window *window
	order  *arrivals

	dir        string   // of its files
	session    []string // the environment of the desktop's programs; nil before the first
	endSession func()

	mu   sync.Mutex // guards what follows
	keys []byte     // that the window was told were pressed
}

// ground is the desktop.
type ground struct {
	desk    *computer.Desk
	display string   // the X display that it is on
	env     []string // by which programs come onto it
	close   func() error
}

// environ is what programs on the desktop start with. A Wayland of the machine's is
// left out: even an empty one keeps the accessibility bus off the X display.
func (g *ground) environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "WAYLAND_DISPLAY=") })
	return append(env, g.env...)
}

const width, height = 800, 600

// newRig makes a desktop with a window that takes clicks and keys and does nothing
// with them. dir is for its files.
func newRig(ctx context.Context, dir string) (_ *rig, err error) {
	g, err := openGround(ctx, dir)
	if err != nil {
		return nil, err
	}
	r := &rig{ground: g, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.desk.Unwatched != nil {
		return r, r.desk.Unwatched
	}
	r.order = &arrivals{lease: gate.NewLease(filepath.Join(dir, leaseFile), 64)}
	r.tool = computer.New(computer.Options{
		Desk: r.desk, Config: r.config(), Lease: r.order,
		HandBack: func() computer.HandBack { return computer.HandBack{} }, Log: zerolog.Nop(),
	})
	if r.conn, err = x11.Dial(ctx, r.display, nil); err != nil {
		return r, err
	}
	if r.person, err = person.Open(ctx, r.display); err != nil {
		return r, err
	}
	if r.log, err = openDeviceLog(ctx, r.display); err != nil {
		return r, err
	}
	r.window, err = openWindow(ctx, r.display, "Ground", xproto.Rectangle{Width: width, Height: height}, r.hear)
	return r, err
}

// config lets long batches run, and does not wait for windows that do nothing.
func (r *rig) config() computer.Config {
	cfg := computer.DefaultConfig()
	cfg.SettleMS, cfg.SettleMaxMS, cfg.MaxActionsPerCall = 0, 0, 1000
	return cfg
}

// leaseFile is the lease of a desktop, in the directory of its files.
const leaseFile = "desktop.lease"

// hear notes the keys that the window gets.
func (r *rig) hear(_ *window, ev xgb.Event) {
	if e, ok := ev.(xproto.KeyPressEvent); ok {
		r.mu.Lock()
		r.keys = append(r.keys, byte(e.Detail))
		r.mu.Unlock()
	}
}

// heard returns the keys that the window got so far, and forgets them.
func (r *rig) heard() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := r.keys
	r.keys = nil
	return keys
}

func (r *rig) close() error {
	if r.session != nil {
		r.endSession()
	}
	if r.window != nil {
		r.window.close()
	}
	if r.log != nil {
		r.log.close()
	}
	if r.person != nil {
		r.person.Close()
	}
	if r.conn != nil {
		r.conn.Close()
	}
	if r.tool != nil {
		r.tool.Close()
	}
	return r.ground.close()
}

// call runs actions, a JSON array, for a client.
func (r *rig) call(ctx context.Context, client, actions string) (computer.Structured, error) {
	return call(ctx, r.tool, client, actions)
}

func call(ctx context.Context, tool *computer.Tool, client, actions string) (computer.Structured, error) {
	p, refused := tool.Prepare(ctx, &bridge.Call{
		Caller: bridge.Caller{Client: client, Conn: client}, Tool: "computer", Arguments: json.RawMessage(`{"actions":` + actions + `}`),
	})
	var a bridge.Answer
	if refused != nil {
		a = *refused
	} else {
		a = p.Run(ctx)
	}
	var result struct {
		Content           []struct{ Text string }
		StructuredContent *computer.Structured
	}
	if err := json.Unmarshal(a.Result, &result); err != nil {
		return computer.Structured{}, err
	}
	if result.StructuredContent == nil {
		return computer.Structured{}, errors.New(result.Content[0].Text)
	}
	return *result.StructuredContent, nil
}

// look gives a client the picture on which it measures. One of its pixels is one
// of the display's.
func (r *rig) look(ctx context.Context, client string) error {
	s, err := r.call(ctx, client, `[{"type":"screenshot"}]`)
	if err == nil && (s.Picture == nil || s.Picture.Scale != [2]float64{1, 1}) {
		err = fmt.Errorf("the first look: %+v", s)
	}
	return err
}

// down lists what the server holds for pressed.
func (r *rig) down() ([]string, error) {
	keys, err := xproto.QueryKeymap(r.conn.Conn).Reply()
	if err != nil {
		return nil, err
	}
	var held []string
	for code := range 256 {
		if keys.Keys[code/8]&(1<<(code%8)) != 0 {
			held = append(held, fmt.Sprintf("key %d", code))
		}
	}
	p, err := xproto.QueryPointer(r.conn.Conn, r.conn.Root).Reply()
	if err != nil {
		return nil, err
	}
	for n := range 5 {
		if p.Mask&(xproto.KeyButMaskButton1<<n) != 0 {
			held = append(held, fmt.Sprintf("button %d", n+1))
		}
	}
	return held, nil
}

// did is one event of a device.
type did struct {
	x11.Raw
	at time.Time // when we heard of it
}

func (d did) release() bool {
	return d.Kind == x11.RawKeyRelease || d.Kind == x11.RawButtonRelease
}

// deviceLog hears everything that the devices do.
type deviceLog struct {
	conn  *x11.RawConn
	ended chan struct{}

	mu      sync.Mutex // guards what follows
	events  []did
	changed chan struct{} // closed and replaced at each event
}

func openDeviceLog(ctx context.Context, display string) (*deviceLog, error) {
	c, err := x11.DialRaw(ctx, display)
	if err != nil {
		return nil, err
	}
	l := &deviceLog{conn: c, ended: make(chan struct{}), changed: make(chan struct{})}
	go l.read()
	return l, nil
}

func (l *deviceLog) read() {
	defer close(l.ended)
	for {
		e, err := l.conn.Next()
		if err != nil {
			return
		}
		l.mu.Lock()
		l.events = append(l.events, did{e, time.Now()})
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
	}
}

func (l *deviceLog) close() { l.conn.Close(); <-l.ended }

// take returns what was heard so far and forgets it.
func (l *deviceLog) take() []did {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events
	l.events = nil
	return events
}

// await waits until ok is true of what was heard since the last take.
func (l *deviceLog) await(ctx context.Context, ok func([]did) bool) error {
	for {
		l.mu.Lock()
		found, changed := ok(l.events), l.changed
		l.mu.Unlock()
		if found {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// window is a window of ours. It takes clicks and keys; what it does with an event
// is up to whoever opened it.
type window struct {
	conn *x11.Conn
	id   xproto.Window
}

// openWindow maps a window with a name, above others and with the keyboard. react
// is called with its events, one at a time, and may make requests that want no
// reply.
func openWindow(ctx context.Context, display, name string, at xproto.Rectangle, react func(*window, xgb.Event)) (*window, error) {
	w := &window{}
	ready := make(chan struct{})
	shown := make(chan struct{}, 1)
	var err error
	w.conn, err = x11.Dial(ctx, display, func(ev xgb.Event) {
		<-ready
		if _, ok := ev.(xproto.ExposeEvent); ok {
			select {
			case shown <- struct{}{}:
			default:
			}
		}
		if react != nil {
			react(w, ev)
		}
	})
	if err != nil {
		return nil, err
	}
	c := w.conn.Conn
	w.id, err = xproto.NewWindowId(c)
	close(ready)
	if err == nil {
		err = xproto.CreateWindowChecked(c, w.conn.Screen.RootDepth, w.id, w.conn.Root, at.X, at.Y, at.Width, at.Height, 0,
			xproto.WindowClassInputOutput, w.conn.Screen.RootVisual,
			xproto.CwBackPixel|xproto.CwOverrideRedirect|xproto.CwEventMask, []uint32{0xffffff, 1,
				xproto.EventMaskButtonPress | xproto.EventMaskButtonRelease | xproto.EventMaskKeyPress | xproto.EventMaskExposure |
					xproto.EventMaskFocusChange | xproto.EventMaskEnterWindow}).Check()
	}
	class := strings.ToLower(name) + "\x00" + name + "\x00"
	for atom, text := range map[xproto.Atom]string{xproto.AtomWmClass: class, xproto.AtomWmName: name} {
		if err == nil {
			err = xproto.ChangePropertyChecked(c, xproto.PropModeReplace, w.id, atom, xproto.AtomString, 8, uint32(len(text)), []byte(text)).Check()
		}
	}
	if err == nil {
		err = xproto.MapWindowChecked(c, w.id).Check()
	}
	if err == nil {
		select {
		case <-shown:
			err = w.focus()
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		w.close()
		return nil, fmt.Errorf("open a window: %w", err)
	}
	return w, nil
}

func (w *window) focus() error {
	return xproto.SetInputFocusChecked(w.conn.Conn, xproto.InputFocusPointerRoot, w.id, 0).Check()
}

func (w *window) close() { w.conn.Close() }
