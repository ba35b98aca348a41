package verify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// The header of a universal program (fat.h of XNU).
const (
	magicFat  = 0xcafebabe
	magicThin = 0xfeedfacf // 64 bits, as it is in memory

	fatHeader = 8
	fatArch   = 20
	maxSlices = 8

	// Slices begin at powers of two: pages of 16 KiB, without which arm64 does not map
	// one. Apple's tools put those for Intel at its own pages of 4 KiB.
	sliceAlign = 14
	intelAlign = 12
	cpuIntel   = 0x01000007
)

// programSlices takes a universal program apart; a thin one is its own slice. No
// signature covers the header, so each word of it is held to what the slices say
// themselves: there is one header for some slices. What lies between them must be
// empty, and nothing may follow the last.
func programSlices(b []byte) ([][]byte, error) {
	le := binary.LittleEndian
	if len(b) >= 32 && le.Uint32(b) == magicThin {
		return [][]byte{b}, nil
	}
	if len(b) < fatHeader || be.Uint32(b) != magicFat {
		return nil, errors.New("the program is no universal Mach-O, and no thin one of 64 bits")
	}
	n := be.Uint32(b[4:])
	if n == 0 || n > maxSlices || len(b) < fatHeader+fatArch*int(n) {
		return nil, fmt.Errorf("the program's header tells of %d slices", n)
	}
	end := uint64(fatHeader + fatArch*int(n))
	kinds := map[uint32]bool{}
	var out [][]byte
	for i := range int(n) {
		h := b[fatHeader+fatArch*i:]
		kind, sub, from, size, align := be.Uint32(h), be.Uint32(h[4:]), uint64(be.Uint32(h[8:])), uint64(be.Uint32(h[12:])), be.Uint32(h[16:])
		page := uint64(1) << min(align, sliceAlign)
		want := (end + page - 1) &^ (page - 1)
		switch {
		case align != sliceAlign && (align != intelAlign || kind != cpuIntel):
			return nil, fmt.Errorf("slice %d begins at multiples of 2^%d, the header says, where it is 2^%d", i, align, sliceAlign)
		case from != want:
			return nil, fmt.Errorf("slice %d is at %d, the header says, where it must be at %d", i, from, want)
		case from+size > uint64(len(b)):
			return nil, fmt.Errorf("slice %d is from %d to %d, the program has %d bytes", i, from, from+size, len(b))
		case size < 32 || le.Uint32(b[from:]) != magicThin:
			return nil, fmt.Errorf("slice %d is no 64-bit Mach-O", i)
		case kind != le.Uint32(b[from+4:]) || sub != le.Uint32(b[from+8:]):
			return nil, fmt.Errorf("slice %d is for processor %#x, %#x, the header says, and for %#x, %#x, it says itself", i, kind, sub, le.Uint32(b[from+4:]), le.Uint32(b[from+8:]))
		case kinds[kind]:
			return nil, fmt.Errorf("slice %d is for processor %#x, for which there is one already", i, kind)
		case len(bytes.Trim(b[end:from], "\x00")) != 0:
			return nil, fmt.Errorf("something lies before slice %d", i)
		}
		kinds[kind] = true
		end = from + size
		out = append(out, b[from:end:end])
	}
	if end != uint64(len(b)) {
		return nil, fmt.Errorf("%d bytes follow the last slice of the program", uint64(len(b))-end)
	}
	return out, nil
}
