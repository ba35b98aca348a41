package sign

import (
	"encoding/asn1"
	"fmt"
	"maps"
	"slices"

	"howett.net/plist"
)

// entitlementBlobs are the two forms in which macOS reads entitlements: the
// property list as it is, and DER for macOS 12 and later. Both are nil for an
// empty list.
func entitlementBlobs(xml []byte) (text, der []byte, err error) {
	if len(xml) == 0 {
		return nil, nil, nil
	}
	var m map[string]any
	if _, err := plist.Unmarshal(xml, &m); err != nil {
		return nil, nil, fmt.Errorf("the entitlements are no property list with keys: %w", err)
	}
	if len(m) == 0 {
		return nil, nil, nil
	}
	body, err := derValue(m)
	if err != nil {
		return nil, nil, err
	}
	// Version 1 of the format, in an application tag.
	body = tlv(0x70, append([]byte{2, 1, 1}, body...))
	return blob(magicEntitlements, xml), blob(magicEntitlementsDER, body), nil
}

// derValue encodes what entitlements are made of: truth values, strings, lists
// of them, and keys to them.
func derValue(v any) ([]byte, error) {
	switch v := v.(type) {
	case bool:
		if v {
			return tlv(0x01, []byte{0xff}), nil
		}
		return tlv(0x01, []byte{0}), nil
	case string:
		return tlv(0x0c, []byte(v)), nil
	case []any:
		var body []byte
		for _, e := range v {
			d, err := derValue(e)
			if err != nil {
				return nil, err
			}
			body = append(body, d...)
		}
		return tlv(0x30, body), nil
	case map[string]any:
		var body []byte
		for _, k := range slices.Sorted(maps.Keys(v)) {
			d, err := derValue(v[k])
			if err != nil {
				return nil, fmt.Errorf("entitlement %s: %w", k, err)
			}
			body = append(body, tlv(0x30, append(tlv(0x0c, []byte(k)), d...))...)
		}
		return tlv(0xb0, body), nil
	}
	return nil, fmt.Errorf("a value of type %T; entitlements are true or false, strings, and lists and dictionaries of them", v)
}

// tlv is a tag, the length and the content, in DER.
func tlv(tag byte, content []byte) []byte {
	der, err := asn1.Marshal(asn1.RawValue{Class: int(tag >> 6), Tag: int(tag & 0x1f), IsCompound: tag&0x20 != 0, Bytes: content})
	if err != nil {
		panic(err) // a raw value always encodes
	}
	return der
}
