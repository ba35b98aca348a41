package verify

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"drawbridge/packaging/macho"
	"drawbridge/packaging/sample"
	"drawbridge/packaging/sign"
)

// TestKinds checks one app for each way of signing.
func TestKinds(t *testing.T) {
	self, elliptic, developer := sample.SelfSigned(t), sample.Elliptic(t), sample.DeveloperID(t, "TEAM123456")
	leaf := func(id *sign.Identity) string {
		return fmt.Sprintf(`identifier "io.github.drawbridge.Sample" and certificate leaf = H"%x"`, sha1.Sum(id.Cert.Raw))
	}
	for name, c := range map[string]struct {
		id          *sign.Identity
		requirement string // empty for the hash of the code
		signature   string
	}{
		"ad hoc":      {nil, "", "ad hoc"},
		"self-signed": {self, leaf(self), `by "Sample", a certificate of its own, until 2046-03-01`},
		"ECDSA":       {elliptic, leaf(elliptic), `by "Elliptic"`},
		"Developer ID": {
			developer,
			`identifier "io.github.drawbridge.Sample" and anchor apple generic` +
				` and certificate 1[field.1.2.840.113635.100.6.2.6] exists` +
				` and certificate leaf[field.1.2.840.113635.100.6.1.13] exists` +
				` and certificate leaf[subject.OU] = "TEAM123456"`,
			`team TEAM123456; that Apple issued the certificate is not checked`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := sample.App(t, t.TempDir(), "v1.2.3-4-gabcdef", c.id)
			r, err := Bundle(app)
			if err != nil {
				t.Fatal(err)
			}
			if r.Identifier != sample.Identifier || r.Version != "1.2.3" || r.Executable != "program" || r.MinimumSystem != "12.0" || r.AdHoc != (c.id == nil) {
				t.Errorf("%+v", r)
			}
			if r.Resources != 4 || len(r.Slices) != 2 || r.Slices[0].Arch != "amd64" || r.Slices[1].Arch != "arm64" {
				t.Errorf("%d resources, slices %+v", r.Resources, r.Slices)
			}
			for _, s := range r.Slices {
				if s.MinimumSystem != "12.0" || len(s.Libraries) == 0 || len(s.CDHash) != 40 || s.Pages == 0 {
					t.Errorf("slice %+v", s)
				}
			}
			want := c.requirement
			if want == "" {
				want = fmt.Sprintf(`cdhash H"%s" or cdhash H"%s"`, r.Slices[0].CDHash, r.Slices[1].CDHash)
			}
			if r.Requirement != want {
				t.Errorf("requirement\n%s\nwant\n%s", r.Requirement, want)
			}
			if !strings.Contains(r.Signature, c.signature) {
				t.Errorf("signature %q, want %q", r.Signature, c.signature)
			}
			if r.Entitlements["com.apple.security.automation.apple-events"] != true || len(r.Entitlements) != 3 {
				t.Errorf("entitlements %v", r.Entitlements)
			}
		})
	}
}

// TestOneRequirement holds what permissions are kept by: versions signed with one
// identity have one requirement, other identities another, and ad hoc never.
func TestOneRequirement(t *testing.T) {
	requirement := func(version string, id *sign.Identity) string {
		r, err := Bundle(sample.App(t, t.TempDir(), version, id))
		if err != nil {
			t.Fatal(err)
		}
		return r.Requirement
	}
	a, b := sample.SelfSigned(t), sample.SelfSigned(t)
	if one, two := requirement("v1.0.0", a), requirement("v2.0.0", a); one != two {
		t.Errorf("one identity, two requirements: %s and %s", one, two)
	}
	if one, two := requirement("v1.0.0", a), requirement("v1.0.0", b); one == two {
		t.Errorf("two identities, one requirement: %s", one)
	}
	if one, two := requirement("v1.0.0", nil), requirement("v2.0.0", nil); one == two {
		t.Errorf("two ad hoc builds, one requirement: %s", one)
	}
}

// TestTampering changes one thing at a time in a signed app. Each must be found
// and named.
func TestTampering(t *testing.T) {
	id := sample.SelfSigned(t)
	pristine := sample.App(t, t.TempDir(), "v1.0.0", id)
	adHoc := sample.App(t, t.TempDir(), "v1.0.0", nil)
	other := sample.App(t, t.TempDir(), "v2.0.0", id)

	program := func(app string) string { return filepath.Join(app, "Contents/MacOS/program") }
	read := func(t *testing.T, file string) []byte {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	write := func(t *testing.T, file string, b []byte) {
		if err := os.WriteFile(file, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	plainFile := func(t *testing.T, file string) {
		if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	chmod := func(t *testing.T, file string, mode fs.FileMode) {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	pipe := func(t *testing.T, file string) {
		_ = os.Remove(file)
		if err := unix.Mkfifo(file, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// inSlice changes one slice of the program.
	inSlice := func(n int, change func(t *testing.T, b []byte)) func(*testing.T, string) {
		return func(t *testing.T, app string) {
			b := read(t, program(app))
			slices, err := macho.Split(b)
			if err != nil {
				t.Fatal(err)
			}
			change(t, slices[n])
			write(t, program(app), b)
		}
	}
	// flip changes the byte at an offset behind the last place of a mark.
	flip := func(mark string, offset int) func(*testing.T, []byte) {
		return func(t *testing.T, b []byte) {
			at := bytes.LastIndex(b, []byte(mark))
			if at < 0 {
				t.Fatalf("no % x", mark)
			}
			b[at+offset] ^= 1
		}
	}
	const (
		directory = "\xfa\xde\x0c\x02"
		required  = "\xfa\xde\x0c\x01"
		entitled  = "\xfa\xde\x71\x71"
		der       = "\xfa\xde\x71\x72"
		message   = "\xfa\xde\x0b\x01"
	)
	for name, c := range map[string]struct {
		change func(t *testing.T, app string)
		want   string
	}{
		"the first page":            {inSlice(0, func(t *testing.T, b []byte) { b[3000] ^= 1 }), "amd64: page 0 of the code was changed"},
		"a later page":              {inSlice(1, func(t *testing.T, b []byte) { b[len(b)/2] ^= 1 }), "arm64: page"},
		"the identifier":            {inSlice(0, flip(sample.Identifier+"\x00", 3)), "amd64: "},
		"a page's hash":             {inSlice(0, flip(directory, 96+len(sample.Identifier)+1+7*32)), "page 0 of the code was changed"},
		"the runtime":               {inSlice(0, flip(directory, 13)), "hardened runtime is off"},
		"the flag that says ad hoc": {inSlice(1, func(t *testing.T, b []byte) { b[bytes.LastIndex(b, []byte(directory))+15] ^= 2 }), "ad hoc signature has no certificate"},
		"the requirement":           {inSlice(0, flip(required, 60)), "the set of requirements was changed"},
		"the entitlements":          {inSlice(1, flip(entitled, 120)), "the list of entitlements was changed"},
		"the DER entitlements":      {inSlice(1, flip(der, 30)), "the DER list of entitlements was changed"},
		"the signature's bytes": {inSlice(0, func(t *testing.T, b []byte) {
			at := bytes.LastIndex(b, []byte(message))
			n := int(b[at+6])<<8 | int(b[at+7])
			b[at+n-5] ^= 1
		}), "not by its certificate"},
		"behind the signature": {inSlice(0, func(t *testing.T, b []byte) { b[len(b)-1] = 1 }), "behind the signature"},
		"Info.plist":           {func(t *testing.T, app string) { sample.Replace(t, app+"/Contents/Info.plist", "1.0.0", "1.0.1") }, "Info.plist was changed"},
		"Info.plist of wrong types": {func(t *testing.T, app string) {
			sample.Replace(t, app+"/Contents/Info.plist", "<string>12.0</string>", "<array/>")
		}, "Info.plist: plist"},
		"Info.plist without a key": {func(t *testing.T, app string) {
			sample.Replace(t, app+"/Contents/Info.plist", "LSMinimumSystemVersion", "Minimum")
		}, "has no LSMinimumSystemVersion"},
		"Info.plist that is none": {func(t *testing.T, app string) { write(t, app+"/Contents/Info.plist", []byte("<plist><dict><key>")) }, "Info.plist"},
		"an identifier of another": {func(t *testing.T, app string) {
			sample.Replace(t, app+"/Contents/Info.plist", "drawbridge.Sample", "drawbridge.Simple")
		}, `signed as "io.github.drawbridge.Sample", Info.plist says "io.github.drawbridge.Simple"`},
		"a resource": {func(t *testing.T, app string) {
			sample.Replace(t, app+"/Contents/Resources/Third-party licences.txt", "licences", "licenses")
		}, "resource Resources/Third-party licences.txt was changed"},
		"a resource gone": {func(t *testing.T, app string) { os.Remove(app + "/Contents/Resources/Sample.icns") }, "Sample.icns: no such file"},
		"a resource more": {func(t *testing.T, app string) { write(t, app+"/Contents/Resources/more", nil) }, "Resources/more was added"},
		"a program more":  {func(t *testing.T, app string) { write(t, app+"/Contents/MacOS/more", nil) }, "MacOS/more was added"},
		"a link":          {func(t *testing.T, app string) { os.Symlink("/etc/passwd", app+"/Contents/Resources/link") }, "link is no regular file"},
		"a resource that is a link": {func(t *testing.T, app string) {
			f := app + "/Contents/Resources/Sample.icns"
			os.Rename(f, app+"/../icns")
			os.Symlink("../../../icns", f)
		}, "no regular file"},
		"a text changed": {func(t *testing.T, app string) { write(t, app+"/Contents/Resources/en.lproj/InfoPlist.strings", nil) }, "en.lproj/InfoPlist.strings was changed"},
		"the list of resources": {func(t *testing.T, app string) {
			sample.Replace(t, app+"/Contents/_CodeSignature/CodeResources", "optional", "Optional")
		}, "the list of resources was changed"},
		"no list of resources":         {func(t *testing.T, app string) { os.Remove(app + "/Contents/_CodeSignature/CodeResources") }, "is not sealed"},
		"a program not signed":         {func(t *testing.T, app string) { write(t, program(app), sample.Program(t)) }, "amd64: not signed"},
		"a program of another":         {func(t *testing.T, app string) { write(t, program(app), read(t, program(other))) }, "Info.plist was changed"},
		"a program that is none":       {func(t *testing.T, app string) { write(t, program(app), []byte("#!/bin/sh\n")) }, "no universal Mach-O"},
		"no program":                   {func(t *testing.T, app string) { os.Remove(program(app)) }, "no such file"},
		"a cut program":                {func(t *testing.T, app string) { b := read(t, program(app)); write(t, program(app), b[:len(b)-100]) }, "the program has"},
		"a program that nobody starts": {func(t *testing.T, app string) { chmod(t, program(app), 0o644) }, "cannot be executed (mode 0644)"},
		"a program of another user":    {func(t *testing.T, app string) { chmod(t, program(app), 0o755|fs.ModeSetuid) }, "would run as another user"},
		"a program of another group":   {func(t *testing.T, app string) { chmod(t, program(app), 0o755|fs.ModeSetgid) }, "would run as another user or group"},
		"a resource of another user": {func(t *testing.T, app string) {
			chmod(t, app+"/Contents/Resources/Sample.icns", 0o755|fs.ModeSetuid)
		}, "Sample.icns would run as another user"},
		"a program that is a link": {func(t *testing.T, app string) {
			os.Rename(program(app), app+"/../program")
			os.Symlink("../../../program", program(app))
		}, "is no regular file"},
		"a file beside Contents":      {func(t *testing.T, app string) { write(t, app+"/notes.txt", nil) }, `"notes.txt" lies beside Contents`},
		"a directory beside Contents": {func(t *testing.T, app string) { os.Mkdir(app+"/Support", 0o755) }, `"Support" lies beside Contents`},
		"Finder's file, a program":    {func(t *testing.T, app string) { write(t, app+"/.DS_Store", nil) }, `".DS_Store" lies beside Contents`},
		"Finder's file, a link":       {func(t *testing.T, app string) { os.Symlink("x", app+"/.DS_Store") }, `".DS_Store" lies beside Contents`},
		"Contents that are a link": {func(t *testing.T, app string) {
			os.Rename(app+"/Contents", app+"/../C")
			os.Symlink("../C", app+"/Contents")
		}, `"Contents" lies beside Contents`},
		"Finder's file, by the program": {func(t *testing.T, app string) { plainFile(t, app+"/Contents/MacOS/.DS_Store") }, "MacOS/.DS_Store was added"},
		"Finder's file, by the seal":    {func(t *testing.T, app string) { plainFile(t, app+"/Contents/_CodeSignature/.DS_Store") }, "_CodeSignature/.DS_Store was added"},
		"a program called Finder's":     {func(t *testing.T, app string) { write(t, app+"/Contents/Resources/.DS_Store", nil) }, "Resources/.DS_Store was added"},
		"an empty directory":            {func(t *testing.T, app string) { os.Mkdir(app+"/Contents/Frameworks", 0o755) }, "the directory Frameworks was added"},
		"a deep empty directory": {func(t *testing.T, app string) {
			os.MkdirAll(app+"/Contents/Resources/a/b", 0o755)
		}, "the directory Resources/a was added"},
		"PkgInfo":     {func(t *testing.T, app string) { plainFile(t, app+"/Contents/PkgInfo") }, "PkgInfo is not that of an app"},
		"a pipe":      {func(t *testing.T, app string) { pipe(t, app+"/Contents/Info.plist") }, "Info.plist is no regular file"},
		"a pipe more": {func(t *testing.T, app string) { pipe(t, app+"/Contents/Resources/pipe") }, "pipe is no regular file"},
		"a pipe for the list of resources": {func(t *testing.T, app string) {
			pipe(t, app+"/Contents/_CodeSignature/CodeResources")
		}, "CodeResources is no regular file"},
		"a pipe for the program": {func(t *testing.T, app string) { pipe(t, program(app)) }, "program is no regular file"},
		"behind the last slice":  {func(t *testing.T, app string) { write(t, program(app), append(read(t, program(app)), 0)) }, "1 bytes follow the last slice"},
		"between the slices": {func(t *testing.T, app string) {
			b := read(t, program(app))
			b[fatHeader+2*fatArch] = 1
			write(t, program(app), b)
		}, "something lies before slice 0"},
		"two ways of signing": {func(t *testing.T, app string) {
			a, err := macho.Split(read(t, program(app)))
			if err != nil {
				t.Fatal(err)
			}
			b, err := macho.Split(read(t, program(adHoc)))
			if err != nil {
				t.Fatal(err)
			}
			joined, err := macho.Join(a[0], b[1])
			if err != nil {
				t.Fatal(err)
			}
			write(t, program(app), joined)
		}, "signed in another way than the first slice"},
	} {
		t.Run(name, func(t *testing.T) {
			app := filepath.Join(t.TempDir(), "Sample.app")
			if err := os.CopyFS(app, os.DirFS(pristine)); err != nil {
				t.Fatal(err)
			}
			if _, err := Bundle(app); err != nil {
				t.Fatalf("before: %v", err)
			}
			c.change(t, app)
			_, err := Bundle(app)
			if err == nil {
				t.Fatal("not found")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant: %s", err, c.want)
			}
		})
	}

	t.Run("what others leave there", func(t *testing.T) {
		app := filepath.Join(t.TempDir(), "Sample.app")
		if err := os.CopyFS(app, os.DirFS(pristine)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{".DS_Store", "Icon\r", ".LSOverride", ".SoftwareDepot.tracking", "Contents/.DS_Store", "Contents/Resources/en.lproj/.DS_Store"} {
			plainFile(t, filepath.Join(app, name))
			if !Leftover(name) {
				t.Errorf("%q is taken for the app's", name)
			}
		}
		// The ticket of a notarized app is beside the seal, and is the app's.
		plainFile(t, filepath.Join(app, "Contents/CodeResources"))
		if Leftover("Contents/CodeResources") {
			t.Error("the ticket is not taken for the app's")
		}
		if _, err := Bundle(app); err != nil {
			t.Error(err)
		}
	})
	t.Run("a language less", func(t *testing.T) {
		app := filepath.Join(t.TempDir(), "Sample.app")
		if err := os.CopyFS(app, os.DirFS(pristine)); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(app + "/Contents/Resources/zh-Hans.lproj"); err != nil {
			t.Fatal(err)
		}
		if _, err := Bundle(app); err != nil {
			t.Errorf("languages may be removed: %v", err)
		}
	})
}

// TestHeader flips every bit of a universal program's header, which no signature
// covers. Each is found.
func TestHeader(t *testing.T) {
	app := sample.App(t, t.TempDir(), "v1.0.0", sample.SelfSigned(t))
	b, err := os.ReadFile(filepath.Join(app, "Contents/MacOS/program"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Bundle(app)
	if err != nil {
		t.Fatal(err)
	}
	var with beside
	if with.infoPlist, err = os.ReadFile(filepath.Join(app, "Contents/Info.plist")); err != nil {
		t.Fatal(err)
	}
	if with.resources, err = os.ReadFile(filepath.Join(app, "Contents/_CodeSignature/CodeResources")); err != nil {
		t.Fatal(err)
	}
	check := func() error {
		again := Report{Identifier: r.Identifier, MinimumSystem: r.MinimumSystem}
		return again.checkProgram(b, with)
	}
	if err := check(); err != nil {
		t.Fatalf("before: %v", err)
	}
	for bit := range 8 * (fatHeader + 2*fatArch) {
		b[bit/8] ^= 1 << (bit % 8)
		if check() == nil {
			t.Errorf("bit %d of byte %d was not found", bit%8, bit/8)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	slices, err := macho.Split(b)
	if err != nil {
		t.Fatal(err)
	}
	// As lipo lays them out, with the one for Intel at a page of 4 KiB.
	apple := append(bytes.Clone(b[:1<<intelAlign]), slices[0]...)
	arm := (len(apple) + 1<<sliceAlign - 1) >> sliceAlign << sliceAlign
	apple = append(append(apple, make([]byte, arm-len(apple))...), slices[1]...)
	be.PutUint32(apple[fatHeader+8:], 1<<intelAlign)
	be.PutUint32(apple[fatHeader+16:], intelAlign)
	be.PutUint32(apple[fatHeader+fatArch+8:], uint32(arm))
	if got, err := programSlices(apple); err != nil || len(got) != 2 || !bytes.Equal(got[0], slices[0]) || !bytes.Equal(got[1], slices[1]) {
		t.Errorf("laid out as Apple's tools do: %d slices, %v", len(got), err)
	}
	be.PutUint32(apple[fatHeader+fatArch+16:], intelAlign)
	if _, err := programSlices(apple); err == nil || !strings.Contains(err.Error(), "2^12") {
		t.Errorf("arm64 at a page of 4 KiB: %v", err)
	}
	// One slice twice.
	second := (1<<sliceAlign + len(slices[0]) + 1<<sliceAlign - 1) >> sliceAlign << sliceAlign
	twice := append(bytes.Clone(b[:1<<sliceAlign]), slices[0]...)
	twice = append(twice, make([]byte, second-len(twice))...)
	twice = append(twice, slices[0]...)
	copy(twice[fatHeader+fatArch:], twice[fatHeader:fatHeader+fatArch])
	be.PutUint32(twice[fatHeader+fatArch+8:], uint32(second))
	if _, err := programSlices(twice); err == nil || !strings.Contains(err.Error(), "there is one already") {
		t.Errorf("one slice twice: %v", err)
	}
}

// TestThin: a thin program is whole, and starts on one kind of Mac.
func TestThin(t *testing.T) {
	app := sample.Unsigned(t, t.TempDir(), "v1.0.0")
	slices, err := macho.Split(sample.Program(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		if err := os.WriteFile(filepath.Join(app, "Contents/MacOS/program"), slices[i], 0o755); err != nil {
			t.Fatal(err)
		}
		if err := sign.Bundle(app, sign.Options{Now: sample.Now}); err != nil {
			t.Fatal(err)
		}
		r, err := Bundle(app)
		if err != nil || len(r.Slices) != 1 || !r.StartsOn(arch) || r.StartsOn(map[string]string{"amd64": "arm64", "arm64": "amd64"}[arch]) {
			t.Errorf("%s: %+v, %v", arch, r.Slices, err)
		}
	}
}

// FuzzHeader feeds broken programs to what takes them apart.
func FuzzHeader(f *testing.F) {
	thin := append([]byte{0xcf, 0xfa, 0xed, 0xfe, 7, 0, 0, 1, 3, 0, 0, 0}, make([]byte, 20)...)
	joined, err := macho.Join(thin)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(joined)
	f.Add(thin)
	f.Add(joined[:28])
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, err := programSlices(b)
		if err != nil {
			return
		}
		total := 0
		for _, p := range parts {
			total += len(p)
		}
		if total == 0 || total > len(b) {
			t.Errorf("slices of %d bytes in %d", total, len(b))
		}
	})
}

// TestOpenSSL has openssl check the message over the code directory of each
// slice. It takes both out by their magic numbers alone.
func TestOpenSSL(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	for name, id := range map[string]*sign.Identity{"RSA": sample.SelfSigned(t), "ECDSA": sample.Elliptic(t), "chain": sample.DeveloperID(t, "TEAM123456")} {
		b, err := os.ReadFile(filepath.Join(sample.App(t, t.TempDir(), "v1.0.0", id), "Contents/MacOS/program"))
		if err != nil {
			t.Fatal(err)
		}
		slices, err := macho.Split(b)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range slices {
			part := func(magic string) []byte {
				at := bytes.LastIndex(s, []byte(magic))
				return s[at : at+int(be.Uint32(s[at+4:]))]
			}
			dir := t.TempDir()
			message, content := filepath.Join(dir, "message"), filepath.Join(dir, "content")
			verify := func() (string, error) {
				// Whom to trust is another question: -noverify leaves out the chain.
				out, err := exec.Command(openssl, "cms", "-verify", "-inform", "DER", "-in", message, "-content", content,
					"-binary", "-noverify", "-out", os.DevNull).CombinedOutput()
				return string(out), err
			}
			directory := part("\xfa\xde\x0c\x02")
			for file, b := range map[string][]byte{message: part("\xfa\xde\x0b\x01")[8:], content: directory} {
				if err := os.WriteFile(file, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := verify(); err != nil {
				t.Errorf("%s, slice %d: %v\n%s", name, i, err, out)
			}
			directory[40] ^= 1
			if err := os.WriteFile(content, directory, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := verify(); err == nil {
				t.Errorf("%s, slice %d: openssl takes another directory\n%s", name, i, out)
			}
		}
	}
}

func TestParseRequirementRefuses(t *testing.T) {
	w := func(words ...uint32) []byte {
		var b []byte
		for _, v := range words {
			b = be.AppendUint32(b, v)
		}
		return b
	}
	deep := w(1)
	for range 100 {
		deep = append(deep, w(6)...)
	}
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"nothing":                 {nil, "no expression"},
		"another form":            {w(2, 15), "no expression"},
		"no operator":             {w(1), "too early"},
		"an operator not known":   {w(1, 99), "operator 99"},
		"a text past the end":     {w(1, 2, 8, 0), "too early"},
		"more than an expression": {w(1, 15, 15), "4 bytes too many"},
		"too deep":                {deep, "too deeply"},
		"no extension":            {w(1, 14, 0, 4, 0xffffffff, 0), "names no extension"},
		"a match not known":       {w(1, 14, 0, 4, 0x2a864886, 9), "in a way (9)"},
	} {
		if _, err := parseRequirement(c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzSignature feeds broken signatures. Nothing may be taken for whole but the
// one that is, and nothing may crash.
func FuzzSignature(f *testing.F) {
	app := sample.App(f, f.TempDir(), "v1.0.0", sample.SelfSigned(f))
	b, err := os.ReadFile(filepath.Join(app, "Contents/MacOS/program"))
	if err != nil {
		f.Fatal(err)
	}
	slices, err := macho.Split(b)
	if err != nil {
		f.Fatal(err)
	}
	whole := slices[0]
	at := bytes.LastIndex(whole, []byte("\xfa\xde\x0c\xc0"))
	f.Add(whole[at:])
	f.Add(whole[at : at+40])
	f.Add([]byte("\xfa\xde\x0c\xc0\x00\x00\x00\x0c\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		blobs, err := signatureBlobs(b)
		if err != nil {
			return
		}
		// Little code, no Info.plist and no resources: even the whole one does not fit.
		if _, err := checkBlobs(blobs, whole[:8192], beside{}, &Slice{}); err == nil {
			t.Error("taken for whole")
		}
	})
}
