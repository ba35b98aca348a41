package ui

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"drawbridge/bridge"
)

const (
	mostFinished = 30
	historyBytes = 8 << 20 // of pictures, as they came
	finishedText = 4000    // bytes of what a call answered
)

// Finished is one call that ended.
type Finished struct {
	bridge.CallStatus
	Ended  time.Time
	Text   string          // what it answered, cut
	before []byte          // PNG; nil: none
	after  string          // base64, as it came; empty: none
	result json.RawMessage // until somebody looks: a call does not wait for it to be taken apart
}

func (f *Finished) size() int { return len(f.before) + len(f.after) + len(f.result) }

// open takes the result apart.
func (f *Finished) open() {
	if f.result != nil {
		f.Text, f.after = contents(f.result)
		f.result = nil
	}
}

// History keeps the last calls that ended, and their pictures in memory as far
// as there is room. The zero History works.
type History struct {
	mu     sync.Mutex        // guards everything below
	before map[string][]byte // of calls that are still open
	calls  []*Finished       // the oldest first
}

// Before keeps the picture that a person was shown before a call ran.
func (h *History) Before(callID string, png []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// One that came when its call had ended already is never fetched.
	if h.before == nil || len(h.before) >= mostFinished {
		h.before = map[string][]byte{}
	}
	h.before[callID] = png
}

// Add keeps a call that ended.
func (h *History) Add(c bridge.CallStatus, a bridge.Answer) {
	f := &Finished{CallStatus: c, Ended: time.Now()}
	if len(f.Args) > 1<<16 {
		f.Args = json.RawMessage(`"(too long to keep)"`)
	}
	f.Args = bytes.Clone(f.Args) // not the whole message that it came in
	switch {
	case len(a.Error) > 0:
		f.Text = string(a.Error)
	case len(a.Result) > historyBytes:
		f.Text = "(too long to keep)"
	default:
		f.result = a.Result
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f.before = h.before[c.ID]
	delete(h.before, c.ID)
	h.calls = append(h.calls, f)
	if n := len(h.calls) - mostFinished; n > 0 {
		h.calls = append(h.calls[:0], h.calls[n:]...)
	}
	room := historyBytes
	for i := len(h.calls) - 1; i >= 0; i-- {
		old := h.calls[i]
		if room -= old.size(); room < 0 {
			room += old.size()
			old.before, old.after, old.result = nil, "", nil
		}
	}
}

// contents takes the texts and the last picture out of a result.
func contents(result json.RawMessage) (text, picture string) {
	var r struct {
		Content []struct {
			Type, Text, Data, MimeType string
		} `json:"content"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return "", ""
	}
	var texts []string
	for _, c := range r.Content {
		switch {
		case c.Type == "text":
			texts = append(texts, c.Text)
		case c.Type == "image" && (c.MimeType == "image/png" || c.MimeType == "image/jpeg"):
			picture = c.Data
		}
	}
	text = strings.Join(texts, "\n")
	if len(text) > finishedText {
		text = strings.ToValidUTF8(text[:finishedText], "") + "…"
	}
	return text, picture
}

// List returns the calls that ended, the newest first.
func (h *History) List() []Finished {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Finished, 0, len(h.calls))
	for i := len(h.calls) - 1; i >= 0; i-- {
		h.calls[i].open()
		out = append(out, *h.calls[i])
	}
	return out
}

// Picture returns a picture of a call that ended, nil where there is none.
func (h *History) Picture(callID string, before bool) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.calls {
		if f.ID != callID {
			continue
		}
		if before {
			return f.before
		}
		f.open()
		data, err := base64.StdEncoding.DecodeString(f.after)
		if err != nil || len(data) == 0 {
			return nil
		}
		return data
	}
	return nil
}
