package ui

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestHoldback(t *testing.T) {
	var out bytes.Buffer
	h := &holdback{to: &out}
	fmt.Fprint(h, "a\n")
	h.close()
	fmt.Fprint(h, "b\n")
	if out.String() != "a\n" {
		t.Errorf("%q while closed", &out)
	}
	h.open()
	fmt.Fprint(h, "c\n")
	if out.String() != "a\nb\nc\n" {
		t.Errorf("%q after", &out)
	}
	out.Reset()
	h.close()
	line := strings.Repeat("x", 1023) + "\n"
	for range 100 {
		fmt.Fprint(h, line)
	}
	h.open()
	if !strings.HasSuffix(out.String(), "(36 log lines were left out while a question was on the screen)\n") || strings.Count(out.String(), line) != 64 {
		t.Errorf("%d bytes, ending in %q", out.Len(), out.String()[out.Len()-80:])
	}
}
