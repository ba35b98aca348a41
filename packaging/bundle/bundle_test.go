package bundle_test

import (
	"archive/zip"
	"bytes"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"howett.net/plist"

	"drawbridge/packaging/bundle"
	"drawbridge/packaging/sample"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is now\n%s", file, got)
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string][2]string{
		"v1.2.3":                   {"1.2.3", "1.2.3"},
		"1.2.3":                    {"1.2.3", "1.2.3"},
		"v1.2.3-dirty":             {"1.2.3", "1.2.3"},
		"v1.2.3-45-g0a1b2c3":       {"1.2.3", "1.2.3.45"},
		"v1.2.3-45-g0a1b2c3-dirty": {"1.2.3", "1.2.3.45"},
		"0a1b2c3":                  {"0.0.0", "0.0.0"},
		"dev":                      {"0.0.0", "0.0.0"},
		"v1.2":                     {"0.0.0", "0.0.0"},
		"v1.2.3</string>":          {"0.0.0", "0.0.0"},
		"":                         {"0.0.0", "0.0.0"},
	} {
		if short, build := bundle.Versions(version); short != want[0] || build != want[1] {
			t.Errorf("%q: %s and %s, want %v", version, short, build, want)
		}
	}
}

// TestTree holds the tree of the real Info.plist, with modes, against a golden
// file, whatever the umask is.
func TestTree(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	info, err := os.ReadFile("../../Info.plist")
	if err != nil {
		t.Fatal(err)
	}
	app := filepath.Join(t.TempDir(), "Drawbridge.app")
	if err := bundle.Write(app, bundle.Parts{Version: "v1.2.3-4-gabcdef0", InfoPlist: info, Program: []byte("program"), Licences: []byte("licences")}); err != nil {
		t.Fatal(err)
	}
	var tree strings.Builder
	err = filepath.WalkDir(app, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		name, _ := filepath.Rel(filepath.Dir(app), p)
		tree.WriteString(st.Mode().String() + " " + name + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "tree.txt", tree.String())
	filled, err := os.ReadFile(filepath.Join(app, "Contents/Info.plist"))
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if _, err := plist.Unmarshal(filled, &keys); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"CFBundleIdentifier":         "io.github.drawbridge.Drawbridge",
		"CFBundleExecutable":         "drawbridge",
		"CFBundleShortVersionString": "1.2.3",
		"CFBundleVersion":            "1.2.3.4",
		"LSMinimumSystemVersion":     "12.0",
		"LSUIElement":                true,
	} {
		if keys[key] != want {
			t.Errorf("%s is %v, want %v", key, keys[key], want)
		}
	}
	// Each usage text is there in each language, and nothing else is.
	var usages []string
	for key := range keys {
		if strings.HasSuffix(key, "UsageDescription") {
			usages = append(usages, key)
		}
	}
	slices.Sort(usages)
	entry := regexp.MustCompile(`(?m)^"([A-Za-z]+)" = "([^"]+)";$`)
	for _, language := range []string{"en", "zh-Hans"} {
		b, err := os.ReadFile(filepath.Join(app, "Contents/Resources", language+".lproj", "InfoPlist.strings"))
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, m := range entry.FindAllSubmatch(b, -1) {
			found = append(found, string(m[1]))
			if language == "en" && string(m[2]) != keys[string(m[1])] {
				t.Errorf("%s reads otherwise in Info.plist", m[1])
			}
		}
		if !slices.Equal(found, usages) {
			t.Errorf("%s has texts for %v, Info.plist for %v", language, found, usages)
		}
	}
}

// TestSecondParser has Python read the bundle's property lists.
func TestSecondParser(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	app := sample.App(t, t.TempDir(), "v1.2.3", nil)
	out, err := exec.Command(python, "-c", `
import plistlib, sys
with open(sys.argv[1] + "/Contents/Info.plist", "rb") as f: info = plistlib.load(f)
with open(sys.argv[1] + "/Contents/_CodeSignature/CodeResources", "rb") as f: seal = plistlib.load(f)
print(info["CFBundleIdentifier"], info["CFBundleVersion"])
for name, e in sorted(seal["files2"].items()): print(name, len(e["hash2"]), e.get("optional", False))
for name, e in sorted(seal["files"].items()): print(name, len(e["hash"] if isinstance(e, dict) else e))
`, app).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := `io.github.drawbridge.Sample 1.2.3
Resources/Sample.icns 32 False
Resources/Third-party licences.txt 32 False
Resources/en.lproj/InfoPlist.strings 32 True
Resources/zh-Hans.lproj/InfoPlist.strings 32 True
Resources/Sample.icns 20
Resources/Third-party licences.txt 20
Resources/en.lproj/InfoPlist.strings 20
Resources/zh-Hans.lproj/InfoPlist.strings 20
`
	if string(out) != want {
		t.Errorf("got\n%s", out)
	}
}

func TestWriteRefuses(t *testing.T) {
	good := "<plist version=\"1.0\"><dict><key>CFBundleExecutable</key><string>p</string><key>CFBundleIconFile</key><string>i</string></dict></plist>"
	for name, c := range map[string]struct{ info, want string }{
		"no property list":      {"{", "Info.plist"},
		"a wrong type":          {strings.Replace(good, "<string>p</string>", "<array/>", 1), "Info.plist"},
		"no icon":               {strings.Replace(good, "CFBundleIconFile", "Other", 1), "CFBundleIconFile"},
		"a program elsewhere":   {strings.Replace(good, ">p<", ">../p<", 1), "CFBundleExecutable"},
		"a place that is taken": {good, "file exists"},
	} {
		app := filepath.Join(t.TempDir(), "X.app")
		taken := strings.HasPrefix(name, "a place")
		if taken {
			if err := os.Mkdir(app, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := bundle.Write(app, bundle.Parts{InfoPlist: []byte(c.info)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if _, err := os.Stat(app); (err == nil) != taken {
			t.Errorf("%s: left behind or taken away: %v", name, err)
		}
	}
}

// TestZip unpacks with the standard library and compares names, modes and bytes,
// and packs twice.
func TestZip(t *testing.T) {
	info, err := os.ReadFile("../../Info.plist")
	if err != nil {
		t.Fatal(err)
	}
	app := filepath.Join(t.TempDir(), "Drawbridge.app")
	if err := bundle.Write(app, bundle.Parts{InfoPlist: info, Program: bytes.Repeat([]byte("program "), 1000), Licences: []byte("licences")}); err != nil {
		t.Fatal(err)
	}
	var one, two bytes.Buffer
	skip := func(name string) bool { return name == ".DS_Store" }
	if err := bundle.Zip(&one, app, skip); err != nil {
		t.Fatal(err)
	}
	later := sample.Now.AddDate(1, 0, 0)
	if err := os.Chtimes(filepath.Join(app, "Contents/Info.plist"), later, later); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(app, ".DS_Store"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := bundle.Zip(&two, app, skip); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("two zips of one app differ")
	}
	r, err := zip.NewReader(bytes.NewReader(one.Bytes()), int64(one.Len()))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range r.File {
		path := filepath.Join(filepath.Dir(app), filepath.FromSlash(f.Name))
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Mode() != st.Mode() {
			t.Errorf("%s has mode %v, packed as %v", f.Name, st.Mode(), f.Mode())
		}
		if st.IsDir() {
			continue
		}
		seen++
		rc, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(rc)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs (%v)", f.Name, err)
		}
	}
	if seen != 7 {
		t.Errorf("%d files, want 7", seen)
	}
}

func TestCask(t *testing.T) {
	golden(t, "cask.rb", bundle.Cask("1.2.3", "https://example.test/v#{version}/Drawbridge-#{version}.zip", "https://example.test/about", strings.Repeat("ab", 32)))
}

func TestLicences(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a/LICENSE", "licence of a\n")
	write("a/NOTICE.md", "notice of a\n")
	write("a/license_test.go", "package a\n")
	write("b/COPYING", "licence of b\n")
	write("c/README", "none\n")
	a, b, c := bundle.Module{Path: "example.test/a", Version: "v1.0.0", Dir: dir + "/a"}, bundle.Module{Path: "example.test/b", Version: "v2.0.0", Dir: dir + "/b"}, bundle.Module{Path: "example.test/c", Dir: dir + "/c"}
	text, err := bundle.Licences([]bundle.Module{b, a})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "licences.txt", string(text))
	if _, err := bundle.Licences([]bundle.Module{a, c}); err == nil || !strings.Contains(err.Error(), "example.test/c has no licence file") {
		t.Errorf("without a licence: %v", err)
	}
}
