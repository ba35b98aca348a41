//go:build standin

package standin

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// TestQuartzFakeKeychain holds the Keychain to its rule: an item is its maker's,
// and every other program is refused by the number that Apple's headers have.
func TestQuartzFakeKeychain(t *testing.T) {
	d, err := Open("", "", "1:0,0,1280,800,1,0,0", "")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	file := filepath.Join(t.TempDir(), "keychain")
	if err := d.Set("keychain", file); err != nil {
		t.Fatal(err)
	}
	defer d.Set("keychain", "")

	var (
		add, match       func(query uintptr, result *uintptr) int32
		remove           func(query uintptr) int32
		interaction      func(allowed bool) int32
		dictionary       func(alloc uintptr, capacity int, keys, values uintptr) uintptr
		setValue         func(dict, key, value uintptr)
		text             func(alloc uintptr, s string, encoding uint32) uintptr
		data             func(alloc uintptr, bytes *byte, n int) uintptr
		length, count    func(data uintptr) int
		refs             = map[string]uintptr{}
		keysAre, valsAre uintptr
	)
	for symbol, f := range map[string]any{
		"SecItemAdd": &add, "SecItemCopyMatching": &match, "SecItemDelete": &remove, "SecKeychainSetUserInteractionAllowed": &interaction,
		"CFDictionaryCreateMutable": &dictionary, "CFDictionarySetValue": &setValue, "CFStringCreateWithCString": &text,
		"CFDataCreate": &data, "CFDataGetLength": &length, "CFArrayGetCount": &count,
	} {
		purego.RegisterLibFunc(f, purego.RTLD_DEFAULT, symbol)
	}
	address := func(symbol string) uintptr {
		p, err := purego.Dlsym(purego.RTLD_DEFAULT, symbol)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	keysAre, valsAre = address("kCFTypeDictionaryKeyCallBacks"), address("kCFTypeDictionaryValueCallBacks")
	for _, name := range []string{"kSecClass", "kSecClassGenericPassword", "kSecAttrService", "kSecAttrAccount", "kSecValueData", "kSecReturnData",
		"kSecReturnAttributes", "kSecMatchLimit", "kSecMatchLimitAll", "kCFBooleanTrue"} {
		refs[name] = *at(address(name))
	}
	query := func(account string, more ...uintptr) uintptr {
		q := dictionary(0, 0, keysAre, valsAre)
		setValue(q, refs["kSecClass"], refs["kSecClassGenericPassword"])
		setValue(q, refs["kSecAttrService"], text(0, "s", 0))
		setValue(q, refs["kSecAttrAccount"], text(0, account, 0))
		for i := 0; i < len(more); i += 2 {
			setValue(q, more[i], more[i+1])
		}
		return q
	}
	var result uintptr
	secret := []byte{1, 2, 3}
	adding := func(account string) int32 {
		return add(query(account, refs["kSecValueData"], data(0, &secret[0], len(secret))), nil)
	}
	reading := func(account string) int32 {
		return match(query(account, refs["kSecReturnData"], refs["kCFBooleanTrue"]), &result)
	}
	check := func(what string, got, want int32) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	check("reading what is not there", reading("mine"), -25300)
	check("removing what is not there", remove(query("mine")), -25300)
	check("adding", adding("mine"), 0)
	check("adding again", adding("mine"), -25299)
	check("adding without data", add(query("other"), nil), -50)
	check("a query of no class", match(dictionary(0, 0, keysAre, valsAre), &result), -50)
	if check("reading", reading("mine"), 0); length(result) != len(secret) {
		t.Errorf("it has %d bytes", length(result))
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Of a program whose code is another.
	if err := os.WriteFile(file, append(kept, "s\ttheirs\t.00\t1\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	check("adding over another's", adding("theirs"), -25299)
	check("seeing another's", match(query("theirs"), &result), 0)
	all := func(service string) int32 {
		q := dictionary(0, 0, keysAre, valsAre)
		setValue(q, refs["kSecClass"], refs["kSecClassGenericPassword"])
		setValue(q, refs["kSecAttrService"], text(0, service, 0))
		setValue(q, refs["kSecReturnAttributes"], refs["kCFBooleanTrue"])
		setValue(q, refs["kSecMatchLimit"], refs["kSecMatchLimitAll"])
		return match(q, &result)
	}
	if check("listing", all("s"), 0); count(result) != 2 {
		t.Errorf("%d are listed", count(result))
	}
	check("listing another service's", all("t"), -25300)
	for _, c := range []struct {
		allowed bool
		want    int32
	}{{true, -25293}, {false, -25308}} { // what is locked is read without anybody to ask
		check("interaction", interaction(c.allowed), 0)
		check("reading another's", reading("theirs"), c.want)
		check("removing another's", remove(query("theirs")), c.want)
	}
	if err := d.Set("keylock", "1"); err != nil {
		t.Fatal(err)
	}
	check("reading what is locked", reading("mine"), -25308)
	check("adding to what is locked", adding("new"), -25308)
	if err := d.Set("keylock", "0"); err != nil {
		t.Fatal(err)
	}
	check("removing", remove(query("mine")), 0)
	check("reading what is gone", reading("mine"), -25300)
	// Without a file they end with the program.
	if err := d.Set("keychain", ""); err != nil {
		t.Fatal(err)
	}
	check("reading elsewhere", reading("theirs"), -25300)
	check("adding elsewhere", adding("mine"), 0)
	check("reading it", reading("mine"), 0)
	check("removing it", remove(query("mine")), 0)
}

// at is the variable at an address outside of Go's memory.
func at(address uintptr) *uintptr { return *(**uintptr)(unsafe.Pointer(&address)) }
