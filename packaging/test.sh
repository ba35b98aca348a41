#!/bin/sh
# Runs the tests, with the race detector where cgo has a C compiler.
set -eu
go=${GO:-go}
race=-race
if ! command -v gcc >/dev/null 2>&1 && ! command -v cc >/dev/null 2>&1; then
	echo "test: no C compiler, so the race detector is off"
	race=
fi
"$go" test $race -timeout 15m ./...
# The library under the tray has races of its own; what runs it is left out above.
[ -z "$race" ] || "$go" test -timeout 5m -run SNI ./ui
packaging/standin/test.sh
