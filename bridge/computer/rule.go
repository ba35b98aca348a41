package computer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"drawbridge/bridge/gate"
)

// CheckRule tells what is wrong with a rule for this tool: a pointer that leads
// nowhere in any call, or a value that no call has there. Rules for other tools,
// and patterns that other tools fit too, are not looked at.
func CheckRule(r gate.Rule) error {
	if r.Tool != toolName {
		return nil
	}
	for _, pointer := range slices.Sorted(maps.Keys(r.When)) {
		steps, err := gate.Steps(pointer)
		if err == nil {
			err = checkWhen(steps, r.When[pointer])
		}
		if err != nil {
			return fmt.Errorf("when %q fits no call of %s: %w", pointer, toolName, err)
		}
	}
	return nil
}

func checkWhen(steps []string, pattern string) error {
	if len(steps) == 0 {
		return nil
	}
	top := []string{"actions", "picture"}
	switch {
	case !oneOf(steps[0], top):
		return fmt.Errorf(`its arguments are actions and picture%s, as in "/actions/*/type"`, didYouMean(steps[0], top))
	case len(steps) == 1:
		return nil
	case steps[0] == "picture":
		return fmt.Errorf("picture is a text, and holds nothing")
	case !index(steps[1]):
		return fmt.Errorf(`actions is a list: %q is neither * nor a number, as in "/actions/*/type"`, steps[1])
	case len(steps) == 2:
		return nil
	}
	var fields []string
	for _, s := range vocabulary {
		for _, f := range s.fieldNames() {
			if !slices.Contains(fields, f) {
				fields = append(fields, f)
			}
		}
	}
	name, deeper := steps[2], steps[3:]
	if !oneOf(name, fields) {
		return fmt.Errorf("no action has a field %s%s; they have %s", quote(name), didYouMean(name, fields), strings.Join(fields, ", "))
	}
	var within bool // whether deeper leads somewhere
	switch name {
	case "*":
		within = true
	case "path":
		within = len(deeper) < 3 && (len(deeper) == 0 || index(deeper[0])) && (len(deeper) < 2 || index(deeper[1]) || oneOf(deeper[1], []string{"x", "y"}))
	case "keys":
		within = len(deeper) == 0 || len(deeper) == 1 && index(deeper[0])
	case "expect":
		within = len(deeper) == 0 || len(deeper) == 1 && oneOf(deeper[0], []string{"app", "window"})
	default:
		within = len(deeper) == 0
	}
	if !within {
		return fmt.Errorf("the field %s holds no /%s", name, strings.Join(deeper, "/"))
	}
	values := map[string][]string{"type": names(ActionTypes), "button": nil}
	for _, b := range buttons {
		values["button"] = append(values["button"], b.name)
	}
	known, fixed := values[name]
	glob, err := gate.ParseGlob(pattern)
	if err != nil || !fixed || slices.ContainsFunc(known, glob.Match) {
		return err
	}
	return fmt.Errorf("%s is no %s%s; it is one of %s", quote(pattern), name, didYouMean(pattern, known), strings.Join(known, ", "))
}

// oneOf tells whether a step leads to one of the names.
func oneOf(step string, names []string) bool { return step == "*" || slices.Contains(names, step) }

// index tells whether a step leads to an element of a list.
func index(step string) bool {
	n, err := strconv.Atoi(step)
	return step == "*" || err == nil && n >= 0 && strconv.Itoa(n) == step
}
