package computer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"drawbridge/bridge"
)

// banner heads the text of every result of the simulated desktop.
const banner = "SIMULATED DESKTOP: nothing here is a real application"

// answer makes the result of a batch that ran, or that was refused for the sake
// of its picture.
func (r *run) answer(s shot) bridge.Answer {
	structured := Structured{
		Backend:  r.tool.desk.Backend,
		Display:  shape(s),
		Stopped:  r.stopped,
		Executed: r.entries,
	}
	if s.geo != nil {
		structured.Picture = &Picture{ID: s.geo.id, Width: s.geo.width, Height: s.geo.height, Mime: s.mime, Scale: s.geo.scale()}
	}
	outcome := "ok"
	if r.stopped != nil {
		outcome = "stopped: " + string(r.stopped.Reason)
	}
	return makeAnswer(r.text(s), s, &structured, r.stopped != nil, outcome)
}

func shape(s shot) DisplayShape {
	d := s.display
	return DisplayShape{Index: d.Index, Points: d.Points, Pixels: d.Pixels, Origin: d.Origin, Scale: d.Scale}
}

// text is the result for models that read no structured content.
func (r *run) text(s shot) string {
	var b strings.Builder
	if r.tool.desk.Backend == simulatedBackend {
		b.WriteString(banner + "\n")
	}
	if s.geo != nil {
		fmt.Fprintf(&b, "%s\npicture %s\n", s.geo.line(s.frame), s.geo.id)
	} else {
		fmt.Fprintf(&b, "no screenshot: %s\n", oneLine(s.err))
	}
	done := 0
	for _, e := range r.entries {
		if e.Status == Executed {
			done++
		}
	}
	fmt.Fprintf(&b, "executed %d of %s\n", done, plural(len(r.entries), "action"))
	for _, e := range r.entries {
		fmt.Fprintf(&b, "%d %s: %s", e.Index, e.Status, e.Summary)
		if e.Pointer != nil {
			fmt.Fprintf(&b, " · pointer at %s,%s pt", number(e.Pointer[0]), number(e.Pointer[1]))
		}
		switch {
		case e.Target != nil:
			fmt.Fprintf(&b, " · on %s", quote(e.Target.App))
		case e.Focus != nil && e.Focus.Before != nil:
			fmt.Fprintf(&b, " · into %s", quote(e.Focus.Before.App))
		}
		if e.Effect != nil && *e.Effect == SuspectedNoop {
			b.WriteString(" · nothing on the screen changed there: perhaps it did nothing")
		}
		b.WriteString("\n")
	}
	if r.stopped != nil {
		fmt.Fprintf(&b, "stopped at action %d (%s): %s\n", r.stopped.Index, r.stopped.Reason, r.stopped.Message)
		if done > 0 {
			b.WriteString("what was executed is still in effect\n")
		}
	}
	for _, n := range r.notes {
		b.WriteString(n + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// refusal is a result of text alone: nothing ran and there is nothing to see.
func refusal(message string) *bridge.Answer {
	a := makeAnswer(message, shot{}, nil, true, "error")
	return &a
}

// makeAnswer writes a CallToolResult. The picture goes into it in base64 in
// place: it is by far the largest part.
func makeAnswer(text string, s shot, structured *Structured, isError bool, outcome string) bridge.Answer {
	textJSON, err := json.Marshal(text)
	if err != nil {
		return fault(err)
	}
	structuredJSON := []byte(nil)
	if structured != nil {
		if structuredJSON, err = json.Marshal(structured); err != nil {
			return fault(err)
		}
	}
	out := make([]byte, 0, len(textJSON)+len(structuredJSON)+base64.StdEncoding.EncodedLen(len(s.data))+256)
	out = append(out, `{"content":[{"type":"text","text":`...)
	out = append(out, textJSON...)
	out = append(out, '}')
	if s.geo != nil {
		out = append(out, `,{"type":"image","mimeType":"`+s.mime+`","data":"`...)
		out = base64.StdEncoding.AppendEncode(out, s.data)
		out = append(out, `"}`...)
	}
	out = append(out, ']')
	if structured != nil {
		out = append(out, `,"structuredContent":`...)
		out = append(out, structuredJSON...)
	}
	out = fmt.Appendf(out, `,"isError":%t}`, isError)
	return bridge.Answer{Result: out, Outcome: outcome}
}

// fault answers for a value that JSON cannot hold, such as a display of NaN
// points.
func fault(err error) bridge.Answer {
	message, _ := json.Marshal("the result cannot be written: " + err.Error()) // a string always can
	return bridge.Answer{
		Result:  fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"isError":true}`, message),
		Outcome: "error",
	}
}
