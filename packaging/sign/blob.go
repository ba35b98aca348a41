package sign

import "encoding/binary"

// The magic numbers and slots of a signature (cs_blobs.h of XNU).
const (
	magicRequirement     = 0xfade0c00
	magicRequirements    = 0xfade0c01
	magicCodeDirectory   = 0xfade0c02
	magicSignature       = 0xfade0cc0
	magicEntitlements    = 0xfade7171
	magicEntitlementsDER = 0xfade7172
	magicWrapper         = 0xfade0b01 // holds the CMS message

	slotCodeDirectory   = 0
	slotInfoPlist       = 1
	slotRequirements    = 2
	slotResources       = 3
	slotEntitlements    = 5
	slotEntitlementsDER = 7
	slotCMS             = 0x10000

	requirementDesignated = 3
)

var (
	be = binary.BigEndian
	le = binary.LittleEndian
)

// blob is a magic number, the length with this header, and the payload.
func blob(magic uint32, payload []byte) []byte {
	b := be.AppendUint32(nil, magic)
	b = be.AppendUint32(b, uint32(8+len(payload)))
	return append(b, payload...)
}

// An entry is one blob of a blob that holds several.
type entry struct {
	slot uint32
	blob []byte
}

func superBlob(magic uint32, entries []entry) []byte {
	head := be.AppendUint32(nil, uint32(len(entries)))
	var body []byte
	for _, e := range entries {
		head = be.AppendUint32(head, e.slot)
		head = be.AppendUint32(head, uint32(12+8*len(entries)+len(body)))
		body = append(body, e.blob...)
	}
	return blob(magic, append(head, body...))
}
