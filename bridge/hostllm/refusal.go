package hostllm

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// RefusalText is what the user of a host reads. It has none of the words by
// which clients tell that another try may help.
const RefusalText = "model use is switched off by the person at this machine (host_llm: deny)"

const refusalCode = "host_llm_denied"

// refusal returns the JSON body in the shape of a provider's own errors. A name
// that is not known gets one that both large families of clients can read.
func refusal(provider string) []byte {
	const kind = "invalid_request_error"
	var v any
	switch provider {
	case "anthropic":
		// Of the types that there are it is the one after which Claude Code does not
		// send the request again with less and less in it.
		v = map[string]any{"type": "error", "error": map[string]any{"type": "billing_error", "message": RefusalText}}
	case "google":
		v = map[string]any{"error": map[string]any{"code": http.StatusBadRequest, "message": RefusalText, "status": "FAILED_PRECONDITION"}}
	case "openrouter":
		v = map[string]any{"error": map[string]any{"code": http.StatusBadRequest, "message": RefusalText, "metadata": map[string]any{"reason": refusalCode}}}
	case "openai", "deepseek":
		v = map[string]any{"error": map[string]any{"message": RefusalText, "type": kind, "param": nil, "code": refusalCode}}
	default:
		v = map[string]any{"type": "error", "error": map[string]any{"message": RefusalText, "type": kind, "param": nil, "code": refusalCode}}
	}
	b, err := json.Marshal(v)
	if err != nil { // texts and numbers only
		panic(err)
	}
	return b
}

// writeRefusal answers a refused model request: 400 is the one status after
// which every client ends at once.
func writeRefusal(w http.ResponseWriter, provider string) {
	w.Header().Set("X-Should-Retry", "false")
	writeBody(w, http.StatusBadRequest, refusal(provider))
}

// writeFailure answers a request that goes nowhere for another reason, in a
// shape that clients of every provider can read.
func writeFailure(w http.ResponseWriter, status int, message string) {
	b, err := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": "drawbridge", "message": message, "code": status}})
	if err != nil {
		panic(err)
	}
	writeBody(w, status, b)
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // who asked may be gone
}
