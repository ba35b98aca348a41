package main

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"drawbridge/bridge/private"
	"drawbridge/packaging/sign"
)

// identityPlace is where an identity of our own is: outside every source tree.
func identityPlace() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no place for an identity: %w; name one with -identity", err)
	}
	return filepath.Join(dir, "drawbridge-signing", "identity.pem"), nil
}

// The environment names a Developer ID. The password is in a variable or a file;
// issuers that the certificate's file lacks are in another.
const (
	envPKCS12       = "DRAWBRIDGE_SIGN_P12"
	envPassword     = "DRAWBRIDGE_SIGN_PASSWORD"
	envPasswordFile = "DRAWBRIDGE_SIGN_PASSWORD_FILE"
	envChain        = "DRAWBRIDGE_SIGN_CHAIN"
)

// What certificates and their passwords have at most.
const (
	maxCertificates = 1 << 20
	maxPassword     = 4 << 10
)

// source is where an identity may come from.
type source struct {
	place  string // of one of our own
	named  bool   // somebody named that place
	pin    string // the requirement that was pinned
	getenv func(string) string
	now    time.Time
}

// findIdentity is the certificate that the environment names, else the identity
// at the place, else nil for ad hoc. What is named and cannot be used is an error,
// and so is one that was used before and is gone: signing in another way than meant
// loses permissions.
func findIdentity(s source) (*sign.Identity, error) {
	if s.getenv(envPKCS12) != "" {
		if s.named {
			return nil, fmt.Errorf("-identity and %s both name an identity: keep one", envPKCS12)
		}
		return fromPKCS12(s)
	}
	for _, name := range []string{envPassword, envPasswordFile, envChain} {
		if s.getenv(name) != "" {
			return nil, fmt.Errorf("%s is set, and %s, which it is for, is not: name the certificate's file, or unset both", name, envPKCS12)
		}
	}
	id, err := sign.ReadFile(s.place, s.now)
	if !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	if s.named {
		return nil, fmt.Errorf("-identity: %w; pack identity makes one, and -sign adhoc signs without", err)
	}
	if _, unpinned := os.Lstat(s.pin); !errors.Is(unpinned, fs.ErrNotExist) {
		return nil, fmt.Errorf(`the identity that signed before is gone: there is no %s, and a requirement is pinned in %s.
Without it every build is another app to macOS, and the permissions given to Drawbridge are lost.
Put a copy of the identity there again, or name it with -identity, or the Developer ID with %s.
To go on without: -sign adhoc (make app SIGN=adhoc), or make identity and then -repin (make app REPIN=1)`, s.place, s.pin, envPKCS12)
	}
	return nil, nil
}

func fromPKCS12(s source) (*sign.Identity, error) {
	file := s.getenv(envPKCS12)
	b, err := private.ReadPlain(file, 0, maxCertificates)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", envPKCS12, err)
	}
	password := s.getenv(envPassword)
	if from := s.getenv(envPasswordFile); from != "" {
		if password != "" {
			return nil, fmt.Errorf("%s and %s are both set: keep one", envPassword, envPasswordFile)
		}
		p, err := private.ReadPlain(from, 0, maxPassword)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", envPasswordFile, err)
		}
		password = strings.TrimRight(string(p), "\r\n")
	}
	var issuers []*x509.Certificate
	if from := s.getenv(envChain); from != "" {
		b, err := private.ReadPlain(from, 0, maxCertificates)
		if err == nil {
			issuers, err = sign.ParseCertificates(b)
		}
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", envChain, from, err)
		}
	}
	id, err := sign.ReadPKCS12(b, password, issuers, s.now)
	var chain *sign.ChainError
	if errors.As(err, &chain) {
		return nil, fmt.Errorf(`%s=%s: %w.
Export it with its chain: in Keychain Access, select the certificate and "Developer ID Certification Authority" together, and export both into one file.
Or get that authority's certificate from https://www.apple.com/certificateauthority/ and name its file with %s`, envPKCS12, file, err, envChain)
	}
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", envPKCS12, file, err)
	}
	return id, nil
}

// maxPin bounds a pinned requirement.
const maxPin = 64 << 10

// checkPin holds a requirement against the pinned one, and pins it where there is
// none yet or where that is asked for.
func checkPin(file, requirement string, repin bool) error {
	pinned, err := private.ReadPlain(file, 0, maxPin)
	switch {
	case err == nil && string(bytes.TrimSpace(pinned)) == requirement:
		return nil
	case err == nil && !repin:
		return fmt.Errorf(`this app would be another one to macOS, and the permissions given to Drawbridge would be lost.
pinned in %s:
  %s
this build:
  %s
Sign with the identity that was used before. If the change is meant, go on with -repin (make app REPIN=1)`, file, bytes.TrimSpace(pinned), requirement)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the pinned requirement: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return private.WriteFile(file, []byte(requirement+"\n"))
}
