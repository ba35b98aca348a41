package install

import (
	"slices"
	"strconv"
	"strings"

	"drawbridge/packaging/verify"
)

// older tells whether one version is older than another. Where one of them is not
// known, as of an app that was built from no tagged commit, it is not.
func older(a, b verify.Report) bool {
	va, oka := numbers(a.Build)
	vb, okb := numbers(b.Build)
	return oka && okb && slices.Compare(va, vb) < 0
}

// numbers are those of a version, without the zeros that end it.
func numbers(version string) ([]int, bool) {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, false
		}
		out = append(out, n)
	}
	for len(out) > 0 && out[len(out)-1] == 0 {
		out = out[:len(out)-1]
	}
	return out, len(out) > 0
}

// arches names the processors of an app, for people.
func arches(r verify.Report) string {
	var names []string
	for _, s := range r.Slices {
		names = append(names, s.Arch)
	}
	return strings.Join(names, " and ")
}
