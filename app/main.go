// Command drawbridge is the menu-bar agent and its command line.
package main

import "os"

func main() {
	code := exitFailed
	onFirstThread(func() {
		code = run(os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv})
	})
	os.Exit(code)
}
