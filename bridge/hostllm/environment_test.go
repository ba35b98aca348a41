package hostllm

import (
	"strings"
	"testing"
)

func TestEnvironment(t *testing.T) {
	a := access(make([]byte, keyLength), "codex")
	got := map[string]Variable{}
	for _, v := range a.Environment("http://127.0.0.1:1", "http://127.0.0.1:2") {
		got[v.Name] = v
		if strings.Contains(v.Shown, a.secret) || strings.Contains(v.Shown, a.password) || v.Value != "" && v.Shown == "" {
			t.Errorf("%s is shown as %q", v.Name, v.Shown)
		}
	}
	for name, want := range map[string]string{
		"ANTHROPIC_BASE_URL":     "http://127.0.0.1:1/" + a.secret + "/anthropic",
		"OPENAI_BASE_URL":        "http://127.0.0.1:1/" + a.secret + "/openai/v1",
		"GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1/" + a.secret + "/google",
		"HTTPS_PROXY":            "http://codex:" + a.password + "@127.0.0.1:2",
		"http_proxy":             "http://codex:" + a.password + "@127.0.0.1:2",
		"NO_PROXY":               "localhost,127.0.0.1,::1",
		"NODE_USE_ENV_PROXY":     "1",
		"ALL_PROXY":              "",
	} {
		if v, ok := got[name]; !ok || v.Value != want {
			t.Errorf("%s=%s, want %s", name, v.Value, want)
		}
	}
	if v := got["HTTPS_PROXY"].Shown; v != "http://codex:…@127.0.0.1:2" {
		t.Errorf("shown as %s", v)
	}
}

// TestSecretsAreOfOneHost: nobody's secret opens what is another's.
func TestSecretsAreOfOneHost(t *testing.T) {
	key, other := make([]byte, keyLength), append(make([]byte, keyLength-1), 1)
	a := access(key, "a.b-c_1")
	if host, ok := hostOfSecret(key, a.secret); !ok || host != "a.b-c_1" {
		t.Errorf("%s %v", host, ok)
	}
	for name, secret := range map[string]string{
		"another key": access(other, "a.b-c_1").secret, "another name": "x" + a.secret, "cut": a.secret[:len(a.secret)-1], "longer": a.secret + "A",
		"the proxy's": "a.b-c_1." + a.password, "no name": a.secret[strings.LastIndexByte(a.secret, '.'):], "empty": "", "dot": ".", "a strange name": "a b." + a.secret,
	} {
		if host, ok := hostOfSecret(key, secret); ok {
			t.Errorf("%s: it is %s", name, host)
		}
	}
	if _, ok := hostOfLogin(key, "a.b-c_1", a.password); !ok {
		t.Error("its own login does not do")
	}
	if _, ok := hostOfLogin(key, "other", a.password); ok {
		t.Error("another's login does")
	}
}
