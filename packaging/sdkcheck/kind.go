package sdkcheck

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// kind is how purego passes a Go type, in the table's words; "?" followed by the
// type where it cannot.
func kind(t types.Type) string {
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != nil {
		switch n.Obj().Pkg().Path() + "." + n.Obj().Name() {
		case purego + "/objc.ID":
			return "@"
		case purego + "/objc.Class":
			return "#"
		case purego + "/objc.SEL":
			return ":"
		case purego + "/objc.Block":
			return "@?"
		}
		if _, ok := n.Underlying().(*types.Struct); ok {
			return "{" + n.Obj().Name() + "}"
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch u.Kind() {
		case types.Bool, types.UntypedBool:
			return "B"
		case types.Int8:
			return "i1"
		case types.Int16:
			return "i2"
		case types.Int32, types.UntypedRune:
			return "i4"
		case types.Int, types.Int64, types.UntypedInt:
			return "i8"
		case types.Uint8:
			return "u1"
		case types.Uint16:
			return "u2"
		case types.Uint32:
			return "u4"
		case types.Uint, types.Uint64:
			return "u8"
		case types.Float64, types.UntypedFloat:
			return "d"
		case types.Float32:
			return "f"
		case types.String, types.UntypedString:
			return "*"
		case types.Uintptr, types.UnsafePointer:
			return "^"
		}
	case *types.Pointer:
		return "^"
	}
	return "?" + t.String()
}

// fits reports whether a Go kind may stand where the header has another. C has
// one kind of pointer to objects, classes, blocks' contexts and strings alike.
func fits(have, want string) bool {
	switch have {
	case want:
		return true
	case "^":
		return slices.Contains([]string{"*", "@", "#", ":"}, want)
	case "@", "#":
		return want == "@" || want == "#"
	case ":":
		return want == "^"
	}
	return false
}

// signature is a parsed "ret(arg,arg)".
type signature struct {
	ret  string
	args []string
}

func parseSig(s string) (signature, error) {
	ret, rest, ok := strings.Cut(s, "(")
	args, ok2 := strings.CutSuffix(rest, ")")
	if !ok || !ok2 || ret == "" {
		return signature{}, fmt.Errorf("%q is no signature", s)
	}
	sig := signature{ret: ret}
	if args != "" {
		sig.args = strings.Split(args, ",")
	}
	return sig, nil
}

func (s signature) String() string { return s.ret + "(" + strings.Join(s.args, ",") + ")" }

// anyReturn is the return kind of a message whose answer is not looked at.
const anyReturn = "_"

// fit reports whether s, from Go code, may be a call of want.
func (s signature) fit(want signature) bool {
	if s.ret == anyReturn {
		// Of floats and structs the caller must know, as they come in other
		// registers.
		if want.ret == "d" || want.ret == "f" || strings.HasPrefix(want.ret, "{") {
			return false
		}
	} else if !fits(s.ret, want.ret) {
		return false
	}
	return slices.EqualFunc(s.args, want.args, fits)
}
