package ui

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"drawbridge/bridge/gate"
	"drawbridge/bridge/tally"
)

// Verb is what a click on an item asks for.
type Verb string

// The verbs of the menu.
const (
	VerbAnswer   Verb = "answer"    // Action.Prompt with Action.Answer
	VerbStop     Verb = "stop"      // every call that runs or waits
	VerbPause    Verb = "pause"     // everything
	VerbResume   Verb = "resume"    // asks the person, in a prompt of its own
	VerbNoModels Verb = "no_models" // no model request of a host leaves
	VerbModels   Verb = "models"    // asks the person, in a prompt of its own
	VerbActivity Verb = "activity"  // open the page
	VerbCopy     Verb = "copy"      // the configuration for Action.Arg, a kind of client
	VerbDoctor   Verb = "doctor"
	VerbRevoke   Verb = "revoke" // the Rule whose Key is Action.Arg
	VerbLogin    Verb = "login"  // start at login, if Action.Arg is "on"
	VerbQuit     Verb = "quit"
)

// Action is what an item does. The zero Action does nothing.
type Action struct {
	Verb   Verb
	Arg    string
	Prompt string // a prompt's ID
	Answer gate.Answer
}

// Item is one line of the menu.
type Item struct {
	// Key is the same while the item means the same; a renderer keeps such an
	// item in its place.
	Key      string
	Label    string
	Disabled bool
	Checked  bool // with a mark before it
	Action   Action
	Sub      []Item
}

// Section is a run of items. A renderer that cannot insert makes Room places for
// each section up front, each with SubRoom places in a sub-menu.
type Section struct {
	Name    string
	Room    int
	SubRoom int
	// Sticky items keep their places while they live, so that what is under the
	// person's pointer does not change.
	Sticky bool
	// Check makes its items check items.
	Check bool
	// Line is a separator before the section.
	Line  bool
	Items []Item
}

// Menu is the whole menu of the status item. Every State gives the same
// sections, so that places can be made before there is anything to show.
type Menu []Section

// How many entries are listed in the menu; the page lists them all.
const (
	mostPrompts = 12
	mostListed  = 12
	mostLined   = 10 // lines of one prompt's arguments or items
	mostAccept  = 60 // lines of what is to be accepted
	menuWidth   = 80 // of such a line, in characters
	mostRuled   = 4  // lines of the rule that Always writes
)

// BuildMenu makes the menu for a state.
func BuildMenu(s State) Menu {
	_, status := s.Status()
	running := len(s.Working) > 0 || len(s.Pending) > 0
	pause := Item{Key: "pause", Label: "Pause everything", Action: Action{Verb: VerbPause}}
	if s.Paused {
		pause = Item{Key: "resume", Label: "Resume…", Action: Action{Verb: VerbResume}}
	}
	var acceptance, others []Prompt
	for _, p := range s.Pending {
		if p.Kind == gate.AskAccept {
			acceptance = append(acceptance, p)
		} else {
			others = append(others, p)
		}
	}
	return Menu{
		{Name: "status", Room: 1, Items: []Item{{Key: "status", Label: status, Disabled: true}}},
		// A place of its own, since there is one at a time and it is long.
		{Name: "accept", Room: 1, SubRoom: mostAccept + 4, Sticky: true, Items: prompts(acceptance)},
		{Name: "prompts", Room: mostPrompts, SubRoom: mostLined + mostRuled + 10, Sticky: true, Items: prompts(others)},
		{Name: "more", Room: 1, Items: more(len(others) - mostPrompts)},
		{Name: "control", Line: true, Room: 2, Items: []Item{
			{Key: "stop", Label: "Stop now", Disabled: !running, Action: Action{Verb: VerbStop}},
			pause,
		}},
		{Name: "clients", Line: true, Room: 1, SubRoom: mostListed + 1, Items: []Item{clients(s.Clients)}},
		{Name: "hosts", Room: 1, SubRoom: mostListed + 1, Items: hosts(s.Hosts)},
		{Name: "models", Room: 1, SubRoom: mostListed + 4, Items: []Item{models(&s.Models)}},
		{Name: "rules", Room: 1, SubRoom: mostListed + 1, Items: rules(s.Rules)},
		{Name: "warnings", Room: 1, SubRoom: mostListed + 1, Items: warnings(s.Warnings)},
		{Name: "refused", Room: 1, SubRoom: mostListed + 1, Items: refused(s.refused())},
		{Name: "open", Line: true, Room: 1, Items: []Item{{Key: "activity", Label: "Open activity", Action: Action{Verb: VerbActivity}}}},
		{Name: "copy", Room: 1, SubRoom: len(ClientKinds), Items: []Item{copies()}},
		{Name: "doctor", Room: 1, Items: []Item{{Key: "doctor", Label: "Run doctor", Action: Action{Verb: VerbDoctor}}}},
		{Name: "login", Room: 1, Check: true, Items: login(s.Login)},
		{Name: "quit", Line: true, Room: 2, Items: []Item{
			{Key: "version", Label: "Drawbridge " + s.Version, Disabled: true},
			{Key: "quit", Label: "Quit", Action: Action{Verb: VerbQuit}},
		}},
	}
}

func prompts(all []Prompt) []Item {
	var items []Item
	for _, p := range all[:min(len(all), mostPrompts)] {
		items = append(items, Item{Key: p.ID, Label: promptLabel(&p), Sub: answers(&p)})
	}
	return items
}

func more(n int) []Item {
	if n <= 0 {
		return nil
	}
	return []Item{{Key: "more", Label: plural(n, "more question") + ": open activity", Action: Action{Verb: VerbActivity}}}
}

// promptLabel is the one line of a prompt.
func promptLabel(p *Prompt) string {
	var what string
	switch p.Kind {
	case gate.AskResume:
		what = "Everything is paused: go on?"
	case gate.AskAccept:
		what = fmt.Sprintf("Accept %s that loosen?", plural(len(p.Items), "change"))
	case gate.AskLoosen:
		what = Escape(p.Client, 24) + " asks to allow more"
	case gate.AskPage:
		what = "A page asks to answer for you"
	default:
		what = fmt.Sprintf("%s: %s %s", Escape(p.Client, 24), Escape(p.Tool, 32), oneLine(p.Args, 40))
	}
	if p.Left > 0 {
		what += " (" + roughly(p.Left) + ")"
	}
	return what
}

// answers is a prompt's sub-menu: what it is about, then every answer.
func answers(p *Prompt) []Item {
	var items []Item
	line := func(text string) {
		items = append(items, Item{Key: fmt.Sprintf("line-%d", len(items)), Label: text, Disabled: true})
	}
	answer := func(all []verdict) {
		for _, v := range all {
			items = append(items, Item{
				Key: fmt.Sprintf("answer-%d-%s", v.answer.Scope, v.answer.Choice), Label: v.label,
				Action: Action{Verb: VerbAnswer, Prompt: p.ID, Answer: v.answer},
			})
		}
	}
	details := Item{Key: "details", Label: "Details…", Action: Action{Verb: VerbActivity}}
	switch p.Kind {
	case gate.AskResume:
		answer(verdicts(p, reading{}, false))
		return items
	case gate.AskAccept, gate.AskLoosen:
		if p.Kind == gate.AskLoosen {
			line(Escape(p.Client, 40) + " asks to allow more from now on:")
		}
		r := p.reading(menuWidth, p.menuLines())
		for _, l := range r.lines {
			line(l)
		}
		answer(verdicts(p, r, false))
		if !r.whole {
			items = append(items, details)
		}
		return items
	case gate.AskPage:
		line("If you opened it: which number does it show?")
		answer(verdicts(p, reading{}, false))
		return items
	}
	if p.Again {
		line("You allowed it; the screen around its targets has changed since")
	}
	line(fmt.Sprintf("%s runs %s of %s", Escape(p.Client, 40), Escape(p.Tool, 40), Escape(p.Host, 40)))
	for _, l := range condensed(p.Args, mostLined) {
		line(l)
	}
	rule := p.ruleLines(120, mostRuled)
	for _, l := range rule {
		line(l)
	}
	answer(verdicts(p, reading{}, rule != nil))
	return append(items, details)
}

// menuLines is how many lines of items the menu has places for.
func (p *Prompt) menuLines() int {
	if p.Kind == gate.AskAccept {
		return mostAccept
	}
	return mostLined
}

// verdict is an answer and what it is called.
type verdict struct {
	label  string
	answer gate.Answer
}

// verdicts are the answers that a surface offers which shows r of what loosens, and,
// if ruled, the rule that Always writes. The last one denies.
func verdicts(p *Prompt, r reading, ruled bool) []verdict {
	once, deny := "Allow once", "Deny"
	switch p.Kind {
	case gate.AskResume:
		once, deny = "Go on", "Stay paused"
	case gate.AskAccept:
		once, deny = "Accept all of this", "Keep it as it is"
	case gate.AskLoosen:
		once, deny = "Allow this", "Keep it as it is"
	case gate.AskPage:
		var all []verdict
		for _, c := range p.Choices {
			all = append(all, verdict{c, gate.Answer{Scope: gate.Once, Choice: c}})
		}
		return append(all, verdict{"None of these", gate.Answer{}})
	}
	var all []verdict
	for _, v := range []verdict{
		{once, gate.Answer{Scope: gate.Once}},
		{fmt.Sprintf("Allow %s for this connection", Escape(p.Tool, 32)), gate.Answer{Scope: gate.ForConn}},
		{fmt.Sprintf("Allow %s for 15 minutes", Escape(p.Tool, 32)), gate.Answer{Scope: gate.For15m}},
		{"Always: write that rule", gate.Answer{Scope: gate.Always}},
		{deny, gate.Answer{}},
	} {
		if p.offers(v.answer.Scope, r) && (v.answer.Scope != gate.Always || ruled) {
			all = append(all, v)
		}
	}
	return all
}

func clients(all []Client) Item {
	if len(all) == 0 {
		return Item{Key: "clients", Label: "No client yet", Disabled: true}
	}
	it := Item{Key: "clients", Label: fmt.Sprintf("Clients (%d)", len(all))}
	for _, c := range all {
		it.Sub = append(it.Sub, Item{Key: c.Name, Disabled: true,
			Label: fmt.Sprintf("%s: %s, %s", Escape(c.Name, 40), plural(c.Connections, "connection"), plural(c.Calls, "call"))})
	}
	it.Sub = capped(it.Sub)
	return it
}

func hosts(all []Host) []Item {
	if len(all) == 0 {
		return nil
	}
	it := Item{Key: "hosts", Label: fmt.Sprintf("Hosts (%d)", len(all))}
	for _, h := range all {
		it.Sub = append(it.Sub, Item{Key: h.Name, Disabled: true,
			Label: fmt.Sprintf("%s: %s, %s, %s", Escape(h.Name, 40), Escape(h.Kind, 20), Escape(h.State, 20), plural(h.Tools, "tool"))})
	}
	it.Sub = capped(it.Sub)
	return []Item{it}
}

// models is the switch: what is so at which host, and what can be done.
func models(m *Models) Item {
	it := Item{Key: "models", Label: m.String()}
	line := func(key, text string) {
		it.Sub = append(it.Sub, Item{Key: key, Label: text, Disabled: true})
	}
	if m.By != "" {
		line("by", "Set by "+name(m.By))
	}
	if w := m.warning(); w != "" {
		line("warning", w)
	}
	for i, h := range m.Hosts {
		if i == mostListed {
			it.Sub = append(it.Sub, Item{Key: "more", Label: fmt.Sprintf("%d more: open activity", len(m.Hosts)-i), Action: Action{Verb: VerbActivity}})
			break
		}
		line("host-"+h.Name, h.String())
	}
	if m.Denied {
		it.Sub = append(it.Sub, Item{Key: "allow", Label: "Let hosts call their models…", Action: Action{Verb: VerbModels}})
	} else {
		it.Sub = append(it.Sub, Item{Key: "deny", Label: "Switch hosts' models off", Action: Action{Verb: VerbNoModels}})
	}
	return it
}

// String is a host's line.
func (h ModelHost) String() string {
	if h.Denied {
		return name(h.Name) + ": denied"
	}
	return name(h.Name) + ": may call its model"
}

// rules lists what is remembered. A click on one revokes it.
func rules(all []Rule) []Item {
	if len(all) == 0 {
		return nil
	}
	it := Item{Key: "rules", Label: fmt.Sprintf("Rules and permissions (%d)", len(all))}
	for _, r := range all {
		sub := Item{Key: r.Key, Label: Escape(r.Text, 120)}
		if l := r.lasts(); l != "" {
			sub.Label += ", " + l
		}
		if r.Fixed {
			sub.Disabled = true
		} else {
			sub.Label, sub.Action = "Revoke: "+sub.Label, Action{Verb: VerbRevoke, Arg: r.Key}
		}
		it.Sub = append(it.Sub, sub)
	}
	it.Sub = capped(it.Sub)
	return []Item{it}
}

func warnings(all []string) []Item {
	if len(all) == 0 {
		return nil
	}
	it := Item{Key: "warnings", Label: fmt.Sprintf("Warnings (%d)", len(all))}
	for i, w := range all {
		it.Sub = append(it.Sub, Item{Key: fmt.Sprint(i), Label: Escape(w, 120), Disabled: true})
	}
	it.Sub = capped(it.Sub)
	return []Item{it}
}

// refused lists what programs asked and did not get.
func refused(all []tally.Kind) []Item {
	if len(all) == 0 {
		return nil
	}
	it := Item{Key: "refused", Label: fmt.Sprintf("Refused requests (%d)", tally.Total(all))}
	for i, k := range all {
		it.Sub = append(it.Sub, Item{Key: fmt.Sprint(i), Label: request(k), Disabled: true})
	}
	it.Sub = capped(it.Sub)
	return []Item{it}
}

func login(l Login) []Item {
	if !l.Known {
		return nil
	}
	it := Item{Key: "login", Label: "Start at login", Checked: l.On, Action: Action{Verb: VerbLogin, Arg: "on"}}
	if l.On {
		it.Action.Arg = "off"
	}
	return []Item{it}
}

// capped keeps a list within its places.
func capped(items []Item) []Item {
	n := len(items) - mostListed
	if n <= 0 {
		return items
	}
	return append(items[:mostListed:mostListed], Item{Key: "more", Label: fmt.Sprintf("%d more: open activity", n), Action: Action{Verb: VerbActivity}})
}

func copies() Item {
	it := Item{Key: "copy", Label: "Copy client configuration"}
	for _, k := range ClientKinds {
		it.Sub = append(it.Sub, Item{Key: k.Name, Label: k.Title, Action: Action{Verb: VerbCopy, Arg: k.Name}})
	}
	return it
}

// condensed is joined without the lines that are nothing but brackets, and
// without what does not fit into most lines.
func condensed(lines []string, most int) []string {
	all := joined(lines)
	var out []string
	for _, l := range all {
		if strings.Trim(l, " {}[],") != "" || len(all) == 1 {
			out = append(out, cut(l, 80))
		}
	}
	if n := len(out) - most + 1; n > 1 {
		out = append(out[:most-1], fmt.Sprintf("… %s, see Details", plural(n, "more line")))
	}
	return out
}

// joined puts what is short between brackets into one line.
func joined(lines []string) []string {
	const short = 72
	var all []string
	var open []int // where a bracket opens in all
	for _, l := range lines {
		all = append(all, l)
		t := strings.TrimSpace(l)
		switch {
		case opens(t):
			open = append(open, len(all)-1)
		case len(open) > 0 && closes(t):
			at := open[len(open)-1]
			open = open[:len(open)-1]
			one := strings.TrimRight(all[at], " ")
			for _, inner := range all[at+1:] {
				inner = strings.TrimSpace(inner)
				if !opens(one) && !closes(inner) {
					one += " "
				}
				one += inner
			}
			if utf8.RuneCountInString(one) <= short {
				all = append(all[:at], one)
			}
		}
	}
	return all
}

func opens(line string) bool { return strings.HasSuffix(line, "{") || strings.HasSuffix(line, "[") }

func closes(line string) bool { return strings.HasPrefix(line, "}") || strings.HasPrefix(line, "]") }

// oneLine puts lines of arguments into one. They are escaped already.
func oneLine(lines []string, max int) string {
	var trimmed []string
	for _, l := range condensed(lines, mostLines) {
		trimmed = append(trimmed, strings.TrimSpace(l))
	}
	return cut(strings.Join(trimmed, " "), max)
}

// cut leaves out the middle of a text that is escaped already.
func cut(s string, max int) string {
	r := []rune(s)
	if len(r) <= max+len("⟨… 99 left out …⟩") { // to leave out less would be longer
		return s
	}
	head := max - max/3
	return fmt.Sprintf("%s⟨… %d left out …⟩%s", string(r[:head]), len(r)-max, string(r[len(r)-max/3:]))
}

// roughly says a time in steps of 15 s, so that a menu that is open does not
// change all the time.
func roughly(d time.Duration) string {
	const step = 15 * time.Second
	d = (d + step - 1) / step * step
	if d < time.Minute {
		return fmt.Sprintf("%d s left", int(d.Seconds()))
	}
	if s := int(d.Seconds()) % 60; s != 0 {
		return fmt.Sprintf("%d min %d s left", int(d.Minutes()), s)
	}
	return fmt.Sprintf("%d min left", int(d.Minutes()))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// listing joins names, a few of them.
func listing(all []string) string {
	const most = 3
	var out []string
	for _, s := range all[:min(len(all), most)] {
		out = append(out, Escape(s, 40))
	}
	if n := len(all) - most; n > 0 {
		out = append(out, fmt.Sprintf("%d more", n))
	}
	return strings.Join(out, ", ")
}
