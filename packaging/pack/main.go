// Command pack makes Drawbridge.app on any machine that has Go, signs it, checks
// it, and packs what is handed out. The Makefile's app, dist, identity and
// app-check call it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"drawbridge/bridge/private"
	"drawbridge/packaging/install"
	"drawbridge/packaging/sign"
	"drawbridge/packaging/verify"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := finish(ctx, func() error { return run(ctx, os.Args[1:], os.Stdout, os.Getenv) }); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "pack:", err)
		}
		os.Exit(1)
	}
}

// cleansUp is how long a command that was told to end may take over that.
const cleansUp = 2 * toolEnds

// finish runs a command. Told to end, it waits for what the command does then, and
// for nothing that hangs, such as a reader of its output that does not read.
func finish(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(cleansUp):
		return fmt.Errorf("%w; what it was at hangs and is left", context.Cause(ctx))
	}
}

func run(ctx context.Context, args []string, out io.Writer, getenv func(string) string) error {
	commands := map[string]func(context.Context, []string, io.Writer, func(string) string) error{
		"app": appCommand, "dist": distCommand, "identity": identityCommand, "verify": verifyCommand,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("usage: pack app|dist|identity|verify; see pack COMMAND -h")
	}
	return commands[args[0]](ctx, args[1:], out, getenv)
}

// appCommand builds, signs and checks the app.
func appCommand(ctx context.Context, args []string, out io.Writer, getenv func(string) string) (err error) {
	f := flag.NewFlagSet("pack app", flag.ContinueOnError)
	var o appOptions
	f.StringVar(&o.version, "version", "dev", "the `version`, as git describe prints it")
	f.StringVar(&o.out, "out", filepath.Join("build", install.Name), "where the app is put; an older one there is replaced")
	f.StringVar(&o.tray, "tray", "own", "the menu: own, or systray (on a Mac, with cgo)")
	how := f.String("sign", "auto", "auto (the identity that is there, else ad hoc), adhoc, or none")
	place := f.String("identity", "", "the identity `file` that pack identity made (default: in the user's configuration directory)")
	pin := f.String("pin", "", "the `file` that keeps the requirement (default: beside the identity)")
	repin := f.Bool("repin", false, "accept another requirement than the pinned one: permissions given to the app are lost")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("pack app takes no argument, not %q", f.Arg(0))
	}
	if !slices.Contains([]string{"auto", "adhoc", "none"}, *how) {
		return fmt.Errorf("-sign %q: use auto, adhoc or none", *how)
	}
	o.out = filepath.Clean(o.out)
	if err := o.check(); err != nil {
		return err
	}
	named := *place != ""
	if !named {
		if *place, err = identityPlace(); err != nil {
			return err
		}
	}
	if *pin == "" {
		*pin = filepath.Join(filepath.Dir(*place), "requirement")
	}
	// First, since a build takes a while.
	var id *sign.Identity
	if *how == "auto" {
		if id, err = findIdentity(source{place: *place, named: named, pin: *pin, getenv: getenv, now: time.Now()}); err != nil {
			return err
		}
	}
	st, err := newStage(o.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.remove()) }()
	app, err := build(ctx, st.dir, o)
	if err != nil {
		return err
	}
	if *how == "none" {
		if err := st.replace(app, o.out); err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s, not signed\n", o.out)
		return err
	}
	entitlements, err := private.ReadPlain(filepath.Join("packaging", "entitlements.plist"), 0, maxText)
	if err != nil {
		return fmt.Errorf("pack runs in the repository's own directory: %w", err)
	}
	if err := sign.Bundle(app, sign.Options{Identity: id, Entitlements: entitlements, Now: time.Now()}); err != nil {
		return err
	}
	r, err := verify.Bundle(app)
	if err != nil {
		return fmt.Errorf("the app that was just signed does not pass: %w", err)
	}
	if id != nil {
		if err := checkPin(*pin, r.Requirement, *repin); err != nil {
			return err
		}
	}
	if err := st.replace(app, o.out); err != nil {
		return err
	}
	fmt.Fprintln(out, o.out)
	writeReport(out, r)
	if r.Version == noVersion {
		fmt.Fprintf(out, "  note         %q is no version like v1.2.3, so the app says %s: tag the commit, or say VERSION=v1.2.3\n", o.version, noVersion)
	}
	if id == nil {
		fmt.Fprint(out, adHocWarning)
	}
	return nil
}

// noVersion is what an app says that was built from no tagged commit.
const noVersion = "0.0.0"

const adHocWarning = `
WARNING: signed ad hoc. macOS will take every build for another app, so that
permissions must be given again after each one. Make an identity once, with:
make identity
`

func writeReport(w io.Writer, r verify.Report) {
	fmt.Fprintf(w, "  identifier   %s, version %s, macOS %s or later\n", r.Identifier, r.Version, r.MinimumSystem)
	for _, s := range r.Slices {
		fmt.Fprintf(w, "  slice        %s, macOS %s or later, %d pages, cdhash %s\n", s.Arch, s.MinimumSystem, s.Pages, s.CDHash)
		fmt.Fprintf(w, "  links        %s\n", strings.Join(s.Libraries, ", "))
	}
	if len(r.Slices) == 1 {
		fmt.Fprintf(w, "  note         it is thin: it starts on Macs with %s alone\n", r.Slices[0].Arch)
	}
	fmt.Fprintf(w, "  resources    %d sealed\n", r.Resources)
	for e, v := range r.Entitlements {
		fmt.Fprintf(w, "  entitlement  %s: %v\n", e, v)
	}
	fmt.Fprintf(w, "  signed       %s\n", r.Signature)
	fmt.Fprintf(w, "  requirement  %s\n", r.Requirement)
}

// distCommand packs a finished app.
func distCommand(_ context.Context, args []string, out io.Writer, _ func(string) string) error {
	f := flag.NewFlagSet("pack dist", flag.ContinueOnError)
	app := f.String("app", filepath.Join("build", install.Name), "the app")
	dir := f.String("out", filepath.Join("build", "dist"), "the `directory` that the files are put in")
	address := f.String("url", "", "where the zip will be, for the cask; #{version} in it is the version")
	homepage := f.String("homepage", "", "the page about the app, for the cask")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("pack dist takes no argument, not %q", f.Arg(0))
	}
	if err := checkAddresses(*address, *homepage); err != nil {
		return err
	}
	r, err := verify.Bundle(*app)
	if err != nil {
		return err
	}
	for _, arch := range arches {
		if !r.StartsOn(arch) {
			return fmt.Errorf("%s does not start on every Mac, since it has no part for %s: make app makes one that does", *app, arch)
		}
	}
	d := handedOut{dir: *dir, app: *app, version: r.Version, url: *address, homepage: *homepage}
	if err := d.make(out); err != nil {
		return err
	}
	if r.AdHoc {
		fmt.Fprint(out, adHocWarning)
	}
	return nil
}

// checkAddresses refuses what cannot be in a cask, where an address is in a string
// of Ruby. Both are given, or neither.
func checkAddresses(zip, homepage string) error {
	if zip == "" && homepage == "" {
		return nil
	}
	for _, a := range []struct{ flag, text string }{{"url", zip}, {"homepage", homepage}} {
		if a.text == "" {
			return fmt.Errorf("-%s is missing: a cask needs both -url and -homepage", a.flag)
		}
		plain := strings.ReplaceAll(a.text, "#{version}", "1")
		u, err := url.Parse(plain)
		if err != nil || u.Scheme != "https" || u.Host == "" || strings.ContainsAny(plain, "\"\\#") {
			return fmt.Errorf("-%s: %q is no address of a cask: https://HOST/PATH is", a.flag, a.text)
		}
	}
	return nil
}

// identityCommand makes an identity, once.
func identityCommand(_ context.Context, args []string, out io.Writer, _ func(string) string) error {
	f := flag.NewFlagSet("pack identity", flag.ContinueOnError)
	place := f.String("out", "", "the `file` (default: in the user's configuration directory)")
	name := f.String("name", "Drawbridge local signing", "the name in the certificate")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("pack identity takes no argument, not %q: name the file with -out", f.Arg(0))
	}
	if *place == "" {
		var err error
		if *place, err = identityPlace(); err != nil {
			return err
		}
	}
	id, err := sign.Create(*place, *name, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `Made the identity %q, valid until %s:
  %s

Keep a copy of that file somewhere safe, and show it to nobody. macOS ties the
permissions that you give Drawbridge to it. If it is lost, the next build is
another app to macOS, and Accessibility, Screen Recording and Input Monitoring must
be given again.
Who has it can sign a program that macOS takes for your Drawbridge.
`, *name, id.Cert.NotAfter.Format(time.DateOnly), *place)
	return nil
}

// verifyCommand checks an app and says what it is.
func verifyCommand(_ context.Context, args []string, out io.Writer, _ func(string) string) error {
	if len(args) != 1 {
		return errors.New("usage: pack verify APP")
	}
	r, err := verify.Bundle(args[0])
	if err != nil {
		return err
	}
	fmt.Fprintln(out, args[0])
	writeReport(out, r)
	return nil
}
