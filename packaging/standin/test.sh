#!/bin/sh
# Runs the macOS sources on Linux, over the stand-in for Apple's frameworks.
set -eu
cd "$(dirname "$0")/../.."
go=${GO:-go}
if [ "$(uname -s)" != Linux ]; then
	echo "standin: it needs Linux; skipped"
	exit 0
fi
if ! command -v gcc >/dev/null 2>&1 || [ ! -e /usr/include/X11/extensions/XTest.h ]; then
	echo "standin: gcc or libxtst-dev is missing, so the macOS sources are not run: apt-get install gcc libxtst-dev"
	exit 0
fi
out=build/standin
packaging/standin/build.sh "$out"
DRAWBRIDGE_STANDIN=$(cd "$out" && pwd)
export DRAWBRIDGE_STANDIN
"$go" vet -tags standin ./input ./packaging/standin
exec "$go" test -tags standin -race -timeout 10m ./input -run 'Quartz|ReadLayout'
