package ui

import "golang.org/x/sys/unix"

// fread is FREAD of <sys/fcntl.h>, which TIOCFLUSH takes for the input queue.
const fread = 1

// flushInput throws away what was typed and not read: tcflush(TCIFLUSH).
func flushInput(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, fread) }
