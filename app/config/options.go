package config

import (
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/host"
	"drawbridge/bridge/hostllm"
)

// option describes one field, by its path: section names joined with dots, `*`
// for any name in a map. One table serves the check of what was written, the
// example, and the names that an error suggests, so that they cannot drift.
type option struct {
	doc     string
	example string // only for fields of entries that have no default
	instead bool   // it stands in the place of other fields of its entry
	// check says what is wrong with a value that has the right type: a phrase
	// that completes "must be …". Empty: nothing.
	check func(v reflect.Value) string
	// elem is the same for each element of a list or value of a map, name for
	// each name in a map.
	elem, name func(v reflect.Value) string
}

var options = map[string]option{
	"listen":          {doc: "Where the endpoint listens: a loopback address and a port.", check: loopback},
	"allowed_hosts":   {doc: "Host names besides the loopback ones under which requests are served.", elem: hostName},
	"allowed_origins": {doc: "Web origins besides our own whose pages may connect, as https://example.org.", elem: origin},
	"allow_xwayland":  {doc: "Use the X11 backend under Wayland, where it reaches only X11 applications."},

	"computer":                             {doc: "The computer tool."},
	"computer.enabled":                     {doc: "Offer the tool at all."},
	"computer.backend":                     {doc: "auto, native, applescript, virtual or simulated.", check: oneOf("auto", "native", "applescript", "virtual", "simulated")},
	"computer.capture":                     {doc: "How pictures are taken on macOS: auto, native or screencapture.", check: oneOf("auto", "native", "screencapture")},
	"computer.display":                     {doc: "Which display is driven; 0 is the main one.", check: between(0, 63)},
	"computer.max_actions_per_call":        {doc: "Actions that one batch may hold.", check: between(1, 1000)},
	"computer.wait_ms":                     {doc: "How long a wait action waits, in milliseconds.", check: between(0, 60_000)},
	"computer.settle_ms":                   {doc: "Pause between the last action and the first look, in milliseconds.", check: between(0, 60_000)},
	"computer.settle_max_ms":               {doc: "Longest wait for two equal looks after a batch, in milliseconds.", check: between(0, 60_000)},
	"computer.batch_timeout_ms":            {doc: "Longest time a batch may take, in milliseconds.", check: between(1000, 3_600_000)},
	"computer.allowed_actions":             {doc: "Actions that exist; null means all. [screenshot, wait] only looks.", check: someAction, elem: oneOf(actionNames()...)},
	"computer.invert_scroll":               {doc: "Turn the direction of scrolling around."},
	"computer.require_image_capable_model": {doc: "Refuse clients that are known not to read pictures."},
	"computer.record_titles":               {doc: "Put the titles of windows into the record; they may name documents and people."},
	"computer.lease_queue":                 {doc: "Batches that may wait for the desktop at once.", check: between(0, 1000)},
	"computer.picture":                     {doc: "How pictures are made to fit the model."},
	"computer.picture.size":                {doc: "fit (within the caps below) or original (up to 10.24 megapixels).", check: oneOf("fit", "original")},
	"computer.picture.max_edge":            {doc: "Longest side in pixels, with size fit.", check: between(64, 2000)},
	"computer.picture.max_pixels":          {doc: "Width times height, with size fit.", check: between(4096, 4_000_000)},
	"computer.picture.format":              {doc: "png or jpeg.", check: oneOf("png", "jpeg")},
	"computer.picture.jpeg_quality":        {doc: "Quality of jpeg pictures.", check: between(1, 100)},
	"hand_back":                            {doc: "How a batch gives way to the person's own mouse and keyboard."},
	"hand_back.quiet":                      {doc: "How long the person must have left them alone after that before input is sent again; 0s: at once.", check: lasting(0, time.Hour)},
	"hand_back.allow_unwatched":            {doc: "Let batches run on a person's display also where the person's input cannot be seen."},
	"hand_back.panic_chord":                {doc: "The keys that stop everything at once, kept from every other program; empty: none.", check: panicChord},
	"virtual":                              {doc: "The desktop that the virtual and simulated backends make."},
	"virtual.width":                        {doc: "Width in pixels.", check: between(320, 8192)},
	"virtual.height":                       {doc: "Height in pixels.", check: between(200, 8192)},
	"clients":                              {doc: "What single clients may do, by the name of their token. Entries only narrow.", name: clientName},
	"clients.*":                            {},
	"clients.*.allowed_actions":            {doc: "As computer.allowed_actions; both must allow.", example: "[screenshot, wait]", check: someAction, elem: oneOf(actionNames()...)},
	"clients.*.display":                    {doc: "Which display this client drives.", example: "0", check: between(0, 63)},
	"clients.*.expose":                     {doc: "Tools this client may see, as globs; empty means all that are exposed.", example: `["computer"]`, elem: glob},
	"clients.*.hide":                       {doc: "Tools this client may not see, as globs.", example: `["bash"]`, elem: glob},
	"expose":                               {doc: "Tools that clients may see, as globs.", elem: glob},
	"hide":                                 {doc: "Tools that no client sees, as globs. Wins over expose.", elem: glob},
	"rules":                                {doc: "What runs unasked, what asks, what is denied. Deny beats ask beats allow."},
	"rules.*":                              {},
	"rules.*.tool":                         {doc: "Tool name, as a glob; * is every one.", example: "computer", check: glob},
	"rules.*.client":                       {doc: "Client name, as a glob; left out, every one.", example: "editor", check: glob},
	"rules.*.host":                         {doc: "Host name, as a glob; left out, every one.", example: "drawbridge", check: glob},
	"rules.*.when":                         {doc: "Argument values: JSON pointer (* for every element) to glob.", example: `{"/actions/*/type": "screenshot"}`, name: pointer, elem: glob},
	"rules.*.then":                         {doc: "allow, ask or deny.", example: "allow", check: oneOf("allow", "ask", "deny")},
	"hosts":                                {doc: "Where tools beside our own come from, by name. See docs/hosts.md.", name: hostOfTools},
	"hosts.*":                              {},
	"hosts.*.command":                      {doc: "A program that speaks MCP on its stdin and stdout; it ends with the agent.", example: "notes-server"},
	"hosts.*.args":                         {doc: "Its arguments.", example: `["--stdio"]`},
	"hosts.*.env":                          {doc: "Variables that it gets beside the agent's own.", example: "{NOTES_DIR: /srv/notes}"},
	"hosts.*.cwd":                          {doc: "The folder that it starts in.", example: "/srv"},
	"hosts.*.url":                          {doc: "A remote server (Streamable HTTP), in the place of command.", example: "https://tools.example.org/mcp", instead: true},
	"hosts.*.headers":                      {doc: "Headers for url; each value is read from a variable or a file.", example: `{Authorization: {env: TOOLS_TOKEN, prefix: "Bearer "}}`, instead: true, name: headerName},
	"hosts.*.headers.*":                    {},
	"hosts.*.headers.*.env":                {doc: "The variable that holds the value."},
	"hosts.*.headers.*.file":               {doc: "The file that holds the value."},
	"hosts.*.headers.*.prefix":             {doc: "What stands before the value."},
	"hosts.*.attached":                     {doc: "The entry is for a session that dials in, in the place of command.", example: "true", instead: true},
	"hosts.*.prefix":                       {doc: "What stands before its tools' names; null means NAME_.", example: `"notes-"`},
	"hosts.*.timeout":                      {doc: "Longest time of one call; 0s means none.", example: "10m", check: lasting(0, 24*time.Hour)},
	"hosts.*.trust_hints":                  {doc: "Run unasked what it says is read-only or will itself ask about.", example: "true"},
	"main_host":                            {doc: "The host whose tools keep their names; empty: the session that claims it.", check: mainHost},
	"approvals":                            {doc: "How calls wait for a person."},
	"approvals.deadline":                   {doc: "How long a call waits for an answer.", check: lasting(time.Second, time.Hour)},
	"approvals.max_pending_per_client":     {doc: "Calls of one client that may wait at once.", check: between(1, 1000)},
	"approvals.cool_down":                  {doc: "How long a client may not ask again after a denial.", check: lasting(0, time.Hour)},
	"host_llm":                             {doc: "May hosts call their own models: allow or deny. Only a person goes back to allow.", check: oneOf(string(hostllm.Allow), string(hostllm.Deny))},
	"model_gateway":                        {doc: "Where the model requests of hosts pass that were started with drawbridge host run."},
	"model_gateway.listen":                 {doc: "Where the gateway and the proxy listen; port 0 takes a free one and keeps it.", check: loopback},
	"model_gateway.providers":              {doc: "Base addresses by name, beside or instead of anthropic, openai, google, openrouter, deepseek.", name: providerName, elem: provider},
	"model_gateway.model_hosts":            {doc: "Hosts of models beside the known ones: names (*.example.org), addresses, networks.", elem: modelHost},
	"limits":                               {doc: "What programs can make the agent hold. Sizes are bytes."},
	"limits.connections":                   {doc: "Open connections of all clients.", check: between(1, 10_000)},
	"limits.connections_per_client":        {doc: "Open connections of one client.", check: between(1, 10_000)},
	"limits.calls_per_connection":          {doc: "Calls in flight on one connection.", check: between(1, 10_000)},
	"limits.frame_bytes":                   {doc: "Largest message that a client may send.", check: between(64<<10, 1<<30)},
	"limits.result_bytes_websocket":        {doc: "Largest result over the websocket.", check: between(64<<10, 1<<30)},
	"limits.queue_bytes":                   {doc: "Answers that wait for one slow reader, together.", check: between(64<<10, 1<<30)},
	"limits.result_bytes_http":             {doc: "Largest result over HTTP.", check: between(64<<10, 1<<30)},
	"audit":                                {doc: "The record of every call."},
	"audit.max_bytes":                      {doc: "Size at which the record starts a new file.", check: between(64<<10, 1<<30)},
	"audit.generations":                    {doc: "Old files that are kept.", check: between(1, 10_000)},
	"log":                                  {doc: "The agent's own log, on standard error. It never holds arguments."},
	"log.level":                            {doc: "debug, info, warn or error.", check: oneOf("debug", "info", "warn", "error")},
	"log.format":                           {doc: "auto (readable on a terminal, else json), console or json.", check: oneOf("auto", "console", "json")},
}

// retired are names that people bring from elsewhere and that have no place
// here, with the reason.
var retired = map[string]string{
	"helpercachedir": "Drawbridge compiles no helper on this machine, so there is nothing to cache; delete the line",
}

func oneOf(words ...string) func(reflect.Value) string {
	return func(v reflect.Value) string {
		for _, w := range words {
			if v.String() == w {
				return ""
			}
		}
		return fmt.Sprintf("one of %s, not %q%s", strings.Join(words, ", "), v.String(), suggestion(nearest(v.String(), words)))
	}
}

func between(lo, hi int64) func(reflect.Value) string {
	return func(v reflect.Value) string {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if n := v.Int(); n < lo || n > hi {
			return fmt.Sprintf("between %d and %d, not %d", lo, hi, n)
		}
		return ""
	}
}

func lasting(lo, hi time.Duration) func(reflect.Value) string {
	return func(v reflect.Value) string {
		if d := time.Duration(v.Int()); d < lo || d > hi {
			return fmt.Sprintf("between %s and %s, not %s", human(lo), human(hi), human(d))
		}
		return ""
	}
}

func loopback(v reflect.Value) string {
	const want = "a loopback address and a port, such as 127.0.0.1:7317"
	host, port, err := net.SplitHostPort(v.String())
	if err != nil {
		return fmt.Sprintf("%s, not %q", want, v.String())
	}
	if p, err := strconv.ParseUint(port, 10, 16); err != nil || port != strconv.FormatUint(p, 10) {
		return fmt.Sprintf("%s; %q is no port", want, port)
	}
	if addr, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !addr.IsLoopback()) {
		return fmt.Sprintf("%s; %q is not loopback. For use from another machine, forward the port with ssh -L", want, host)
	}
	return ""
}

var hostPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

func hostName(v reflect.Value) string {
	if _, err := netip.ParseAddr(v.String()); err != nil && !hostPattern.MatchString(v.String()) {
		return fmt.Sprintf("host names without scheme and port, not %q", v.String())
	}
	return ""
}

var originPattern = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://[A-Za-z0-9.\[\]:-]+$`)

func origin(v reflect.Value) string {
	if !originPattern.MatchString(v.String()) {
		return fmt.Sprintf("origins such as https://example.org (no path, no wildcard), not %q", v.String())
	}
	return ""
}

func panicChord(v reflect.Value) string {
	if v.String() == "" {
		return ""
	}
	mods, _, err := computer.ParseChord(v.String())
	switch {
	case err != nil:
		return fmt.Sprintf("keys joined by plus signs, such as ctrl+option+escape; %q %v", v.String(), err)
	case len(mods) == 0:
		return fmt.Sprintf("a key with modifiers, such as ctrl+option+escape; %q would be kept from every program", v.String())
	}
	return ""
}

func glob(v reflect.Value) string {
	if _, err := gate.ParseGlob(v.String()); err != nil {
		return fmt.Sprintf("a glob (*, ?, [abc], \\ before a literal one): %v", err)
	}
	return ""
}

func providerName(v reflect.Value) string {
	if !clientPattern.MatchString(v.String()) {
		return fmt.Sprintf("1 to 64 letters, digits, dots, dashes and underscores; %q is not", v.String())
	}
	return ""
}

func provider(v reflect.Value) string {
	if _, err := hostllm.ParseProvider("", v.String()); err != nil {
		return "base addresses such as https://api.example.com/v1, with neither credentials nor query" // what is there may hold a key
	}
	return ""
}

func modelHost(v reflect.Value) string {
	if err := hostllm.CheckModelHost(v.String()); err != nil {
		return fmt.Sprintf("host names (* for part of a name, *. at the start for any parts before), addresses or networks: %v", err)
	}
	return ""
}

func actionNames() []string {
	names := make([]string, len(computer.ActionTypes))
	for i, a := range computer.ActionTypes {
		names[i] = string(a)
	}
	return names
}

func someAction(v reflect.Value) string {
	if v.Len() == 0 {
		return "null (all) or name at least one of " + strings.Join(actionNames(), ", ") + "; to switch the tool off write computer.enabled: false"
	}
	return ""
}

// clientPattern is what names of clients and providers look like.
var clientPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func clientName(v reflect.Value) string {
	if !clientPattern.MatchString(v.String()) {
		return fmt.Sprintf("a client's name: 1 to 64 letters, digits, dots, dashes and underscores; %q is none", v.String())
	}
	return ""
}

func hostOfTools(v reflect.Value) string {
	if err := host.CheckName(v.String()); err != nil {
		return "a host's name: " + err.Error()
	}
	return ""
}

func mainHost(v reflect.Value) string {
	if v.String() == "" {
		return ""
	}
	return hostOfTools(v)
}

var headerPattern = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func headerName(v reflect.Value) string {
	if !headerPattern.MatchString(v.String()) {
		return fmt.Sprintf("a header's name; %q is none", v.String())
	}
	return ""
}

func pointer(v reflect.Value) string {
	if v.String() != "" && !strings.HasPrefix(v.String(), "/") {
		return fmt.Sprintf("a JSON pointer such as /actions/*/type, not %q", v.String())
	}
	return ""
}

// human writes a duration as a person would: 2m, not 2m0s.
func human(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
