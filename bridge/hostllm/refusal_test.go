package hostllm

import (
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// retryWords are what clients look for in an error to tell whether another try
// may help, as the loops of pi, omp and the SDKs have them.
var retryWords = regexp.MustCompile(`(?i)overloaded|rate.?limit|too many requests|time(d)?.?out|network|fetch failed|socket|connection|connect|reset|terminated|closed|\b429\b|\b5\d\d\b|quota|unauthorized|forbidden|unavailable|internal|server error|temporar|retry|again|busy|capacity|abort|exceeded`)

func TestRefusalShapes(t *testing.T) {
	for provider, want := range map[string]string{
		"anthropic":  `{"error":{"message":"TEXT","type":"billing_error"},"type":"error"}`,
		"openai":     `{"error":{"code":"host_llm_denied","message":"TEXT","param":null,"type":"invalid_request_error"}}`,
		"deepseek":   `{"error":{"code":"host_llm_denied","message":"TEXT","param":null,"type":"invalid_request_error"}}`,
		"google":     `{"error":{"code":400,"message":"TEXT","status":"FAILED_PRECONDITION"}}`,
		"openrouter": `{"error":{"code":400,"message":"TEXT","metadata":{"reason":"host_llm_denied"}}}`,
		"other":      `{"error":{"code":"host_llm_denied","message":"TEXT","param":null,"type":"invalid_request_error"},"type":"error"}`,
	} {
		w := httptest.NewRecorder()
		writeRefusal(w, provider)
		r := w.Result()
		if r.StatusCode != 400 || r.Header.Get("X-Should-Retry") != "false" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s %v", provider, r.Status, r.Header)
		}
		if got := w.Body.String(); got != strings.Replace(want, "TEXT", RefusalText, 1) {
			t.Errorf("%s:\n%s\nwant\n%s", provider, got, want)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: no JSON", provider)
		}
		for _, text := range []string{w.Body.String(), r.Status} {
			if word := retryWords.FindString(text); word != "" {
				t.Errorf("%s: %q has %q, which retry loops match", provider, text, word)
			}
		}
	}
}
