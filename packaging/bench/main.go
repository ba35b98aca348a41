// Command bench measures what Drawbridge promises about speed and memory, each
// against a peer that runs in turn with it on the same machine, and prints one
// table of ratios. A bar that is missed is printed as it is; what cannot be
// measured here says why.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"drawbridge/packaging/agent"
)

func main() {
	only := flag.String("only", "", "measure only the `rows` whose name contains this")
	quick := flag.Bool("quick", false, "fewer and shorter rounds: shows that it runs, not how fast")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *quick); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is what the measurements share.
type bench struct {
	dir    string // for everything that is written; removed at the end
	bin    string // the built command
	rounds int
	round  time.Duration // of a closed loop
}

// measurements in the order of the table.
var measurements = []struct {
	name string
	run  func(context.Context, *bench) ([]row, error)
}{
	{"calls", calls},
	{"hosts", hosts},
	{"capture", captures},
	{"typing", typing},
	{"batch", batchOverhead},
	{"idle", idle},
	{"start", starts},
}

func run(ctx context.Context, only string, quick bool) (err error) {
	dir, err := os.MkdirTemp("", "drawbridge-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{dir: dir, rounds: 15, round: 400 * time.Millisecond}
	if quick {
		b.rounds, b.round = 2, 100*time.Millisecond
	}
	if b.bin, err = agent.Build(ctx, dir); err != nil {
		return err
	}
	var rows []row
	for _, m := range measurements {
		if !strings.Contains(m.name, only) {
			continue
		}
		fmt.Fprintln(os.Stderr, "bench: measuring", m.name)
		got, err := m.run(ctx, b)
		if err != nil {
			got = append(got, row{what: m.name, missing: oneLine(err.Error())})
		}
		rows = append(rows, got...)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	fmt.Printf("%d CPUs, %s, %s/%s\n\n%s", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, table(rows))
	return nil
}
