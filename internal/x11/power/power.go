// Package power gives tests an X server whose display can be sent to sleep. The
// servers that run without hardware (Xvfb, Xephyr, Xorg with the dummy driver) have
// no power management, so this relays to one of them, and answers the requests of
// the DPMS extension itself, as the protocol's specification says (X.Org, "X Display
// Power Management Signaling (DPMS) Extension, Protocol Specification", 1.1). All
// else passes unchanged.
package power

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
)

// Levels of power.
const (
	On = iota
	Standby
	Suspend
	Off
)

// Requests of the extension.
const (
	getVersion = iota
	capable
	getTimeouts
	setTimeouts
	enable
	disable
	forceLevel
	info
)

const (
	name          = "DPMS"
	opcode        = 254 // of the extension; real servers count up from 128
	noOperation   = 127
	getInputFocus = 43 // has no arguments and a reply of 32 bytes, as ours have
	queryExt      = 98
	genericEvent  = 35
)

// Server is a relay.
type Server struct {
	upstream string
	listener net.Listener
	display  string
	all      sync.WaitGroup

	mu    sync.Mutex // guards what follows
	on    bool       // power management is enabled
	level uint16
	conns map[net.Conn]bool
}

// Start relays to the local display of this number. The relay's socket is in dir;
// its display has the same number, and is opened by the same cookie.
func Start(dir string, number int) (*Server, error) {
	s := &Server{upstream: fmt.Sprintf("/tmp/.X11-unix/X%d", number), on: true, conns: map[net.Conn]bool{},
		display: fmt.Sprintf("%s:%d", filepath.Join(dir, "x"), number)}
	var err error
	if s.listener, err = net.Listen("unix", s.display); err != nil {
		return nil, fmt.Errorf("relay to an X server: %w", err)
	}
	s.all.Go(s.serve)
	return s, nil
}

// Display is the name that X clients connect to.
func (s *Server) Display() string { return s.display }

// Close ends the relay and its connections.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.all.Wait()
	return err
}

// Set gives the display a level of power, as an idle time or a lid would.
func (s *Server) Set(level uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}

func (s *Server) serve() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("unix", s.upstream)
		if err != nil {
			c.Close()
			continue
		}
		if !s.keep(c, up) {
			return
		}
		r := &relay{server: s, marks: map[uint16]func([]byte){}}
		pipe := func(from, to net.Conn, f func(*bufio.Reader, io.Writer) error) {
			_ = f(bufio.NewReader(from), to) // whatever ended one way ends the other
			from.Close()
			to.Close()
		}
		s.all.Go(func() { pipe(c, up, r.requests) })
		s.all.Go(func() { pipe(up, c, r.answers) })
	}
}

// keep notes connections that Close ends; false: it was called already.
func (s *Server) keep(all ...net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range all {
		if s.conns == nil {
			c.Close()
			continue
		}
		s.conns[c] = true
	}
	return s.conns != nil
}

// relay is one connection. The byte order is the little-endian one, which all of
// our clients speak.
type relay struct {
	server *Server

	mu    sync.Mutex // guards what follows
	marks map[uint16]func(reply []byte)
}

var order = binary.LittleEndian

// requests passes on what the client says.
func (r *relay) requests(from *bufio.Reader, to io.Writer) error {
	setup := make([]byte, 12)
	if _, err := io.ReadFull(from, setup); err != nil {
		return err
	}
	if setup[0] != 'l' {
		return errors.New("a client of the other byte order")
	}
	pad := func(n uint16) int64 { return int64(n+3) &^ 3 }
	rest := pad(order.Uint16(setup[6:])) + pad(order.Uint16(setup[8:]))
	if _, err := to.Write(setup); err != nil {
		return err
	}
	if _, err := io.CopyN(to, from, rest); err != nil {
		return err
	}
	for seq := uint16(1); ; seq++ {
		head, err := from.Peek(4)
		if err != nil {
			return err
		}
		n := 4 * int64(order.Uint16(head[2:]))
		if n == 0 { // BIG-REQUESTS
			if head, err = from.Peek(8); err != nil {
				return err
			}
			n = 4 * int64(order.Uint32(head[4:]))
		}
		switch {
		case head[0] == opcode:
			request := make([]byte, n)
			if _, err := io.ReadFull(from, request); err != nil {
				return err
			}
			if _, err := to.Write(r.power(seq, request)); err != nil {
				return err
			}
			continue
		case head[0] == queryExt && n == 12:
			if request, err := from.Peek(12); err == nil && string(request[8:8+min(4, order.Uint16(request[4:]))]) == name {
				r.mark(seq, func(reply []byte) { reply[8], reply[9], reply[10], reply[11] = 1, opcode, 0, 0 })
			}
		}
		if _, err := io.CopyN(to, from, n); err != nil {
			return err
		}
	}
}

// power does what a request of the extension asks for, and returns the one that
// the server gets in its place.
func (r *relay) power(seq uint16, request []byte) []byte {
	s := r.server
	s.mu.Lock()
	defer s.mu.Unlock()
	on, level := s.on, s.level
	answer := func(fill func(b []byte)) []byte {
		r.mark(seq, func(b []byte) {
			clear(b[8:])
			b[1] = 0
			fill(b[8:])
		})
		return []byte{getInputFocus, 0, 1, 0}
	}
	switch request[1] {
	case getVersion:
		return answer(func(b []byte) { order.PutUint16(b, 1); order.PutUint16(b[2:], 1) })
	case capable:
		return answer(func(b []byte) { b[0] = 1 })
	case getTimeouts:
		return answer(func([]byte) {}) // none is set
	case info:
		return answer(func(b []byte) {
			order.PutUint16(b, level)
			if on {
				b[2] = 1
			}
		})
	case enable:
		s.on = true
	case disable:
		s.on, s.level = false, On
	case forceLevel:
		if len(request) >= 6 && s.on {
			s.level = order.Uint16(request[4:])
		}
	}
	return []byte{noOperation, 0, 1, 0}
}

func (r *relay) mark(seq uint16, rewrite func(reply []byte)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks[seq] = rewrite
}

// answers passes on what the server says.
func (r *relay) answers(from *bufio.Reader, to io.Writer) error {
	head, err := from.Peek(8)
	if err != nil {
		return err
	}
	if _, err := io.CopyN(to, from, 8+4*int64(order.Uint16(head[6:]))); err != nil {
		return err
	}
	message := make([]byte, 32)
	for {
		if _, err := io.ReadFull(from, message); err != nil {
			return err
		}
		more := int64(0)
		if kind := message[0] & 0x7f; message[0] == 1 || kind == genericEvent {
			more = 4 * int64(order.Uint32(message[4:]))
		}
		if message[0] <= 1 { // a reply, or an error in its place
			seq := order.Uint16(message[2:])
			r.mu.Lock()
			rewrite := r.marks[seq]
			delete(r.marks, seq)
			r.mu.Unlock()
			if rewrite != nil && message[0] == 1 {
				rewrite(message)
			}
		}
		if _, err := to.Write(message); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, more); err != nil {
			return err
		}
	}
}
