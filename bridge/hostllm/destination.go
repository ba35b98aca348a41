package hostllm

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// destination is where a request wants to go, in one way of writing it.
type destination struct {
	host string     // lower case, without a dot at the end; empty for an address
	addr netip.Addr // of a host that is an address
	port uint16
}

func (d destination) String() string {
	host := d.host
	if host == "" {
		host = d.addr.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(d.port)))
}

const maxName = 253 // of a host name in DNS

var errHostName = errors.New("that is no host name: letters, digits, - and _ in parts that dots divide; write a name in another script as xn--…")

// parseDestination reads HOST:PORT, where HOST is a name, an IPv4 address or an
// IPv6 address in brackets. A name in another script is refused, since those who
// look it up do not agree on how: in its ASCII form it has one reading.
func parseDestination(hostport string) (destination, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return destination{}, errors.New("a destination is HOST:PORT")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return destination{}, errors.New("a destination has a port from 1 to 65535")
	}
	d := destination{port: uint16(n)}
	// Also with a dot at the end it is dialled as an address.
	if a, err := netip.ParseAddr(strings.TrimSuffix(host, ".")); err == nil {
		d.addr = a.WithZone("").Unmap()
		return d, nil
	}
	if strings.HasPrefix(hostport, "[") {
		return destination{}, errors.New("between brackets stands an IPv6 address")
	}
	d.host, err = canonicalName(host, false)
	return d, err
}

// canonicalName returns a host name as names are compared. A pattern may have
// stars.
func canonicalName(name string, stars bool) (string, error) {
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > maxName || strings.HasSuffix(name, ".") {
		return "", errHostName
	}
	b := []byte(name)
	for i, c := range b {
		switch {
		case 'A' <= c && c <= 'Z':
			b[i] = c - 'A' + 'a'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		case c == '*' && stars:
		case c == '.' && i > 0 && b[i-1] != '.':
		default:
			return "", errHostName
		}
	}
	return string(b), nil
}

// matcher tells the known model hosts from others.
type matcher struct {
	exact    map[string]string // names without wildcards, to themselves
	patterns []pattern
	nets     []network
}

type pattern struct {
	text   string
	any    bool     // begins with "*.": stands for one part or more
	labels []string // the rest, each with * for any characters but a dot
}

type network struct {
	text   string
	prefix netip.Prefix
}

// CheckModelHost reports whether text can stand in the list of model hosts: a
// host name, in which * stands for any characters but a dot and *. at the start
// for one part or more; an address; or a network such as 192.0.2.0/24.
func CheckModelHost(text string) error {
	_, err := newMatcher([]string{text})
	return err
}

func newMatcher(list []string) (*matcher, error) {
	m := &matcher{exact: map[string]string{}}
	for _, text := range list {
		if err := m.add(text); err != nil {
			return nil, fmt.Errorf("model host %q: %w", text, err)
		}
	}
	return m, nil
}

func (m *matcher) add(text string) error {
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.WithZone("").Unmap()
		m.nets = append(m.nets, network{text, netip.PrefixFrom(a, a.BitLen())})
		return nil
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		m.nets = append(m.nets, network{text, p.Masked()})
		return nil
	}
	name, any := strings.CutPrefix(text, "*.")
	name, err := canonicalName(name, true)
	if err != nil {
		return err
	}
	if !any && !strings.Contains(name, "*") {
		m.exact[name] = text
		return nil
	}
	if last := name[strings.LastIndexByte(name, '.')+1:]; strings.Contains(last, "*") {
		return errors.New("the last part of a name is written out")
	}
	m.patterns = append(m.patterns, pattern{text, any, strings.Split(name, ".")})
	return nil
}

// match returns the pattern that a destination fits, whatever its port.
func (m *matcher) match(d destination) (pattern string, ok bool) {
	if d.host == "" {
		for _, n := range m.nets {
			if n.prefix.Contains(d.addr) {
				return n.text, true
			}
		}
		return "", false
	}
	return m.matchName(d.host)
}

// matchName is match for a name in its canonical form.
func (m *matcher) matchName(name string) (pattern string, ok bool) {
	if text, ok := m.exact[name]; ok {
		return text, true
	}
	labels := strings.Split(name, ".")
	for i := range m.patterns {
		if m.patterns[i].match(labels) {
			return m.patterns[i].text, true
		}
	}
	return "", false
}

func (p *pattern) match(labels []string) bool {
	more := len(labels) - len(p.labels)
	if more < 0 || p.any != (more > 0) {
		return false
	}
	for i, want := range p.labels {
		if !matchLabel(want, labels[more+i]) {
			return false
		}
	}
	return true
}

// matchLabel matches one part of a name. The time is at most the product of the
// lengths, and a part is short.
func matchLabel(pattern, s string) bool {
	star, from := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, from = i, j
			i++
		case i < len(pattern) && pattern[i] == s[j]:
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
