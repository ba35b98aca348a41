package mockmodel

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestModel(t *testing.T) {
	m := Start()
	t.Cleanup(m.Close)
	for i, c := range []struct{ path, body, kind, want string }{
		{"/v1/chat/completions", `{}`, "application/json", `"content":"hi"`},
		{"/v1/chat/completions", `{"stream":true}`, "text/event-stream", "data: [DONE]\n\n"},
		{"/v1/responses", `{"stream":true}`, "text/event-stream", "event: response.completed\ndata: {"},
		{"/v1/messages", `{}`, "application/json", `"text":"hi"`},
		{"/v1/messages", `{"stream":true}`, "text/event-stream", "event: message_stop\ndata: {"},
		{"/v1beta/models/m:generateContent", `{}`, "application/json", `"text":"hi"`},
		{"/v1beta/models/m:streamGenerateContent?alt=sse", `{}`, "text/event-stream", `"text":"hi"`},
	} {
		res, err := http.Post(m.URL+c.path, "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != c.kind || !strings.Contains(string(b), c.want) {
			t.Errorf("%s %s: %s, %s, %v\n%s", c.path, c.body, res.Status, res.Header.Get("Content-Type"), err, b)
		}
		got := m.Requests()
		if len(got) != i+1 || got[i].URI != c.path || string(got[i].Body) != c.body || got[i].Method != "POST" {
			t.Errorf("request %d is counted as %+v", i, got)
		}
	}
	if n := m.Connections(); n != 1 {
		t.Errorf("%d connections, want the one that was kept", n)
	}
}

func TestHold(t *testing.T) {
	m := Start()
	req, err := http.NewRequestWithContext(t.Context(), "POST", m.URL+"/v1/messages", strings.NewReader(`{"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(HoldHeader, "1")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	r := bufio.NewReader(res.Body)
	if line, err := r.ReadString('\n'); err != nil || line != "event: message_start\n" {
		t.Fatalf("%q, %v", line, err)
	}
	m.Close() // lets the rest go
	b, _ := io.ReadAll(r)
	if strings.Contains(string(b), "content_block") {
		t.Errorf("a held answer went on:\n%s", b)
	}
}

func TestBreak(t *testing.T) {
	m := Start()
	t.Cleanup(m.Close)
	m.Break("/broken/")
	for path, want := range map[string]int{"/broken/v1/messages": 503, "/v1/messages": 200} {
		res, err := http.Post(m.URL+path, "application/json", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, res.Status, want)
		}
	}
	if n := len(m.Requests()); n != 2 {
		t.Errorf("%d requests are counted, want both", n)
	}
}

func TestHoldPath(t *testing.T) {
	m := Start()
	t.Cleanup(m.Close)
	m.Hold("/held/")
	res, err := http.Post(m.URL+"/held/v1/messages", "application/json", strings.NewReader(`{"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || line != "event: message_start\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if n := m.Cut(); n != 0 {
		t.Errorf("%d are cut before anybody did", n)
	}
	res.Body.Close()
	for end := time.Now().Add(30 * time.Second); m.Cut() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d are cut, want one", m.Cut())
		}
	}
}
