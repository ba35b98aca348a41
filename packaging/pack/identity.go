package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

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

// The environment names a Developer ID. The password is in a variable or a file.
const (
	envPKCS12       = "DRAWBRIDGE_SIGN_P12"
	envPassword     = "DRAWBRIDGE_SIGN_PASSWORD"
	envPasswordFile = "DRAWBRIDGE_SIGN_PASSWORD_FILE"
)

// findIdentity is the certificate that the environment names, else the identity
// at a place, else nil for ad hoc. What is named and cannot be used is an error:
// signing in another way than meant loses permissions.
func findIdentity(place string, getenv func(string) string, now time.Time) (*sign.Identity, error) {
	file := getenv(envPKCS12)
	if file == "" {
		id, err := sign.ReadFile(place, now)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return id, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", envPKCS12, err)
	}
	password := getenv(envPassword)
	if from := getenv(envPasswordFile); from != "" {
		if password != "" {
			return nil, fmt.Errorf("%s and %s are both set: keep one", envPassword, envPasswordFile)
		}
		p, err := os.ReadFile(from)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", envPasswordFile, err)
		}
		password = strings.TrimRight(string(p), "\r\n")
	}
	id, err := sign.ReadPKCS12(b, password, now)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", envPKCS12, file, err)
	}
	return id, nil
}

// checkPin holds a requirement against the pinned one, and pins it where there is
// none yet or where that is asked for.
func checkPin(file, requirement string, repin bool) error {
	pinned, err := os.ReadFile(file)
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
	return os.WriteFile(file, []byte(requirement+"\n"), 0o644)
}
