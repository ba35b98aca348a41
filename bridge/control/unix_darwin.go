package control

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// address returns the name of the socket at path. macOS has no second way to a
// path that is too long for a socket address.
func address(_ *os.File, path string) (string, error) {
	if len(path) <= maxPath {
		return path, nil
	}
	return "", fmt.Errorf("the path of the control socket has %d bytes and macOS allows %d; name a shorter state directory with --state", len(path), maxPath)
}

// peerUID returns the user at the other end of c.
func peerUID(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	var cred *unix.Xucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); err != nil {
		return -1, err
	}
	if credErr != nil {
		return -1, credErr
	}
	return int(cred.Uid), nil
}
