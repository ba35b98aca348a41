package computer

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"image"
	"strconv"
	"strings"
	"sync"

	"drawbridge/bridge"
	"drawbridge/capture"
	"drawbridge/input"
)

// geometry is how one picture lies on the display that it shows. It travels
// with the picture, and a coordinate is only ever mapped through the geometry
// of the picture on which it was measured.
type geometry struct {
	id            string
	display       capture.Display
	width, height int // of the picture, in pixels
}

// scale is points a picture pixel, per axis: rounding the picture's size makes
// the two differ a little.
func (g *geometry) scale() [2]float64 {
	return [2]float64{g.display.Points[0] / float64(g.width), g.display.Points[1] / float64(g.height)}
}

// point maps a place of the picture to the global point space, unrounded.
func (g *geometry) point(at [2]float64) input.Point {
	s := g.scale()
	return input.Point{X: g.display.Origin[0] + at[0]*s[0], Y: g.display.Origin[1] + at[1]*s[1]}
}

// place is the reverse of point.
func (g *geometry) place(p input.Point) [2]float64 {
	s := g.scale()
	return [2]float64{(p.X - g.display.Origin[0]) / s[0], (p.Y - g.display.Origin[1]) / s[1]}
}

// pixel maps a place of the picture to the display's backing store.
func (g *geometry) pixel(at [2]float64) image.Point {
	return image.Pt(
		int(at[0]*float64(g.display.Pixels[0])/float64(g.width)),
		int(at[1]*float64(g.display.Pixels[1])/float64(g.height)))
}

// line is the mapping line that heads every result. frame is the size in pixels
// of what was captured.
func (g *geometry) line(frame [2]int) string {
	s := g.scale()
	line := fmt.Sprintf("screenshot %dx%d px · display %sx%s pt · backing scale %sx · 1 screenshot px = %sx%s display pt",
		g.width, g.height, number(g.display.Points[0]), number(g.display.Points[1]), number(g.display.Scale), number(s[0]), number(s[1]))
	if frame != [2]int{g.width, g.height} {
		line += fmt.Sprintf(" · downscaled from %dx%d px", frame[0], frame[1])
	}
	return line
}

// number writes n with at most four decimals, and none that say nothing.
func number(n float64) string {
	s := strconv.FormatFloat(n, 'f', 4, 64)
	s = strings.TrimRight(s, "0")
	return strings.TrimSuffix(s, ".")
}

// sameDisplay reports whether coordinates measured on a still hold on b.
func sameDisplay(a, b capture.Display) bool {
	return a.Index == b.Index && a.Points == b.Points && a.Pixels == b.Pixels && a.Origin == b.Origin
}

// keptPictures is how many pictures a client can name: the older ones are
// forgotten, and their coordinates refused.
const keptPictures = 32

// pictures remembers the geometry of the pictures that were given out.
type pictures struct {
	mu      sync.Mutex             // guards what follows
	clients map[string][]*geometry // by client, the newest last
	conns   map[string]*geometry   // by client and connection: the last one given there
}

func connKey(c bridge.Caller) string { return c.Client + "\x00" + c.Conn }

// add remembers a picture that is about to be given to c.
func (p *pictures) add(c bridge.Caller, g *geometry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients == nil {
		p.clients, p.conns = map[string][]*geometry{}, map[string]*geometry{}
	}
	kept := append(p.clients[c.Client], g)
	if len(kept) > keptPictures {
		kept = append([]*geometry(nil), kept[len(kept)-keptPictures:]...)
	}
	p.clients[c.Client] = kept
	if c.Conn != "" {
		p.conns[connKey(c)] = g
	}
}

// find returns the picture that c means: the one named id, else the last one
// given on c's connection, else the last one given to c's client. nil: none.
func (p *pictures) find(c bridge.Caller, id string) *geometry {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.clients[c.Client]
	if id != "" {
		for _, g := range kept {
			if g.id == id {
				return g
			}
		}
		return nil
	}
	if c.Conn != "" {
		if g := p.conns[connKey(c)]; g != nil {
			return g
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept[len(kept)-1]
}

// forget drops what is kept for a connection that ended.
func (p *pictures) forget(c bridge.Caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, connKey(c))
}

var idEncoding = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// newPictureID makes an id that is short enough to repeat and that no earlier
// run of the agent gave out.
func newPictureID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	return "p" + idEncoding.EncodeToString(b[:])
}
