package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func open(t *testing.T, dir string, opts Options) *Log {
	t.Helper()
	l, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// crash drops a log as a dying process would: nothing is flushed, and the
// kernel gives the lock back.
func crash(l *Log) {
	l.timer.Stop()
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.f.Close()
	l.lock.Close()
}

func verify(t *testing.T, dir string) Report {
	t.Helper()
	r, err := Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func lines(t *testing.T, dir string) []string {
	t.Helper()
	var b bytes.Buffer
	if err := Export(dir, &b); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func start(id string) Record {
	return Record{Phase: Start, ID: id, Client: "c", Conn: "k1", Host: "h", Tool: "read", Args: json.RawMessage(`{"n":1}`)}
}

func done(id string) Record {
	return Record{Phase: Done, ID: id, Client: "c", Conn: "k1", Host: "h", Tool: "read", Outcome: "ok", MS: 1.5, In: 7, Out: 20}
}

func TestLinesGolden(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	now := time.Date(2026, 3, 4, 5, 6, 7, 89_000, time.FixedZone("", 3600))
	l := open(t, dir, Options{Now: func() time.Time { return now }})
	l.Append(Record{Phase: Start, ID: "c-1", Client: "claude", Conn: "k1", Host: "drawbridge", Tool: "computer",
		Args: json.RawMessage(`{"actions": [{"type":"type","text":"geheim"},{"type":"click","x":1e2,"y":20}]}`)})
	l.Append(Record{Phase: Ask, ID: "c-1", Client: "claude", Conn: "k1", Host: "drawbridge", Tool: "computer"},
		Record{Phase: Verdict, ID: "c-1", Client: "claude", Conn: "k1", Host: "drawbridge", Tool: "computer", Outcome: "allowed: person at the terminal"})
	l.Append(Record{Phase: Done, ID: "c-1", Client: "claude", Conn: "k1", Host: "drawbridge", Tool: "computer", Outcome: "ok", MS: 12.3456, In: 80, Out: 123456})
	l.Append(Record{Phase: Note, Outcome: "a \"quoted\" note\nwith é"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "lines.golden")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// The recipe of the package's documentation, done by hand.
	prev := strings.Repeat("0", 64)
	for i, line := range strings.Split(strings.TrimSuffix(string(want), "\n"), "\n") {
		sum := sha256.Sum256([]byte(line[:len(line)-75] + "}"))
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m["hash"] != hex.EncodeToString(sum[:]) || m["prev"] != prev || m["seq"] != float64(i+1) {
			t.Errorf("line %d does not follow the recipe: %s", i+1, line)
		}
		prev = m["hash"].(string)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "audit.jsonl"): 0o600, filepath.Join(dir, "audit.head"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode(), err, mode)
		}
	}
}

func TestRotationKeepsChainAndDropsOldest(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{MaxSize: 2000, Generations: 3})
	for i := range 40 {
		id := fmt.Sprintf("c-%02d", i)
		l.Append(start(id)) // a rotation may fall between the two
		l.Append(done(id))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	gens, err := generations(dir)
	if err != nil || len(gens) != 3 {
		t.Fatalf("%d closed generations, want 3 (%v)", len(gens), err)
	}
	r := verify(t, dir)
	if !r.OK() || r.First != gens[0].first || r.Last != 80 || r.Files != 4 || len(r.Open) > 1 {
		t.Errorf("%+v", r)
	}
	// Removing what should be there is found.
	if err := os.Remove(filepath.Join(dir, gens[0].name)); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir); !has(r, Beheaded) {
		t.Errorf("a removed first generation was not found: %+v", r)
	}
	// It goes on where it ended.
	l = open(t, dir, Options{MaxSize: 2000, Generations: 3})
	l.Append(start("z"), done("z"))
	l.Close()
	if r := verify(t, dir); r.Last != 82 {
		t.Errorf("last %d, want 82", r.Last)
	}
}

func has(r Report, k Kind) bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Kind == k })
}

func TestVerifyFindsTampering(t *testing.T) {
	// Ten calls, anchored, and what somebody then does to the lines.
	rehash := func(line string) string { // what a careful forger does
		body := line[:len(line)-75] + "}"
		sum := sha256.Sum256([]byte(body))
		return body[:len(body)-1] + `,"hash":"` + hex.EncodeToString(sum[:]) + `"}`
	}
	tests := []struct {
		name   string
		change func(l []string) []string
		want   Kind
	}{
		{"edit", func(l []string) []string { l[3] = strings.Replace(l[3], `"c-1"`, `"c-9"`, 1); return l }, Edited},
		{"edit and rehash", func(l []string) []string {
			l[3] = rehash(strings.Replace(l[3], `"c-1"`, `"c-9"`, 1))
			return l
		}, Edited},
		{"edit the last and rehash", func(l []string) []string {
			l[19] = rehash(strings.Replace(l[19], `"ok"`, `"ko"`, 1))
			return l
		}, Edited},
		{"a space", func(l []string) []string { l[5] = strings.Replace(l[5], `,"id"`, `, "id"`, 1); return l }, Edited},
		{"garbage", func(l []string) []string { l[5] = "garbage"; return l }, Edited},
		{"remove one", func(l []string) []string { return slices.Delete(l, 7, 8) }, Gap},
		{"remove the first", func(l []string) []string { return l[1:] }, Beheaded},
		{"cut the end", func(l []string) []string { return l[:15] }, Cut},
		{"cut everything", func(l []string) []string { return nil }, Cut},
		{"swap", func(l []string) []string { l[7], l[8] = l[8], l[7]; return l }, Reordered},
		{"repeat", func(l []string) []string { return slices.Insert(l, 7, l[6]) }, Reordered},
		{"insert", func(l []string) []string {
			return slices.Insert(l, 7, rehash(strings.Replace(l[7], `"ok"`, `"ko"`, 1)))
		}, Edited},
		{"nothing", func(l []string) []string { return l }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir, Options{})
			for i := range 10 {
				id := fmt.Sprintf("c-%d", i)
				l.Append(start(id))
				l.Append(done(id))
			}
			l.Close()
			changed := tt.change(lines(t, dir))
			text := strings.Join(changed, "\n")
			if len(changed) > 0 {
				text += "\n"
			}
			if err := os.WriteFile(filepath.Join(dir, currentName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			r := verify(t, dir)
			if tt.want == "" && !r.OK() || tt.want != "" && !has(r, tt.want) {
				t.Errorf("want %q, got %+v", tt.want, r.Problems)
			}
			if tt.want == "" {
				return
			}
			// A later start must not wash it away.
			l = open(t, dir, Options{})
			l.Append(start("later"), done("later"))
			l.Close()
			if tt.name == "edit the last and rehash" {
				return // the anchor was the only witness; the next one replaced it
			}
			if r := verify(t, dir); r.OK() {
				t.Errorf("after another run nothing is found any more")
			}
		})
	}
}

func TestVerifyWithoutAnchorOrLog(t *testing.T) {
	dir := t.TempDir()
	if _, err := Verify(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no log: %v", err)
	}
	l := open(t, dir, Options{})
	l.Append(start("a"), done("a"))
	l.Close()
	os.Remove(filepath.Join(dir, anchorName))
	if r := verify(t, dir); !has(r, Unproven) {
		t.Errorf("a missing anchor was not found: %+v", r)
	}
	os.WriteFile(filepath.Join(dir, anchorName), []byte("{"), 0o600)
	if r := verify(t, dir); !has(r, Unproven) {
		t.Errorf("a broken anchor was not found: %+v", r)
	}
}

func TestCrash(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SyncEvery: time.Hour})
	l.Append(start("old"))
	l.Close() // the anchor knows that old is open
	l = open(t, dir, Options{SyncEvery: time.Hour})
	if got := lines(t, dir); !strings.Contains(got[1], `"id":"old"`) || !strings.Contains(got[1], `"outcome":"unknown"`) {
		t.Fatalf("the open call was not closed: %q", got)
	}
	l.Append(start("a"), start("b"))
	l.Append(done("a"))
	crash(l)
	f, err := os.OpenFile(filepath.Join(dir, currentName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"seq":6,"ts":"2026-`)
	f.Close()
	r := verify(t, dir)
	if !r.OK() || len(r.Notes) != 2 || r.Anchor != 1 || r.Last != 5 {
		t.Errorf("an anchor that a crash left behind, and a half line, are no tampering: %+v", r)
	}
	l = open(t, dir, Options{})
	l.Close()
	got := lines(t, dir)
	if len(got) != 7 || !strings.Contains(got[5], "20 bytes was cut off") ||
		!strings.Contains(got[6], `"phase":"done","id":"b"`) || !strings.Contains(got[6], `"outcome":"unknown"`) {
		t.Errorf("after the crash: %s", strings.Join(got, "\n"))
	}
	if r := verify(t, dir); !r.OK() || len(r.Open) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestCrashBeforeNewline(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	l.Append(start("a"), done("a"))
	l.Close()
	path := filepath.Join(dir, currentName)
	info, _ := os.Stat(path)
	os.Truncate(path, info.Size()-1)
	l = open(t, dir, Options{})
	l.Append(start("b"), done("b"))
	l.Close()
	if r := verify(t, dir); !r.OK() || r.Last != 4 {
		t.Errorf("a whole record was lost with its newline: %+v", r)
	}
}

// TestCrashAcrossRotation has the open call in a generation that the restart
// does not read.
func TestCrashAcrossRotation(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{MaxSize: 1500, SyncEvery: time.Hour})
	l.Append(start("open"))
	for i := range 20 {
		id := fmt.Sprint(i)
		l.Append(start(id), done(id))
	}
	if err := l.flush(); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		id := fmt.Sprint("more", i)
		l.Append(start(id), done(id))
	}
	crash(l)
	l = open(t, dir, Options{})
	l.Close()
	got := lines(t, dir)
	if last := got[len(got)-1]; len(got) != 82 || !strings.Contains(last, `"id":"open"`) || !strings.Contains(last, Unknown) {
		t.Errorf("%d lines, the last %s", len(got), last)
	}
	if r := verify(t, dir); !r.OK() || len(r.Open) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Run("second process", func(t *testing.T) {
		dir := t.TempDir()
		open(t, dir, Options{})
		if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "another process") {
			t.Errorf("%v", err)
		}
	})
	t.Run("link for a file", func(t *testing.T) {
		dir := t.TempDir()
		target := filepath.Join(t.TempDir(), "theirs")
		os.WriteFile(target, []byte("theirs"), 0o600)
		os.Symlink(target, filepath.Join(dir, currentName))
		if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%v", err)
		}
		if b, _ := os.ReadFile(target); string(b) != "theirs" {
			t.Errorf("wrote through the link: %q", b)
		}
	})
	t.Run("link for the directory", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "audit")
		os.Symlink(t.TempDir(), link)
		if _, err := Open(link, Options{}); err == nil || !strings.Contains(err.Error(), "a link") {
			t.Errorf("%v", err)
		}
	})
	t.Run("pipe for a file", func(t *testing.T) {
		dir := t.TempDir()
		syscall.Mkfifo(filepath.Join(dir, currentName), 0o600)
		if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "no plain file") {
			t.Errorf("%v", err)
		}
	})
	t.Run("directory for a file", func(t *testing.T) {
		for _, name := range []string{currentName, anchorName, lockName} {
			dir := t.TempDir()
			os.Mkdir(filepath.Join(dir, name), 0o700)
			if _, err := Open(dir, Options{}); name != anchorName && (err == nil || !strings.Contains(err.Error(), name+" is a directory, where a file of the log must stand: move it away")) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("loose modes are tightened", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "audit")
		os.Mkdir(dir, 0o755)
		os.WriteFile(filepath.Join(dir, currentName), nil, 0o644)
		open(t, dir, Options{})
		d, _ := os.Stat(dir)
		f, _ := os.Stat(filepath.Join(dir, currentName))
		if d.Mode().Perm() != 0o700 || f.Mode().Perm() != 0o600 {
			t.Errorf("modes %v and %v", d.Mode(), f.Mode())
		}
	})
}

func TestConcurrentAppend(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{MaxSize: 20_000, SyncEvery: time.Millisecond})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 100 {
				id := fmt.Sprintf("%d-%d", w, i)
				l.Append(start(id), Record{Phase: Ask, ID: id})
				l.Append(done(id))
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := verify(t, dir)
	if !r.OK() || r.Records != 2400 || len(r.Open) != 0 || l.Failed() != 0 {
		t.Errorf("%d records, problems %v", r.Records, r.Problems)
	}
	got := lines(t, dir)
	for i, line := range got { // records of one Append stand together
		if strings.Contains(line, `"phase":"start"`) && !strings.Contains(got[i+1], `"phase":"ask"`) {
			t.Fatalf("torn apart: %s\n%s", line, got[i+1])
		}
	}
}

// full is a disk with room for so many bytes: a write that does not fit is cut
// short, as on a real one (write(2), ENOSPC).
type full struct {
	file
	room int
}

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.room {
		n, _ := f.file.Write(b[:f.room])
		f.room = 0
		return n, syscall.ENOSPC
	}
	f.room -= len(b)
	return f.file.Write(b)
}

// setRoom says how much fits from now on.
func (f *full) setRoom(l *Log, room int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.room = room
}

func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	var logged bytes.Buffer
	l := open(t, dir, Options{Log: zerolog.New(&logged), RetryEvery: time.Hour})
	l.Append(start("a"), done("a"))
	l.Append(start("runs"))
	disk := &full{l.f, 100}
	l.f = disk
	for i := range 250 {
		l.Append(start(fmt.Sprint(i)), done(fmt.Sprint(i)))
	}
	if l.Failed() != 250 || !errors.Is(l.Healthy(), syscall.ENOSPC) {
		t.Errorf("failed %d, healthy %v", l.Failed(), l.Healthy())
	}
	if n := strings.Count(logged.String(), "could not be written"); n != 3 { // the 1st, the 100th, the 200th
		t.Errorf("logged %d times:\n%s", n, &logged)
	}
	l.Append(done("runs")) // it had started while there was room
	if r := verify(t, dir); !r.OK() || r.Last != 3 || strings.Contains(fmt.Sprint(r.Notes), "half line") {
		t.Errorf("while the disk is full the log stays whole: %+v", r)
	}
	disk.room = 1 << 20
	l.Append(start("b"), done("b"))
	if err := l.Healthy(); err != nil || l.Failed() != 251 {
		t.Errorf("after there was room: %v", err)
	}
	l.Append(start("c"), done("c"))
	l.Close()
	got := lines(t, dir)
	if len(got) != 9 || !strings.Contains(got[3], `"phase":"note","outcome":"gap: 500 records are missing and 1 come late, since `) ||
		!strings.Contains(got[4], `"phase":"done","id":"runs"`) || !strings.Contains(got[5], `"id":"b"`) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	r := verify(t, dir)
	if !r.OK() || len(r.Open) != 0 || len(r.Gaps) != 1 {
		t.Fatalf("%+v", r)
	}
	if g := r.Gaps[0]; g.Seq != 4 || g.Lost != 500 || g.Late != 1 || g.Since.IsZero() || g.Until.Before(g.Since) || g.Why != "no space left on device" {
		t.Errorf("%+v", g)
	}
}

// TestDiskFullEnds has room come back while no call comes, and the agent end
// with and without room.
func TestDiskFullEnds(t *testing.T) {
	t.Run("by itself", func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, dir, Options{RetryEvery: time.Millisecond})
		disk := &full{l.f, 100}
		l.f = disk
		l.Append(start("a"))
		disk.setRoom(l, 1<<20)
		for deadline := time.Now().Add(time.Minute); l.Healthy() != nil; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it never went on")
			}
		}
		if got := lines(t, dir); len(got) != 1 || !strings.Contains(got[0], "gap: 1 records are missing") {
			t.Errorf("%q", got)
		}
	})
	t.Run("room at the end", func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, dir, Options{RetryEvery: time.Hour})
		disk := &full{l.f, 0}
		l.f = disk
		l.Append(start("a"))
		disk.room = 1 << 20
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if r := verify(t, dir); len(r.Gaps) != 1 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("no room at the end", func(t *testing.T) {
		l := open(t, t.TempDir(), Options{RetryEvery: time.Hour})
		l.f = &full{l.f, 0}
		l.Append(start("a"), start("b"))
		if err := l.Close(); err == nil || !strings.Contains(err.Error(), "2 records are missing") {
			t.Errorf("%v", err)
		}
	})
}

// dying is a disk that takes writes and loses them: the failure shows in
// fsync(2), as EIO, as on a real one.
type dying struct {
	file
	err error
}

func (f *dying) Sync() error {
	if f.err != nil {
		return f.err
	}
	return f.file.Sync()
}

func TestSyncFails(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SyncEvery: time.Hour, RetryEvery: time.Hour})
	disk := &dying{l.f, syscall.EIO}
	l.f = disk
	l.Append(start("a"))
	l.tick()
	if !errors.Is(l.Healthy(), syscall.EIO) {
		t.Fatalf("healthy: %v", l.Healthy())
	}
	l.Append(start("b"))
	if r := verify(t, dir); r.Last != 1 {
		t.Errorf("a record that the disk did not take counts: %+v", r)
	}
	disk.err = nil
	l.again()
	l.Append(start("c"))
	if err := l.Healthy(); err != nil {
		t.Error(err)
	}
	got := lines(t, dir)
	if len(got) != 4 || !strings.Contains(got[1], "the disk failed") || !strings.Contains(got[2], "gap: 1 records") || !strings.Contains(got[3], `"id":"c"`) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if r := verify(t, dir); !r.OK() || len(r.Gaps) != 1 || r.Gaps[0].Why != "input/output error" {
		t.Errorf("%+v", r)
	}
}

func TestTailShowExport(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{MaxSize: 1500})
	for i := range 10 {
		id := fmt.Sprintf("c-%d", i)
		l.Append(start(id))
		l.Append(done(id))
	}
	all := lines(t, dir)
	if len(all) != 20 {
		t.Fatalf("exported %d lines, want 20", len(all))
	}
	for _, n := range []int{0, 1, 5, 20, 100} {
		var b bytes.Buffer
		if err := Tail(context.Background(), dir, n, false, &b); err != nil {
			t.Fatal(err)
		}
		want := strings.Join(all[20-min(n, 20):], "\n")
		if got := strings.TrimSuffix(b.String(), "\n"); got != want {
			t.Errorf("tail %d:\n%s\nwant\n%s", n, got, want)
		}
	}
	recs, err := Show(dir, "c-4")
	if err != nil || len(recs) != 2 || string(recs[0]) != all[8] || string(recs[1]) != all[9] {
		t.Errorf("show: %s, %v", recs, err)
	}
	if _, err := Show(dir, "nope"); err == nil || !strings.Contains(err.Error(), `"nope"`) {
		t.Errorf("show of nothing: %v", err)
	}

	// Following sees what comes, over a rotation.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pr, pw := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Tail(ctx, dir, 1, true, pw) }()
	d := json.NewDecoder(pr)
	next := func() uint64 {
		var e entry
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		return e.Seq
	}
	if seq := next(); seq != 20 {
		t.Fatalf("follow began at %d", seq)
	}
	for i := uint64(21); i <= 30; i++ {
		l.Append(start("n"))
		if seq := next(); seq != i {
			t.Fatalf("followed to %d, want %d", seq, i)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func BenchmarkAppend(b *testing.B) {
	l, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	s, d := start("01J0000000000000"), done("01J0000000000000")
	b.ReportAllocs()
	for b.Loop() {
		l.Append(s)
		l.Append(d)
	}
}
