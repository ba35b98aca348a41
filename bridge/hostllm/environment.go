package hostllm

import (
	"net/url"
	"strings"
)

// Base is the address of a provider at the gateway, for a client that takes a
// base address: without its own path, such as /v1.
func (a Access) Base(gateway, provider string) string {
	return gateway + "/" + a.secret + "/" + provider
}

// Variable is one of a host's environment.
type Variable struct {
	Name, Value string // without a value it must not be set
	Shown       string // the value without its secret
}

// Environment is with what a host is started so that its model requests pass:
// the base addresses for those that take them, the proxy for everything else.
func (a Access) Environment(gateway, proxy string) []Variable {
	hide := strings.NewReplacer(a.secret, a.Host+".…", a.password, "…")
	login := proxy
	if u, err := url.Parse(proxy); err == nil {
		u.User = url.UserPassword(a.Host, a.password)
		login = u.String()
	}
	vars := []Variable{
		{Name: "ANTHROPIC_BASE_URL", Value: a.Base(gateway, "anthropic")},
		{Name: "OPENAI_BASE_URL", Value: a.Base(gateway, "openai") + "/v1"},
		{Name: "GOOGLE_GEMINI_BASE_URL", Value: a.Base(gateway, "google")},
		{Name: "OPENROUTER_BASE_URL", Value: a.Base(gateway, "openrouter") + "/api/v1"},
		{Name: "DEEPSEEK_BASE_URL", Value: a.Base(gateway, "deepseek")},
		{Name: "HTTPS_PROXY", Value: login}, {Name: "https_proxy", Value: login},
		{Name: "HTTP_PROXY", Value: login}, {Name: "http_proxy", Value: login},
		// What was excepted from proxies before could be a model host.
		{Name: "NO_PROXY", Value: noProxy}, {Name: "no_proxy", Value: noProxy},
		{Name: "NODE_USE_ENV_PROXY", Value: "1"},
		{Name: "ALL_PROXY"}, {Name: "all_proxy"},
	}
	for i := range vars {
		vars[i].Shown = hide.Replace(vars[i].Value)
	}
	return vars
}

const noProxy = "localhost,127.0.0.1,::1"
