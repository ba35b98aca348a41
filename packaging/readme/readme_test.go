package readme

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestSame holds the Chinese page to the English one: the same sections in the same
// order, the same commands, code, links and numbers.
func TestSame(t *testing.T) {
	shapes := map[string][]string{}
	for _, name := range []string{"README.md", "README.zh-CN.md"} {
		b, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		// Each leads to the other.
		text := strings.ReplaceAll(string(b), "README.zh-CN.md", "OTHER")
		shapes[name] = Shape(strings.ReplaceAll(text, "README.md", "OTHER"))
	}
	en, zh := shapes["README.md"], shapes["README.zh-CN.md"]
	for i := range max(len(en), len(zh)) {
		var a, b string
		if i < len(en) {
			a = en[i]
		}
		if i < len(zh) {
			b = zh[i]
		}
		if a != b {
			t.Fatalf("part %d after %q differs: change both pages\nREADME.md:       %s\nREADME.zh-CN.md: %s", i+1, en[max(0, i-1)], a, b)
		}
	}
	if len(en) < 50 {
		t.Errorf("only %d parts were found", len(en))
	}
}

func TestShape(t *testing.T) {
	const page = "# A\n\nText `b c`\nand [d](e.md) 5 s.\n\n    make x  # does x\n    # whole\n\n| a | 1.5 ms |\n| --- | --- |\n- one `x\n  y` more 7\n> q\n> r 3\n![p](q.png)\n"
	want := []string{"heading1", "text 5 ](e.md) `b c`", "code make x", "code # whole", "row 1.5", "row", "item 7 `x y`", "quote 3", "picture ](q.png)"}
	if got := Shape(page); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	for _, changed := range []string{
		strings.Replace(page, "1.5", "1.6", 1), strings.Replace(page, "make x", "make y", 1), strings.Replace(page, "e.md", "f.md", 1),
		strings.Replace(page, "`b c`", "b c", 1), strings.Replace(page, "# A", "## A", 1), page + "- more\n",
	} {
		if slices.Equal(Shape(changed), want) {
			t.Errorf("no difference is seen in %q", changed)
		}
	}
	if !slices.Equal(Shape(strings.NewReplacer("Text `b c`\nand [d](e.md) 5 s.", "文字 [丁](e.md)\n5 秒 `b c`。", "does x", "做").Replace(page)), want) {
		t.Error("a translation is another page")
	}
}
