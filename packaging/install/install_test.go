package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"howett.net/plist"

	"drawbridge/packaging/macho"
	"drawbridge/packaging/sample"
	"drawbridge/packaging/sign"
	"drawbridge/packaging/verify"
)

// The environment that makes this program an install that ends early.
const (
	envSource = "DRAWBRIDGE_TEST_INSTALL_SOURCE"
	envDir    = "DRAWBRIDGE_TEST_INSTALL_DIR"
	envKillAt = "DRAWBRIDGE_TEST_INSTALL_KILL_AT" // the number of the step
	envLimit  = "DRAWBRIDGE_TEST_INSTALL_LIMIT"   // no file may be larger
	envMount  = "DRAWBRIDGE_TEST_INSTALL_MOUNT"   // see mountAnew
)

// mountAnew mounts a directory anew, for this process alone: "ro" to be read only,
// "full" with little room. It is there where tests can do that.
var mountAnew func(how, dir string) error

func TestMain(m *testing.M) {
	if os.Getenv(envSource) == "" {
		os.Exit(m.Run())
	}
	killAt, _ := strconv.Atoi(os.Getenv(envKillAt))
	if limit, err := strconv.ParseUint(os.Getenv(envLimit), 10, 64); err == nil {
		// Go ignores SIGXFSZ; a write past the limit fails like one on a full disk.
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			panic(err)
		}
	}
	dir := os.Getenv(envDir)
	if how := os.Getenv(envMount); how != "" {
		if err := mountAnew(how, dir); err != nil {
			fmt.Println("cannot mount:", err)
			os.Exit(1)
		}
	}
	steps := 0
	_, err := Install(Options{
		Source: os.Getenv(envSource), Dir: dir,
		step: func(what string) {
			if steps++; steps == killAt {
				fmt.Println("killed before:", what)
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		},
	})
	if left, _ := filepath.Glob(filepath.Join(dir, staging+"*")); len(left) != 0 {
		fmt.Println("left:", left)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// installElsewhere installs in a process of its own.
func installElsewhere(source, dir string, env ...string) (string, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envSource+"="+source, envDir+"="+dir)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// names are the entries of a directory.
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

func version(t *testing.T, dir string) string {
	t.Helper()
	r, err := verify.Bundle(filepath.Join(dir, Name))
	if err != nil {
		t.Fatal(err)
	}
	return r.Version
}

// one and two are two versions of one app.
func versions(t *testing.T) (one, two string, id *sign.Identity) {
	id = sample.SelfSigned(t)
	return sample.App(t, t.TempDir(), "v1.0.0", id), sample.App(t, t.TempDir(), "v2.0.0", id), id
}

func TestInstallAndReplace(t *testing.T) {
	one, two, _ := versions(t)
	dir := filepath.Join(t.TempDir(), "Applications")
	r, err := Install(Options{Source: one, Dir: dir})
	if err != nil || r.Version != "1.0.0" || r.Replaced != "" || r.App != filepath.Join(dir, Name) {
		t.Fatalf("%+v, %v", r, err)
	}
	link := filepath.Join(t.TempDir(), "latest.app")
	if err := os.Symlink(two, link); err != nil {
		t.Fatal(err)
	}
	if r, err = Install(Options{Source: link, Dir: dir}); err != nil || r.Replaced != "1.0.0" || r.PermissionsLost {
		t.Fatalf("%+v, %v", r, err)
	}
	if v := version(t, dir); v != "2.0.0" {
		t.Errorf("version %s is in place", v)
	}
	// From its own place there is nothing to do.
	if r, err = Install(Options{Source: r.App, Dir: dir}); err != nil || !r.Unchanged {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := names(t, dir); got != Name {
		t.Errorf("left behind: %s", got)
	}
	st, err := os.Stat(filepath.Join(dir, Name, "Contents/MacOS/program"))
	if err != nil || st.Mode() != 0o755 {
		t.Errorf("the program has mode %v, %v", st.Mode(), err)
	}
}

func TestIdentity(t *testing.T) {
	one, _, _ := versions(t)
	other := sample.App(t, t.TempDir(), "v2.0.0", sample.SelfSigned(t))
	dir := t.TempDir()
	if _, err := Install(Options{Source: one, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	_, err := Install(Options{Source: other, Dir: dir})
	var identity *IdentityError
	if !errors.As(err, &identity) || !strings.Contains(err.Error(), "would be lost") {
		t.Fatalf("another identity: %v", err)
	}
	if v := version(t, dir); v != "1.0.0" {
		t.Errorf("refused, and %s is in place", v)
	}
	r, err := Install(Options{Source: other, Dir: dir, NewIdentity: true})
	if err != nil || !r.PermissionsLost {
		t.Fatalf("%+v, %v", r, err)
	}
	// Ad hoc builds are all different, unless they are the same build.
	adHoc, again := sample.App(t, t.TempDir(), "v2.0.0", nil), sample.App(t, t.TempDir(), "v3.0.0", nil)
	if _, err := Install(Options{Source: adHoc, Dir: dir, NewIdentity: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(Options{Source: again, Dir: dir}); !errors.As(err, &identity) {
		t.Errorf("another ad hoc build: %v", err)
	}
	if _, err := Install(Options{Source: adHoc, Dir: dir}); err != nil {
		t.Errorf("the same ad hoc build: %v", err)
	}
}

// TestDamaged replaces a damaged app of the same identity: that repairs it.
func TestDamaged(t *testing.T) {
	one, two, _ := versions(t)
	dir := t.TempDir()
	if _, err := Install(Options{Source: one, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, Name, "Contents/Resources/Sample.icns"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(Options{Source: two, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if v := version(t, dir); v != "2.0.0" {
		t.Errorf("version %s is in place", v)
	}
}

// TestForeign puts things of a person where the app goes. Neither an install,
// whatever its flags, nor an uninstall nor a build takes them away.
func TestForeign(t *testing.T) {
	one, _, _ := versions(t)
	write := func(t *testing.T, file string) {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("precious"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	app := func(t *testing.T, target string) {
		if err := os.CopyFS(target, os.DirFS(one)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		put      func(t *testing.T, target string)
		precious string
		want     string
	}{
		"a directory":          {func(t *testing.T, target string) { write(t, target+"/notes") }, "notes", "does not say what app it is"},
		"an empty directory":   {func(t *testing.T, target string) { os.Mkdir(target, 0o755) }, "", "does not say what app it is"},
		"no Info.plist":        {func(t *testing.T, target string) { app(t, target); os.Remove(target + "/Contents/Info.plist") }, "Contents/PkgInfo", "does not say what app it is"},
		"Info.plist of no app": {func(t *testing.T, target string) { app(t, target); write(t, target+"/Contents/Info.plist") }, "Contents/PkgInfo", "does not say what app it is"},
		"another app": {func(t *testing.T, target string) {
			app(t, target)
			sample.Replace(t, target+"/Contents/Info.plist", sample.Identifier, "com.example.other")
		}, "Contents/PkgInfo", `is not Drawbridge: its identifier is "com.example.other"`},
		"a file beside Contents": {func(t *testing.T, target string) { app(t, target); write(t, target+"/notes") }, "notes", "holds what is not the app's"},
		"a file":                 {func(t *testing.T, target string) { write(t, target) }, "", "no app but a file"},
		"a link": {func(t *testing.T, target string) {
			write(t, filepath.Join(filepath.Dir(target), "elsewhere/notes"))
			os.Symlink("elsewhere", target)
		}, "notes", "no app but a link"},
	} {
		dir := t.TempDir()
		target := filepath.Join(dir, Name)
		c.put(t, target)
		before := names(t, dir)
		_, installed := Install(Options{Source: one, Dir: dir, NewIdentity: true, Downgrade: true})
		_, uninstalled := Uninstall(dir, sample.Identifier)
		built := CheckReplaceable(target)
		if strings.Contains(c.want, "identifier") || strings.Contains(c.want, "holds") {
			built = nil // to a build, a sample is another's app, too
		} else if built == nil {
			t.Errorf("%s: a build would replace it", name)
		}
		for _, err := range []error{installed, uninstalled, built} {
			if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && (installed == nil || uninstalled == nil) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
		if _, err := os.Stat(filepath.Join(target, c.precious)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if after := names(t, dir); after != before {
			t.Errorf("%s: left %q where there was %q", name, after, before)
		}
	}
}

// TestLeft: what a killed install left goes, and what only looks like it stays.
func TestLeft(t *testing.T) {
	one, _, _ := versions(t)
	dir := filepath.Join(t.TempDir(), "with [brackets]*")
	stays := []string{staging + "backup", staging + "12/mine", staging + "13x", "x" + staging + "1", staging}
	for _, d := range append(stays, staging+"1/"+Name+"/Contents", staging+"2") {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, staging+"14")); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(Options{Source: one, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	for _, d := range append(stays, staging+"14") {
		if _, err := os.Lstat(filepath.Join(dir, d)); err != nil {
			t.Error(err)
		}
	}
	for _, d := range []string{staging + "1", staging + "2"} {
		if _, err := os.Lstat(filepath.Join(dir, d)); err == nil {
			t.Errorf("%s is left", d)
		}
	}
}

func TestDowngrade(t *testing.T) {
	one, two, id := versions(t)
	dir := t.TempDir()
	if _, err := Install(Options{Source: two, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	_, err := Install(Options{Source: one, Dir: dir})
	var down *DowngradeError
	if !errors.As(err, &down) || down.Old != "2.0.0" || down.New != "1.0.0" || !strings.Contains(err.Error(), "refuse the state") {
		t.Fatalf("an older version: %v", err)
	}
	if v := version(t, dir); v != "2.0.0" {
		t.Errorf("refused, and %s is in place", v)
	}
	if r, err := Install(Options{Source: one, Dir: dir, Downgrade: true}); err != nil || !r.Downgraded || r.Replaced != "2.0.0" {
		t.Errorf("%+v, %v", r, err)
	}
	// Nobody knows how old a build of no tagged commit is.
	for _, v := range []string{"abcdef", "v1.0.0-3-gabcdef", "abcdef"} {
		if r, err := Install(Options{Source: sample.App(t, t.TempDir(), v, id), Dir: dir}); err != nil || r.Downgraded {
			t.Errorf("%s: %+v, %v", v, r, err)
		}
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"1.0.0", "2.0.0", true}, {"2.0.0", "1.0.0", false}, {"1.0.0", "1.0.0", false},
		{"1.9.0", "1.10.0", true}, {"1.2.3", "1.2.3.4", true}, {"1.2.3.4", "1.2.3", false}, {"1.2", "1.2.0", false},
		{"0.0.0", "1.0.0", false}, {"1.0.0", "0.0.0", false}, {"", "1.0.0", false}, {"1.0.0", "one", false}, {"-1", "1", false},
	} {
		if got := older(verify.Report{Build: c.a}, verify.Report{Build: c.b}); got != c.want {
			t.Errorf("%q before %q: %v", c.a, c.b, got)
		}
	}
}

// TestArch: an app for the other kind of Mac alone is not installed.
func TestArch(t *testing.T) {
	app := sample.Unsigned(t, t.TempDir(), "v1.0.0")
	slices, err := macho.Split(sample.Program(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(app, "Contents/MacOS/program"), slices[0], 0o755); err != nil {
		t.Fatal(err)
	}
	if err := sign.Bundle(app, sign.Options{Now: sample.Now}); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(Options{Source: app, Dir: t.TempDir(), Arch: "arm64"}); err == nil || !strings.Contains(err.Error(), "no part for arm64, only for amd64") {
		t.Errorf("%v", err)
	}
	if _, err := Install(Options{Source: app, Dir: t.TempDir(), Arch: "amd64"}); err != nil {
		t.Error(err)
	}
}

// TestLeftover: what Finder left in the bundle is not installed with it.
func TestLeftover(t *testing.T) {
	one, _, _ := versions(t)
	for _, f := range []string{".DS_Store", "Contents/.DS_Store"} {
		if err := os.WriteFile(filepath.Join(one, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if _, err := Install(Options{Source: one, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if got := names(t, filepath.Join(dir, Name)) + " " + names(t, filepath.Join(dir, Name, "Contents")); strings.Contains(got, ".DS_Store") {
		t.Errorf("installed: %s", got)
	}
}

func TestRefused(t *testing.T) {
	one, two, _ := versions(t)
	for name, c := range map[string]struct {
		prepare func(dir string) (source string, err error)
		want    string
	}{
		"a source that is none": {func(dir string) (string, error) { return dir + "/none.app", nil }, "not whole"},
		"a source that was edited": {func(string) (string, error) {
			app := filepath.Join(t.TempDir(), "Edited.app")
			if err := os.CopyFS(app, os.DirFS(two)); err != nil {
				return "", err
			}
			return app, os.WriteFile(app+"/Contents/Resources/Sample.icns", []byte("x"), 0o644)
		}, "Sample.icns was changed"},
		"a link in its place": {func(dir string) (string, error) { return one, os.Symlink("elsewhere", filepath.Join(dir, Name)) }, "no app but a link"},
		"a file in its place": {func(dir string) (string, error) { return one, os.WriteFile(filepath.Join(dir, Name), nil, 0o600) }, "no app but a file"},
	} {
		dir := t.TempDir()
		source, err := c.prepare(dir)
		if err != nil {
			t.Fatal(err)
		}
		before := names(t, dir)
		if _, err := Install(Options{Source: source, Dir: dir}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if after := names(t, dir); after != before {
			t.Errorf("%s: left %q where there was %q", name, after, before)
		}
	}
	// Where nothing can be made, for root neither.
	if _, err := os.Stat("/proc/self"); err == nil {
		if _, err := Install(Options{Source: one, Dir: "/proc"}); err == nil {
			t.Error("installed into /proc")
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(Options{Source: one, Dir: file}); err == nil {
		t.Error("installed into a file")
	}
}

// TestTwoAtOnce begins an install in the middle of another.
func TestTwoAtOnce(t *testing.T) {
	one, two, _ := versions(t)
	dir := t.TempDir()
	asked := false
	_, err := Install(Options{Source: one, Dir: dir, step: func(what string) {
		if what != "replace" {
			return
		}
		asked = true
		if out, err := installElsewhere(two, dir); err == nil || !strings.Contains(out, "another install is at work") {
			t.Errorf("the second one: %v, %q", err, out)
		}
		if _, err := Uninstall(dir, sample.Identifier); err == nil || !strings.Contains(err.Error(), "another install is at work") {
			t.Errorf("an uninstall meanwhile: %v", err)
		}
	}})
	if err != nil || !asked {
		t.Fatalf("the first one: %v", err)
	}
	if v := version(t, dir); v != "1.0.0" {
		t.Errorf("version %s is in place", v)
	}
}

// memoryDir is a directory in memory where the system has one: an install writes
// through to the disk, and a test that makes a hundred of them would wait for it.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "drawbridge-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestKilled kills an install before each of its steps. The place must hold a
// whole app each time, old or new, and the next install must put all in order.
func TestKilled(t *testing.T) {
	one, two, _ := versions(t)
	for _, first := range []bool{false, true} {
		dir := filepath.Join(memoryDir(t), "Applications")
		seen := map[string]int{}
		for n := 1; ; n++ {
			if n > 100 {
				t.Fatal("it never ends")
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if !first {
				if err := os.CopyFS(filepath.Join(dir, Name), os.DirFS(one)); err != nil {
					t.Fatal(err)
				}
			}
			out, err := installElsewhere(two, dir, envKillAt+"="+strconv.Itoa(n))
			if err == nil {
				break // it has fewer steps
			}
			if !strings.Contains(out, "killed before:") {
				t.Fatalf("step %d: %v, %s", n, err, out)
			}
			r, err := verify.Bundle(filepath.Join(dir, Name))
			switch {
			case first && errors.Is(err, fs.ErrNotExist):
				seen["none"]++
			case err != nil:
				t.Errorf("%s: no whole app: %v", strings.TrimSpace(out), err)
			default:
				seen[r.Version]++
			}
			if _, err := Install(Options{Source: two, Dir: dir}); err != nil {
				t.Errorf("%s: the next install: %v", strings.TrimSpace(out), err)
			}
			if got := names(t, dir); got != Name || version(t, dir) != "2.0.0" {
				t.Errorf("%s: the next install leaves %s", strings.TrimSpace(out), got)
			}
		}
		before := "1.0.0"
		if first {
			before = "none"
		}
		if seen[before] < 10 || seen["2.0.0"] < 2 || len(seen) != 2 {
			t.Errorf("found %v; the kills must come before and after the exchange", seen)
		}
	}
}

// TestFullDisk has every write past a size fail. The old app stays, and nothing is
// left beside it.
func TestFullDisk(t *testing.T) {
	one, two, _ := versions(t)
	dir := t.TempDir()
	if _, err := Install(Options{Source: one, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	out, err := installElsewhere(two, dir, envLimit+"=100000")
	if err == nil || !strings.Contains(out, "copying the app") {
		t.Errorf("%v, %s", err, out)
	}
	if got := names(t, dir); got != Name || version(t, dir) != "1.0.0" {
		t.Errorf("it leaves %s", got)
	}
}

func TestUninstall(t *testing.T) {
	one, _, _ := versions(t)
	dir := t.TempDir()
	if removed, err := Uninstall(dir, sample.Identifier); removed || err != nil {
		t.Errorf("nothing there: %v, %v", removed, err)
	}
	if removed, err := Uninstall(dir+"/none", sample.Identifier); removed || err != nil {
		t.Errorf("no directory: %v, %v", removed, err)
	}
	if _, err := Install(Options{Source: one, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	// What a killed install left goes too.
	if err := os.Mkdir(filepath.Join(dir, staging+"123"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Uninstall(dir, "com.example.other"); err == nil || !strings.Contains(err.Error(), "is not Drawbridge") {
		t.Errorf("another's app: %v", err)
	}
	if removed, err := Uninstall(dir, sample.Identifier); !removed || err != nil {
		t.Errorf("%v, %v", removed, err)
	}
	if got := names(t, dir); got != "" {
		t.Errorf("left behind: %s", got)
	}
}

func TestLink(t *testing.T) {
	root := t.TempDir()
	bin, home := filepath.Join(root, "bin"), filepath.Join(root, "home", ".local", "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	app := filepath.Join(root, "A", Name)
	to := filepath.Join(app, "Contents/MacOS/drawbridge")
	check := func(app, path, wantLink string, wantOn bool) {
		t.Helper()
		link, on, err := Link(app, []string{filepath.Join(root, "missing"), bin}, home, path)
		if err != nil || link != wantLink || on != wantOn {
			t.Errorf("%s, %v, %v; want %s, %v", link, on, err, wantLink, wantOn)
		}
		if at, err := os.Readlink(link); err != nil || at != filepath.Join(app, "Contents/MacOS/drawbridge") {
			t.Errorf("%s leads to %s, %v", link, at, err)
		}
	}
	check(app, "/usr/bin:"+bin, bin+"/drawbridge", true)
	check(app, "/usr/bin:"+bin, bin+"/drawbridge", true) // again
	moved := filepath.Join(root, "B", Name)
	check(moved, bin, bin+"/drawbridge", true) // ours is replaced
	check(moved, "/usr/bin:"+bin+"/", bin+"/drawbridge", true)
	check(moved, "/usr/bin:"+bin+"//../bin/.", bin+"/drawbridge", true)
	check(moved, "/usr/bin:", home+"/drawbridge", false)
	if got := names(t, bin); got != "drawbridge" {
		t.Errorf("left behind: %s", got)
	}

	if removed, err := Unlink(app, []string{bin, home}); err != nil || len(removed) != 0 {
		t.Errorf("links of another app: %v, %v", removed, err)
	}
	if removed, err := Unlink(moved, []string{bin, home}); err != nil || len(removed) != 2 {
		t.Errorf("%v, %v", removed, err)
	}
	// What is not ours stays.
	for _, make := range []func() error{
		func() error { return os.Symlink("/usr/bin/true", bin+"/drawbridge") },
		func() error { return os.WriteFile(bin+"/drawbridge", []byte("theirs"), 0o755) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Link(app, []string{bin}, home, bin); err == nil || !strings.Contains(err.Error(), "not ours") || !strings.Contains(err.Error(), to) {
			t.Errorf("over another's: %v", err)
		}
		if removed, err := Unlink(app, []string{bin}); err != nil || len(removed) != 0 {
			t.Errorf("removed another's: %v, %v", removed, err)
		}
		if err := os.Remove(bin + "/drawbridge"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVolatile(t *testing.T) {
	for app, want := range map[string]string{
		"/Applications/Drawbridge.app":                                     "",
		"/Users/a/Applications/Drawbridge.app":                             "",
		"/Users/a/src/build/Drawbridge.app":                                "",
		"/private/var/folders/x/T/AppTranslocation/0A-1B/d/Drawbridge.app": "never moved",
		"/private/var/folders/xy/T/Drawbridge.app":                         "temporary",
		"/var/folders/xy/T/Drawbridge.app":                                 "temporary",
		"/private/tmp/Drawbridge.app":                                      "temporary",
		"/tmp/x/Drawbridge.app":                                            "temporary",
		"/custom/temp/Drawbridge.app":                                      "temporary",
		"/Volumes/Drawbridge/Drawbridge.app":                               "mounted",
		"/Users/a/Downloads/Drawbridge.app":                                "Downloads",
		"/Users/a/Downloads/deep/Drawbridge.app":                           "Downloads",
		"/Users/a/.Trash/Drawbridge.app":                                   "Trash",
		"/Users/a/DownloadsOfMine/Drawbridge.app":                          "",
		"/Users/b/Downloads/Drawbridge.app":                                "",
		"/tmpfiles/Drawbridge.app":                                         "",
	} {
		if got := Volatile(app, "/Users/a", "/custom/temp/"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", app, got, want)
		}
	}
	if got := Volatile("/Downloads/X.app", "", ""); got != "" {
		t.Errorf("with no home: %q", got)
	}
}

func TestAppOf(t *testing.T) {
	for path, want := range map[string]string{
		"/Applications/Drawbridge.app/Contents/MacOS/drawbridge": "/Applications/Drawbridge.app",
		"/Applications/Drawbridge.app/Contents/drawbridge":       "",
		"/Applications/Drawbridge/Contents/MacOS/drawbridge":     "",
		"/usr/local/bin/drawbridge":                              "",
		"drawbridge":                                             "",
	} {
		if got := AppOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestIdentifier holds the constants against the app's Info.plist.
func TestIdentifier(t *testing.T) {
	b, err := os.ReadFile("../../Info.plist")
	if err != nil {
		t.Fatal(err)
	}
	var info struct{ CFBundleIdentifier, CFBundleExecutable string }
	if _, err := plist.Unmarshal(b, &info); err != nil {
		t.Fatal(err)
	}
	if info.CFBundleIdentifier != Identifier || info.CFBundleExecutable != filepath.Base(program) {
		t.Errorf("%+v", info)
	}
}
