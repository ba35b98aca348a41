package sdkcheck

import (
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
)

// Finding is a place where our code and the headers differ.
type Finding struct {
	Use  Use
	Text string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s", filepath.Base(f.Use.Pos.Filename), f.Use.Pos.Line, f.Text)
}

// Check compares uses with the table.
func (t *Table) Check(uses []Use) []Finding {
	var found []Finding
	for _, u := range uses {
		if text := t.check(u); text != "" {
			found = append(found, Finding{u, text})
		}
	}
	return found
}

func (t *Table) check(u Use) string {
	if u.Fault != "" {
		return u.Fault
	}
	missing := fmt.Sprintf("the table has no %s %s: run the extraction; if the headers lack it, add it to additions.json with its source", u.Of, u.Name)
	switch u.Of {
	case ofFunction:
		f, ok := t.Functions[u.Name]
		if !ok {
			return missing
		}
		return compare(u, []string{f.Sig})
	case ofBlock:
		f, ok := t.Blocks[u.Name]
		if !ok {
			return missing
		}
		return compare(u, []string{f.Sig})
	case ofSelector:
		s, ok := t.Selectors[u.Name]
		if !ok {
			return missing
		}
		return compare(u, s.Sigs)
	case ofStruct:
		s, ok := t.Structs[u.Name]
		if !ok {
			return missing
		}
		if !slices.EqualFunc(u.fields, s.Fields, fits) {
			return fmt.Sprintf("struct %s has the fields %s, in the headers %s", u.Name, strings.Join(u.fields, ","), strings.Join(s.Fields, ","))
		}
	case ofConstant:
		c, ok := t.Constants[u.Name]
		if !ok {
			return missing
		}
		if !sameNumber(u.Value, c.Value.String()) {
			return fmt.Sprintf("%s is %s, in the headers %s", u.Name, u.Value, c.Value)
		}
	}
	return ""
}

func compare(u Use, sigs []string) string {
	for _, s := range sigs {
		want, err := parseSig(s)
		if err != nil {
			return err.Error()
		}
		if u.sig.fit(want) {
			return ""
		}
	}
	return fmt.Sprintf("%s %s is used as %s, in the headers it is %s", u.Of, u.Name, u.sig, strings.Join(sigs, " or "))
}

// sameNumber compares as 64 bits: the headers' tool writes some unsigned values
// as negative ones.
func sameNumber(a, b string) bool {
	x, ok1 := new(big.Int).SetString(a, 10)
	y, ok2 := new(big.Int).SetString(b, 10)
	if !ok1 || !ok2 {
		return false
	}
	mask := new(big.Int).SetUint64(1<<64 - 1)
	return x.And(x, mask).Cmp(y.And(y, mask)) == 0
}
