// Package computer is the `computer` tool: its vocabulary, validation and
// geometry, the runner of batches with its one stop machine, and the result.
package computer

import (
	"context"

	"drawbridge/bridge/stop"
	"drawbridge/capture"
	"drawbridge/input"
)

// ActionType is the model's own name for an action.
type ActionType string

// The nine actions.
const (
	Screenshot  ActionType = "screenshot"
	Click       ActionType = "click"
	DoubleClick ActionType = "double_click"
	Move        ActionType = "move"
	Drag        ActionType = "drag"
	Scroll      ActionType = "scroll"
	Keypress    ActionType = "keypress"
	Type        ActionType = "type"
	Wait        ActionType = "wait"
)

// toolName is what the tool is called.
const toolName = "computer"

// ActionTypes lists the vocabulary in the order in which it is documented.
var ActionTypes = []ActionType{Screenshot, Click, DoubleClick, Move, Drag, Scroll, Keypress, Type, Wait}

// Desk is the desktop that a batch runs on.
type Desk struct {
	Backend string // native, virtual, simulated, applescript
	Reason  string // why this one; empty when it was named
	// Own is set when the desktop is the agent's own (virtual, simulated), so
	// that looking at it needs nobody's leave.
	Own bool
	// Display is the X display that it is ("" elsewhere), for programs that want
	// to be on it and for windows of ours.
	Display string
	Input   input.Driver
	Source  capture.Source
	// Person watches the person at the desktop; nil where nobody is watched, and
	// Unwatched then tells why.
	Person    input.Watcher
	Unwatched error
	// Blocked tells why no input can be sent now, by an error of package
	// capture's: the screen is locked, or the display sleeps. nil: never.
	Blocked func(ctx context.Context) error
	// Awake keeps the display on until release, which is called once. nil: it
	// needs no keeping.
	Awake func(ctx context.Context) (release func())
	// Can says what the backend is able to do; nil: everything.
	Can *Can
	// System is the version of the platform, where some of what it does is not
	// documented and is measured for each version; empty: nothing has to be.
	System string
	// Permissions probes what the platform grants, by name. It never prompts.
	Permissions func(ctx context.Context) map[string]Permission
	// Close ends what the desktop started. Input and Source are closed by it.
	Close func() error
}

// Can is what a backend of few abilities is able to do. Anything else is refused
// before a batch begins.
type Can struct {
	Actions     []ActionType
	PlainClicks bool // only with the left button, and no keys held
	ASCII       bool // text of printable ASCII, newlines and tabs only
	MainDisplay bool // only on the main display
}

// Permission is a platform's answer about one grant.
type Permission string

const (
	Granted Permission = "granted"
	Missing Permission = "missing"
	Unknown Permission = "unknown"
)

// Names of permissions, as /status and doctor show them.
const (
	PermAccessibility   = "accessibility"    // driving other programs
	PermPostEvents      = "post_events"      // posting events, where that is apart
	PermScreenRecording = "screen_recording" // taking pictures
	PermInputMonitoring = "input_monitoring" // seeing the person's own input
)

// Status of one executed action.
type Status string

const (
	Executed Status = "executed"
	Partial  Status = "partial" // some of its events were sent
	Skipped  Status = "skipped" // the batch stopped before it
	Refused  Status = "refused" // not begun, for the stop's reason
)

// Effect grades what is known of an action's result.
type Effect string

const (
	Confirmed     Effect = "confirmed"      // something we can read back changed as it should
	Delivered     Effect = "delivered"      // the events arrived, the effect is not readable
	SuspectedNoop Effect = "suspected_noop" // nothing around the target changed
)

// Entry is one element of executed[], numbered as sent.
type Entry struct {
	Index   int          `json:"index"`
	Type    ActionType   `json:"type"`
	Status  Status       `json:"status"`
	Image   *[2]float64  `json:"image"`   // as sent, in the picture's pixels
	Point   *[2]float64  `json:"point"`   // where the event went, in points
	Pointer *[2]float64  `json:"pointer"` // read back after the action
	Path    [][2]float64 `json:"path,omitempty"`
	Target  *Target      `json:"target"`
	Focus   *Focus       `json:"focus"`
	MS      float64      `json:"ms"`
	Effect  *Effect      `json:"effect"`
	Summary string       `json:"summary"`
}

// Target is what lay under the point before the event, Focus what had the
// keyboard.
type Target struct {
	App    string `json:"app"`    // the program's name
	Window string `json:"window"` // its window's title; "<hidden>" where titles are not recorded
	Role   string `json:"role"`   // what it is for, as the platform says; empty: unknown
}

type Focus struct {
	Before *Target `json:"before"`
	After  *Target `json:"after"`
}

// Structured is the result's structuredContent.
type Structured struct {
	Backend  string       `json:"backend"`
	Display  DisplayShape `json:"display"`
	Picture  *Picture     `json:"picture"`
	Stopped  *Stopped     `json:"stopped"`
	Executed []Entry      `json:"executed"`
}

type DisplayShape struct {
	Index  int        `json:"index"`
	Points [2]float64 `json:"points"`
	Pixels [2]int     `json:"pixels"`
	Origin [2]float64 `json:"origin"`
	Scale  float64    `json:"scale"`
}

type Picture struct {
	ID     string     `json:"id"`
	Width  int        `json:"width"`
	Height int        `json:"height"`
	Mime   string     `json:"mime"`
	Scale  [2]float64 `json:"scale"` // points a picture pixel, per axis
}

type Stopped struct {
	Index   int         `json:"index"`
	Reason  stop.Reason `json:"reason"`
	Message string      `json:"message"`
}

// Config is the `computer` section of the configuration. The yaml names are the
// ones a person writes.
type Config struct {
	Enabled                  bool          `yaml:"enabled"`
	Backend                  string        `yaml:"backend"`
	Capture                  string        `yaml:"capture"`
	Display                  int           `yaml:"display"`
	MaxActionsPerCall        int           `yaml:"max_actions_per_call"`
	WaitMS                   int           `yaml:"wait_ms"`
	SettleMS                 int           `yaml:"settle_ms"`
	SettleMaxMS              int           `yaml:"settle_max_ms"`
	BatchTimeoutMS           int           `yaml:"batch_timeout_ms"`
	AllowedActions           []ActionType  `yaml:"allowed_actions"` // nil: all
	InvertScroll             bool          `yaml:"invert_scroll"`
	RequireImageCapableModel bool          `yaml:"require_image_capable_model"`
	RecordTitles             bool          `yaml:"record_titles"` // window titles in the record
	LeaseQueue               int           `yaml:"lease_queue"`   // batches that may wait for the desktop
	Picture                  PictureConfig `yaml:"picture"`
}

// PictureConfig says how pictures are made to fit the model.
type PictureConfig struct {
	Size        string `yaml:"size"`       // fit, or original (up to 10.24 megapixels)
	MaxEdge     int    `yaml:"max_edge"`   // pixels, with size fit
	MaxPixels   int    `yaml:"max_pixels"` // total pixels, with size fit
	Format      string `yaml:"format"`     // png or jpeg
	JPEGQuality int    `yaml:"jpeg_quality"`
}

// DefaultConfig returns the configuration that holds where none is written.
func DefaultConfig() Config {
	return Config{
		Enabled: true, Backend: "auto", Capture: "auto", MaxActionsPerCall: 25,
		WaitMS: 2000, SettleMS: 250, SettleMaxMS: 2000, BatchTimeoutMS: 120_000,
		RequireImageCapableModel: true, RecordTitles: true, LeaseQueue: 16,
		Picture: PictureConfig{Size: "fit", MaxEdge: 1568, MaxPixels: 1_150_000, Format: "png", JPEGQuality: 80},
	}
}
