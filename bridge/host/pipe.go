package host

import (
	"context"
	"encoding/json"
)

// Pipe carries whole JSON-RPC frames to and from one MCP server, whatever the
// binding: a websocket that the host dialled, a child's stdio, Streamable HTTP.
type Pipe interface {
	// Send puts one frame on its way and returns without waiting for the far end
	// to read it. ctx is the life of the request that the frame opens; a binding
	// with a stream per request closes it when ctx ends. Any goroutine may call.
	Send(ctx context.Context, f Outgoing) error
	// Receive returns what comes next. One goroutine calls it, until it returns
	// an error; that error says why the pipe ended.
	Receive() (Incoming, error)
	// Close ends the pipe and unblocks Receive. It may be called many times.
	Close() error
}

// Outgoing is one frame to a host. Method, Name and Arguments repeat what the frame
// says, for bindings that put them into headers.
type Outgoing struct {
	ID     uint64 // of the request; 0 for a notification or an answer
	Method string // empty for an answer
	Name   string // the tool, as the host names it; only for tools/call
	Frame  []byte // must not be changed after Send
	// Definition and Arguments are those of a tools/call; raw.
	Definition, Arguments json.RawMessage
}

// Incoming is one frame from a host, or the news that a request of ours will
// get no answer.
type Incoming struct {
	Frame []byte // owned by the receiver
	// Err, if set, says why request ID has no answer. The pipe lives on. ID is 0
	// when it is not known which request it was.
	Err error
	ID  uint64
}

// DefaultMaxFrame is the longest frame that we keep of a host: room for 64 MiB
// of base64 and what is around it.
const DefaultMaxFrame = 80 << 20
