package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

// Options change how a log is kept. Zero values mean the defaults.
type Options struct {
	MaxSize     int64         // bytes of a generation before the next begins; 16 MiB
	Generations int           // closed generations that are kept; 64
	SyncEvery   time.Duration // how long a record may wait for the disk; 1 s
	RetryEvery  time.Duration // how often a disk that took no record is tried again; 5 s
	Log         zerolog.Logger
	// Now is the clock of the records' ts; time.Now if nil.
	Now func() time.Time
}

func (o *Options) defaults() {
	if o.MaxSize <= 0 {
		o.MaxSize = 16 << 20
	}
	if o.Generations <= 0 {
		o.Generations = 64
	}
	if o.SyncEvery <= 0 {
		o.SyncEvery = time.Second
	}
	if o.RetryEvery <= 0 {
		o.RetryEvery = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// file is what the log needs of the file that it writes.
type file interface {
	Write(b []byte) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// Log writes the audit. It is safe for concurrent use.
type Log struct {
	dir  string
	opts Options
	lock *os.File

	// syncing orders flushes. It is taken before mu, and guards the beginning of
	// the kept log, which only our own removal of old generations may move.
	syncing   sync.Mutex
	begin     uint64
	beginPrev string

	mu       sync.Mutex // guards everything below
	f        file
	size     int64 // of f, up to the end of its last whole line
	torn     bool  // f may hold more than size: a write failed halfway
	first    uint64
	last     link
	buf      []byte
	open     map[string]openCall
	retired  []file // closed generations that were not synced yet
	rotateAt int64
	timer    *time.Timer
	dirty    bool // the timer runs
	retry    *time.Timer
	closed   bool
	gap      gap
	failed   int   // writes and syncs of records that failed since the log was opened
	unsynced error // why the last sync failed
	anchors  int   // writes of the anchor that failed in a row
}

// Open opens the log in dir, which it makes if need be, for this process alone.
// It repairs what a crash left: a half line is cut off, and calls that had
// started and were not done are closed with outcome [Unknown]; both are noted.
func Open(dir string, opts Options) (*Log, error) {
	opts.defaults()
	if err := openDir(dir); err != nil {
		return nil, err
	}
	lk, err := lock(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir, opts: opts, lock: lk, open: map[string]openCall{}, rotateAt: opts.MaxSize}
	l.timer = time.AfterFunc(time.Hour, l.tick)
	l.timer.Stop()
	l.retry = time.AfterFunc(time.Hour, l.again)
	l.retry.Stop()
	recs, err := l.recover()
	if err != nil {
		if l.f != nil {
			l.f.Close()
		}
		lk.Close()
		return nil, err
	}
	if len(recs) > 0 {
		l.Append(recs...)
	}
	if l.begin == 0 { // no anchor yet: from now on a missing one says something
		l.begin, l.beginPrev = 1, hex.EncodeToString(make([]byte, sha256.Size))
		if err := l.flush(); err != nil {
			opts.Log.Error().Err(err).Str("dir", dir).Msg("the audit has no anchor yet")
		}
	}
	return l, nil
}

// recover finds the end of the chain, opens the current generation, and returns
// what is to be recorded about the last process.
func (l *Log) recover() ([]Record, error) {
	var notes []Record
	note := func(format string, args ...any) {
		notes = append(notes, Record{Phase: Note, Outcome: fmt.Sprintf(format, args...)})
	}
	anchor, err := readAnchor(l.dir)
	if err != nil {
		note("the anchor was unusable and is written anew: %v", err)
	}
	path := filepath.Join(l.dir, currentName)
	f, err := openFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	l.f = f
	cut, err := endLine(f)
	if err != nil {
		return nil, fmt.Errorf("audit: repair %s: %w", path, err)
	}
	if cut > 0 {
		note("a half-written line of %d bytes was cut off: the last process died while it wrote", cut)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	l.size = info.Size()

	var from link
	if anchor != nil {
		from, _ = anchor.link() // checked by readAnchor
		l.begin, l.beginPrev = anchor.First, anchor.FirstPrev
		for _, c := range anchor.Open {
			l.open[c.ID] = c
		}
	}
	bad, err := l.replay(from)
	if err != nil {
		return nil, err
	}
	if bad > 0 {
		note("%d lines of the log are no records or were edited: see audit verify", bad)
	}
	if l.last.seq < from.seq {
		note("the log ends at record %d though %d was written: records are missing, and their numbers stay unused", l.last.seq, from.seq)
		l.last = from
	}
	return append(notes, l.unknowns()...), nil
}

// replay reads the log from the generation that holds from and takes over its
// end, its calls, and its first record of the current generation. It returns
// how many lines it could not use.
func (l *Log) replay(from link) (bad int, err error) {
	gens, err := generations(l.dir)
	if err != nil {
		return 0, err
	}
	names := []string{currentName}
	for i := len(gens); ; i-- {
		first, err := l.firstSeq(names[0])
		if err != nil {
			return 0, err
		}
		if i == 0 || first != 0 && first <= from.seq {
			break
		}
		names = append([]string{gens[i-1].name}, names...)
	}
	for _, name := range names {
		l.first = 0
		f, err := openFile(filepath.Join(l.dir, name), os.O_RDONLY)
		if err != nil {
			return bad, err
		}
		err = eachLine(f, func(line []byte) error {
			if seq := quickSeq(line); seq != 0 && seq < from.seq {
				if l.first == 0 {
					l.first = seq
				}
				return nil // the anchor speaks for it
			}
			e, at, err := parseLine(line)
			if err != nil {
				bad++
				return nil
			}
			if l.first == 0 {
				l.first = at.seq
			}
			if at.seq > l.last.seq {
				l.last = at
			}
			if at.seq > from.seq {
				l.track(&Record{Phase: e.Phase, ID: e.ID, Client: e.Client, Conn: e.Conn, Host: e.Host, Tool: e.Tool})
			}
			return nil
		})
		f.Close()
		if err != nil {
			return bad, fmt.Errorf("audit: read %s: %w", name, err)
		}
	}
	return bad, nil
}

// firstSeq returns the seq of a file's first line, 0 if it has none.
func (l *Log) firstSeq(name string) (seq uint64, err error) {
	f, err := openFile(filepath.Join(l.dir, name), os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	err = eachLine(f, func(line []byte) error {
		seq = quickSeq(line)
		return io.EOF
	})
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("audit: read %s: %w", name, err)
	}
	return seq, nil
}

// unknowns closes the calls that the last process left open.
func (l *Log) unknowns() []Record {
	var recs []Record
	for _, c := range l.open {
		recs = append(recs, Record{Phase: Done, ID: c.ID, Client: c.Client, Conn: c.Conn, Host: c.Host, Tool: c.Tool, Outcome: Unknown})
	}
	sort.Slice(recs, func(i, j int) bool { return recs[i].ID < recs[j].ID })
	return recs
}

func (l *Log) track(r *Record) {
	switch r.Phase {
	case Start:
		l.open[r.ID] = openCall{r.ID, r.Client, r.Conn, r.Host, r.Tool}
	case Done:
		delete(l.open, r.ID)
	}
}

// Append writes records, in order and next to each other. When it returns they
// are with the operating system: a crash of ours loses none of them, a power
// cut may lose those of the last second. A write that fails is counted, logged,
// tried again by itself, and told by the log once writing works again: see [Outage].
func (l *Log) Append(recs ...Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := fs.ErrClosed
	if !l.closed {
		err = l.put(recs)
	}
	if err != nil {
		l.fail(recs, err)
	}
}

// put writes what is to be said of a gap, and then recs. With an error nothing
// of them is on file. It is called with mu held.
func (l *Log) put(recs []Record) error {
	now := l.opts.Now()
	b, last := l.buf[:0], l.last
	note := func(text string) { b, last = appendLine(b, last, now, &Record{Phase: Note, Outcome: text}) }
	if l.unsynced != nil {
		note(fmt.Sprintf("the disk failed, so that the last records before this one may be missing after a power cut: %v", bare(l.unsynced)))
	}
	if l.gap.is() {
		note(l.gap.String())
	}
	for _, rs := range [...][]Record{l.gap.late, recs} {
		for i := range rs {
			b, last = appendLine(b, last, now, &rs[i])
		}
	}
	if cap(b) <= 1<<20 {
		l.buf = b
	}
	if l.size > 0 && l.size+int64(len(b)) > l.rotateAt {
		l.rotate()
	}
	size, failing := l.size, l.gap.is() || l.unsynced != nil
	if err := l.write(b); err != nil {
		return err
	}
	if l.unsynced != nil {
		// Each record is on the disk before it counts, until that works again.
		if err := l.f.Sync(); err != nil {
			l.size, l.unsynced = size, err
			l.torn = l.f.Truncate(size) != nil
			return err
		}
		l.unsynced = nil
	}
	if l.first == 0 {
		l.first = l.last.seq + 1
	}
	for _, rs := range [...][]Record{l.gap.late, recs} {
		for i := range rs {
			l.track(&rs[i])
		}
	}
	if failing {
		l.opts.Log.Warn().Str("dir", l.dir).Int("lost", l.gap.lost).Int("late", len(l.gap.late)).Msg("the audit can be written again")
	}
	l.last, l.gap = last, gap{}
	l.arm()
	return nil
}

// write puts b after the last whole line, in one write.
func (l *Log) write(b []byte) error {
	if l.torn {
		if err := l.f.Truncate(l.size); err != nil {
			return fmt.Errorf("cut off a half-written line: %w", err)
		}
		l.torn = false
	}
	n, err := l.f.Write(b)
	if err != nil || n < len(b) {
		l.torn = n > 0 && l.f.Truncate(l.size) != nil
		if err == nil {
			err = io.ErrShortWrite
		}
		return err
	}
	l.size += int64(n)
	return nil
}

// fail remembers records that could not be written. It is called with mu held.
func (l *Log) fail(recs []Record, err error) {
	if !l.gap.is() {
		l.gap.since = l.opts.Now()
	}
	l.gap.why = bare(err)
	for _, r := range recs {
		if _, open := l.open[r.ID]; r.Phase == Done && open {
			l.gap.late = append(l.gap.late, r) // as many as calls are open, at most
		} else {
			l.gap.lost++
		}
	}
	l.complain(err)
	if !l.closed {
		l.retry.Reset(l.opts.RetryEvery)
	}
}

// bare returns what is wrong with the disk, without the file's name.
func bare(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// complain counts a failure. It is called with mu held.
func (l *Log) complain(err error) {
	l.failed++
	if l.failed == 1 || l.failed%100 == 0 {
		l.opts.Log.Error().Err(err).Int("failed", l.failed).Str("dir", l.dir).
			Msg("the audit could not be written; calls go on without a record: free some space or mend the disk")
	}
}

// again tries whether the log can be written again, so that a gap is told, and
// over, also where no call comes.
func (l *Log) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || !l.gap.is() && l.unsynced == nil {
		return
	}
	if l.put(nil) != nil {
		l.retry.Reset(l.opts.RetryEvery)
	}
}

// Failed returns how many writes failed since the log was opened.
func (l *Log) Failed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Healthy returns nil if the last write and the last sync succeeded, else why not.
func (l *Log) Healthy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.gap.is():
		return fmt.Errorf("the audit: calls go on without a record, %d records could not be written to %s: %w: free some space or mend the disk", l.gap.lost+len(l.gap.late), l.dir, l.gap.why)
	case l.unsynced != nil:
		return fmt.Errorf("the audit: the last records may not be on the disk (%s): %w: free some space or mend the disk", l.dir, bare(l.unsynced))
	}
	return nil
}

// rotate closes the current generation and begins the next. If it cannot, the
// current one goes on for a while. It is called with mu held.
func (l *Log) rotate() {
	err := func() error {
		if l.torn {
			return errors.New("it ends in a half-written line")
		}
		current := filepath.Join(l.dir, currentName)
		closed := filepath.Join(l.dir, generationName(l.first))
		if _, err := os.Lstat(closed); err == nil {
			return fmt.Errorf("%s exists already", closed) // and must not be written over
		}
		if err := os.Rename(current, closed); err != nil {
			return err
		}
		f, err := openFile(current, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND)
		if err != nil {
			return errors.Join(err, os.Rename(closed, current))
		}
		l.retired = append(l.retired, l.f)
		l.f, l.size, l.first = f, 0, 0
		l.rotateAt = l.opts.MaxSize
		return nil
	}()
	if err != nil {
		l.rotateAt = l.size + l.opts.MaxSize
		l.opts.Log.Error().Err(err).Str("dir", l.dir).Msg("the audit could not begin a new file; the old one goes on")
	}
}

// arm makes sure that a flush will come. While nothing is written no timer
// runs. It is called with mu held.
func (l *Log) arm() {
	if !l.dirty && !l.closed {
		l.dirty = true
		l.timer.Reset(l.opts.SyncEvery)
	}
}

func (l *Log) tick() {
	err := l.flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsynced != nil {
		l.complain(l.unsynced)
		if !l.closed {
			l.retry.Reset(l.opts.RetryEvery)
		}
		return
	}
	if err == nil {
		l.anchors = 0
		return
	}
	if l.anchors++; l.anchors == 1 || l.anchors%100 == 0 {
		l.opts.Log.Error().Err(err).Int("failed", l.anchors).Str("dir", l.dir).Msg("the audit's anchor could not be written")
	}
}

// flush brings everything written so far to the disk, then the anchor that says
// so, then removes generations that are too many. Appends go on meanwhile.
func (l *Log) flush() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	l.dirty = false
	f, retired, last := l.f, l.retired, l.last
	l.retired = nil
	open := make([]openCall, 0, len(l.open))
	for _, c := range l.open {
		open = append(open, c)
	}
	l.mu.Unlock()

	var errs []error
	for _, r := range retired {
		errs = append(errs, r.Sync(), r.Close())
	}
	// A generation that is rotated away meanwhile is closed by the next flush
	// only, which waits for this one.
	errs = append(errs, f.Sync())
	if err := errors.Join(errs...); err != nil {
		l.mu.Lock()
		l.unsynced = err
		l.mu.Unlock()
		return fmt.Errorf("audit: sync: %w", err) // and the anchor stays where it was
	}
	sort.Slice(open, func(i, j int) bool { return open[i].ID < open[j].ID })
	surplus, err := l.surplus()
	if err != nil {
		return err
	}
	if err := writeAnchor(l.dir, &anchor{
		V: 1, Seq: last.seq, Hash: hex.EncodeToString(last.hash[:]), Open: open,
		First: l.begin, FirstPrev: l.beginPrev,
	}); err != nil {
		return err
	}
	for _, g := range surplus {
		if err := os.Remove(filepath.Join(l.dir, g.name)); err != nil {
			return fmt.Errorf("audit: remove an old generation: %w", err)
		}
	}
	return nil
}

// surplus returns the generations that are too many, and moves the beginning of
// the kept log past them. It is called with syncing held.
func (l *Log) surplus() ([]generation, error) {
	gens, err := generations(l.dir)
	n := len(gens) - l.opts.Generations
	if err != nil || n <= 0 {
		return nil, err
	}
	f, err := openFile(filepath.Join(l.dir, gens[n].name), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = eachLine(f, func(line []byte) error {
		if e, at, err := parseLine(line); err == nil {
			l.begin, l.beginPrev = at.seq, e.Prev
			return io.EOF
		}
		return nil
	})
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("audit: read %s: %w", gens[n].name, err)
	}
	return gens[:n], nil
}

// Close syncs the log, writes the anchor, and lets other processes have it.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	var lost error
	if l.gap.is() && l.put(nil) != nil {
		lost = fmt.Errorf("audit: %s, and the log does not say so: %w", l.gap, l.gap.why)
	}
	l.mu.Unlock()
	l.timer.Stop()
	l.retry.Stop()
	err := l.flush() // after a tick that may be running
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(lost, err, l.f.Close(), l.lock.Close())
}

// endLine makes f end in a whole line and returns how many bytes it cut off. A
// whole record that only lacks its newline gets it.
func endLine(f *os.File) (cut int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	start, err := lastLine(f, size)
	if err != nil || start == size {
		return 0, err
	}
	rest := make([]byte, size-start)
	if _, err := f.ReadAt(rest, start); err != nil {
		return 0, err
	}
	if _, _, err := parseLine(rest); err == nil {
		_, err := f.Write([]byte("\n"))
		return 0, err
	}
	return size - start, f.Truncate(start)
}

// lastLine returns where the bytes after the last newline before end begin.
func lastLine(r io.ReaderAt, end int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end > 0 {
		n := min(end, int64(len(buf)))
		if _, err := r.ReadAt(buf[:n], end-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		end -= n
	}
	return 0, nil
}

// eachLine calls fn with every whole line of r, without its newline. A rest
// that no newline ends is left out; fn's line is its own only until it returns.
func eachLine(r io.Reader, fn func(line []byte) error) error {
	br := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for {
		part, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(long) > 0 {
			long = append(long, part...)
			part = long
		}
		if err := fn(part[:len(part)-1]); err != nil {
			return err
		}
		long = long[:0]
	}
}
