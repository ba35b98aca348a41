package host

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"drawbridge/bridge/wire"
)

// masked writes a client's frame by hand.
func masked(final bool, opcode byte, payload string) []byte {
	key := [4]byte{0x11, 0xfe, 0x00, 0x9a}
	b := appendHeader(nil, opcode, len(payload))
	if !final {
		b[0] &^= 0x80
	}
	b[1] |= 0x80
	b = append(b, key[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^key[i&3])
	}
	return b
}

func reader(b []byte, limit int64, pongs *[]string) *frameReader {
	return &frameReader{r: bufio.NewReader(bytes.NewReader(b)), limit: limit, pong: func(p []byte) {
		if pongs != nil {
			*pongs = append(*pongs, string(p))
		}
	}}
}

func TestFrames(t *testing.T) {
	var in []byte
	for _, f := range [][]byte{
		masked(true, opText, "whole"),
		masked(false, opText, "in "), masked(true, opPing, "are you there"), masked(false, opContinuation, ""), masked(true, opContinuation, "parts"),
		masked(true, opText, ""),
		masked(true, opBinary, "binary"),
		masked(true, opText, strings.Repeat("x", 300)), masked(false, opText, strings.Repeat("y", 150)), masked(true, opContinuation, strings.Repeat("z", 151)),
		masked(true, opText, strings.Repeat("w", 299)),
		masked(true, opPong, "nobody asked"),
		masked(true, opClose, "\x0f\xa3gone"),
	} {
		in = append(in, f...)
	}
	var pongs []string
	r := reader(in, 299, &pongs)
	for _, want := range []struct {
		text  bool
		frame string
		large int64
	}{{true, "whole", 0}, {true, "in parts", 0}, {true, "", 0}, {false, "binary", 0}, {true, "", 300}, {true, "", 301}, {true, strings.Repeat("w", 299), 0}} {
		text, got, err := r.message()
		var large *wire.ErrTooLarge
		if errors.As(err, &large) != (want.large > 0) || want.large > 0 && large.Size() != want.large || want.large == 0 && err != nil {
			t.Fatalf("error %v, want one of size %d", err, want.large)
		}
		if text != want.text || string(got) != want.frame {
			t.Errorf("text %t %q, want %t %q", text, got, want.text, want.frame)
		}
	}
	_, _, err := r.message()
	var closed *closeError
	if !errors.As(err, &closed) || closed.code != 4003 || closed.text != "gone" {
		t.Errorf("the end: %v", err)
	}
	if len(pongs) != 1 || pongs[0] != "are you there" {
		t.Errorf("pings answered: %q", pongs)
	}
}

func TestFramesRefused(t *testing.T) {
	plain := masked(true, opText, "x")
	plain[1] &^= 0x80
	reserved := masked(true, opText, "x")
	reserved[0] |= 0x40
	negative := append([]byte{0x81, 0xff}, 0xff, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4)
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"not masked":             {plain, errProtocol},
		"reserved bit":           {reserved, errProtocol},
		"unknown kind":           {masked(true, 0x3, "x"), errProtocol},
		"continuation of none":   {masked(true, opContinuation, "x"), errProtocol},
		"text inside a text":     {append(masked(false, opText, "x"), masked(true, opText, "y")...), errProtocol},
		"long control frame":     {masked(true, opPing, strings.Repeat("p", 126)), errProtocol},
		"control frame in parts": {masked(false, opPing, "p"), errProtocol},
		"impossible size":        {negative, errProtocol},
		"cut in the payload":     {masked(true, opText, "abc")[:7], io.ErrUnexpectedEOF},
		"cut in the header":      {masked(true, opText, strings.Repeat("a", 200))[:3], io.ErrUnexpectedEOF},
		"nothing":                {nil, io.EOF},
	} {
		if _, _, err := reader(c.in, 1<<20, nil).message(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// acceptKey is the handshake's answer, as RFC 6455 section 4.2.2 makes it.
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// TestFramesAgainstGorilla exchanges messages of every kind of size with another
// implementation, both ways.
func TestFramesAgainstGorilla(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	// A client that has shaken hands: gorilla makes one of any connection.
	hands := make(chan *websocket.Conn, 1)
	go func() {
		d := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return theirs, nil }, WriteBufferSize: 1000}
		ws, _, err := d.Dial("ws://test/", nil)
		if err != nil {
			t.Error(err)
		}
		hands <- ws
	}()
	br := bufio.NewReader(ours)
	key := ""
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if k, ok := strings.CutPrefix(strings.TrimSpace(line), "Sec-WebSocket-Key: "); ok {
			key = k
		}
		if line == "\r\n" {
			break
		}
	}
	if _, err := io.WriteString(ours, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "+acceptKey(key)+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	ws := <-hands
	if ws == nil {
		t.FailNow()
	}
	r := &frameReader{r: br, limit: 1 << 20, pong: func([]byte) {}}
	w := newFrameWriter(ours)
	for _, n := range []int{0, 1, 3, 125, 126, 127, 1000, 1001, 65535, 65536, 200_001} {
		want := strings.Repeat("aé🌉x", n/8+1)[:n]
		written := make(chan struct{})
		go func() {
			defer close(written)
			if err := ws.WriteMessage(websocket.BinaryMessage, []byte(want)); err != nil {
				t.Error(err)
			}
		}()
		text, got, err := r.message()
		<-written
		if err != nil || text || string(got) != want {
			t.Fatalf("%d bytes came as %d, text %t, %v", n, len(got), text, err)
		}
		if err := w.write(opBinary, got); err != nil {
			t.Fatal(err)
		}
		_, back, err := ws.ReadMessage()
		if err != nil || string(back) != want {
			t.Fatalf("%d bytes went as %d, %v", n, len(back), err)
		}
	}
	w.done.Wait()
}

// FuzzFrames reads any bytes as a websocket's: it must end, and keep no more than
// the limit.
func FuzzFrames(f *testing.F) {
	f.Add(masked(true, opText, "whole"))
	f.Add(append(masked(false, opText, "a"), masked(true, opContinuation, "b")...))
	f.Add(masked(true, opText, strings.Repeat("x", 200)))
	f.Add(masked(true, opClose, "\x03\xe8"))
	f.Add([]byte{0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, in []byte) {
		r := reader(in, 100, nil)
		for {
			_, m, err := r.message()
			var large *wire.ErrTooLarge
			if len(m) > 100 {
				t.Fatalf("kept %d bytes", len(m))
			}
			if err != nil && !errors.As(err, &large) {
				return
			}
		}
	})
}
