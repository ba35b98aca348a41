package login

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// launchd keeps a LaunchAgent of the person.
type launchd struct{ Options }

func (launchd) name() string { return "launchd" }

func (l launchd) file() string {
	return filepath.Join(l.Home, "Library", "LaunchAgents", Label+".plist")
}

func (l launchd) logs() string { return filepath.Join(l.Home, "Library", "Logs", "Drawbridge") }

// content starts the program inside the app itself, so that permissions are the
// app's. It is started again after a crash and not after it was quit; a wrong
// configuration is looked at again every half minute.
func (l launchd) content() []byte {
	text := func(s string) string {
		var b bytes.Buffer
		_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
		return b.String()
	}
	log := text(filepath.Join(l.logs(), "login-item.log"))
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>%[1]s</string>
	<key>AssociatedBundleIdentifiers</key>
	<string>%[1]s</string>
	<key>ProgramArguments</key>
	<array>
		<string>%[2]s</string>
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
	<string>%[3]s</string>
	<key>StandardErrorPath</key>
	<string>%[3]s</string>
</dict>
</plist>
`, Label, text(l.Program), log)
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

func (l launchd) enable(ctx context.Context, changed bool) error {
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
			return ctx.Err()
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

func (l launchd) enabled(ctx context.Context) (bool, error) {
	out, code, err := run(ctx, "launchctl", "print", l.domain()+"/"+Label)
	if err != nil {
		return false, err
	}
	// 113: launchd does not know the service.
	if code != 0 && code != 113 {
		return false, fmt.Errorf("launchctl print: exit code %d: %s", code, strings.TrimSpace(out))
	}
	return code == 0, nil
}

func (launchd) forgotten(context.Context) error { return nil }
