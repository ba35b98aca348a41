//go:build !race

package host

const bigSize = 64 << 20
