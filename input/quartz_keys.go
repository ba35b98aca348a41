//go:build darwin || standin

package input

// quartzStroke is what enters a key: its place on the keyboard, the modifiers
// that it takes to type its character, and the flags that its events carry of
// themselves.
type quartzStroke struct {
	code  uint16
	mods  []Key
	flags uint64
}

// Flags that macOS puts on the events of some keys; AppKit's key equivalents are
// compared with them.
const (
	flagsFunction = kCGEventFlagMaskSecondaryFn
	flagsKeypad   = kCGEventFlagMaskNumericPad
	flagsArrow    = kCGEventFlagMaskNumericPad | kCGEventFlagMaskSecondaryFn
)

// quartzModifiers are the modifier keys and the flag that each sets.
var quartzModifiers = map[Key]struct {
	code uint16
	flag uint64
}{
	Shift:   {kVK_Shift, kCGEventFlagMaskShift},
	Control: {kVK_Control, kCGEventFlagMaskControl},
	Alt:     {kVK_Option, kCGEventFlagMaskAlternate},
	Command: {kVK_Command, kCGEventFlagMaskCommand},
	Fn:      {kVK_Function, kCGEventFlagMaskSecondaryFn},
}

// quartzNamed are the keys that have the same place in every layout. The keys
// that an Apple keyboard lacks stand where macOS finds them on a PC's: Insert is
// Help, Print Screen, Scroll Lock and Pause are F13 to F15, Num Lock is Clear.
// Caps Lock is not among them, since a posted event does not turn it; media and
// brightness keys are no keyboard events on macOS at all.
var quartzNamed = map[Key]quartzStroke{
	Enter: {code: kVK_Return}, Tab: {code: kVK_Tab}, Space: {code: kVK_Space}, Escape: {code: kVK_Escape}, Backspace: {code: kVK_Delete},
	Delete: {code: kVK_ForwardDelete, flags: flagsFunction}, Insert: {code: kVK_Help, flags: flagsFunction},
	Home: {code: kVK_Home, flags: flagsFunction}, End: {code: kVK_End, flags: flagsFunction},
	PageUp: {code: kVK_PageUp, flags: flagsFunction}, PageDown: {code: kVK_PageDown, flags: flagsFunction},
	ArrowLeft: {code: kVK_LeftArrow, flags: flagsArrow}, ArrowRight: {code: kVK_RightArrow, flags: flagsArrow},
	ArrowUp: {code: kVK_UpArrow, flags: flagsArrow}, ArrowDown: {code: kVK_DownArrow, flags: flagsArrow},
	PrintScreen: {code: kVK_F13, flags: flagsFunction}, ScrollLock: {code: kVK_F14, flags: flagsFunction}, Pause: {code: kVK_F15, flags: flagsFunction},
	NumLock:    {code: kVK_ANSI_KeypadClear, flags: flagsKeypad},
	KPEnter:    {code: kVK_ANSI_KeypadEnter, flags: flagsKeypad},
	KPAdd:      {code: kVK_ANSI_KeypadPlus, flags: flagsKeypad},
	KPSubtract: {code: kVK_ANSI_KeypadMinus, flags: flagsKeypad},
	KPMultiply: {code: kVK_ANSI_KeypadMultiply, flags: flagsKeypad},
	KPDivide:   {code: kVK_ANSI_KeypadDivide, flags: flagsKeypad},
	KPDecimal:  {code: kVK_ANSI_KeypadDecimal, flags: flagsKeypad},
	KPEqual:    {code: kVK_ANSI_KeypadEquals, flags: flagsKeypad},
	VolumeUp:   {code: kVK_VolumeUp, flags: flagsFunction}, VolumeDown: {code: kVK_VolumeDown, flags: flagsFunction}, VolumeMute: {code: kVK_Mute, flags: flagsFunction},

	"f1": {code: kVK_F1, flags: flagsFunction}, "f2": {code: kVK_F2, flags: flagsFunction}, "f3": {code: kVK_F3, flags: flagsFunction},
	"f4": {code: kVK_F4, flags: flagsFunction}, "f5": {code: kVK_F5, flags: flagsFunction}, "f6": {code: kVK_F6, flags: flagsFunction},
	"f7": {code: kVK_F7, flags: flagsFunction}, "f8": {code: kVK_F8, flags: flagsFunction}, "f9": {code: kVK_F9, flags: flagsFunction},
	"f10": {code: kVK_F10, flags: flagsFunction}, "f11": {code: kVK_F11, flags: flagsFunction}, "f12": {code: kVK_F12, flags: flagsFunction},
	"f13": {code: kVK_F13, flags: flagsFunction}, "f14": {code: kVK_F14, flags: flagsFunction}, "f15": {code: kVK_F15, flags: flagsFunction},
	"f16": {code: kVK_F16, flags: flagsFunction}, "f17": {code: kVK_F17, flags: flagsFunction}, "f18": {code: kVK_F18, flags: flagsFunction},
	"f19": {code: kVK_F19, flags: flagsFunction}, "f20": {code: kVK_F20, flags: flagsFunction},

	"kp0": {code: kVK_ANSI_Keypad0, flags: flagsKeypad}, "kp1": {code: kVK_ANSI_Keypad1, flags: flagsKeypad},
	"kp2": {code: kVK_ANSI_Keypad2, flags: flagsKeypad}, "kp3": {code: kVK_ANSI_Keypad3, flags: flagsKeypad},
	"kp4": {code: kVK_ANSI_Keypad4, flags: flagsKeypad}, "kp5": {code: kVK_ANSI_Keypad5, flags: flagsKeypad},
	"kp6": {code: kVK_ANSI_Keypad6, flags: flagsKeypad}, "kp7": {code: kVK_ANSI_Keypad7, flags: flagsKeypad},
	"kp8": {code: kVK_ANSI_Keypad8, flags: flagsKeypad}, "kp9": {code: kVK_ANSI_Keypad9, flags: flagsKeypad},
}

// quartzButton is how Core Graphics names a button and its events.
type quartzButton struct{ number, down, up, dragged uint32 }

var quartzButtons = map[Button]quartzButton{
	Left:   {kCGMouseButtonLeft, kCGEventLeftMouseDown, kCGEventLeftMouseUp, kCGEventLeftMouseDragged},
	Right:  {kCGMouseButtonRight, kCGEventRightMouseDown, kCGEventRightMouseUp, kCGEventRightMouseDragged},
	Middle: {kCGMouseButtonCenter, kCGEventOtherMouseDown, kCGEventOtherMouseUp, kCGEventOtherMouseDragged},
	// The buttons that browsers take for back and forward have no names.
	Back:    {kCGMouseButtonCenter + 1, kCGEventOtherMouseDown, kCGEventOtherMouseUp, kCGEventOtherMouseDragged},
	Forward: {kCGMouseButtonCenter + 2, kCGEventOtherMouseDown, kCGEventOtherMouseUp, kCGEventOtherMouseDragged},
}
