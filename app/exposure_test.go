package main

import (
	"testing"

	"drawbridge/app/config"
)

func TestExposure(t *testing.T) {
	c := config.Default()
	c.Hide = []string{"secret_*"}
	c.Clients = map[string]config.Client{
		"narrow": {Expose: []string{"computer", "secret_read"}},
		"less":   {Hide: []string{"bash"}},
	}
	var e exposure
	e.set(c)
	for _, tc := range []struct {
		client, tool string
		want         bool
	}{
		{"any", "computer", true},
		{"any", "bash", true},
		{"any", "secret_read", false},
		{"narrow", "computer", true},
		{"narrow", "bash", false},
		{"narrow", "secret_read", false}, // a client's list widens nothing
		{"less", "bash", false},
		{"less", "computer", true},
		{"less", "secret_read", false},
	} {
		if got := e.allows(tc.client, "drawbridge", tc.tool); got != tc.want {
			t.Errorf("%s may see %s: %v, want %v", tc.client, tc.tool, got, tc.want)
		}
	}
	// What is in force when two lists have nothing in common.
	c.Clients["none"] = config.Client{Expose: []string{""}}
	e.set(c)
	if e.allows("none", "", "computer") || e.allows("none", "", "bash") {
		t.Error("a list of nothing exposes something")
	}
	c.Expose = []string{"read"}
	e.set(c)
	if e.allows("any", "", "bash") || !e.allows("any", "", "read") || e.allows("narrow", "", "read") {
		t.Error("after set, the old lists still hold")
	}
	c.Expose = []string{}
	e.set(c)
	if e.allows("any", "", "read") {
		t.Error("an empty list exposes something")
	}
}
