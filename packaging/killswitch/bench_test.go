package killswitch

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
	dir := b.TempDir()
	conf := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "model_gateway: {providers: {openai: %q}}\n", far.URL), 0o600); err != nil {
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
	return far.URL, access.Base(end.Gateway, "openai"), a, state
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

// BenchmarkStreams: what the agent holds for 1,000 streams at once; to hold: at
// most 100 MiB in all. Then they are denied; to hold: 5 ms until a new request is
// refused. It is measured once.
func BenchmarkStreams(b *testing.B) {
	const streams = 1000
	_, url, a, _ := server(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path != "/short" {
			<-r.Context().Done()
		}
	}))
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext}}
	open := make([]*http.Response, 0, streams)
	for range streams {
		res, err := client.Post(url, "application/json", strings.NewReader(`{"stream":true}`))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil {
			b.Fatal(err)
		}
		open = append(open, res)
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
		defer close(refused)
		for n := 0; ; n++ {
			res, err := http.Post(url+"/short", "application/json", strings.NewReader("{}"))
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
	for _, res := range open {
		if _, err := io.Copy(io.Discard, res.Body); err == nil {
			b.Error("a stream came to a good end")
		}
		res.Body.Close()
	}
	b.ReportMetric(float64(time.Since(begin).Microseconds()), "all-ended-after-µs")
}
