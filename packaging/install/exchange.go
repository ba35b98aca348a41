package install

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrNoExchange: the file system has no way to exchange two directories.
var ErrNoExchange = errors.New("the file system cannot exchange two directories in one step")

// Exchange swaps what stands at two paths, in one step of the file system.
func Exchange(a, b string) error {
	err := exchange(a, b)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w: %s: %w", ErrNoExchange, filepath.Dir(b), err)
	}
	if err != nil {
		return fmt.Errorf("exchanging %s and %s: %w", a, b, err)
	}
	return nil
}
