package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/hostllm"
	"drawbridge/ui"
)

// personWho is a native surface whose person gives the same answer to everything.
type personWho struct {
	answer gate.Answer
	asked  []*gate.Pending
}

func (p *personWho) Name() string                   { return "desk" }
func (p *personWho) Ready() bool                    { return true }
func (p *personWho) Withdraw(*gate.Pending, string) {}
func (p *personWho) Show(q *gate.Pending) error {
	p.asked = append(p.asked, q)
	a := p.answer
	a.By = p.Name()
	return q.Answer(a)
}

// silent is a desktop that shows nothing, so that what the tray tells goes to the
// log.
type silent struct{ asker }

func (silent) Tell(string) bool { return false }

// The tray and the page deny the hosts' models at once; neither of them allows
// again without the person's native yes.
func TestModelsFromTrayAndPage(t *testing.T) {
	person := &personWho{}
	a := &agent{log: zerolog.Nop(), gate: gate.New(gate.Options{})}
	var err error
	if a.audit, err = audit.Open(t.TempDir(), audit.Options{}); err != nil {
		t.Fatal(err)
	}
	defer a.audit.Close()
	told := 0
	a.models, err = hostllm.Open(hostllm.Options{Dir: t.TempDir(), Configured: hostllm.Allow, Person: a.gate, Audit: a.audit,
		Changed: func() { told++ }, Log: a.log})
	if err != nil {
		t.Fatal(err)
	}
	tray := &surfaces{agent: a, ctx: t.Context(), notes: silent{}}
	page := activityPage{a}
	allow := map[string]func() error{
		"tray": func() error {
			err := tray.Do(ui.VerbModels, "")
			tray.ended.Wait()
			return err
		},
		"activity page": func() error { return page.AllowModels(context.Background()) },
	}
	deny := map[string]func() error{
		"tray":          func() error { return tray.Do(ui.VerbNoModels, "") },
		"activity page": func() error { return page.Do(ui.VerbNoModels, "") },
	}
	var refused *hostllm.RefusedError
	if err := deny["tray"](); err != nil || !a.models.Denied() {
		t.Fatalf("denied: %v, %v", a.models.Denied(), err)
	}
	if err := allow["activity page"](); !errors.As(err, &refused) || !a.models.Denied() {
		t.Errorf("with nobody to ask: %v", err)
	}
	if err := page.Do(ui.VerbModels, ""); err == nil || !a.models.Denied() {
		t.Error("the page's verb allowed models without a wait for the person")
	}
	a.gate.AddSurface(person)
	for place := range allow {
		before := told
		if err := deny[place](); err != nil || !a.models.Denied() {
			t.Fatalf("%s: denied: %v, %v", place, a.models.Denied(), err)
		}
		person.answer = gate.Answer{Scope: gate.Once}
		if err := allow[place](); err != nil || a.models.Denied() {
			t.Errorf("%s: after a yes denied: %v, %v", place, a.models.Denied(), err)
		}
		q := person.asked[len(person.asked)-1]
		if q.Kind != gate.AskLoosen || !strings.HasSuffix(q.Request.Client, place) {
			t.Errorf("%s: asked %+v", place, q)
		}
		if err := deny[place](); err != nil || !a.models.Denied() {
			t.Errorf("%s: denied: %v, %v", place, a.models.Denied(), err)
		}
		if st, _ := a.models.Watch(); !strings.HasSuffix(st.By, place) {
			t.Errorf("%s: denied by %q", place, st.By)
		}
		n := len(person.asked)
		person.answer = gate.Answer{}
		if err := allow[place](); place == "activity page" && !errors.As(err, &refused) {
			t.Errorf("%s: after a no: %v", place, err)
		}
		if !a.models.Denied() || len(person.asked) != n+1 {
			t.Errorf("%s: after a no denied: %v, asked %d times", place, a.models.Denied(), len(person.asked)-n)
		}
		if told < before+2 {
			t.Errorf("%s: the surfaces were told of %d changes", place, told-before)
		}
	}
}
