package conformance

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Front stands before the endpoint at target and adds the token to every
// request. Host, Origin and everything else stay as they came, since the suite
// tests them; streams are passed on as they arrive.
func Front(target *url.URL, token string) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		FlushInterval: -1,
		// The suite leaves streams in the middle on purpose, which is all that
		// the proxy would report.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Read to its end first: net/http closes a request's body when the
		// response begins, and a proxy that is then still reading it drops the
		// connection to the endpoint in the middle of a stream.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
}
