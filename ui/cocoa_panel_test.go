//go:build standin

package ui

import (
	"testing"
	"time"
	"context"
	"os"
	"image"

	"drawbridge/bridge/gate"
)

func TestCocoaSmoke(t *testing.T) {
	m := openMac(t)
	s := NewPanels(PanelOptions{})
	g := gate.New(gate.Options{Deadline: time.Minute, PerClient: 10, Changed: func() {}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go s.Run(ctx)
	until(t, "ready", s.Ready)
	g.AddSurface(s)
	got := make(chan gate.Verdict, 1)
	go func() {
		got <- g.Decide(ctx, &gate.Request{Client: "claude", Token: "t", Conn: "c", Host: "omp", Tool: "bash", Args: []byte(`{"command":"ls"}`), Default: gate.DefaultAsk})
	}()
	time.Sleep(2 * time.Second)
	os.WriteFile("/tmp/smoke.png", m.picture(t, image.Rectangle{}), 0o644)
	select {
	case v := <-got:
		t.Log(v)
	case <-time.After(time.Second):
	}
}
