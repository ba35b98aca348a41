package sign_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"drawbridge/packaging/sample"
	"drawbridge/packaging/sign"
	"drawbridge/packaging/verify"
)

func wantError(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestPKCS12(t *testing.T) {
	id := sample.DeveloperID(t, "TEAM123456")
	// The issuers in another order, with one that does not belong.
	strange := sample.SelfSigned(t)
	issuers := []*x509.Certificate{strange.Cert, id.Chain[1], id.Chain[0]}
	file, err := pkcs12.Modern.Encode(id.Key, id.Cert, issuers, "right")
	if err != nil {
		t.Fatal(err)
	}
	got, err := sign.ReadPKCS12(file, "right", nil, sample.Now)
	if err != nil {
		t.Fatal(err)
	}
	if got.TeamID() != "TEAM123456" || len(got.Chain) != 2 || !got.Chain[0].Equal(id.Chain[0]) || !got.Chain[1].Equal(id.Chain[1]) {
		t.Errorf("team %q, %d issuers", got.TeamID(), len(got.Chain))
	}
	_, err = sign.ReadPKCS12(file, "wrong", nil, sample.Now)
	wantError(t, "a wrong password", err, "password")
	_, err = sign.ReadPKCS12(file, "right", nil, sample.Now.AddDate(10, 0, 0))
	wantError(t, "later", err, "expired on 2031-03-01")
	_, err = sign.ReadPKCS12(file, "right", nil, sample.Now.AddDate(-1, 0, 0))
	wantError(t, "earlier", err, "valid only from")
	_, err = sign.ReadPKCS12(file[:100], "right", nil, sample.Now)
	wantError(t, "a cut file", err, "no PKCS#12")
	_, err = sign.ReadPKCS12(nil, "right", nil, sample.Now)
	wantError(t, "nothing", err, "no PKCS#12")

	trust, err := pkcs12.Modern.EncodeTrustStore(issuers, "right")
	if err != nil {
		t.Fatal(err)
	}
	_, err = sign.ReadPKCS12(trust, "right", nil, sample.Now)
	wantError(t, "no key", err, "no PKCS#12")

	// An authority is not for signing code.
	other := sample.SelfSigned(t)
	mixed, err := pkcs12.Modern.Encode(other.Key, id.Cert, nil, "right")
	if err != nil {
		t.Fatal(err)
	}
	_, err = sign.ReadPKCS12(mixed, "right", nil, sample.Now)
	wantError(t, "another's key", err, "does not belong")
}

// TestKeys refuses keys with which macOS takes no signed code.
func TestKeys(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GODEBUG", "rsa1024min=0")
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key  crypto.Signer
		want string
	}{
		{edwards, "an Ed25519 one"},
		{short, "has 1024 bits"},
	} {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Sample"}, NotBefore: sample.Now.AddDate(0, 0, -1), NotAfter: sample.Now.AddDate(1, 0, 0),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, c.key.Public(), c.key)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		p12, err := pkcs12.Modern.Encode(c.key, cert, nil, "right")
		if err != nil {
			t.Fatal(err)
		}
		id, err := sign.ReadPKCS12(p12, "right", nil, sample.Now)
		wantError(t, "from PKCS#12", err, c.want)
		if id != nil {
			t.Error("an identity all the same")
		}
		secret, err := x509.MarshalPKCS8PrivateKey(c.key)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "identity.pem")
		content := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = sign.ReadFile(file, sample.Now)
		wantError(t, "from a file", err, c.want)
		wantError(t, "signing", sign.Bundle(t.TempDir(), sign.Options{Identity: &sign.Identity{Cert: cert, Key: c.key}, Now: sample.Now}), c.want)
	}
}

// TestChain refuses a Developer ID that would get another requirement than that of
// its team.
func TestChain(t *testing.T) {
	id := sample.DeveloperID(t, "TEAM123456")
	for want, chain := range map[string][]*x509.Certificate{
		"without its issuer": nil,
		"has not the mark":   {id.Chain[1]},
	} {
		broken := &sign.Identity{Cert: id.Cert, Chain: chain, Key: id.Key}
		err := sign.Bundle(t.TempDir(), sign.Options{Identity: broken, Now: sample.Now})
		var typed *sign.ChainError
		if !errors.As(err, &typed) {
			t.Errorf("%v", err)
		}
		wantError(t, want, err, want)
	}
	none := sample.DeveloperID(t, "")
	none.Cert.Subject.OrganizationalUnit = nil
	wantError(t, "no team", sign.Bundle(t.TempDir(), sign.Options{Identity: none, Now: sample.Now}), "does not name one team")
}

// TestOpenSSLPKCS12 reads what openssl writes, in its old and its new form.
func TestOpenSSLPKCS12(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	dir := filepath.Join(t.TempDir(), "private")
	place := filepath.Join(dir, "identity.pem")
	id, err := sign.Create(place, "Sample", sample.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"-legacy"}} {
		out := filepath.Join(dir, "identity.p12")
		cmd := exec.Command(openssl, append([]string{"pkcs12", "-export", "-in", place, "-inkey", place, "-out", out, "-passout", "pass:right"}, args...)...)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("openssl %v: %v\n%s", args, err, text)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		got, err := sign.ReadPKCS12(b, "right", nil, sample.Now)
		if err != nil || !got.Cert.Equal(id.Cert) || got.TeamID() != "" {
			t.Errorf("openssl %v: %v", args, err)
		}
		_, err = sign.ReadPKCS12(b, "wrong", nil, sample.Now)
		wantError(t, "a wrong password", err, "password")
	}
}

func TestCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	place := filepath.Join(dir, "identity.pem")
	made, err := sign.Create(place, "Sample", sample.Now)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(place)
	if err != nil || st.Mode() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	read, err := sign.ReadFile(place, sample.Now)
	if err != nil || !read.Cert.Equal(made.Cert) {
		t.Errorf("read back: %v", err)
	}
	whole, err := os.ReadFile(place)
	if err != nil {
		t.Fatal(err)
	}

	_, err = sign.Create(place, "Another", sample.Now)
	wantError(t, "a second one", err, "never replaced")
	if now, err := os.ReadFile(place); err != nil || string(now) != string(whole) {
		t.Error("the first one was touched")
	}

	for _, mark := range []string{".git", "go.mod"} {
		tree := t.TempDir()
		if err := os.Mkdir(filepath.Join(tree, mark), 0o700); err != nil {
			t.Fatal(err)
		}
		inside := filepath.Join(tree, "deep", "down", "identity.pem")
		_, err := sign.Create(inside, "Sample", sample.Now)
		wantError(t, "inside a tree", err, "source tree "+tree)
		if _, err := os.Stat(filepath.Dir(inside)); !errors.Is(err, fs.ErrNotExist) {
			t.Error("a directory was left")
		}
	}

	_, err = sign.ReadFile(place+"-missing", sample.Now)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	_, err = sign.ReadFile(place, sample.Now.AddDate(21, 0, 0))
	wantError(t, "an expired one", err, "expired on 2046-03-01")

	cert, _ := pem.Decode(whole)
	for name, c := range map[string]struct {
		content string
		mode    fs.FileMode
		want    string
	}{
		"open to others": {string(whole), 0o644, "read or written by others"},
		"no key":         {string(pem.EncodeToMemory(cert)), 0o600, "no certificate with its key"},
		"empty":          {"", 0o600, "no certificate with its key"},
		"a broken key":   {string(pem.EncodeToMemory(cert)) + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", 0o600, "asn1"},
		"too large":      {strings.Repeat("x", 1<<17), 0o600, "larger than"},
	} {
		file := filepath.Join(dir, "other.pem")
		if err := os.WriteFile(file, []byte(c.content), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil {
			t.Fatal(err)
		}
		_, err := sign.ReadFile(file, sample.Now)
		wantError(t, name, err, c.want)
	}
	_, err = sign.ReadFile(dir, sample.Now)
	wantError(t, "a directory", err, "no regular file")
	if os.Geteuid() != 0 { // who may read everything
		file := filepath.Join(dir, "unreadable.pem")
		if err := os.WriteFile(file, whole, 0); err != nil {
			t.Fatal(err)
		}
		_, err = sign.ReadFile(file, sample.Now)
		wantError(t, "unreadable", err, "permission denied")
	}
	link := filepath.Join(dir, "link.pem")
	if err := os.Symlink(place, link); err != nil {
		t.Fatal(err)
	}
	_, err = sign.ReadFile(link, sample.Now)
	wantError(t, "a link", err, "is a link")
}

// TestAgain signs what is signed already: the old signature is replaced, and the
// result is like that of signing once.
func TestAgain(t *testing.T) {
	app := sample.App(t, t.TempDir(), "v1.0.0", nil)
	first, err := verify.Bundle(app)
	if err != nil {
		t.Fatal(err)
	}
	id := sample.SelfSigned(t)
	for _, id := range []*sign.Identity{id, nil} {
		if err := sign.Bundle(app, sign.Options{Identity: id, Entitlements: []byte(sample.Entitlements), Now: sample.Now}); err != nil {
			t.Fatal(err)
		}
		if _, err := verify.Bundle(app); err != nil {
			t.Error(err)
		}
	}
	last, err := verify.Bundle(app)
	if err != nil || last.Requirement != first.Requirement {
		t.Errorf("signing ad hoc again gives %s, the first time %s (%v)", last.Requirement, first.Requirement, err)
	}
}

func TestRefused(t *testing.T) {
	options := sign.Options{Now: sample.Now}
	for name, c := range map[string]struct {
		change func(app string) error
		want   string
	}{
		"no bundle":             {os.RemoveAll, "no app bundle"},
		"Info.plist of no kind": {func(app string) error { return os.WriteFile(app+"/Contents/Info.plist", []byte("x"), 0o600) }, "Info.plist"},
		"no identifier": {func(app string) error {
			sample.Replace(t, app+"/Contents/Info.plist", "CFBundleIdentifier", "Other")
			return nil
		}, "CFBundleIdentifier"},
		"a program elsewhere": {func(app string) error {
			sample.Replace(t, app+"/Contents/Info.plist", ">program<", ">../program<")
			return nil
		}, "CFBundleExecutable"},
		"something nested": {func(app string) error {
			return os.CopyFS(app+"/Contents/Frameworks", os.DirFS(app+"/Contents/Resources"))
		}, "has no place"},
		"a link in the resources": {func(app string) error { return os.Symlink("x", app+"/Contents/Resources/y") }, "no regular file"},
		"a program that is none":  {func(app string) error { return os.WriteFile(app+"/Contents/MacOS/program", []byte("x"), 0o755) }, "neither a universal"},
	} {
		app := sample.Unsigned(t, t.TempDir(), "v1.0.0")
		if err := c.change(app); err != nil {
			t.Fatal(err)
		}
		wantError(t, name, sign.Bundle(app, options), c.want)
	}
	app := sample.Unsigned(t, t.TempDir(), "v1.0.0")
	for text, want := range map[string]string{
		"x":                                     "the entitlements",
		`<plist version="1.0"><array/></plist>`: "the entitlements",
		`<plist version="1.0"><dict><key>k</key><real>1.5</real></dict></plist>`: "entitlement k: a value of type float64",
	} {
		o := options
		o.Entitlements = []byte(text)
		wantError(t, text, sign.Bundle(app, o), want)
	}
	expired := options
	expired.Identity = sample.SelfSigned(t)
	expired.Now = sample.Now.Add(21 * 366 * 24 * time.Hour)
	wantError(t, "an expired identity", sign.Bundle(app, expired), "expired")
}
