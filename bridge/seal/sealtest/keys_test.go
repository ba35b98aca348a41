package sealtest

import (
	"errors"
	"testing"
)

func TestKeys(t *testing.T) {
	var k Keys
	Test(t, &k)
	k.Lock(true)
	_, get := k.Get("a")
	_, remove := k.Remove("a")
	for _, err := range []error{get, remove, k.Set("a", nil)} {
		if !errors.Is(err, ErrLocked) {
			t.Errorf("locked: %v", err)
		}
	}
	k.Lock(false)
	Test(t, &k)
}
