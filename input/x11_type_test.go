//go:build linux

package input

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// cjk returns n different characters, more than can be bound at once.
func cjk(n, from int) string {
	var b strings.Builder
	for i := range n {
		b.WriteRune(rune(from + 3*i))
	}
	return b.String()
}

var ascii = func() string {
	var b strings.Builder
	for r := rune(' '); r <= '~'; r++ {
		b.WriteRune(r)
	}
	return b.String()
}()

const emoji = "👩‍💻 👍🏽 🇩🇪🇫🇷 ❤️ 🏳️‍🌈 👨‍👩‍👧‍👦 1️⃣"

// texts are what typing must get exactly right, in every way of doing it.
var texts = []struct{ name, text string }{
	{"ascii", ascii},
	{"lines", "first\n\tsecond, indented\n\nfourth  two spaces\n"},
	{"accents", "Älter, naïve façade: ÀÉÎÕÜ ñ ß ÿ æ œ Ž č ł ő € £ ¥ § ° ½ « » “ ” … –"},
	{"cyrillic and greek", "Съешь же ещё этих мягких французских булок. Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία."},
	{"cjk", cjk(100, 0x4e00)},
	{"more cjk", "日本語テキスト、中文字符\n" + cjk(100, 0x6000) + "한국어 텍스트"},
	{"emoji", emoji},
	{"combining", "e\u0301 a\u0308 n\u0303o"},
	{"right to left", "שלום עולם مرحبا"},
	{"mixed", "a中b文c\n😀 x = \"é\";\t// ✓\n" + ascii},
}

func TestTypeIntoEditor(t *testing.T) {
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own=%v", own), func(t *testing.T) {
			v := startDesk(t)
			d := openDriver(t, v, own)
			file := editor(t, v, d)
			for _, c := range texts {
				wipe(t, d)
				mustType(t, d, c.text)
				if got := saved(t, d, file, c.text); got != c.text {
					t.Errorf("%s: %s", c.name, diff(got, c.text))
				}
			}

			// A Windows line end is one Return.
			wipe(t, d)
			mustType(t, d, "a\r\nb\rc\n")
			if got := saved(t, d, file, "a\nb\nc\n"); got != "a\nb\nc\n" {
				t.Errorf("line ends: %q", got)
			}

			// Caps Lock changes nothing.
			chord(t, d, CapsLock)
			for _, c := range texts {
				wipe(t, d)
				mustType(t, d, c.text)
				if got := saved(t, d, file, c.text); got != c.text {
					t.Errorf("%s with Caps Lock: %s", c.name, diff(got, c.text))
				}
			}
			l, err := readLocks(t.Context(), d.conn)
			if err != nil || !l.caps {
				t.Errorf("Caps Lock was changed: %+v, %v", l, err)
			}
		})
	}
}

// TestTypeIsExactEveryTime repeats what goes wrong when keycodes get another
// meaning too early.
func TestTypeIsExactEveryTime(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	file := editor(t, v, d)
	for i := range 8 {
		want := cjk(200, 0x4e00+1000*i)
		wipe(t, d)
		mustType(t, d, want)
		if got := saved(t, d, file, want); got != want {
			t.Fatalf("run %d: %s", i, diff(got, want))
		}
	}
}

// TestTypeIntoTerminal types into a program that answers no ping.
func TestTypeIntoTerminal(t *testing.T) {
	need(t, "xterm", "xterm")
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own=%v", own), func(t *testing.T) {
			v := startDesk(t)
			d := openDriver(t, v, own)
			out := filepath.Join(t.TempDir(), "out")
			launch(t, v, d, "xterm", "-u8", "-e", "sh", "-c", "stty -echo; : >"+out+".ready; cat >"+out)
			eventually(t, "the shell runs", func() bool { _, err := os.Stat(out + ".ready"); return err == nil })
			// One line at a time: a terminal hands over at most 4095 bytes of one.
			want := ascii + "\nÄé 中文字符 😀\n" + cjk(120, 0x4e00) + "\nlast line\n"
			mustType(t, d, want)
			var got string
			for end := time.Now().Add(limit); got != want && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				b, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				got = string(b)
			}
			if got != want {
				t.Error(diff(got, want))
			}
		})
	}
}

func TestTypeRefuses(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	l := newLogger(t, v)
	for text, want := range map[string]string{
		"ab\xffsecret":   "byte 2",
		"secret\x1b[31m": "U+001B",
		"secret\x00":     "U+0000",
		"\u0085secret":   "U+0085",
	} {
		n, err := d.Type(t.Context(), text)
		if n != 0 || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if n, err := d.Type(t.Context(), ""); n != 0 || err != nil {
		t.Errorf("no text: %d, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := d.Type(ctx, "text"); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %d, %v", n, err)
	}
	l.want(t)
}

// TestTypeIsCancelled ends a long text on the way: a whole number of graphemes
// was sent, and nothing stays down.
func TestTypeIsCancelled(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	file := editor(t, v, d)
	text := strings.Repeat("LONG 👩‍💻 TEXT ", 20000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type result struct {
		n   int
		err error
	}
	done := make(chan result)
	go func() {
		n, err := d.Type(ctx, text)
		done <- result{n, err}
	}()
	time.AfterFunc(100*time.Millisecond, cancel)
	r := <-done
	if !errors.Is(r.err, context.Canceled) || r.n == len(text) {
		t.Fatalf("%d bytes, %v", r.n, r.err)
	}
	rest := text[r.n:]
	if !utf8.ValidString(rest) || strings.HasPrefix(rest, "\u200d") || strings.HasPrefix(rest, "💻") {
		t.Errorf("cut inside a grapheme, before %q", rest[:12])
	}
	caughtUp(t, d)
	if got := saved(t, d, file, text[:r.n]); got != text[:r.n] {
		t.Errorf("reported %d bytes: %s", r.n, diff(got, text[:r.n]))
	}
}

// clip reads or sets a selection by another program.
func clip(t *testing.T, env []string, selection string, set *string) string {
	t.Helper()
	need(t, "xclip", "xclip")
	cmd := exec.Command("xclip", "-selection", selection, "-o")
	if set != nil {
		cmd = exec.Command("xclip", "-selection", selection, "-i")
		cmd.Stdin = strings.NewReader(*set)
	}
	cmd.Env = env
	if set != nil {
		// It goes to the background and keeps its output open.
		if err := cmd.Run(); err != nil {
			t.Fatalf("xclip: %v", err)
		}
		// Only its child takes the selection, when it gets to it.
		eventually(t, "xclip holds the "+selection, func() bool { return clip(t, env, selection, nil) == *set })
		return ""
	}
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}

func TestClipboardIsPutBack(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, false)
	file := editor(t, v, d)

	// Nothing there before: nothing after.
	mustType(t, d, "中文")
	if got := clip(t, v.Env(), "clipboard", nil); got != "" {
		t.Errorf("an empty clipboard holds %q now", got)
	}

	big := strings.Repeat("0123456789 äöü 中文\n", 20000) // 480 KB: comes and goes in pieces
	for _, old := range []string{"old text with é and 中", big} {
		clip(t, v.Env(), "clipboard", &old)
		for range 2 { // the second time it is ours that is put back
			wipe(t, d)
			want := "x 日本 y\n😀 z 本\n"
			mustType(t, d, want)
			if got := saved(t, d, file, want); got != want {
				t.Errorf("typed: %s", diff(got, want))
			}
			if got := clip(t, v.Env(), "clipboard", nil); got != old {
				t.Errorf("the clipboard: %s", diff(got, old))
			}
		}
	}

	// What is selected elsewhere is left alone.
	chord(t, d, Control, End)
	selected := "selected elsewhere"
	clip(t, v.Env(), "primary", &selected)
	mustType(t, d, "中")
	if got := clip(t, v.Env(), "primary", nil); got != selected {
		t.Errorf("the selection is %q", got)
	}

	// Text too big for one piece.
	wipe(t, d)
	long := cjk(1000, 0x4e00)
	long = strings.Repeat(long, 120) // 360 KB in one line
	mustType(t, d, long)
	if got := saved(t, d, file, long); got != long {
		t.Errorf("long text: %s", diff(got, long))
	}
}

// TestPasteIsNotTaken types foreign text where nothing takes a paste.
func TestPasteIsNotTaken(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, false)
	newLogger(t, v)
	old := "old"
	clip(t, v.Env(), "clipboard", &old)
	n, err := d.Type(t.Context(), "ab中")
	if n != 2 || !errors.Is(err, errNotTaken) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if got := clip(t, v.Env(), "clipboard", nil); got != old {
		t.Errorf("the clipboard holds %q", got)
	}
}

func TestEditorTakesThePointer(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	editor(t, v, d)
	ctx := t.Context()
	var b strings.Builder
	for i := range 120 {
		fmt.Fprintf(&b, "line%03d alpha beta gamma\n", i)
	}
	mustType(t, d, b.String())
	chord(t, d, Control, Home)

	copied := func() string {
		t.Helper()
		chord(t, d, Control, "c")
		return clip(t, v.Env(), "clipboard", nil)
	}
	x, y := textOrigin(t, v, d)
	click := func(p Point, n int) {
		t.Helper()
		if err := d.Move(ctx, p); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if err := errors.Join(d.Button(ctx, Left, true, i+1), d.Button(ctx, Left, false, i+1)); err != nil {
				t.Fatal(err)
			}
		}
		caughtUp(t, d)
	}
	// Scroll down: the word under the same place is on a later line; up: the
	// first again.
	scroll := func(dy float64) {
		t.Helper()
		if err := errors.Join(d.Move(ctx, Point{x + 21, y + 9}), d.Scroll(ctx, 0, dy)); err != nil {
			t.Fatal(err)
		}
		caughtUp(t, d)
	}
	wordHere := func() string {
		// Away first, or this would be the third click.
		click(Point{x + 200, y + 100}, 1)
		click(Point{x + 20, y + 8}, 2)
		return copied()
	}
	eventually(t, "a double click selects the first word", func() bool {
		x, y = textOrigin(t, v, d) // a bar may come above the text at any time
		chord(t, d, Control, Home)
		return wordHere() == "line000"
	})
	scroll(530)
	eventually(t, "scrolling down arrives at a later line", func() bool {
		w := wordHere()
		return strings.HasPrefix(w, "line") && w > "line010"
	})
	scroll(-5300)
	eventually(t, "scrolling up arrives at the first line", func() bool { return wordHere() == "line000" })

	// A drag over a line; not from inside a selection, which would move that.
	click(Point{x + 200, y + 100}, 1)
	if err := errors.Join(d.Move(ctx, Point{x + 1, y + 8}), d.Button(ctx, Left, true, 1)); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 10; i++ {
		if err := errors.Join(d.Move(ctx, Point{x + 1 + float64(i), y + 8 + lineHeight/10.0*float64(i)})); err != nil {
			t.Fatal(err)
		}
		caughtUp(t, d)
	}
	if err := errors.Join(d.Move(ctx, Point{x + 1, y + 8 + lineHeight}), d.Button(ctx, Left, false, 1)); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, d)
	if got := copied(); got != "line000 alpha beta gamma\n" {
		t.Errorf("the drag selected %q", got)
	}
}

func BenchmarkType1120(b *testing.B) {
	v := startDesk(b)
	d := openDriver(b, v, true)
	file := editor(b, v, d)
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, 0123456789.\n", 20)[:1120]
	for b.Loop() {
		mustType(b, d, text)
	}
	b.StopTimer()
	want := strings.Repeat(text, b.N)
	if got := saved(b, d, file, want); !strings.HasSuffix(want, got) || got == "" {
		b.Errorf("not exact: %s", diff(got, want))
	}
}

func BenchmarkXdotoolType1120(b *testing.B) {
	need(b, "xdotool", "xdotool")
	v := startDesk(b)
	d := openDriver(b, v, true)
	editor(b, v, d)
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, 0123456789.\n", 20)[:1120]
	for b.Loop() {
		cmd := exec.Command("xdotool", "type", text)
		cmd.Env = v.Env()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
}

// TestPictureInClipboard keeps what is not text, too. The other programs are
// clipboards of ours: xclip answers one question at a time and drops others.
func TestPictureInClipboard(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, false)
	editor(t, v, d)
	ctx := t.Context()
	clipboards := make([]*clipboard, 2)
	for i := range clipboards {
		k, err := openClipboard(ctx, v.Display())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.close)
		clipboards[i] = k
	}
	owner, reader := clipboards[0], clipboards[1]
	png, err := owner.conn.Atom(ctx, "image/png")
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := owner.conn.Atom(ctx, "application/x-numbers")
	if err != nil {
		t.Fatal(err)
	}
	held := []content{
		{png, png, 8, []byte(strings.Repeat("\x89PNG no text \x00\xff", 30000))},
		{numbers, numbers, 32, []byte{1, 2, 3, 4, 5, 6, 7, 8}},
	}
	if err := owner.own(ctx, owner.atom.clipboard, held); err != nil {
		t.Fatal(err)
	}
	mustType(t, d, "中")
	for _, want := range held {
		got, err := reader.convert(ctx, reader.atom.clipboard, want.target, keepBytes)
		if err != nil || got.typ != want.typ || got.format != want.format || string(got.data) != string(want.data) {
			t.Errorf("%d bytes of format %d now, were %d of %d: %v", len(got.data), got.format, len(want.data), want.format, err)
		}
	}
	if _, err := reader.convert(ctx, reader.atom.clipboard, reader.atom.utf8, keepBytes); !errors.Is(err, errNotOffered) {
		t.Errorf("the typed text is still there: %v", err)
	}
}
