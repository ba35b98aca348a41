package login

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kardianos/service"
)

// launchd keeps a LaunchAgent of the person.
type launchd struct{ Options }

const launchdSystem = "darwin-launchd"

func (launchd) name() string   { return "launchd" }
func (launchd) system() string { return launchdSystem }

func (l launchd) file() string {
	return filepath.Join(l.Home, "Library", "LaunchAgents", Label+".plist")
}

func (l launchd) logs() string { return filepath.Join(l.Home, "Library", "Logs", "Drawbridge") }

// launchdTemplate starts the program inside the app itself, so that permissions are
// the app's. It is started again after a crash and not after it was quit, which for
// launchd is one thing with ending well: so the agent ends, too, where it finds what
// a person must mend. It does not say that it is for a graphical session, which every
// agent is: macOS 26 was seen to refuse one that does.
const launchdTemplate = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>{{Name | html}}</string>
	<key>AssociatedBundleIdentifiers</key>
	<string>{{Name | html}}</string>
	<key>ProgramArguments</key>
	<array>
		<string>{{Path | html}}</string>
	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ThrottleInterval</key>
	<integer>30</integer>
	<key>ProcessType</key>
	<string>Interactive</string>
	<key>StandardOutPath</key>
	<string>{{StandardOutPath | html}}</string>
	<key>StandardErrorPath</key>
	<string>{{StandardErrorPath | html}}</string>
</dict>
</plist>
`

func (l launchd) config() *service.Config {
	return &service.Config{
		Name:       Label,
		Executable: l.Program,
		Option: service.KeyValue{
			"UserService":   true,
			"LaunchdConfig": launchdTemplate,
			"LogDirectory":  l.logs(),
		},
	}
}

func (l launchd) content() []byte {
	log := l.logs() + "/" + Label
	return fill(launchdTemplate,
		"{{Name | html}}", html.EscapeString(Label),
		"{{Path | html}}", html.EscapeString(l.Program),
		"{{StandardOutPath | html}}", html.EscapeString(log+".out.log"),
		"{{StandardErrorPath | html}}", html.EscapeString(log+".err.log"),
	)
}

func (launchd) check(context.Context) error {
	if _, err := exec.LookPath("launchctl"); err != nil {
		return fmt.Errorf("launchd is not here: %w", err)
	}
	return nil
}

func (l launchd) domain() string { return "gui/" + strconv.Itoa(l.UID) }

// bootTries and bootWait: launchd takes a moment to let go of a service, and
// refuses to load it again meanwhile.
const (
	bootTries = 10
	bootWait  = 200 * time.Millisecond
)

// enable uses the verbs that took the place of load and unload, which the library
// has, and which say little of why they fail.
func (l launchd) enable(ctx context.Context) error {
	// launchd opens the log, and does not make its directory.
	if err := os.MkdirAll(l.logs(), 0o700); err != nil {
		return err
	}
	// A file that changed is read again only by loading it again.
	if err := l.disable(ctx); err != nil {
		return err
	}
	// A person may have switched it off in System Settings; now they ask for it.
	if err := must(ctx, "launchctl", "enable", l.domain()+"/"+Label); err != nil {
		return err
	}
	var err error
	for range bootTries {
		if err = must(ctx, "launchctl", "bootstrap", l.domain(), l.file()); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(bootWait):
		}
	}
	return err
}

func (l launchd) disable(ctx context.Context) error {
	on, err := l.enabled(ctx)
	if err != nil || !on {
		return err
	}
	return must(ctx, "launchctl", "bootout", l.domain()+"/"+Label)
}

// gone: what is not loaded, launchd has no list of.
func (launchd) gone(context.Context) error { return nil }

func (launchd) links() []string { return nil }

func (l launchd) enabled(ctx context.Context) (bool, error) {
	_, known, err := l.state(ctx)
	return known, err
}

func (l launchd) running(ctx context.Context) (bool, error) {
	text, known, err := l.state(ctx)
	return known && strings.Contains(text, "state = running"), err
}

// state is what launchd says of the service, if it knows it.
func (l launchd) state(ctx context.Context) (text string, known bool, err error) {
	out, code, err := run(ctx, "launchctl", "print", l.domain()+"/"+Label)
	if err != nil {
		return "", false, err
	}
	// 113: launchd does not know the service.
	if code != 0 && code != 113 {
		return "", false, fmt.Errorf("launchctl print: exit code %d: %s", code, strings.TrimSpace(out))
	}
	return out, code == 0, nil
}
