package login

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kardianos/service"
)

// systemd keeps a unit of the person's own service manager.
type systemd struct{ Options }

const (
	systemdSystem = "linux-systemd"
	unitName      = "drawbridge"
	unit          = unitName + ".service"
	description   = "Drawbridge: lets a program drive this desktop under a person's eyes"
)

func (systemd) name() string   { return "systemd" }
func (systemd) system() string { return systemdSystem }

// file is where the library puts it. A person's XDG_CONFIG_HOME does not count: it
// is the service manager that looks for it, and that was started before any shell
// set one.
func (s systemd) file() string {
	return filepath.Join(s.Home, ".config", "systemd", "user", unit)
}

// systemdTemplate follows the graphical session: it starts with it and ends with
// it, where the library's own would wait for a target that the service manager of
// a person does not have. It starts again after a crash, and not where a person must
// mend something first, with which the agent ends with 2.
const systemdTemplate = `[Unit]
Description={{Description}}
PartOf=graphical-session.target
After=graphical-session.target

[Service]
ExecStart={{Path | cmd}}
Restart=on-failure
RestartSec=2
RestartPreventExitStatus=2

[Install]
WantedBy=graphical-session.target
`

// program is the path as systemd reads it: it expands % there, and nothing else.
func (s systemd) program() string { return strings.ReplaceAll(s.Program, "%", "%%") }

func (s systemd) config() *service.Config {
	return &service.Config{
		Name:        unitName,
		Description: description,
		Executable:  s.program(),
		Option:      service.KeyValue{"UserService": true, "SystemdScript": systemdTemplate},
	}
}

func (s systemd) content() []byte {
	return fill(systemdTemplate, "{{Description}}", description, "{{Path | cmd}}", `"`+s.program()+`"`)
}

func (systemd) check(ctx context.Context) error {
	if _, err := exec.LookPath("systemctl"); err != nil {
		return fmt.Errorf("systemd is not here, so the login item cannot be used; %s: %w", instead, err)
	}
	if err := must(ctx, "systemctl", "--user", "show-environment"); err != nil {
		return fmt.Errorf("the systemd of this person cannot be reached, so the login item cannot be used; %s: %w", instead, err)
	}
	return nil
}

// enable has the file read before anything is made of it. The library does that
// the other way round.
func (systemd) enable(ctx context.Context) error {
	if err := must(ctx, "systemctl", "--user", "daemon-reload"); err != nil {
		return err
	}
	// Again, where it was enabled: the unit may say otherwise by what.
	return must(ctx, "systemctl", "--user", "reenable", unit)
}

func (systemd) disable(ctx context.Context) error {
	return must(ctx, "systemctl", "--user", "disable", unit)
}

func (systemd) gone(ctx context.Context) error {
	return must(ctx, "systemctl", "--user", "daemon-reload")
}

// links are those in the directories of what wants or requires the unit.
func (s systemd) links() []string {
	units := filepath.Dir(s.file())
	dirs, _ := os.ReadDir(units) // without it there are none
	var out []string
	for _, d := range dirs {
		if ext := filepath.Ext(d.Name()); !d.IsDir() || ext != ".wants" && ext != ".requires" {
			continue
		}
		link := filepath.Join(units, d.Name(), unit)
		if info, err := os.Lstat(link); err == nil && info.Mode()&os.ModeSymlink != 0 {
			out = append(out, link)
		}
	}
	return out
}

func (systemd) running(ctx context.Context) (bool, error) {
	_, code, err := run(ctx, "systemctl", "--user", "is-active", unit)
	return err == nil && code == 0, err
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
