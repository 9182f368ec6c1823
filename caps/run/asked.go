package run

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// appendAsked writes the argument as the program gave it, where it can't be told
// from the arguments of the act, which are in their one spelling and relative to
// what the tool holds. A main argument that stood alone can.
func (a *act) appendAsked(data []byte) ([]byte, error) {
	args := a.permit.Args.Fields
	asked := value.Force(a.request.Arg)
	given := []value.Field{{Value: asked}}
	r, isRecord := asked.(*value.Record)
	if isRecord {
		given = r.Fields
	}
	same := len(given) == len(args) && (!isRecord || len(args) != 1 || a.main(args[0].Key))
	for i := 0; same && i < len(args); i++ {
		same = (!isRecord || given[i].Key == args[i].Key) && sameValue(given[i].Value, args[i].Value)
	}
	// Of a large one there is only the digest, which doesn't tell what stood alone.
	if same && (isRecord || !bytes.HasSuffix(data, []byte(`"}`)) || !bytes.Contains(data, []byte(`,"args_blob":`)) && !bytes.Contains(data, []byte(`,"args_hash":`))) {
		return data, nil
	}
	return a.run.b.appendValue(data, "asked", asked, mostRecorded(a.request))
}

// mostRecorded is how many bytes of JSON a value of a request may have on record:
// no more than the run has memory. A host that doesn't say how much that is gets
// what a blob can have.
func mostRecorded(q *core.Request) int64 {
	if q.Most > 0 {
		return min(q.Most, journal.MaxBlob)
	}
	return journal.MaxBlob
}

// tooLarge is the fault of a request that is permitted and isn't performed, since
// its argument would be larger than the run's memory once it was written. Like any
// other use of more memory than there is it ends the run.
func tooLarge(q *core.Request) *fault.Fault {
	return &fault.Fault{
		Kind:    fault.OutOfMemory,
		Message: fmt.Sprintf("%s was not done: its argument has more than %d bytes written out, the budget of memory", q.Op, q.Most),
		Hint:    "Give it less: parts that are shared count each time they are written.",
	}
}

// excerpt is how many bytes of a denied request's arguments are recorded.
const excerpt = 1000

// appendDenied writes what was asked for, as the program gave it, into the record
// of a denial. Nothing was done, so of what is long there is only the hash, to
// compare it with; and of what is larger than the run's memory only that, with what
// it was about.
func (a *act) appendDenied(data []byte) []byte {
	q := a.request
	if q.TooLarge() {
		kind, _, _ := strings.Cut(q.Op, ".")
		data = journal.AppendString(append(data, `,"args_measured":{"kind":`...), kind)
		if scope, ok := a.scope(); ok {
			data = journal.AppendString(append(data, `,"scope":`...), scope)
		}
		return append(strconv.AppendInt(append(data, `,"bytes":`...), q.Size, 10), '}')
	}
	before := len(data)
	data, err := journal.AppendValue(append(data, `,"args":`...), q.Arg, excerpt)
	if err == nil {
		return data
	}
	data = data[:before]
	if !errors.Is(err, journal.ErrSize) {
		return data
	}
	h := sha256.New()
	n, err := journal.HashValue(h, q.Arg, mostRecorded(q))
	if err != nil {
		return data
	}
	return appendHashed(append(data, `,"args_hash":`...), n, journal.Hash(h.Sum(nil)))
}

// scope is what a request's main argument names, where that is a short string.
func (a *act) scope() (string, bool) {
	arg := value.Force(a.request.Arg)
	if r, ok := arg.(*value.Record); ok {
		arg = nil
		_, o, known := a.run.b.policy.Kinds().Operation(a.request.Op)
		for i := range r.Fields {
			if known && slices.ContainsFunc(o.Params, func(p caps.Param) bool {
				return p.Name == r.Fields[i].Key && (p.Main || p.Designates)
			}) {
				arg = value.Force(r.Fields[i].Value)
				break
			}
		}
	}
	s, ok := arg.(value.Str)
	return string(s), ok && len(s) <= excerpt
}

// main reports whether a parameter is the operation's main one.
func (a *act) main(name string) bool {
	for i := range a.permit.Operation.Params {
		if p := &a.permit.Operation.Params[i]; p.Main {
			return p.Name == name
		}
	}
	return false
}

// sameValue reports whether two values are the same as far as that is seen at
// once: strings by their bytes, lists and records by being the very same.
func sameValue(a, b value.Value) bool {
	b = value.Force(b)
	switch a := value.Force(a).(type) {
	case value.Str:
		b, ok := b.(value.Str)
		return ok && a == b
	case value.Bool:
		return value.Value(a) == b
	case *value.Cons:
		return value.Value(a) == b
	case *value.Record:
		return value.Value(a) == b
	case value.Int:
		b, ok := b.(value.Int)
		return ok && a.Words() == 1 && b.Words() == 1 && a.String() == b.String()
	}
	return false
}
