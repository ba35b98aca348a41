#!/bin/sh
# Makes the app as a person would and checks what came out: two builds are equal
# byte for byte before signing; the app passes our own verifier and relic's, signed
# ad hoc, by an identity of its own and by a certificate from a PKCS#12 file; one
# identity gives two versions one requirement. Touches nothing outside build/.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
mkdir -p build
dir=$(mktemp -d "$PWD/build/app-check-XXXXXX")
# The signing directory is outside every source tree, as the tool wants it.
keys=$(mktemp -d "${TMPDIR:-/tmp}/drawbridge-keys-XXXXXX")
trap 'rm -rf "$dir" "$keys"' EXIT
trap 'exit 1' INT TERM
step() { printf '\napp-check: %s\n' "$*"; }
fail() { printf 'app-check: FAILED: %s\n' "$*" >&2; exit 1; }
unset DRAWBRIDGE_SIGN_P12 DRAWBRIDGE_SIGN_PASSWORD DRAWBRIDGE_SIGN_PASSWORD_FILE

"$go" build -o "$dir/pack" ./packaging/pack
(cd packaging/relicverify && "$go" vet . && "$go" build -o "$dir/relicverify" .)
pack() { "$dir/pack" "$@"; }
program=drawbridge
identity="$keys/identity.pem"

step "two builds, from two directories, are equal before signing"
pack app -version v1.0.0 -sign none -out "$dir/one/Drawbridge.app"
mkdir "$dir/copy"
git ls-files -z --cached --others --exclude-standard | tar cf - --null -T - | tar xf - -C "$dir/copy"
(cd "$dir/copy" && pack app -version v1.0.0 -sign none -out "$dir/two/Drawbridge.app")
rm -rf "$dir/copy"
diff -r "$dir/one" "$dir/two" || fail "the builds differ"

step "ad hoc: passes, and warns"
pack app -version v1.0.0 -sign adhoc -out "$dir/adhoc/Drawbridge.app" | tee "$dir/log"
grep -q WARNING "$dir/log" || fail "no warning"
pack verify "$dir/adhoc/Drawbridge.app" >/dev/null

step "an identity of our own: one requirement for two versions"
pack identity -out "$identity"
for v in v1.0.0 v2.0.0; do
	pack app -version $v -identity "$identity" -out "$dir/$v/Drawbridge.app" | tee "$dir/log"
	grep requirement "$dir/log" >"$dir/$v/requirement"
	pack verify "$dir/$v/Drawbridge.app" >/dev/null
	"$dir/relicverify" "$dir/$v/Drawbridge.app" $program
done
cmp "$dir/v1.0.0/requirement" "$dir/v2.0.0/requirement" || fail "the requirement changed"

step "another identity: refused, since the requirement is pinned"
pack identity -out "$keys/other.pem"
if pack app -version v2.0.0 -identity "$keys/other.pem" -out "$dir/other/Drawbridge.app" 2>"$dir/log"; then
	fail "signed with another requirement than the pinned one"
fi
cat "$dir/log"
grep -q 'would be lost' "$dir/log" || fail "it does not say what is lost"

if command -v openssl >/dev/null 2>&1; then
	step "a certificate with the marks of a Developer ID, from a PKCS#12 file"
	openssl req -x509 -newkey rsa:2048 -nodes -days 30 -keyout "$keys/ca.key" -out "$keys/ca.pem" \
		-subj "/CN=app-check authority" -addext basicConstraints=critical,CA:TRUE -addext 1.2.840.113635.100.6.2.6=DER:0500 2>/dev/null
	openssl req -newkey rsa:2048 -nodes -keyout "$keys/leaf.key" -out "$keys/leaf.csr" \
		-subj "/OU=APPCHECK01/CN=Developer ID Application: app-check (APPCHECK01)" 2>/dev/null
	printf 'extendedKeyUsage=critical,codeSigning\nkeyUsage=critical,digitalSignature\n1.2.840.113635.100.6.1.13=DER:0500\n' >"$keys/ext"
	openssl x509 -req -in "$keys/leaf.csr" -CA "$keys/ca.pem" -CAkey "$keys/ca.key" -CAcreateserial -days 29 \
		-extfile "$keys/ext" -out "$keys/leaf.pem" 2>/dev/null
	openssl pkcs12 -export -inkey "$keys/leaf.key" -in "$keys/leaf.pem" -certfile "$keys/ca.pem" -passout pass:secret -out "$keys/leaf.p12"
	DRAWBRIDGE_SIGN_P12="$keys/leaf.p12" DRAWBRIDGE_SIGN_PASSWORD=secret \
		pack app -version v1.0.0 -pin "$keys/pin" -out "$dir/p12/Drawbridge.app"
	pack verify "$dir/p12/Drawbridge.app" | grep 'subject.OU. = "APPCHECK01"'
	"$dir/relicverify" "$dir/p12/Drawbridge.app" $program
else
	step "skipped: openssl is not installed, so no PKCS#12 file was made"
fi

if command -v python3 >/dev/null 2>&1; then
	step "Info.plist, read by another parser"
	python3 -c 'import plistlib, sys; [print(" ", k, "=", v) for k, v in plistlib.load(open(sys.argv[1], "rb")).items()]' \
		"$dir/v2.0.0/Drawbridge.app/Contents/Info.plist"
else
	step "skipped: python3 is not installed, so only one parser read Info.plist"
fi

step "tampering is found"
whole="$dir/v1.0.0/Drawbridge.app"
changed="$dir/changed.app"
# flip FILE OFFSET changes one bit of one byte.
flip() {
	byte=$(od -An -tu1 -j"$2" -N1 "$1" | tr -d ' ')
	[ -n "$byte" ] || fail "$1 has no byte at $2"
	printf "\\$(printf %o $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
# word FILE OFFSET is a number of the universal header.
word() { od -An -tu1 -j"$2" -N4 "$1" | awk '{ print (($1 * 256 + $2) * 256 + $3) * 256 + $4 }'; }
# found WHAT RELIC WORDS holds the changed app against our verifier, which must say
# WORDS, and against relic where it looks at such a thing.
found() {
	cmp -s "$changed/$file" "$whole/$file" && fail "$1: nothing was changed"
	if pack verify "$changed" >"$dir/log" 2>&1; then fail "$1: a change was not found"; fi
	grep -q "$3" "$dir/log" || { cat "$dir/log"; fail "$1: found, but it does not say \"$3\""; }
	if [ "$2" = relic ] && "$dir/relicverify" "$changed" $program >"$dir/log" 2>&1; then fail "$1: relic does not find the change"; fi
	echo "found: $1"
	rm -rf "$changed"
}
change() { file=$1; cp -R "$whole" "$changed"; }
mach="Contents/MacOS/$program"
for slice in 0 1; do
	at=$(word "$whole/$mach" $((8 + 20 * slice + 8)))
	size=$(word "$whole/$mach" $((8 + 20 * slice + 12)))
	change $mach
	flip "$changed/$mach" $((at + size / 3))
	found "a page of code, slice $slice" relic "of the code was changed"
	change $mach
	flip "$changed/$mach" $((8 + 20 * slice + 7))
	found "the header's word for the processor, slice $slice" ours "the header says"
done
change $mach
printf x >>"$changed/$mach"
found "a byte behind the program" ours "follow the last slice"
# Each slice has them twice: as text, and for macOS 12 and later as DER.
entitlement=com.apple.security.automation.apple-events
LC_ALL=C grep -abo "$entitlement" "$whole/$mach" | cut -d: -f1 >"$dir/places"
[ "$(wc -l <"$dir/places")" -ge 4 ] || fail "the entitlements are not found in the program"
while read -r at; do
	change $mach
	flip "$changed/$mach" "$at"
	found "the entitlements at $at" relic "of entitlements was changed\|DER list of entitlements was changed\|of the code was changed"
done <"$dir/places"
change Contents/Info.plist
sed 's/<string>1\.0\.0</<string>1.0.1</' "$whole/$file" >"$changed/$file"
found "a value in Info.plist, which stays a whole one" relic "Info.plist was changed"
for file in Contents/Resources/Drawbridge.icns Contents/Resources/en.lproj/InfoPlist.strings "Contents/Resources/Third-party licences.txt"; do
	change "$file"
	flip "$changed/$file" 100
	found "$file" ours "was changed"
done
change Contents/_CodeSignature/CodeResources
sed 's/<key>optional</<key>omitted</' "$whole/$file" >"$changed/$file"
found "the list of resources, which stays a whole one" relic "the list of resources was changed"
cp -R "$whole" "$changed"
echo notes >"$changed/notes.txt"
if pack verify "$changed" >"$dir/log" 2>&1; then fail "a file beside Contents was not found"; fi
rm -rf "$changed"
if "$dir/relicverify" "$whole" $program >/dev/null; then echo "and the app that nobody changed passes"; else fail "relic refuses the whole app"; fi

step "what is handed out"
pack dist -app "$dir/v2.0.0/Drawbridge.app" -out "$dir/dist"
cat "$dir"/dist/*.sha256

step "all passed"
