package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"software.sslmate.com/src/go-pkcs12"

	"drawbridge/packaging/macho"
	"drawbridge/packaging/sample"
	"drawbridge/packaging/sign"
)

func TestFindIdentity(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	place, pin := filepath.Join(dir, "identity.pem"), filepath.Join(dir, "requirement")
	env := map[string]string{}
	named := false
	find := func() (*sign.Identity, error) {
		return findIdentity(source{place: place, named: named, pin: pin, getenv: func(name string) string { return env[name] }, now: sample.Now})
	}
	fails := func(what, want string) {
		t.Helper()
		if id, err := find(); id != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", what, id, err, want)
		}
	}
	if id, err := find(); id != nil || err != nil {
		t.Errorf("with nothing there: %v, %v; want ad hoc", id, err)
	}
	named = true
	fails("a named one that is not there", "no such file")
	named = false
	own, err := sign.Create(place, "Sample", sample.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, named = range []bool{true, false} {
		if id, err := find(); err != nil || !id.Cert.Equal(own.Cert) {
			t.Errorf("with one of our own: %v", err)
		}
	}

	// It signed, and was lost.
	if err := checkPin(pin, "one", false); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(place, place+".lost"); err != nil {
		t.Fatal(err)
	}
	fails("one that was lost", "a requirement is pinned in "+pin)
	fails("one that was lost", "-sign adhoc")
	if err := os.Symlink("identity.pem.none", place); err != nil {
		t.Fatal(err)
	}
	fails("a link to nothing", "is a link")
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(place, 0o600); err != nil {
		t.Fatal(err)
	}
	fails("a pipe", "is no regular file")
	if err := os.Rename(place+".lost", place); err != nil {
		t.Fatal(err)
	}

	developer := sample.DeveloperID(t, "TEAM123456")
	p12 := func(chain []*x509.Certificate) string {
		b, err := pkcs12.Modern.Encode(developer.Key, developer.Cert, chain, "right")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	file, bare, pipe := filepath.Join(dir, "id.p12"), filepath.Join(dir, "bare.p12"), filepath.Join(dir, "pipe")
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: developer.Chain[0].Raw}))
	for name, content := range map[string]string{
		file: p12(developer.Chain), bare: p12(nil), dir + "/right": "right\n", dir + "/wrong": "wrong\n",
		dir + "/authority.pem": authority, dir + "/authority.cer": string(developer.Chain[0].Raw), dir + "/root.cer": string(developer.Chain[1].Raw),
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env  map[string]string
		want string // of the error
	}{
		{map[string]string{envPKCS12: file, envPassword: "right"}, ""},
		{map[string]string{envPKCS12: file, envPasswordFile: dir + "/right"}, ""},
		{map[string]string{envPKCS12: file, envPassword: "wrong"}, "the password does not open"},
		{map[string]string{envPKCS12: file, envPasswordFile: dir + "/wrong"}, "the password does not open"},
		{map[string]string{envPKCS12: file}, "the password does not open"},
		{map[string]string{envPKCS12: file, envPassword: "right", envPasswordFile: dir + "/right"}, "both set"},
		{map[string]string{envPKCS12: file, envPasswordFile: dir + "/none"}, "no such file"},
		{map[string]string{envPKCS12: file, envPasswordFile: pipe}, "no regular file"},
		{map[string]string{envPKCS12: dir + "/none", envPassword: "right"}, "no such file"},
		{map[string]string{envPKCS12: pipe, envPassword: "right"}, "no regular file"},
		{map[string]string{envPKCS12: dir, envPassword: "right"}, "no regular file"},
		{map[string]string{envPKCS12: place, envPassword: "right"}, "no PKCS#12"},
		{map[string]string{envPKCS12: bare, envPassword: "right"}, "select the certificate and \"Developer ID Certification Authority\" together"},
		{map[string]string{envPKCS12: bare, envPassword: "right", envChain: dir + "/authority.pem"}, ""},
		{map[string]string{envPKCS12: bare, envPassword: "right", envChain: dir + "/authority.cer"}, ""},
		{map[string]string{envPKCS12: bare, envPassword: "right", envChain: dir + "/root.cer"}, "without its issuer"},
		{map[string]string{envPKCS12: bare, envPassword: "right", envChain: dir + "/right"}, "no file of certificates"},
		{map[string]string{envPKCS12: bare, envPassword: "right", envChain: pipe}, "no regular file"},
		{map[string]string{envPassword: "right"}, envPKCS12 + ", which it is for, is not"},
		{map[string]string{envPasswordFile: dir + "/right"}, envPKCS12 + ", which it is for, is not"},
		{map[string]string{envChain: dir + "/authority.pem"}, envPKCS12 + ", which it is for, is not"},
	} {
		env = c.env
		id, err := find()
		switch {
		case c.want == "" && (err != nil || id.TeamID() != "TEAM123456"):
			t.Errorf("%v: %v", c.env, err)
		case c.want != "" && (id != nil || err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: %v, want %q", c.env, err, c.want)
		case err != nil && c.env[envPassword] != "" && strings.Contains(strings.ReplaceAll(err.Error(), dir+"/right", ""), c.env[envPassword]):
			t.Errorf("the error tells the password: %v", err)
		}
	}
	env, named = map[string]string{envPKCS12: file, envPassword: "right"}, true
	fails("two that are named", "keep one")
}

func TestPin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "requirement")
	for _, c := range []struct {
		requirement string
		repin       bool
		want        string
	}{
		{"one", false, ""},
		{"one", false, ""},
		{"two", false, "permissions given to Drawbridge would be lost"},
		{"one", false, ""}, // the refused one was not pinned
		{"two", true, ""},
		{"two", false, ""},
	} {
		err := checkPin(file, c.requirement, c.repin)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{t.TempDir(), pipe} {
		if err := checkPin(place, "one", true); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s was taken for a pin: %v", place, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	const good = "https://example.test/v#{version}/a.zip"
	for _, c := range []struct{ zip, homepage, want string }{
		{"", "", ""},
		{good, "https://example.test", ""},
		{good, "", "-homepage is missing"},
		{"", "https://example.test", "-url is missing"},
		{"http://example.test/a.zip", "https://example.test", "-url:"},
		{"https:///a.zip", "https://example.test", "-url:"},
		{good, "example.test", "-homepage:"},
		{good, `https://example.test/"; exit`, "-homepage:"},
		{good, "https://example.test/\\", "-homepage:"},
		{good, "https://example.test/\n", "-homepage:"},
		{good, "https://example.test/#{exit}", "-homepage:"},
	} {
		err := checkAddresses(c.zip, c.homepage)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q and %q: %v, want %q", c.zip, c.homepage, err, c.want)
		}
	}
}

// TestDist packs an app and has sha256sum and unzip look at the result, where
// they are installed.
func TestDist(t *testing.T) {
	dir := t.TempDir()
	app := sample.App(t, dir, "v1.2.3", nil)
	out := filepath.Join(dir, "dist")
	var text bytes.Buffer
	dist := func(more ...string) error {
		return run(context.Background(), append([]string{"dist", "-app", app, "-out", out}, more...), &text, os.Getenv)
	}
	addresses := []string{"-url", "https://example.test/Drawbridge-#{version}.zip", "-homepage", "https://example.test"}
	if err := dist(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "WARNING: signed ad hoc") {
		t.Errorf("no warning in %q", text.String())
	}
	first, err := os.ReadFile(filepath.Join(out, "Drawbridge-1.2.3.zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := dist(addresses...); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(filepath.Join(out, "Drawbridge-1.2.3.zip")); err != nil || !bytes.Equal(first, second) {
		t.Errorf("packed again, it differs (%v)", err)
	}
	if sum, err := exec.LookPath("sha256sum"); err == nil {
		cmd := exec.Command(sum, "-c", "Drawbridge-1.2.3.zip.sha256")
		cmd.Dir = out
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("sha256sum: %v\n%s", err, text)
		}
	}
	cask, err := os.ReadFile(filepath.Join(out, "drawbridge.rb"))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := os.ReadFile(filepath.Join(out, "Drawbridge-1.2.3.zip.sha256"))
	if err != nil || !strings.Contains(string(cask), `sha256 "`+string(digest[:64])+`"`) {
		t.Errorf("the cask has another digest (%v)\n%s", err, cask)
	}
	for _, want := range []string{`url "https://example.test/Drawbridge-#{version}.zip"`, `homepage "https://example.test"`} {
		if !strings.Contains(string(cask), want) {
			t.Errorf("no %s in\n%s", want, cask)
		}
	}
	// Without addresses there is none, not the one from before either.
	text.Reset()
	if err := dist(); err != nil || !strings.Contains(text.String(), "no Homebrew cask") {
		t.Errorf("%v: %s", err, text.String())
	}
	if _, err := os.Stat(filepath.Join(out, "drawbridge.rb")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cask for no address: %v", err)
	}
	if unzip, err := exec.LookPath("unzip"); err == nil {
		to := t.TempDir()
		if text, err := exec.Command(unzip, "-q", filepath.Join(out, "Drawbridge-1.2.3.zip"), "-d", to).CombinedOutput(); err != nil {
			t.Fatalf("unzip: %v\n%s", err, text)
		}
		if err := run(context.Background(), []string{"verify", filepath.Join(to, "Sample.app")}, &text, os.Getenv); err != nil {
			t.Errorf("unpacked: %v", err)
		}
	}
	// What is not from an earlier time stays.
	zip := filepath.Join(out, "Drawbridge-1.2.3.zip")
	for _, c := range []struct {
		path    string
		content string
		args    []string
		want    string // of the error; empty: it stays, and all goes well
	}{
		{zip, "precious", nil, "Drawbridge-1.2.3.zip is not of an earlier make dist"},
		{zip + ".sha256", "precious", nil, "zip.sha256 is not of an earlier make dist"},
		{filepath.Join(out, "drawbridge.rb"), string(cask) + "# mine\n", addresses, "drawbridge.rb is not of an earlier make dist"},
		{filepath.Join(out, "drawbridge.rb"), string(cask) + "# mine\n", nil, ""},
	} {
		kept, had := os.ReadFile(c.path)
		if err := os.WriteFile(c.path, []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		err := dist(c.args...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
		if b, err := os.ReadFile(c.path); err != nil || string(b) != c.content {
			t.Errorf("%s: it is %q now, %v", c.path, b, err)
		}
		if err := os.Remove(c.path); err != nil {
			t.Fatal(err)
		}
		// Nor is it looked for behind a link.
		if err := os.Symlink("elsewhere", c.path); err != nil {
			t.Fatal(err)
		}
		if err := dist(c.args...); c.want != "" && err == nil {
			t.Errorf("%s: a link was replaced", c.path)
		}
		if err := os.Remove(c.path); err != nil {
			t.Fatal(err)
		}
		if had == nil {
			if err := os.WriteFile(c.path, kept, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := names(t, out); got != "Drawbridge-1.2.3.zip Drawbridge-1.2.3.zip.sha256" {
		t.Errorf("left: %s", got)
	}
	// An app for one kind of Mac alone is not for everybody.
	slices, err := macho.Split(sample.Program(t))
	if err != nil {
		t.Fatal(err)
	}
	thin := sample.Unsigned(t, t.TempDir(), "v1.2.3")
	if err := os.WriteFile(filepath.Join(thin, "Contents/MacOS/program"), slices[1], 0o755); err != nil {
		t.Fatal(err)
	}
	if err := sign.Bundle(thin, sign.Options{Now: sample.Now}); err != nil {
		t.Fatal(err)
	}
	if err := dist("-app", thin); err == nil || !strings.Contains(err.Error(), "no part for amd64") {
		t.Errorf("a thin app: %v", err)
	}
	text.Reset()
	if err := run(context.Background(), []string{"verify", thin}, &text, os.Getenv); err != nil || !strings.Contains(text.String(), "starts on Macs with arm64 alone") {
		t.Errorf("a thin app: %v\n%s", err, text.String())
	}
	// What does not verify is not handed out.
	sample.Replace(t, filepath.Join(app, "Contents/Info.plist"), "1.2.3", "1.2.4")
	if err := dist(); err == nil {
		t.Error("a changed app was packed")
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"", "usage"},
		{"fly", "usage"},
		{"app more", "takes no argument"},
		{"app -sign perhaps", "auto, adhoc or none"},
		{"verify", "usage"},
		{"verify nothing.app", "no app bundle"},
		{"dist -app nothing.app", "no app bundle"},
	} {
		err := run(context.Background(), strings.Fields(c.args), &bytes.Buffer{}, os.Getenv)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("pack %s: %v, want %q", c.args, err, c.want)
		}
	}
}
