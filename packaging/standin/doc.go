//go:build !standin

// Package standin stands in for macOS's frameworks on Linux; see standin.go. It
// is built with the tag standin only.
package standin
