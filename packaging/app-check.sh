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
for f in Contents/Info.plist Contents/MacOS/$program Contents/Resources/Drawbridge.icns Contents/_CodeSignature/CodeResources; do
	cp -R "$dir/v1.0.0/Drawbridge.app" "$dir/changed.app"
	printf x | dd of="$dir/changed.app/$f" bs=1 seek=700 conv=notrunc 2>/dev/null
	if pack verify "$dir/changed.app" >"$dir/log" 2>&1; then fail "a change of $f was not found"; fi
	tail -n 1 "$dir/log"
	rm -rf "$dir/changed.app"
done

step "what is handed out"
pack dist -app "$dir/v2.0.0/Drawbridge.app" -out "$dir/dist"
cat "$dir"/dist/*.sha256

step "all passed"
