package recorder_test

import (
	"testing"
	"testing/synctest"
	"time"

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
