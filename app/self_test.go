package main

import (
	"os"
	"os/exec"
)

// self is a command line of this program, in a home of its own.
func self(home string, args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	// The test binary is the program when it is called so; see TestMain.
	cmd := exec.Command(exe)
	cmd.Args = append([]string{"drawbridge"}, args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, "DISPLAY=", "NO_COLOR=1", "DBUS_SESSION_BUS_ADDRESS=", "XDG_RUNTIME_DIR="+home)
	return cmd
}
