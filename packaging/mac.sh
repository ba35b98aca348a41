#!/bin/sh
# What only a Mac can do with a finished app: sign it with codesign and a trusted
# time, have Apple notarize it, staple the ticket, make a disk image.
# usage: mac.sh codesign|notarize|dmg APP
set -eu
what=$1 app=$2
if [ "$(uname)" != Darwin ]; then
	echo "mac.sh: $what needs a Mac: $(case $what in dmg) echo hdiutil is ;; notarize) echo notarytool and stapler are ;; *) echo codesign is ;; esac) only there" >&2
	exit 1
fi
case $what in
codesign)
	: "${CODESIGN_IDENTITY:?name the certificate in the keychain, such as CODESIGN_IDENTITY=\"Developer ID Application: …\"}"
	codesign --force --options runtime --timestamp --entitlements packaging/entitlements.plist --sign "$CODESIGN_IDENTITY" "$app"
	codesign --verify --strict --verbose=2 "$app"
	codesign --display --requirements - "$app"
	;;
notarize)
	: "${NOTARY_PROFILE:?name the profile that xcrun notarytool store-credentials made, such as NOTARY_PROFILE=drawbridge}"
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	trap 'exit 1' INT TERM
	zip=$dir/Drawbridge.zip
	ditto -c -k --keepParent "$app" "$zip"
	xcrun notarytool submit "$zip" --keychain-profile "$NOTARY_PROFILE" --wait
	xcrun stapler staple "$app"
	spctl --assess --type execute --verbose "$app"
	;;
dmg)
	image=build/dist/Drawbridge.dmg
	if [ -L "$image" ] || [ -e "$image" ] && ! hdiutil imageinfo "$image" >/dev/null 2>&1; then
		echo "mac.sh: $image is no disk image of an earlier make dmg: move it away" >&2
		exit 1
	fi
	mkdir -p build/dist
	hdiutil create -volname Drawbridge -srcfolder "$app" -ov -format UDZO "$image"
	;;
*)
	echo "usage: mac.sh codesign|notarize|dmg APP" >&2
	exit 2
	;;
esac
