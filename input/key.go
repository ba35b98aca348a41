package input

// Key is the canonical name of one key: a name from the list below, or exactly
// one printable character, which means the key that types it ("a", "A", "/",
// "é"). Which other names lead here is the computer tool's affair.
type Key string

// Modifier keys.
const (
	Shift   Key = "shift"
	Control Key = "control"
	Alt     Key = "alt"     // option on macOS
	Command Key = "command" // super (Windows) key on X11
	Fn      Key = "fn"
)

// Named keys. F1 to F24 are "f1" … "f24"; the keypad's digits "kp0" … "kp9".
const (
	Enter        Key = "enter"
	Tab          Key = "tab"
	Space        Key = "space"
	Escape       Key = "escape"
	Backspace    Key = "backspace"
	Delete       Key = "delete" // forward delete
	Insert       Key = "insert"
	Home         Key = "home"
	End          Key = "end"
	PageUp       Key = "pageup"
	PageDown     Key = "pagedown"
	ArrowLeft    Key = "left"
	ArrowRight   Key = "right"
	ArrowUp      Key = "up"
	ArrowDown    Key = "down"
	CapsLock     Key = "capslock"
	NumLock      Key = "numlock"
	ScrollLock   Key = "scrolllock"
	PrintScreen  Key = "printscreen"
	Pause        Key = "pause"
	Menu         Key = "menu"
	KPEnter      Key = "kpenter"
	KPAdd        Key = "kpadd"
	KPSubtract   Key = "kpsubtract"
	KPMultiply   Key = "kpmultiply"
	KPDivide     Key = "kpdivide"
	KPDecimal    Key = "kpdecimal"
	KPEqual      Key = "kpequal"
	VolumeUp     Key = "volumeup"
	VolumeDown   Key = "volumedown"
	VolumeMute   Key = "volumemute"
	MediaPlay    Key = "mediaplay"
	MediaNext    Key = "medianext"
	MediaPrev    Key = "mediaprev"
	BrightnessUp Key = "brightnessup"
	BrightnessDn Key = "brightnessdown"
)

// Modifier reports whether k is a modifier: held around the one key of a chord.
func (k Key) Modifier() bool {
	switch k {
	case Shift, Control, Alt, Command, Fn:
		return true
	}
	return false
}
