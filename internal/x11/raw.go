package x11

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jezek/xgb"
)

// Raw events tell what the devices did, before any window gets to see it and
// whoever has grabbed what. They come with the X Input Extension 2 and are longer
// than the 32 bytes that xgb reads for an event, so they have a small connection
// of their own here.

// RawKind says what a device did. The values are the extension's.
type RawKind uint16

const (
	RawKeyPress      RawKind = 13
	RawKeyRelease    RawKind = 14
	RawButtonPress   RawKind = 15
	RawButtonRelease RawKind = 16
	RawMotion        RawKind = 17
)

const hierarchyChanged = 11 // the event that tells of new and of lost devices

// Raw is what one device did.
type Raw struct {
	Kind   RawKind
	Source uint16 // the device's id
	Detail uint32 // the key's code or the button's number, as of the device
	// Axes are the axes that the event carries: 0 and 1 are the pointer's.
	Axes map[int]Axis
	// Device describes Source. It is the zero Device when Source is so new that
	// the server was not asked about it yet.
	Device Device
}

// Axis is one value of an event: a difference, or a place where the device's axis
// is absolute.
type Axis struct {
	Moved float64 // as it moves the pointer, accelerated
	Given float64 // as the device gave it
}

// Device is a slave device: something that a person touches, or the source of a
// program's XTEST events.
type Device struct {
	ID      uint16
	Name    string
	Pointer bool // a mouse or the like; else a keyboard
	// XTest is set for the devices on which the events of XTEST appear, whichever
	// program posts them.
	XTest bool
	// Absolute is set for a device that tells places (a tablet, the mouse of a
	// virtual machine); Extent is then how long its first two axes are.
	Absolute bool
	Extent   [2]float64
}

// RawConn is a connection that receives raw events.
type RawConn struct {
	nc      net.Conn
	r       *bufio.Reader
	opcode  byte // of the extension
	screen  [2]float64
	devices map[uint16]Device
	asked   bool // for the devices; the answer is on its way

	closing sync.Once
}

// ErrNoXInput: the server has no raw events to give.
var ErrNoXInput = errors.New("the X server lacks version 2.2 of the X Input Extension")

// DialRaw connects to display, empty for $DISPLAY, and asks for the raw events of
// all devices.
func DialRaw(ctx context.Context, display string) (*RawConn, error) {
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
	c := &RawConn{nc: nc, r: bufio.NewReaderSize(nc, 1<<16)}
	err = c.setUp(findCookie(addr, nc.RemoteAddr()))
	if !unhook() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("watch the devices of the X display %s: %w", addr, err)
	}
	return c, nil
}

// Close ends the connection, and with it a Next that waits.
func (c *RawConn) Close() error {
	var err error
	c.closing.Do(func() { err = c.nc.Close() })
	return err
}

// Screen is the size of the first screen in pixels.
func (c *RawConn) Screen() [2]float64 { return c.screen }

// Devices lists the slave devices, in no order. It must not be called while Next
// runs.
func (c *RawConn) Devices() []Device { return slices.Collect(maps.Values(c.devices)) }

// Next waits for the next raw event. An error ends the connection.
func (c *RawConn) Next() (Raw, error) {
	for {
		p, err := readPacket(c.r)
		if err != nil {
			return Raw{}, err
		}
		switch {
		case p[0] == packetError:
			return Raw{}, RawError(p[:32])
		case p[0] == packetReply: // the devices are all that is asked for
			c.asked = false
			if c.devices, err = parseDevices(p); err != nil {
				return Raw{}, err
			}
		case p[0] == genericEvent && p[1] == c.opcode:
			if xgb.Get16(p[8:]) == hierarchyChanged {
				if err := c.askDevices(); err != nil {
					return Raw{}, err
				}
				continue
			}
			e, ok, err := parseRaw(p)
			if err != nil {
				return Raw{}, err
			}
			if !ok {
				continue
			}
			var known bool
			if e.Device, known = c.devices[e.Source]; !known {
				if err := c.askDevices(); err != nil {
					return Raw{}, err
				}
			}
			return e, nil
		}
	}
}

// Packets of the protocol by their first byte; everything else is an event of 32
// bytes.
const (
	packetError  = 0
	packetReply  = 1
	genericEvent = 35
)

// maxPacket is far more than a list of devices needs.
const maxPacket = 1 << 20

var errRaw = errors.New("the X server sent what is no event")

// readPacket reads one reply, event or error.
func readPacket(r io.Reader) ([]byte, error) {
	head := make([]byte, 32)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	if head[0] != packetReply && head[0] != genericEvent {
		return head, nil
	}
	n := uint64(binary.LittleEndian.Uint32(head[4:])) * 4
	if n > maxPacket {
		return nil, fmt.Errorf("%w: one of %d bytes", errRaw, n)
	}
	p := append(head, make([]byte, n)...)
	_, err := io.ReadFull(r, p[32:])
	return p, err
}

// parseRaw reads a raw event from a packet of the extension. ok is false for any
// other event.
func parseRaw(p []byte) (e Raw, ok bool, err error) {
	if len(p) < 32 {
		return e, false, errRaw
	}
	e = Raw{Kind: RawKind(xgb.Get16(p[8:])), Detail: xgb.Get32(p[16:]), Source: xgb.Get16(p[20:])}
	if e.Kind < RawKeyPress || e.Kind > RawMotion {
		return Raw{}, false, nil
	}
	words := int(xgb.Get16(p[22:]))
	rest := p[32:]
	if len(rest) < 4*words {
		return Raw{}, false, fmt.Errorf("%w: a mask beyond its end", errRaw)
	}
	mask, values := rest[:4*words], rest[4*words:]
	n := 0
	for _, b := range mask {
		n += bits.OnesCount8(b)
	}
	// First come the values as they move the pointer, then as the device gave them.
	if len(values) < 16*n {
		return Raw{}, false, fmt.Errorf("%w: values beyond its end", errRaw)
	}
	given := values[8*n:]
	if n > 0 {
		e.Axes = make(map[int]Axis, n)
	}
	for i := range 8 * len(mask) {
		if mask[i/8]&(1<<(i%8)) != 0 {
			e.Axes[i] = Axis{Moved: fixed(values), Given: fixed(given)}
			values, given = values[8:], given[8:]
		}
	}
	return e, true, nil
}

// fixed reads a number of 32 bits before and after the point.
func fixed(b []byte) float64 {
	return float64(int32(xgb.Get32(b))) + float64(xgb.Get32(b[4:]))/(1<<32)
}

// Uses of a device that is a slave or floats.
const (
	slavePointer  = 3
	slaveKeyboard = 4
	floating      = 5
)

// parseDevices reads the reply to XIQueryDevice.
func parseDevices(p []byte) (map[uint16]Device, error) {
	bad := fmt.Errorf("%w: a list of devices that ends early", errRaw)
	if len(p) < 32 {
		return nil, bad
	}
	all := map[uint16]Device{}
	b := p[32:]
	for range xgb.Get16(p[8:]) {
		if len(b) < 12 {
			return nil, bad
		}
		d := Device{ID: xgb.Get16(b)}
		use, classes, name := xgb.Get16(b[2:]), int(xgb.Get16(b[6:])), int(xgb.Get16(b[8:]))
		if b = b[12:]; len(b) < xgb.Pad(name) {
			return nil, bad
		}
		d.Name, b = string(b[:name]), b[xgb.Pad(name):]
		// The server gives each pair of masters its own pair of these, and no
		// driver has the word in its name.
		d.XTest = strings.Contains(d.Name, "XTEST")
		for range classes {
			if len(b) < 8 {
				return nil, bad
			}
			n := 4 * int(xgb.Get16(b[2:]))
			if n < 8 || len(b) < n {
				return nil, bad
			}
			d.class(b[:n])
			b = b[n:]
		}
		d.Pointer = use == slavePointer
		if use == slavePointer || use == slaveKeyboard || use == floating {
			all[d.ID] = d
		}
	}
	return all, nil
}

// class reads one of the device's classes; only its first two axes matter.
func (d *Device) class(b []byte) {
	const valuator, size, absolute = 2, 44, 1
	if xgb.Get16(b) != valuator || len(b) < size {
		return
	}
	if n := xgb.Get16(b[6:]); n < 2 && b[40] == absolute {
		d.Absolute = true
		d.Extent[n] = fixed(b[20:]) - fixed(b[12:])
	}
}

// Requests of the extension.
const (
	xiSelectEvents = 46
	xiQueryVersion = 47
	xiQueryDevice  = 48

	allDevices       = 0
	allMasterDevices = 1
)

// setUp makes the connection and asks for the events.
func (c *RawConn) setUp(cookie []byte) error {
	if _, err := c.nc.Write(setupRequest(cookie)); err != nil {
		return err
	}
	root, err := c.setupReply()
	if err != nil {
		return err
	}
	const name = "XInputExtension"
	query := make([]byte, 8+xgb.Pad(len(name)))
	query[0] = 98 // QueryExtension
	xgb.Put16(query[4:], uint16(len(name)))
	copy(query[8:], name)
	p, err := c.ask(query)
	if err != nil {
		return err
	}
	if p[8] == 0 {
		return ErrNoXInput
	}
	c.opcode = p[9]

	// Before 2.1 nothing is told while a program has grabbed the device; 2.2 is
	// what servers have had since 2012.
	version := []byte{c.opcode, xiQueryVersion, 0, 0, 2, 0, 2, 0}
	if p, err = c.ask(version); err != nil {
		return err
	}
	if major, minor := xgb.Get16(p[8:]), xgb.Get16(p[10:]); major < 2 || major == 2 && minor < 2 {
		return fmt.Errorf("%w: it has %d.%d", ErrNoXInput, major, minor)
	}

	// Each event comes once for its device and once more for the master that the
	// device moves; the latter names the device too.
	var raw, changes [4]byte
	for k := RawKeyPress; k <= RawMotion; k++ {
		raw[k/8] |= 1 << (k % 8)
	}
	changes[hierarchyChanged/8] |= 1 << (hierarchyChanged % 8)
	sel := make([]byte, 12, 28)
	sel[0], sel[1] = c.opcode, xiSelectEvents
	xgb.Put32(sel[4:], root)
	xgb.Put16(sel[8:], 2)
	for _, m := range []struct {
		device byte
		mask   [4]byte
	}{{allMasterDevices, raw}, {allDevices, changes}} {
		sel = append(sel, m.device, 0, 1, 0)
		sel = append(sel, m.mask[:]...)
	}
	if err := c.send(sel); err != nil {
		return err
	}
	if err := c.askDevices(); err != nil {
		return err
	}
	// The answer tells that the selection holds. Events may come before it.
	for c.asked {
		p, err := readPacket(c.r)
		if err != nil {
			return err
		}
		switch p[0] {
		case packetError:
			return RawError(p[:32])
		case packetReply:
			c.asked = false
			if c.devices, err = parseDevices(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// setupReply reads the server's answer to the first message.
func (c *RawConn) setupReply() (root uint32, err error) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(c.r, head); err != nil {
		return 0, err
	}
	b := make([]byte, 4*int(xgb.Get16(head[6:])))
	if _, err := io.ReadFull(c.r, b); err != nil {
		return 0, err
	}
	if head[0] != 1 {
		return 0, fmt.Errorf("the server refuses: %s", strings.TrimRight(string(b[:min(len(b), int(head[1]))]), "\n"))
	}
	if root, c.screen, err = parseSetup(b); err != nil {
		return 0, err
	}
	return root, nil
}

// parseSetup finds the first screen in the server's description of itself.
func parseSetup(b []byte) (root uint32, size [2]float64, err error) {
	if len(b) < 32 {
		return 0, size, errRaw
	}
	at := 32 + xgb.Pad(int(xgb.Get16(b[16:]))) + 8*int(b[21])
	if b[20] == 0 || len(b) < at+24 {
		return 0, size, fmt.Errorf("%w: a setup without a screen", errRaw)
	}
	s := b[at:]
	return xgb.Get32(s), [2]float64{float64(xgb.Get16(s[20:])), float64(xgb.Get16(s[22:]))}, nil
}

func (c *RawConn) askDevices() error {
	if c.asked {
		return nil
	}
	c.asked = true
	return c.send([]byte{c.opcode, xiQueryDevice, 0, 0, allDevices, 0, 0, 0})
}

// ask sends a request and waits for its reply. No events come yet.
func (c *RawConn) ask(request []byte) ([]byte, error) {
	if err := c.send(request); err != nil {
		return nil, err
	}
	p, err := readPacket(c.r)
	if err != nil {
		return nil, err
	}
	if p[0] == packetError {
		return nil, RawError(p[:32])
	}
	return p, nil
}

// send fills in a request's length.
func (c *RawConn) send(request []byte) error {
	xgb.Put16(request[2:], uint16(len(request)/4))
	_, err := c.nc.Write(request)
	return err
}
