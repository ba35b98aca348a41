#!/bin/sh
# Runs the macOS sources on Linux, over the stand-in for Apple's frameworks. With
# the word torture it does what make torture does there, instead of the tests.
set -eu
cd "$(dirname "$0")/../.."
go=${GO:-go}
if [ "$(uname -s)" != Linux ]; then
	echo "standin: it needs Linux; skipped"
	exit 0
fi
missing=""
command -v gcc >/dev/null 2>&1 || missing="$missing gcc"
[ -e /usr/include/X11/extensions/XTest.h ] || missing="$missing libxtst-dev"
command -v gnustep-config >/dev/null 2>&1 || missing="$missing libgnustep-base-dev"
[ -e /usr/include/GNUstep/AppKit/AppKit.h ] || missing="$missing libgnustep-gui-dev"
[ -d /usr/lib/GNUstep/Bundles/libgnustep-cairo-029.bundle ] || missing="$missing gnustep-back0.29-cairo"
echo '@interface A @end' | gcc -x objective-c -fsyntax-only - 2>/dev/null || missing="$missing gobjc"
if [ -n "$missing" ]; then
	echo "standin: the macOS sources are not run, these packages are missing:$missing"
	exit 0
fi
out=build/standin
packaging/standin/build.sh "$out"
DRAWBRIDGE_STANDIN=$(cd "$out" && pwd)
export DRAWBRIDGE_STANDIN
tags="-tags standin -modfile $out/go.mod"
if [ "${1:-}" = torture ]; then
	# shellcheck disable=SC2086
	exec "$go" run $tags ./packaging/torture
fi
packages="./input ./capture ./bridge/desk ./bridge/seal ./internal/quartz ./packaging/standin ./ui ./app ./bridge/grant ./bridge/doctor"
run='Quartz|Cocoa|ReadLayout|Faults|Translate|Settings'
# shellcheck disable=SC2086
"$go" vet $tags $packages ./packaging/torture
# shellcheck disable=SC2086
"$go" test $tags -race -count=1 -timeout 10m -run "$run" -coverprofile "$out/cover" \
	-coverpkg=drawbridge/input,drawbridge/capture,drawbridge/internal/quartz,drawbridge/internal/cocoa,drawbridge/bridge/desk,drawbridge/bridge/seal,drawbridge/ui,drawbridge/bridge/grant,drawbridge/bridge/doctor $packages
# shellcheck disable=SC2086
"$go" test $tags -race -count=1 -timeout 10m ./packaging/torture
# A library that ends the process with 0 leaves no profile, and none is not enough.
awk '/(quartz|cocoa|applescript)_[a-z]*\.go:|internal\/(quartz|cocoa)\// {
	key = $1; n[key] = $2; if ($3 > 0) hit[key] = 1
} END {
	for (k in n) { all += n[k]; if (hit[k]) done += n[k] }
	if (!all) { print "darwin coverage: nothing was run"; exit 1 }
	printf "darwin coverage %.1f %% of %d statements\n", 100 * done / all, all
	exit done / all < 0.9
}' "$out/cover"
