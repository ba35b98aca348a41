package audit

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"
)

// openAll opens all generations, oldest first and the current one last, so that
// they belong together even if the log is rotated meanwhile. The caller closes
// them. A missing current generation is left out; there is an error only where
// nothing is left of a log.
func openAll(dir string) (files []*os.File, err error) {
	closeAll := func() {
		for _, f := range files {
			f.Close()
		}
		files = nil
	}
	for range 10 {
		gens, err := generations(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range append(names(gens), currentName) {
			var f *os.File
			if f, err = openFile(filepath.Join(dir, name), os.O_RDONLY); err != nil {
				break
			}
			files = append(files, f)
		}
		again, lerr := generations(dir)
		if lerr != nil {
			closeAll()
			return nil, lerr
		}
		if err == nil && fmt.Sprint(gens) == fmt.Sprint(again) {
			return files, nil
		}
		if errors.Is(err, fs.ErrNotExist) && len(files) == len(gens) && fmt.Sprint(gens) == fmt.Sprint(again) {
			if len(files) > 0 {
				return files, nil
			}
			return nil, fmt.Errorf("audit: there is no log in %s: %w", dir, fs.ErrNotExist)
		}
		closeAll()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("audit: the log in %s is rotated faster than it can be opened: try again", dir)
}

func names(gens []generation) []string {
	out := make([]string, 0, len(gens)+1)
	for _, g := range gens {
		out = append(out, g.name)
	}
	return out
}

// Kind is a kind of tampering or damage that Verify finds.
type Kind string

// What Verify finds.
const (
	Edited    Kind = "edited"    // a line is no record, or its hash does not fit it
	Gap       Kind = "gap"       // records are missing
	Reordered Kind = "reordered" // a record stands where it was not written
	Cut       Kind = "cut"       // the end is missing
	Beheaded  Kind = "beheaded"  // the beginning is missing, and it was not rotated away
	Unproven  Kind = "unproven"  // the anchor is missing or unusable, so that a cut end would not show
)

// Problem is one thing that is wrong with the log.
type Problem struct {
	Kind Kind   `json:"kind"`
	File string `json:"file"`
	Line int    `json:"line"` // from 1; 0 where no line is meant
	Text string `json:"text"`
}

// Report is what Verify found.
type Report struct {
	Files    int       `json:"files"`
	Records  int       `json:"records"`
	First    uint64    `json:"first"` // seq of the first and the last record
	Last     uint64    `json:"last"`
	Anchor   uint64    `json:"anchor"` // seq up to which the head anchor speaks; 0 without one
	Problems []Problem `json:"problems"`
	Gaps     []Outage  `json:"gaps"` // where the log could not be written, as it tells itself
	Notes    []string  `json:"notes"`
	Open     []string  `json:"open"`   // ids of calls that are not done
	Limits   string    `json:"limits"` // what no verification can find
}

// OK tells that nobody changed the log, as far as can be found. It may have gaps
// all the same.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

const limits = "This finds an edit, a cut, a gap and a changed order. It cannot find a rewrite of everything, " +
	"anchor included, by someone who owns the files, nor the loss of the records of the last second before a crash or a power cut. " +
	"Against that, keep exports, or the last hash, where that person cannot write."

// Verify reads the whole log and checks its chain. The error is for a log that
// cannot be read; what is wrong with one that can be is in the report.
func Verify(dir string) (Report, error) {
	r := Report{Problems: []Problem{}, Gaps: []Outage{}, Notes: []string{}, Open: []string{}, Limits: limits}
	// The anchor is read first: records that are written meanwhile come after it.
	a, aerr := readAnchor(dir)
	files, err := openAll(dir)
	if errors.Is(err, fs.ErrNotExist) && a != nil {
		err = nil // there was one
	}
	if err != nil {
		return r, err
	}
	v := verifier{Report: &r, anchor: a, open: map[string]bool{}}
	for _, f := range files {
		if err == nil {
			err = v.file(f)
		}
		f.Close()
	}
	if err != nil {
		return r, err
	}
	v.end(aerr)
	return r, nil
}

type verifier struct {
	*Report
	anchor   *anchor
	name     string
	line     int
	last     link
	prev     string // hash of the line before, as it stands there
	anchored bool   // the record that the anchor names was met
	open     map[string]bool
}

func (v *verifier) problem(kind Kind, format string, args ...any) {
	v.Problems = append(v.Problems, Problem{kind, v.name, v.line, fmt.Sprintf(format, args...)})
}

func (v *verifier) file(f *os.File) error {
	v.name, v.line = filepath.Base(f.Name()), 0
	v.Files++
	var size int64
	err := eachLine(f, func(line []byte) error {
		v.line++
		size += int64(len(line)) + 1
		v.record(line)
		return nil
	})
	if err != nil {
		return fmt.Errorf("audit: read %s: %w", v.name, err)
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if v.name == currentName && info.Size() > size {
		v.Notes = append(v.Notes, "the log ends in a half line: it is being written, or a crash left it; the next start cuts it off")
	}
	return nil
}

func (v *verifier) record(line []byte) {
	e, at, err := parseLine(line)
	if err != nil {
		v.problem(Edited, "line %d of %s %v", v.line, v.name, err)
		if at.seq != v.last.seq+1 {
			return // its number is not to be trusted: the next good line will tell
		}
	}
	v.Records++
	switch {
	case v.First == 0:
		v.First = at.seq
		v.begin(e, at)
	case at.seq <= v.last.seq:
		v.problem(Reordered, "record %d comes after record %d", at.seq, v.last.seq)
	case at.seq > v.last.seq+1:
		v.problem(Gap, "records %d to %d are missing", v.last.seq+1, at.seq-1)
	case e.Prev != v.prev:
		v.problem(Edited, "record %d does not follow from the record before it: one of the two was replaced", at.seq)
	}
	if v.anchor != nil && at.seq == v.anchor.Seq {
		v.anchored = true
		if e.Hash != v.anchor.Hash {
			v.problem(Edited, "record %d is not the one that the anchor names: the log was rewritten", at.seq)
		}
	}
	if at.seq > v.last.seq {
		v.last, v.prev = at, e.Hash
	}
	switch e.Phase {
	case Start:
		v.open[e.ID] = true
	case Done:
		delete(v.open, e.ID)
	case Note:
		if g, ok := parseGap(e.Outcome); ok && err == nil && e.Tool == "" && e.ID == "" {
			g.Seq, g.Until = at.seq, e.TS
			v.Gaps = append(v.Gaps, g)
		}
	}
}

// begin checks the first record that is kept.
func (v *verifier) begin(e entry, at link) {
	first, prev := uint64(1), hex.EncodeToString(make([]byte, len(at.hash)))
	if v.anchor != nil {
		first, prev = v.anchor.First, v.anchor.FirstPrev
	}
	switch {
	case at.seq > first:
		v.problem(Beheaded, "the log begins at record %d, and should at %d", at.seq, first)
	case at.seq == first && e.Prev != prev:
		v.problem(Edited, "record %d does not follow from what came before the kept log", at.seq)
	}
	// A first record before the anchor's is of a generation about to be removed.
	if first > 1 {
		v.Notes = append(v.Notes, fmt.Sprintf("the kept log begins at record %d: earlier ones were rotated away", first))
	}
}

func (v *verifier) end(anchorErr error) {
	v.line = 0
	v.Last = v.last.seq
	for id := range v.open {
		v.Open = append(v.Open, id)
	}
	sort.Strings(v.Open)
	switch a := v.anchor; {
	case anchorErr != nil:
		v.problem(Unproven, "%v", anchorErr)
	case a == nil && v.Records > 0:
		v.problem(Unproven, "there is no anchor (%s): a cut end would not show", anchorName)
	case a == nil:
	case a.Seq > v.last.seq:
		v.Anchor = a.Seq
		v.problem(Cut, "the log ends at record %d, and %d was written: its end was cut off", v.last.seq, a.Seq)
	default:
		v.Anchor = a.Seq
		if !v.anchored && a.Seq >= v.First && a.Seq > 0 {
			v.problem(Gap, "record %d, which the anchor names, is missing", a.Seq)
		}
		if a.Seq < v.last.seq {
			v.Notes = append(v.Notes, fmt.Sprintf(
				"the anchor is %d records behind: the log is being written, or its process crashed", v.last.seq-a.Seq))
		}
	}
}

// Export writes all generations to w, oldest first, byte for byte. A half line
// at the end is left out.
func Export(dir string, w io.Writer) error {
	return eachRecord(dir, func(line []byte) error {
		_, err := w.Write(append(line, '\n'))
		return err
	})
}

// Show returns the records of one call, in order.
func Show(dir, id string) ([]json.RawMessage, error) {
	var recs []json.RawMessage
	err := eachRecord(dir, func(line []byte) error {
		var e struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(line, &e) == nil && e.ID == id {
			recs = append(recs, json.RawMessage(append([]byte(nil), line...)))
		}
		return nil
	})
	if err == nil && len(recs) == 0 {
		err = fmt.Errorf("audit: no call %q is on record: audit tail shows the last ids", id)
	}
	return recs, err
}

func eachRecord(dir string, fn func(line []byte) error) error {
	files, err := openAll(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err == nil {
			err = eachLine(f, fn)
		}
		f.Close()
	}
	return err
}

// followEvery is how often a followed log is looked at.
const followEvery = 200 * time.Millisecond

// Tail writes the last n records to w, and with follow those that come, until
// ctx ends.
func Tail(ctx context.Context, dir string, n int, follow bool, w io.Writer) error {
	files, err := openAll(dir)
	if err != nil {
		return err
	}
	cur := files[len(files)-1]
	defer func() { cur.Close() }()
	defer func() {
		for _, f := range files[:len(files)-1] {
			f.Close()
		}
	}()
	at, err := tail(files, n, w)
	if err != nil || !follow {
		return err
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		// Whether the file was replaced is asked before it is read: what was
		// written before that is then surely read.
		next, err := replaced(dir, cur)
		if err != nil {
			return err
		}
		err = eachLine(io.NewSectionReader(cur, at, 1<<62), func(line []byte) error {
			at += int64(len(line)) + 1
			_, err := w.Write(append(line, '\n'))
			return err
		})
		if err != nil {
			if next != nil {
				next.Close()
			}
			return err
		}
		if next != nil {
			cur.Close()
			cur, at = next, 0
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// replaced returns the generation that took the place of cur, nil if none did.
func replaced(dir string, cur *os.File) (*os.File, error) {
	f, err := openFile(filepath.Join(dir, currentName), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // between the two steps of a rotation
	}
	if err != nil {
		return nil, err
	}
	a, err := f.Stat()
	b, berr := cur.Stat()
	if err = errors.Join(err, berr); err != nil || os.SameFile(a, b) {
		f.Close()
		return nil, err
	}
	return f, nil
}

// tail writes the last n whole lines of files and returns where the whole lines
// of the last file end.
func tail(files []*os.File, n int, w io.Writer) (end int64, err error) {
	type span struct {
		f          *os.File
		start, end int64
	}
	var spans []span
	for i := len(files) - 1; i >= 0; i-- {
		info, err := files[i].Stat()
		if err != nil {
			return 0, err
		}
		stop, err := lastLine(files[i], info.Size())
		if err != nil {
			return 0, err
		}
		if i == len(files)-1 {
			end = stop
		}
		start := stop
		for n > 0 && start > 0 {
			if start, err = lastLine(files[i], start-1); err != nil {
				return 0, err
			}
			n--
		}
		spans = append(spans, span{files[i], start, stop})
		if n <= 0 {
			break
		}
	}
	for i := len(spans) - 1; i >= 0; i-- {
		s := spans[i]
		if _, err := io.Copy(w, io.NewSectionReader(s.f, s.start, s.end-s.start)); err != nil {
			return 0, err
		}
	}
	return end, nil
}
