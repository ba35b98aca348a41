// Package interop holds the tests that let clients by others, each in its own
// process where it is not Go, use the program as it is built: they list tools and
// take a picture over every way in and in both protocol eras.
package interop
