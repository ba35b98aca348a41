// Package input moves the pointer and presses keys. It knows nothing of MCP.
//
// A [Driver] posts single events on one platform. A [Hand] makes whole gestures
// out of them (click, drag, chord, text), remembers what it holds down, and lets
// go of it on every way out.
//
// Coordinates are global display points: origin at the top left corner of the
// main display, y grows downwards, values may be negative on a display that lies
// left of or above the main one. On X11 a point is a pixel of the root window,
// whose corner is the origin whichever monitor is the main one.
package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Point is a place in the global point space.
type Point struct{ X, Y float64 }

// Button is a pointer button.
type Button uint8

// The buttons that the computer tool can name.
const (
	Left Button = iota + 1
	Right
	Middle
	Back
	Forward
)

var buttonNames = [...]string{Left: "left", Right: "right", Middle: "middle", Back: "back", Forward: "forward"}

func (b Button) String() string {
	if b >= Left && int(b) < len(buttonNames) {
		return buttonNames[b]
	}
	return fmt.Sprintf("button(%d)", uint8(b))
}

// Driver posts events on one platform. Its methods are called by one goroutine
// at a time. Every method returns soon after ctx ends; an error means that the
// event was not posted, or that nobody can tell.
type Driver interface {
	// Move posts a pointer motion to p. While a button is down it is of the
	// dragged kind, with the deltas since the last motion.
	Move(ctx context.Context, p Point) error
	// Button posts a press or release at the pointer's place. clicks is the
	// click state: 1 for a single click, 2 for the second of a double click.
	Button(ctx context.Context, b Button, down bool, clicks int) error
	// Scroll posts wheel events at the pointer's place, in pixels. Positive dy
	// moves the content as when scrolling down, positive dx as when scrolling
	// right.
	Scroll(ctx context.Context, dx, dy float64) error
	// Key posts one key going down or up, by its canonical name.
	Key(ctx context.Context, k Key, down bool) error
	// Type enters literal text, exactly, newlines and tabs included. On an
	// error n tells how many bytes of text had been sent, always a whole number
	// of graphemes; no key that Type pressed is left down.
	Type(ctx context.Context, text string) (n int, err error)
	// Pointer reads the pointer's place back.
	Pointer(ctx context.Context) (Point, error)
	// Sync returns when the application that has the focus has taken the events
	// posted so far, as far as the platform can tell.
	Sync(ctx context.Context) error
	// ReleaseStray lets go of every key and button that earlier events of this
	// or a dead process left down on our own virtual device.
	ReleaseStray(ctx context.Context) error
	Close() error
}

// Rect is a part of the global point space.
type Rect struct{ X, Y, Width, Height float64 }

// Window says whose a window is.
type Window struct {
	App    string // the program's name for its kind of window
	Title  string
	Role   string // what the window, or the part of it at the point, is for: dialog, menu, button…; empty: unknown
	Bounds Rect   // zero: unknown
	PID    int    // the program's process; 0: unknown
}

// Namer is a Driver that can also say whose windows are. A nil Window without an
// error means that there is none, or none that says. Unlike those of a Driver,
// its methods may be called while another one runs.
type Namer interface {
	// Focused names the window that has the keyboard.
	Focused(ctx context.Context) (*Window, error)
	// Under names the window at p.
	Under(ctx context.Context, p Point) (*Window, error)
}

// Part is a part of a window, such as a button or a text field.
type Part struct {
	Role   string // what it is, in the platform's words: "push button"; empty: unknown
	Secure bool   // it hides what is typed into it, as password fields do
}

// Inspector is a Namer that can also say what lies inside of windows, as far as
// their programs tell it to an accessibility service. A nil Part without an error
// means that the program does not. Neither a hung program nor a hung service costs
// more than 40 ms. Like those of a Namer, its methods may be called while others
// run.
type Inspector interface {
	Namer
	// PartUnder tells what lies at p.
	PartUnder(ctx context.Context, p Point) (*Part, error)
	// PartFocused tells what takes the keys.
	PartFocused(ctx context.Context) (*Part, error)
}

// Watched is a Driver of a desktop at which a person sits, and that can tell the
// person's input from its own.
type Watched interface {
	// Watch begins to watch the person. The caller closes the watcher, before it
	// closes the driver.
	Watch(ctx context.Context) (Watcher, error)
}

// Watcher watches the person's own input: keys, buttons, the wheel, and motion of
// the pointer by more than DriftPoints. Its methods may be called by several
// goroutines.
type Watcher interface {
	// Person tells what the person did so far. changed is closed when they do
	// more, or can no longer be seen.
	Person() (p Person, changed <-chan struct{})
	// Err tells why the person cannot be seen any more; nil while they can.
	Err() error
	Close() error
}

// Prover is a Watcher that does not know by itself that it sees the person.
type Prover interface {
	// Prove makes sure of it by an event of ours that changes nothing, and fails
	// with ErrUnseen, saying why, where the person cannot be seen. It is called
	// before a batch's first event, as a method of the driver is: by one goroutine
	// at a time.
	Prove(ctx context.Context) error
	// How says how the person was last proven to be seen, as a phrase: "by a tap on
	// their events"; empty: they were not.
	How() string
}

// Person is what a person did on the desktop since somebody watches.
type Person struct {
	Acts int       // rises with everything they do
	Last time.Time // when they last did something; zero: never
	What string    // what it was, as a phrase: "pressed a key"
}

// DriftPoints is how far the pointer may drift without anybody being meant to
// have moved it: a table that shakes, a hand that comes to rest on the mouse.
const DriftPoints = 6.0

// Wheeler is a Driver whose platform does not say which way its wheel turns.
type Wheeler interface {
	// ReverseWheel has the wheel turn the other way than documented, or, with
	// false, as documented. It may be called while a method of the driver runs.
	ReverseWheel(reversed bool)
}

// Waker is a Driver that can keep the display awake.
type Waker interface {
	// KeepAwake keeps a display that is awake from blanking and sleeping, until
	// release, which is called once. Of a process that dies it is given back. Where
	// it fails, release does nothing.
	KeepAwake(ctx context.Context) (release func(), err error)
}

// Sleeper is a Driver that can ask its display. Others refuse their events with
// ErrAsleep.
type Sleeper interface {
	// Asleep reports whether the display sleeps now.
	Asleep(ctx context.Context) (bool, error)
}

// Grabber is a Driver that can keep a chord of the keyboard for us.
type Grabber interface {
	// Grab calls pressed whenever somebody presses k while mods are held, and keeps
	// that from every other program, until it is closed. While more modifiers are
	// held, as by a batch, it calls pressed as well, where the platform lets it, and
	// may keep that too. pressed is called by a goroutine of the grab's own, on which
	// Close waits.
	Grab(ctx context.Context, mods []Key, k Key, pressed func()) (io.Closer, error)
}

// Errors that a driver returns by kind; test with errors.Is.
var (
	// ErrNoKey: the key does not exist on this keyboard or platform.
	ErrNoKey = errors.New("no such key here")
	// ErrPermission: the platform drops our events until a person grants it.
	ErrPermission = errors.New("permission to post events is missing")
	// ErrLocked, ErrLoginWindow and ErrAsleep: what is posted would go to a lock
	// screen or a login window, or only wake the display.
	ErrLocked      = errors.New("the screen is locked")
	ErrLoginWindow = errors.New("the login window is showing")
	ErrAsleep      = errors.New("the display is asleep")
	// ErrSecureInput: a program reads the keyboard securely, as password fields do.
	ErrSecureInput = errors.New("secure keyboard input is on")
	// ErrLate: who was asked did not answer in time; asked again they may.
	ErrLate = errors.New("no answer in time")
	// ErrUnseen: the person's own input cannot be seen.
	ErrUnseen = errors.New("the person's mouse and keyboard cannot be seen")
	// ErrNoPointer: this driver acts at places, and moves no pointer that could be
	// read back.
	ErrNoPointer = errors.New("there is no pointer to read back")
	// ErrGone: the display or its server went away.
	ErrGone = errors.New("the display is gone")
)
