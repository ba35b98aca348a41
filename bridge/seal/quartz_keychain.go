//go:build darwin || standin

package seal

import (
	"bytes"
	"fmt"
	"unsafe"

	"drawbridge/internal/quartz"
)

// Of SecBase.h.
const (
	errSecSuccess               int32 = 0
	errSecAuthFailed            int32 = -25293
	errSecItemNotFound          int32 = -25300
	errSecInteractionNotAllowed int32 = -25308
)

// keychain keeps secrets in the person's login keychain. An item there is by
// default the program's that made it, by its signature; macOS asks the person
// before another one reads it.
type keychain struct{ service string }

// Platform is where this system keeps secrets for one program of a person and for
// no other: the Keychain, under a service's name.
func Platform(service string) Keys { return keychain{service} }

// open loads what is needed, and has macOS refuse what it would ask the person
// for: the question would stand in the way of the agent's start, and what cannot
// be read is asked in a prompt of our own.
func open() error {
	if err := load(); err != nil {
		return err
	}
	return failed(secKeychainSetUserInteractionAllowed(false), "speaking with the Keychain")
}

// query names an item. The caller releases it.
func (k keychain) query(name string) quartz.Ref {
	q := k.items()
	put(q, kSecAttrAccount, quartz.NewString(name))
	return q
}

// items names all items of the service. The caller releases it.
func (k keychain) items() quartz.Ref {
	q := cfDictionaryCreateMutable(0, 0, kCFTypeDictionaryKeyCallBacks, kCFTypeDictionaryValueCallBacks)
	cfDictionarySetValue(q, kSecClass, kSecClassGenericPassword)
	put(q, kSecAttrService, quartz.NewString(k.service))
	return q
}

// put hands a value over to a dictionary.
func put(dict, key, value quartz.Ref) {
	cfDictionarySetValue(dict, key, value)
	quartz.Release(value)
}

func (k keychain) Get(name string) ([]byte, error) {
	if err := open(); err != nil {
		return nil, err
	}
	q := k.query(name)
	defer quartz.Release(q)
	cfDictionarySetValue(q, kSecReturnData, kCFBooleanTrue)
	var data quartz.Ref
	status := secItemCopyMatching(q, &data)
	defer quartz.Release(data)
	if status == errSecItemNotFound {
		return nil, nil
	}
	if err := failed(status, "reading the Keychain's item "+name); err != nil {
		return nil, err
	}
	n := cfDataGetLength(data)
	if n == 0 {
		return []byte{}, nil
	}
	return bytes.Clone(unsafe.Slice((*byte)(cfDataGetBytePtr(data)), n)), nil
}

// Set makes the item anew: one that is there could have been put there by another
// program, with access for that.
func (k keychain) Set(name string, secret []byte) error {
	if _, err := k.Remove(name); err != nil {
		return err
	}
	q := k.query(name)
	defer quartz.Release(q)
	put(q, kSecAttrLabel, quartz.NewString("Drawbridge"))
	put(q, kSecValueData, cfDataCreate(0, unsafe.SliceData(secret), len(secret)))
	return failed(secItemAdd(q, nil), "making the Keychain's item "+name)
}

func (k keychain) Remove(name string) (bool, error) {
	if err := open(); err != nil {
		return false, err
	}
	q := k.query(name)
	defer quartz.Release(q)
	status := secItemDelete(q)
	if status == errSecItemNotFound {
		return false, nil
	}
	return true, failed(status, "removing the Keychain's item "+name)
}

// Names needs no access to what the items hold.
func (k keychain) Names() ([]string, error) {
	if err := open(); err != nil {
		return nil, err
	}
	q := k.items()
	defer quartz.Release(q)
	cfDictionarySetValue(q, kSecReturnAttributes, kCFBooleanTrue)
	cfDictionarySetValue(q, kSecMatchLimit, kSecMatchLimitAll)
	var found quartz.Ref // an array of dictionaries
	status := secItemCopyMatching(q, &found)
	defer quartz.Release(found)
	if status == errSecItemNotFound {
		return nil, nil
	}
	if err := failed(status, "listing the Keychain's items"); err != nil {
		return nil, err
	}
	names := make([]string, cfArrayGetCount(found))
	for i := range names {
		names[i] = quartz.String(cfDictionaryGetValue(cfArrayGetValueAtIndex(found, i), kSecAttrAccount))
	}
	return names, nil
}

// failed says why, and what can be done, where a status is none of success.
func failed(status int32, doing string) error {
	if status == errSecSuccess {
		return nil
	}
	text := secCopyErrorMessageString(status, 0)
	defer quartz.Release(text)
	err := fmt.Errorf("%s: %s (%d)", doing, quartz.String(text), status)
	if status == errSecAuthFailed || status == errSecInteractionNotAllowed {
		err = fmt.Errorf("%w; the keychain is locked, or the item is another program's: delete it in Keychain Access if it stays so", err)
	}
	return err
}
