package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"drawbridge/bridge/keyname"
	"drawbridge/input"
)

const (
	maxString = 120      // characters of a string that are kept
	maxDepth  = 32       // containers within containers that are kept
	maxArgs   = 32 << 10 // bytes of redacted arguments in one record
)

// Redact appends the redacted form of args, a JSON text as a program sent it,
// to dst. What it appends is always valid JSON on one line, in valid UTF-8.
//
//   - A string of more than 120 characters (Unicode code points), a member name
//     included, becomes "<len:N,sha256:8hex>": its characters, and the first 8
//     hex digits of the SHA-256 of its UTF-8 text. So does an absurdly long number.
//   - A container more than 32 deep becomes "<max-depth>".
//   - The value of a member whose name speaks of a secret becomes "<secret>".
//   - Of the tool `computer`, whatever host prefixes it, strings become "<len:N>",
//     in a member `text` numbers too: what is typed may be a password, and a short
//     hash of a password is as good as the password. What cannot be typed text
//     stays: types of actions, buttons, the id of a picture, what an action expects,
//     and keys, but of these only those that type nothing by themselves; of the
//     others each becomes "<len:1>", unless ctrl, alt or command is held with it.
//   - Text that is no JSON becomes "<invalid-json,len:BYTES>", and arguments that
//     are over 32 KiB even when redacted "<oversize,len:BYTES>".
//
// Everything else stays as it was sent, numbers digit by digit.
func Redact(dst []byte, tool string, args []byte) []byte {
	r := redactor{src: args, limit: len(dst) + maxArgs}
	in := plain
	if isComputer(tool) {
		in = action
	}
	start := len(dst)
	dst = r.value(dst, 0, in)
	if r.space(); r.state == good && r.pos != len(args) {
		r.state = invalid
	}
	switch r.state {
	case invalid:
		dst = append(dst[:start], `"<invalid-json,len:`...)
	case oversize:
		dst = append(dst[:start], `"<oversize,len:`...)
	default:
		return dst
	}
	dst = strconv.AppendInt(dst, int64(len(args)), 10)
	return append(dst, `>"`...)
}

func isComputer(tool string) bool {
	return tool == "computer" || strings.HasSuffix(tool, "_computer")
}

type state uint8

const (
	good state = iota
	invalid
	oversize
)

// place says what stands where the redactor is.
type place uint8

const (
	plain  place = iota // arguments of a tool that types nothing
	action              // members of an action or of the batch: each by its name
	hidden              // strings may be typed text
	typed               // typed text
	kept                // a string that is never typed
	word                // one word of a fixed vocabulary
	keys                // names of keys
	chord               // names of keys beside one that makes a command of them
)

// redactor walks a JSON text once and writes as it goes. After a failure its
// state is set and what it wrote is thrown away by Redact.
type redactor struct {
	src   []byte
	pos   int
	limit int // length of dst at which the arguments are too many to keep
	state state
}

func (r *redactor) space() {
	for r.pos < len(r.src) {
		switch r.src[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// next skips space and returns the byte that follows, 0 at the end.
func (r *redactor) next() byte {
	r.space()
	if r.pos < len(r.src) {
		return r.src[r.pos]
	}
	return 0
}

func (r *redactor) fail(dst []byte) []byte {
	if r.state == good {
		r.state = invalid
	}
	return dst
}

// value redacts one value at the given depth.
func (r *redactor) value(dst []byte, depth int, in place) []byte {
	if len(dst) > r.limit && r.state == good {
		r.state = oversize
	}
	if r.state != good {
		return dst
	}
	switch c := r.next(); {
	case c == '"':
		s, ok := r.scanString()
		if !ok {
			return r.fail(dst)
		}
		return s.append(dst, in)
	case c == '{' || c == '[':
		if depth >= maxDepth {
			if !r.skip() {
				return r.fail(dst)
			}
			return append(dst, `"<max-depth>"`...)
		}
		if in == kept || in == word {
			in = hidden
		}
		if c == '{' {
			return r.object(dst, depth, in)
		}
		if in == keys {
			return r.keys(dst, depth)
		}
		return r.array(dst, depth, in)
	case c == '-' || '0' <= c && c <= '9':
		n, ok := r.scanNumber()
		if !ok {
			return r.fail(dst)
		}
		if in == typed {
			return appendLen(dst, len(n))
		}
		if len(n) > maxString {
			return appendLong(dst, len(n), n)
		}
		return append(dst, n...)
	default:
		w := r.scanWord()
		if w == "" {
			return r.fail(dst)
		}
		return append(dst, w...)
	}
}

func (r *redactor) array(dst []byte, depth int, in place) []byte {
	r.pos++
	dst = append(dst, '[')
	if r.next() == ']' {
		r.pos++
		return append(dst, ']')
	}
	for {
		dst = r.value(dst, depth+1, in)
		if r.state != good {
			return dst
		}
		switch r.next() {
		case ',':
			r.pos++
			dst = append(dst, ',')
		case ']':
			r.pos++
			return append(dst, ']')
		default:
			return r.fail(dst)
		}
	}
}

func (r *redactor) object(dst []byte, depth int, in place) []byte {
	r.pos++
	dst = append(dst, '{')
	if r.next() == '}' {
		r.pos++
		return append(dst, '}')
	}
	for {
		if r.next() != '"' {
			return r.fail(dst)
		}
		name, ok := r.scanString()
		if !ok || r.next() != ':' {
			return r.fail(dst)
		}
		r.pos++
		dst = append(name.append(dst, plain), ':')
		if secret, beneath := name.leads(in); secret {
			if !r.skip() {
				return r.fail(dst)
			}
			dst = append(dst, `"<secret>"`...)
		} else {
			dst = r.value(dst, depth+1, beneath)
		}
		if r.state != good {
			return dst
		}
		switch r.next() {
		case ',':
			r.pos++
			dst = append(dst, ',')
		case '}':
			r.pos++
			return append(dst, '}')
		default:
			return r.fail(dst)
		}
	}
}

// keys redacts a list of keys that are pressed together. Whether one of them
// types depends on all.
func (r *redactor) keys(dst []byte, depth int) []byte {
	from := r.pos
	held := false
	for r.pos++; r.next() == '"'; r.pos++ {
		s, ok := r.scanString()
		if !ok {
			return r.fail(dst)
		}
		held = held || s.command()
		if r.next() != ',' {
			break
		}
	}
	list := r.next() == ']'
	r.pos = from
	if !list {
		return r.array(dst, depth, hidden)
	}
	if held {
		return r.array(dst, depth, chord)
	}
	return r.array(dst, depth, keys)
}

// skip passes over one value without keeping any of it. It needs no stack, so
// that a text of a million brackets costs nothing: brackets are only counted,
// and what is between them is not checked.
func (r *redactor) skip() bool {
	for depth := 0; ; {
		switch c := r.next(); c {
		case 0:
			return false
		case '"':
			if _, ok := r.scanString(); !ok {
				return false
			}
		case '{', '[':
			depth++
			r.pos++
		case '}', ']':
			depth--
			r.pos++
		case ',', ':':
			if depth == 0 {
				return false
			}
			r.pos++
			continue
		default:
			if c == '-' || '0' <= c && c <= '9' {
				if _, ok := r.scanNumber(); !ok {
					return false
				}
			} else if r.scanWord() == "" {
				return false
			}
		}
		if depth <= 0 {
			return depth == 0
		}
	}
}

func (r *redactor) scanWord() string {
	for _, w := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(string(r.src[r.pos:min(len(r.src), r.pos+len(w))]), w) {
			r.pos += len(w)
			return w
		}
	}
	return ""
}

func (r *redactor) scanNumber() ([]byte, bool) {
	start := r.pos
	digits := func() bool {
		from := r.pos
		for r.pos < len(r.src) && '0' <= r.src[r.pos] && r.src[r.pos] <= '9' {
			r.pos++
		}
		return r.pos > from
	}
	at := func(set string) bool {
		return r.pos < len(r.src) && strings.IndexByte(set, r.src[r.pos]) >= 0
	}
	if at("-") {
		r.pos++
	}
	if at("0") {
		r.pos++
	} else if !digits() {
		return nil, false
	}
	if at(".") {
		r.pos++
		if !digits() {
			return nil, false
		}
	}
	if at("eE") {
		r.pos++
		if at("+-") {
			r.pos++
		}
		if !digits() {
			return nil, false
		}
	}
	return r.src[start:r.pos], true
}

// str is a JSON string as it stands in the text.
type str struct {
	raw     []byte // with its quotes
	chars   int
	escaped bool // holds a backslash
	broken  bool // holds bytes that are no UTF-8
}

// scanString reads the string that starts at pos.
func (r *redactor) scanString() (str, bool) {
	src, start := r.src, r.pos
	s := str{}
	for i := start + 1; i < len(src); {
		switch c := src[i]; {
		case c == '"':
			r.pos = i + 1
			s.raw = src[start:r.pos]
			return s, true
		case c == '\\':
			s.escaped = true
			n, pair := escapeLen(src[i:])
			if n == 0 {
				return s, false
			}
			i += n
			s.chars++
			if pair {
				i += 6
			}
		case c < ' ':
			return s, false
		case c < utf8.RuneSelf:
			i++
			s.chars++
		default:
			rn, n := utf8.DecodeRune(src[i:])
			if rn == utf8.RuneError && n == 1 {
				s.broken = true
			}
			i += n
			s.chars++
		}
	}
	return s, false
}

// escapeLen returns the length of the escape at the start of b, 0 if it is
// none, and whether it is the first half of a surrogate pair.
func escapeLen(b []byte) (n int, pair bool) {
	if len(b) < 2 {
		return 0, false
	}
	if b[1] != 'u' {
		if strings.IndexByte(`"\/bfnrt`, b[1]) < 0 {
			return 0, false
		}
		return 2, false
	}
	hi, ok := hex4(b)
	if !ok {
		return 0, false
	}
	lo, ok := hex4(b[6:])
	return 6, ok && utf16.DecodeRune(hi, lo) != utf8.RuneError
}

// hex4 reads \uXXXX.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var v rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | rune(c)
	}
	return v, true
}

func (s str) append(dst []byte, in place) []byte {
	switch chars, hide := s.hides(in); {
	case hide:
		return appendLen(dst, chars)
	case s.chars > maxString:
		p := texts.Get().(*[]byte)
		*p = s.text((*p)[:0])
		dst = appendLong(dst, s.chars, *p)
		texts.Put(p)
		return dst
	case s.broken:
		return append(dst, strings.ToValidUTF8(string(s.raw), "\ufffd")...)
	}
	return append(dst, s.raw...)
}

// hides tells whether a string at this place may be typed text, and how much of it.
func (s str) hides(in place) (chars int, hide bool) {
	switch in {
	case plain, kept:
		return 0, false
	case word:
		return s.chars, !s.isWord()
	case keys, chord:
		types, ok := s.keys(in == chord || s.command())
		if !ok {
			return s.chars, true
		}
		return 1, types
	}
	return s.chars, true
}

// isWord tells whether the string could be a type of action or a button.
func (s str) isWord() bool {
	text := s.raw[1 : len(s.raw)-1]
	for _, c := range text {
		if (c < 'a' || 'z' < c) && c != '_' {
			return false
		}
	}
	return len(text) <= 20
}

// keys reads the string as keys, joined by plus signs where there are several. ok
// tells that it names keys, and types that one of them puts a character into a
// text field, unless a command key is held.
func (s str) keys(held bool) (types, ok bool) {
	if s.chars > maxString {
		return false, false
	}
	for _, name := range keyname.Split(string(s.text(nil))) {
		k, ok := keyname.Resolve(name)
		if !ok {
			return false, false
		}
		types = types || !held && keyname.Types(k)
	}
	return types, true
}

// command tells whether the string names a key that makes a command of others.
func (s str) command() bool {
	if s.chars > maxString {
		return false
	}
	return slices.ContainsFunc(keyname.Split(string(s.text(nil))), func(name string) bool {
		k, _ := keyname.Resolve(name)
		return k == input.Control || k == input.Alt || k == input.Command
	})
}

// texts holds buffers for the decoded text of long strings.
var texts = sync.Pool{New: func() any { return new([]byte) }}

func appendLen(dst []byte, chars int) []byte {
	dst = append(dst, `"<len:`...)
	dst = strconv.AppendInt(dst, int64(chars), 10)
	return append(dst, `>"`...)
}

func appendLong(dst []byte, chars int, text []byte) []byte {
	sum := sha256.Sum256(text)
	dst = append(dst, `"<len:`...)
	dst = strconv.AppendInt(dst, int64(chars), 10)
	dst = append(dst, `,sha256:`...)
	dst = hex.AppendEncode(dst, sum[:4])
	return append(dst, `>"`...)
}

// text appends what the string says, as UTF-8.
func (s str) text(dst []byte) []byte {
	in := s.raw[1 : len(s.raw)-1]
	if !s.escaped && !s.broken {
		return append(dst, in...)
	}
	for i := 0; i < len(in); {
		if in[i] != '\\' {
			r, n := utf8.DecodeRune(in[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		n, pair := escapeLen(in[i:])
		switch c := in[i+1]; c {
		case 'u':
			r, _ := hex4(in[i:])
			if pair {
				lo, _ := hex4(in[i+6:])
				r = utf16.DecodeRune(r, lo)
				n = 12
			}
			dst = utf8.AppendRune(dst, r) // a lone half becomes U+FFFD
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		default:
			dst = append(dst, c)
		}
		i += n
	}
	return dst
}

// secretWords make a name a secret wherever they stand in it, secretEnds only
// as its end: max_tokens and tokenizer are no secrets. Names are compared in
// lower case and without anything but letters and digits.
var (
	secretWords = [...]string{
		"password", "passwd", "passphrase", "secret", "apikey", "privatekey", "signingkey",
		"encryptionkey", "accesskey", "authorization", "cookie", "credential", "bearer",
	}
	secretEnds = [...]string{"token", "pwd", "jwt"}
)

// leads tells whether a member of this name holds a secret, and else what place
// its value is. Names are compared as those of secrets are.
func (s str) leads(in place) (secret bool, to place) {
	var buf [64]byte
	raw := s.raw[1 : len(s.raw)-1]
	if s.escaped || s.broken {
		raw = s.text(nil)
	}
	name := buf[:0]
	for _, c := range raw {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			name = append(name, c)
		case 'A' <= c && c <= 'Z':
			name = append(name, c+'a'-'A')
		}
	}
	if len(name) >= 3 && isSecret(string(name)) {
		return true, in
	}
	if in != action {
		if in == plain || in == typed {
			return false, in
		}
		return false, hidden
	}
	switch string(name) {
	case "actions", "expect":
		return false, action
	case "type", "action", "button":
		return false, word
	case "picture", "app", "window":
		return false, kept
	case "keys", "key":
		return false, keys
	case "text":
		return false, typed
	}
	return false, hidden
}

func isSecret(name string) bool {
	if name == "tokens" {
		return true
	}
	for _, w := range secretWords {
		if strings.Contains(name, w) {
			return true
		}
	}
	for _, w := range secretEnds {
		if strings.HasSuffix(name, w) {
			return true
		}
	}
	return false
}
