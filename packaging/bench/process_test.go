package main

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

func TestParseStat(t *testing.T) {
	for _, c := range []struct {
		in          string
		pid, parent int
		ok          bool
	}{
		{"12 (jwm) S 7 12 12 0", 12, 7, true},
		{"12 (a) b (c)) S 9 1", 12, 9, true},
		{"12 (jwm) S", 0, 0, false},
		{"", 0, 0, false},
		{"x (jwm) S 7 1", 0, 7, false},
	} {
		pid, parent, ok := parseStat(c.in)
		if pid != c.pid || parent != c.parent || ok != c.ok {
			t.Errorf("parseStat(%q) = %d, %d, %v", c.in, pid, parent, ok)
		}
	}
}

func TestParseStatus(t *testing.T) {
	const text = "Name:\tVmRSS\nVmRSS:\t   2048 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t9\n"
	for name, want := range map[string]int{"VmRSS": 2048, "voluntary_ctxt_switches": 7} {
		if got, err := parseStatus(text, name); err != nil || got != want {
			t.Errorf("%s = %d, %v; want %d", name, got, err, want)
		}
	}
	if _, err := parseStatus(text, "Vm"); err == nil {
		t.Error("found a field that is not there")
	}
}

func TestDescendants(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc here")
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	found, err := descendants(os.Getpid())
	if err != nil || !slices.Contains(found, cmd.Process.Pid) {
		t.Fatalf("%v, %v: want %d in it", found, err, cmd.Process.Pid)
	}
}

func TestTypedText(t *testing.T) {
	text := typed()
	if len(text) != 1120 {
		t.Fatalf("%d characters", len(text))
	}
	for c := byte(' '); c <= '~'; c++ {
		if !slices.Contains([]byte(text), c) {
			t.Errorf("%q is not in it", c)
		}
	}
}
