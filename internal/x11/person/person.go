// Package person plays the person in front of an X server in tests: it makes
// events on the server's own mouse and keyboard, by the requests of XTEST that
// name a device. To every client they look like a hand on that device: they carry
// its id as their source, where plain XTEST events carry that of XTEST's own
// (observed on Xvfb 21.1, which has the devices "Xvfb mouse" and "Xvfb
// keyboard").
package person

import (
	"context"
	"errors"
	"fmt"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"github.com/jezek/xgb/xtest"

	"drawbridge/internal/x11"
)

// Person has a hand on the mouse and one on the keyboard. It serves one
// goroutine.
type Person struct {
	conn            *x11.Conn
	first           byte // number of the extension's first event
	mouse, keyboard byte
}

// Events of the X Input Extension, counted from its first.
const (
	deviceValuator = iota
	deviceKeyPress
	deviceKeyRelease
	deviceButtonPress
	deviceButtonRelease
	deviceMotion
)

// Open sits down in front of a display.
func Open(ctx context.Context, display string) (*Person, error) {
	raw, err := x11.DialRaw(ctx, display)
	if err != nil {
		return nil, err
	}
	devices := raw.Devices()
	raw.Close()
	p := &Person{}
	for _, d := range devices {
		switch {
		case d.XTest || d.ID > 127:
		case d.Pointer && p.mouse == 0:
			p.mouse = byte(d.ID)
		case !d.Pointer && p.keyboard == 0:
			p.keyboard = byte(d.ID)
		}
	}
	if p.mouse == 0 || p.keyboard == 0 {
		return nil, errors.New("the server has no mouse or no keyboard of its own")
	}
	if p.conn, err = x11.Dial(ctx, display, nil); err != nil {
		return nil, err
	}
	if err := p.setUp(ctx); err != nil {
		p.Close()
		return nil, fmt.Errorf("play a person: %w", err)
	}
	return p, nil
}

func (p *Person) setUp(ctx context.Context) error {
	ok, err := p.conn.Extension(ctx, "XTEST")
	if err == nil && !ok {
		err = errors.New("the server has no XTEST extension")
	}
	if err != nil {
		return err
	}
	const name = "XInputExtension"
	p.first, err = x11.Await(ctx, p.conn, func() (byte, error) {
		r, err := xproto.QueryExtension(p.conn.Conn, uint16(len(name)), name).Reply()
		if err == nil && !r.Present {
			err = errors.New("the server has no X Input Extension")
		}
		if err != nil {
			return 0, err
		}
		return r.FirstEvent, nil
	})
	return err
}

// Close gets up.
func (p *Person) Close() { p.conn.Close() }

// Move moves the mouse.
func (p *Person) Move(dx, dy int) error {
	const relative, axes = 1, 2
	values := make([]byte, 32)
	values[0], values[1], values[6] = p.first+deviceValuator, p.mouse, axes
	xgb.Put32(values[8:], uint32(int32(dx)))
	xgb.Put32(values[12:], uint32(int32(dy)))
	return p.post(deviceMotion, p.mouse, relative, values)
}

// Button presses or releases a button of the mouse; 4 to 7 are the wheel.
func (p *Person) Button(n byte, down bool) error {
	if down {
		return p.post(deviceButtonPress, p.mouse, n, nil)
	}
	return p.post(deviceButtonRelease, p.mouse, n, nil)
}

// Key presses or releases the key with this code.
func (p *Person) Key(code byte, down bool) error {
	if down {
		return p.post(deviceKeyPress, p.keyboard, code, nil)
	}
	return p.post(deviceKeyRelease, p.keyboard, code, nil)
}

// post sends XTEST's FakeInput with an event of a device, which xgb cannot make
// where it is followed by a second one with the values.
func (p *Person) post(kind, device, detail byte, more []byte) error {
	c := p.conn.Conn
	c.ExtLock.RLock()
	opcode := c.Extensions["XTEST"]
	c.ExtLock.RUnlock()
	const fakeInput, header = 2, 4
	b := make([]byte, header+32, header+64)
	b[0], b[1] = opcode, fakeInput
	event := b[header:]
	event[0], event[1], event[31] = p.first+kind, detail, device
	b = append(b, more...)
	xgb.Put16(b[2:], uint16(len(b)/4))
	cookie := c.NewCookie(true, false)
	c.NewRequest(b, cookie)
	return xtest.FakeInputCookie{Cookie: cookie}.Check()
}
