package x11

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/jezek/xgb"
)

// CookieName is the one way of proving who we are that servers still use.
const CookieName = "MIT-MAGIC-COOKIE-1"

// own holds the cookies of displays that this process started. They are not in
// the person's authority file, and $XAUTHORITY must keep naming that one.
var own struct {
	sync.Mutex
	cookies map[int][]byte // by display number; guarded by Mutex
}

// SetCookie says which cookie opens the local display of that number. A nil
// cookie forgets it.
func SetCookie(number int, cookie []byte) {
	own.Lock()
	defer own.Unlock()
	if own.cookies == nil {
		own.cookies = map[int][]byte{}
	}
	if cookie == nil {
		delete(own.cookies, number)
		return
	}
	own.cookies[number] = bytes.Clone(cookie)
}

// Families of addresses in an authority file (X11/Xauth.h).
const (
	familyInternet  = 0
	familyInternet6 = 6
	familyLocal     = 256
	familyWild      = 65535
)

// maxAuthFile is far more than an authority file ever holds.
const maxAuthFile = 1 << 20

// authEntry is one record of an authority file.
type authEntry struct {
	family       uint16
	addr, number string
	name         string
	data         []byte
}

// AppendAuthEntry appends to an authority file the record that opens the
// local display of that number to whoever can read the file.
func AppendAuthEntry(b []byte, number int, cookie []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, familyWild)
	for _, s := range []string{"", strconv.Itoa(number), CookieName, string(cookie)} {
		b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
		b = append(b, s...)
	}
	return b
}

var errShortAuth = errors.New("the authority file ends inside a record")

// parseAuth reads an authority file. On an error the entries before it are
// still returned.
func parseAuth(b []byte) ([]authEntry, error) {
	var all []authEntry
	for len(b) > 0 {
		if len(b) < 2 {
			return all, errShortAuth
		}
		e := authEntry{family: binary.BigEndian.Uint16(b)}
		b = b[2:]
		var f [4][]byte
		for i := range f {
			if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
				return all, errShortAuth
			}
			n := int(binary.BigEndian.Uint16(b))
			f[i], b = b[2:2+n], b[2+n:]
		}
		e.addr, e.number, e.name, e.data = string(f[0]), string(f[1]), string(f[2]), f[3]
		all = append(all, e)
	}
	return all, nil
}

// findCookie returns the cookie for a server, or nil: then we connect without,
// and the server says whether it minds.
func findCookie(a address, remote net.Addr) []byte {
	if a.host == "" {
		own.Lock()
		c := own.cookies[a.number]
		own.Unlock()
		if c != nil {
			return c
		}
	}
	path := os.Getenv("XAUTHORITY")
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil
		}
		path = filepath.Join(home, ".Xauthority")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAuthFile))
	if err != nil {
		return nil
	}
	entries, _ := parseAuth(b)
	hostname, _ := os.Hostname()
	for _, e := range entries {
		if e.name == CookieName && e.opens(a, remote, hostname) {
			return e.data
		}
	}
	return nil
}

func (e authEntry) opens(a address, remote net.Addr, hostname string) bool {
	if e.number != "" && e.number != strconv.Itoa(a.number) {
		return false
	}
	tcp, _ := remote.(*net.TCPAddr)
	switch e.family {
	case familyWild:
		return true
	case familyLocal:
		// ssh enters its forwarded displays, which are on localhost, as local.
		return e.addr == hostname && (tcp == nil || tcp.IP.IsLoopback())
	case familyInternet, familyInternet6:
		return tcp != nil && tcp.IP.Equal(net.IP(e.addr))
	}
	return false
}

// setupRequest is the first message of a connection, with or without a cookie.
func setupRequest(cookie []byte) []byte {
	name := CookieName
	if cookie == nil {
		name = ""
	}
	b := make([]byte, 12+xgb.Pad(len(name))+xgb.Pad(len(cookie)))
	b[0] = 'l' // little-endian
	xgb.Put16(b[2:], 11)
	xgb.Put16(b[6:], uint16(len(name)))
	xgb.Put16(b[8:], uint16(len(cookie)))
	copy(b[12:], name)
	copy(b[12+xgb.Pad(len(name)):], cookie)
	return b
}

// setupConn sends our own setup in place of xgb's, which can take the cookie
// only from the file that $XAUTHORITY names.
type setupConn struct {
	net.Conn
	setup []byte // nil once sent; the handshake is over before xgb writes from elsewhere
}

func (c *setupConn) Write(b []byte) (int, error) {
	if c.setup == nil {
		return c.Conn.Write(b)
	}
	setup := c.setup
	c.setup = nil
	if _, err := c.Conn.Write(setup); err != nil {
		return 0, err
	}
	return len(b), nil
}
