package host

import (
	"encoding/json"
	"errors"
	"strconv"

	"drawbridge/bridge/wire"
)

// envelope is a JSON-RPC message of a host, taken apart; its fields alias the
// frame. Unlike a client's frame it is not held against anything that it need
// not be: what a host sends goes through.
type envelope struct {
	id, params, result, rpcErr json.RawMessage
	method                     string
}

// parseEnvelope reads a frame. It refuses what two readers could read in two
// ways, since we forward what others will read.
func parseEnvelope(frame []byte) (envelope, error) {
	if err := wire.Validate(frame); err != nil {
		return envelope{}, err
	}
	var e envelope
	var version, method json.RawMessage
	wire.Members(frame, func(m wire.Member) bool {
		raw := json.RawMessage(frame[m.Start:m.End:m.End])
		switch m.Name {
		case "jsonrpc":
			version = raw
		case "id":
			e.id = raw
		case "method":
			method = raw
		case "params":
			e.params = raw
		case "result":
			e.result = raw
		case "error":
			e.rpcErr = raw
		}
		return true
	})
	switch {
	case string(version) != `"2.0"`:
		return e, errors.New(`jsonrpc is not "2.0"`)
	case method != nil && json.Unmarshal(method, &e.method) != nil:
		return e, errors.New("the method is not a text")
	case method == nil && e.result == nil && e.rpcErr == nil:
		return e, errors.New("it is neither a call nor an answer")
	}
	if string(e.rpcErr) == "null" && e.result != nil {
		e.rpcErr = nil // some servers send both members always
	}
	if e.rpcErr != nil {
		e.result = nil
	}
	return e, nil
}

// ownID reads an id that we gave; 0 when it is none.
func ownID(raw json.RawMessage) uint64 {
	id, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// orphan tells which request of ours a frame would answer that cannot be taken.
func orphan(k *wire.Skimmer) uint64 {
	if k.Method() != "" {
		return 0
	}
	return ownID(k.ID())
}
