package bundle

import (
	"fmt"
	"regexp"
)

// described is what git describe prints for a tag v1.2.3: the tag, the commits
// since, and marks that do not count.
var described = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)(?:-(\d+)-g[0-9a-f]+)?(?:-dirty)?$`)

// Versions are the two numbers that macOS wants, made from the one version that
// the build knows, as git describe prints it. short is the tag's; build also
// counts the commits since, so that of two builds the later has the higher one.
// A version without a tag, such as a bare commit, is 0.0.0.
func Versions(version string) (short, build string) {
	m := described.FindStringSubmatch(version)
	switch {
	case m == nil:
		return "0.0.0", "0.0.0"
	case m[2] == "":
		return m[1], m[1]
	}
	return m[1], fmt.Sprintf("%s.%s", m[1], m[2])
}
