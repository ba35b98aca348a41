package login

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// systemd keeps a unit of the person's own service manager.
type systemd struct{ Options }

const unit = "drawbridge.service"

func (systemd) name() string { return "systemd" }

func (s systemd) file() string {
	dir := s.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.Home, ".config")
	}
	return filepath.Join(dir, "systemd", "user", unit)
}

// content follows the graphical session: it starts with it and ends with it. It
// starts again after a crash, and not where the configuration is wrong.
func (s systemd) content() []byte {
	// systemd expands % in the path of a program, and nothing else.
	program := strings.ReplaceAll(s.Program, "%", "%%")
	return fmt.Appendf(nil, `[Unit]
Description=Drawbridge: lets a program drive this desktop under a person's eyes
PartOf=graphical-session.target
After=graphical-session.target

[Service]
ExecStart="%s"
Restart=on-failure
RestartSec=2
RestartPreventExitStatus=2

[Install]
WantedBy=graphical-session.target
`, program)
}

func (systemd) check(ctx context.Context) error {
	const instead = "have your desktop start drawbridge by its own means"
	if _, err := exec.LookPath("systemctl"); err != nil {
		return fmt.Errorf("systemd is not here, so the login item cannot be used; %s: %w", instead, err)
	}
	if err := must(ctx, "systemctl", "--user", "show-environment"); err != nil {
		return fmt.Errorf("the systemd of this person cannot be reached, so the login item cannot be used; %s: %w", instead, err)
	}
	return nil
}

func (systemd) enable(ctx context.Context, changed bool) error {
	if changed {
		if err := must(ctx, "systemctl", "--user", "daemon-reload"); err != nil {
			return err
		}
	}
	// Again, where it was enabled: the unit may say otherwise by what.
	return must(ctx, "systemctl", "--user", "reenable", unit)
}

func (systemd) disable(ctx context.Context) error {
	return must(ctx, "systemctl", "--user", "disable", unit)
}

func (systemd) enabled(ctx context.Context) (bool, error) {
	out, code, err := run(ctx, "systemctl", "--user", "is-enabled", unit)
	if err != nil {
		return false, err
	}
	switch state := strings.TrimSpace(out); {
	case code == 0 && state == "enabled":
		return true, nil
	case code != 0:
		return false, nil // disabled, masked, or not known
	default:
		return false, fmt.Errorf("systemctl --user is-enabled %s: %s", unit, state)
	}
}

func (systemd) forgotten(ctx context.Context) error {
	return must(ctx, "systemctl", "--user", "daemon-reload")
}
