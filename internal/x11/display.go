package x11

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// address is a parsed display name: [host]:number[.screen], unix:number, or a
// socket's path followed by :number.
type address struct {
	host   string // empty: a socket on this machine
	socket string // path of the socket where the name gave one
	number int
	screen int
}

func (a address) String() string {
	s := fmt.Sprintf("%s%s:%d", a.socket, a.host, a.number)
	if a.screen != 0 {
		s += "." + strconv.Itoa(a.screen)
	}
	return s
}

func parseDisplay(name string) (address, error) {
	if name == "" {
		name = os.Getenv("DISPLAY")
	}
	if name == "" {
		return address{}, errors.New("no X display: $DISPLAY is not set")
	}
	bad := fmt.Errorf("%q is no X display name; it should look like :0 or host:0.0", name)
	i := strings.LastIndex(name, ":")
	if i < 0 {
		return address{}, bad
	}
	var a address
	switch host := name[:i]; {
	case strings.HasPrefix(host, "/"):
		a.socket = host
	case host == "unix" || strings.HasSuffix(host, "/unix"):
	default:
		_, after, ok := strings.Cut(host, "/")
		if ok {
			host = after // tcp/host
		}
		a.host = strings.Trim(host, "[]")
	}
	number, screen, hasScreen := strings.Cut(name[i+1:], ".")
	var err error
	if a.number, err = parseSmall(number); err != nil {
		return address{}, bad
	}
	if hasScreen {
		if a.screen, err = parseSmall(screen); err != nil {
			return address{}, bad
		}
	}
	return a, nil
}

// parseSmall reads a display or screen number: digits only, and small enough
// for a port.
func parseSmall(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err == nil && n > 59535 {
		err = strconv.ErrRange
	}
	return int(n), err
}

func (a address) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	switch {
	case a.host != "":
		return d.DialContext(ctx, "tcp", net.JoinHostPort(a.host, strconv.Itoa(6000+a.number)))
	case a.socket != "":
		return d.DialContext(ctx, "unix", fmt.Sprintf("%s:%d", a.socket, a.number))
	}
	path := fmt.Sprintf("/tmp/.X11-unix/X%d", a.number)
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		// Linux servers listen on an abstract socket of the same name too, which
		// survives somebody cleaning /tmp.
		if c2, err2 := d.DialContext(ctx, "unix", "@"+path); err2 == nil {
			return c2, nil
		}
	}
	return c, err
}
