package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// OpenPlain opens a regular file to be read, of any owner and mode. It waits for
// nothing: not for the other end of a pipe. flags are more flags of open(2), such as
// unix.O_NOFOLLOW, with which a link is refused. A missing file is fs.ErrNotExist.
func OpenPlain(path string, flags int) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|flags, 0)
	if flags&unix.O_NOFOLLOW != 0 && (errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK)) {
		return nil, nil, fmt.Errorf("%s is no regular file but a link", path)
	}
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EOPNOTSUPP) { // a socket, or a device that is not there
		return nil, nil, fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// ReadPlain reads what OpenPlain opens, at most limit bytes.
func ReadPlain(path string, flags int, limit int64) ([]byte, error) {
	f, _, err := OpenPlain(path, flags)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, larger, err := readUpTo(f, limit)
	if larger {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return b, err
}
