package hostllm

import (
	"net/netip"
	"strings"
	"testing"
)

func builtin(t testing.TB, more ...string) *matcher {
	t.Helper()
	m, err := newMatcher(append(append([]string{}, modelHosts...), more...))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDestination(t *testing.T) {
	m := builtin(t, "models.example", "*.gpu.example", "llm*.corp.example", "192.0.2.7", "198.51.100.0/24", "2001:db8::/32")
	for _, c := range []struct {
		in   string
		want string // the pattern; empty: passes
	}{
		{"api.anthropic.com:443", "api.anthropic.com"},
		{"API.Anthropic.COM:443", "api.anthropic.com"},
		{"api.anthropic.com.:443", "api.anthropic.com"},
		{"api.anthropic.com:80", "api.anthropic.com"},
		{"api.anthropic.com:8443", "api.anthropic.com"},
		{"eu.api.openai.com:443", "*.api.openai.com"},
		{"generativelanguage.googleapis.com:443", "generativelanguage.googleapis.com"},
		{"europe-west4-aiplatform.googleapis.com:443", "*-aiplatform.googleapis.com"},
		{"bedrock-runtime.us-east-1.amazonaws.com:443", "bedrock-runtime.*.amazonaws.com"},
		{"a.b.openai.azure.com:443", "*.openai.azure.com"},
		{"models.example:1", "models.example"},
		{"a.gpu.example:443", "*.gpu.example"},
		{"llm.corp.example:443", "llm*.corp.example"},
		{"llm-7.corp.example:443", "llm*.corp.example"},
		{"192.0.2.7:443", "192.0.2.7"},
		{"192.0.2.7.:443", "192.0.2.7"},
		{"[::ffff:192.0.2.7]:443", "192.0.2.7"},
		{"198.51.100.255:443", "198.51.100.0/24"},
		{"[2001:db8::1]:443", "2001:db8::/32"},
		{"[2001:db8::1%eth0]:443", "2001:db8::/32"},

		{"example.com:443", ""},
		{"api.anthropic.com.evil.example:443", ""},
		{"xapi.anthropic.com:443", ""},
		{"anthropic.com:443", ""},
		{"gpu.example:443", ""},
		{"a.llm.corp.example:443", ""},
		{"xn--api-anthropic-com-abc.example:443", ""},
		{"bedrock-runtime.a.b.amazonaws.com:443", ""},
		{"www.googleapis.com:443", ""},
		{"192.0.2.8:443", ""},
		{"[::1]:443", ""},
	} {
		d, err := parseDestination(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got, ok := m.match(d); got != c.want || ok != (c.want != "") {
			t.Errorf("%s fits %q, want %q", c.in, got, c.want)
		}
	}
}

func TestDestinationRefused(t *testing.T) {
	for _, in := range []string{
		"", ":", ":443", "api.anthropic.com", "api.anthropic.com:", "api.anthropic.com:0", "api.anthropic.com:65536", "api.anthropic.com:https",
		"api.anthropic.com:443:443", "api..anthropic.com:443", ".api.anthropic.com:443", "api.anthropic.com..:443", "..:443", ".:443",
		"api。anthropic。com:443", "ａｐｉ.anthropic.com:443", "аpi.anthropic.com:443", // other scripts
		"user@api.anthropic.com:443", "api.anthropic.com/:443", "api.anthropic.com\x00:443", "api anthropic.com:443", "api.anthropic.com%2e:443",
		"[api.anthropic.com]:443", "[::1:443", "*.anthropic.com:443", strings.Repeat("a.", 130) + "com:443",
	} {
		if d, err := parseDestination(in); err == nil {
			t.Errorf("%q was read as %v", in, d)
		}
	}
}

func TestCheckModelHost(t *testing.T) {
	for in, ok := range map[string]bool{
		"llm.example": true, "*.example": true, "LLM.example.": true, "a*b.example": true, "10.0.0.1": true, "10.0.0.0/8": true, "::1": true,
		"": false, "*": false, "*.": false, "a.*": false, "http://a.example": false, "a.example:443": false, "a..b": false, "é.example": false, "*.*": false,
	} {
		if err := CheckModelHost(in); (err == nil) != ok {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// TestModelHosts holds the built-in list against the places that it must name.
func TestModelHosts(t *testing.T) {
	m := builtin(t)
	for name, base := range builtinProviders {
		host := strings.TrimPrefix(base, "https://")
		host, _, _ = strings.Cut(host, "/")
		if _, ok := m.match(destination{host: host, port: 443}); !ok {
			t.Errorf("the host of provider %s, %s, is not in the list", name, host)
		}
	}
}

func FuzzDestination(f *testing.F) {
	for _, s := range []string{
		"api.anthropic.com:443", "API.ANTHROPIC.COM.:443", "[::ffff:192.0.2.7]:1", "192.0.2.7:443", "xn--80ak6aa92e.com:443",
		"a.openai.azure.com:443", "llm-1.corp.example:9", "[2001:db8::1%25en0]:443", "api。openai.com:443", "127.1:80", "0x7f.1:80", "2130706433:80",
	} {
		f.Add(s)
	}
	m := builtin(f, "192.0.2.0/24", "llm*.corp.example")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := parseDestination(s)
		if err != nil {
			return
		}
		if (d.host == "") != d.addr.IsValid() {
			t.Fatalf("%q: neither or both of name and address: %+v", s, d)
		}
		// One reading: what is written of it is read as the same.
		again, err := parseDestination(d.String())
		if err != nil || again != d {
			t.Fatalf("%q is %+v, and that is read as %+v, %v", s, d, again, err)
		}
		text, ok := m.match(d)
		if ok != (text != "") {
			t.Fatalf("%q fits %q, %v", s, text, ok)
		}
		if d.host == "" {
			if want := netip.MustParsePrefix("192.0.2.0/24").Contains(d.addr); want != ok {
				t.Fatalf("%q: %v", s, ok)
			}
			return
		}
		// Writing does not matter: another case and a dot at the end.
		for _, other := range []string{strings.ToUpper(d.host), d.host + "."} {
			o, err := parseDestination(other + ":1")
			if err != nil {
				if len(d.host) > maxName-1 {
					continue
				}
				t.Fatalf("%q: %v", other, err)
			}
			if got, _ := m.match(o); got != text {
				t.Fatalf("%q fits %q, but %q fits %q", d.host, text, other, got)
			}
		}
		// What is below a pattern with *. fits too; what stands after a known name does not.
		if strings.HasPrefix(text, "*.") && len(d.host) < maxName-2 {
			if got, ok := m.matchName("a." + d.host); !ok || got != text {
				t.Fatalf("a.%s fits %q, want %q", d.host, got, text)
			}
		}
		if got, ok := m.matchName(d.host + ".invalid"); ok {
			t.Fatalf("%s.invalid fits %q", d.host, got)
		}
	})
}
