package host

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"drawbridge/bridge/wire"
)

// closeTime bounds the goodbye on a websocket.
const closeTime = time.Second

// wsPipe carries one frame a text message over a websocket that the host dialled.
type wsPipe struct {
	ws    *websocket.Conn
	limit int64
	send  *sender
	once  sync.Once

	mu  sync.Mutex // guards err, why
	err error      // why writing ended, if it ended first
	why string     // the goodbye's reason
}

func newWSPipe(ws *websocket.Conn, limit int64) *wsPipe {
	p := &wsPipe{ws: ws, limit: limit}
	p.send = newSender(func(frame []byte) error {
		return ws.WriteMessage(websocket.TextMessage, frame)
	}, func(err error) {
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		ws.Close()
	})
	return p
}

func (p *wsPipe) Send(ctx context.Context, f Outgoing) error { return p.send.send(ctx, f.Frame) }

func (p *wsPipe) Receive() (Incoming, error) {
	kind, r, err := p.ws.NextReader()
	if err != nil {
		return Incoming{}, p.end(err)
	}
	if kind != websocket.TextMessage {
		if _, err := io.Copy(io.Discard, r); err != nil {
			return Incoming{}, p.end(err)
		}
		return Incoming{Err: errors.New("it was a binary frame")}, nil
	}
	frame, err := wire.ReadMessage(r, p.limit)
	var large *wire.ErrTooLarge
	switch {
	case errors.As(err, &large):
		return Incoming{ID: orphan(&large.Skimmer), Err: large}, nil
	case err != nil:
		return Incoming{}, p.end(err)
	}
	return Incoming{Frame: frame}, nil
}

// end words why reading ended.
func (p *wsPipe) end(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.why != "":
		return errors.New(p.why)
	case p.err != nil:
		return p.err
	case websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway):
		return errors.New("it said goodbye")
	}
	return err
}

// bye ends the pipe and tells the host why.
func (p *wsPipe) bye(code int, why string) {
	p.mu.Lock()
	if p.why == "" {
		p.why = why
	}
	p.mu.Unlock()
	p.once.Do(func() {
		p.send.close()
		if len(why) > 120 { // the protocol's limit is 123 bytes
			why = why[:120]
		}
		// Best effort: a host that does not read does not hear it.
		_ = p.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(closeTime))
		p.ws.Close()
		<-p.send.done
	})
}

func (p *wsPipe) Close() error {
	p.bye(websocket.CloseGoingAway, "Drawbridge closed the connection")
	return nil
}
