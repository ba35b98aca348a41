package host

import (
	"bufio"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"

	"drawbridge/bridge/wire"
)

// The websocket frames of a host (RFC 6455). The handshake is gorilla's; frames
// are read and written here, because two things are needed that it does not give:
// a large message is read straight into a buffer of its size, which the frame's
// header tells, and a write never waits for a host that does not read.

// Opcodes.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
)

const (
	maxControl = 125       // bytes of a control frame
	maxBacklog = 128 << 20 // bytes that wait for a host that does not read
	smallWrite = 64 << 10  // written with its header in one piece
)

// errProtocol ends a connection that breaks the websocket protocol.
var errProtocol = errors.New("it broke the websocket protocol")

// closeError is the host's goodbye.
type closeError struct {
	code int
	text string
}

func (e *closeError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("it closed the connection (%d)", e.code)
	}
	return fmt.Sprintf("it closed the connection (%d: %s)", e.code, e.text)
}

// frameReader reads the messages of a client's websocket.
type frameReader struct {
	r     *bufio.Reader
	limit int64
	pong  func(payload []byte)
}

type frameHeader struct {
	final  bool
	opcode byte
	size   int64
	mask   [4]byte
}

func (f *frameReader) header() (h frameHeader, err error) {
	var b [8]byte
	if _, err := io.ReadFull(f.r, b[:2]); err != nil {
		return h, err
	}
	h.final, h.opcode = b[0]&0x80 != 0, b[0]&0x0f
	if b[0]&0x70 != 0 {
		return h, fmt.Errorf("%w: a reserved bit is set", errProtocol)
	}
	if b[1]&0x80 == 0 {
		return h, fmt.Errorf("%w: a frame is not masked", errProtocol)
	}
	switch n := b[1] & 0x7f; n {
	case 126:
		_, err = io.ReadFull(f.r, b[:2])
		h.size = int64(binary.BigEndian.Uint16(b[:2]))
	case 127:
		_, err = io.ReadFull(f.r, b[:8])
		h.size = int64(binary.BigEndian.Uint64(b[:8]))
	default:
		h.size = int64(n)
	}
	if err == nil {
		_, err = io.ReadFull(f.r, h.mask[:])
	}
	if err == nil && h.size < 0 {
		err = fmt.Errorf("%w: a frame has no possible size", errProtocol)
	}
	if err == nil && h.opcode >= opClose && (h.size > maxControl || !h.final) {
		err = fmt.Errorf("%w: a control frame is too long or in parts", errProtocol)
	}
	return h, err
}

// message returns the next text or binary message. One over the limit is read
// through and told as *wire.ErrTooLarge; reading can go on.
func (f *frameReader) message() (text bool, message []byte, err error) {
	var large *wire.ErrTooLarge
	begun := false
	for {
		h, err := f.header()
		if err != nil {
			return false, nil, err
		}
		switch {
		case h.opcode >= opClose:
			if err := f.control(h); err != nil {
				return false, nil, err
			}
			continue
		case h.opcode == opContinuation != begun, h.opcode > opBinary:
			return false, nil, fmt.Errorf("%w: a frame of kind %d out of place", errProtocol, h.opcode)
		}
		if !begun {
			begun, text = true, h.opcode == opText
		}
		if large == nil && int64(len(message))+h.size > f.limit {
			large = &wire.ErrTooLarge{Cap: f.limit}
			_, _ = large.Write(message)
			message = nil
		}
		if large != nil {
			err = f.skim(h, large)
		} else {
			message, err = f.payload(h, message)
		}
		if err != nil {
			return false, nil, err
		}
		if h.final {
			if large != nil {
				return text, nil, large
			}
			return text, message, nil
		}
	}
}

// payload reads a frame behind what there is of the message.
func (f *frameReader) payload(h frameHeader, message []byte) ([]byte, error) {
	at, need := len(message), len(message)+int(h.size)
	switch {
	case need <= cap(message):
	case h.final:
		message = wire.Resize(message, need)
	default:
		message = wire.Grow(message, int(h.size), f.limit)
	}
	message = message[:need]
	if _, err := io.ReadFull(f.r, message[at:]); err != nil {
		return nil, unexpected(err)
	}
	unmask(h.mask, message[at:], 0)
	return message, nil
}

// skim reads a frame through without keeping it.
func (f *frameReader) skim(h frameHeader, to io.Writer) error {
	buf := make([]byte, 32<<10)
	for at := int64(0); at < h.size; {
		n, err := f.r.Read(buf[:min(int64(len(buf)), h.size-at)])
		unmask(h.mask, buf[:n], int(at&3))
		_, _ = to.Write(buf[:n])
		at += int64(n)
		if err != nil && at < h.size {
			return unexpected(err)
		}
	}
	return nil
}

func (f *frameReader) control(h frameHeader) error {
	b := make([]byte, h.size)
	if _, err := io.ReadFull(f.r, b); err != nil {
		return unexpected(err)
	}
	unmask(h.mask, b, 0)
	switch h.opcode {
	case opPing:
		f.pong(b)
	case opClose:
		e := &closeError{code: 1005} // no code was given
		if len(b) >= 2 {
			e.code, e.text = int(binary.BigEndian.Uint16(b)), string(b[2:])
		}
		return e
	}
	return nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// unmask takes the mask off b, which begins at offset (modulo 4) of its frame.
func unmask(mask [4]byte, b []byte, offset int) {
	var key [1024]byte
	n := min(len(key), (len(b)+3)&^3)
	for i := 0; i < n; i++ {
		key[i] = mask[(i+offset)&3]
	}
	for len(b) > 0 {
		done := subtle.XORBytes(b, b, key[:min(len(b), n)])
		b = b[done:] // key's length is a multiple of 4, so the mask goes on
	}
}

// appendHeader appends the header of a whole frame from a server.
func appendHeader(b []byte, opcode byte, size int) []byte {
	b = append(b, 0x80|opcode)
	switch {
	case size <= maxControl:
		return append(b, byte(size))
	case size < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 126), uint16(size))
	}
	return binary.BigEndian.AppendUint64(append(b, 127), uint64(size))
}

// frameWriter writes frames in their order. It never waits: what the host does
// not take at once is kept and written by a goroutine that lives for as long as
// there is something left, up to a limit.
type frameWriter struct {
	conn net.Conn
	raw  syscall.RawConn // nil where conn has none
	done sync.WaitGroup  // the goroutine

	mu      sync.Mutex // guards what follows
	backlog [][]byte
	size    int
	busy    bool   // the goroutine runs
	scratch []byte // of the frame that is put together
	err     error
}

func newFrameWriter(conn net.Conn) *frameWriter {
	w := &frameWriter{conn: conn}
	if sc, ok := conn.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			w.raw = raw
		}
	}
	return w
}

// write sends one frame. payload must not change after it.
func (w *frameWriter) write(opcode byte, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.size+len(payload) > maxBacklog && w.size > 0 {
		return fmt.Errorf("the host does not read: %d bytes wait for it already", w.size)
	}
	if len(payload) <= smallWrite {
		w.scratch = append(appendHeader(w.scratch[:0], opcode, len(payload)), payload...)
		if rest := w.try(w.scratch); len(rest) > 0 {
			w.keep(append([]byte(nil), rest...)) // the scratch is used again
		}
		return w.err
	}
	if rest := w.try(appendHeader(nil, opcode, len(payload))); len(rest) > 0 {
		w.keep(rest)
	}
	if rest := w.try(payload); len(rest) > 0 {
		w.keep(rest)
	}
	return w.err
}

// try writes what the socket takes at once and returns the rest. w.mu is held.
func (w *frameWriter) try(b []byte) []byte {
	if w.busy || w.raw == nil || w.err != nil {
		return b
	}
	n := 0
	if err := w.raw.Write(func(fd uintptr) bool {
		m, err := syscall.Write(int(fd), b)
		if err == nil {
			n = m
		}
		return true // whatever came of it: an error shows again in the goroutine
	}); err != nil {
		w.err = err
		return nil
	}
	return b[n:]
}

// keep leaves bytes to the goroutine. w.mu is held.
func (w *frameWriter) keep(b []byte) {
	w.backlog = append(w.backlog, b)
	w.size += len(b)
	if !w.busy {
		w.busy = true
		w.done.Add(1)
		go w.drain()
	}
}

func (w *frameWriter) drain() {
	defer w.done.Done()
	for {
		w.mu.Lock()
		if len(w.backlog) == 0 || w.err != nil {
			w.backlog, w.size, w.busy = nil, 0, false
			w.mu.Unlock()
			return
		}
		b := w.backlog[0]
		w.backlog[0] = nil
		w.backlog = w.backlog[1:]
		w.mu.Unlock()
		_, err := w.conn.Write(b)
		w.mu.Lock()
		w.size -= len(b)
		if err != nil && w.err == nil {
			w.err = err
			w.conn.Close() // ends the reading too
		}
		w.mu.Unlock()
	}
}
