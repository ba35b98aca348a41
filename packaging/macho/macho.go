// Package macho joins thin Mach-O files into a universal one and takes such a
// file apart again. The standard library only reads them.
package macho

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	magicFat  = 0xcafebabe
	magicThin = 0xfeedfacf // 64 bits

	// alignShift is the power of two that slices begin at: the 16 KiB pages of
	// arm64.
	alignShift = 14
	align      = 1 << alignShift

	maxSlices = 8
)

// Join joins thin 64-bit Mach-O files of different processors.
func Join(slices ...[]byte) ([]byte, error) {
	if len(slices) == 0 || len(slices) > maxSlices {
		return nil, fmt.Errorf("a universal file has 1 to %d slices, not %d", maxSlices, len(slices))
	}
	be, le := binary.BigEndian, binary.LittleEndian
	out := be.AppendUint32(nil, magicFat)
	out = be.AppendUint32(out, uint32(len(slices)))
	seen := map[uint32]bool{}
	off := align
	for i, s := range slices {
		if len(s) < 32 || le.Uint32(s) != magicThin {
			return nil, fmt.Errorf("slice %d is no thin 64-bit Mach-O", i)
		}
		cpu, sub := le.Uint32(s[4:]), le.Uint32(s[8:])
		if seen[cpu] {
			return nil, fmt.Errorf("slice %d is for processor %#x, which is there already", i, cpu)
		}
		seen[cpu] = true
		end := int64(off) + int64(len(s))
		if end > 1<<32-1 {
			return nil, errors.New("the slices are larger than 4 GiB together, which the header cannot say")
		}
		for _, v := range []uint32{cpu, sub, uint32(off), uint32(len(s)), alignShift} {
			out = be.AppendUint32(out, v)
		}
		off = (int(end) + align - 1) &^ (align - 1)
	}
	for _, s := range slices {
		start := (len(out) + align - 1) &^ (align - 1)
		out = append(out, make([]byte, start-len(out))...)
		out = append(out, s...)
	}
	return out, nil
}

// Split returns the slices of a universal file, or the file itself where it is
// thin. They share b's memory.
func Split(b []byte) ([][]byte, error) {
	be, le := binary.BigEndian, binary.LittleEndian
	if len(b) >= 32 && le.Uint32(b) == magicThin {
		return [][]byte{b}, nil
	}
	if len(b) < 8 || be.Uint32(b) != magicFat {
		return nil, errors.New("neither a universal nor a thin 64-bit Mach-O")
	}
	n := be.Uint32(b[4:])
	if n == 0 || n > maxSlices || len(b) < 8+20*int(n) {
		return nil, fmt.Errorf("a universal file with %d slices", n)
	}
	var slices [][]byte
	for i := range int(n) {
		h := b[8+20*i:]
		off, size := uint64(be.Uint32(h[8:])), uint64(be.Uint32(h[12:]))
		if off+size > uint64(len(b)) {
			return nil, fmt.Errorf("slice %d ends at %d, the file at %d", i, off+size, len(b))
		}
		s := b[off : off+size : off+size]
		if len(s) < 32 || le.Uint32(s) != magicThin {
			return nil, fmt.Errorf("slice %d is no thin 64-bit Mach-O", i)
		}
		slices = append(slices, s)
	}
	return slices, nil
}
