//go:build race

package host

// bigSize is the size of the big result: the race detector makes every byte
// cost a hundred times as much.
const bigSize = 4 << 20
