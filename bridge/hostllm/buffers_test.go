package hostllm

import "testing"

func TestBuffers(t *testing.T) {
	var out [][]byte
	for i := range mostBig + 2 {
		b := buffers.Get()
		want := bigBuffer
		if i >= mostBig {
			want = smallBuffer
		}
		if len(b) != want {
			t.Errorf("buffer %d has %d bytes, want %d", i, len(b), want)
		}
		out = append(out, b)
	}
	for _, b := range out {
		buffers.Put(b)
	}
	b := buffers.Get()
	if len(b) != bigBuffer {
		t.Errorf("when all are back, the next has %d bytes, want %d", len(b), bigBuffer)
	}
	buffers.Put(b)
}
