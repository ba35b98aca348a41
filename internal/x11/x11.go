// Package x11 connects to an X server for the packages input, capture and
// their tests. It adds to xgb what a program that lives long needs: a call that
// ends with its context, a connection whose death is an error and not a hang,
// cookies for displays of our own, and extensions that are registered without
// touching xgb's process-wide tables.
package x11

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"sync"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

// ErrClosed: the connection ended, because the server died, hung up or because
// Close was called.
var ErrClosed = errors.New("the connection to the X server is closed")

// dialTimeout bounds the handshake with a server that accepts and then says
// nothing.
const dialTimeout = 10 * time.Second

func init() {
	// xgb writes to stderr by default, also where there is nothing to worry
	// about (no .Xauthority). Everything that matters comes back as an error.
	xgb.Logger = log.New(io.Discard, "", 0)

	// An Init function of xgb's extension packages writes to process-wide maps
	// that the readers of all other connections read. So the whole range of
	// extension numbers is filled here once, and Extension only registers the
	// opcode, which is kept by connection.
	for n := 64; n < 128; n++ {
		xgb.NewEventFuncs[n] = func(buf []byte) xgb.Event { return RawEvent(buf) }
	}
	for n := 128; n < 256; n++ {
		xgb.NewErrorFuncs[n] = func(buf []byte) xgb.Error { return RawError(buf) }
	}
}

// RawEvent is the 32 bytes of an event of an extension.
type RawEvent []byte

func (e RawEvent) Bytes() []byte  { return e }
func (e RawEvent) String() string { return fmt.Sprintf("X extension event %d", e[0]&127) }

// RawError is the 32 bytes of an error of an extension.
type RawError []byte

func (e RawError) SequenceId() uint16 { return xgb.Get16(e[2:]) }
func (e RawError) BadId() uint32      { return xgb.Get32(e[4:]) }
func (e RawError) Error() string {
	return fmt.Sprintf("X error %d (request %d.%d, value %#x)", e[1], e[10], xgb.Get16(e[8:]), e.BadId())
}

// Conn is a connection to an X server. The xgb connection inside is for making
// requests; whoever waits for a reply does so inside Await.
type Conn struct {
	*xgb.Conn
	Screen *xproto.ScreenInfo
	Root   xproto.Window
	// Local is set when the server runs on this machine and so can share
	// memory with us.
	Local bool

	net  net.Conn
	dead chan struct{}

	mu    sync.Mutex
	atoms map[string]xproto.Atom // guarded by mu
}

// Dial connects to display; empty means $DISPLAY. Events are handed to handle,
// one at a time, on a goroutine of the connection that ends with it. handle must
// not wait for the server; nil drops the events.
func Dial(ctx context.Context, display string, handle func(xgb.Event)) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addr, err := parseDisplay(display)
	if err != nil {
		return nil, err
	}
	nc, err := addr.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the X display %s: %w", addr, err)
	}
	unhook := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	cookie := findCookie(addr, nc.RemoteAddr())
	xc, err := xgb.NewConnNet(&setupConn{Conn: nc, setup: setupRequest(cookie)})
	if !unhook() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("connect to the X display %s: %w", addr, err)
	}
	nc.SetDeadline(time.Time{})

	setup := xproto.Setup(xc)
	if addr.screen >= len(setup.Roots) {
		nc.Close()
		return nil, fmt.Errorf("the X display %s has no screen %d", addr, addr.screen)
	}
	xc.DisplayNumber, xc.DefaultScreen = addr.number, addr.screen
	screen := &setup.Roots[addr.screen]
	c := &Conn{
		Conn: xc, Screen: screen, Root: screen.Root, Local: addr.host == "",
		net: nc, dead: make(chan struct{}), atoms: map[string]xproto.Atom{},
	}
	go c.events(handle)
	return c, nil
}

// events drains the connection: xgb stops reading altogether once 5,000 events
// wait, so this runs even where nobody wants them.
func (c *Conn) events(handle func(xgb.Event)) {
	defer close(c.dead)
	for {
		ev, err := c.Conn.WaitForEvent()
		switch {
		case ev == nil && err == nil:
			c.net.Close()
			return
		case ev != nil && handle != nil:
			handle(ev)
		}
	}
}

// Dead is closed when the connection has ended.
func (c *Conn) Dead() <-chan struct{} { return c.dead }

// Close ends the connection and waits until its event handler has returned.
// Requests that were not confirmed by a reply may be lost.
func (c *Conn) Close() {
	c.net.Close()
	<-c.dead
}

// Await runs f, which makes requests on c and waits for their replies, and
// returns what it returns; or earlier, when ctx ends or the server dies. f then
// ends by itself as soon as the server answers or c is closed, so it must not
// write to anything that its caller still uses. The requests must be made inside
// f: a server that reads nothing blocks them too.
func Await[T any](ctx context.Context, c *Conn, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	ch := make(chan result, 1)
	go func() {
		v, err := f()
		ch <- result{v, err}
	}()
	select {
	case r := <-ch:
		if errors.Is(r.err, io.EOF) {
			r.err = ErrClosed
		}
		return r.v, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-c.dead:
		return none, ErrClosed
	}
}

// Do is Await for what has no value.
func (c *Conn) Do(ctx context.Context, f func() error) error {
	_, err := Await(ctx, c, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// Atom returns the atom of a name. Answers are kept.
func (c *Conn) Atom(ctx context.Context, name string) (xproto.Atom, error) {
	c.mu.Lock()
	a, ok := c.atoms[name]
	c.mu.Unlock()
	if ok {
		return a, nil
	}
	return Await(ctx, c, func() (xproto.Atom, error) {
		r, err := xproto.InternAtom(c.Conn, false, uint16(len(name)), name).Reply()
		if err != nil {
			return 0, err
		}
		c.mu.Lock()
		c.atoms[name] = r.Atom
		c.mu.Unlock()
		return r.Atom, nil
	})
}

// Extension makes the requests of an extension usable, like the Init function of
// its xgb package, which must not be called (see init). It reports whether the
// server has it.
func (c *Conn) Extension(ctx context.Context, name string) (bool, error) {
	return Await(ctx, c, func() (bool, error) {
		r, err := xproto.QueryExtension(c.Conn, uint16(len(name)), name).Reply()
		if err != nil || !r.Present {
			return false, err
		}
		c.ExtLock.Lock()
		c.Extensions[name] = r.MajorOpcode
		c.ExtLock.Unlock()
		return true, nil
	})
}
