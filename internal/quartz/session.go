//go:build darwin || standin

package quartz

// Session is what a login session tells of itself.
type Session struct {
	Graphic     bool // false: nobody is logged in, or we run outside of the session
	OnConsole   bool // false: another user's session is on the screen
	Locked      bool
	Asleep      bool // the main display
	SecureInput int  // the process that asked for secure keyboard input; 0 if unknown
}

// CurrentSession asks the window server. The keys are those of CGSession.h; the
// lock and the holder of secure input have none there, and are read by the names
// that the window server has used since Mac OS X 10.6.
func CurrentSession() Session {
	var s Session
	d := cgSessionCopyCurrentDictionary()
	if d == 0 {
		return s
	}
	defer Release(d)
	s.Graphic = true
	s.OnConsole = boolean(lookup(d, "kCGSSessionOnConsoleKey"), true)
	s.Locked = boolean(lookup(d, "CGSSessionScreenIsLocked"), false)
	if pid, ok := Number(lookup(d, "kCGSSessionSecureInputPID")); ok {
		s.SecureInput = int(pid)
	}
	s.Asleep = cgDisplayIsAsleep(cgMainDisplayID()) != 0
	return s
}

// boolean reads a Core Foundation boolean, or a number that stands for one.
func boolean(r Ref, missing bool) bool {
	if r == 0 {
		return missing
	}
	if cfGetTypeID(r) == cfBooleanGetTypeID() {
		return cfBooleanGetValue(r)
	}
	n, ok := Number(r)
	return ok && n != 0
}
