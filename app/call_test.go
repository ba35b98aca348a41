package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func decodeResult(t *testing.T, raw string) *result {
	t.Helper()
	r := &result{raw: json.RawMessage(raw)}
	if err := json.Unmarshal(r.raw, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestResultPictures(t *testing.T) {
	picture := []byte("\x89PNG not really")
	raw := `{"content":[{"type":"text","text":"done <ok>","odd":1e2},{"type":"image","data":"` +
		base64.StdEncoding.EncodeToString(picture) + `","mimeType":"image/png"}],` +
		`"structuredContent":{"big":9007199254740993},"_meta":{"drawbridge/refused":"denied"},"isError":true}`
	dir := filepath.Join(t.TempDir(), "out")
	r := decodeResult(t, raw)
	if err := r.savePictures(dir, ""); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "image-1.png")
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, picture) {
		t.Errorf("saved %q, %v", b, err)
	}
	var text, out bytes.Buffer
	if err := r.print(&text); err != nil || text.String() != "done <ok>\nimage: "+path+"\n" {
		t.Errorf("printed %q, %v", text.String(), err)
	}
	if err := r.printJSON(&out); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, out.Bytes()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"path":"` + path + `"`, `"odd":1e2`, `{"big":9007199254740993}`, `"text":"done <ok>"`, `"isError":true`} {
		if !strings.Contains(compact.String(), want) {
			t.Errorf("as JSON %s, without %s", compact.String(), want)
		}
	}
	if strings.Contains(compact.String(), `"data"`) {
		t.Errorf("as JSON the picture's data is still there: %s", compact.String())
	}
	if !r.IsError || r.Meta.Refused != "denied" {
		t.Errorf("isError %v, refused %q", r.IsError, r.Meta.Refused)
	}
	// A second call writes over nothing.
	if err := r.savePictures(dir, ""); err != nil || r.Content[1].path != filepath.Join(dir, "image-2.png") {
		t.Errorf("second time: %s, %v", r.Content[1].path, err)
	}
}

func TestResultWithoutPicturesMakesNoDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	r := decodeResult(t, `{"content":[{"type":"text","text":"x"},{"type":"resource_link","uri":"y"}]}`)
	if err := r.savePictures(dir, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("made a directory for nothing")
	}
	var text bytes.Buffer
	if err := r.print(&text); err != nil || text.String() != "x\n(resource_link)\n" {
		t.Errorf("printed %q, %v", text.String(), err)
	}
}

func TestResultBadPicture(t *testing.T) {
	r := decodeResult(t, `{"content":[{"type":"image","data":"!!","mimeType":"image/png"}]}`)
	dir := filepath.Join(t.TempDir(), "out")
	if err := r.savePictures(dir, ""); err == nil || !strings.Contains(err.Error(), "content block 0 holds no base64") {
		t.Errorf("bad base64: %v", err)
	}
}

func TestArguments(t *testing.T) {
	const exact = `{"n":9007199254740993, "f":1.0,"a":[ ]}`
	c := &cli{stdio: stdio{in: strings.NewReader(" " + exact + "\n")}}
	for _, raw := range []string{exact, "-"} {
		if got, err := c.arguments(raw); err != nil || string(got) != exact {
			t.Errorf("%q: %s, %v; want the bytes as they are", raw, got, err)
		}
	}
	for _, raw := range []string{"", "null", "[]", `"x"`, "{", "{} {}", "-"} {
		if _, err := c.arguments(raw); err == nil {
			t.Errorf("%q was accepted", raw)
		}
	}
}
