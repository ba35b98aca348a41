package icon

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image/png"
)

// icnsParts are the pictures of an .icns file: the type and the side in pixels.
// A size that comes twice is there for one point a pixel and, at half the points,
// for two pixels a point.
var icnsParts = []struct {
	kind string
	side int
}{
	{"icp4", 16}, {"ic11", 32}, {"icp5", 32}, {"ic12", 64}, {"ic07", 128},
	{"ic13", 256}, {"ic08", 256}, {"ic14", 512}, {"ic09", 512}, {"ic10", 1024},
}

// ICNS returns the app's icon as an .icns file with the ten pictures that macOS
// asks for, each a PNG.
func ICNS() ([]byte, error) {
	drawn := map[int][]byte{}
	var body bytes.Buffer
	for _, p := range icnsParts {
		b, ok := drawn[p.side]
		if !ok {
			var buf bytes.Buffer
			e := png.Encoder{CompressionLevel: png.DefaultCompression}
			if err := e.Encode(&buf, App(p.side)); err != nil {
				return nil, fmt.Errorf("the icon at %d pixels: %w", p.side, err)
			}
			b = buf.Bytes()
			drawn[p.side] = b
		}
		chunk(&body, p.kind, b)
	}
	var out bytes.Buffer
	chunk(&out, "icns", body.Bytes())
	return out.Bytes(), nil
}

// chunk writes a type of four letters, the length with this header, and the data.
func chunk(w *bytes.Buffer, kind string, data []byte) {
	w.WriteString(kind)
	w.Write(binary.BigEndian.AppendUint32(nil, uint32(8+len(data))))
	w.Write(data)
}
