package audit

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUDIT_WRITE"); dir != "" {
		l, err := Open(dir, Options{MaxSize: 10_000})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for i := 0; ; i++ {
			id := fmt.Sprint("c-", i)
			l.Append(start(id))
			fmt.Println(id) // from here on it must be on record
			if i%3 != 0 {
				l.Append(done(id))
			}
		}
	}
	if dir := os.Getenv("AUDIT_LIMIT"); dir != "" {
		if err := writeOverLimit(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writeOverLimit writes while the kernel refuses to let files grow over 4 KiB,
// and again when it does no more.
func writeOverLimit(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: old.Max}); err != nil {
		return err
	}
	l, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	for i := range 20 {
		l.Append(start(fmt.Sprint(i)), done(fmt.Sprint(i)))
	}
	if l.Failed() == 0 || !errors.Is(l.Healthy(), syscall.EFBIG) {
		return fmt.Errorf("failed %d, healthy %v", l.Failed(), l.Healthy())
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	l.Append(start("after"), done("after"))
	if err := l.Healthy(); err != nil {
		return err
	}
	return l.Close()
}

// TestNoRoom has the kernel cut writes short, as on a full disk.
func TestNoRoom(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AUDIT_LIMIT="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := lines(t, dir)
	n := len(all)
	if n < 5 || !strings.Contains(all[n-3], " records are missing and 0 come late, since ") || !strings.Contains(all[n-1], `"id":"after"`) {
		t.Errorf("%s", strings.Join(all, "\n"))
	}
	if r := verify(t, dir); !r.OK() || len(r.Open) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestKilled kills a writing process: nothing that Append returned from is lost,
// and what was open is closed at the next start.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AUDIT_WRITE="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for sc := bufio.NewScanner(out); sc.Scan(); {
		if ids = append(ids, sc.Text()); len(ids) == 100 {
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
	if len(ids) < 100 {
		t.Fatalf("the process ended early: %q", ids)
	}
	l := open(t, dir, Options{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	all := lines(t, dir)
	for i, id := range ids {
		has := func(phase Phase, outcome string) bool {
			return slices.ContainsFunc(all, func(line string) bool {
				return strings.Contains(line, fmt.Sprintf(`"phase":"%s","id":"%s",`, phase, id)) && strings.Contains(line, outcome)
			})
		}
		if !has(Start, "") || !has(Done, `"outcome":`) || i%3 == 0 && !has(Done, `"outcome":"unknown"`) {
			t.Errorf("%s is not on record as it should", id)
		}
	}
	if r := verify(t, dir); !r.OK() || len(r.Open) != 0 {
		t.Errorf("%+v", r)
	}
}
