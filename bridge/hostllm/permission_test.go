package hostllm

import (
	"testing"
	"testing/synctest"
)

func TestPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ended := newPermission(), map[string]int{}
		p.whenDenied(func() { ended["one"]++ })
		p.whenDenied(func() { ended["two"]++ })
		p.whenDenied(func() { ended["withdrawn"]++ })()
		if p.denied() {
			t.Error("it is over at the beginning")
		}
		p.deny()
		if !p.denied() {
			t.Error("it is not over")
		}
		synctest.Wait()
		p.whenDenied(func() { ended["late"]++ })()
		p.deny()
		synctest.Wait()
		if ended["one"] != 1 || ended["two"] != 1 || ended["late"] != 1 || ended["withdrawn"] != 0 {
			t.Errorf("ended %v", ended)
		}
		var none *permission
		none.whenDenied(func() { t.Error("what needs no permission was ended") })()
		if none.denied() {
			t.Error("what needs no permission is denied")
		}
	})
}
