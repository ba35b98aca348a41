package host

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"drawbridge/bridge/host/hosttest"
)

// childMain is what the test binary does as a child host. The mode is a list of
// words.
func childMain(mode string) int {
	s := &hosttest.Server{Era: hosttest.Legacy}
	has := func(word string) bool { return strings.Contains(" "+mode+" ", " "+word+" ") }
	if has("sdk") {
		if err := sdkServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			return 1
		}
		return 0
	}
	if has("modern") {
		s.Era = hosttest.Modern
	}
	s.Silent = has("silent")
	if has("banner") {
		fmt.Println("Welcome! This is no JSON.")
		fmt.Println(`{"half":`)
	}
	if has("stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	if has("flood") {
		go func() {
			line := strings.Repeat("x", 100<<10) + "\n"
			for {
				if _, err := os.Stderr.WriteString(line); err != nil {
					return
				}
			}
		}()
	}
	if has("fail") {
		fmt.Fprintln(os.Stderr, "cannot find my things")
		return 3
	}
	if name := os.Getenv("DRAWBRIDGE_TEST_ORPHAN"); name != "" {
		// A grandchild that would outlive us.
		c := exec.Command("sleep", "600")
		if err := c.Start(); err != nil {
			return 1
		}
		_ = os.WriteFile(name, []byte(strconv.Itoa(os.Getpid())+" "+strconv.Itoa(c.Process.Pid)), 0o600)
	}
	s.Call = func(ctx context.Context, c *hosttest.Call) (json.RawMessage, json.RawMessage) {
		switch c.Name {
		case "exit":
			os.Exit(7)
		case "half":
			// A crash in the middle of a result.
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"te`, c.ID)
			os.Exit(8)
		case "hang":
			<-ctx.Done()
			return nil, nil
		case "odd":
			return json.RawMessage(oddResult), nil
		case "fails":
			return nil, json.RawMessage(oddError)
		case "big":
			return bigResult(), nil
		case "pid":
			return json.RawMessage(`{"content":[],"structuredContent":{"pid":` + strconv.Itoa(os.Getpid()) + `}}`), nil
		}
		return hosttest.Echo(ctx, c)
	}
	s.SetTools(append(oddTools, tool("exit"), tool("half"), tool("hang"), tool("pid"))...)
	err := s.ServeStdio(os.Stdin, os.Stdout)
	if has("stubborn") {
		time.Sleep(time.Hour) // does not go when its input ends, nor when asked
	}
	if err != nil {
		return 1
	}
	return 0
}

// childConfig makes a host entry that runs this test binary as a child.
func childConfig(mode string) Config {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Config{Command: exe, Env: map[string]string{childEnv: mode}}
}
