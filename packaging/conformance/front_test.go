package conformance

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

func TestFrontKeepsWhatTheSuiteTests(t *testing.T) {
	var got *http.Request
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got = r }))
	defer back.Close()
	front := frontOf(t, back.URL)

	r, err := http.NewRequestWithContext(t.Context(), "POST", front+"/mcp?x=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example.com"
	r.Header.Set("Origin", "http://evil.example.com")
	r.Header.Set("Mcp-Name", "a b")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	for _, c := range []struct{ what, got, want string }{
		{"host", got.Host, "evil.example.com"},
		{"origin", got.Header.Get("Origin"), "http://evil.example.com"},
		{"name", got.Header.Get("Mcp-Name"), "a b"},
		{"token", got.Header.Get("Authorization"), "Bearer sesame"},
		{"url", got.URL.String(), "/mcp?x=1"},
		{"method", got.Method, "POST"},
	} {
		if c.got != c.want {
			t.Errorf("%s arrived as %q, want %q", c.what, c.got, c.want)
		}
	}
}

// The first event of a stream must pass while the stream is open.
func TestFrontDoesNotBuffer(t *testing.T) {
	end := make(chan struct{})
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: one\n\n")
		w.(http.Flusher).Flush()
		<-end
	}))
	defer back.Close()
	defer close(end)

	r, err := http.NewRequestWithContext(t.Context(), "GET", frontOf(t, back.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	if err != nil || line != "data: one\n" {
		t.Fatalf("got %q, %v", line, err)
	}
}

func frontOf(t *testing.T, target string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(Front(u, "sesame"))
	t.Cleanup(front.Close)
	return front.URL
}
