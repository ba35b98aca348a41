package ui

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"drawbridge/bridge/gate"
)

// mostRead is how many bytes of what loosens a person is asked to read at once.
const mostRead = 64 << 10

// reading is what a prompt that loosens asks for, laid out for one surface. Its
// lines are safe to show.
type reading struct {
	lines []string
	// whole tells that every item is in lines to its last character. Where it is
	// not, the surface offers no yes: what is not shown is not accepted.
	whole bool
}

// loosens tells whether a yes to the prompt lets programs do more than a call.
func (p *Prompt) loosens() bool { return p.Kind == gate.AskAccept || p.Kind == gate.AskLoosen }

// reading lays the items out in at most most lines of width columns (0: as many, or
// as wide, as they are). What does not fit is not shown in part.
func (p *Prompt) reading(width, most int) reading {
	lines := p.itemLines(width)
	if lines == nil && len(p.Items) > 0 {
		return reading{lines: []string{fmt.Sprintf("%s, more than %d kB of text: too much to be read. Make the change in smaller steps; nothing of it is accepted.",
			plural(len(p.Items), "change"), mostRead>>10)}}
	}
	if most > 0 && len(lines) > most {
		return reading{lines: []string{
			fmt.Sprintf("%s, %d lines: too much to be shown here, so no yes here.", plural(len(p.Items), "change"), len(lines)),
			"All of it can be read and answered " + p.elsewhere() + ".",
		}}
	}
	return reading{lines, true}
}

// itemLines is every item in lines of width columns; nil: it is more than a person
// can be asked to read.
func (p *Prompt) itemLines(width int) []string {
	var lines []string
	size := 0
	for i, it := range p.Items {
		text, indent := marked(it), "  "
		if len(p.Items) > 1 {
			number := fmt.Sprintf("%d. ", i+1)
			text, indent = number+text, strings.Repeat(" ", len(number))
		}
		size += len(text)
		if size > mostRead {
			return nil
		}
		lines = append(lines, wrapped(text, indent, width)...)
	}
	return lines
}

// elsewhere says where all of a prompt can be read and answered.
func (p *Prompt) elsewhere() string {
	const others = "at the terminal in which Drawbridge runs, and on macOS in the panel"
	if len(p.itemLines(menuWidth)) <= p.menuLines() {
		return "in the tray's menu, " + others
	}
	return others
}

// offers tells whether a surface that shows r may offer an answer.
func (p *Prompt) offers(s gate.Scope, r reading) bool {
	return p.Offers(s) && (s == gate.Deny || r.whole || !p.loosens())
}

// ruleLines is what Always would write, in at most most lines of width columns;
// none where that does not fit, and then Always is not offered there.
func (p *Prompt) ruleLines(width, most int) []string {
	if !p.Offers(gate.Always) {
		return nil
	}
	lines := wrapped("Always would write the rule "+marked(p.Rule), "  ", width)
	if len(lines) > most {
		return nil
	}
	return lines
}

// wrapped breaks a text that is escaped already into lines of width columns, those
// after the first one indented. Nothing is left out of it, no space either.
func wrapped(text, indent string, width int) []string {
	var lines []string
	line, columns, space := 0, 0, 0 // where the line begins, its width, and after its last space
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		w := columnsOf(r)
		if width > 0 && columns+w > width && i > line {
			end := i
			if space > line && columnsIn(text[line:space]) > width/2 {
				end = space
			}
			lines = append(lines, text[line:end])
			line, space = end, end
			columns = len(indent) + columnsIn(text[line:i])
		}
		columns += w
		if i += n; r == ' ' {
			space = i
		}
	}
	lines = append(lines, text[line:])
	for i := range lines[1:] {
		lines[i+1] = indent + lines[i+1]
	}
	return lines
}

// columnsOf is how wide a character can be at a terminal.
func columnsOf(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	return 2
}

func columnsIn(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// marked is Escape for what a person is to accept: beside a word with characters
// beyond ASCII stands what it is made of, since a letter of another script can look
// like one of ours. The names of tools and clients, and most else that is accepted,
// are ASCII.
func marked(s string) string {
	const ends = " \"'`,;:=()[]{}<>|"
	var b strings.Builder
	for len(s) > 0 {
		n := strings.IndexAny(s, ends)
		if n == 0 {
			n = 1
		} else if n < 0 {
			n = len(s)
		}
		word := s[:n]
		s = s[n:]
		escape(&b, word)
		if strings.ContainsFunc(word, foreign) {
			ascii := strconv.QuoteToASCII(word)
			b.WriteString("⟨" + ascii[1:len(ascii)-1] + "⟩")
		}
	}
	return b.String()
}

// foreign tells whether a character is shown as it is and is none of ASCII. Our own
// texts have the ellipsis.
func foreign(r rune) bool {
	return r >= utf8.RuneSelf && r != utf8.RuneError && r != '…' && !hidden(r)
}
