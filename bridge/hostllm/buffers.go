package hostllm

import (
	"sync"
	"sync/atomic"
)

// buffers are what bodies pass through.
var buffers = pool{
	big:   sync.Pool{New: func() any { return new([bigBuffer]byte) }},
	small: sync.Pool{New: func() any { return new([smallBuffer]byte) }},
}

// pool lends buffers: big ones, which make a few streams fast, while few are out,
// and then small ones, with which many streams stay cheap.
type pool struct {
	bigOut     atomic.Int64
	big, small sync.Pool // of pointers to arrays
}

const (
	mostBig     = 32
	bigBuffer   = 256 << 10
	smallBuffer = 8 << 10
)

// Get lends a buffer.
func (p *pool) Get() []byte {
	if p.bigOut.Add(1) <= mostBig {
		return p.big.Get().(*[bigBuffer]byte)[:]
	}
	p.bigOut.Add(-1)
	return p.small.Get().(*[smallBuffer]byte)[:]
}

// Put takes a buffer back.
func (p *pool) Put(b []byte) {
	if len(b) == smallBuffer {
		p.small.Put((*[smallBuffer]byte)(b))
		return
	}
	p.big.Put((*[bigBuffer]byte)(b))
	p.bigOut.Add(-1)
}
