package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drawbridge/ui"
)

// maxArguments bounds what is read as the arguments of a call.
const maxArguments = 64 << 20

func (c *cli) callCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "call NAME [JSON|-]",
		Short: "Call one tool and print its result",
		Long: `Call one tool as the default client and print its result. JSON is the arguments
object; - reads it from standard input. Pictures go to files, whose names are
printed; without --out into the state directory, which keeps the last 50. On a
terminal, control characters are shown by number. Exit code 3 means that the call was refused, 1 that it failed.`,
		Example: `  drawbridge call computer '{"actions":[{"type":"screenshot"}]}' --out pictures`,
		Args:    rangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw := "{}"
			if len(args) == 2 {
				raw = args[1]
			}
			return c.call(cmd.Context(), args[0], raw, out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`directory` for pictures (default: pictures in the state directory)")
	return cmd
}

func (c *cli) call(ctx context.Context, name, raw, out string) error {
	arguments, err := c.arguments(raw)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	s, err := c.openSession(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	raw2, err := s.request(ctx, "tools/call", map[string]any{"name": name, "arguments": arguments})
	if err != nil {
		return err
	}
	stop() // whoever reads the output may not
	res := result{raw: raw2}
	if err := json.Unmarshal(raw2, &res); err != nil {
		return fmt.Errorf("the result is no tool result: %w", err)
	}
	prefix := ""
	if out == "" && slices.ContainsFunc(res.Content, block.isFile) {
		if out, prefix, err = c.pictureDir(); err != nil {
			return fmt.Errorf("the place for pictures: %w", err)
		}
	}
	if err := res.savePictures(out, prefix); err != nil {
		return err
	}
	var b strings.Builder
	if c.flags.json {
		err = res.printJSON(&b)
	} else {
		err = res.print(&b)
	}
	if err != nil {
		return err
	}
	text := b.String()
	if isTerminal(c.out) {
		text = ui.EscapeControls(text) // a host may have written it
	}
	if _, err := io.WriteString(c.out, text); err != nil {
		return err
	}
	switch {
	case res.Meta.Refused != "":
		return &exitError{code: exitRefused}
	case res.IsError:
		return &exitError{code: exitFailed}
	}
	return nil
}

// arguments checks that what was given is one JSON object, and keeps its bytes.
func (c *cli) arguments(raw string) (json.RawMessage, error) {
	b := []byte(raw)
	if raw == "-" {
		var err error
		if b, err = io.ReadAll(io.LimitReader(c.in, maxArguments+1)); err != nil {
			return nil, fmt.Errorf("reading the arguments: %w", err)
		}
		if len(b) > maxArguments {
			return nil, usagef("the arguments are larger than %d bytes", maxArguments)
		}
	}
	b = bytes.TrimSpace(b)
	if !json.Valid(b) || len(b) == 0 || b[0] != '{' {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("the arguments are no JSON object"),
			hint: `for example: drawbridge call computer '{"actions":[{"type":"screenshot"}]}'`}
	}
	return b, nil
}

// result is a tool result as the command line prints it.
type result struct {
	raw     json.RawMessage
	Content []block `json:"content"`
	IsError bool    `json:"isError"`
	Meta    struct {
		Refused string `json:"drawbridge/refused"`
	} `json:"_meta"`
}

// block is one element of a result's content. Data is the picture until it has
// been saved.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
	path     string // where the data was saved
}

var extensions = map[string]string{"image/png": "png", "image/jpeg": "jpg", "audio/wav": "wav", "audio/mpeg": "mp3"}

func (b block) isFile() bool { return b.Type == "image" || b.Type == "audio" }

// savePictures writes every block with data to a file of its own in dir, which
// is made if need be.
func (r *result) savePictures(dir, prefix string) error {
	for i := range r.Content {
		b := &r.Content[i]
		if !b.isFile() {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(b.Data)
		if err != nil {
			return fmt.Errorf("content block %d holds no base64: %w", i, err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making the directory for pictures: %w", err)
		}
		if b.path, err = saveNew(dir, prefix+b.Type, extensions[b.MimeType], data); err != nil {
			return fmt.Errorf("saving a picture: %w", err)
		}
	}
	return nil
}

// saveNew writes data to the first free name-N.ext in dir, and nothing over
// what is there.
func saveNew(dir, name, ext string, data []byte) (string, error) {
	if ext == "" {
		ext = "bin"
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		path := filepath.Join(dir, fmt.Sprintf("%s-%d.%s", name, n, ext))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			os.Remove(path)
			return "", err
		}
		return path, nil
	}
}

func (r *result) print(w io.Writer) error {
	var b strings.Builder
	for _, c := range r.Content {
		switch {
		case c.path != "":
			fmt.Fprintf(&b, "%s: %s\n", c.Type, c.path)
		case c.Type == "text":
			fmt.Fprintln(&b, strings.TrimRight(c.Text, "\n"))
		default:
			fmt.Fprintf(&b, "(%s)\n", c.Type)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printJSON writes the result as it came, with each picture's data replaced by
// the path of its file.
func (r *result) printJSON(w io.Writer) error {
	whole := map[string]json.RawMessage{}
	var content []map[string]json.RawMessage
	if err := json.Unmarshal(r.raw, &whole); err != nil {
		return err
	}
	if raw, ok := whole["content"]; ok {
		if err := json.Unmarshal(raw, &content); err != nil {
			return err
		}
		for i := range content {
			if r.Content[i].path == "" {
				continue
			}
			path, err := json.Marshal(r.Content[i].path)
			if err != nil {
				return err
			}
			delete(content[i], "data")
			content[i]["path"] = path
		}
		// Text is given back as it came, < and > included.
		var replaced bytes.Buffer
		e := json.NewEncoder(&replaced)
		e.SetEscapeHTML(false)
		if err := e.Encode(content); err != nil {
			return err
		}
		whole["content"] = replaced.Bytes()
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(whole)
}
