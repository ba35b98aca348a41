#!/bin/sh
# Builds the stand-in for macOS's frameworks into the directory $1: a root with
# the frameworks that our code loads, and a module file (go.mod, for -modfile) in
# which purego has the Objective-C part that it has on macOS only.
set -eu
src=$(cd "$(dirname "$0")/frameworks" && pwd)
out=$1
mkdir -p "$out/lib"
out=$(cd "$out" && pwd)
cc=${CC:-gcc}
$cc -shared -fPIC -O1 -g -std=gnu17 -Wall -Wno-unused-parameter -o "$out/lib/libstandin.so" \
	"$src/control.c" "$src/foundation.c" "$src/events.c" "$src/keyboard.c" "$src/displays.c" -lX11 -lXtst -lm -lpthread
for f in CoreFoundation CoreGraphics ApplicationServices Carbon; do
	mkdir -p "$out/System/Library/Frameworks/$f.framework"
	ln -sf "$out/lib/libstandin.so" "$out/System/Library/Frameworks/$f.framework/$f"
done
mkdir -p "$out/usr/lib"
ln -sf "$out/lib/libstandin.so" "$out/usr/lib/libSystem.B.dylib"
