//go:build darwin || standin

package seal

import (
	"errors"
	"sync"
	"unsafe"

	"drawbridge/internal/quartz"
)

// What the Keychain takes. Names and values are those of Apple's headers;
// packaging/sdkcheck compares them.

var (
	secItemAdd                           func(attributes quartz.Ref, result *quartz.Ref) int32
	secItemCopyMatching                  func(query quartz.Ref, result *quartz.Ref) int32
	secItemDelete                        func(query quartz.Ref) int32
	secCopyErrorMessageString            func(status int32, reserved uintptr) quartz.Ref
	secKeychainSetUserInteractionAllowed func(allowed bool) int32

	cfDictionaryCreateMutable func(alloc quartz.Ref, capacity int, keys, values uintptr) quartz.Ref
	cfDictionarySetValue      func(dict, key, value quartz.Ref)
	cfDictionaryGetValue      func(dict, key quartz.Ref) quartz.Ref
	cfArrayGetCount           func(array quartz.Ref) int
	cfArrayGetValueAtIndex    func(array quartz.Ref, i int) quartz.Ref
	cfDataCreate              func(alloc quartz.Ref, bytes *byte, n int) quartz.Ref
	cfDataGetBytePtr          func(data quartz.Ref) unsafe.Pointer
	cfDataGetLength           func(data quartz.Ref) int

	kSecClass                quartz.Ref
	kSecClassGenericPassword quartz.Ref
	kSecAttrService          quartz.Ref
	kSecAttrAccount          quartz.Ref
	kSecAttrLabel            quartz.Ref
	kSecValueData            quartz.Ref
	kSecReturnData           quartz.Ref
	kSecReturnAttributes     quartz.Ref
	kSecMatchLimit           quartz.Ref
	kSecMatchLimitAll        quartz.Ref
	kCFBooleanTrue           quartz.Ref

	kCFTypeDictionaryKeyCallBacks, kCFTypeDictionaryValueCallBacks uintptr // their addresses
)

// load binds them, once.
var load = sync.OnceValue(func() error {
	if err := quartz.Load(); err != nil {
		return err
	}
	sec := quartz.Open("Security")
	sec.Func(&secItemAdd, "SecItemAdd")
	sec.Func(&secItemCopyMatching, "SecItemCopyMatching")
	sec.Func(&secItemDelete, "SecItemDelete")
	sec.Func(&secCopyErrorMessageString, "SecCopyErrorMessageString")
	sec.Func(&secKeychainSetUserInteractionAllowed, "SecKeychainSetUserInteractionAllowed")
	sec.Var(&kSecClass, "kSecClass")
	sec.Var(&kSecClassGenericPassword, "kSecClassGenericPassword")
	sec.Var(&kSecAttrService, "kSecAttrService")
	sec.Var(&kSecAttrAccount, "kSecAttrAccount")
	sec.Var(&kSecAttrLabel, "kSecAttrLabel")
	sec.Var(&kSecValueData, "kSecValueData")
	sec.Var(&kSecReturnData, "kSecReturnData")
	sec.Var(&kSecReturnAttributes, "kSecReturnAttributes")
	sec.Var(&kSecMatchLimit, "kSecMatchLimit")
	sec.Var(&kSecMatchLimitAll, "kSecMatchLimitAll")

	cf := quartz.Open("CoreFoundation")
	cf.Func(&cfDictionaryCreateMutable, "CFDictionaryCreateMutable")
	cf.Func(&cfDictionarySetValue, "CFDictionarySetValue")
	cf.Func(&cfDictionaryGetValue, "CFDictionaryGetValue")
	cf.Func(&cfArrayGetCount, "CFArrayGetCount")
	cf.Func(&cfArrayGetValueAtIndex, "CFArrayGetValueAtIndex")
	cf.Func(&cfDataCreate, "CFDataCreate")
	cf.Func(&cfDataGetBytePtr, "CFDataGetBytePtr")
	cf.Func(&cfDataGetLength, "CFDataGetLength")
	cf.Var(&kCFBooleanTrue, "kCFBooleanTrue")
	cf.Address(&kCFTypeDictionaryKeyCallBacks, "kCFTypeDictionaryKeyCallBacks")
	cf.Address(&kCFTypeDictionaryValueCallBacks, "kCFTypeDictionaryValueCallBacks")
	return errors.Join(sec.Err(), cf.Err())
})
