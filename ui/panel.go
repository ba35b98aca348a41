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
	answers []panelAnswer
}

// panelAnswer is one button. The last one denies.
type panelAnswer struct {
	label  string
	answer gate.Answer
}

// newPanelView lays a prompt out.
func newPanelView(p *Prompt) panelView {
	v := panelView{title: headline(p), about: question(p)}
	switch p.Kind {
	case gate.AskCall:
		v.about = "A tool of " + name(p.Host) + "."
		if p.Again {
			v.about = "You allowed it; the screen around its targets has changed since. " + v.about
		}
		v.text = strings.Join(p.Args, "\n")
	default:
		var lines []string
		for _, it := range p.Items {
			lines = append(lines, Escape(it, 0))
		}
		v.text = strings.Join(lines, "\n\n")
	}
	if p.Offers(gate.Always) {
		v.rule = "Always would write the rule " + Escape(p.Rule, 0)
	}
	for _, it := range answers(p) {
		if it.Action.Verb == VerbAnswer {
			v.answers = append(v.answers, panelAnswer{it.Label, it.Action.Answer})
		}
	}
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
