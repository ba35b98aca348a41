package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drawbridge/bridge"
	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/stop"
	"drawbridge/ui"
)

// pageAudit is how many of the last records the page shows.
const pageAudit = 50

func (c *cli) activityCommand() *cobra.Command {
	return &cobra.Command{
		Use: "activity", Short: "Open the page that shows everything the agent does",
		Long: `Have the running agent open its activity page in the browser of the person who
runs it. Exit code 1 means that no browser could be opened. The page shows everything; it answers for a person only once they picked the number that it
shows on the tray, a notification or the terminal.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.ask(cmd, verbActivity, nil, nil) },
	}
}

// activityPage is the agent as the page sees it.
type activityPage struct{ *agent }

var _ ui.PageAgent = activityPage{}

// newActivity makes the page's server, and what keeps pictures for it.
func (a *agent) newActivity(ctx context.Context) {
	a.previews.Made = a.history.Before
	a.activity = ui.NewActivity(ctx, ui.ActivityOptions{
		Agent: activityPage{a}, Previews: &a.previews, History: &a.history, Browse: browse,
		Injected: a.tool.LastEvent, Count: a.count, Opened: func() { a.note("a page was opened, " + ui.PageName) }, Log: a.log,
	})
}

// openActivity opens the page in the person's browser.
func (a *agent) openActivity() error {
	a.mu.Lock()
	url := a.url
	a.mu.Unlock()
	if url == "" {
		return errors.New("the agent does not serve yet")
	}
	base := "http" + strings.TrimSuffix(strings.TrimPrefix(url, "ws"), "/mcp")
	if err := a.activity.Open(base); err != nil {
		return fmt.Errorf("no browser could be opened (%w): install one, or run the agent where there is one; the page is %s/activity, and shows nothing but in a browser that the agent opened", err, base)
	}
	return nil
}

// browseTime is how long a browser may take to say that it is none.
const browseTime = 10 * time.Second

// browse opens an address in the person's browser. It returns once a page came from
// there, or the opener ended, or is busy for long: some end only with the browser.
func browse(ctx context.Context, url string, opened <-chan struct{}) error {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	cmd := exec.Command(opener, url)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", opener, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	late := time.NewTimer(browseTime)
	defer late.Stop()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s: %w", opener, err)
		}
	case <-opened:
	case <-late.C:
	case <-ctx.Done():
	}
	return nil
}

func (p activityPage) State() ui.State            { return p.uiState() }
func (p activityPage) Changed() <-chan struct{}   { return p.pulse.Wait() }
func (p activityPage) Prompts() []*gate.Pending   { return p.gate.List() }
func (p activityPage) Calls() []bridge.CallStatus { return p.server.Calls() }

// Audit reads the record's end and verifies all of it.
func (p activityPage) Audit() (ui.AuditView, error) {
	v := ui.AuditView{Records: []json.RawMessage{}, Problems: []string{}}
	report, err := audit.Verify(auditDir(p.dir))
	if err != nil {
		return v, err
	}
	v.OK = report.OK()
	for _, x := range report.Problems {
		v.Problems = append(v.Problems, ui.Escape(x.Text, 300))
	}
	var b bytes.Buffer
	if err := audit.Tail(context.Background(), auditDir(p.dir), pageAudit, false, &b); err != nil {
		return v, err
	}
	for line := range bytes.Lines(b.Bytes()) {
		if line = bytes.TrimSpace(line); json.Valid(line) {
			v.Records = append(v.Records, json.RawMessage(line))
		}
	}
	return v, nil
}

// Do does what a button of the page says.
func (p activityPage) Do(v ui.Verb, _ string) error {
	p.note(string(v) + ", " + ui.PageName)
	switch v {
	case ui.VerbStop:
		p.stopAll(stop.Stopped, "everything was stopped on the activity page")
		return nil
	case ui.VerbPause:
		p.pauseAll("the activity page")
		return nil
	case ui.VerbResume:
		return p.gate.OfferResume()
	case ui.VerbNoModels:
		return p.models.Deny(ui.PageName)
	}
	return fmt.Errorf("the page cannot do %q", v)
}

func (p activityPage) AllowModels(ctx context.Context) error {
	p.note(string(ui.VerbModels) + ", " + ui.PageName)
	return p.models.Allow(ctx, ui.PageName)
}

func (p activityPage) StopCall(id string) bool {
	return p.server.StopCall(id, &stop.Error{Reason: stop.Stopped, Message: "the call was stopped on the activity page"})
}

func (p activityPage) Revoke(key string) error {
	p.note("revoke_rule, " + ui.PageName)
	_, err := p.revoke(key)
	return err
}

func (p activityPage) Confirm(ctx context.Context, choices []string, shown string) (bool, error) {
	p.note("a page asks to answer, " + ui.PageName)
	return p.gate.ConfirmPage(ctx, choices, shown)
}
