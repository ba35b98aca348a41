//go:build darwin || standin

package cocoa

import (
	"errors"
	"sync"

	"github.com/ebitengine/purego/objc"

	"drawbridge/internal/quartz"
)

// Of UNUserNotificationCenter.h.
const (
	UNAuthorizationOptionSound uint = 2
	UNAuthorizationOptionAlert uint = 4
)

// ErrNoBundle: macOS shows notifications of applications in a bundle only, and
// ends any other process that asks for them.
var ErrNoBundle = errors.New("this program does not run from an application's bundle, so macOS shows no notifications of it")

// Notices are notifications of the user. They tell; they ask nothing.
type Notices struct {
	center objc.ID
	ask    sync.Once
}

// OpenNotices finds the notification centre.
func OpenNotices() (*Notices, error) {
	if err := errors.Join(quartz.Load(), Load("Foundation"), Load("UserNotifications")); err != nil {
		return nil, err
	}
	n := &Notices{}
	Pool(func() {
		if Class("NSBundle").Send(Sel("mainBundle")).Send(Sel("bundleIdentifier")) != 0 {
			n.center = Class("UNUserNotificationCenter").Send(Sel("currentNotificationCenter"))
		}
	})
	if n.center == 0 {
		return nil, ErrNoBundle
	}
	return n, nil
}

// Post shows a notification, in the place of an older one of the same id. The
// first one has macOS ask the person whether they want any; it does nothing if
// they do not.
func (n *Notices) Post(id, title, body string) {
	n.ask.Do(func() {
		answered := make(chan struct{})
		b := Block("requestAuthorizationWithOptions:completionHandler:", func(objc.Block, bool, objc.ID) { close(answered) })
		Pool(func() {
			n.center.Send(Sel("requestAuthorizationWithOptions:completionHandler:"), UNAuthorizationOptionSound|UNAuthorizationOptionAlert, b)
		})
		go func() { // ends when the person answered, if ever
			<-answered
			b.Release()
		}()
	})
	Pool(func() {
		content := Class("UNMutableNotificationContent").Send(Sel("new"))
		content.Send(Sel("setTitle:"), String(title))
		content.Send(Sel("setBody:"), String(body))
		request := Class("UNNotificationRequest").Send(Sel("requestWithIdentifier:content:trigger:"), String(id), content, objc.ID(0))
		n.center.Send(Sel("addNotificationRequest:withCompletionHandler:"), request, objc.Block(0))
		content.Send(Sel("release"))
	})
}

// Remove takes a notification away.
func (n *Notices) Remove(id string) {
	Pool(func() {
		ids := Class("NSArray").Send(Sel("arrayWithObject:"), String(id))
		n.center.Send(Sel("removeDeliveredNotificationsWithIdentifiers:"), ids)
	})
}
