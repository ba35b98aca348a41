package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"drawbridge/bridge/hostllm"
	"drawbridge/bridge/wire"
)

// modelsTime is how long a session may take to follow the model switch.
const modelsTime = 10 * time.Second

// Limits of what a session says of its models.
const (
	maxCoverage     = 64   // layers and residuals each
	maxCoverageText = 1000 // bytes of each
)

// followModels tells an attached session of the model switch, now and at every
// change, and the switch of what the session covers. The returned func ends that.
func (h *Host) followModels(ctx context.Context, conn *Conn) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	attached := h.set.opts.Models.Attach(h.name)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer attached.Gone()
		var told hostllm.Mode
		for {
			state, changed := h.set.opts.Models.Watch()
			if state.Mode != told {
				coverage, err := conn.tellModels(ctx, state.Mode)
				if err != nil {
					h.log().Warn().Err(err).Str("mode", string(state.Mode)).Msg("the session does not follow the model switch")
				}
				told = state.Mode
				attached.Covers(coverage)
				continue
			}
			select {
			case <-changed:
			case <-conn.Closed():
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// tellModels sends drawbridge/hostLlm. A session that does not know it covers
// nothing.
func (c *Conn) tellModels(ctx context.Context, mode hostllm.Mode) (*hostllm.Coverage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, modelsTime, fmt.Errorf("it did not answer within %s", modelsTime))
	defer cancel()
	r := c.request(ctx, "drawbridge/hostLlm", `{"mode":`+string(wire.AppendString(nil, string(mode)))+`}`)
	if err := r.failure("drawbridge/hostLlm"); err != nil {
		return nil, err
	}
	var cov hostllm.Coverage
	if err := json.Unmarshal(r.result, &cov); err != nil {
		return nil, fmt.Errorf("its answer about the model switch is not understood: %w", err)
	}
	if _, err := hostllm.ParseMode(string(cov.Mode)); err != nil {
		return nil, fmt.Errorf("its answer about the model switch: %w", err)
	}
	for _, list := range [][]string{cov.Covers, cov.Residuals} {
		if len(list) > maxCoverage {
			return nil, errors.New("its answer about the model switch is too long")
		}
		for _, text := range list {
			if len(text) > maxCoverageText {
				return nil, errors.New("its answer about the model switch is too long")
			}
		}
	}
	if cov.Mode != mode {
		return &cov, fmt.Errorf("it is at %s", cov.Mode)
	}
	return &cov, nil
}

// other takes the notifications of a session that are its own. Every other one
// is dropped, notifications/message too: it belongs to no call, so that nobody
// could say which client may read it.
func (h *Host) other(method string, params json.RawMessage) {
	if method != "drawbridge/hostLlmRefused" || h.set.opts.Models == nil || h.config.Kind() != KindAttached {
		return
	}
	var p struct {
		Layer       hostllm.Layer `json:"layer"`
		Provider    string        `json:"provider"`
		Destination string        `json:"destination"`
	}
	if err := json.Unmarshal(params, &p); err != nil || p.Layer != hostllm.LayerProviders && p.Layer != hostllm.LayerFetch ||
		len(p.Provider) > maxCoverageText || len(p.Destination) > maxCoverageText {
		h.log().Warn().Msg("ignored from host: drawbridge/hostLlmRefused is not understood")
		return
	}
	h.set.opts.Models.Refuse(hostllm.Refusal{Host: h.name, Layer: p.Layer, Provider: p.Provider, Destination: p.Destination})
}
