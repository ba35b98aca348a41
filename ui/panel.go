package ui

import (
	"fmt"
	"strings"
	"time"

	"drawbridge/bridge/gate"
)

// panelView is what the panel of a prompt shows. Its texts are safe to show.
type panelView struct {
	title   string
	about   string // under the title
	text    string // everything that it is about, to be scrolled
	rule    string // what Always would write; empty: it is not offered
	toEnd   bool   // a yes counts once the end of the text was in view
	answers []verdict
}

// panelRuled is how many characters of a rule its place in the panel has room for.
const panelRuled = 150

// newPanelView lays a prompt out.
func newPanelView(p *Prompt) panelView {
	v := panelView{title: headline(p), about: question(p)}
	var r reading
	switch p.Kind {
	case gate.AskCall:
		v.about = "A tool of " + name(p.Host) + "."
		if p.Again {
			v.about = "You allowed it; the screen around its targets has changed since. " + v.about
		}
		v.text = strings.Join(p.Args, "\n")
	case gate.AskAccept, gate.AskLoosen:
		r = p.reading(0, 0)
		v.text, v.toEnd = strings.Join(r.lines, "\n\n"), r.whole
		v.about = plural(len(p.Items), "change") + "."
		if r.whole {
			v.about += " A yes counts once the end of the text was in view."
		}
	}
	v.rule = strings.Join(p.ruleLines(panelRuled, 1), "")
	v.answers = verdicts(p, r, v.rule != "")
	return v
}

// headline is the question of a prompt in a few words.
func headline(p *Prompt) string {
	switch p.Kind {
	case gate.AskResume:
		return "Everything is paused"
	case gate.AskPage:
		return "A page asks to answer for you"
	case gate.AskAccept:
		return "Allow more than before?"
	case gate.AskLoosen:
		return Escape(p.Client, 40) + " asks to allow more"
	}
	return fmt.Sprintf("%s wants to run %s", Escape(p.Client, 40), Escape(p.Tool, 40))
}

// question is the rest of a question that has no items or arguments.
func question(p *Prompt) string {
	switch p.Kind {
	case gate.AskResume:
		return "Go on?"
	case gate.AskPage:
		return "If you opened it: which number does it show?"
	}
	return ""
}

// standing says how long a prompt still stands, and how many wait behind it.
func standing(deadline, now time.Time, more int) string {
	text := "It stands until you answer"
	if !deadline.IsZero() {
		left := max(0, deadline.Sub(now))
		left = (left + time.Second - 1).Truncate(time.Second)
		text = fmt.Sprintf("%d:%02d left", int(left.Minutes()), int(left.Seconds())%60)
	}
	if more > 0 {
		text += fmt.Sprintf(", and %s", plural(more, "more question"))
	}
	return text
}

// isOver tells whether a prompt needs no answer any more.
func isOver(p *gate.Pending) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}
