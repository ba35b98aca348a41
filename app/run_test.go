package main

import (
	"bytes"
	"testing"
)

func TestRunVersion(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"version"}, nil, &out, &errs); code != exitOK || out.String() != "drawbridge dev\n" {
		t.Fatalf("version: exit %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
	if code := run([]string{"nonsense"}, nil, &out, &errs); code != exitUsage {
		t.Fatalf("nonsense: exit %d, want %d", code, exitUsage)
	}
}
