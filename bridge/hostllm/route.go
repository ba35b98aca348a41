package hostllm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"drawbridge/bridge/wire"
)

// maxChange bounds the body of a change.
const maxChange = 4 << 10

// Serve answers GET /host-llm with the [Report], and POST {"mode":"allow|deny"}
// with the report after the change. Deny holds when it is answered. Allow waits
// for a person: 403 says why not.
func (s *Switch) Serve(w http.ResponseWriter, r *http.Request, client string) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		mode, status, err := readChange(w, r)
		if err == nil {
			status, err = s.change(r, mode, client)
		}
		if err != nil {
			writeBody(w, status, wire.ErrorFrame(nil, wire.Errorf(wire.CodeRefused, "%s", err).Raw()).Bytes())
			return
		}
	default:
		w.Header().Set("Allow", "GET, POST")
		writeBody(w, http.StatusMethodNotAllowed, wire.ErrorFrame(nil, wire.Errorf(wire.CodeRefused, "/host-llm takes GET and POST").Raw()).Bytes())
		return
	}
	b, err := json.Marshal(s.Report())
	if err != nil {
		panic(err) // texts and numbers only
	}
	writeBody(w, http.StatusOK, b)
}

func (s *Switch) change(r *http.Request, mode Mode, client string) (status int, err error) {
	if mode == Deny {
		return http.StatusInternalServerError, s.Deny(named(client))
	}
	err = s.allow(r.Context(), client, named(client))
	var refused *RefusedError
	if errors.As(err, &refused) {
		return http.StatusForbidden, err
	}
	return http.StatusInternalServerError, err
}

// named tells a client's name from a word of ours: one is called default.
func named(client string) string { return fmt.Sprintf("client %q", client) }

// readChange reads {"mode": …}, and nothing that could be read in another way.
func readChange(w http.ResponseWriter, r *http.Request) (Mode, int, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return "", http.StatusUnsupportedMediaType, errors.New("the body must be application/json")
	}
	bad := func(format string, args ...any) (Mode, int, error) {
		return "", http.StatusBadRequest, fmt.Errorf(`the body must be {"mode":"allow"} or {"mode":"deny"}: `+format, args...)
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxChange))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return bad("it is no object")
	}
	mode := Mode("")
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return bad("it is no JSON")
		}
		value, err := d.Token()
		if err != nil {
			return bad("it is no JSON")
		}
		text, ok := value.(string)
		switch {
		case name != "mode":
			return bad("it has another member")
		case mode != "":
			return bad("mode is there twice")
		case !ok:
			return bad("mode is no text")
		}
		if mode, err = ParseMode(text); err != nil {
			return bad("%w", err)
		}
	}
	if _, err := d.Token(); err != nil {
		return bad("it is no JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return bad("something follows")
	}
	if mode == "" {
		return bad("mode is missing")
	}
	return mode, 0, nil
}
