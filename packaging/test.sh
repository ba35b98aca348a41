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
exec packaging/standin/test.sh
