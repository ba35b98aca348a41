package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"
)

// errProbeEnded tells that the connection ended over server/discover. A host of
// the older era may do that; it is opened without the question then.
var errProbeEnded = errors.New("it ended over server/discover")

// probeTime is how long a host may think about server/discover. Hosts of the
// older era answer with an error at once; some that do not know it stay silent.
const probeTime = 5 * time.Second

// OpenOptions say how to open a connection.
type OpenOptions struct {
	// Probe asks with server/discover first and falls back to initialize.
	// Without it the connection opens with initialize.
	Probe   bool
	Version string // of this program, for the host to see
	Events  Events
	Log     zerolog.Logger
}

// Peer is what a host says of itself, raw.
type Peer struct {
	Revision string // of the protocol, as agreed
	Info     json.RawMessage
	// ListChanged: the host says when its tools change.
	ListChanged bool
	Tools       bool // it has tools at all
	// WillAsk: it can tell beforehand whether it will itself ask somebody about a
	// call. It says so with the experimental capability drawbridge/willAsk.
	WillAsk bool
}

// revisionSetter is a pipe that says the agreed revision in its headers.
type revisionSetter interface{ SetRevision(revision string) }

// Open speaks the opening of the protocol over a pipe. On error the pipe is
// closed.
func Open(ctx context.Context, p Pipe, o OpenOptions) (*Conn, Peer, error) {
	c := newConn(p, o.Events, o.Version, o.Log)
	go c.read()
	peer, err := c.agree(ctx, o.Probe)
	if err != nil {
		c.Close()
		return nil, Peer{}, err
	}
	if c.modern && peer.ListChanged {
		c.sends.Add(1)
		go c.listen()
	}
	return c, peer, nil
}

// capabilities is the part of a host's that we use.
type capabilities struct {
	Tools *struct {
		ListChanged bool `json:"listChanged"`
	} `json:"tools"`
	Experimental struct {
		WillAsk json.RawMessage `json:"drawbridge/willAsk"`
	} `json:"experimental"`
}

func (p *Peer) capabilities(c capabilities) {
	p.Tools = c.Tools != nil
	p.ListChanged = c.Tools != nil && c.Tools.ListChanged
	p.WillAsk = c.Experimental.WillAsk != nil
}

// agree finds the era that both speak.
func (c *Conn) agree(ctx context.Context, probe bool) (Peer, error) {
	if probe {
		peer, ok, err := c.discover(ctx)
		if ok || err != nil {
			return peer, err
		}
	}
	return c.initialize(ctx)
}

// discover asks a host whether it speaks the stateless era. Not ok means that
// the older opening is to be tried; an error, that nothing more will work.
func (c *Conn) discover(ctx context.Context) (Peer, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	c.modern = true
	r := c.request(ctx, "server/discover", `{}`)
	c.modern = false
	if errors.Is(r.err, ErrGone) {
		return Peer{}, false, fmt.Errorf("%w: %w", errProbeEnded, r.err)
	}
	var d struct {
		Versions     []string     `json:"supportedVersions"`
		Capabilities capabilities `json:"capabilities"`
		Meta         struct {
			Info json.RawMessage `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if r.result == nil || json.Unmarshal(r.result, &d) != nil || !slices.Contains(d.Versions, modernVersion) {
		return Peer{}, false, nil
	}
	c.modern = true
	peer := Peer{Revision: modernVersion, Info: d.Meta.Info}
	peer.capabilities(d.Capabilities)
	c.setRevision(peer.Revision)
	return peer, true, nil
}

func (c *Conn) initialize(ctx context.Context) (Peer, error) {
	r := c.request(ctx, "initialize", `{"protocolVersion":"`+legacyVersion+`","capabilities":{},"clientInfo":`+c.info+`}`)
	if err := r.failure("initialize"); err != nil {
		return Peer{}, err
	}
	var i struct {
		Version      string          `json:"protocolVersion"`
		Capabilities capabilities    `json:"capabilities"`
		Info         json.RawMessage `json:"serverInfo"`
	}
	if err := json.Unmarshal(r.result, &i); err != nil {
		return Peer{}, fmt.Errorf("initialize: the host's answer is not understood: %w", err)
	}
	if !slices.Contains(legacyVersions, i.Version) {
		return Peer{}, fmt.Errorf("initialize: the host speaks protocol revision %q; this program speaks %s and %v", i.Version, modernVersion, legacyVersions)
	}
	peer := Peer{Revision: i.Version, Info: i.Info}
	peer.capabilities(i.Capabilities)
	c.setRevision(peer.Revision)
	if err := c.pipe.Send(ctx, Outgoing{Method: "notifications/initialized",
		Frame: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)}); err != nil {
		return Peer{}, fmt.Errorf("notifications/initialized: %w", err)
	}
	return peer, nil
}

func (c *Conn) setRevision(r string) {
	if p, ok := c.pipe.(revisionSetter); ok {
		p.SetRevision(r)
	}
}

// failure is the reply as an error; nil when it holds a result.
func (r reply) failure(method string) error {
	switch {
	case r.err != nil:
		return fmt.Errorf("%s: %w", method, r.err)
	case r.rpcErr != nil:
		var e struct {
			Code    json.Number `json:"code"`
			Message string      `json:"message"`
		}
		if json.Unmarshal(r.rpcErr, &e) != nil {
			return fmt.Errorf("%s: the host answered with an error that is not understood", method)
		}
		return fmt.Errorf("%s: the host answered: %s (%s)", method, e.Message, e.Code)
	case r.result == nil:
		return fmt.Errorf("%s: the host answered with neither result nor error", method)
	}
	return nil
}

// listenWait bounds how often an ended subscription is asked for again.
const (
	listenWait    = 2 * time.Second
	listenWaitMax = time.Minute
)

// listen keeps a stateless host's subscription to list changes open while the
// connection lives. It ends with the connection, or when the host refuses.
func (c *Conn) listen() {
	defer c.sends.Done()
	wait := listenWait
	for {
		// The request ends with the connection: Close fails all that are open.
		r := c.request(context.Background(), "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`)
		if r.rpcErr != nil || errors.Is(r.err, ErrGone) {
			if r.rpcErr != nil {
				c.log.Debug().Err(r.failure("subscriptions/listen")).Msg("the host's list changes are not heard")
			}
			return
		}
		select {
		case <-c.closed:
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, listenWaitMax)
		if c.events.ListChanged != nil {
			c.events.ListChanged() // what changed meanwhile was not heard
		}
	}
}
