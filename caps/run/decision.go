package run

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A decision is a recorded request, allowed or denied, with what became of it.
type decision struct {
	n          int
	seq        uint64
	op, of     string
	in, at     string
	branch     string
	args       recordedText // as they were performed, or asked for where it was denied
	asked      recordedText // where it isn't nothing: as the program gave them
	measured   int64        // bytes of arguments of which only that is on record; 0: there are none
	callee     string       // of a denied call
	denied     *fault.Fault
	done       bool // there is an outcome
	outcome    recordedText
	outcomeErr *fault.Fault
}

// recordedText is JSON as it was recorded, or only its digest. The zero value is
// nothing.
type recordedText struct {
	text   json.RawMessage
	digest *Digest
}

func (t recordedText) none() bool { return t.text == nil && t.digest == nil }

// is reports whether a text is the one that was recorded.
func (t recordedText) is(text []byte) bool {
	if t.digest != nil {
		return *t.digest == digestOf(text)
	}
	return t.text != nil && bytes.Equal(t.text, text)
}

// answerOf is what became of a request; the fault is the second where the outcome
// can't be read.
func (r *Record) answerOf(d *decision) (core.Answer, error) {
	switch {
	case d.denied != nil:
		return core.Answer{Fault: d.denied}, nil
	case d.outcomeErr != nil:
		return core.Answer{Fault: d.outcomeErr}, nil
	}
	text := []byte(d.outcome.text)
	if d.outcome.digest != nil {
		var err error
		if text, err = r.blob(*d.outcome.digest); err != nil {
			return core.Answer{}, err
		}
	}
	v, err := journal.ReadValue(text)
	return core.Answer{Value: v}, err
}

// differs gives a request's argument as JSON, and in what it differs from the recorded one,
// its place included if places are compared; "": in nothing.
func (d *decision) differs(q *core.Request, places bool) (args []byte, what string) {
	args, same := d.sameArgument(q)
	switch {
	case d.callee != "" || d.op != q.Op:
		what = "operation"
	case d.of != q.In:
		what = `"in"`
	case !same:
		what = "arguments"
	case places && (d.at != string(q.At) || d.in != q.Where || d.branch != q.Branch):
		what = "place"
	}
	return args, what
}

// sameArgument reports whether an argument is the one that was asked with. One
// that stands alone is the same as a record with only the main one.
func (d *decision) sameArgument(q *core.Request) (text []byte, same bool) {
	if q.TooLarge() || d.measured > 0 {
		return unwritten, d.measured == q.Size
	}
	text, err := journal.AppendValue(nil, q.Arg, mostRecorded(q))
	if err != nil {
		// It was denied for that, with nothing to compare.
		return unwritten, d.args.none() && d.asked.none() && d.denied != nil
	}
	if !d.asked.none() {
		return text, d.asked.is(text)
	}
	if d.args.is(text) {
		return text, true
	}
	if _, isRecord := value.Force(q.Arg).(*value.Record); isRecord || d.args.digest != nil {
		return text, false
	}
	var args map[string]json.RawMessage
	if d.denied != nil || json.Unmarshal(d.args.text, &args) != nil || len(args) != 1 {
		return text, false
	}
	for _, only := range args {
		return text, bytes.Equal(only, text)
	}
	return text, false
}

// unwritten stands for an argument that can't be recorded.
var unwritten = []byte(`"(a value that can't be recorded)"`)

// shown is a recorded request as a difference shows it.
func (d *decision) shown() *Asked {
	a := &Asked{Op: d.op, Of: d.of, In: d.in, At: d.at, Branch: d.branch}
	if d.callee != "" {
		a.Op += " " + d.callee
	}
	shown := d.args
	if !d.asked.none() {
		shown = d.asked
	}
	a.Args, a.Digest = shown.text, shown.digest
	if d.measured > 0 {
		a.Args = unwritten
	}
	return a
}
