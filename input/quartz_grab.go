//go:build darwin || standin

package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"drawbridge/internal/cocoa"
	"drawbridge/internal/quartz"
)

// quartzGrab keeps one chord as a hot key. macOS tells of it through the loop of
// AppKit, on the main thread. The key is where the layout has it when the chord
// is grabbed.
//
// A hot key is for exactly its modifiers, and a batch may hold another one when the
// person wants to end it: the chord with more of them is kept too, where it can be.
type quartzGrab struct {
	id   uint32
	refs []quartz.Ref

	signal chan struct{} // a press that was not told yet
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// hotKeys are all that are grabbed, by their id.
var hotKeys struct {
	mu   sync.Mutex // guards all of it
	last uint32
	all  map[uint32]*quartzGrab
}

// hotKeySignature tells our hot keys from those of a library: 'drwb'.
const hotKeySignature uint32 = 'd'<<24 | 'r'<<16 | 'w'<<8 | 'b'

var carbonModifiers = map[Key]uint32{Shift: shiftKey, Control: controlKey, Alt: optionKey, Command: cmdKey}

// Grab implements Grabber.
func (d *quartzDriver) Grab(ctx context.Context, mods []Key, k Key, pressed func()) (io.Closer, error) {
	var held uint32
	for _, m := range mods {
		bit, ok := carbonModifiers[m]
		if !ok {
			return nil, fmt.Errorf("keep the chord of %s: %q is no modifier of a hot key: %w", k, string(m), ErrNoKey)
		}
		held |= bit
	}
	var keyboard quartzKeyboard
	s, err := keyboard.stroke(ctx, k, held&cmdKey != 0)
	if err == nil {
		err = errors.Join(cocoa.Start(), loadHotKeys(), listenForHotKeys())
	}
	if err != nil {
		return nil, fmt.Errorf("keep the chord of %s: %w", k, err)
	}
	for _, m := range s.mods { // those that the key itself takes
		held |= carbonModifiers[m]
	}
	g := &quartzGrab{signal: make(chan struct{}, 1)}
	hotKeys.mu.Lock()
	if hotKeys.all == nil {
		hotKeys.all = map[uint32]*quartzGrab{}
	}
	hotKeys.last++
	g.id = hotKeys.last
	hotKeys.all[g.id] = g
	hotKeys.mu.Unlock()
	var status int32
	err = cocoa.Main(func() {
		for _, mods := range withMore(held) {
			var ref quartz.Ref
			st := registerEventHotKey(uint32(s.code), mods, EventHotKeyID{Signature: hotKeySignature, ID: g.id}, getApplicationEventTarget(), kEventHotKeyExclusive, &ref)
			if st == 0 {
				g.refs = append(g.refs, ref)
			} else if mods == held {
				status = st
				return
			}
		}
	})
	switch {
	case err == nil && status == eventHotKeyExistsErr:
		err = errors.New("another program has taken it; choose another chord")
	case err == nil && status != 0:
		err = fmt.Errorf("macOS does not take it as a hot key (status %d)", status)
	}
	if err != nil {
		g.forget()
		return nil, fmt.Errorf("keep the chord of %s: %w", k, err)
	}
	own, stop := context.WithCancel(context.Background())
	g.stop = stop
	g.ended.Go(func() { g.tell(own, pressed) })
	return g, nil
}

// withMore lists a set of modifiers and all that hold it, the set itself first.
func withMore(mods uint32) []uint32 {
	all := []uint32{mods}
	for _, more := range []uint32{shiftKey, controlKey, optionKey, cmdKey} {
		if mods&more != 0 {
			continue
		}
		for _, m := range slices.Clone(all) {
			all = append(all, m|more)
		}
	}
	return all
}

func (g *quartzGrab) tell(ctx context.Context, pressed func()) {
	for {
		select {
		case <-g.signal:
			pressed()
		case <-ctx.Done():
			return
		}
	}
}

func (g *quartzGrab) forget() {
	hotKeys.mu.Lock()
	defer hotKeys.mu.Unlock()
	delete(hotKeys.all, g.id)
}

// Close gives the chord back and waits until pressed has returned.
func (g *quartzGrab) Close() error {
	g.forget()
	var status int32
	err := cocoa.Main(func() {
		for _, ref := range g.refs {
			if st := unregisterEventHotKey(ref); st != 0 {
				status = st
			}
		}
	})
	if err == nil && status != 0 {
		err = fmt.Errorf("give a hot key back: status %d", status)
	}
	g.stop()
	g.ended.Wait()
	return err
}

// listenForHotKeys puts up the one handler of all hot keys, once.
var listenForHotKeys = sync.OnceValue(func() error {
	left := eventNotHandledErr // to whoever listens too
	notOurs := uintptr(uint32(left))
	handler := purego.NewCallback(func(_, event quartz.Ref, _ uintptr) uintptr {
		var id EventHotKeyID
		if getEventParameter(event, kEventParamDirectObject, typeEventHotKeyID, nil, uint(unsafe.Sizeof(id)), nil, &id) != 0 || id.Signature != hotKeySignature {
			return notOurs
		}
		hotKeys.mu.Lock()
		g := hotKeys.all[id.ID]
		hotKeys.mu.Unlock()
		if g == nil {
			return notOurs
		}
		select { // the main thread must not wait
		case g.signal <- struct{}{}:
		default:
		}
		return 0
	})
	var status int32
	var ref quartz.Ref // kept for as long as the process lives
	err := cocoa.Main(func() {
		pressed := EventTypeSpec{Class: kEventClassKeyboard, Kind: kEventHotKeyPressed}
		status = installEventHandler(getApplicationEventTarget(), handler, 1, &pressed, 0, &ref)
	})
	if err == nil && status != 0 {
		err = fmt.Errorf("listen for hot keys: status %d", status)
	}
	return err
})
