package sign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"math/big"
	"slices"
	"time"
)

var (
	oidData          = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}
	oidSignedData    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2}
	oidContentType   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 3}
	oidMessageDigest = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 4}
	oidSigningTime   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 5}
	oidSHA256        = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}
	oidRSA           = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}
	oidECDSASHA256   = asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}

	// Apple's attributes: the hashes of all code directories, as a property list
	// and as digests.
	oidCDHashesPlist = asn1.ObjectIdentifier{1, 2, 840, 113635, 100, 9, 1}
	oidCDHashes      = asn1.ObjectIdentifier{1, 2, 840, 113635, 100, 9, 2}
)

type algorithm struct {
	OID    asn1.ObjectIdentifier
	Params asn1.RawValue `asn1:"optional"`
}

type attribute struct {
	OID    asn1.ObjectIdentifier
	Values []asn1.RawValue `asn1:"set"`
}

type issuerAndSerial struct {
	Issuer asn1.RawValue
	Serial *big.Int
}

type signerInfo struct {
	Version    int
	SignerID   issuerAndSerial
	Digest     algorithm
	Attributes asn1.RawValue // [0] IMPLICIT SET OF attribute
	Signing    algorithm
	Signature  []byte
}

type signedData struct {
	Version      int
	Digests      []algorithm `asn1:"set"`
	Content      struct{ Type asn1.ObjectIdentifier }
	Certificates asn1.RawValue // [0] IMPLICIT SET OF certificate
	Signers      []signerInfo  `asn1:"set"`
}

// cms signs a code directory as Apple's own tools do: a detached CMS message
// (RFC 5652) with the hash of the directory among the signed attributes, and
// NULL for the parameters of the algorithms, which Apple writes and others omit.
func cms(directory []byte, id *Identity, now time.Time) ([]byte, error) {
	digest := sha256.Sum256(directory)
	plist := fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>cdhashes</key>
	<array>
		<data>
		%s
		</data>
	</array>
</dict>
</plist>
`, base64.StdEncoding.EncodeToString(digest[:20]))
	type digestOf struct {
		Algorithm asn1.ObjectIdentifier
		Digest    []byte
	}
	attributes, err := signedAttributes(map[*asn1.ObjectIdentifier]any{
		&oidContentType:   oidData,
		&oidMessageDigest: digest[:],
		&oidSigningTime:   now.UTC(),
		&oidCDHashesPlist: []byte(plist),
		&oidCDHashes:      digestOf{oidSHA256, digest[:]},
	})
	if err != nil {
		return nil, err
	}
	// What is signed is the set as such; what is stored has the field's tag.
	set := sha256.Sum256(tlv(0x31, attributes))
	signature, err := id.Key.Sign(rand.Reader, set[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("signing with the key of %q: %w", id.Cert.Subject.CommonName, err)
	}
	sha := algorithm{oidSHA256, asn1.NullRawValue}
	signing := algorithm{oidRSA, asn1.NullRawValue} // or ECDSA: no other key came this far
	if _, elliptic := id.Key.Public().(*ecdsa.PublicKey); elliptic {
		signing = algorithm{OID: oidECDSASHA256}
	}
	var certificates []byte
	certificates = append(certificates, id.Cert.Raw...)
	for _, c := range id.Chain {
		certificates = append(certificates, c.Raw...)
	}
	sd := signedData{
		Version:      1,
		Digests:      []algorithm{sha},
		Certificates: contextSet(certificates),
		Signers: []signerInfo{{
			Version:    1,
			SignerID:   issuerAndSerial{asn1.RawValue{FullBytes: id.Cert.RawIssuer}, id.Cert.SerialNumber},
			Digest:     sha,
			Attributes: contextSet(attributes),
			Signing:    signing,
			Signature:  signature,
		}},
	}
	sd.Content.Type = oidData
	inner, err := asn1.Marshal(sd)
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(struct {
		Type    asn1.ObjectIdentifier
		Content asn1.RawValue
	}{oidSignedData, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: inner}})
}

func contextSet(content []byte) asn1.RawValue {
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: content}
}

// signedAttributes encodes attributes in the order that DER wants of a set: by
// their own bytes.
func signedAttributes(values map[*asn1.ObjectIdentifier]any) ([]byte, error) {
	var all [][]byte
	for oid, v := range values {
		der, err := asn1.Marshal(v)
		if err != nil {
			return nil, err
		}
		a, err := asn1.Marshal(attribute{*oid, []asn1.RawValue{{FullBytes: der}}})
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	slices.SortFunc(all, bytes.Compare)
	return bytes.Join(all, nil), nil
}
