package x11

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"testing"
)

// le writes numbers as the protocol does.
func le(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if s, ok := v.(string); ok {
			b.WriteString(s)
			continue
		}
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

// rawEvent is a raw event as XI2proto.h lays it out, with axes 0 and 3.
func rawEvent(kind uint16, words uint32) []byte {
	return le(uint8(35), uint8(131), uint16(7), words, kind, uint16(2), uint32(99), uint32(1), uint16(6), uint16(1), uint32(0), uint32(0),
		uint32(0b1001), int32(-2), uint32(1<<31), int32(5), uint32(0), int32(-1), uint32(0), int32(3), uint32(0))
}

func TestReadRaw(t *testing.T) {
	want := Raw{Kind: RawMotion, Source: 6, Detail: 1, Axes: map[int]Axis{0: {Moved: -1.5, Given: -1}, 3: {Moved: 5, Given: 3}}}
	r := bytes.NewReader(append(rawEvent(17, 9), rawEvent(17, 8)...))
	p, err := readPacket(r)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok, err := parseRaw(p); !ok || err != nil || !reflect.DeepEqual(e, want) {
		t.Errorf("%+v, %v, %v", e, ok, err)
	}
	// One that ends before its last value.
	if p, err = readPacket(r); err != nil {
		t.Fatal(err)
	}
	if e, ok, err := parseRaw(p); ok || !errors.Is(err, errRaw) {
		t.Errorf("a short event: %+v, %v, %v", e, ok, err)
	}
	// Another event of the extension.
	if _, ok, err := parseRaw(rawEvent(11, 9)); ok || err != nil {
		t.Errorf("another event: %v, %v", ok, err)
	}
	if _, err := readPacket(bytes.NewReader(rawEvent(17, 1<<30))); !errors.Is(err, errRaw) {
		t.Errorf("4 GiB: %v", err)
	}
	if _, err := readPacket(bytes.NewReader(rawEvent(17, 9)[:40])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a broken end: %v", err)
	}
}

// deviceList is a reply to XIQueryDevice: a master, a tablet with two absolute
// axes, XTEST's keyboard.
func deviceList() []byte {
	axis := func(n uint16, mode uint8) []byte {
		return le(uint16(2), uint16(11), uint16(8), n, uint32(0), int32(10), uint32(0), int32(1010), uint32(0), int32(0), uint32(0), uint32(1), mode, uint8(0), uint16(0))
	}
	body := le(
		uint16(2), uint16(1), uint16(3), uint16(0), uint16(3), uint8(1), uint8(0), "abc\x00",
		uint16(8), uint16(3), uint16(2), uint16(3), uint16(6), uint8(1), uint8(0), "Tablet\x00\x00",
		uint16(0), uint16(2), uint16(8), uint16(0), // keys, of which there are none
		string(axis(0, 1)), string(axis(1, 1)),
		uint16(5), uint16(4), uint16(3), uint16(0), uint16(27), uint8(1), uint8(0), "Virtual core XTEST keyboard\x00")
	head := le(uint8(1), uint8(0), uint16(1), uint32(len(body)/4), uint16(3))
	return append(append(head, make([]byte, 32-len(head))...), body...)
}

func TestReadDevices(t *testing.T) {
	got, err := parseDevices(deviceList())
	want := map[uint16]Device{
		8: {ID: 8, Name: "Tablet", Pointer: true, Absolute: true, Extent: [2]float64{1000, 1000}},
		5: {ID: 5, Name: "Virtual core XTEST keyboard", XTest: true},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range deviceList() {
		if _, err := parseDevices(deviceList()[:n]); !errors.Is(err, errRaw) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestReadSetup(t *testing.T) {
	setup := append(le(uint32(1), uint32(0), uint32(0), uint32(0), uint16(5), uint16(0), uint8(1), uint8(1)), make([]byte, 10)...)
	setup = append(setup, "Maker\x00\x00\x00"...)
	setup = append(setup, make([]byte, 8)...) // a format
	setup = append(setup, le(uint32(0x123), make([]byte, 16), uint16(1280), uint16(800), make([]byte, 16))...)
	root, size, err := parseSetup(setup)
	if err != nil || root != 0x123 || size != [2]float64{1280, 800} {
		t.Errorf("%#x, %v, %v", root, size, err)
	}
	if _, _, err := parseSetup(setup[:60]); !errors.Is(err, errRaw) {
		t.Errorf("a short setup: %v", err)
	}
}

// Whatever the other side sends is read or refused.
func FuzzRaw(f *testing.F) {
	f.Add(rawEvent(17, 9))
	f.Add(rawEvent(13, 0)[:32])
	f.Add(deviceList())
	f.Add(append(deviceList(), rawEvent(16, 9)...))
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			p, err := readPacket(r)
			if err != nil {
				return
			}
			if len(p) < 32 {
				t.Fatalf("a packet of %d bytes", len(p))
			}
			if e, ok, err := parseRaw(p); ok && (err != nil || e.Kind < RawKeyPress || e.Kind > RawMotion || 16*len(e.Axes) > len(p)) {
				t.Errorf("%+v, %v", e, err)
			}
			if all, err := parseDevices(p); err == nil && 12*len(all) > len(p) {
				t.Errorf("%d devices in %d bytes", len(all), len(p))
			}
			_, _, _ = parseSetup(p)
		}
	})
}
