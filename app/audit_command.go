package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"drawbridge/bridge/audit"
)

// auditDir is the audit's place in a state directory.
func auditDir(state string) string { return filepath.Join(state, "audit") }

func (c *cli) auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Read and verify the record of every call"}
	var n int
	var follow bool
	tail := &cobra.Command{
		Use: "tail", Short: "Print the last records", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 0 {
				return usagef("-n must not be negative")
			}
			return c.withAudit(func(dir string) error {
				ctx, stop := untilSignal(cmd.Context())
				defer stop()
				err := audit.Tail(ctx, dir, n, follow, c.out)
				if errors.Is(err, context.Canceled) {
					return nil // how following ends
				}
				return err
			})
		},
	}
	tail.Flags().IntVarP(&n, "lines", "n", 20, "how many `records`")
	tail.Flags().BoolVarP(&follow, "follow", "f", false, "go on with the records that come")

	var file string
	export := &cobra.Command{
		Use: "export", Short: "Write the whole record, oldest first", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			return c.withAudit(func(dir string) error { return c.export(dir, file) })
		},
	}
	export.Flags().StringVarP(&file, "output", "o", "", "new `file` to write (default: standard output)")

	cmd.AddCommand(tail, export,
		&cobra.Command{
			Use: "show ID", Short: "Print the records of one call", Args: exactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				return c.withAudit(func(dir string) error {
					recs, err := audit.Show(dir, args[0])
					if err != nil {
						return err
					}
					if c.flags.json {
						return c.printJSON(map[string]any{"records": recs})
					}
					for _, r := range recs {
						if _, err := fmt.Fprintf(c.out, "%s\n", r); err != nil {
							return err
						}
					}
					return nil
				})
			},
		},
		&cobra.Command{
			Use: "verify", Short: "Look for an edit, a cut or a gap in the record", Args: noArgs,
			RunE: func(*cobra.Command, []string) error { return c.withAudit(c.verify) },
		},
	)
	return cmd
}

// withAudit runs do on the audit's directory, and says it plainly where there is
// no record yet.
func (c *cli) withAudit(do func(dir string) error) error {
	state, err := c.stateDir()
	if err != nil {
		return err
	}
	err = do(auditDir(state))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no audit in %s yet: %w", state, err)
	}
	return err
}

func (c *cli) export(dir, file string) (err error) {
	if file == "" {
		return audit.Export(dir, c.out)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usagef("%s exists; name a new file", file)
	}
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			os.Remove(file)
		}
	}()
	return audit.Export(dir, f)
}

func (c *cli) verify(dir string) error {
	r, err := audit.Verify(dir)
	if err != nil {
		return err
	}
	if c.flags.json {
		err = c.printJSON(struct {
			OK bool `json:"ok"`
			audit.Report
		}{r.OK(), r})
	} else {
		fmt.Fprintf(c.out, "%d records in %d files, %d to %d\n", r.Records, r.Files, r.First, r.Last)
		for _, p := range r.Problems {
			place := p.File
			if p.Line > 0 {
				place = fmt.Sprintf("%s:%d", p.File, p.Line)
			}
			fmt.Fprintf(c.out, "%s: %s: %s\n", p.Kind, place, p.Text)
		}
		for _, n := range r.Notes {
			fmt.Fprintf(c.out, "note: %s\n", n)
		}
		if len(r.Open) > 0 {
			fmt.Fprintf(c.out, "note: %d calls are not done\n", len(r.Open))
		}
		for _, g := range r.Gaps {
			fmt.Fprintf(c.out, "not written: before record %d, from %s to %s: %d records are missing, %d came late: %s\n",
				g.Seq, g.Since.Format(time.RFC3339), g.Until.Format(time.RFC3339), g.Lost, g.Late, g.Why)
		}
		verdict := "nothing is wrong"
		switch {
		case !r.OK():
			verdict = fmt.Sprintf("%d things are wrong", len(r.Problems))
		case len(r.Gaps) > 0:
			verdict = fmt.Sprintf("nothing was changed, and %d times the disk took no records", len(r.Gaps))
		}
		_, err = fmt.Fprintf(c.out, "%s. %s\n", verdict, r.Limits)
	}
	if err == nil && !r.OK() {
		err = &exitError{code: exitFailed}
	}
	return err
}
