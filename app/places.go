package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"drawbridge/bridge/private"
)

// errNoHome: no place for files can be named.
var errNoHome = errors.New("the home directory is not known (HOME is not set); name places with --state and --config")

// errRelativeHome: what is in it would depend on where a command is run.
var errRelativeHome = errors.New("the home directory (HOME) must be an absolute path")

// homeDir is the home directory that the environment names.
func homeDir(getenv func(string) string) (string, error) {
	home := getenv("HOME")
	switch {
	case home == "":
		return "", errNoHome
	case !filepath.IsAbs(home):
		return "", &exitError{code: exitUsage, err: fmt.Errorf("%w: it is %q", errRelativeHome, home)}
	}
	return home, nil
}

// places are where files are when no flag says otherwise.
type places struct {
	config string // the configuration file
	state  string // the directory of everything that is written
}

// platformPlaces returns the places of a platform, goos.
func platformPlaces(goos string, getenv func(string) string) (places, error) {
	home, homeless := homeDir(getenv)
	if goos == "darwin" {
		if homeless != nil {
			return places{}, homeless
		}
		dir := filepath.Join(home, "Library", "Application Support", "Drawbridge")
		return places{config: filepath.Join(dir, "config.yaml"), state: dir}, nil
	}
	// The XDG rules: a path that is not absolute is ignored.
	base := func(name, below string) (string, error) {
		if dir := getenv(name); filepath.IsAbs(dir) {
			return dir, nil
		}
		if homeless != nil {
			return "", homeless
		}
		return filepath.Join(home, below), nil
	}
	conf, err := base("XDG_CONFIG_HOME", ".config")
	if err != nil {
		return places{}, err
	}
	state, err := base("XDG_STATE_HOME", ".local/state")
	if err != nil {
		return places{}, err
	}
	return places{config: filepath.Join(conf, "drawbridge", "config.yaml"), state: filepath.Join(state, "drawbridge")}, nil
}

// stateDir returns the state directory in force, absolute.
func (c *cli) stateDir() (string, error) {
	dir := c.flags.state
	if dir == "" {
		dir = c.getenv("DRAWBRIDGE_STATE")
	}
	if dir == "" {
		p, err := platformPlaces(runtime.GOOS, c.getenv)
		if err != nil {
			return "", err
		}
		dir = p.state
	}
	return filepath.Abs(dir)
}

// configFile returns the configuration file in force, and whether somebody named
// it, so that it must exist.
func (c *cli) configFile() (path string, asked bool, err error) {
	path = c.flags.config
	if path == "" {
		path = c.getenv("DRAWBRIDGE_CONFIG")
	}
	if path != "" {
		path, err = filepath.Abs(path)
		return path, true, err
	}
	p, err := platformPlaces(runtime.GOOS, c.getenv)
	return p.config, false, err
}

// makeStateDir makes the state directory, or checks the one that is there: it
// must be ours alone, since whoever can write into it can stand in for the agent,
// and no link, which is the quickest way to have another in its place.
func makeStateDir(dir string) error {
	if info, err := os.Lstat(dir); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return &exitError{code: exitUsage, err: fmt.Errorf("the state directory: %s is a link: remove it", dir), hint: "or name the directory that it leads to with --state"}
	}
	if err := private.Dir(dir); err != nil {
		return &exitError{code: exitUsage, err: fmt.Errorf("the state directory: %w", err), hint: "or name another one with --state"}
	}
	return nil
}

// lockState takes the state directory for this process. held tells that another
// process has it, and its pid where it says so. The lock ends with the process.
func lockState(dir string) (lock *os.File, held bool, pid string, err error) {
	f, err := private.Open(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, false, "", fmt.Errorf("locking the state directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, false, "", fmt.Errorf("locking the state directory: %w", err)
		}
		b := make([]byte, 20)
		n, _ := f.ReadAt(b, 0)
		return nil, true, string(b[:n]), nil
	}
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%d", os.Getpid()), 0)
	}
	if err != nil {
		f.Close()
		return nil, false, "", fmt.Errorf("locking the state directory: %w", err)
	}
	return f, false, "", nil
}
