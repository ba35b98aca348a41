#!/bin/sh
# Builds the stand-in for macOS's frameworks into the directory $1: a root with
# the frameworks that our code loads, and a module file (go.mod, for -modfile) in
# which purego has the Objective-C part that it has on macOS only.
set -eu
src=$(cd "$(dirname "$0")/frameworks" && pwd)
go=${GO:-go}
cc=${CC:-gcc}
mkdir -p "$1/lib" "$1/usr/lib"
out=$(cd "$1" && pwd)
lib=$out/lib

# shellcheck disable=SC2046
objc=$(dirname "$($cc -print-file-name=include/objc/objc.h)")/..
gnustep="$(gnustep-config --objc-flags | sed 's/-MMD -MP//; s/-Wall//') -I$objc"
$cc -shared -fPIC -O1 -g -std=gnu17 -Wall -Wno-unused-parameter -o "$lib/libstandin.so" \
	"$src/control.c" "$src/foundation.c" "$src/events.c" "$src/keyboard.c" "$src/hotkeys.c" "$src/displays.c" "$src/loops.c" "$src/taps.c" "$src/grants.c" "$src/keychain.c" "$src/power.c" "$src/accessibility.c" -lX11 -lXtst -lXi -lm -lpthread
$cc -shared -fPIC -O2 -Wno-deprecated -I"$objc" -o "$lib/libobjc.A.so" "$src/objc.c" -lobjc
# shellcheck disable=SC2086
$cc -shared -fPIC -O1 -std=gnu11 $gnustep -w -o "$lib/libkit.so" "$src/kit.m" "$src/notices.m" -Wl,--no-as-needed \
	-L"$lib" -lstandin -l:libobjc.A.so -lgnustep-base -lobjc -Wl,-rpath,"$lib"
# shellcheck disable=SC2086
$cc -shared -fPIC -O1 -std=gnu11 $gnustep -w -o "$lib/libappkit.so" "$src/appkit.m" -Wl,--no-as-needed \
	-L"$lib" -lkit -lstandin -l:libobjc.A.so -lgnustep-gui -lgnustep-base -lobjc -lX11 -Wl,-rpath,"$lib"

framework() { # NAME LIBRARY
	mkdir -p "$out/System/Library/Frameworks/$1.framework"
	ln -sf "$lib/$2" "$out/System/Library/Frameworks/$1.framework/$1"
}
for f in CoreFoundation CoreGraphics ApplicationServices Carbon Security IOKit; do framework $f libstandin.so; done
for f in Foundation ScreenCaptureKit UserNotifications; do framework $f libkit.so; done
framework AppKit libappkit.so
ln -sf "$lib/libstandin.so" "$out/usr/lib/libSystem.B.dylib"

# purego's Objective-C package is built for macOS only, by the names of its
# files. It finds the runtime through libkit, which brings the classes too.
purego=$($go list -m -f '{{.Dir}}' github.com/ebitengine/purego)
rm -rf "$out/purego"
cp -r "$purego" "$out/purego"
chmod -R u+w "$out/purego"
for f in objc_runtime objc_block; do
	sed "s#/usr/lib/libobjc.A.dylib#$lib/libkit.so#" "$purego/objc/${f}_darwin.go" >"$out/purego/objc/${f}_linux.go"
done
rm -f "$out"/purego/objc/*_test.go
cp go.mod "$out/go.mod"
cp go.sum "$out/go.sum"
$go mod edit -replace "github.com/ebitengine/purego=$out/purego" "$out/go.mod"
