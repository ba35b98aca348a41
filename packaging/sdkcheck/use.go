package sdkcheck

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// What a use is of.
const (
	ofFunction = "function"
	ofSelector = "selector"
	ofBlock    = "block"
	ofStruct   = "struct"
	ofConstant = "constant"
	ofNothing  = "fault" // something that cannot be checked, which is a fault in itself
)

// Use is one place in our code that must agree with the headers.
type Use struct {
	Pos   token.Position
	Of    string
	Name  string
	Value string // of a constant
	Fault string // what is wrong with it whatever the headers say

	sig    signature
	fields []string
}

// Uses finds all of them in a package.
func Uses(p *Package) []Use {
	c := &collector{p: p, structs: map[string]bool{}}
	for _, f := range p.Files {
		for _, d := range f.Decls {
			ast.Inspect(d, c.node)
		}
	}
	for id, o := range p.Info.Defs {
		if k, ok := o.(*types.Const); ok {
			c.constant(id, k)
		}
	}
	slices.SortFunc(c.uses, func(a, b Use) int {
		if a.Pos.Filename != b.Pos.Filename {
			return strings.Compare(a.Pos.Filename, b.Pos.Filename)
		}
		return a.Pos.Offset - b.Pos.Offset
	})
	return c.uses
}

type collector struct {
	p       *Package
	uses    []Use
	structs map[string]bool // seen already
	ignored map[ast.Expr]bool
}

func (c *collector) add(at ast.Node, u Use) {
	u.Pos = c.p.Fset.Position(at.Pos())
	c.uses = append(c.uses, u)
}

func (c *collector) fault(at ast.Node, what string) { c.add(at, Use{Of: ofNothing, Fault: what}) }

func (c *collector) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ExprStmt:
		c.ignore(n.X)
	case *ast.DeferStmt:
		c.ignore(n.Call)
	case *ast.GoStmt:
		c.ignore(n.Call)
	case *ast.CallExpr:
		c.call(n)
	case *ast.CompositeLit:
		c.method(n)
	}
	return true
}

// ignore notes that nobody looks at what a call returns.
func (c *collector) ignore(e ast.Expr) {
	if c.ignored == nil {
		c.ignored = map[ast.Expr]bool{}
	}
	c.ignored[e] = true
}

// callee is the function or method that a call names, with the type that it was
// instantiated with.
func (c *collector) callee(call *ast.CallExpr) (name string, inst types.Type) {
	fun := ast.Unparen(call.Fun)
	if ix, ok := fun.(*ast.IndexExpr); ok {
		fun = ix.X
	}
	var id *ast.Ident
	switch f := fun.(type) {
	case *ast.Ident:
		id = f
	case *ast.SelectorExpr:
		id = f.Sel
	default:
		return "", nil
	}
	if in, ok := c.p.Info.Instances[id]; ok && in.TypeArgs.Len() == 1 {
		inst = in.TypeArgs.At(0)
	}
	if f, ok := c.p.Info.Uses[id].(*types.Func); ok {
		return f.FullName(), inst
	}
	if v, ok := c.p.Info.Uses[id].(*types.Var); ok && !v.IsField() {
		return "var", nil
	}
	return "", nil
}

const (
	library = "(*drawbridge/internal/quartz.Library).Func"
	sel     = "drawbridge/internal/cocoa.Sel"
	block   = "drawbridge/internal/cocoa.Block"
)

func (c *collector) call(call *ast.CallExpr) {
	name, inst := c.callee(call)
	own := strings.HasSuffix(c.p.Path, "internal/quartz")
	switch name {
	case library:
		c.bind(call)
	case "(" + purego + "/objc.ID).Send":
		ret := "@"
		if c.ignored[call] {
			ret = anyReturn
		}
		c.send(call, ret, call.Args)
	case purego + "/objc.Send":
		c.send(call, c.kind(inst), call.Args[1:])
	case block:
		c.block(call)
	case "(" + purego + "/objc.ID).SendSuper", purego + "/objc.SendSuper":
		c.fault(call, "SendSuper recurses under key-value observing: send to the object itself")
	case purego + ".RegisterLibFunc", purego + ".RegisterFunc", purego + ".SyscallN", purego + ".Dlsym":
		if !own {
			c.fault(call, name+" is not checked: use quartz.Library")
		}
	case purego + "/objc.NewBlock", purego + "/objc.RegisterName":
		if !strings.HasSuffix(c.p.Path, "internal/cocoa") {
			c.fault(call, name+" is not checked: use cocoa.Block or cocoa.Sel")
		}
	case "var":
		c.numbers(call.Args)
	}
}

// kind is that of t; a struct, or one that is pointed at, is noted, to be
// checked itself.
func (c *collector) kind(t types.Type) string {
	at := types.Unalias(t)
	if p, ok := at.(*types.Pointer); ok {
		at = types.Unalias(p.Elem())
	}
	if n, ok := at.(*types.Named); ok {
		c.structure(n)
	}
	return kind(t)
}

// structure notes the fields of a struct that a call passes or points at.
func (c *collector) structure(n *types.Named) {
	s, ok := n.Underlying().(*types.Struct)
	if !ok || c.structs[n.String()] {
		return
	}
	c.structs[n.String()] = true
	u := Use{Of: ofStruct, Name: n.Obj().Name()}
	layout := false
	for f := range s.Fields() {
		if f.Name() == "_" && f.Type().String() == "structs.HostLayout" {
			layout = true
			continue
		}
		u.fields = append(u.fields, c.kind(f.Type()))
	}
	if !layout {
		u.Fault = "struct " + u.Name + " has no _ structs.HostLayout, so Go may lay it out as it likes"
	}
	u.Pos = c.p.Fset.Position(n.Obj().Pos())
	c.uses = append(c.uses, u)
}

func (c *collector) signature(s *types.Signature, skip int) signature {
	sig := signature{ret: "v"}
	if s.Results().Len() > 0 {
		sig.ret = c.kind(s.Results().At(0).Type())
	}
	for i := skip; i < s.Params().Len(); i++ {
		sig.args = append(sig.args, c.kind(s.Params().At(i).Type()))
	}
	return sig
}

// bind is library.Func(&f, "Name").
func (c *collector) bind(call *ast.CallExpr) {
	name, ok := c.text(call.Args[1])
	if !ok {
		c.fault(call, "the function's name is no constant, so the call cannot be checked")
		return
	}
	t := c.p.Info.TypeOf(call.Args[0])
	if p, ok := t.Underlying().(*types.Pointer); ok {
		if s, ok := p.Elem().Underlying().(*types.Signature); ok {
			c.add(call, Use{Of: ofFunction, Name: name, sig: c.signature(s, 0)})
			return
		}
	}
	c.fault(call, name+" is bound to something that is no variable of a function type")
}

// send is a message; args begin with the selector.
func (c *collector) send(call *ast.CallExpr, ret string, args []ast.Expr) {
	name, ok := c.selector(args[0])
	if !ok {
		c.fault(call, "the selector is no cocoa.Sel of a constant, so the message cannot be checked")
		return
	}
	if call.Ellipsis.IsValid() {
		c.fault(call, name+" gets its arguments from a slice, so the message cannot be checked")
		return
	}
	u := Use{Of: ofSelector, Name: name, sig: signature{ret: ret}}
	for _, a := range args[1:] {
		u.sig.args = append(u.sig.args, c.kind(c.p.Info.TypeOf(a)))
	}
	c.add(call, u)
	c.numbers(args[1:])
}

func (c *collector) selector(e ast.Expr) (string, bool) {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return "", false
	}
	if name, _ := c.callee(call); name != sel {
		return "", false
	}
	return c.text(call.Args[0])
}

func (c *collector) text(e ast.Expr) (string, bool) {
	v := c.p.Info.Types[e].Value
	if v == nil || v.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(v), true
}

// block is cocoa.Block("selector:", func(objc.Block, …)).
func (c *collector) block(call *ast.CallExpr) {
	name, ok := c.text(call.Args[0])
	s, isFunc := c.p.Info.TypeOf(call.Args[1]).Underlying().(*types.Signature)
	switch {
	case !ok:
		c.fault(call, "the selector that the block is for is no constant")
	case !isFunc || s.Params().Len() == 0 || kind(s.Params().At(0).Type()) != "@?":
		c.fault(call, "a block's function takes an objc.Block first")
	default:
		c.add(call, Use{Of: ofBlock, Name: name, sig: c.signature(s, 1)})
	}
}

// ours are selectors of our own classes: actions of menu items and buttons,
// which AppKit calls with their sender.
var ours = regexp.MustCompile(`^drawbridge[A-Za-z]*:$`)

// method is objc.MethodDef{Cmd: cocoa.Sel("…"), Fn: func(objc.ID, objc.SEL, …)}.
func (c *collector) method(lit *ast.CompositeLit) {
	if t := c.p.Info.TypeOf(lit); t == nil || t.String() != purego+"/objc.MethodDef" {
		return
	}
	u := Use{Of: ofSelector}
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			c.fault(lit, "name the fields of an objc.MethodDef")
			return
		}
		switch kv.Key.(*ast.Ident).Name {
		case "Cmd":
			u.Name, _ = c.selector(kv.Value)
		case "Fn":
			if s, ok := c.p.Info.TypeOf(kv.Value).Underlying().(*types.Signature); ok && s.Params().Len() >= 2 &&
				kind(s.Params().At(0).Type()) == "@" && kind(s.Params().At(1).Type()) == ":" {
				u.sig = c.signature(s, 2)
			}
		}
	}
	switch {
	case u.Name == "":
		c.fault(lit, "the method's selector is no cocoa.Sel of a constant")
	case u.sig.ret == "":
		c.fault(lit, u.Name+" is no function that takes an objc.ID and an objc.SEL first")
	case ours.MatchString(u.Name):
		if u.sig.String() != "v(@)" {
			c.fault(lit, u.Name+" is "+u.sig.String()+", but AppKit calls an action as v(@)")
		}
	default:
		c.add(lit, u)
	}
}

// numbers finds bare numbers where a constant of Apple's should be named.
func (c *collector) numbers(args []ast.Expr) {
	for _, a := range args {
		e := ast.Unparen(a)
		if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 && c.p.Info.Types[call.Fun].IsType() {
			e = ast.Unparen(call.Args[0])
		}
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.INT && lit.Value != "0" && lit.Value != "1" {
			c.fault(lit, "the bare number "+lit.Value+" cannot be checked: name the constant")
		}
	}
}

// apples are names of constants as the headers have them.
var apples = regexp.MustCompile(`^(k[A-Z]|NS[A-Z]|SC[A-Z]|UN[A-Z]|errSec[A-Z]|type[A-Z]\w*ID$|event[A-Z]\w*Err$|(cmd|shift|option|control)Key$)`)

func (c *collector) constant(id *ast.Ident, k *types.Const) {
	if !apples.MatchString(k.Name()) {
		return
	}
	c.add(id, Use{Of: ofConstant, Name: k.Name(), Value: k.Val().ExactString()})
}
