package control

import (
	"fmt"
	"os"
	"syscall"
)

// maxPath is how long a unix socket's path may be everywhere we run.
const maxPath = 103

// ownedDir refuses a directory in which another user could put a socket.
func ownedDir(dir *os.File) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no directory", dir.Name())
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (uid %d); name a state directory of your own with --state", dir.Name(), st.Uid)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return fmt.Errorf("%s is open to others (mode %04o); run chmod 700 on it", dir.Name(), perm)
	}
	return nil
}
