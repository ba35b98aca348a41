package sdkcheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func load(t *testing.T, patterns ...string) []Use {
	t.Helper()
	pkgs, err := Load("../..", patterns...)
	if err != nil {
		t.Fatal(err)
	}
	var uses []Use
	for _, p := range pkgs {
		uses = append(uses, Uses(p)...)
	}
	return uses
}

// TestOurs holds all of our macOS code against the headers.
func TestOurs(t *testing.T) {
	table, err := Committed()
	if err != nil {
		t.Fatal(err)
	}
	uses := load(t, "./...")
	for _, f := range table.Check(uses) {
		t.Error(f)
	}
	n := map[string]int{}
	used := map[string]bool{}
	for _, u := range uses {
		n[u.Of]++
		used[u.Of+" "+u.Name] = true
	}
	if n[ofFunction] == 0 || n[ofSelector] == 0 || n[ofStruct] == 0 || n[ofConstant] == 0 {
		t.Errorf("hardly all of them were found: %v", n)
	}
	t.Logf("sdkcheck: %d functions, %d messages and methods, %d blocks, %d structs, %d constants checked",
		n[ofFunction], n[ofSelector], n[ofBlock], n[ofStruct], n[ofConstant])

	// The table has only what we use, and says of everything where it is from.
	has := func(of, name, source string) {
		if !used[of+" "+name] {
			t.Errorf("table.json has the %s %s, which nothing uses: run the extraction", of, name)
		}
		if source == "" {
			t.Errorf("table.json does not say where the %s %s is from", of, name)
		}
	}
	for name, x := range table.Functions {
		has(ofFunction, name, x.Source)
	}
	for name, x := range table.Selectors {
		has(ofSelector, name, x.Source)
	}
	for name, x := range table.Blocks {
		has(ofBlock, name, x.Source)
	}
	for name, x := range table.Structs {
		has(ofStruct, name, x.Source)
	}
	for name, x := range table.Constants {
		has(ofConstant, name, x.Source)
	}
}

var wanted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// TestPlantedFaults finds every fault of testdata/faults, and no other.
func TestPlantedFaults(t *testing.T) {
	const file = "testdata/faults/faults.go"
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("testdata/table.json")
	if err != nil {
		t.Fatal(err)
	}
	var table Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	got := map[int][]string{}
	for _, f := range table.Check(load(t, "./packaging/sdkcheck/testdata/faults")) {
		if strings.HasSuffix(f.Use.Pos.Filename, file) {
			got[f.Use.Pos.Line] = append(got[f.Use.Pos.Line], f.Text)
		} else {
			t.Error(f)
		}
	}
	faults := 0
	for i, line := range strings.Split(string(src), "\n") {
		_, comment, _ := strings.Cut(line, "// want ")
		for _, w := range wanted.FindAllString(comment, -1) {
			faults++
			pattern := regexp.MustCompile(w[1 : len(w)-1])
			j := slices.IndexFunc(got[i+1], pattern.MatchString)
			if j < 0 {
				t.Errorf("%s:%d: not found: %s; found: %q", file, i+1, w, got[i+1])
				continue
			}
			got[i+1] = slices.Delete(got[i+1], j, j+1)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(got)) {
		for _, text := range got[line] {
			t.Errorf("%s:%d: found without being planted: %s", file, line, text)
		}
	}
	if faults < 30 {
		t.Errorf("only %d faults are planted", faults)
	}
	t.Logf("sdkcheck: %d planted faults", faults)
}

// TestExtractNames what no header has, and where it is used.
func TestExtractNames(t *testing.T) {
	var s SDK
	s.Functions = map[string]Function{"CGEventPost": {Sig: "v(u4,^)"}}
	s.Constants = map[string]json.Number{"kCGEventNull": "0"}
	s.Overrides.Selectors = map[string][]string{"displays": {"@()"}}
	s.Additions.Structs = map[string]Struct{"CGPoint": {Fields: []string{"d", "d"}, Source: "CGGeometry.h"}}
	all := []Use{{Of: ofFunction, Name: "CGEventPost"}, {Of: ofConstant, Name: "kCGEventNull"}, {Of: ofSelector, Name: "displays"}, {Of: ofStruct, Name: "CGPoint"}}
	table, err := s.Extract(all)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(table.Functions, table.Constants, table.Selectors, table.Structs); got !=
		"map[CGEventPost:{v(u4,^)  macOS 14.2 headers}] map[kCGEventNull:{0 macOS 14.2 headers}] "+
			"map[displays:{[@()] Apple's documentation, by hand: the copy of the headers lacked it}] map[CGPoint:{[d d] CGGeometry.h}]" {
		t.Error(got)
	}
	for _, u := range []Use{{Of: ofFunction}, {Of: ofSelector}, {Of: ofBlock}, {Of: ofStruct}, {Of: ofConstant}} {
		u.Name, u.Pos.Filename, u.Pos.Line = "Missing", "x.go", 7
		if _, err := s.Extract([]Use{u}); err == nil || err.Error() != "x.go:7: no header has the "+u.Of+" Missing" {
			t.Errorf("%s: %v", u.Of, err)
		}
	}
}

func TestSameNumber(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"1", "1", true}, {"1", "2", false}, {strconv.FormatUint(1<<63, 10), "-9223372036854775808", true}, {"-1", "18446744073709551615", true}, {"1.5", "1.5", false}, {"x", "x", false}} {
		if got := sameNumber(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}
