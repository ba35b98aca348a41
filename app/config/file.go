package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/host"
)

// Loaded is a configuration with where its values came from.
type Loaded struct {
	Config
	Written Config // without what Set put over the file
	Path    string // the file; it need not exist when it is the default one
	Found   bool   // whether it does
	from    map[string]string
}

// Load reads the file at path. The file must be a regular one that only its
// owner, who must be this user or root, can write, in directories that not
// everybody can: whoever can change it widens what programs may do. A missing file
// is an error only when it was asked for. Programs of hosts are what PATH finds now;
// see [host.Config.Resolve].
func Load(path string, asked bool) (*Loaded, error) {
	l := &Loaded{Config: Default(), Written: Default(), Path: path, from: map[string]string{}}
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) && !asked {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	c, lines, err := Parse(data, path)
	if err != nil {
		return nil, err
	}
	for name, h := range c.Hosts {
		h.Resolve()
		c.Hosts[name] = h
	}
	l.Config, l.Written, l.Found = c, c, true
	for p, line := range lines {
		l.from[p] = fmt.Sprintf("%s:%d", path, line)
	}
	return l, nil
}

func read(path string) ([]byte, error) {
	// Not following a link, and not waiting for the other end of a pipe.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, &Error{File: path, Msg: "is a symbolic link; name the file itself, so that nobody can swap what it leads to"}
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w; drawbridge config example prints one to start from", &missing{path})
	case errors.Is(err, fs.ErrPermission):
		return nil, &Error{File: path, Msg: "cannot be read by this user; make it yours with chown, and chmod 600 it"}
	case err != nil:
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &Error{File: path, Msg: "is a directory; name the file in it"}
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{File: path, Msg: "is no regular file"}
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return nil, &Error{File: path, Msg: fmt.Sprintf("can be written by others (mode %04o); run chmod go-w on it", perm)}
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() && st.Uid != 0 {
		return nil, &Error{File: path, Msg: fmt.Sprintf("belongs to another user (uid %d); make it yours with chown", st.Uid)}
	}
	if err := checkAbove(path); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// checkAbove refuses a file in whose place anybody can put another one, since they
// can write a directory above it. In one with the sticky bit, as /tmp has it, each
// file is its owner's.
func checkAbove(path string) error {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return err
	}
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return &Error{File: path, Msg: fmt.Sprintf("is below %s, which can be written by everybody (mode %04o), so that anybody can put another file in its place; run chmod o-w on it", dir, info.Mode().Perm())}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// missing is an [Error] about a file that is not there.
type missing struct{ path string }

func (e *missing) Error() string { return e.path + ": no such file" }
func (e *missing) Is(target error) bool {
	return target == fs.ErrNotExist
}

// Set puts a value of text from elsewhere than the file in force: from says
// from where ("flag --listen"). It is checked as the file's values are.
func (l *Loaded) Set(path, value, from string) error {
	v := reflect.ValueOf(&l.Config).Elem()
	for name := range strings.SplitSeq(path, ".") {
		v = fieldNamed(v, name)
	}
	if check := options[path].check; check != nil {
		if msg := check(reflect.ValueOf(value)); msg != "" {
			return fmt.Errorf("%s: must be %s", from, msg)
		}
	}
	v.SetString(value)
	l.from[path] = from
	return nil
}

// What stands beside a value that is not what the configuration says.
const (
	asBefore = "as before, until a person accepts what the configuration says"
	notYet   = "; not in force until a person accepts it"
	inPart   = "; in part as before, until a person accepts what the configuration says"
)

// Hold returns the configuration as it is in force by what the gate holds, and which
// hosts wait for a person.
func (l *Loaded) Hold(force gate.Policy, granted bool) (*Loaded, map[string]bool, error) {
	c, err := Settings{l.Config, granted}.Hold(force.Kept)
	if err != nil {
		return nil, nil, err
	}
	c.putGated(force)
	held := *l
	held.Config, held.from = c.Config, maps.Clone(l.from)
	sections := map[string]bool{} // of those that are written as lists or maps of entries
	mark := func(path, from string) {
		held.from[path] = from
		if section, _, in := strings.Cut(path, "."); in && (section == "clients" || section == "hosts") {
			sections[section] = true
		}
	}
	for _, path := range differences(l.Config, c.Config, true) {
		if path == "rules" {
			held.markRules(l)
		}
		mark(path, asBefore)
	}
	for name := range c.Waiting {
		h := reflect.ValueOf(c.Hosts[name])
		for i := range h.NumField() {
			if path := "hosts." + name + "." + fieldName(h.Type().Field(i)); !h.Field(i).IsZero() {
				mark(path, l.From(path)+notYet)
			}
		}
	}
	for section := range sections {
		held.from[section] = l.From(section) + inPart
	}
	return &held, c.Waiting, nil
}

// putGated puts in place what the gate holds.
func (c *InForce) putGated(force gate.Policy) {
	lacks := func(list []gate.Rule) func(gate.Rule) bool {
		return func(r gate.Rule) bool { return !slices.ContainsFunc(list, r.Equal) }
	}
	if slices.ContainsFunc(c.Rules, lacks(force.ConfigRules)) || slices.ContainsFunc(force.ConfigRules, lacks(c.Rules)) {
		c.Rules = append([]gate.Rule{}, force.ConfigRules...)
	}
	actions := func(of string, at *[]computer.ActionType) bool {
		names := force.AllowedActions[of]
		var list []computer.ActionType
		if names != nil {
			list = []computer.ActionType{}
		}
		for _, n := range names {
			list = append(list, computer.ActionType(n))
		}
		if (list == nil) == (*at == nil) && slices.Equal(list, *at) {
			return false
		}
		*at = list
		return true
	}
	actions("", &c.Computer.AllowedActions)
	clients := slices.Concat(slices.Collect(maps.Keys(c.Clients)), slices.Collect(maps.Keys(force.AllowedActions)))
	for _, name := range clients {
		if e := c.Clients[name]; name != "" && actions(name, &e.AllowedActions) {
			c.put(name, e)
		}
	}
	for name, h := range c.Hosts {
		if h.TrustHints && !slices.Contains(force.TrustHints, name) {
			h.TrustHints = false
			c.Hosts[name] = h
		}
	}
}

// markRules says of each rule in force where it came from.
func (l *Loaded) markRules(read *Loaded) {
	for i, r := range l.Rules {
		was := slices.IndexFunc(read.Rules, r.Equal)
		t := reflect.TypeFor[gate.Rule]()
		for f := range t.Fields() {
			path := fmt.Sprintf("rules.%d.%s", i, fieldName(f))
			delete(l.from, path)
			if was < 0 {
				l.from[path] = asBefore
			} else if from, ok := read.from[fmt.Sprintf("rules.%d.%s", was, fieldName(f))]; ok {
				l.from[path] = from
			}
		}
	}
}

// Without returns l as it is without some hosts.
func (l *Loaded) Without(hosts map[string]bool) *Loaded {
	out := *l
	out.Hosts = maps.Clone(l.Hosts)
	maps.DeleteFunc(out.Hosts, func(name string, _ host.Config) bool { return hosts[name] })
	return &out
}

// Changed lists the fields whose values are others in next.
func (l *Loaded) Changed(next *Loaded) []string { return differences(l.Config, next.Config, false) }

// differences lists the paths of the fields that differ, with entries also those in
// the entries of maps.
func differences(a, b Config, entries bool) []string {
	var out []string
	var walk func(p place, a, b reflect.Value)
	walk = func(p place, a, b reflect.Value) {
		switch {
		case a.Kind() == reflect.Struct:
			for i := range a.NumField() {
				walk(p.field(fieldName(a.Type().Field(i))), a.Field(i), b.Field(i))
			}
		case reflect.DeepEqual(a.Interface(), b.Interface()):
		case entries && a.Kind() == reflect.Map && holdsSections(a):
			for _, name := range b.MapKeys() {
				was := a.MapIndex(name)
				if !was.IsValid() {
					was = reflect.Zero(a.Type().Elem())
				}
				walk(p.entry(name.String()), was, b.MapIndex(name))
			}
		default:
			out = append(out, p.path)
		}
	}
	walk(place{}, reflect.ValueOf(a), reflect.ValueOf(b))
	return out
}

func fieldNamed(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		if fieldName(v.Type().Field(i)) == name {
			return v.Field(i)
		}
	}
	panic("config: no field " + name)
}

// From tells where the value of the field at path came from: "default", a file
// and line, a flag or an environment variable.
func (l *Loaded) From(path string) string {
	if f, ok := l.from[path]; ok {
		return f
	}
	return "default"
}
