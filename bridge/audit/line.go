package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// link is a place in the chain: a record's number and hash.
type link struct {
	seq  uint64
	hash [sha256.Size]byte
}

const (
	hashMember = `,"hash":"`
	// tailLen is the length of the hash member with the brace that ends the line.
	tailLen = len(hashMember) + 2*sha256.Size + len(`"}`)
)

// appendLine appends the record that follows prev, with its newline, and
// returns its link.
func appendLine(dst []byte, prev link, ts time.Time, r *Record) ([]byte, link) {
	start := len(dst)
	here := link{seq: prev.seq + 1}
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, here.seq, 10)
	dst = append(dst, `,"ts":"`...)
	dst = appendTime(dst, ts)
	dst = append(dst, `","phase":`...)
	dst = appendString(dst, string(r.Phase))
	call := r.Phase != Note || r.ID != ""
	for _, m := range [...]struct {
		name, value string
		always      bool
	}{
		{`,"id":`, r.ID, call}, {`,"client":`, r.Client, call}, {`,"conn":`, r.Conn, call},
		{`,"host":`, r.Host, call}, {`,"tool":`, r.Tool, call},
	} {
		if m.always || m.value != "" {
			dst = append(dst, m.name...)
			dst = appendString(dst, m.value)
		}
	}
	if len(r.Args) > 0 {
		dst = append(dst, `,"args":`...)
		dst = Redact(dst, r.Tool, r.Args)
	}
	if r.Outcome != "" || r.Phase == Done {
		dst = append(dst, `,"outcome":`...)
		dst = appendString(dst, r.Outcome)
	}
	if r.Phase == Done {
		ms := r.MS
		if math.IsNaN(ms) || math.IsInf(ms, 0) {
			ms = 0
		}
		dst = append(dst, `,"ms":`...)
		dst = strconv.AppendFloat(dst, math.Round(ms*1000)/1000, 'f', -1, 64)
		dst = append(dst, `,"in":`...)
		dst = strconv.AppendInt(dst, int64(r.In), 10)
		dst = append(dst, `,"out":`...)
		dst = strconv.AppendInt(dst, int64(r.Out), 10)
	}
	dst = append(dst, `,"prev":"`...)
	dst = hex.AppendEncode(dst, prev.hash[:])
	dst = append(dst, `"}`...)
	here.hash = sha256.Sum256(dst[start:])
	dst = append(dst[:len(dst)-1], hashMember...)
	dst = hex.AppendEncode(dst, here.hash[:])
	return append(dst, "\"}\n"...), here
}

// appendTime appends ts in UTC as 2006-01-02T15:04:05.000000Z. A layout of its own
// is what time.AppendFormat is slow at, and every call of every client pays it.
func appendTime(dst []byte, ts time.Time) []byte {
	ts = ts.UTC()
	year, month, day := ts.Date()
	hour, minute, second := ts.Clock()
	dst = appendDigits(dst, year, 4)
	dst = appendDigits(append(dst, '-'), int(month), 2)
	dst = appendDigits(append(dst, '-'), day, 2)
	dst = appendDigits(append(dst, 'T'), hour, 2)
	dst = appendDigits(append(dst, ':'), minute, 2)
	dst = appendDigits(append(dst, ':'), second, 2)
	dst = appendDigits(append(dst, '.'), ts.Nanosecond()/1000, 6)
	return append(dst, 'Z')
}

// appendDigits appends the last width decimal digits of n.
func appendDigits(dst []byte, n, width int) []byte {
	for range width {
		dst = append(dst, '0')
	}
	for i := len(dst) - 1; width > 0; width-- {
		dst[i] = byte('0' + n%10)
		n /= 10
		i--
	}
	return dst
}

// maxField bounds what a name from outside may take of a line.
const maxField = 1024

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	if len(s) > maxField {
		s = s[:maxField] + "…"
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			b, err := json.Marshal(s)
			if err != nil { // a string always marshals
				b = []byte(`""`)
			}
			return append(dst, b...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// entry is what the log needs to read back from a line.
type entry struct {
	Seq    uint64 `json:"seq"`
	Phase  Phase  `json:"phase"`
	ID     string `json:"id"`
	Client string `json:"client"`
	Conn   string `json:"conn"`
	Host   string `json:"host"`
	Tool   string `json:"tool"`

	TS      time.Time `json:"ts"`
	Outcome string    `json:"outcome"`

	Prev string `json:"prev"`
	Hash string `json:"hash"`
}

// quickSeq returns the number of a line without reading the rest of it, 0 if it
// does not begin as a record does.
func quickSeq(line []byte) uint64 {
	digits, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	i := bytes.IndexByte(digits, ',')
	if !ok || i < 0 || i > 20 {
		return 0
	}
	n, err := strconv.ParseUint(string(digits[:i]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// parseLine reads a line without its newline and checks that its hash covers
// it. The error says what is wrong with it; the entry may then still hold
// something.
func parseLine(line []byte) (entry, link, error) {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return e, link{}, fmt.Errorf("is no record: %w", err)
	}
	l := link{seq: e.Seq}
	if len(line) < tailLen || !bytes.HasPrefix(line[len(line)-tailLen:], []byte(hashMember)) {
		return e, l, fmt.Errorf("does not end in a hash")
	}
	if n, err := hex.Decode(l.hash[:], []byte(e.Hash)); err != nil || n != sha256.Size {
		return e, l, fmt.Errorf("has a hash that is no SHA-256")
	}
	h := sha256.New()
	h.Write(line[:len(line)-tailLen])
	h.Write([]byte("}"))
	if !bytes.Equal(h.Sum(nil), l.hash[:]) {
		return e, l, fmt.Errorf("was edited: its hash does not fit its text")
	}
	return e, l, nil
}
