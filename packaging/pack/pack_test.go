package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"software.sslmate.com/src/go-pkcs12"

	"drawbridge/packaging/sample"
	"drawbridge/packaging/sign"
)

func TestFindIdentity(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	place := filepath.Join(dir, "identity.pem")
	env := map[string]string{}
	find := func() (*sign.Identity, error) {
		return findIdentity(place, func(name string) string { return env[name] }, sample.Now)
	}
	if id, err := find(); id != nil || err != nil {
		t.Errorf("with nothing there: %v, %v; want ad hoc", id, err)
	}
	own, err := sign.Create(place, "Sample", sample.Now)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := find(); err != nil || !id.Cert.Equal(own.Cert) {
		t.Errorf("with one of our own: %v", err)
	}
	developer := sample.DeveloperID(t, "TEAM123456")
	p12, err := pkcs12.Modern.Encode(developer.Key, developer.Cert, developer.Chain, "right")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "id.p12")
	for name, content := range map[string]string{file: string(p12), dir + "/right": "right\n", dir + "/wrong": "wrong\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
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
		{map[string]string{envPKCS12: dir + "/none", envPassword: "right"}, "no such file"},
		{map[string]string{envPKCS12: place, envPassword: "right"}, "no PKCS#12"},
	} {
		env = c.env
		id, err := find()
		switch {
		case c.want == "" && (err != nil || id.TeamID() != "TEAM123456"):
			t.Errorf("%v: %v", c.env, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: %v, want %q", c.env, err, c.want)
		case err != nil && strings.Contains(err.Error(), "right"):
			t.Errorf("the error tells the password: %v", err)
		}
	}
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
	if err := checkPin(t.TempDir(), "one", false); err == nil {
		t.Error("a directory was taken for a pin")
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
