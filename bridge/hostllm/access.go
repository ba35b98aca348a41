package hostllm

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"drawbridge/bridge/private"
	"drawbridge/bridge/token"
)

// GatewayFile is the file in the state directory by which the gateway stays the
// same over restarts, so that hosts that were started before go on working.
const GatewayFile = "gateway.json"

// gatewayFile is its content.
type gatewayFile struct {
	V    int    `json:"v"`
	Addr string `json:"addr"` // where it listened first
	Key  []byte `json:"key"`  // of every host's secret
}

const keyLength = 32

func readGateway(dir string) (gatewayFile, error) {
	path := filepath.Join(dir, GatewayFile)
	var f gatewayFile
	b, err := private.ReadFile(path, 64<<10)
	if err != nil {
		return f, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err = d.Decode(&f)
	switch {
	case err != nil:
	case f.V != 1:
		err = fmt.Errorf("it has version %d, and this program writes 1", f.V)
	case len(f.Key) != keyLength:
		err = errors.New("its key has another length")
	}
	if err != nil {
		return gatewayFile{}, fmt.Errorf("%s cannot be used (%w); move it away, and start the hosts again that were started with drawbridge host run", path, err)
	}
	return f, nil
}

// ensureGateway reads the file, or makes a key.
func ensureGateway(dir string) (f gatewayFile, isNew bool, err error) {
	f, err = readGateway(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, false, err
	}
	f = gatewayFile{V: 1, Key: make([]byte, keyLength)}
	_, err = rand.Read(f.Key)
	return f, true, err
}

func (f gatewayFile) write(dir string) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := private.WriteFile(filepath.Join(dir, GatewayFile), append(b, '\n')); err != nil {
		return fmt.Errorf("writing %s: %w", GatewayFile, err)
	}
	return nil
}

// Access is how one host is known to the gateway and to the proxy.
type Access struct {
	Host     string
	secret   string // the first part of the gateway's paths
	password string // of the proxy
}

// AccessFor returns the access of a host by this name. The agent of the state
// directory must have run once: else it is fs.ErrNotExist.
func AccessFor(dir, host string) (Access, error) {
	if err := token.CheckName(host); err != nil {
		return Access{}, err
	}
	f, err := readGateway(dir)
	if err != nil {
		return Access{}, err
	}
	return access(f.Key, host), nil
}

// access derives a host's secrets, so that none has to be kept. They name the
// host, and nobody can make those of another without the key.
func access(key []byte, host string) Access {
	derive := func(use string) string {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(use + "\x00" + host))
		return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	}
	return Access{Host: host, secret: host + "." + derive("gateway"), password: derive("proxy")}
}

// hostOfSecret returns the host whose secret this is.
func hostOfSecret(key []byte, secret string) (host string, ok bool) {
	i := strings.LastIndexByte(secret, '.')
	if i < 0 || token.CheckName(secret[:i]) != nil {
		return "", false
	}
	host = secret[:i]
	return host, hmac.Equal([]byte(access(key, host).secret), []byte(secret))
}

// hostOfLogin returns the host whose proxy credentials these are.
func hostOfLogin(key []byte, user, password string) (host string, ok bool) {
	if token.CheckName(user) != nil {
		return "", false
	}
	return user, hmac.Equal([]byte(access(key, user).password), []byte(password))
}
