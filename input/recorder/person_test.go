package recorder_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/input"
	"drawbridge/input/recorder"
)

func TestPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p recorder.Person
		is, changed := p.Person()
		if is.Acts != 0 || !is.Last.IsZero() || p.Err() != nil {
			t.Errorf("a person who has done nothing: %+v, %v", is, p.Err())
		}
		time.AfterFunc(time.Hour, func() { p.Act("pressed a key") })
		<-changed
		is, changed = p.Person()
		if is.Acts != 1 || !is.Last.Equal(time.Now()) || is.What != "pressed a key" {
			t.Errorf("after a key: %+v", is)
		}
		time.AfterFunc(time.Hour, p.Vanish)
		<-changed
		if p.Err() == nil {
			t.Error("a person who has vanished is seen")
		}
	})
}

func TestProver(t *testing.T) {
	looked := 0
	p := recorder.Prover{Proof: errors.New("blind"), Look: func() { looked++ }}
	if err := p.Prove(t.Context()); err == nil || p.Proven != 1 {
		t.Errorf("%v, asked %d times", err, p.Proven)
	}
	if p.How() != "" {
		t.Error("seen " + p.How())
	}
	p.Act("pressed a key")
	if is, _ := input.Watcher(&p).Person(); is.Acts != 1 || looked != 1 {
		t.Errorf("%+v, looked %d times", is, looked)
	}
}
