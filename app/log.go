package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"drawbridge/app/config"
	"drawbridge/bridge/private"
)

// The log's file in the state directory: where to look when the agent was
// started by no terminal.
const (
	logName    = "agent.log"
	logMaxSize = 4 << 20 // then it becomes agent.log.1
)

// newLog makes the agent's log: to w in the format that the configuration asks
// for, which may depend on whether a terminal shows it, and as JSON to a file in
// the state directory.
func newLog(c config.Log, w io.Writer, atTerminal bool, stateDir string) (zerolog.Logger, io.WriteCloser, error) {
	file, err := openLogFile(filepath.Join(stateDir, logName), logMaxSize)
	if err != nil {
		return zerolog.Nop(), nil, err
	}
	level, err := zerolog.ParseLevel(c.Level)
	if err != nil {
		file.Close()
		return zerolog.Nop(), nil, err
	}
	if c.Format == "console" || c.Format == "auto" && atTerminal {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !atTerminal}
	}
	return zerolog.New(zerolog.MultiLevelWriter(w, file)).Level(level).With().Timestamp().Logger(), file, nil
}

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// logFile is a file that is replaced when it has grown to max; one older one is
// kept. A write that fails is lost, never waited for: logging must not stop the
// agent.
type logFile struct {
	path string
	max  int64

	mu   sync.Mutex // guards f and size
	f    *os.File
	size int64
}

func openLogFile(path string, max int64) (*logFile, error) {
	l := &logFile{path: path, max: max}
	return l, l.open()
}

func (l *logFile) open() error {
	f, err := private.Open(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.f, l.size = f, info.Size()
	return nil
}

func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(b)) > l.max {
		if err := os.Rename(l.path, l.path+".1"); err == nil {
			old := l.f
			if err := l.open(); err == nil {
				old.Close()
			}
		}
	}
	n, _ := l.f.Write(b)
	l.size += int64(n)
	return len(b), nil
}

func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}
