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
	secret     bool // its value, or each value in it, is not shown

	// Every option says one of three things: how it is held against what a person
	// accepted, which other option's guard holds it, or why no value of it lets a
	// program do more than another.
	guard   guard
	granted bool // guarded only where Settings.Granted
	with    string
	safe    string
}

// Why options do not loosen.
const (
	timing     = "it bounds a time, and lets nothing run that did not"
	bounds     = "it bounds what programs can make the agent hold, and lets nothing run that did not"
	asking     = "it bounds how a person is asked, and lets nothing run unasked"
	sameScreen = "the same screen is seen either way"
	ownDesktop = "it is the size of a desktop of our own"
	files      = "whoever can write it can take away the record's files"
	noArgs     = "the log never holds arguments"
)

const unwatched = "batches run on your display also where your own mouse and keyboard cannot be seen, and then do not stop when you use them"

// byGate stands for what [gate.Policy] holds against what was accepted.
const byGate = "gate.Policy"

var options = map[string]option{
	"listen":          {doc: "Where the endpoint listens: a loopback address and a port.", check: loopback, safe: "only loopback addresses are taken, and who may connect is for the tokens to say"},
	"allowed_hosts":   {doc: "Host names besides the loopback ones under which requests are served.", elem: hostName, guard: widens(func(c *Config) *[]string { return &c.AllowedHosts }, "requests that name this machine %s are let in")},
	"allowed_origins": {doc: "Web origins besides our own whose pages may connect, as https://example.org.", elem: origin, guard: widens(func(c *Config) *[]string { return &c.AllowedOrigins }, "web pages of %s may connect")},
	"allow_xwayland":  {doc: "Use the X11 backend under Wayland, where it reaches only X11 applications.", safe: "it concerns X11 alone, where every program of the person drives every window"},

	"computer":                             {doc: "The computer tool."},
	"computer.enabled":                     {doc: "Offer the tool at all.", guard: switchedOn(func(c *Config) *bool { return &c.Computer.Enabled }, "the computer tool is offered")},
	"computer.backend":                     {doc: "auto, native, applescript, virtual or simulated.", check: oneOf("auto", "native", "applescript", "virtual", "simulated"), granted: true, guard: desktop(func(c *Config) *string { return &c.Computer.Backend })},
	"computer.capture":                     {doc: "How pictures are taken on macOS: auto, native or screencapture.", check: oneOf("auto", "native", "screencapture"), safe: sameScreen},
	"computer.display":                     {doc: "Which display is driven; 0 is the main one.", check: between(0, 63), guard: theDisplays()},
	"computer.max_actions_per_call":        {doc: "Actions that one batch may hold.", check: between(1, 1000), safe: "each batch is asked about, or held against the rules, as a whole"},
	"computer.wait_ms":                     {doc: "How long a wait action waits, in milliseconds.", check: between(0, 60_000), safe: timing},
	"computer.settle_ms":                   {doc: "Pause between the last action and the first look, in milliseconds.", check: between(0, 60_000), safe: timing},
	"computer.settle_max_ms":               {doc: "Longest wait for two equal looks after a batch, in milliseconds.", check: between(0, 60_000), safe: timing},
	"computer.batch_timeout_ms":            {doc: "Longest time a batch may take, in milliseconds.", check: between(1000, 3_600_000), safe: timing},
	"computer.allowed_actions":             {doc: "Actions that exist; null means all. [screenshot, wait] only looks.", check: someAction, elem: oneOf(actionNames()...), with: byGate},
	"computer.invert_scroll":               {doc: "Turn the direction of scrolling around.", safe: "what is asked about scrolls either way"},
	"computer.require_image_capable_model": {doc: "Refuse clients that are known not to read pictures.", safe: "it guards a model against itself: what its client says of it is believed"},
	"computer.record_titles":               {doc: "Put the titles of windows into the record; they may name documents and people.", guard: switchedOn(func(c *Config) *bool { return &c.Computer.RecordTitles }, "results and records hold the titles of windows")},
	"computer.lease_queue":                 {doc: "Batches that may wait for the desktop at once.", check: between(0, 1000), safe: bounds},
	"computer.picture":                     {doc: "How pictures are made to fit the model."},
	"computer.picture.size":                {doc: "fit (within the caps below) or original (up to 10.24 megapixels).", check: oneOf("fit", "original"), safe: sameScreen},
	"computer.picture.max_edge":            {doc: "Longest side in pixels, with size fit.", check: between(64, 2000), safe: sameScreen},
	"computer.picture.max_pixels":          {doc: "Width times height, with size fit.", check: between(4096, 4_000_000), safe: sameScreen},
	"computer.picture.format":              {doc: "png or jpeg.", check: oneOf("png", "jpeg"), safe: sameScreen},
	"computer.picture.jpeg_quality":        {doc: "Quality of jpeg pictures.", check: between(1, 100), safe: sameScreen},
	"hand_back":                            {doc: "How a batch gives way to the person's own mouse and keyboard."},
	"hand_back.quiet":                      {doc: "How long the person must have left them alone after that before input is sent again; 0s: at once.", check: lasting(0, time.Hour), guard: atLeast(func(c *Config) *time.Duration { return &c.HandBack.Quiet }, "batches go on %s after you used mouse or keyboard, not only %s after")},
	"hand_back.allow_unwatched":            {doc: "Let batches run on a person's display also where the person's input cannot be seen.", guard: switchedOn(func(c *Config) *bool { return &c.HandBack.AllowUnwatched }, unwatched)},
	"hand_back.panic_chord":                {doc: "The keys that stop everything at once, kept from every other program; empty: none.", check: panicChord, guard: panicChordOnly()},
	"virtual":                              {doc: "The desktop that the virtual and simulated backends make."},
	"virtual.width":                        {doc: "Width in pixels.", check: between(320, 8192), safe: ownDesktop},
	"virtual.height":                       {doc: "Height in pixels.", check: between(200, 8192), safe: ownDesktop},
	"clients":                              {doc: "What single clients may do, by the name of their token. Entries only narrow.", name: clientName},
	"clients.*":                            {},
	"clients.*.allowed_actions":            {doc: "As computer.allowed_actions; both must allow.", example: "[screenshot, wait]", check: someAction, elem: oneOf(actionNames()...), with: byGate},
	"clients.*.display":                    {doc: "Which display this client drives.", example: "0", check: between(0, 63), with: "computer.display"},
	"clients.*.expose":                     {doc: "Tools this client may see, as globs; empty means all that are exposed.", example: `["computer"]`, elem: glob, guard: forClients(func(c *Client) *[]string { return &c.Expose }, []string{"*"}, shown)},
	"clients.*.hide":                       {doc: "Tools this client may not see, as globs.", example: `["bash"]`, elem: glob, guard: forClients(func(c *Client) *[]string { return &c.Hide }, nil, hidden)},
	"expose":                               {doc: "Tools that clients may see, as globs.", elem: glob, guard: field(func(c *Config) *[]string { return &c.Expose }, forAll(shown))},
	"hide":                                 {doc: "Tools that no client sees, as globs. Wins over expose.", elem: glob, guard: field(func(c *Config) *[]string { return &c.Hide }, forAll(hidden))},
	"rules":                                {doc: "What runs unasked, what asks, what is denied. Deny beats ask beats allow."},
	"rules.*":                              {},
	"rules.*.tool":                         {doc: "Tool name, as a glob; * is every one.", example: "computer", check: glob, with: byGate},
	"rules.*.client":                       {doc: "Client name, as a glob; left out, every one.", example: "editor", check: glob, with: byGate},
	"rules.*.host":                         {doc: "Host name, as a glob; left out, every one.", example: "drawbridge", check: glob, with: byGate},
	"rules.*.when":                         {doc: "Argument values: JSON pointer (* for every element) to glob.", example: `{"/actions/*/type": "screenshot"}`, name: pointer, elem: glob, with: byGate},
	"rules.*.then":                         {doc: "allow, ask or deny.", example: "allow", check: oneOf("allow", "ask", "deny"), with: byGate},
	"hosts":                                {doc: "Where tools beside our own come from, by name. See docs/hosts.md.", name: hostOfTools},
	"hosts.*":                              {},
	"hosts.*.command":                      {doc: "A program that speaks MCP on its stdin and stdout; it ends with the agent.", example: "notes-server", granted: true, guard: programs()},
	"hosts.*.args":                         {doc: "Its arguments.", example: `["--stdio"]`, with: "hosts.*.command"},
	"hosts.*.env":                          {doc: "Variables that it gets beside the agent's own.", example: "{NOTES_DIR: /srv/notes}", secret: true, with: "hosts.*.command"},
	"hosts.*.cwd":                          {doc: "The folder that it starts in.", example: "/srv", with: "hosts.*.command"},
	"hosts.*.url":                          {doc: "A remote server (Streamable HTTP), in the place of command.", example: "https://tools.example.org/mcp", instead: true, with: "hosts.*.command"},
	"hosts.*.headers":                      {doc: "Headers for url; each value is read from a variable or a file.", example: `{Authorization: {env: TOOLS_TOKEN, prefix: "Bearer "}}`, instead: true, name: headerName},
	"hosts.*.headers.*":                    {},
	"hosts.*.headers.*.env":                {doc: "The variable that holds the value.", with: "hosts.*.command"},
	"hosts.*.headers.*.file":               {doc: "The file that holds the value.", with: "hosts.*.command"},
	"hosts.*.headers.*.prefix":             {doc: "What stands before the value.", secret: true, with: "hosts.*.command"},
	"hosts.*.attached":                     {doc: "The entry is for a session that dials in, in the place of command.", example: "true", instead: true, safe: "a session needs a token to dial in, and no entry"},
	"hosts.*.prefix":                       {doc: "What stands before its tools' names; null means NAME_.", example: `"notes-"`, guard: prefixes()},
	"hosts.*.timeout":                      {doc: "Longest time of one call; 0s means none.", example: "10m", check: lasting(0, 24*time.Hour), safe: timing},
	"hosts.*.trust_hints":                  {doc: "Run unasked what it says is read-only or will itself ask about.", example: "true", with: byGate},
	"main_host":                            {doc: "The host whose tools keep their names; empty: the session that claims it.", check: mainHost, guard: mainHostOnly()},
	"approvals":                            {doc: "How calls wait for a person."},
	"approvals.deadline":                   {doc: "How long a call waits for an answer.", check: lasting(time.Second, time.Hour), safe: asking},
	"approvals.max_pending_per_client":     {doc: "Calls of one client that may wait at once.", check: between(1, 1000), safe: asking},
	"approvals.cool_down":                  {doc: "How long a client may not ask again after a denial.", check: lasting(0, time.Hour), safe: asking},
	"host_llm":                             {doc: "May hosts call their own models: allow or deny. Only a person goes back to allow.", check: oneOf(string(hostllm.Allow), string(hostllm.Deny)), safe: "the switch is saved apart, and only a person goes back to allow"},
	"model_gateway":                        {doc: "Where the model requests of hosts pass that were started with drawbridge host run."},
	"model_gateway.listen":                 {doc: "Where the gateway and the proxy listen; port 0 takes a free one and keeps it.", check: loopback, safe: "only loopback addresses are taken, and each host has a secret"},
	"model_gateway.providers":              {doc: "Base addresses by name, beside or instead of anthropic, openai, google, openrouter, deepseek.", name: providerName, elem: provider, guard: providers()},
	"model_gateway.model_hosts":            {doc: "Hosts of models beside the known ones: names (*.example.org), addresses, networks.", elem: modelHost, guard: narrows(func(c *Config) *[]string { return &c.ModelGateway.ModelHosts }, "models are no longer known to answer at %s, which is refused while models are off; after a restart")},
	"limits":                               {doc: "What programs can make the agent hold. Sizes are bytes."},
	"limits.connections":                   {doc: "Open connections of all clients.", check: between(1, 10_000), safe: bounds},
	"limits.connections_per_client":        {doc: "Open connections of one client.", check: between(1, 10_000), safe: bounds},
	"limits.calls_per_connection":          {doc: "Calls in flight on one connection.", check: between(1, 10_000), safe: bounds},
	"limits.frame_bytes":                   {doc: "Largest message that a client may send.", check: between(64<<10, 1<<30), safe: bounds},
	"limits.result_bytes_websocket":        {doc: "Largest result over the websocket.", check: between(64<<10, 1<<30), safe: bounds},
	"limits.queue_bytes":                   {doc: "Answers that wait for one slow reader, together.", check: between(64<<10, 1<<30), safe: bounds},
	"limits.result_bytes_http":             {doc: "Largest result over HTTP.", check: between(64<<10, 1<<30), safe: bounds},
	"audit":                                {doc: "The record of every call."},
	"audit.max_bytes":                      {doc: "Size at which the record starts a new file.", check: between(64<<10, 1<<30), safe: files},
	"audit.generations":                    {doc: "Old files that are kept.", check: between(1, 10_000), safe: files},
	"log":                                  {doc: "The agent's own log, on standard error. It never holds arguments."},
	"log.level":                            {doc: "debug, info, warn or error.", check: oneOf("debug", "info", "warn", "error"), safe: noArgs},
	"log.format":                           {doc: "auto (readable on a terminal, else json), console or json.", check: oneOf("auto", "console", "json"), safe: noArgs},
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
