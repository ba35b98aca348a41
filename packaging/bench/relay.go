package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
)

// relay stands between a client and a websocket server and does the least that
// something in between can do: it copies frames without reading them. Where the
// agent writes its audit, before a call runs and before its answer is sent, it
// writes a line to a file.
type relay struct {
	server *httptest.Server
	target string
	file   *os.File
	jobs   sync.WaitGroup // one for each direction of each connection
}

// auditLine is as long as what the agent's audit writes at once, about.
var auditLine = []byte(strings.Repeat("x", 500) + "\n")

func newRelay(target, file string) (*relay, error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	r := &relay{target: target, file: f}
	r.server = httptest.NewServer(r)
	return r, nil
}

func (r *relay) url() string { return "ws" + strings.TrimPrefix(r.server.URL, "http") }

func (r *relay) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	up := websocket.Upgrader{Subprotocols: websocket.Subprotocols(q)}
	client, err := up.Upgrade(w, q, nil)
	if err != nil {
		return // the upgrader has answered
	}
	d := websocket.Dialer{Subprotocols: []string{client.Subprotocol()}}
	host, _, err := d.DialContext(q.Context(), r.target, nil)
	if err != nil {
		client.Close()
		return
	}
	r.jobs.Go(func() { r.copy(host, client) })
	r.jobs.Go(func() { r.copy(client, host) })
}

// copy passes frames on until either end is gone, and then ends both.
func (r *relay) copy(to, from *websocket.Conn) {
	defer to.Close()
	defer from.Close()
	for {
		kind, frame, err := from.ReadMessage()
		if err != nil {
			return
		}
		if _, err := r.file.Write(auditLine); err != nil {
			return
		}
		if err := to.WriteMessage(kind, frame); err != nil {
			return
		}
	}
}

// close waits for the connections, whose clients must be closed by now, to end.
func (r *relay) close() error {
	r.jobs.Wait()
	r.server.Close()
	return errors.Join(r.file.Close(), os.Remove(r.file.Name()))
}
