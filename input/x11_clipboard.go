//go:build linux

package input

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11"
)

// Bounds for the clipboard. What its owner cannot hand over within them is not
// kept.
const (
	incrBytes       = 200 << 10 // more goes in pieces: a request holds 256 KiB
	keepBytes       = 64 << 20
	keepTime        = 4 * time.Second
	convertTimeout  = time.Second
	pasteTimeout    = time.Second
	pasteQuietTime  = 100 * time.Millisecond
	noticeTimeout   = 100 * time.Millisecond
	maxTransfers    = 64
	clipboardWindow = "Drawbridge clipboard"
)

// content is one form of what a selection holds.
type content struct {
	target xproto.Atom
	typ    xproto.Atom
	format byte
	data   []byte
}

// clipboard pastes text through a selection and then puts back what was there.
// It has a connection of its own, because owning a selection means answering
// requests at any time.
type clipboard struct {
	conn *x11.Conn
	win  xproto.Window
	atom clipboardAtoms
	mask uint32 // ResourceIdMask: the rest of an id tells the program

	// The selection in use and what was there; nil saved means nothing.
	selection xproto.Atom
	saved     []content

	converted chan xproto.SelectionNotifyEvent
	property  chan xproto.PropertyNotifyEvent // of our own window

	mu        sync.Mutex
	serving   map[xproto.Atom][]content        // by selection that is ours; guarded by mu
	since     map[xproto.Atom]xproto.Timestamp // since when; guarded by mu
	transfers map[transferKey]*transfer        // guarded by mu
	fetches   map[uint32]int                   // whole texts handed over, by program; guarded by mu
	asked     map[uint32]bool                  // programs that asked what there is; guarded by mu
	changed   chan struct{}                    // closed and replaced when those grow; guarded by mu
}

type clipboardAtoms struct {
	clipboard, targets, timestamp, multiple, saveTargets, del, incr, utf8, textPlain, text, buffer, secret xproto.Atom
}

// transfer is a big content on its way to a program, piece by piece.
type transfer struct {
	typ    xproto.Atom
	format byte
	rest   []byte
	text   bool
}

type transferKey struct {
	requestor xproto.Window
	property  xproto.Atom
}

func openClipboard(ctx context.Context, display string) (*clipboard, error) {
	k := &clipboard{
		converted: make(chan xproto.SelectionNotifyEvent, 16),
		property:  make(chan xproto.PropertyNotifyEvent, 256),
		serving:   map[xproto.Atom][]content{},
		since:     map[xproto.Atom]xproto.Timestamp{},
		transfers: map[transferKey]*transfer{},
		fetches:   map[uint32]int{},
		asked:     map[uint32]bool{},
		changed:   make(chan struct{}),
	}
	ready := make(chan struct{})
	var err error
	k.conn, err = x11.Dial(ctx, display, func(ev xgb.Event) {
		<-ready
		k.event(ev)
	})
	if err != nil {
		return nil, err
	}
	err = k.setUp(ctx)
	close(ready)
	if err != nil {
		k.conn.Close()
		return nil, err
	}
	return k, nil
}

func (k *clipboard) setUp(ctx context.Context) error {
	for name, a := range map[string]*xproto.Atom{
		"CLIPBOARD": &k.atom.clipboard, "TARGETS": &k.atom.targets, "TIMESTAMP": &k.atom.timestamp,
		"MULTIPLE": &k.atom.multiple, "SAVE_TARGETS": &k.atom.saveTargets, "DELETE": &k.atom.del,
		"INCR": &k.atom.incr, "UTF8_STRING": &k.atom.utf8, "TEXT": &k.atom.text,
		"text/plain;charset=utf-8": &k.atom.textPlain, "DRAWBRIDGE_SELECTION": &k.atom.buffer,
		"x-kde-passwordManagerHint": &k.atom.secret,
	} {
		var err error
		if *a, err = k.conn.Atom(ctx, name); err != nil {
			return err
		}
	}
	k.mask = xproto.Setup(k.conn.Conn).ResourceIdMask
	var err error
	k.win, err = x11.Await(ctx, k.conn, func() (xproto.Window, error) {
		w, err := xproto.NewWindowId(k.conn.Conn)
		if err != nil {
			return 0, err
		}
		err = xproto.CreateWindowChecked(k.conn.Conn, 0, w, k.conn.Root, -1, -1, 1, 1, 0, xproto.WindowClassInputOnly, 0,
			xproto.CwOverrideRedirect|xproto.CwEventMask, []uint32{1, xproto.EventMaskPropertyChange}).Check()
		if err != nil {
			return 0, err
		}
		return w, xproto.ChangePropertyChecked(k.conn.Conn, xproto.PropModeReplace, w, xproto.AtomWmName,
			xproto.AtomString, 8, uint32(len(clipboardWindow)), []byte(clipboardWindow)).Check()
	})
	return err
}

func (k *clipboard) close() { k.conn.Close() }

// event is called by the connection's goroutine. It sends, but never waits for
// the server.
func (k *clipboard) event(ev xgb.Event) {
	switch e := ev.(type) {
	case xproto.PropertyNotifyEvent:
		if e.Window == k.win {
			select {
			case k.property <- e:
			default: // nobody is waiting
			}
			return
		}
		if e.State == xproto.PropertyDelete {
			k.nextPiece(transferKey{e.Window, e.Atom})
		}
	case xproto.SelectionNotifyEvent:
		select {
		case k.converted <- e:
		default:
		}
	case xproto.SelectionClearEvent:
		k.mu.Lock()
		delete(k.serving, e.Selection)
		k.mu.Unlock()
	case xproto.SelectionRequestEvent:
		k.serve(e)
	}
}

// serve answers a program that wants what we hold.
func (k *clipboard) serve(e xproto.SelectionRequestEvent) {
	property := e.Property
	if property == 0 {
		property = e.Target // by very old programs
	}
	k.mu.Lock()
	items, ours := k.serving[e.Selection]
	since := k.since[e.Selection]
	k.mu.Unlock()
	put := func(typ xproto.Atom, format byte, data []byte) {
		xproto.ChangeProperty(k.conn.Conn, xproto.PropModeReplace, e.Requestor, property, typ, format,
			uint32(len(data)/int(format/8)), data)
	}
	i := slices.IndexFunc(items, func(c content) bool { return c.target == e.Target })
	whole := false
	switch {
	case !ours:
		property = 0
	case e.Target == k.atom.targets:
		list := []xproto.Atom{k.atom.targets, k.atom.timestamp}
		for _, c := range items {
			list = append(list, c.target)
		}
		b := make([]byte, 4*len(list))
		for i, a := range list {
			xgb.Put32(b[4*i:], uint32(a))
		}
		put(xproto.AtomAtom, 32, b)
	case e.Target == k.atom.timestamp:
		b := make([]byte, 4)
		xgb.Put32(b, uint32(since))
		put(xproto.AtomInteger, 32, b)
	case i < 0:
		property = 0
	case len(items[i].data) <= incrBytes:
		put(items[i].typ, items[i].format, items[i].data)
		whole = k.isText(e.Target)
	default:
		property = k.startTransfer(e.Requestor, property, items[i])
	}
	n := xproto.SelectionNotifyEvent{Time: e.Time, Requestor: e.Requestor, Selection: e.Selection, Target: e.Target, Property: property}
	xproto.SendEvent(k.conn.Conn, false, e.Requestor, 0, string(n.Bytes()))
	if whole {
		k.handedOver(e.Requestor)
	}
	if e.Target == k.atom.targets {
		k.mu.Lock()
		k.asked[uint32(e.Requestor)&^k.mask] = true
		k.signal()
		k.mu.Unlock()
	}
}

func (k *clipboard) isText(target xproto.Atom) bool {
	return target == k.atom.utf8 || target == k.atom.textPlain || target == k.atom.text
}

// startTransfer begins to hand a content over in pieces. The program asks for
// each by deleting the one before.
func (k *clipboard) startTransfer(w xproto.Window, property xproto.Atom, c content) xproto.Atom {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.transfers) >= maxTransfers {
		// Programs that began and went away.
		clear(k.transfers)
	}
	k.transfers[transferKey{w, property}] = &transfer{typ: c.typ, format: c.format, rest: c.data, text: k.isText(c.target)}
	xproto.ChangeWindowAttributes(k.conn.Conn, w, xproto.CwEventMask, []uint32{xproto.EventMaskPropertyChange})
	size := make([]byte, 4)
	xgb.Put32(size, uint32(len(c.data)))
	xproto.ChangeProperty(k.conn.Conn, xproto.PropModeReplace, w, property, k.atom.incr, 32, 1, size)
	return property
}

func (k *clipboard) nextPiece(key transferKey) {
	k.mu.Lock()
	t := k.transfers[key]
	k.mu.Unlock()
	if t == nil {
		return
	}
	n := min(len(t.rest), incrBytes)
	piece := t.rest[:n]
	t.rest = t.rest[n:]
	xproto.ChangeProperty(k.conn.Conn, xproto.PropModeReplace, key.requestor, key.property, t.typ, t.format,
		uint32(n/int(t.format/8)), piece)
	if n > 0 {
		return
	}
	// The empty piece ends it.
	k.mu.Lock()
	delete(k.transfers, key)
	k.mu.Unlock()
	xproto.ChangeWindowAttributes(k.conn.Conn, key.requestor, xproto.CwEventMask, []uint32{0})
	if t.text {
		k.handedOver(key.requestor)
	}
}

func (k *clipboard) handedOver(w xproto.Window) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fetches[uint32(w)&^k.mask]++
	k.signal()
}

// signal tells whoever waits that there is news. k.mu must be held.
func (k *clipboard) signal() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// fetchedBy tells whether a program has the text, whether any has, and what is
// closed when that changes.
func (k *clipboard) fetchedBy(client uint32) (it, any bool, changed <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fetches[client] > 0, len(k.fetches) > 0, k.changed
}

// own takes a selection and serves items from it. The time must come from the
// server.
func (k *clipboard) own(ctx context.Context, selection xproto.Atom, items []content) error {
	now, err := k.time(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.serving[selection], k.since[selection] = items, now
	clear(k.fetches)
	clear(k.asked)
	k.mu.Unlock()
	owner, err := x11.Await(ctx, k.conn, func() (xproto.Window, error) {
		if err := xproto.SetSelectionOwnerChecked(k.conn.Conn, k.win, selection, now).Check(); err != nil {
			return 0, err
		}
		r, err := xproto.GetSelectionOwner(k.conn.Conn, selection).Reply()
		if err != nil {
			return 0, err
		}
		return r.Owner, nil
	})
	if err != nil {
		return err
	}
	if owner != k.win {
		return errors.New("another program took the clipboard at the same moment")
	}
	return nil
}

// time asks for the server's time: it stamps changes of properties, also those
// by nothing.
func (k *clipboard) time(ctx context.Context) (xproto.Timestamp, error) {
	drain(k.property)
	err := k.conn.Do(ctx, func() error {
		return xproto.ChangePropertyChecked(k.conn.Conn, xproto.PropModeAppend, k.win, k.atom.buffer,
			xproto.AtomString, 8, 0, nil).Check()
	})
	if err != nil {
		return 0, err
	}
	e, err := k.propertyEvent(ctx, xproto.PropertyNewValue, convertTimeout)
	return e.Time, err
}

func drain[T any](c <-chan T) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}

var errNoAnswer = errors.New("the clipboard's owner does not answer")

func (k *clipboard) propertyEvent(ctx context.Context, state byte, timeout time.Duration) (xproto.PropertyNotifyEvent, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		select {
		case e := <-k.property:
			if e.Atom == k.atom.buffer && e.State == state {
				return e, nil
			}
		case <-timer.C:
			return xproto.PropertyNotifyEvent{}, errNoAnswer
		case <-ctx.Done():
			return xproto.PropertyNotifyEvent{}, ctx.Err()
		case <-k.conn.Dead():
			return xproto.PropertyNotifyEvent{}, x11.ErrClosed
		}
	}
}

// save fetches what a selection holds, in all its forms, text first.
func (k *clipboard) save(ctx context.Context, selection xproto.Atom) ([]content, error) {
	k.mu.Lock()
	mine, ours := k.serving[selection]
	k.mu.Unlock()
	if ours {
		return mine, nil // what an earlier call put back
	}
	owner, err := x11.Await(ctx, k.conn, func() (*xproto.GetSelectionOwnerReply, error) {
		return xproto.GetSelectionOwner(k.conn.Conn, selection).Reply()
	})
	if err != nil || owner.Owner == 0 {
		return nil, err
	}
	end := time.Now().Add(keepTime)
	targets, err := k.fetch(ctx, selection, k.atom.targets, keepBytes)
	var list []xproto.Atom
	switch {
	case err == nil && targets.format == 32:
		for b := targets.data; len(b) >= 4; b = b[4:] {
			list = append(list, xproto.Atom(xgb.Get32(b)))
		}
	case err != nil && !errors.Is(err, errNoAnswer) && !errors.Is(err, errNotOffered):
		return nil, err
	}
	list = slices.DeleteFunc(list, func(a xproto.Atom) bool {
		switch a {
		case k.atom.targets, k.atom.timestamp, k.atom.multiple, k.atom.saveTargets, k.atom.del, k.atom.incr,
			k.atom.utf8, 0:
			return true
		}
		return false
	})
	slices.Sort(list)
	list = slices.Compact(list)
	// Whatever it says it has, it may have text.
	list = slices.Insert(list, 0, k.atom.utf8)
	var items []content
	room := keepBytes
	for _, a := range list {
		c, err := k.fetch(ctx, selection, a, room)
		switch {
		case err == nil:
			items = append(items, c)
			room -= len(c.data)
		case errors.Is(err, errNotOffered), errors.Is(err, errTooBig):
		case errors.Is(err, errNoAnswer):
			return items, nil // it would not answer the rest either
		default:
			return nil, err
		}
		if time.Now().After(end) {
			break
		}
	}
	return items, nil
}

var (
	errNotOffered = errors.New("the clipboard's owner does not offer that")
	errTooBig     = errors.New("the clipboard holds too much")
)

// fetch is convert, tried twice: small owners serve one program at a time, and
// drop the question of another.
func (k *clipboard) fetch(ctx context.Context, selection, target xproto.Atom, room int) (content, error) {
	c, err := k.convert(ctx, selection, target, room)
	if errors.Is(err, errNoAnswer) {
		c, err = k.convert(ctx, selection, target, room)
	}
	return c, err
}

// convert fetches one form of a selection.
func (k *clipboard) convert(ctx context.Context, selection, target xproto.Atom, room int) (content, error) {
	drain(k.converted)
	err := k.conn.Do(ctx, func() error {
		if err := xproto.DeletePropertyChecked(k.conn.Conn, k.win, k.atom.buffer).Check(); err != nil {
			return err
		}
		return xproto.ConvertSelectionChecked(k.conn.Conn, k.win, selection, target, k.atom.buffer, xproto.TimeCurrentTime).Check()
	})
	if err != nil {
		return content{}, err
	}
	timer := time.NewTimer(convertTimeout)
	defer timer.Stop()
	for answered := false; !answered; {
		select {
		case e := <-k.converted:
			if e.Target != target || e.Selection != selection {
				continue // late answer to an earlier question
			}
			if e.Property == 0 {
				return content{}, errNotOffered
			}
			answered = true
		case <-timer.C:
			return content{}, errNoAnswer
		case <-ctx.Done():
			return content{}, ctx.Err()
		case <-k.conn.Dead():
			return content{}, x11.ErrClosed
		}
	}
	drain(k.property)
	p, err := k.takeProperty(ctx)
	if err != nil {
		return content{}, err
	}
	c := content{target: target, typ: p.Type, format: p.Format, data: p.Value}
	if p.Type == k.atom.incr {
		if c, err = k.receive(ctx, target, room); err != nil {
			return content{}, err
		}
	}
	switch {
	case len(c.data) > room:
		return content{}, errTooBig
	case c.format != 8 && c.format != 16 && c.format != 32:
		return content{}, errNotOffered // the property is not there
	}
	return c, nil
}

// takeProperty reads and deletes what an owner put for us.
func (k *clipboard) takeProperty(ctx context.Context) (*xproto.GetPropertyReply, error) {
	return x11.Await(ctx, k.conn, func() (*xproto.GetPropertyReply, error) {
		return xproto.GetProperty(k.conn.Conn, true, k.win, k.atom.buffer,
			xproto.GetPropertyTypeAny, 0, keepBytes/4).Reply()
	})
}

// receive collects a content that comes in pieces.
func (k *clipboard) receive(ctx context.Context, target xproto.Atom, room int) (content, error) {
	c := content{target: target}
	for {
		if _, err := k.propertyEvent(ctx, xproto.PropertyNewValue, convertTimeout); err != nil {
			return content{}, err
		}
		p, err := k.takeProperty(ctx)
		if err != nil {
			return content{}, err
		}
		if p.Format == 0 {
			continue // an event of a piece that we have already
		}
		if len(p.Value) == 0 {
			return c, nil
		}
		c.typ, c.format = p.Type, p.Format
		if c.data = append(c.data, p.Value...); len(c.data) > room {
			return content{}, errTooBig
		}
	}
}

// keep saves what a selection holds; restore puts it back.
func (k *clipboard) keep(ctx context.Context, selection xproto.Atom) error {
	saved, err := k.save(ctx, selection)
	if err != nil {
		return fmt.Errorf("save the clipboard: %w", err)
	}
	k.selection, k.saved = selection, saved
	return nil
}

// offer puts text into the selection that was kept.
func (k *clipboard) offer(ctx context.Context, text string) error {
	b := []byte(text)
	return k.own(ctx, k.selection, []content{
		{k.atom.utf8, k.atom.utf8, 8, b},
		{k.atom.textPlain, k.atom.textPlain, 8, b},
		{k.atom.text, k.atom.utf8, 8, b},
		// Asks clipboard managers not to keep it in their history.
		{k.atom.secret, k.atom.secret, 8, []byte("secret")},
	})
}

// delivered waits until the program with that connection has fetched the text.
// Others may fetch too: clipboard managers do.
func (k *clipboard) delivered(ctx context.Context, client uint32, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		it, some, changed := k.fetchedBy(client)
		if it {
			return k.sync(ctx)
		}
		select {
		case <-changed:
		case <-timer.C:
			if some {
				// A program may fetch by another connection than its window's.
				return nil
			}
			return errNotTaken
		case <-ctx.Done():
			return ctx.Err()
		case <-k.conn.Dead():
			return x11.ErrClosed
		}
	}
}

// sync waits until the server has read what was handed over, so that keys which
// go to it by another connection come later.
func (k *clipboard) sync(ctx context.Context) error {
	return k.conn.Do(ctx, func() error {
		_, err := xproto.GetInputFocus(k.conn.Conn).Reply()
		return err
	})
}

// noticed waits a moment for the program with that connection to ask what the
// clipboard holds. Not all do.
func (k *clipboard) noticed(ctx context.Context, client uint32) error {
	timer := time.NewTimer(noticeTimeout)
	defer timer.Stop()
	for {
		k.mu.Lock()
		asked, changed := k.asked[client], k.changed
		k.mu.Unlock()
		if asked {
			return k.sync(ctx)
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-k.conn.Dead():
			return x11.ErrClosed
		}
	}
}

var errNotTaken = errors.New("the application with the keyboard took nothing from the clipboard; " +
	"some characters of the text are not on this keyboard and can only be pasted: click into a text field first")

// restore puts back what the selection held before, unless
// somebody copied something meanwhile. Some programs fetch twice, so it waits
// until nobody has fetched for a moment.
func (k *clipboard) restore(ctx context.Context) error {
	for quiet := false; !quiet; {
		_, _, changed := k.fetchedBy(0)
		timer := time.NewTimer(pasteQuietTime)
		select {
		case <-changed:
		case <-timer.C:
			quiet = true
		case <-k.conn.Dead():
			timer.Stop()
			return x11.ErrClosed
		}
		timer.Stop()
	}
	k.mu.Lock()
	_, ours := k.serving[k.selection]
	since := k.since[k.selection]
	k.mu.Unlock()
	saved := k.saved
	k.saved = nil
	if !ours {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pasteTimeout)
	defer cancel()
	if len(saved) > 0 {
		if err := k.own(ctx, k.selection, saved); err != nil {
			return fmt.Errorf("put the clipboard back: %w", err)
		}
		return nil
	}
	k.mu.Lock()
	delete(k.serving, k.selection)
	k.mu.Unlock()
	if err := k.conn.Do(ctx, func() error {
		return xproto.SetSelectionOwnerChecked(k.conn.Conn, 0, k.selection, since).Check()
	}); err != nil {
		return fmt.Errorf("empty the clipboard again: %w", err)
	}
	return nil
}
