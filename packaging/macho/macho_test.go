package macho

import (
	"bytes"
	debugmacho "debug/macho"
	"encoding/binary"
	"strings"
	"testing"
)

// thin is a header of 32 bytes with nothing but size bytes behind it.
func thin(cpu uint32, size int) []byte {
	b := make([]byte, 32+size)
	binary.LittleEndian.PutUint32(b, magicThin)
	binary.LittleEndian.PutUint32(b[4:], cpu)
	binary.LittleEndian.PutUint32(b[12:], uint32(debugmacho.TypeExec))
	for i := range size {
		b[32+i] = byte(cpu) + byte(i)
	}
	return b
}

const amd64, arm64 = uint32(debugmacho.CpuAmd64), uint32(debugmacho.CpuArm64)

// TestJoin has the standard library read what was joined.
func TestJoin(t *testing.T) {
	a, b := thin(amd64, 20000), thin(arm64, 5)
	joined, err := Join(a, b)
	if err != nil {
		t.Fatal(err)
	}
	f, err := debugmacho.NewFatFile(bytes.NewReader(joined))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Arches) != 2 || f.Arches[0].Cpu != debugmacho.CpuAmd64 || f.Arches[1].Cpu != debugmacho.CpuArm64 {
		t.Fatalf("arches: %+v", f.Arches)
	}
	for i, want := range [][]byte{a, b} {
		h := f.Arches[i].FatArchHeader
		if h.Offset%(1<<h.Align) != 0 || h.Align != 14 {
			t.Errorf("slice %d at %d, alignment 2^%d", i, h.Offset, h.Align)
		}
		if !bytes.Equal(joined[h.Offset:h.Offset+h.Size], want) {
			t.Errorf("slice %d differs", i)
		}
	}
	parts, err := Split(joined)
	if err != nil || len(parts) != 2 || !bytes.Equal(parts[0], a) || !bytes.Equal(parts[1], b) {
		t.Errorf("Split does not undo Join: %d parts, %v", len(parts), err)
	}
	if parts, err := Split(a); err != nil || len(parts) != 1 || !bytes.Equal(parts[0], a) {
		t.Errorf("Split of a thin file: %d parts, %v", len(parts), err)
	}
}

func TestRefused(t *testing.T) {
	whole, err := Join(thin(amd64, 100), thin(arm64, 100))
	if err != nil {
		t.Fatal(err)
	}
	patched := func(at int, v uint32) []byte {
		b := bytes.Clone(whole)
		binary.BigEndian.PutUint32(b[at:], v)
		return b
	}
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"nothing":                {nil, "neither"},
		"a script":               {[]byte("#!/bin/sh\nexit 0 # long enough for a header"), "neither"},
		"no slices":              {patched(4, 0), "0 slices"},
		"more than can be":       {patched(4, 1<<31), "slices"},
		"a slice past the end":   {patched(8+8, 1<<31), "ends at"},
		"a slice of no bytes":    {patched(8+12, 0), "slice 0"},
		"a slice that is header": {patched(8+8, 0), "slice 0"},
		"a cut file":             {whole[:len(whole)-1], "slice 1 ends at"},
	} {
		if _, err := Split(c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := Join(); err == nil {
		t.Error("nothing was joined")
	}
	if _, err := Join(thin(amd64, 0), thin(amd64, 0)); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("one processor twice: %v", err)
	}
	if _, err := Join(whole); err == nil {
		t.Error("a universal file was joined as a slice")
	}
}

func FuzzSplit(f *testing.F) {
	whole, err := Join(thin(amd64, 100), thin(arm64, 100))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(thin(arm64, 1))
	f.Add([]byte{0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, err := Split(b)
		if (err == nil) == (len(parts) == 0) {
			t.Errorf("%d parts and %v", len(parts), err)
		}
		for _, p := range parts {
			if binary.LittleEndian.Uint32(p) != magicThin {
				t.Errorf("a part that begins with % x", p[:4])
			}
		}
	})
}
