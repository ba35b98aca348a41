package host

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"drawbridge/bridge/wire"
)

// closeTime is how long a host may take to answer a goodbye.
const closeTime = time.Second

// wsPipe carries one frame a text message over a websocket that the host dialled.
type wsPipe struct {
	ws    *websocket.Conn // only shaken hands with
	out   *frameWriter
	in    frameReader
	read  chan struct{} // closed when reading has ended
	ended sync.Once     // of read
	once  sync.Once     // of bye

	mu  sync.Mutex // guards why
	why string     // the goodbye's reason
}

// newWSPipe takes over a websocket right after its handshake: gorilla has read
// nothing beyond it.
func newWSPipe(ws *websocket.Conn, limit int64) *wsPipe {
	p := &wsPipe{ws: ws, out: newFrameWriter(ws.NetConn()), read: make(chan struct{})}
	p.in = frameReader{
		r:     bufio.NewReaderSize(ws.NetConn(), 16<<10),
		limit: limit,
		pong:  func(b []byte) { _ = p.out.write(opPong, b) }, // an error shows in the reading
	}
	return p
}

func (p *wsPipe) Send(_ context.Context, f Outgoing) error { return p.out.write(opText, f.Frame) }

func (p *wsPipe) Receive() (Incoming, error) {
	text, frame, err := p.in.message()
	var large *wire.ErrTooLarge
	switch {
	case errors.As(err, &large):
		return Incoming{ID: orphan(&large.Skimmer), Err: large}, nil
	case err != nil:
		p.ended.Do(func() { close(p.read) })
		return Incoming{}, p.end(err)
	case !text:
		return Incoming{Err: errors.New("it was a binary frame")}, nil
	}
	return Incoming{Frame: frame}, nil
}

// end words why reading ended, and says goodbye to a host that did.
func (p *wsPipe) end(err error) error {
	p.mu.Lock()
	why := p.why
	p.mu.Unlock()
	var closed *closeError
	switch {
	case why != "":
		return errors.New(why)
	case errors.Is(err, errProtocol):
		p.bye(websocket.CloseProtocolError, err.Error())
	case errors.As(err, &closed):
		p.bye(websocket.CloseNormalClosure, "goodbye")
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
		if len(why) > maxControl-2 {
			why = why[:maxControl-2]
		}
		// Best effort: a host that does not read does not hear it.
		if p.out.write(opClose, append(binary.BigEndian.AppendUint16(nil, uint16(code)), why...)) == nil {
			// The rest of what it is saying must be read, or the goodbye could be
			// lost; whoever reads does that, until the host has answered.
			_ = p.ws.NetConn().SetDeadline(time.Now().Add(closeTime))
			select {
			case <-p.read:
			case <-time.After(closeTime):
			}
		}
		p.ws.Close()
		p.out.done.Wait()
	})
}

// refuse ends a pipe that nobody reads.
func (p *wsPipe) refuse(code int, why string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := p.Receive(); err != nil {
				return
			}
		}
	}()
	p.bye(code, why)
	<-done
}

func (p *wsPipe) Close() error {
	p.bye(websocket.CloseGoingAway, "Drawbridge closed the connection")
	return nil
}
