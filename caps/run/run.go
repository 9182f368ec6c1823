package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Start is what a run begins with, for the record.
type Start struct {
	Tool  *registry.Tool // nil: inline code
	Code  []byte         // of inline code, as given
	Input []byte         // as given
	As    string         // how the input is read
	Steps uint64         // the budgets
	Memory,
	Depth int64
}

// A Run is one run's dealings with the world: the rounds of a driven run
// together. Its methods are called by one goroutine at a time, like the
// machine's, which it serves.
type Run struct {
	b      *Broker
	id     string
	tools  *registry.Snapshot
	ledger *caps.Ledger

	mu      sync.Mutex // for what par's effects share
	effects int
	bytes   int64
	unknown []string // effects of which nobody knows whether they were done

	views  map[*registry.Tool]*view
	looked []*registry.Tool
}

// Begin starts a run that sees the tools of a snapshot.
func (b *Broker) Begin(tools *registry.Snapshot, s Start) *Run {
	r := &Run{b: b, id: b.id(), tools: tools, ledger: caps.NewLedger()}
	data := make([]byte, 0, 256)
	data = append(data, '{')
	if s.Tool != nil {
		data = appendTool(data, s.Tool)
	} else {
		data = b.appendText(append(data, `"code":`...), s.Code)
	}
	if s.Input != nil {
		data = b.appendText(append(data, `,"input":`...), s.Input)
	}
	if s.As != "" {
		data = journal.AppendString(append(data, `,"input_as":`...), s.As)
	}
	data = strconv.AppendUint(append(data, `,"steps":`...), s.Steps, 10)
	data = strconv.AppendInt(append(data, `,"memory":`...), s.Memory, 10)
	data = strconv.AppendInt(append(data, `,"depth":`...), s.Depth, 10)
	r.note(journal.RunStarted, "", append(data, '}'))
	return r
}

// ID is the run's name in the journal.
func (r *Run) ID() string { return r.id }

// End records how the run ended. result is its JSON where it has one.
func (r *Run) End(steps uint64, typ string, result []byte, f *fault.Fault) {
	data := strconv.AppendUint([]byte(`{"steps":`), steps, 10)
	if r.effects > 0 {
		data = strconv.AppendInt(append(data, `,"effects":`...), int64(r.effects), 10)
	}
	if f != nil {
		data = appendFault(append(data, `,"error":`...), f)
	} else {
		data = journal.AppendString(append(data, `,"type":`...), typ)
		data = appendDigest(append(data, `,"result":`...), result)
	}
	if len(r.looked) > 0 {
		data = append(data, `,"looked_up":[`...)
		for i, t := range r.looked {
			if i > 0 {
				data = append(data, ',')
			}
			data = append(appendTool(append(data, '{'), t), '}')
		}
		data = append(data, ']')
	}
	r.note(journal.RunEnded, "", append(data, '}'))
}

// note records what nothing depends on.
func (r *Run) note(k journal.Kind, branch string, data []byte) {
	if _, err := r.b.journal.Append(journal.Noted, k, r.id, branch, data); err != nil {
		r.b.log.Error("the journal took no event", "kind", k, "run", r.id, "error", err)
	}
}

// lookedUp remembers a tool that the run found.
func (r *Run) lookedUp(t *registry.Tool) {
	if len(r.looked) < mostLooked && !slices.Contains(r.looked, t) {
		r.looked = append(r.looked, t)
	}
}

// mostLooked bounds how many tools a run's record names.
const mostLooked = 1000

// Tools is what the code of a tool sees (nil: inline code, which has no
// authority).
func (r *Run) Tools(t *registry.Tool) core.Tools { return r.view(t) }

func (r *Run) view(t *registry.Tool) *view {
	v, ok := r.views[t]
	if !ok {
		v = &view{r, t}
		if r.views == nil {
			r.views = make(map[*registry.Tool]*view, 1)
		}
		r.views[t] = v
	}
	return v
}

// A view is the tools as one context sees them, and says which context that is.
type view struct {
	run  *Run
	tool *registry.Tool // nil: inline code
}

var _ core.Tools = (*view)(nil)

// find gives the version that a name is bound to.
func (v *view) find(name string, bound bool) (*registry.Tool, bool) {
	t, ok := (*registry.Tool)(nil), false
	if bound && v.tool != nil {
		t, ok = v.tool.Bound[name]
	}
	if !ok {
		t, ok = v.run.tools.Get(name)
	}
	if ok {
		v.run.lookedUp(t)
	}
	return t, ok
}

// Tool finds what code_of gives: the version that was there when the tool was
// evolved where the name is in its code, else the current one.
func (v *view) Tool(name string, literal bool) (core.Tool, bool) {
	t, ok := v.find(name, literal)
	if !ok {
		return core.Tool{}, false
	}
	return t.Program().Tool(), true
}

// Callee decides whether the tool may be called from here.
func (v *view) Callee(name string, with [][]string, at fault.Pointer) (core.Tool, *fault.Fault) {
	caller := ""
	var held []*caps.Held
	if v.tool != nil {
		caller, held = v.tool.Name, v.tool.Held
	}
	f := v.run.count()
	if f == nil {
		f = v.run.b.policy.PermitCall(held, name, caller, with)
	}
	if f != nil {
		data := journal.AppendString([]byte(`{"op":"call","callee":`), name)
		if v.tool != nil {
			data = appendTool(append(data, ','), v.tool)
		}
		data = journal.AppendString(append(data, `,"at":`...), string(at))
		v.run.note(journal.EffectDenied, "", append(appendFault(append(data, `,"error":`...), f), '}'))
		return core.Tool{}, f
	}
	t, ok := v.find(name, true)
	if !ok {
		return core.Tool{}, &fault.Fault{
			Kind:    fault.NoTool,
			Message: "there is no tool " + strconv.Quote(name) + " to call",
			Hint:    "Evolve it first, then the tool that calls it.",
		}
	}
	tool := t.Program().Tool()
	tool.Name, tool.Tools = t.Name, v.run.view(t)
	return tool, nil
}

// appendTool writes the members that name a tool's version.
func appendTool(b []byte, t *registry.Tool) []byte {
	b = journal.AppendString(append(b, `"tool":`...), t.Name)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(t.Version), 10)
	return journal.AppendString(append(b, `,"hash":`...), t.Hash)
}

// whole is how many bytes of code, input, arguments or outcome are recorded as
// they are; of more there is a digest.
const whole = 256 << 10

// appendText writes what was given as text: as a string, since it may be
// anything, or as its digest.
func (b *Broker) appendText(data, text []byte) []byte {
	if len(text) <= whole {
		return journal.AppendString(data, string(text))
	}
	b.keep(text)
	return appendDigest(data, text)
}

// appendValue writes a value, or its digest where it is large.
func (b *Broker) appendValue(data []byte, v value.Value) ([]byte, error) {
	start := len(data)
	data, err := journal.AppendValue(data, v)
	if err != nil || len(data)-start <= whole {
		return data, err
	}
	text := bytes.Clone(data[start:])
	b.keep(text)
	return appendDigest(data[:start:start], text), nil
}

// keep has a journal that can keep what is too large for an event.
func (b *Broker) keep(text []byte) {
	store, ok := b.journal.(interface {
		PutBlob(context.Context, []byte) (journal.Hash, error)
	})
	if !ok {
		return
	}
	if _, err := store.PutBlob(context.Background(), text); err != nil {
		b.log.Error("the journal took only the hash of a large text", "bytes", len(text), "error", err)
	}
}

// appendDigest writes size and hash.
func appendDigest(b, text []byte) []byte {
	sum := sha256.Sum256(text)
	b = strconv.AppendInt(append(b, `{"bytes":`...), int64(len(text)), 10)
	b = hex.AppendEncode(append(b, `,"sha256":"`...), sum[:])
	return append(b, `"}`...)
}

// appendFault writes what a fault is.
func appendFault(b []byte, f *fault.Fault) []byte {
	b = journal.AppendString(append(b, `{"kind":`...), string(f.Kind))
	message := f.Message
	if len(message) > 1000 {
		message = message[:1000]
	}
	return append(journal.AppendString(append(b, `,"message":`...), message), '}')
}
