package computer

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"testing"
)

// TestMarks: what each action does is in the picture that a person is shown.
func TestMarks(t *testing.T) {
	r := newRig(t)
	r.screen.SetDisplays(display(400, 300, 1, 0, 0))
	r.look()
	p, a := r.prepare(`{"actions":[
		{"type":"click","x":60,"y":40},
		{"type":"type","text":"a text that is rather long, \u202e and 世界"},
		{"type":"keypress","keys":["CTRL","SHIFT","A"]},
		{"type":"scroll","x":60,"y":150,"scroll_y":300},
		{"type":"scroll","x":160,"y":150,"scroll_x":-10,"scroll_y":-10},
		{"type":"scroll","x":200,"y":150,"scroll_x":120},
		{"type":"drag","path":[[250,250],[350,250],[350,200]]},
		{"type":"double_click","x":395,"y":10},
		{"type":"type","text":"end"}]}`)
	if a != nil {
		t.Fatalf("%s", a.Result)
	}
	data, err := p.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for what, at := range map[string]image.Point{
		"the click": {60, 40}, "the arrow down": {60, 180}, "the arrow up and left": {140, 130}, "the arrow to the right": {230, 150},
		"the path of the drag": {300, 250}, "its end": {350, 200}, "the double click": {395, 10},
	} {
		if c := color.RGBAModel.Convert(got.At(at.X, at.Y)); c != markColor {
			t.Errorf("no mark for %s at %v: %v", what, at, c)
		}
	}
	const file = "testdata/marks.png"
	if *update {
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for y := range 300 {
		for x := range 400 {
			if color.RGBAModel.Convert(got.At(x, y)) != color.RGBAModel.Convert(want.At(x, y)) {
				t.Fatalf("the picture is not that of %s at %d,%d", file, x, y)
			}
		}
	}
}

// TestMarksOfKeys: a batch that points at nothing has its keys and texts marked,
// too.
func TestMarksOfKeys(t *testing.T) {
	r := newRig(t)
	r.screen.SetDisplays(display(400, 300, 1, 0, 0))
	p, a := r.prepare(`{"actions":[{"type":"type","text":"x"},{"type":"keypress","keys":["ENTER"]}]}`)
	if a != nil {
		t.Fatalf("%s", a.Result)
	}
	data, err := p.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[int]bool{} // of 13 pixels, from the bottom
	for y := range 300 {
		if color.RGBAModel.Convert(img.At(12, y)) == edgeColor {
			lines[(299-y)/14] = true
		}
	}
	if len(lines) != 2 {
		t.Errorf("labels in the lines %v, want two", lines)
	}
}
