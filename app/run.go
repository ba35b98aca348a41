package main

import (
	"fmt"
	"io"
)

// Exit codes of every command.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2 // wrong usage or configuration
	exitRefused = 3 // by a person, a rule, the deadline, or because nobody could be asked
	exitNoAgent = 4
)

// version is set by the build.
var version = "dev"

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "version" {
		fmt.Fprintln(stdout, "drawbridge", version)
		return exitOK
	}
	fmt.Fprintln(stderr, "drawbridge: unknown command; try drawbridge version")
	return exitUsage
}
