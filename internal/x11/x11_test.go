package x11

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestParseDisplay(t *testing.T) {
	t.Setenv("DISPLAY", ":7.1")
	for name, want := range map[string]address{
		"":                    {number: 7, screen: 1},
		":0":                  {},
		":12.3":               {number: 12, screen: 3},
		"unix:4":              {number: 4},
		"box/unix:4":          {number: 4},
		"host:10.0":           {host: "host", number: 10},
		"tcp/host:2":          {host: "host", number: 2},
		"[::1]:5":             {host: "::1", number: 5},
		"/tmp/launch-x/org:0": {socket: "/tmp/launch-x/org"},
	} {
		if got, err := parseDisplay(name); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", name, got, err, want)
		}
	}
	for _, name := range []string{"x", ":", ":a", ":-1", ":+1", ":1.", ":1.x", ":99999", "host:1:", ":0 "} {
		if got, err := parseDisplay(name); err == nil {
			t.Errorf("%q was taken for %+v", name, got)
		}
	}
	t.Setenv("DISPLAY", "")
	if _, err := parseDisplay(""); err == nil || !strings.Contains(err.Error(), "$DISPLAY") {
		t.Errorf("no display: %v", err)
	}
}

func FuzzParseDisplay(f *testing.F) {
	for _, s := range []string{":0", "host:1.2", "/a/b:3", "unix:4", "[::1]:5", "::", ""} {
		f.Add(s)
	}
	f.Setenv("DISPLAY", "")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := parseDisplay(s)
		if err != nil {
			return
		}
		if a.number < 0 || a.number > 59535 || a.screen < 0 {
			t.Errorf("%q: %+v", s, a)
		}
	})
}

func FuzzParseAuth(f *testing.F) {
	cookie := []byte("0123456789abcdef")
	f.Add(AppendAuthEntry(nil, 3, cookie))
	f.Add(AppendAuthEntry(AppendAuthEntry(nil, 3, cookie), 40, nil))
	f.Add([]byte{1, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := parseAuth(b)
		n := 0
		for _, e := range entries {
			n += 10 + len(e.addr) + len(e.number) + len(e.name) + len(e.data)
		}
		if n > len(b) || err == nil && n != len(b) {
			t.Errorf("%d bytes were read as %d, %v", len(b), n, err)
		}
	})
}

func TestFindCookie(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	entry := func(family uint16, addr, number, name, data string) []byte {
		b := []byte{byte(family >> 8), byte(family)}
		for _, s := range []string{addr, number, name, data} {
			b = append(b, byte(len(s)>>8), byte(len(s)))
			b = append(b, s...)
		}
		return b
	}
	file := filepath.Join(t.TempDir(), "auth")
	t.Setenv("XAUTHORITY", file)
	var b []byte
	for _, e := range [][]byte{
		entry(familyLocal, "elsewhere", "1", CookieName, "elsewhere"),
		entry(familyLocal, host, "1", "XDM-AUTHORIZATION-1", "other kind"),
		entry(familyLocal, host, "1", CookieName, "local one"),
		entry(familyInternet, "\x0a\x00\x00\x05", "0", CookieName, "far zero"),
		entry(familyWild, "", "3", CookieName, "wild three"),
		{1, 2, 3}, // a broken end
	} {
		b = append(b, e...)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	unix := &net.UnixAddr{Name: "/tmp/.X11-unix/X1", Net: "unix"}
	for _, c := range []struct {
		a      address
		remote net.Addr
		want   string
	}{
		{address{number: 1}, unix, "local one"},
		{address{number: 2}, unix, ""},
		{address{number: 3}, unix, "wild three"},
		{address{host: "localhost", number: 1}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, "local one"}, // ssh
		{address{host: "far"}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5)}, "far zero"},
		{address{host: "far", number: 1}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5)}, ""},
	} {
		if got := findCookie(c.a, c.remote); string(got) != c.want {
			t.Errorf("%v: %q, want %q", c.a, got, c.want)
		}
	}

	// Displays of our own come first, and only for local connections.
	SetCookie(3, []byte("ours"))
	defer SetCookie(3, nil)
	if got := findCookie(address{number: 3}, unix); string(got) != "ours" {
		t.Errorf("our own display: %q", got)
	}
	if got := findCookie(address{host: "far", number: 3}, &net.TCPAddr{}); string(got) != "wild three" {
		t.Errorf("a far display: %q", got)
	}
	SetCookie(3, nil)
	if got := findCookie(address{number: 3}, unix); string(got) != "wild three" {
		t.Errorf("after it was forgotten: %q", got)
	}
	t.Setenv("XAUTHORITY", filepath.Join(t.TempDir(), "none"))
	if got := findCookie(address{number: 1}, unix); got != nil {
		t.Errorf("without a file: %q", got)
	}
}

func TestAuthEntryRoundTrip(t *testing.T) {
	cookie := []byte("0123456789abcdef")
	got, err := parseAuth(AppendAuthEntry(nil, 42, cookie))
	want := []authEntry{{family: familyWild, number: "42", name: CookieName, data: cookie}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// silentServer is a socket that accepts and says nothing.
func silentServer(t *testing.T) (display string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x")
	l, err := net.Listen("unix", path+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return path + ":0"
}

func TestDialEndsWithContext(t *testing.T) {
	display := silentServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, display, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a deadline: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(30*time.Millisecond, cancel)
	if _, err := Dial(ctx, display, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancel: %v", err)
	}
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Conn{dead: make(chan struct{})}
		if v, err := Await(t.Context(), c, func() (int, error) { return 7, nil }); v != 7 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
		own := errors.New("own")
		if err := c.Do(t.Context(), func() error { return own }); err != own {
			t.Errorf("an error came back as %v", err)
		}
		block := make(chan struct{})
		defer close(block)
		hang := func() error { <-block; return nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := c.Do(ctx, hang); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the deadline: %v", err)
		}
		if err := c.Do(ctx, func() error { t.Error("called after the deadline"); return nil }); err == nil {
			t.Error("no error after the deadline")
		}
		time.AfterFunc(time.Hour, func() { close(c.dead) })
		if err := c.Do(t.Context(), hang); !errors.Is(err, ErrClosed) {
			t.Errorf("after the server's death: %v", err)
		}
	})
}
