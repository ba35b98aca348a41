#!/bin/sh
# Fuzzes everything that parses a stranger's bytes, one target after the other,
# for FUZZTIME each. The first finding ends it.
set -eu
go=${GO:-go}
"$go" list ./... | while read -r pkg; do
	for target in $("$go" test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "fuzz: $pkg $target"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" "$pkg" </dev/null
	done
done
