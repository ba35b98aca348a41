package host

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/private"
)

// Kinds of hosts. An attached session may name a kind of its own.
const (
	KindAttached = "attached"
	KindChild    = "child"
	KindRemote   = "remote"
)

// Config is one entry of `hosts:`, whose key is the host's name. The yaml names
// are the ones a person writes.
type Config struct {
	// A child process: command and the rest. See Resolve.
	Command string            `yaml:"command"`
	Args    []string          `yaml:"args"`
	Env     map[string]string `yaml:"env"`
	Cwd     string            `yaml:"cwd"`

	// A remote server: url and headers.
	URL     string            `yaml:"url"`
	Headers map[string]Secret `yaml:"headers"`

	// Attached says that the entry is for a session that dials in.
	Attached bool `yaml:"attached"`

	// Prefix stands before the names of its tools; absent: NAME_.
	Prefix *string `yaml:"prefix"`
	// Timeout bounds every call; 0: none.
	Timeout time.Duration `yaml:"timeout"`
	// TrustHints lets run unasked what the host says is read-only, and what it
	// says it will itself ask about.
	TrustHints bool `yaml:"trust_hints"`
}

// Secret says where a header's value is read, so that it stands in no
// configuration and on no command line.
type Secret struct {
	Env    string `yaml:"env"`    // a variable of the agent's environment
	File   string `yaml:"file"`   // a file that holds nothing else
	Prefix string `yaml:"prefix"` // what stands before it, such as "Bearer "
}

// Kind is what the entry starts or waits for.
func (c *Config) Kind() string {
	switch {
	case c.Command != "":
		return KindChild
	case c.URL != "":
		return KindRemote
	}
	return KindAttached
}

var (
	nameOK   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	prefixOK = regexp.MustCompile(`^[A-Za-z0-9._-]{0,64}$`)
	headerOK = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
)

// CheckName tells whether a host may be called so.
func CheckName(name string) error {
	if !nameOK.MatchString(name) || strings.Trim(name, ".") == "" {
		return fmt.Errorf("%q is no name for a host: 1 to 64 of A-Z a-z 0-9 . _ -, not dots alone", name)
	}
	if strings.EqualFold(name, bridge.OwnSource) {
		return fmt.Errorf("%q is our own name; call the host otherwise", name)
	}
	return nil
}

// Check holds an entry against what can work. An error begins with the field, if
// it is about one.
func (c *Config) Check() error {
	at := func(field, format string, args ...any) error {
		if field != "" {
			field += ": "
		}
		return fmt.Errorf("%s%s", field, fmt.Sprintf(format, args...))
	}
	kinds := 0
	for _, is := range []bool{c.Command != "", c.URL != "", c.Attached} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		return at("", "needs command (a child process), url (a remote server) or attached: true (a session that dials in)")
	case kinds > 1:
		return at("", "has more than one of command, url and attached")
	case c.Command == "" && (c.Args != nil || c.Env != nil || c.Cwd != ""):
		return at("", "args, env and cwd go with command only")
	case strings.Contains(c.Command, "/") && !filepath.IsAbs(c.Command) && c.Cwd == "":
		return at("command", "%q is in a folder that is not named: name the folder in cwd, or write an absolute path", c.Command)
	case c.URL == "" && c.Headers != nil:
		return at("headers", "go with url only")
	case c.Prefix != nil && !prefixOK.MatchString(*c.Prefix):
		return at("prefix", "%q: at most 64 of A-Z a-z 0-9 . _ -", *c.Prefix)
	case c.Timeout < 0:
		return at("timeout", "must not be negative")
	}
	for k, v := range c.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.Contains(v, "\x00") {
			return at("env", "%q is no name for a variable", k)
		}
	}
	if slices.ContainsFunc(append([]string{c.Command, c.Cwd}, c.Args...), func(s string) bool { return strings.Contains(s, "\x00") }) {
		return at("", "command, args and cwd must not hold a zero byte")
	}
	if c.URL != "" {
		u, err := url.Parse(c.URL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return at("url", "%q is not the address of a server: http://… or https://…", c.URL)
		}
		if u.User != nil {
			return at("url", "must not hold credentials; use headers")
		}
	}
	for k, v := range c.Headers {
		if !headerOK.MatchString(k) {
			return at("headers", "%q is no name for a header", k)
		}
		if (v.Env == "") == (v.File == "") {
			return at("headers."+k, "needs exactly one of env and file")
		}
	}
	return nil
}

// Resolve makes what is started one program: the one that PATH finds now, and a
// folder that does not depend on where this program was started. What is not found
// stays as it is, and is not started.
func (c *Config) Resolve() {
	if c.Command == "" {
		return
	}
	if c.Cwd != "" {
		if abs, err := filepath.Abs(c.Cwd); err == nil {
			c.Cwd = abs
		}
	}
	switch {
	case filepath.IsAbs(c.Command):
		c.Command = filepath.Clean(c.Command)
	case strings.Contains(c.Command, "/"):
		c.Command = filepath.Join(c.Cwd, c.Command) // Check wants a folder
	default:
		if path, err := exec.LookPath(c.Command); err == nil {
			c.Command = path
		}
	}
}

func (c *Config) equal(d Config) bool {
	samePrefix := (c.Prefix == nil) == (d.Prefix == nil) && (c.Prefix == nil || *c.Prefix == *d.Prefix)
	return samePrefix && c.Command == d.Command && slices.Equal(c.Args, d.Args) &&
		maps.Equal(c.Env, d.Env) && c.Cwd == d.Cwd && c.URL == d.URL && maps.Equal(c.Headers, d.Headers) &&
		c.Attached == d.Attached && c.Timeout == d.Timeout && c.TrustHints == d.TrustHints
}

// maxSecret bounds a header's value from a file.
const maxSecret = 64 << 10

// header reads the headers' values where they are. Errors name the place, never
// the value.
func (c *Config) header() (http.Header, error) {
	h := http.Header{}
	for k, s := range c.Headers {
		var v string
		if s.Env != "" {
			var ok bool
			if v, ok = os.LookupEnv(s.Env); !ok {
				return nil, fmt.Errorf("header %s: the variable %s is not set in the agent's environment", k, s.Env)
			}
		} else {
			b, err := private.ReadPlain(s.File, 0, maxSecret)
			if err != nil {
				return nil, fmt.Errorf("header %s: %w", k, err)
			}
			v = strings.TrimSpace(string(b))
		}
		v = s.Prefix + v
		for i := range len(v) {
			if v[i] < ' ' && v[i] != '\t' || v[i] == 0x7f {
				return nil, fmt.Errorf("header %s: its value holds a line break or another control character", k)
			}
		}
		h.Set(k, v)
	}
	return h, nil
}
