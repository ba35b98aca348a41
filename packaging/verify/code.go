package verify

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"debug/macho"
	"encoding/asn1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/smallstep/pkcs7"
	"howett.net/plist"
)

// The magic numbers and slots of a signature (cs_blobs.h of XNU).
const (
	magicRequirement     = 0xfade0c00
	magicRequirements    = 0xfade0c01
	magicDirectory       = 0xfade0c02
	magicSignature       = 0xfade0cc0
	magicEntitlements    = 0xfade7171
	magicEntitlementsDER = 0xfade7172
	magicWrapper         = 0xfade0b01

	slotDirectory       = 0
	slotInfoPlist       = 1
	slotRequirements    = 2
	slotResources       = 3
	slotEntitlements    = 5
	slotEntitlementsDER = 7
	slotCMS             = 0x10000

	flagAdHoc   = 0x2
	flagRuntime = 0x10000

	loadSignature    = 0x1d
	loadVersionMinOS = 0x24
	loadBuildVersion = 0x32

	requirementDesignated = 3
)

var be = binary.BigEndian

// Slice is what one processor's part of the executable is.
type Slice struct {
	Arch          string   `json:"arch"`
	MinimumSystem string   `json:"minimum_system"`
	Libraries     []string `json:"libraries"`
	CDHash        string   `json:"cdhash"` // as macOS shows it: 20 bytes
	Pages         int      `json:"pages"`
}

// signature is what the signature of one slice says once it was checked.
type signature struct {
	identifier   string
	adHoc        bool
	team         string
	requirement  string // designated; empty for ad hoc
	appleAnchor  bool   // the requirement asks for Apple's anchor
	signer       *x509.Certificate
	entitlements map[string]any
}

// beside is what a signature hashes that lies elsewhere in the bundle.
type beside struct{ infoPlist, resources []byte }

// checkSlice checks one thin Mach-O in full.
func checkSlice(b []byte, with beside) (Slice, signature, error) {
	f, err := macho.NewFile(bytes.NewReader(b))
	if err != nil {
		return Slice{}, signature{}, fmt.Errorf("no Mach-O: %w", err)
	}
	s := Slice{Arch: map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[f.Cpu]}
	if s.Arch == "" {
		s.Arch = f.Cpu.String()
	}
	if s.Libraries, err = f.ImportedLibraries(); err != nil {
		return s, signature{}, err
	}
	at, size := -1, 0
	for _, l := range f.Loads {
		raw := l.Raw()
		if len(raw) < 16 {
			continue
		}
		switch f.ByteOrder.Uint32(raw) {
		case loadSignature:
			at, size = int(f.ByteOrder.Uint32(raw[8:])), int(f.ByteOrder.Uint32(raw[12:]))
		case loadBuildVersion:
			s.MinimumSystem = version(f.ByteOrder.Uint32(raw[12:]))
		case loadVersionMinOS:
			s.MinimumSystem = version(f.ByteOrder.Uint32(raw[8:]))
		}
	}
	if at < 0 {
		return s, signature{}, errors.New("not signed")
	}
	linkedit := f.Segment("__LINKEDIT")
	if at%16 != 0 || at+size != len(b) || linkedit == nil || linkedit.Offset+linkedit.Filesz != uint64(len(b)) {
		return s, signature{}, errors.New("the signature is not the end of the last segment and of the file")
	}
	blobs, err := signatureBlobs(b[at:])
	if err != nil {
		return s, signature{}, err
	}
	sig, err := checkBlobs(blobs, b[:at], with, &s)
	return s, sig, err
}

func version(v uint32) string {
	text := fmt.Sprintf("%d.%d", v>>16, v>>8&0xff)
	if patch := v & 0xff; patch != 0 {
		text += fmt.Sprintf(".%d", patch)
	}
	return text
}

// signatureBlobs takes a signature apart.
func signatureBlobs(b []byte) (map[uint32][]byte, error) {
	payload, rest, err := blob(b, magicSignature)
	if err != nil {
		return nil, fmt.Errorf("the signature: %w", err)
	}
	if len(bytes.TrimRight(rest, "\x00")) != 0 {
		return nil, errors.New("something lies behind the signature")
	}
	return entries(payload)
}

// entries are the parts of a blob that holds several, by slot.
func entries(payload []byte) (map[uint32][]byte, error) {
	if len(payload) < 4 {
		return nil, errors.New("a list of parts ends too early")
	}
	n := be.Uint32(payload)
	if n > 64 || len(payload) < 4+8*int(n) {
		return nil, fmt.Errorf("a list of %d parts in %d bytes", n, len(payload))
	}
	out := map[uint32][]byte{}
	for i := range int(n) {
		slot, at := be.Uint32(payload[4+8*i:]), be.Uint32(payload[8+8*i:])
		// Offsets count from the blob's header of 8 bytes.
		if at < 12 || uint64(at)+8 > uint64(len(payload)+8) {
			return nil, fmt.Errorf("part %#x lies outside", slot)
		}
		part := payload[at-8:]
		size := be.Uint32(part[4:])
		if size < 8 || uint64(size) > uint64(len(part)) {
			return nil, fmt.Errorf("part %#x has a wrong length", slot)
		}
		if out[slot] != nil {
			return nil, fmt.Errorf("part %#x is there twice", slot)
		}
		out[slot] = part[:size:size]
	}
	return out, nil
}

// blob returns the payload of a blob, and what follows it.
func blob(b []byte, magic uint32) (payload, rest []byte, err error) {
	if len(b) < 8 || be.Uint32(b) != magic {
		return nil, nil, fmt.Errorf("no blob of kind %#x", magic)
	}
	size := be.Uint32(b[4:])
	if size < 8 || uint64(size) > uint64(len(b)) {
		return nil, nil, fmt.Errorf("a blob of %d bytes in %d", size, len(b))
	}
	return b[8:size], b[size:], nil
}

// checkBlobs checks the parts of a signature against the code before it and what
// lies beside it.
func checkBlobs(blobs map[uint32][]byte, code []byte, with beside, s *Slice) (signature, error) {
	directory := blobs[slotDirectory]
	if directory == nil {
		return signature{}, errors.New("the signature has no code directory")
	}
	d, err := parseDirectory(directory)
	if err != nil {
		return signature{}, err
	}
	sig := signature{identifier: d.identifier, team: d.team, adHoc: d.flags&flagAdHoc != 0}
	h := sha256.Sum256(directory)
	s.CDHash = hex.EncodeToString(h[:20])
	s.Pages = len(d.pages)
	problems := d.check(code, blobs, with)
	if d.flags&flagRuntime == 0 {
		problems = append(problems, errors.New("the hardened runtime is off"))
	}
	if b := blobs[slotEntitlements]; b != nil {
		text, _, err := blob(b, magicEntitlements)
		if err == nil {
			_, err = plist.Unmarshal(text, &sig.entitlements)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("the entitlements: %w", err))
		}
		if blobs[slotEntitlementsDER] == nil {
			problems = append(problems, errors.New("the entitlements are missing in the form that macOS 12 reads"))
		}
	}
	if b := blobs[slotEntitlementsDER]; b != nil {
		if _, _, err := blob(b, magicEntitlementsDER); err != nil || blobs[slotEntitlements] == nil {
			problems = append(problems, errors.New("the DER entitlements stand alone or are no such blob"))
		}
	}
	chain, err := checkMessage(blobs[slotCMS], directory, sig.adHoc)
	if err != nil {
		problems = append(problems, err)
	}
	if len(chain) > 0 {
		sig.signer = chain[0]
	}
	if err := sig.designated(blobs[slotRequirements], chain); err != nil {
		problems = append(problems, err)
	}
	return sig, errors.Join(problems...)
}

// designated reads the requirement that stands for the app, and checks that the
// app meets it itself.
func (s *signature) designated(b []byte, chain []*x509.Certificate) error {
	payload, _, err := blob(b, magicRequirements)
	if err != nil {
		return fmt.Errorf("the requirements: %w", err)
	}
	all, err := entries(payload)
	if err != nil {
		return fmt.Errorf("the requirements: %w", err)
	}
	if all[requirementDesignated] == nil {
		if s.adHoc {
			return nil
		}
		return errors.New("the signature names no designated requirement, so that macOS cannot tie permissions to it")
	}
	expression, _, err := blob(all[requirementDesignated], magicRequirement)
	if err != nil {
		return fmt.Errorf("the designated requirement: %w", err)
	}
	r, err := parseRequirement(expression)
	if err != nil {
		return err
	}
	s.requirement = r.text
	s.appleAnchor = strings.Contains(r.text, "anchor apple generic")
	if !r.met(s.identifier, chain) {
		return fmt.Errorf("the app does not meet its own requirement: %s", r.text)
	}
	return nil
}

// directory is a code directory taken apart.
type directory struct {
	flags            uint32
	identifier, team string
	limit            uint64
	pageSize         uint64
	special          map[uint32][]byte // by slot
	pages            [][]byte
}

func parseDirectory(b []byte) (*directory, error) {
	payload, _, err := blob(b, magicDirectory)
	if err != nil {
		return nil, fmt.Errorf("the code directory: %w", err)
	}
	const header = 96 // of version 0x20500, which has a place for the hardened runtime
	if len(b) < header || be.Uint32(payload) < 0x20500 {
		return nil, errors.New("the code directory is older than the hardened runtime")
	}
	if b[36] != sha256.Size || b[37] != 2 {
		return nil, fmt.Errorf("the code directory hashes in another way (%d) than by SHA-256", b[37])
	}
	word := func(i int) uint64 { return uint64(be.Uint32(b[4*i:])) }
	d := &directory{flags: uint32(word(3)), limit: word(8), special: map[uint32][]byte{}}
	if large := be.Uint64(b[56:]); large != 0 {
		return nil, errors.New("the code is larger than 4 GiB")
	}
	if b[39] > 24 {
		return nil, fmt.Errorf("pages of 2^%d bytes", b[39])
	}
	d.pageSize = 1 << b[39]
	hashes, specials, pages := word(4), word(6), word(7)
	if specials > 64 || hashes < specials*sha256.Size || hashes+pages*sha256.Size > uint64(len(b)) {
		return nil, errors.New("the hashes lie outside the code directory")
	}
	text := func(at uint64) (string, error) {
		if at < header || at >= uint64(len(b)) {
			return "", errors.New("a name lies outside the code directory")
		}
		end := bytes.IndexByte(b[at:], 0)
		if end < 0 {
			return "", errors.New("a name in the code directory does not end")
		}
		return string(b[at : at+uint64(end)]), nil
	}
	if d.identifier, err = text(word(5)); err != nil {
		return nil, err
	}
	if word(12) != 0 {
		if d.team, err = text(word(12)); err != nil {
			return nil, err
		}
	}
	for i := uint64(1); i <= specials; i++ {
		at := hashes - i*sha256.Size
		d.special[uint32(i)] = b[at : at+sha256.Size]
	}
	for i := range pages {
		at := hashes + i*sha256.Size
		d.pages = append(d.pages, b[at:at+sha256.Size])
	}
	return d, nil
}

// check hashes every page and every part again.
func (d *directory) check(code []byte, blobs map[uint32][]byte, with beside) []error {
	var problems []error
	if d.limit != uint64(len(code)) {
		problems = append(problems, fmt.Errorf("the code directory covers %d bytes, the code has %d", d.limit, len(code)))
	}
	if want := (uint64(len(code)) + d.pageSize - 1) / d.pageSize; want != uint64(len(d.pages)) {
		problems = append(problems, fmt.Errorf("the code has %d pages, the code directory %d", want, len(d.pages)))
	}
	for i, want := range d.pages {
		at := uint64(i) * d.pageSize
		if at >= uint64(len(code)) {
			break
		}
		if h := sha256.Sum256(code[at:min(at+d.pageSize, uint64(len(code)))]); !bytes.Equal(h[:], want) {
			problems = append(problems, fmt.Errorf("page %d of the code was changed", i))
			break // one is enough to say so
		}
	}
	// What each slot is the hash of. A slot that is the hash of nothing is zero.
	parts := map[uint32][]byte{slotInfoPlist: with.infoPlist, slotResources: with.resources}
	for slot, b := range blobs {
		if slot > 0 && slot < 0x100 {
			parts[slot] = b
		}
	}
	for slot, content := range parts {
		if h := sha256.Sum256(content); !bytes.Equal(h[:], d.special[slot]) {
			problems = append(problems, fmt.Errorf("%s was changed", slotName(slot)))
		}
	}
	for slot, hash := range d.special {
		if parts[slot] == nil && !bytes.Equal(hash, make([]byte, sha256.Size)) {
			problems = append(problems, fmt.Errorf("%s is missing", slotName(slot)))
		}
	}
	return problems
}

func slotName(slot uint32) string {
	switch slot {
	case slotInfoPlist:
		return "Info.plist"
	case slotRequirements:
		return "the set of requirements"
	case slotResources:
		return "the list of resources"
	case slotEntitlements:
		return "the list of entitlements"
	case slotEntitlementsDER:
		return "the DER list of entitlements"
	}
	return fmt.Sprintf("part %d of the signature", slot)
}

// issuers is a certificate with those that issued it, the nearest first. They may
// come in any order.
func issuers(c *x509.Certificate, all []*x509.Certificate) []*x509.Certificate {
	chain := []*x509.Certificate{c}
	for range all {
		last := chain[len(chain)-1]
		i := slices.IndexFunc(all, func(c *x509.Certificate) bool {
			return !slices.ContainsFunc(chain, c.Equal) && last.CheckSignatureFrom(c) == nil
		})
		if i < 0 {
			break
		}
		chain = append(chain, all[i])
	}
	return chain
}

var oidCDHashes = asn1.ObjectIdentifier{1, 2, 840, 113635, 100, 9, 2}

// checkMessage checks the CMS message over a code directory and returns the
// signer's certificate and those that came with it.
func checkMessage(b, directory []byte, adHoc bool) ([]*x509.Certificate, error) {
	var message []byte
	if b != nil {
		var err error
		if message, _, err = blob(b, magicWrapper); err != nil {
			return nil, fmt.Errorf("the signature's message: %w", err)
		}
	}
	if adHoc != (len(message) == 0) {
		return nil, errors.New("an ad hoc signature has no certificate, and any other has one")
	}
	if adHoc {
		return nil, nil
	}
	p, err := pkcs7.Parse(message)
	if err != nil {
		return nil, fmt.Errorf("the signature's message: %w", err)
	}
	signer := p.GetOnlySigner()
	if signer == nil {
		return nil, errors.New("the signature's message has not exactly one signer")
	}
	chain := issuers(signer, p.Certificates)
	p.Content = directory
	if err := p.Verify(); err != nil {
		return chain, fmt.Errorf("the signature is not by its certificate over this code: %w", err)
	}
	var stated struct {
		Algorithm asn1.ObjectIdentifier
		Digest    []byte
	}
	if err := p.UnmarshalSignedAttribute(oidCDHashes, &stated); err != nil {
		return chain, fmt.Errorf("the signature's message does not name the code directory: %w", err)
	}
	if h := sha256.Sum256(directory); !bytes.Equal(h[:], stated.Digest) {
		return chain, errors.New("the signature's message names another code directory")
	}
	return chain, nil
}
