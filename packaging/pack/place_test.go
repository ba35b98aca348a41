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
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"drawbridge/packaging/install"
	"drawbridge/packaging/sample"
	"drawbridge/packaging/sign"
	"drawbridge/packaging/verify"
)

// envPack makes this program the command itself.
const envPack = "DRAWBRIDGE_TEST_PACK"

func TestMain(m *testing.M) {
	if os.Getenv(envPack) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// ours writes a sample app that has Drawbridge's own name and identifier.
func ours(t *testing.T, dir, version string) string {
	t.Helper()
	app := sample.Unsigned(t, t.TempDir(), version)
	sample.Replace(t, filepath.Join(app, "Contents/Info.plist"), sample.Identifier, install.Identifier)
	if err := sign.Bundle(app, sign.Options{Now: sample.Now}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, install.Name)
	if err := os.CopyFS(to, os.DirFS(app)); err != nil {
		t.Fatal(err)
	}
	return to
}

func version(t *testing.T, app string) string {
	t.Helper()
	r, err := verify.Bundle(app)
	if err != nil {
		t.Error(err)
	}
	return r.Version
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

// TestOutRefused names places for the app where a person's things are. Nothing is
// built, and nothing is touched.
func TestOutRefused(t *testing.T) {
	t.Chdir("../..")
	t.Setenv("GO", "/none/go") // which would fail with another error
	home := t.TempDir()
	for _, d := range []string{"Applications/Other.app/Contents", "Notes.app", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(home, d), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, d, "precious"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("elsewhere", filepath.Join(home, "Link.app")); err != nil {
		t.Fatal(err)
	}
	sampled := sample.App(t, home, "v1.0.0", nil)
	kept := ours(t, filepath.Join(home, "kept"), "v1.0.0")
	if err := os.WriteFile(filepath.Join(kept, "precious"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before := names(t, home) + names(t, home+"/elsewhere")
	for out, want := range map[string]string{
		home + "/Applications":           "names no app: say where the app itself is to be, such as " + home + "/Applications/Drawbridge.app",
		home + "/Applications/":          "names no app",
		home + "/Applications/Other.app": "does not say what app it is",
		home + "/Notes.app":              "does not say what app it is",
		home + "/Link.app":               "no app but a link",
		home + "/Link.app/":              "no app but a link",
		sampled:                          "is not Drawbridge",
		kept:                             `"precious" lies beside Contents`,
	} {
		err := run(context.Background(), []string{"app", "-sign", "none", "-out", out}, &bytes.Buffer{}, os.Getenv)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-out %s: %v, want %q", out, err, want)
		}
	}
	for _, f := range []string{"Applications/Other.app/Contents", "Notes.app", "elsewhere", "Link.app", "kept/" + install.Name} {
		if _, err := os.Stat(filepath.Join(home, f, "precious")); err != nil {
			t.Error(err)
		}
	}
	if after := names(t, home) + names(t, home+"/elsewhere"); after != before {
		t.Errorf("left %q where there was %q", after, before)
	}
}

// TestBuildFails: the error is told, the app before stays, and nothing is left.
func TestBuildFails(t *testing.T) {
	t.Chdir("../..")
	t.Setenv("GO", "/bin/false")
	dir := t.TempDir()
	app := ours(t, dir, "v1.0.0")
	err := run(context.Background(), []string{"app", "-sign", "none", "-out", app}, &bytes.Buffer{}, os.Getenv)
	if err == nil || !strings.Contains(err.Error(), "/bin/false build: exit status 1") {
		t.Errorf("%v", err)
	}
	if got := names(t, dir); got != install.Name || version(t, app) != "1.0.0" {
		t.Errorf("left: %s", got)
	}
}

// TestStage replaces an app, after builds that were killed at any point.
func TestStage(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, install.Name)
	for _, d := range []string{".app-1/amd64", ".app-2/" + install.Name + "/Contents", ".app-3/mine", ".app-x/amd64", ".app-4"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	held, err := lock(filepath.Join(dir, ".app-4"), unix.LOCK_EX) // another build is at work there
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ours(t, filepath.Join(dir, ".app-5", before), "v1.0.0") // one was killed in between

	s, err := newStage(out)
	if err != nil {
		t.Fatal(err)
	}
	if v := version(t, out); v != "1.0.0" {
		t.Errorf("given back: %q", v)
	}
	for _, gone := range []string{".app-1", ".app-2", ".app-5"} {
		if _, err := os.Lstat(filepath.Join(dir, gone)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", gone, err)
		}
	}
	// Meanwhile a second one takes nothing from it.
	second, err := newStage(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.dir); err != nil {
		t.Error(err)
	}
	if err := second.remove(); err != nil {
		t.Error(err)
	}
	if err := s.replace(ours(t, s.dir, "v2.0.0"), out); err != nil {
		t.Fatal(err)
	}
	if v := version(t, out); v != "2.0.0" {
		t.Errorf("in place: %q", v)
	}
	if err := s.remove(); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); got != ".app-3 .app-4 .app-x "+install.Name {
		t.Errorf("left: %s", got)
	}

	// Where nothing was.
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	if s, err = newStage(out); err != nil {
		t.Fatal(err)
	}
	defer s.remove()
	if err := s.replace(ours(t, s.dir, "v3.0.0"), out); err != nil || version(t, out) != "3.0.0" {
		t.Error(err)
	}
}

// TestTakeTurns is a file system that cannot exchange directories.
func TestTakeTurns(t *testing.T) {
	out := ours(t, t.TempDir(), "v1.0.0")
	s, err := newStage(out)
	if err != nil {
		t.Fatal(err)
	}
	defer s.remove()
	if err := s.takeTurns(filepath.Join(s.dir, "none"), out); err == nil || version(t, out) != "1.0.0" {
		t.Errorf("the new one does not get there: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(s.dir, before)); err != nil {
		t.Fatal(err)
	}
	if err := s.takeTurns(ours(t, s.dir, "v2.0.0"), out); err != nil || version(t, out) != "2.0.0" {
		t.Error(err)
	}
}

// TestEnds has the command ended in the middle of a build that hangs.
func TestEnds(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	script := filepath.Join(dir, "go")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n: >"+started+"\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		_ = os.Remove(started)
		out := filepath.Join(dir, "out", install.Name)
		cmd := exec.Command(exe, "app", "-sign", "none", "-out", out)
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), envPack+"=1", "GO="+script)
		var text bytes.Buffer
		cmd.Stdout, cmd.Stderr = &text, &text
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(started); err == nil {
				break
			} else if time.Now().After(deadline) {
				_ = cmd.Process.Kill()
				t.Fatalf("it builds nothing: %s", &text)
			}
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%v: %v\n%s", s, err, &text)
		}
		if got := names(t, filepath.Dir(out)); got != "" {
			t.Errorf("%v: left %s", s, got)
		}
	}
}

// TestFinish: a command that hangs is not waited for without end.
func TestFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		hangs := make(chan struct{})
		defer close(hangs)
		time.AfterFunc(time.Second, cancel)
		err := finish(ctx, func() error { <-hangs; return nil })
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "hangs") {
			t.Errorf("%v", err)
		}
		own := errors.New("its own")
		if err := finish(ctx, func() error { time.Sleep(time.Second); return own }); !errors.Is(err, own) {
			t.Errorf("one that ends: %v", err)
		}
	})
}
