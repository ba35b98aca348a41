package control

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// address returns a name for the socket at path that fits a socket address. A
// path that is too long is reached through the open directory, which must stay
// open while the address is used.
func address(dir *os.File, path string) (string, error) {
	if len(path) <= maxPath {
		return path, nil
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), Name), nil
}

// peerUID returns the user at the other end of c.
func peerUID(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return -1, err
	}
	if credErr != nil {
		return -1, credErr
	}
	return int(cred.Uid), nil
}
