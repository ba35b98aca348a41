package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"drawbridge/packaging/agent"
)

// simulated starts an agent on the simulated desktop.
func simulated(ctx context.Context, b *bench, name, settings string) (*agent.Agent, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		return nil, err
	}
	return agent.Start(ctx, agent.Options{Bin: b.bin, State: filepath.Join(dir, "state"),
		Args: []string{"--config", config, "--backend", "simulated", "--allow", "computer"}})
}

// The batch whose own time is measured: 25 actions, of which the waits pause for
// a known time.
const (
	batchWaits = 12
	batchMoves = 13
	waitMillis = 5
)

// batchOverhead measures what a batch of 25 actions takes beyond its own pauses.
// What every batch ends with (settling, comparing two looks, the picture) is
// measured by a batch of one move, in turn with it.
func batchOverhead(ctx context.Context, b *bench) (_ []row, err error) {
	a, err := simulated(ctx, b, "batch", fmt.Sprintf("computer:\n  wait_ms: %d\n  settle_ms: 0\n", waitMillis))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Stop()) }()
	c, err := dial(ctx, a.WebSocket(), a.Token)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	move := func(i int) string { return fmt.Sprintf(`{"type":"move","x":%d,"y":%d}`, 100+i, 100+i) }
	var actions []string
	for i := range batchMoves {
		actions = append(actions, move(i))
		if i < batchWaits {
			actions = append(actions, `{"type":"wait"}`)
		}
	}
	many, one := strings.Join(actions, ","), move(batchMoves)
	timed := func(actions string) (time.Duration, error) {
		begin := time.Now()
		_, err := c.computer(actions)
		return time.Since(begin), err
	}
	if _, err := timed(`{"type":"screenshot"}`); err != nil { // coordinates are measured in it
		return nil, err
	}
	const pauses = batchWaits * waitMillis * time.Millisecond
	var over []float64
	var manys, ones []time.Duration
	for range 2 * b.rounds {
		m, err := timed(many)
		if err != nil {
			return nil, err
		}
		o, err := timed(one)
		if err != nil {
			return nil, err
		}
		manys, ones = append(manys, m), append(ones, o)
		over = append(over, float64(m-o-pauses)/float64(time.Millisecond))
	}
	return []row{{
		what:     fmt.Sprintf("batch of 25 actions, over its own pauses (%v) and what a batch of one takes", pauses),
		ours:     millis(median(manys)) + ", whole call",
		peer:     millis(median(ones)) + ", a batch of one move",
		measured: median(over), unit: "ms", limit: 5,
	}}, nil
}

// quiet is how long an agent is left alone: first to come to rest, then to count.
const quiet = 10 * time.Second

// idle measures an agent that nobody uses: on a desktop of its own, after one
// picture was taken, so that memory for pictures must have been given back.
func idle(ctx context.Context, b *bench) (_ []row, err error) {
	var a *agent.Agent
	backend := "virtual"
	if d, e := startDesktop(ctx, b, "idle"); e == nil {
		defer func() { err = errors.Join(err, d.close()) }()
		if _, err := d.shoot(); err != nil {
			return nil, err
		}
		d.client.Close()
		a = d.Agent
	} else {
		backend = "simulated, since " + e.Error()
		if a, err = simulated(ctx, b, "idle-simulated", ""); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, a.Stop()) }()
	}
	if err := sleep(ctx, quiet); err != nil {
		return nil, err
	}
	before, err := switches(a.PID)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, quiet); err != nil {
		return nil, err
	}
	after, err := switches(a.PID)
	if err != nil {
		return nil, err
	}
	kib, err := statusField(fmt.Sprintf("/proc/%d/status", a.PID), "VmRSS")
	if err != nil {
		return nil, err
	}
	return []row{
		{
			what: "resident memory, idle, " + quiet.String() + " after a picture", ours: "backend " + backend, peer: "–",
			measured: float64(kib) / 1024, unit: "MiB", limit: 40,
		},
		{
			// A timer under 1 s would wake a thread more than 10 times.
			what: "threads woken in " + quiet.String() + ", idle", ours: "backend " + backend, peer: "–",
			measured: float64(after - before), unit: "wakeups", limit: quiet.Seconds(),
		},
	}, nil
}

// switches counts how often the threads of a process gave up the CPU to sleep.
func switches(pid int) (int, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("process %d has no threads to look at here (%v)", pid, err)
	}
	sum := 0
	for _, f := range files {
		n, err := statusField(f, "voluntary_ctxt_switches")
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread ended
		} else if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// statusField reads one number of a status file in /proc.
func statusField(path, name string) (int, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return parseStatus(string(b), name)
}

func parseStatus(text, name string) (int, error) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		if f := strings.Fields(value); key == name && len(f) > 0 {
			return strconv.Atoi(f[0])
		}
	}
	return 0, fmt.Errorf("no %s in the process's status", name)
}

// descendants lists the processes below pid.
func descendants(pid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return nil, fmt.Errorf("no processes to look at here (%v)", err)
	}
	children := map[int][]int{}
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		if child, parent, ok := parseStat(string(b)); ok {
			children[parent] = append(children[parent], child)
		}
	}
	var found []int
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		found = append(found, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return found, nil
}

// parseStat reads a process and its parent from a stat file. The name between
// them is in parentheses and may hold any byte.
func parseStat(text string) (pid, parent int, ok bool) {
	end := strings.LastIndexByte(text, ')')
	first, _, _ := strings.Cut(text, " ")
	if end < 0 {
		return 0, 0, false
	}
	rest := strings.Fields(text[end+1:])
	if len(rest) < 2 {
		return 0, 0, false
	}
	pid, err1 := strconv.Atoi(first)
	parent, err2 := strconv.Atoi(rest[1])
	return pid, parent, err1 == nil && err2 == nil
}

// starts measures from starting the process to its first answer over HTTP, each
// time with a new state folder.
func starts(ctx context.Context, b *bench) ([]row, error) {
	var took []time.Duration
	for i := range b.rounds {
		begin := time.Now()
		a, err := simulated(ctx, b, fmt.Sprintf("start%d", i), "")
		if err != nil {
			return nil, err
		}
		err = answers(ctx, a)
		took = append(took, time.Since(begin))
		if err = errors.Join(err, a.Stop()); err != nil {
			return nil, err
		}
	}
	return []row{{
		what: "start to serving, simulated desktop, new state folder", ours: fmt.Sprintf("median of %d", len(took)), peer: "–",
		measured: float64(median(took)) / float64(time.Millisecond), unit: "ms", limit: 200,
	}}, nil
}

// answers asks for the status.
func answers(ctx context.Context, a *agent.Agent) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.Host+"/status", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+a.Token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /status: %s", res.Status)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func quote(s string) (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}

// lastLine is where a program says why it failed.
func lastLine(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return string(lines[len(lines)-1])
}
