package verify

import (
	"bytes"
	"crypto/sha1"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// A requirement is one expression of Apple's requirement language: its text, and
// whether the code that carries it meets it.
type requirement struct {
	text string
	met  func(identifier string, chain []*x509.Certificate) bool
}

const (
	matchExists = 0
	matchEqual  = 1

	// maxDepth bounds nesting, since a stranger's bytes are read.
	maxDepth = 64
)

var errRequirement = errors.New("the requirement ends too early")

// parseRequirement reads a compiled requirement, without its blob's header.
func parseRequirement(b []byte) (requirement, error) {
	r := requirementReader{b: b}
	if form, err := r.word(); err != nil || form != 1 {
		return requirement{}, errors.New("the requirement is no expression")
	}
	out, err := r.expression(0)
	if err != nil {
		return requirement{}, err
	}
	if len(r.b) != 0 {
		return requirement{}, fmt.Errorf("the requirement has %d bytes too many", len(r.b))
	}
	return out, nil
}

type requirementReader struct{ b []byte }

func (r *requirementReader) word() (uint32, error) {
	if len(r.b) < 4 {
		return 0, errRequirement
	}
	v := binary.BigEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v, nil
}

func (r *requirementReader) data() ([]byte, error) {
	n, err := r.word()
	if err != nil {
		return nil, err
	}
	whole := (uint64(n) + 3) &^ 3
	if whole > uint64(len(r.b)) {
		return nil, errRequirement
	}
	d := r.b[:n:n]
	r.b = r.b[whole:]
	return d, nil
}

func (r *requirementReader) expression(depth int) (requirement, error) {
	if depth > maxDepth {
		return requirement{}, errors.New("the requirement is nested too deeply")
	}
	op, err := r.word()
	if err != nil {
		return requirement{}, err
	}
	switch op {
	case 2: // opIdent
		id, err := r.data()
		return requirement{
			text: "identifier " + strconv.Quote(string(id)),
			met:  func(identifier string, _ []*x509.Certificate) bool { return identifier == string(id) },
		}, err
	case 4: // opAnchorHash
		at, text, err := r.slot()
		if err != nil {
			return requirement{}, err
		}
		hash, err := r.data()
		return requirement{
			text: fmt.Sprintf("certificate %s = H\"%x\"", text, hash),
			met: func(_ string, chain []*x509.Certificate) bool {
				c := at(chain)
				if c == nil {
					return false
				}
				h := sha1.Sum(c.Raw)
				return bytes.Equal(h[:], hash)
			},
		}, err
	case 6, 7: // opAnd, opOr
		a, err := r.expression(depth + 1)
		if err != nil {
			return requirement{}, err
		}
		b, err := r.expression(depth + 1)
		if err != nil {
			return requirement{}, err
		}
		if op == 6 {
			return requirement{a.text + " and " + b.text, func(id string, c []*x509.Certificate) bool { return a.met(id, c) && b.met(id, c) }}, nil
		}
		return requirement{"(" + a.text + " or " + b.text + ")", func(id string, c []*x509.Certificate) bool { return a.met(id, c) || b.met(id, c) }}, nil
	case 11, 14: // opCertField, opCertGeneric
		return r.certificate(op == 14)
	case 15: // opAppleGenericAnchor
		// Met by whatever chain ends at Apple, which takes Apple's own roots to
		// tell. Report.Signature says that it is not told here.
		return requirement{"anchor apple generic", func(string, []*x509.Certificate) bool { return true }}, nil
	}
	return requirement{}, fmt.Errorf("the requirement has the operator %d, which is not known here", op)
}

// certificate reads a condition on a certificate's subject or extension.
func (r *requirementReader) certificate(generic bool) (requirement, error) {
	at, text, err := r.slot()
	if err != nil {
		return requirement{}, err
	}
	name, err := r.data()
	if err != nil {
		return requirement{}, err
	}
	match, err := r.word()
	if err != nil {
		return requirement{}, err
	}
	switch {
	case generic && match == matchExists:
		var oid asn1.ObjectIdentifier
		if len(name) > 127 {
			return requirement{}, errors.New("the requirement names an extension of more than 127 bytes")
		}
		if rest, err := asn1.Unmarshal(append([]byte{6, byte(len(name))}, name...), &oid); err != nil || len(rest) != 0 {
			return requirement{}, errors.New("the requirement names no extension")
		}
		return requirement{
			text: fmt.Sprintf("certificate %s[field.%s] exists", text, oid),
			met:  func(_ string, chain []*x509.Certificate) bool { return hasExtension(at(chain), oid) },
		}, nil
	case !generic && match == matchEqual && string(name) == "subject.OU":
		want, err := r.data()
		return requirement{
			text: fmt.Sprintf("certificate %s[subject.OU] = %q", text, want),
			met: func(_ string, chain []*x509.Certificate) bool {
				c := at(chain)
				return c != nil && len(c.Subject.OrganizationalUnit) == 1 && c.Subject.OrganizationalUnit[0] == string(want)
			},
		}, err
	}
	return requirement{}, fmt.Errorf("the requirement matches %q in a way (%d) that is not known here", name, match)
}

// slot reads which certificate is meant: the leaf is 0, its issuers follow, and
// the anchor is -1.
func (r *requirementReader) slot() (at func([]*x509.Certificate) *x509.Certificate, text string, err error) {
	v, err := r.word()
	if err != nil {
		return nil, "", err
	}
	n := int(int32(v))
	switch n {
	case 0:
		text = "leaf"
	case -1:
		text = "root"
	default:
		text = strconv.Itoa(n)
	}
	return func(chain []*x509.Certificate) *x509.Certificate {
		i := n
		if i < 0 {
			i += len(chain)
		}
		if i < 0 || i >= len(chain) {
			return nil
		}
		return chain[i]
	}, text, nil
}

func hasExtension(c *x509.Certificate, oid asn1.ObjectIdentifier) bool {
	if c == nil {
		return false
	}
	for _, e := range c.Extensions {
		if e.Id.Equal(oid) {
			return true
		}
	}
	return false
}
