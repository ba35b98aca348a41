package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Subprotocol is the websocket subprotocol of MCP; a client that cannot set
// headers offers BearerSubprotocol followed by its token as a second one.
const (
	Subprotocol       = "mcp"
	BearerSubprotocol = "bearer."
)

// ErrTooLarge is returned by ReadFrame for a frame over the cap that was passed
// over. The connection goes on.
type ErrTooLarge struct {
	Skimmer
	Cap int64
}

func (e *ErrTooLarge) Error() string {
	return fmt.Sprintf("the message has %d bytes; the cap is %d", e.Size(), e.Cap)
}

// ReadMessage reads all of r. A message of more than limit bytes is read
// through in constant memory and told as *ErrTooLarge.
func ReadMessage(r io.Reader, limit int64) ([]byte, error) {
	buf := make([]byte, 0, 1024)
	for {
		if len(buf) == cap(buf) {
			buf = Grow(buf, 1, limit)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, readThrough(buf, r, limit)
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// large is the size from which on a message's memory is looked after.
const large = 16 << 20

// Grow makes room for n more bytes of a message of unknown size, of which at most
// limit are kept and one more. It doubles the room, since append's own steps would
// copy a large message five times. From a large one on it takes larger steps: the
// old and the new buffer are in memory together, and the old one shall be small
// against the message.
func Grow(begun []byte, n int, limit int64) []byte {
	need := len(begun) + n
	if need <= cap(begun) {
		return begun
	}
	room := 2 * int64(cap(begun))
	if room > large {
		room = min(6*int64(cap(begun)), limit) + 1
	}
	return Resize(begun, max(need, int(room)))
}

// Resize moves a message into a buffer of exactly this capacity. For a large one,
// memory is tidied first: the last large message is garbage by now, most likely,
// and would otherwise stay beside it until the collector comes. The memory also
// goes back to the system, since what lies in the gap that it leaves could make
// the gap too small for the next.
func Resize(begun []byte, room int) []byte {
	if room >= large {
		debug.FreeOSMemory()
	}
	return append(make([]byte, 0, room), begun...)
}

func readThrough(begun []byte, r io.Reader, limit int64) error {
	e := &ErrTooLarge{Cap: limit}
	_, _ = e.Write(begun)
	if _, err := io.CopyBuffer(&e.Skimmer, struct{ io.Reader }{r}, make([]byte, 16<<10)); err != nil {
		return err
	}
	return e
}

// Conn is the client's end of a websocket to a Drawbridge.
type Conn struct {
	ws    *websocket.Conn
	mu    sync.Mutex // serialises writes
	close sync.Once
}

// DialError tells why no connection came about.
type DialError struct {
	Status  int    // HTTP status of the refusal; 0 where nobody answered
	Message string // what the server said
	Err     error
}

func (e *DialError) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("no agent answers: %v", e.Err)
	}
	return fmt.Sprintf("the agent refused the connection (%d %s): %s", e.Status, http.StatusText(e.Status), e.Message)
}

func (e *DialError) Unwrap() error { return e.Err }

// Dial connects to the MCP endpoint at url (ws://…/mcp) with a client's token.
// A failure is a *DialError.
func Dial(ctx context.Context, url, token string) (*Conn, error) {
	d := websocket.Dialer{
		Subprotocols:     []string{Subprotocol},
		HandshakeTimeout: 10 * time.Second,
		ReadBufferSize:   16 << 10,
		WriteBufferSize:  16 << 10,
	}
	ws, resp, err := d.DialContext(ctx, url, http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		e := &DialError{Err: err}
		if resp != nil {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
			e.Status, e.Message = resp.StatusCode, refusal(body)
		}
		return nil, e
	}
	if ws.Subprotocol() != Subprotocol {
		_ = ws.Close()
		return nil, &DialError{Err: errors.New("the server does not speak the websocket subprotocol mcp")}
	}
	return &Conn{ws: ws}, nil
}

// refusal takes the message out of a refused handshake's body.
func refusal(body []byte) string {
	if object := Get(body, "error"); object != nil && Validate(body) == nil {
		var p parser
		p.b = Get(object, "message")
		if s, err := p.text("message", CodeInternal); err == nil {
			return s
		}
	}
	return strings.TrimSpace(string(body))
}

// ReadFrame returns the next message. It returns io.EOF after a regular close,
// by either side.
// A message over limit bytes gives *ErrTooLarge, and reading can go on.
func (c *Conn) ReadFrame(limit int64) ([]byte, error) {
	kind, r, err := c.ws.NextReader()
	if err != nil {
		if errors.Is(err, net.ErrClosed) || websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) {
			return nil, io.EOF
		}
		return nil, err
	}
	if kind != websocket.TextMessage {
		return nil, errors.New("the agent sent a binary frame; MCP goes in text frames")
	}
	return ReadMessage(r, limit)
}

// WriteFrame sends one message. It may be called from several goroutines.
func (c *Conn) WriteFrame(frame []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ws.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	return c.ws.WriteMessage(websocket.TextMessage, frame)
}

// Close says goodbye and ends the connection. ReadFrame returns after it.
func (c *Conn) Close() error {
	var err error
	c.close.Do(func() {
		bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = c.ws.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
		err = c.ws.Close()
	})
	return err
}
