package host

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"drawbridge/bridge/wire"
)

// Limits of one host's tool list.
const (
	maxTools    = 10_000
	maxPages    = 1_000
	maxListSize = 64 << 20 // bytes of definitions
	maxToolName = 256      // bytes
)

// Tool is one tool as a host defines it.
type Tool struct {
	Name       string          // as the host names it
	Definition json.RawMessage // the host's own bytes
	ReadOnly   bool            // the host says that it changes nothing
	sum        [sha256.Size]byte
}

// List asks for all tools of a host, page by page, in the host's own order. What
// cannot be listed is left out and named in notes.
func (c *Conn) List(ctx context.Context) (tools []Tool, notes []string, err error) {
	seen := map[string]bool{}
	cursors := map[string]bool{}
	params, size := `{}`, 0
	for range maxPages {
		r := c.request(ctx, "tools/list", params)
		if err := r.failure("tools/list"); err != nil {
			return nil, nil, err
		}
		var page struct {
			Tools []json.RawMessage `json:"tools"`
			Next  string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(r.result, &page); err != nil {
			return nil, nil, fmt.Errorf("tools/list: the host's answer is not understood: %w", err)
		}
		for i, raw := range page.Tools {
			t, err := parseTool(raw)
			if err != nil {
				notes = append(notes, fmt.Sprintf("tool %d is left out: %v", len(seen)+i, err))
				continue
			}
			if seen[t.Name] {
				notes = append(notes, fmt.Sprintf("tool %q is listed twice: the first one holds", t.Name))
				continue
			}
			size += len(raw)
			if len(tools) == maxTools || size > maxListSize {
				return tools, append(notes, fmt.Sprintf("the list is cut after %d tools: more than %d tools or %d bytes are not kept", len(tools), maxTools, maxListSize)), nil
			}
			seen[t.Name] = true
			tools = append(tools, t)
		}
		if page.Next == "" {
			return tools, notes, nil
		}
		if cursors[page.Next] {
			return tools, append(notes, "the list goes in a circle: a cursor came twice"), nil
		}
		cursors[page.Next] = true
		cursor, err := json.Marshal(page.Next)
		if err != nil {
			return nil, nil, err
		}
		params = `{"cursor":` + string(cursor) + `}`
	}
	return tools, append(notes, fmt.Sprintf("the list is cut after %d pages", maxPages)), nil
}

// parseTool reads of a definition what we must know and leaves the rest alone.
func parseTool(raw json.RawMessage) (Tool, error) {
	t := Tool{Definition: raw, sum: sha256.Sum256(raw)}
	name := wire.Get(raw, "name")
	if name == nil {
		return t, errors.New("it has no name")
	}
	if err := json.Unmarshal(name, &t.Name); err != nil || t.Name == "" {
		return t, errors.New("its name is not a text")
	}
	if len(t.Name) > maxToolName {
		return t, fmt.Errorf("its name has %d bytes, at most %d are taken", len(t.Name), maxToolName)
	}
	var hints struct {
		Annotations struct {
			ReadOnly bool `json:"readOnlyHint"`
		} `json:"annotations"`
	}
	// A hint of a wrong type is no hint.
	t.ReadOnly = json.Unmarshal(raw, &hints) == nil && hints.Annotations.ReadOnly
	return t, nil
}

// as returns the definition under another name, all else byte for byte.
func (t *Tool) as(name string) json.RawMessage {
	if name == t.Name {
		return t.Definition
	}
	return wire.Replace(t.Definition, "name", wire.AppendString(nil, name))
}
