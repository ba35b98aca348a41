package hostllm

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drawbridge/bridge/gate"
)

func (s *Switch) ask(method, kind, body string) (int, string) {
	r := httptest.NewRequest(method, "/host-llm", strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	s.Serve(w, r, "editor")
	return w.Code, w.Body.String()
}

func TestRoute(t *testing.T) {
	const js = "application/json"
	s := openSwitch(t, Options{Person: yes()})
	asked := func(body string) Mode {
		t.Helper()
		var r Report
		if err := json.Unmarshal([]byte(body), &r); err != nil || r.Hosts == nil || r.Since.IsZero() {
			t.Fatalf("%v in %s", err, body)
		}
		return r.Asked
	}
	if code, body := s.ask("GET", "", ""); code != 200 || asked(body) != Allow {
		t.Errorf("%d %s", code, body)
	}
	if code, body := s.ask("POST", js, `{"mode":"deny"}`); code != 200 || asked(body) != Deny || !s.Denied() {
		t.Errorf("%d %s", code, body)
	}
	if st, _ := s.Watch(); st.By != `client "editor"` {
		t.Errorf("by %s", st.By)
	}
	if code, body := s.ask("POST", js+"; charset=utf-8", ` { "mode" : "allow" } `); code != 200 || asked(body) != Allow || s.Denied() {
		t.Errorf("%d %s", code, body)
	}
}

func TestRouteRefuses(t *testing.T) {
	s := openSwitch(t, Options{Configured: Deny, Person: person(gate.Answer{Reason: "not now"})})
	for _, c := range []struct {
		method, kind, body string
		code               int
	}{
		{"POST", "application/json", `{"mode":"allow"}`, 403},
		{"POST", "text/plain", `{"mode":"deny"}`, 415},
		{"POST", "", `{"mode":"deny"}`, 415},
		{"POST", "application/json", ``, 400},
		{"POST", "application/json", `null`, 400},
		{"POST", "application/json", `[]`, 400},
		{"POST", "application/json", `{}`, 400},
		{"POST", "application/json", `{"mode":"Allow"}`, 400},
		{"POST", "application/json", `{"mode":true}`, 400},
		{"POST", "application/json", `{"mode":null}`, 400},
		{"POST", "application/json", `{"mode":{"mode":"allow"}}`, 400},
		{"POST", "application/json", `{"Mode":"allow"}`, 400},
		{"POST", "application/json", `{"mode":"deny","mode":"allow"}`, 400},
		{"POST", "application/json", `{"mode":"deny","x":1}`, 400},
		{"POST", "application/json", `{"mode":"deny"`, 400},
		{"POST", "application/json", `{"mode":"deny"} {}`, 400},
		{"POST", "application/json", `{"mode":"` + strings.Repeat("x", maxChange) + `"}`, 400},
		{"PUT", "application/json", `{"mode":"allow"}`, 405},
		{"DELETE", "", "", 405},
	} {
		code, body := s.ask(c.method, c.kind, c.body)
		if code != c.code {
			t.Errorf("%s %.60s: %d %s, want %d", c.method, c.body, code, body, c.code)
		}
		var e struct {
			Error struct{ Message string }
		}
		if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error.Message == "" {
			t.Errorf("%s %.60s: %s says nothing", c.method, c.body, body)
		}
		if !s.Denied() {
			t.Fatalf("%s %.60s loosened", c.method, c.body)
		}
	}
	if code, body := s.ask("POST", "application/json", `{"mode":"allow"}`); code != http.StatusForbidden || !strings.Contains(body, "it may ask again in") {
		t.Errorf("asked again at once: %d %s", code, body)
	}
}

func FuzzChange(f *testing.F) {
	for _, s := range []string{`{"mode":"deny"}`, `{"mode":"allow"}`, `{"mode":"deny","mode":"allow"}`, `{`, `{"mode"`, "{\"mode\":\"\\u0061llow\"}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s := openSwitch(t, Options{Configured: Deny})
		code, _ := s.ask("POST", "application/json", body)
		if !s.Denied() {
			t.Fatalf("%q loosened", body)
		}
		var m map[string]string
		if code == 200 && (json.Unmarshal([]byte(body), &m) != nil || len(m) != 1 || m["mode"] != "deny") {
			t.Fatalf("%q was taken", body)
		}
	})
}
