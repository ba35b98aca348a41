package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
)

// Report is what came of trying a host.
type Report struct {
	Kind     string        `json:"kind"`
	Revision string        `json:"revision"` // of the protocol, as agreed
	Server   string        `json:"server"`   // what it says of itself, as JSON
	Tools    []string      `json:"tools"`
	Notes    []string      `json:"notes"` // what cannot be listed, and why
	Took     time.Duration `json:"-"`
}

// Try starts or dials a configured host once, lists its tools and ends it again.
// The error says what is wrong. An attached session cannot be tried: it comes by
// itself.
func Try(ctx context.Context, name string, c Config, version string, log zerolog.Logger) (r Report, err error) {
	if err := CheckName(name); err != nil {
		return r, err
	}
	if err := c.Check(); err != nil {
		return r, fmt.Errorf("hosts.%s: %w", name, err)
	}
	if c.Kind() == KindAttached {
		return r, errors.New("a session that dials in cannot be tried; drawbridge status says whether it is there")
	}
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, openTime, fmt.Errorf("it did not answer within %s", openTime))
	defer cancel()
	var conn *Conn
	var peer Peer
	for _, probe := range []bool{true, false} {
		var pipe Pipe
		if pipe, err = dial(&c, DefaultMaxFrame, log); err != nil {
			return r, err
		}
		conn, peer, err = Open(ctx, pipe, OpenOptions{Probe: probe, Version: version, Log: log})
		if !errors.Is(err, errProbeEnded) {
			break
		}
	}
	if err != nil {
		return r, err
	}
	defer conn.Close()
	r = Report{Kind: c.Kind(), Revision: peer.Revision, Server: string(peer.Info), Tools: []string{}, Notes: []string{}}
	if !peer.Tools {
		r.Notes = append(r.Notes, noTools)
		r.Took = time.Since(began)
		return r, nil
	}
	tools, notes, err := conn.List(ctx)
	if err != nil {
		return r, err
	}
	for i := range tools {
		r.Tools = append(r.Tools, tools[i].Name)
	}
	r.Notes, r.Took = append(r.Notes, notes...), time.Since(began)
	return r, nil
}
