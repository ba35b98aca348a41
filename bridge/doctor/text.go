package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Write prints the report for people.
func (r Report) Write(w io.Writer) error {
	var b strings.Builder
	line := func(mark, label, format string, args ...any) {
		fmt.Fprintf(&b, "%-5s%-14s", mark, label)
		fmt.Fprintf(&b, format+"\n", args...)
	}
	next := func(s string) {
		if s != "" {
			line("", "", "→ %s", s)
		}
	}
	mark := map[bool]string{true: "ok", false: "FAIL"}

	line("", "platform", "%s", r.Platform)
	line("", "program", "%s", r.Binary)
	if r.Bundle != "" {
		line("", "bundle", "%s", r.Bundle)
	}
	if r.Signature != "" {
		line("", "signature", "%s", r.Signature)
	}
	backend := r.Backend
	if r.Reason != "" {
		backend += " (" + r.Reason + ")"
	}
	line("", "backend", "%s", backend)
	for _, d := range r.Displays {
		main := ""
		if d.Index == 0 {
			main = ", main"
		}
		line("", fmt.Sprintf("display %d", d.Index), "%g×%g points, %d×%d pixels, scale %g, at %g, %g%s",
			d.Points[0], d.Points[1], d.Pixels[0], d.Pixels[1], d.Scale, d.Origin[0], d.Origin[1], main)
	}
	for _, p := range r.Permissions {
		switch {
		case p.State == "granted":
			line("ok", "permission", "%s, for %s", p.Name, p.For)
		case p.State == "missing" && !p.Needed:
			line("warn", "permission", "%s is missing, for %s", p.Name, p.For)
			next(p.How)
		case p.State == "missing":
			line("FAIL", "permission", "%s is missing, for %s", p.Name, p.For)
			next(p.How)
		default:
			line("?", "permission", "%s is %s, for %s", p.Name, p.State, p.For)
			next(p.How)
		}
	}
	if r.Capture.OK {
		line("ok", "capture", "%d×%d pixels", r.Capture.Size[0], r.Capture.Size[1])
	} else {
		line("FAIL", "capture", "%s", r.Capture.Error)
		next(r.Capture.Next)
	}
	for _, c := range r.Checks {
		line(mark[c.OK], c.Name, "%s", c.Detail)
		next(c.Next)
	}
	for _, s := range r.Warnings {
		line("warn", "", "%s", s)
	}
	if r.OK {
		line("ok", "", "all that was asked works")
	} else {
		line("FAIL", "", "not everything works: see above")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
