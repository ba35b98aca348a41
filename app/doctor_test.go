package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
)

// Whoever ends doctor is told so in a word, and not by how it is programmed.
func TestDoctorIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"doctor"}, {"doctor", "--backend", "simulated", "--test-input"}} {
		var out bytes.Buffer
		root := (&cli{stdio: stdio{in: strings.NewReader(""), out: &out, err: io.Discard, getenv: os.Getenv}}).root()
		root.SetArgs(append([]string{"--state", t.TempDir()}, args...))
		if err := root.ExecuteContext(ctx); err == nil || err.Error() != "interrupted" || out.Len() > 0 {
			t.Errorf("%v: %v, %q", args, err, out.String())
		}
	}
}
