package sign

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"drawbridge/packaging/macho"
)

const (
	flagAdHoc   = 0x2
	flagRuntime = 0x10000 // the hardened runtime

	pageSize = 4096

	loadSegment      = 0x19
	loadSignature    = 0x1d
	loadBuildVersion = 0x32
)

// params is what the signature of one executable says.
type params struct {
	identifier   string
	infoPlist    []byte
	resources    []byte // the CodeResources file
	entitlements []byte // a property list, may be empty
	identity     *Identity
	now          time.Time
}

// code returns a signed copy of a thin or universal Mach-O. A signature that is
// there, such as the linker's, is replaced.
func code(b []byte, p params) ([]byte, error) {
	slices, err := macho.Split(b)
	if err != nil {
		return nil, err
	}
	for i, s := range slices {
		if slices[i], err = signSlice(s, p); err != nil {
			return nil, fmt.Errorf("slice %d: %w", i, err)
		}
	}
	if len(slices) == 1 {
		return slices[0], nil
	}
	return macho.Join(slices...)
}

// layout is where things are in one slice. Offsets of load commands are from the
// start of the slice.
type layout struct {
	commands, commandsSize uint32
	linkedit               int // the command of the last segment, which holds the signature
	linkeditAt             uint64
	end                    uint64 // of what is kept: without a signature
	signature              int    // the command; 0 for none
	textAt, textSize       uint64
	firstSection           uint64 // the commands may grow up to here
	sdk                    uint32
}

var errShort = errors.New("the load commands end too early")

func readLayout(b []byte) (layout, error) {
	l := layout{commands: le.Uint32(b[16:]), commandsSize: le.Uint32(b[20:]), firstSection: uint64(len(b))}
	off := 32
	for range l.commands {
		if off+8 > len(b) {
			return l, errShort
		}
		kind, size := le.Uint32(b[off:]), int(le.Uint32(b[off+4:]))
		if size < 8 || off+size > len(b) {
			return l, errShort
		}
		c := b[off : off+size]
		switch kind {
		case loadSegment:
			if err := l.segment(c, off); err != nil {
				return l, err
			}
		case loadSignature:
			if size < 16 {
				return l, errShort
			}
			l.signature = off
		case loadBuildVersion:
			if size < 20 {
				return l, errShort
			}
			l.sdk = le.Uint32(c[16:])
		}
		off += size
	}
	if l.linkedit == 0 || l.textSize == 0 {
		return l, errors.New("no __LINKEDIT or no __TEXT segment: that is no linked program")
	}
	if l.signature != 0 {
		l.end = uint64(le.Uint32(b[l.signature+8:]))
	}
	if l.end > uint64(len(b)) || l.end < l.linkeditAt {
		return l, fmt.Errorf("the last segment is from %d to %d, the slice ends at %d", l.linkeditAt, l.end, len(b))
	}
	return l, nil
}

func (l *layout) segment(c []byte, off int) error {
	if len(c) < 72 {
		return errShort
	}
	at, size, sections := le.Uint64(c[40:]), le.Uint64(c[48:]), int(le.Uint32(c[64:]))
	switch string(bytes.TrimRight(c[8:24], "\x00")) {
	case "__LINKEDIT":
		l.linkedit, l.linkeditAt, l.end = off, at, at+size
	case "__TEXT":
		l.textAt, l.textSize = at, size
	}
	if len(c) < 72+80*sections {
		return errShort
	}
	for i := range sections {
		if at := uint64(le.Uint32(c[72+80*i+48:])); at != 0 {
			l.firstSection = min(l.firstSection, at)
		}
	}
	return nil
}

// signSlice signs a thin Mach-O. The signature goes to its end, where the last
// segment grows to hold it. Everything but the CMS message has a known size; for
// that there is room to spare, since the code directory covers the commands that
// say how long the signature is.
func signSlice(in []byte, p params) ([]byte, error) {
	l, err := readLayout(in)
	if err != nil {
		return nil, err
	}
	b := bytes.Clone(in[:l.end])
	for len(b)%16 != 0 {
		b = append(b, 0)
	}
	if l.signature == 0 {
		l.signature = 32 + int(l.commandsSize)
		if uint64(l.signature+16) > l.firstSection {
			return nil, errors.New("there is no room in the header for the load command of a signature")
		}
		le.PutUint32(b[16:], l.commands+1)
		le.PutUint32(b[20:], l.commandsSize+16)
		le.PutUint32(b[l.signature:], loadSignature)
		le.PutUint32(b[l.signature+4:], 16)
	}
	special, err := p.specialSlots()
	if err != nil {
		return nil, err
	}
	at := len(b)
	size := 12 + 8*(len(special)+2) + len(p.directory(b, l, special)) + 8
	for _, e := range special {
		size += len(e.blob)
	}
	if p.identity != nil {
		size += 4096 + p.identity.size()
	}
	size = (size + 15) &^ 15
	le.PutUint32(b[l.signature+8:], uint32(at))
	le.PutUint32(b[l.signature+12:], uint32(size))
	grown := uint64(at+size) - l.linkeditAt
	le.PutUint64(b[l.linkedit+32:], (grown+0x3fff)&^0x3fff) // in memory: whole pages of arm64
	le.PutUint64(b[l.linkedit+48:], grown)

	directory := p.directory(b, l, special)
	var message []byte
	if p.identity != nil {
		if message, err = cms(directory, p.identity, p.now); err != nil {
			return nil, err
		}
	}
	entries := append([]entry{{slotCodeDirectory, directory}}, special...)
	entries = append(entries, entry{slotCMS, blob(magicWrapper, message)})
	signature := superBlob(magicSignature, entries)
	if len(signature) > size {
		return nil, fmt.Errorf("the signature takes %d bytes and has room for %d", len(signature), size)
	}
	return append(append(b, signature...), make([]byte, size-len(signature))...), nil
}

// specialSlots are the parts that lie in the signature beside the code directory
// and are hashed by it.
func (p params) specialSlots() ([]entry, error) {
	var inner []entry
	if r := designated(p.identifier, p.identity); r != nil {
		inner = []entry{{requirementDesignated, r}}
	}
	out := []entry{{slotRequirements, superBlob(magicRequirements, inner)}}
	text, der, err := entitlementBlobs(p.entitlements)
	if err != nil {
		return nil, err
	}
	if text != nil {
		out = append(out, entry{slotEntitlements, text}, entry{slotEntitlementsDER, der})
	}
	return out, nil
}

// directory is the code directory, version 0x20500: what the executable is, and
// the hash of every page before the signature and of every part beside it.
func (p params) directory(b []byte, l layout, special []entry) []byte {
	slots := map[int][]byte{slotInfoPlist: p.infoPlist, slotResources: p.resources}
	last := slotResources
	for _, e := range special {
		slots[int(e.slot)] = e.blob
		last = max(last, int(e.slot))
	}
	flags, team := uint32(flagRuntime), ""
	if p.identity == nil {
		flags |= flagAdHoc
	} else {
		team = p.identity.TeamID()
	}
	const header = 96
	identAt := header
	hashesAt := identAt + len(p.identifier) + 1
	teamAt := 0
	if team != "" {
		teamAt = hashesAt
		hashesAt += len(team) + 1
	}
	hashesAt += sha256.Size * last
	pages := (len(b) + pageSize - 1) / pageSize
	size := hashesAt + sha256.Size*pages

	cd := make([]byte, header, size)
	for i, v := range []uint32{
		magicCodeDirectory, uint32(size), 0x20500, flags, uint32(hashesAt), uint32(identAt),
		uint32(last), uint32(pages), uint32(len(b)),
	} {
		be.PutUint32(cd[4*i:], v)
	}
	cd[36], cd[37], cd[39] = sha256.Size, 2, 12 // the hash is SHA-256, a page is 2^12
	be.PutUint32(cd[48:], uint32(teamAt))
	be.PutUint64(cd[64:], l.textAt)
	be.PutUint64(cd[72:], l.textSize)
	be.PutUint64(cd[80:], 1) // a main binary
	be.PutUint32(cd[88:], l.sdk)
	cd = append(append(cd, p.identifier...), 0)
	if team != "" {
		cd = append(append(cd, team...), 0)
	}
	// Counted backwards from the first page.
	for i := last; i > 0; i-- {
		if slots[i] == nil {
			cd = append(cd, make([]byte, sha256.Size)...)
			continue
		}
		h := sha256.Sum256(slots[i])
		cd = append(cd, h[:]...)
	}
	for i := range pages {
		h := sha256.Sum256(b[i*pageSize : min((i+1)*pageSize, len(b))])
		cd = append(cd, h[:]...)
	}
	return cd
}
