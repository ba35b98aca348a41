package ui

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"drawbridge/bridge/gate"
)

const (
	// longest is how many characters of one value are shown.
	longest = 1000
	// mostLines is how many lines of arguments are shown.
	mostLines = 200
)

// Terminal asks the person at the terminal in whose foreground the agent runs,
// one prompt after the other. To allow, a word must be typed that is made anew
// for each prompt; what was typed before the prompt is thrown away. In the
// background it never touches the terminal, which would stop the process.
type Terminal struct {
	// TillEnd has what is loosened here not outlive the process: whoever can start
	// the agent anew can do so in a terminal of their own. It is set before Run.
	TillEnd bool

	in, out *os.File
	reflex  time.Duration
	logs    *holdback

	mu    sync.Mutex // guards everything below
	queue []*gate.Pending
	why   map[*gate.Pending]string // of those that were withdrawn
	gone  bool                     // the terminal was closed, or Run has ended
	ping  func()                   // wakes Run; nil while it does not run
}

// NewTerminal makes the surface of the terminal that in reads from and out
// writes to, as a rule stdin and stderr. Run must serve it.
func NewTerminal(in, out *os.File) *Terminal {
	return &Terminal{in: in, out: out, reflex: reflex, logs: &holdback{to: out}, why: map[*gate.Pending]string{}}
}

var _ gate.Surface = (*Terminal)(nil)

// Logs is where the log has to go that is shown at the same terminal: while a
// prompt is up, it is held back.
func (t *Terminal) Logs() io.Writer { return t.logs }

// Name is "terminal".
func (t *Terminal) Name() string { return "terminal" }

// Ready tells whether both ends are a terminal and we are in its foreground.
func (t *Terminal) Ready() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.gone && term.IsTerminal(int(t.in.Fd())) && term.IsTerminal(int(t.out.Fd())) && t.foreground()
}

func (t *Terminal) foreground() bool {
	group, err := unix.IoctlGetInt(int(t.in.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// Show puts a prompt at the end of the queue.
func (t *Terminal) Show(p *gate.Pending) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return errors.New("the terminal is gone")
	}
	t.queue = append(t.queue, p)
	t.wake()
	return nil
}

// Withdraw takes a prompt away, wherever in the queue it is.
func (t *Terminal) Withdraw(p *gate.Pending, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.queue, p) {
		t.why[p] = reason
	}
	t.wake()
}

// wake is called with mu held.
func (t *Terminal) wake() {
	if t.ping != nil {
		t.ping()
	}
}

// Run serves prompts until ctx ends or the terminal is closed. It sleeps while
// there is none.
func (t *Terminal) Run(ctx context.Context) error {
	// A pipe, since only a descriptor can wake a poll for input.
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	if err := unix.SetNonblock(int(w.Fd()), true); err != nil { // after Fd, which makes it block
		return errors.Join(err, r.Close(), w.Close())
	}
	wfd := int(w.Fd())
	t.mu.Lock()
	t.ping = func() { _, _ = unix.Write(wfd, []byte{0}) } // a full pipe wakes too
	t.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.wake()
	})
	defer func() {
		stop()
		t.mu.Lock()
		t.gone, t.ping = true, nil
		t.mu.Unlock()
		r.Close()
		w.Close()
	}()
	s := &session{Terminal: t, ctx: ctx, wakeup: r}
	for {
		t.mu.Lock()
		var p *gate.Pending
		if len(t.queue) > 0 {
			p = t.queue[0]
		}
		t.mu.Unlock()
		if p == nil {
			_, err = s.wait(-1, false)
		} else {
			err = s.serve(p)
			t.mu.Lock()
			t.queue = slices.DeleteFunc(t.queue, func(q *gate.Pending) bool { return q == p })
			delete(t.why, p)
			t.mu.Unlock()
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("terminal: %w", err)
		}
	}
}

// session is what one Run works with.
type session struct {
	*Terminal
	ctx    context.Context
	wakeup *os.File
	typed  []byte // of a line that is not finished
}

// wait sleeps until something is typed (if input is wanted), wake is called, or
// the time is over (below 0: never), and tells whether there is input.
func (s *session) wait(d time.Duration, input bool) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(s.wakeup.Fd()), Events: unix.POLLIN}}
	if input {
		fds = append(fds, unix.PollFd{Fd: int32(s.in.Fd()), Events: unix.POLLIN})
	}
	ms := -1
	if d >= 0 {
		ms = int(d.Milliseconds()) + 1
	}
	if _, err := unix.Poll(fds, ms); err != nil && !errors.Is(err, unix.EINTR) {
		return false, err
	}
	if fds[0].Revents != 0 {
		var b [512]byte
		if _, err := unix.Read(int(s.wakeup.Fd()), b[:]); err != nil && !errors.Is(err, unix.EINTR) {
			return false, err
		}
	}
	return input && fds[1].Revents != 0, nil
}

// over tells whether a prompt needs no answer any more, and why.
func (s *session) over(p *gate.Pending) (why string, over bool) {
	s.mu.Lock()
	why = s.why[p]
	s.mu.Unlock()
	select {
	case <-p.Done():
		return why, true
	case <-s.ctx.Done():
		return why, true
	default:
		return why, false
	}
}

// serve asks one prompt until it is answered or over.
func (s *session) serve(p *gate.Pending) error {
	var word string
	var since time.Time // when the prompt was put up; zero: not on the screen
	var view sheet
	defer s.logs.open()
	for {
		if why, over := s.over(p); over {
			if !since.IsZero() && why != "" {
				s.print("\r\nNo answer is needed any more: %s.\n", why)
			}
			return nil
		}
		if !term.IsTerminal(int(s.in.Fd())) {
			return io.EOF // it was closed
		}
		if !s.foreground() {
			// The shell has the terminal. When it is ours again, it is asked anew.
			since = time.Time{}
			s.logs.open()
			if _, err := s.wait(time.Second, false); err != nil {
				return err
			}
			continue
		}
		if since.IsZero() {
			word = newWord()
			s.logs.close()
			view = newSheet(p, int(s.out.Fd()))
			s.print("%s", s.text(p, view, word))
			s.flush()
			s.print("> ")
			since = time.Now()
		}
		typed, err := s.wait(untilNextSecond(p.Deadline), true)
		if err != nil {
			return err
		}
		if !typed {
			s.countdown(p)
			continue
		}
		if !s.foreground() {
			continue
		}
		line, whole, err := s.read()
		if err != nil {
			return err
		}
		if !whole {
			continue
		}
		if time.Since(since) < s.reflex {
			s.flush()
			s.print("That was too quick to have been read, and does not count.\n> ")
			continue
		}
		if view.more() && strings.TrimSpace(line) == moreWord {
			view.at++
			word, since = newWord(), time.Now()
			s.print("%s", s.page(p, view, word))
			s.flush()
			s.print("> ")
			continue
		}
		a, problem := parseAnswer(line, word, view.scopes(p), p.Choices)
		if problem != "" {
			if !view.yes() {
				s.print("%s\nNothing was answered.\n> ", problem)
				continue
			}
			word = newWord()
			s.print("%s\nNothing was answered. The word is now %s.\n> ", problem, word)
			continue
		}
		a.By, a.TillEnd = s.Name(), s.TillEnd
		if err := p.Answer(a); err != nil {
			s.print("%s\n", err)
			return nil
		}
		s.print("%s\n", answered(p, a))
		return nil
	}
}

// untilNextSecond is when the countdown changes; below 0 where there is none.
func untilNextSecond(deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return -1
	}
	return max(0, time.Until(deadline)%time.Second)
}

// read takes what the terminal has, and returns a line when it is whole.
func (s *session) read() (line string, whole bool, err error) {
	var b [4096]byte
	n, err := unix.Read(int(s.in.Fd()), b[:])
	if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if n == 0 {
		return "", false, nil // the end-of-file key, which answers nothing; or closed, as serve will see
	}
	if s.typed = append(s.typed, b[:n]...); len(s.typed) > 1<<16 {
		s.typed = nil
		return "", false, nil
	}
	i := bytes.IndexByte(s.typed, '\n')
	if i < 0 {
		return "", false, nil
	}
	line = string(s.typed[:i])
	s.typed = nil // a second line was typed before its prompt
	return line, true, nil
}

// flush throws away what was typed ahead.
func (s *session) flush() {
	s.typed = nil
	if s.foreground() { // else it would stop us
		_ = flushInput(int(s.in.Fd()))
	}
}

func (s *session) print(format string, args ...any) {
	if s.foreground() {
		fmt.Fprintf(s.out, format, args...)
	}
}

// countdown rewrites the line above the one that is typed on.
func (s *session) countdown(p *gate.Pending) {
	if !p.Deadline.IsZero() && os.Getenv("TERM") != "" && os.Getenv("TERM") != "dumb" {
		s.print("\x1b7\x1b[1A\r%s\x1b[K\x1b8", timeLeft(p))
	}
}

func timeLeft(p *gate.Pending) string {
	if p.Deadline.IsZero() {
		return "This question stands until it is answered."
	}
	return fmt.Sprintf("%d seconds left.", int(max(0, time.Until(p.Deadline)).Round(time.Second).Seconds()))
}

// verbs are the words that allow.
var verbs = map[gate.Scope]string{gate.Once: "allow", gate.ForConn: "conn", gate.For15m: "15m", gate.Always: "always"}

// parseAnswer reads a typed line, or says what is wrong with it. Where there are
// choices, one of them is the word.
func parseAnswer(line, word string, scopes []gate.Scope, choices []string) (gate.Answer, string) {
	line = strings.TrimSpace(line)
	verb, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	if line == "" || verb == "deny" {
		return gate.Answer{Scope: gate.Deny, Reason: strings.ToValidUTF8(rest, "\ufffd")}, ""
	}
	if len(choices) > 0 {
		if slices.Contains(choices, line) {
			return gate.Answer{Scope: gate.Once, Choice: line}, ""
		}
		return gate.Answer{}, "That is none of the answers above."
	}
	for _, s := range scopes {
		if v, ok := verbs[s]; !ok || v != verb {
			continue
		}
		if rest != word {
			return gate.Answer{}, fmt.Sprintf("After %s comes the word, and that was not it.", verb)
		}
		return gate.Answer{Scope: s}, ""
	}
	return gate.Answer{}, "That is none of the answers above."
}

func answered(p *gate.Pending, a gate.Answer) string {
	switch {
	case a.Scope == gate.Deny && p.Kind == gate.AskCall:
		return "Denied."
	case a.Scope == gate.Deny:
		return "It stays as it is."
	case a.Scope == gate.Always:
		return "Allowed, and the rule is written."
	}
	return "Allowed."
}

// moreWord is typed to see the next page.
const moreWord = "more"

// sheet is what a prompt that loosens asks for, in pages that fit on the screen: who
// says yes had all of them there. Other prompts have none.
type sheet struct {
	pages [][]string
	whole bool // the pages show everything
	at    int  // the page that is on the screen
}

// newSheet lays a prompt out for the terminal at fd.
func newSheet(p *gate.Pending, fd int) sheet {
	columns, rows, err := term.GetSize(fd)
	if err != nil || columns < 20 || rows < 1 { // a terminal that says no size is as the first ones were
		columns, rows = 80, 24
	}
	return sheetOf(p, columns, rows)
}

func sheetOf(p *gate.Pending, columns, rows int) sheet {
	v := NewPrompt(p, time.Now())
	if !v.loosens() {
		return sheet{whole: true}
	}
	// Beside the items there are the question, the answers and the time left.
	const beside = 15
	r := v.reading(columns-2, 0)
	return sheet{pages: slices.Collect(slices.Chunk(r.lines, max(4, rows-beside))), whole: r.whole}
}

// more tells whether there is a page that was not on the screen yet.
func (v *sheet) more() bool { return v.at+1 < len(v.pages) }

// yes tells whether there can be a yes.
func (v *sheet) yes() bool { return v.whole && !v.more() }

// scopes are the answers that count now.
func (v *sheet) scopes(p *gate.Pending) []gate.Scope {
	if v.yes() {
		return p.Scopes()
	}
	return []gate.Scope{gate.Deny}
}

// text is the whole prompt, as far as it fits on one page.
func (t *Terminal) text(p *gate.Pending, v sheet, word string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("\n%s", strings.Repeat("─", 60))
	t.mu.Lock()
	more := len(t.queue) - 1
	t.mu.Unlock()
	switch r := p.Request; p.Kind {
	case gate.AskResume:
		line("Everything is paused. Go on?")
	case gate.AskAccept:
		line("Configuration or rules allow more than you accepted so far: %s. Accept all of this?", plural(len(p.Items), "change"))
	case gate.AskLoosen:
		line("%s asks to allow more from now on:", name(r.Client))
	case gate.AskPage:
		line("A page in a browser asks to give answers in your name. If you opened it, which number does it show?")
	default:
		line("Client %s wants to run %s of host %s.", name(r.Client), name(r.Tool), name(r.Host))
		if p.Again {
			line("You allowed it, but the screen around its targets has changed since. Look again.")
		}
		for _, l := range arguments(r.Args) {
			line("  %s", l)
		}
		if r.Extra != nil {
			line("and sends along, beside the arguments:")
			for _, l := range arguments(r.Extra) {
				line("  %s", l)
			}
		}
	}
	if t.TillEnd && (p.Kind == gate.AskAccept || p.Kind == gate.AskLoosen) {
		line("A yes at a terminal holds until the agent ends; one in the menu or in the panel lasts.")
	}
	if t.TillEnd && p.Rule != nil {
		line("A rule that is written at a terminal is asked again when the agent starts; one in the menu or in the panel is not.")
	}
	if more > 0 {
		line("(%d more wait after this.)", more)
	}
	return b.String() + t.page(p, v, word)
}

// page is one page of what loosens, and the answers that count below it.
func (t *Terminal) page(p *gate.Pending, v sheet, word string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if len(v.pages) > 0 {
		for _, l := range v.pages[v.at] {
			line("  %s", l)
		}
	}
	if len(v.pages) > 1 {
		line("Page %d of %d.", v.at+1, len(v.pages))
	}
	line("Type one of:")
	if v.more() {
		line("  %-18s the next page; a yes can be given on the last one", moreWord)
	}
	for _, c := range p.Choices {
		line("  %-18s the page shows this", c)
	}
	for _, s := range v.scopes(p) {
		if what := meaning(p, s); s != gate.Deny && p.Kind != gate.AskPage {
			line("  %-8s%-10s %s", verbs[s], word, what)
		}
	}
	line("  %-18s %s", "deny [why]", meaning(p, gate.Deny))
	line("%s", timeLeft(p))
	return b.String()
}

// meaning says what an answer does and what it leaves behind.
func meaning(p *gate.Pending, s gate.Scope) string {
	r := p.Request
	switch s {
	case gate.Deny:
		if p.Kind == gate.AskPage {
			return "none of them, or I opened no page; Enter alone means the same"
		}
		if p.Kind != gate.AskCall {
			return "no: it stays as it is; Enter alone means the same"
		}
		return "no; Enter alone means the same"
	case gate.ForConn:
		return fmt.Sprintf("this and further calls of %s, with any arguments, until this connection ends", name(r.Tool))
	case gate.For15m:
		return fmt.Sprintf("this and further calls of %s by client %s, with any arguments, for 15 minutes", name(r.Tool), name(r.Client))
	case gate.Always:
		return "this and all further ones, by this rule in the rules file: " + marked(p.Rule.String())
	}
	if p.Kind != gate.AskCall {
		return "yes"
	}
	return "this call, once"
}

func name(s string) string { return Escape(s, 100) }

// arguments lays a JSON text out in lines that are safe to show. Texts are shown
// by what they say: \u0072m is rm.
func arguments(raw []byte) []string { return laidOut(raw, brief) }

// room is how much of arguments is shown: characters of one value, and lines.
type room struct{ value, lines int }

var (
	brief = room{longest, mostLines}
	// whole is for a place that can be scrolled. What is longer stops no person
	// from denying it.
	whole = room{200_000, 20_000}
)

func laidOut(raw []byte, most room) []string {
	if len(bytes.TrimSpace(raw)) == 0 {
		return []string{"(no arguments)"}
	}
	l := layout{d: json.NewDecoder(bytes.NewReader(raw)), most: most.value}
	l.d.UseNumber()
	err := l.value("")
	if err == nil {
		if _, more := l.d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		return []string{"(no JSON) " + Escape(string(raw), most.value)}
	}
	l.lines = append(l.lines, l.line)
	if n := len(l.lines) - most.lines; n > 0 {
		head := l.lines[:most.lines*2/3]
		tail := l.lines[len(l.lines)-(most.lines-len(head)):]
		return slices.Concat(head, []string{fmt.Sprintf("⟨… %d lines left out …⟩", n)}, tail)
	}
	return l.lines
}

// layout indents JSON.
type layout struct {
	d     *json.Decoder
	lines []string
	line  string // begun and not ended
	most  int    // characters of one value
}

func (l *layout) next(indent string) {
	l.lines = append(l.lines, l.line)
	l.line = indent
}

func (l *layout) value(indent string) error {
	tok, err := l.d.Token()
	if err != nil {
		return err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		l.line += scalar(tok, l.most)
		return nil
	}
	if len(indent) > 200 { // 100 deep
		return errors.New("too deep to show")
	}
	l.line += delim.String()
	inner, any := indent+"  ", false
	for l.d.More() {
		if any {
			l.line += ","
		}
		any = true
		l.next(inner)
		if delim == '{' {
			key, err := l.d.Token()
			if err != nil {
				return err
			}
			l.line += scalar(key, l.most) + ": "
		}
		if err := l.value(inner); err != nil {
			return err
		}
	}
	end, err := l.d.Token()
	if err != nil {
		return err
	}
	if any {
		l.next(indent)
	}
	l.line += fmt.Sprint(end)
	return nil
}

func scalar(tok json.Token, most int) string {
	s, ok := tok.(string)
	if !ok {
		if tok == nil {
			return "null"
		}
		return Escape(fmt.Sprint(tok), most)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // a string always encodes
		return "?"
	}
	return Escape(strings.TrimSuffix(b.String(), "\n"), most)
}

// newWord makes a word that can be typed and not guessed: three syllables.
func newWord() string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var raw [6]byte
	_, _ = rand.Read(raw[:]) // never fails
	var b strings.Builder
	for i, c := range raw {
		set := consonants
		if i%2 == 1 {
			set = vowels
		}
		b.WriteByte(set[int(c)%len(set)])
	}
	return b.String()
}
