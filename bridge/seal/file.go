package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"drawbridge/bridge/private"
)

// maxFile bounds a sealed file: thousands of rules.
const maxFile = 4 << 20

// head begins the first line of a sealed file; the seal follows it, and the
// content that line.
const head = "drawbridge sealed 1 "

// File keeps content in a file with its seal before it.
type File struct {
	Path string
	Seal *Seal
}

// Load returns the content that was saved last; nil where none ever was. An error
// says that there was some, or may have been, and that it cannot be told any more.
func (f File) Load() ([]byte, error) {
	b, err := private.ReadFile(f.Path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		made, err := f.Seal.Made()
		if err == nil && made {
			err = fmt.Errorf("it is not there, though Drawbridge has sealed something, here or in another state directory: %w", ErrBroken)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	mac, content, ok := parse(b)
	if !ok {
		return nil, fmt.Errorf("%s holds nothing that was sealed: %w", f.Path, ErrBroken)
	}
	if err := f.Seal.Check(content, mac); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return content, nil
}

func parse(b []byte) (mac string, content []byte, ok bool) {
	line, content, ok := bytes.Cut(b, []byte("\n"))
	seal, isSealed := bytes.CutPrefix(line, []byte(head))
	return string(seal), content, ok && isSealed
}

// Save replaces the content. With an error, nothing is sealed, neither what was there
// before; only where the key cannot be kept either is that as it was.
func (f File) Save(content []byte) error {
	return f.Seal.Write(content, func(mac string) error {
		return private.WriteFile(f.Path, append([]byte(head+mac+"\n"), content...))
	})
}
