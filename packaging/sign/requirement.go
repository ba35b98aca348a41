package sign

import (
	"crypto/sha1"
	"crypto/x509"
	"encoding/asn1"
)

// The operators of Apple's requirement language that we write, as its compiled
// form numbers them (requirement.h of Security).
const (
	opIdent              = 2
	opAnchorHash         = 4
	opAnd                = 6
	opCertField          = 11
	opCertGeneric        = 14
	opAppleGenericAnchor = 15

	matchExists = 0
	matchEqual  = 1

	certLeaf         = 0
	certIntermediate = 1

	exprForm = 1
)

// The extensions by which Apple marks the certificates of a Developer ID.
var (
	oidDeveloperIDApplication = asn1.ObjectIdentifier{1, 2, 840, 113635, 100, 6, 1, 13}
	oidDeveloperIDAuthority   = asn1.ObjectIdentifier{1, 2, 840, 113635, 100, 6, 2, 6}
)

// designated is the requirement that macOS ties permissions to: who else may be
// taken for this app. It is nil for an ad hoc signature, where macOS takes the
// hash of the code.
//
// A Developer ID may renew its certificate, so it is known by its team:
//
//	identifier "ID" and anchor apple generic
//	and certificate 1[field.1.2.840.113635.100.6.2.6] exists
//	and certificate leaf[field.1.2.840.113635.100.6.1.13] exists
//	and certificate leaf[subject.OU] = "TEAM"
//
// Any other certificate is known by itself:
//
//	identifier "ID" and certificate leaf = H"SHA-1 of the certificate"
func designated(identifier string, id *Identity) []byte {
	if id == nil {
		return nil
	}
	ident := append(word(opIdent), data([]byte(identifier))...)
	var e []byte
	if team := id.TeamID(); team != "" {
		e = and(ident, word(opAppleGenericAnchor))
		e = and(e, certGeneric(certIntermediate, oidDeveloperIDAuthority))
		e = and(e, certGeneric(certLeaf, oidDeveloperIDApplication))
		field := append(word(opCertField), word(certLeaf)...)
		field = append(field, data([]byte("subject.OU"))...)
		field = append(field, word(matchEqual)...)
		e = and(e, append(field, data([]byte(team))...))
	} else {
		h := sha1.Sum(id.Cert.Raw)
		leaf := append(word(opAnchorHash), word(certLeaf)...)
		e = and(ident, append(leaf, data(h[:])...))
	}
	return blob(magicRequirement, append(word(exprForm), e...))
}

func certGeneric(slot uint32, oid asn1.ObjectIdentifier) []byte {
	e := append(word(opCertGeneric), word(slot)...)
	e = append(e, data(oidContent(oid))...)
	return append(e, word(matchExists)...)
}

func and(a, b []byte) []byte {
	return append(append(word(opAnd), a...), b...)
}

func word(v uint32) []byte { return be.AppendUint32(nil, v) }

// data is a length and the bytes, filled up to whole words.
func data(b []byte) []byte {
	out := append(word(uint32(len(b))), b...)
	for len(out)%4 != 0 {
		out = append(out, 0)
	}
	return out
}

// oidContent is the DER of an identifier without tag and length.
func oidContent(oid asn1.ObjectIdentifier) []byte {
	der, err := asn1.Marshal(oid)
	if err != nil {
		panic(err) // only our own constants come here
	}
	return der[2:]
}

func hasExtension(c *x509.Certificate, oid asn1.ObjectIdentifier) bool {
	for _, e := range c.Extensions {
		if e.Id.Equal(oid) {
			return true
		}
	}
	return false
}
