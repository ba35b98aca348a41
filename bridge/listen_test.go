package bridge

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestListen(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.168.1.1:0", "example.com:0", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000"} {
		if ln, _, err := Listen(addr); err == nil {
			_ = ln.Close()
			t.Errorf("%s was taken", addr)
		}
	}
	ln, warning, err := Listen("localhost:0")
	if err != nil || warning != "" {
		t.Fatal(warning, err)
	}
	defer ln.Close()
	// The port is busy: another one, and a warning that names both.
	busy := ln.Addr().String()
	other, warning, err := Listen(busy)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if other.Addr().String() == busy || !strings.Contains(warning, busy) || !strings.Contains(warning, other.Addr().String()) {
		t.Errorf("on %s: %q", other.Addr(), warning)
	}
	if !other.Addr().(*net.TCPAddr).IP.IsLoopback() {
		t.Errorf("the other port is on %s", other.Addr())
	}
	if got, want := URL(ln), "ws://"+busy+"/mcp"; got != want {
		t.Errorf("URL %s, want %s", got, want)
	}
}

func TestEndpoint(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadEndpoint(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without an agent: %v", err)
	}
	mine := Endpoint{PID: 1, Started: time.Unix(1, 0).UTC(), URL: "ws://127.0.0.1:1/mcp", Control: "c"}
	remove, err := WriteEndpoint(dir, mine)
	if err != nil {
		t.Fatal(err)
	}
	mine.V = 1
	if got, err := ReadEndpoint(dir); err != nil || got != mine {
		t.Errorf("%+v, %v", got, err)
	}
	if st, err := os.Stat(filepath.Join(dir, EndpointFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	// Another agent took over: its file stays.
	removeOther, err := WriteEndpoint(dir, Endpoint{PID: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadEndpoint(dir); err != nil || got.PID != 2 {
		t.Errorf("the other agent's file: %+v, %v", got, err)
	}
	for range 2 { // the second time it is gone, which is as well
		if err := removeOther(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadEndpoint(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
}
