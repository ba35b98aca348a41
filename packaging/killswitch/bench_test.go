package killswitch

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/hostllm"
	"drawbridge/packaging/agent"
)

// server is an agent whose provider "openai" is a handler of the benchmark.
func server(b *testing.B, h http.Handler) (direct, gateway string, a *agent.Agent, state string) {
	b.Helper()
	far := httptest.NewServer(h)
	b.Cleanup(far.Close)
	gateway, a, state = before(b, far.URL)
	return far.URL, gateway, a, state
}

// before starts an agent whose provider "openai" is a model host.
func before(b *testing.B, far string) (gateway string, a *agent.Agent, state string) {
	b.Helper()
	dir := b.TempDir()
	conf := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "model_gateway: {providers: {openai: %q}}\n", far), 0o600); err != nil {
		b.Fatal(err)
	}
	state = filepath.Join(dir, "state")
	a, err := agent.Start(b.Context(), agent.Options{Bin: bin, State: state, Args: []string{"--backend", "simulated", "--config", conf}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := a.Stop(); err != nil {
			b.Error(err)
		}
	})
	end, err := bridge.ReadEndpoint(state)
	if err != nil {
		b.Fatal(err)
	}
	access, err := hostllm.AccessFor(state, "bench")
	if err != nil {
		b.Fatal(err)
	}
	return access.Base(end.Gateway, "openai"), a, state
}

func deny(b *testing.B, a *agent.Agent) time.Duration {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://"+a.Host+"/host-llm", strings.NewReader(`{"mode":"deny"}`))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+a.Token)
	req.Header.Set("Content-Type", "application/json")
	begin := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b.Fatal(res.Status)
	}
	return time.Since(begin)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkRefused: a refused request, its median; to hold: under 2 ms.
func BenchmarkRefused(b *testing.B) {
	_, url, a, _ := server(b, http.NotFoundHandler())
	denied := deny(b, a)
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		res, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m"}`))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		took = append(took, time.Since(begin))
	}
	b.ReportMetric(float64(median(took).Microseconds()), "p50-µs")
	b.ReportMetric(float64(denied.Microseconds()), "deny-µs")
}

// BenchmarkFirstByte: what the gateway adds to the first byte of a stream; to
// hold: under 1 ms. Direct and through the gateway in turn.
func BenchmarkFirstByte(b *testing.B) {
	direct, url, _, _ := server(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: {}\n\n")
		_ = http.NewResponseController(w).Flush()
	}))
	first := func(url string) time.Duration {
		begin := time.Now()
		res, err := http.Post(url, "application/json", strings.NewReader("{}"))
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		one := make([]byte, 1)
		if _, err := io.ReadFull(res.Body, one); err != nil {
			b.Fatal(err)
		}
		took := time.Since(begin)
		_, _ = io.Copy(io.Discard, res.Body)
		return took
	}
	var plain, through []time.Duration
	for b.Loop() {
		plain = append(plain, first(direct))
		through = append(through, first(url))
	}
	b.ReportMetric(float64((median(through) - median(plain)).Microseconds()), "added-p50-µs")
}

// BenchmarkThroughput: one long stream; to hold: 90 % of a direct loopback's.
func BenchmarkThroughput(b *testing.B) {
	const size = 256 << 20
	piece := make([]byte, 64<<10)
	direct, url, _, _ := server(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range size / len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	fetch := func(url string) time.Duration {
		begin := time.Now()
		res, err := http.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		if n, err := io.Copy(io.Discard, res.Body); err != nil || n != size {
			b.Fatal(n, err)
		}
		return time.Since(begin)
	}
	var plain, through []time.Duration
	for b.Loop() {
		plain = append(plain, fetch(direct))
		through = append(through, fetch(url))
	}
	b.ReportMetric(100*median(plain).Seconds()/median(through).Seconds(), "%-of-direct")
	b.ReportMetric(size/(1<<20)/median(through).Seconds(), "MiB/s")
}

// streams is a model host whose answers begin and do not end, but for /short. It
// leaves their connections alone: what happens to a thousand of them must not
// keep the processors from what is measured.
func streams(b *testing.B) (url string) {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return // it is closed
			}
			go func() {
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					c.Close()
					return
				}
				short := r.URL.Path == "/short"
				text := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
				if short {
					text += "Connection: close\r\n"
				}
				text += "\r\na\r\ndata: {}\n\n\r\n"
				if short {
					text += "0\r\n\r\n"
				}
				if _, err := io.WriteString(c, text); short || err != nil {
					c.Close()
					return
				}
				b.Cleanup(func() { c.Close() })
			}()
		}
	}()
	return "http://" + ln.Addr().String()
}

// BenchmarkStreams: what the agent holds for 1,000 streams at once; to hold: at
// most 100 MiB in all. Then they are denied; to hold: 5 ms until a new request is
// refused. It is measured once.
func BenchmarkStreams(b *testing.B) {
	base, a, _ := before(b, streams(b))
	u, err := url.Parse(base)
	if err != nil {
		b.Fatal(err)
	}
	open := make([]net.Conn, 1000)
	for i := range open {
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		open[i] = c
		if _, err := fmt.Fprintf(c, "POST %s/v1/messages HTTP/1.1\r\nHost: %s\r\nContent-Length: 15\r\n\r\n{\"stream\":true}", u.Path, u.Host); err != nil {
			b.Fatal(err)
		}
		for said, buf := "", make([]byte, 4<<10); !strings.Contains(said, "data: {}"); {
			n, err := c.Read(buf)
			if err != nil {
				b.Fatalf("%v after %q", err, said)
			}
			said += string(buf[:n])
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.PID))
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		// Once was enough; this ends it.
	}
	b.ReportMetric(float64(kib)/1024, "MiB")

	// One request after the other, until one is refused.
	started, refused := make(chan struct{}), make(chan time.Time, 1)
	go func() {
		for n := 0; ; n++ {
			res, err := http.Post(base+"/short", "application/json", strings.NewReader("{}"))
			if err != nil {
				continue // it was under way, and was ended
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode == http.StatusBadRequest {
				refused <- time.Now()
				return
			}
			if n == 10 {
				close(started)
			}
		}
	}()
	<-started
	begin := time.Now()
	took := deny(b, a)
	b.ReportMetric(float64((<-refused).Sub(begin).Microseconds()), "refused-after-µs")
	b.ReportMetric(float64(took.Microseconds()), "answered-after-µs")
	for _, c := range open {
		if rest, err := io.ReadAll(c); err == nil && strings.HasSuffix(string(rest), "0\r\n\r\n") {
			b.Error("a stream came to a good end")
		}
	}
	b.ReportMetric(float64(time.Since(begin).Microseconds()), "all-ended-after-µs")
}
