package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func stateDir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(append([]string{t.TempDir()}, parts...)...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func serve(t *testing.T, dir string, verbs map[string]Handler) *Server {
	t.Helper()
	s, err := Listen(dir, verbs, nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if _, err := os.Lstat(Path(dir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left: %v", err)
		}
	})
	return s
}

var verbs = map[string]Handler{
	"echo": func(_ context.Context, args json.RawMessage, _ func(any) error) (any, error) { return args, nil },
	"count": func(_ context.Context, _ json.RawMessage, emit func(any) error) (any, error) {
		for i := range 3 {
			if err := emit(i); err != nil {
				return nil, err
			}
		}
		return "done", nil
	},
	"fail": func(context.Context, json.RawMessage, func(any) error) (any, error) {
		return nil, errors.New("it broke")
	},
	"coded": func(context.Context, json.RawMessage, func(any) error) (any, error) {
		return nil, &Error{"odd", "it is odd"}
	},
}

func TestDo(t *testing.T) {
	for name, parts := range map[string][]string{
		"short": nil,
		// Longer than any socket address holds.
		"long": {strings.Repeat("d", 120), strings.Repeat("e", 120)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := stateDir(t, parts...)
			serve(t, dir, verbs)
			c, err := Dial(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			var echoed map[string]any
			if err := c.Do(t.Context(), "echo", map[string]any{"a": "b"}, &echoed, nil); err != nil || echoed["a"] != "b" {
				t.Errorf("echo: %v, %v", echoed, err)
			}
			var progress []string
			var result string
			err = c.Do(t.Context(), "count", nil, &result, func(p json.RawMessage) { progress = append(progress, string(p)) })
			if err != nil || result != "done" || !reflect.DeepEqual(progress, []string{"0", "1", "2"}) {
				t.Errorf("count: %q after %q, %v", result, progress, err)
			}
			var e *Error
			if err := c.Do(t.Context(), "fail", nil, nil, nil); !errors.As(err, &e) || *e != (Error{"", "it broke"}) {
				t.Errorf("fail: %v", err)
			}
			if err := c.Do(t.Context(), "coded", nil, nil, nil); !errors.As(err, &e) || *e != (Error{"odd", "it is odd"}) {
				t.Errorf("coded: %v", err)
			}
			if err := c.Do(t.Context(), "nonsense", nil, nil, nil); !errors.As(err, &e) || e.Code != "unknown_verb" || !strings.Contains(e.Message, "coded, count, echo, fail") {
				t.Errorf("nonsense: %v", err)
			}
			info, err := os.Lstat(Path(dir))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("socket: %v, %v; want mode 0600", info.Mode(), err)
			}
		})
	}
}

func TestHangUpCancels(t *testing.T) {
	dir := stateDir(t)
	started, ended := make(chan struct{}), make(chan error, 1)
	serve(t, dir, map[string]Handler{"hang": func(ctx context.Context, _ json.RawMessage, _ func(any) error) (any, error) {
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("had enough")
	go func() {
		<-started
		cancel(why)
	}()
	c, err := Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Do(ctx, "hang", nil, nil, nil); !errors.Is(err, why) {
		t.Errorf("Do: %v, want its context's cause", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler's context ended with %v", err)
	}
}

func TestCloseEndsRequests(t *testing.T) {
	dir := stateDir(t)
	started := make(chan struct{})
	s, err := Listen(dir, map[string]Handler{"hang": func(ctx context.Context, _ json.RawMessage, _ func(any) error) (any, error) {
		close(started)
		<-ctx.Done()
		return nil, errors.New("the agent is closing")
	}}, nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	idle, err := net.Dial("unix", Path(dir)) // says nothing, ever
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	done := make(chan error, 1)
	go func() {
		c := &Client{dir}
		done <- c.Do(context.Background(), "hang", nil, nil, nil)
	}()
	<-started
	s.Close()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "the agent") {
		t.Errorf("Do: %v", err)
	}
}

func TestNoAgent(t *testing.T) {
	dir := stateDir(t)
	for _, d := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := Dial(t.Context(), d); !errors.Is(err, ErrNoAgent) || !strings.Contains(err.Error(), d) {
			t.Errorf("Dial(%s): %v, want ErrNoAgent with the place", d, err)
		}
	}
	leaveStale(t, dir)
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNoAgent) {
		t.Errorf("a stale socket: %v, want ErrNoAgent", err)
	}
	serve(t, dir, verbs) // replaces it
	if _, err := Dial(t.Context(), dir); err != nil {
		t.Error(err)
	}
}

// leaveStale leaves the socket that a killed agent leaves.
func leaveStale(t *testing.T, dir string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: Path(dir), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

func TestListenRefuses(t *testing.T) {
	dir := stateDir(t)
	serve(t, dir, verbs)
	if _, err := Listen(dir, verbs, nil, zerolog.Nop()); !errors.Is(err, ErrInUse) {
		t.Errorf("a second server: %v, want ErrInUse", err)
	}

	file := stateDir(t)
	if err := os.WriteFile(Path(file), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(file, verbs, nil, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("a file in the socket's place: %v", err)
	}
	if b, _ := os.ReadFile(Path(file)); string(b) != "mine" {
		t.Error("the file was touched")
	}

	open := stateDir(t)
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(open, verbs, nil, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "mode 0755") {
		t.Errorf("a directory open to others: %v", err)
	}
	if _, err := Dial(t.Context(), open); err == nil || !strings.Contains(err.Error(), "mode 0755") {
		t.Errorf("dialling into a directory open to others: %v", err)
	}
}

func TestBadRequests(t *testing.T) {
	dir := stateDir(t)
	serve(t, dir, verbs)
	for name, tc := range map[string]struct{ in, want string }{
		"no JSON":       {"status\n", "no JSON object"},
		"unknown field": {`{"verb":"echo","token":"x"}` + "\n", `unknown field \"token\"`},
		"wrong type":    {`{"verb":5}` + "\n", "no JSON object"},
		"endless":       {strings.Repeat("x", maxLine+10), "longer than"},
	} {
		c, err := net.Dial("unix", Path(dir))
		if err != nil {
			t.Fatal(err)
		}
		go io.WriteString(c, tc.in) // the server may answer before it has read all
		out, _ := io.ReadAll(c)
		c.Close()
		if !strings.Contains(string(out), tc.want) || !strings.Contains(string(out), `"code":"bad_request"`) {
			t.Errorf("%s: answered %q, want bad_request and %q", name, out, tc.want)
		}
	}
	if _, err := Dial(t.Context(), dir); err != nil {
		t.Errorf("after bad requests: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	dir := stateDir(t)
	release := make(chan struct{})
	serve(t, dir, map[string]Handler{"hang": func(ctx context.Context, _ json.RawMessage, emit func(any) error) (any, error) {
		emit("started")
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil, nil
	}})
	c := &Client{dir}
	started, done := make(chan struct{}), make(chan error)
	for range maxConns {
		go func() {
			done <- c.Do(t.Context(), "hang", nil, nil, func(json.RawMessage) { started <- struct{}{} })
		}()
	}
	for range maxConns {
		<-started
	}
	var e *Error
	if err := c.Do(t.Context(), "hang", nil, nil, nil); !errors.As(err, &e) || e.Code != "busy" {
		t.Errorf("one more than the limit: %v, want busy", err)
	}
	close(release)
	for range maxConns {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A second agent that took the directory over keeps its socket when the first
// one closes late.
func TestCloseLeavesAnothersSocket(t *testing.T) {
	dir := stateDir(t)
	s, err := Listen(dir, verbs, nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(Path(dir)); err != nil {
		t.Fatal(err)
	}
	leaveStale(t, dir)
	s.Close()
	if _, err := os.Lstat(Path(dir)); err != nil {
		t.Errorf("the other's socket is gone: %v", err)
	}
}
