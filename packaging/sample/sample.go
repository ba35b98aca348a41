// Package sample makes small apps and identities for tests: real programs for
// both Macs, linked by Go, in bundles made and signed by the real code.
package sample

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/packaging/bundle"
	"drawbridge/packaging/macho"
	"drawbridge/packaging/sign"
)

// Now is when identities are made and apps are signed.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Identifier is that of the sample app.
const Identifier = "io.github.drawbridge.Sample"

const infoPlist = `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0">
<dict>
	<key>CFBundleExecutable</key><string>program</string>
	<key>CFBundleIconFile</key><string>Sample</string>
	<key>CFBundleIdentifier</key><string>` + Identifier + `</string>
	<key>CFBundlePackageType</key><string>APPL</string>
	<key>CFBundleShortVersionString</key><string>$(SHORT_VERSION)</string>
	<key>CFBundleVersion</key><string>$(BUILD_VERSION)</string>
	<key>LSMinimumSystemVersion</key><string>12.0</string>
</dict>
</plist>
`

// Entitlements has one of each kind that can be encoded.
const Entitlements = `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0">
<dict>
	<key>com.apple.security.automation.apple-events</key><true/>
	<key>sample.list</key><array><string>a</string><string>b</string></array>
	<key>sample.off</key><false/>
</dict>
</plist>
`

var program = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "drawbridge-sample-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var slices [][]byte
	for _, arch := range []string{"amd64", "arm64"} {
		out := filepath.Join(dir, arch)
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", out, "drawbridge/packaging/sample/program")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=darwin", "GOARCH="+arch, "GOFLAGS=")
		if text, err := cmd.CombinedOutput(); err != nil {
			return text, err
		}
		b, err := os.ReadFile(out)
		if err != nil {
			return nil, err
		}
		slices = append(slices, b)
	}
	return macho.Join(slices...)
})

// Program is a universal program, not signed by us.
func Program(t testing.TB) []byte {
	t.Helper()
	b, err := program()
	if err != nil {
		t.Fatalf("building the sample program for macOS: %v\n%s", err, b)
	}
	return b
}

// Unsigned writes an app of a version that is not signed yet, and returns its
// path.
func Unsigned(t testing.TB, dir, version string) string {
	t.Helper()
	app := filepath.Join(dir, "Sample.app")
	err := bundle.Write(app, bundle.Parts{
		Version:   version,
		InfoPlist: []byte(infoPlist),
		Program:   Program(t),
		Icon:      []byte("icns of the sample"),
		Licences:  []byte("licences of " + version + "\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// App writes a signed app of a version, and returns its path. A nil identity
// signs ad hoc.
func App(t testing.TB, dir, version string, id *sign.Identity) string {
	t.Helper()
	app := Unsigned(t, dir, version)
	if err := sign.Bundle(app, sign.Options{Identity: id, Entitlements: []byte(Entitlements), Now: Now}); err != nil {
		t.Fatal(err)
	}
	return app
}

// SelfSigned is an identity of our own, as pack identity makes it.
func SelfSigned(t testing.TB) *sign.Identity {
	t.Helper()
	// Not in the test's own directory only: it must be ours alone.
	id, err := sign.Create(filepath.Join(t.TempDir(), "private", "identity.pem"), "Sample", Now)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Elliptic is an identity with an ECDSA key.
func Elliptic(t testing.TB) *sign.Identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &sign.Identity{Cert: issue(t, leaf("Elliptic"), nil, key, key), Key: key}
}

// DeveloperID is an identity with the marks that Apple gives to a Developer ID,
// from an authority of our own: the extensions are those that Apple documents in
// its certificate profiles.
func DeveloperID(t testing.TB, team string) *sign.Identity {
	t.Helper()
	mark := func(last ...int) []pkix.Extension {
		return []pkix.Extension{{Id: append(asn1.ObjectIdentifier{1, 2, 840, 113635, 100, 6}, last...), Value: []byte{5, 0}}}
	}
	ca := func(name string) *x509.Certificate {
		c := leaf(name)
		c.IsCA, c.ExtKeyUsage, c.KeyUsage = true, nil, x509.KeyUsageCertSign
		return c
	}
	newKey := func() *rsa.PrivateKey {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	rootKey, middleKey, key := newKey(), newKey(), newKey()
	root := issue(t, ca("Sample Root"), nil, rootKey, rootKey)
	middle := ca("Sample Developer ID Authority")
	middle.ExtraExtensions = mark(2, 6)
	middle = issue(t, middle, root, middleKey, rootKey)
	own := leaf("Developer ID Application: Sample (" + team + ")")
	own.Subject.OrganizationalUnit = []string{team}
	own.ExtraExtensions = mark(1, 13)
	own = issue(t, own, middle, key, middleKey)
	return &sign.Identity{Cert: own, Chain: []*x509.Certificate{middle, root}, Key: key}
}

func leaf(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             Now.AddDate(0, 0, -1),
		NotAfter:              Now.AddDate(5, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		BasicConstraintsValid: true,
	}
}

// issue signs a certificate; without a parent it signs itself.
func issue(t testing.TB, c, parent *x509.Certificate, key, by crypto.Signer) *x509.Certificate {
	t.Helper()
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Replace changes one text in a file, which must be there, and keeps its mode.
func Replace(t testing.TB, file, old, new string) {
	t.Helper()
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), old) {
		t.Fatalf("%s does not have %q", file, old)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(b), old, new, 1)), st.Mode()); err != nil {
		t.Fatal(err)
	}
}
