package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	labelled "github.com/mcp-pif/mcp-pif/core/flow"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// What the model is shown is a flow like any other: a rule to "model" seals results that come from certain
// sources, and what is shown in spite of all counts from then on for whatever the model writes.

// noSealed is the refusal of a name that no sealed result has.
func noSealed(id string) *fault.Fault {
	return &fault.Fault{Kind: fault.InvalidRequest, Message: fmt.Sprintf("there is no sealed result %q", wire.Short([]byte(id))), Hint: "Give a name that a call answered as sealed."}
}

// seals reports whether what a run gives may have to be sealed: then nothing else of it is a sign, neither
// its steps nor its progress.
func (s *Engine) seals(t *task) bool {
	return len(s.broker.Flow().Shown()) > 0 && (t.sealed != nil || t.tool != nil && !t.tool.Pure())
}

// mayRead reports whether what a tool does may give what has a label by now: then what operations say of how they get on
// isn't told, since it is of that, and comes before the session has it.
func (s *Engine) mayRead(t *registry.Tool) bool {
	p := s.broker.Flow()
	if p == nil || t == nil {
		return false
	}
	tools, known := t.Runs()
	now, err := s.broker.Session().State()
	return !known || err != nil || len(now.Taints) > 0 || slices.ContainsFunc(tools, func(t *registry.Tool) bool {
		return slices.ContainsFunc(t.Held, func(h *caps.Held) bool { return h.Grant != nil && p.Gives(h) != 0 })
	})
}

// evenBudgets has a run whose result may be sealed have the server's budgets, whatever the call says: that
// they were used up would be a sign.
func (s *Engine) evenBudgets(t *task) {
	if s.record == nil && !s.seals(t) || s.record != nil && !s.record.Even {
		return
	}
	t.even = true
	t.budgets = s.budgets()
	t.rounds = defaultRounds
}

// tellSealed counts what it tells that an answer is sealed, by each rule that might have let another be shown.
func (s *Engine) tellSealed(ctx context.Context, t *task, l flow.Label, ended flow.Label) {
	if scheduled(ctx) {
		return
	}
	p := s.broker.Flow()
	var gives *check.Type
	if t.tool != nil {
		gives = t.tool.Report().Type
	}
	var told []flow.Telling
	for _, rule := range p.Shown() {
		from := rule.Violation(ended, l)
		if t.tool != nil {
			from &^= p.Released(t.tool.Name, t.tool.Whole, rule)
		}
		if from != 0 {
			told = append(told, rule.Sealing(from, gives)...)
		}
	}
	// Where a rule has no bits left it is sealed anyhow, and the others count theirs.
	if ok, _ := s.broker.Session().Spend(told); !ok {
		for i := range told {
			_, _ = s.broker.Session().Spend(told[i : i+1])
		}
	}
}

// show gives an answer to the model, as far as the rules about that let it, and reports whether they do: or seals it. What
// is shown is on record before.
func (s *Engine) show(ctx context.Context, r *run.Run, t *task, a wire.Answer) (_ wire.Answer, lets bool) {
	p := s.broker.Flow()
	if p == nil || r.Replaying() {
		return a, true
	}
	if p.Keeps(r.Entered()) {
		a = a.Uncounted()
	}
	l, ended := r.Shown(ctx)
	if l|ended == 0 {
		return a, true
	}
	shown := l.Any()
	var told []flow.Telling
	seals := false
	for _, rule := range p.Shown() {
		from := rule.Violation(ended, l)
		if t.tool != nil {
			released := p.Released(t.tool.Name, t.tool.Whole, rule)
			from, shown = from&^released, shown&^released
		}
		if from == 0 {
			continue
		}
		if bits, ok := rule.Excepts([]byte(a.Text)); ok && a.Fault == nil && a.Whole && !scheduled(ctx) {
			told = append(told, flow.Telling{Of: from, Bits: bits, Most: rule.Bits})
		} else if !p.Report {
			seals = true
		}
	}
	if seals {
		s.tellSealed(ctx, t, l, ended)
		return s.seal(r, t, a, l|ended), false
	}
	if len(told) > 0 {
		if ok, err := s.broker.Session().Spend(told); ok && err == nil {
			for _, t := range told {
				shown &^= t.Of
			}
		} else if !p.Report {
			return s.seal(r, t, a, l|ended), false
		}
	}
	a.Under = p.Names(shown)
	if scheduled(ctx) { // it counts as shown when it is asked for
		return a, true
	}
	if err := s.broker.Show(shown, r.ID()); err != nil {
		s.log.Error("a result is sealed, since it can't be recorded that it is shown", "run", r.ID(), "error", err)
		return s.seal(r, t, a, l|ended), false
	}
	return a, true
}

// again has an answer that is kept be told once more, maybe in another conversation.
func (s *Engine) again(a *wire.Answer, id string) *wire.Answer {
	err := s.broker.ShowNames(a.Under, "")
	if err == nil {
		return a
	}
	none := wire.Failed(&fault.Fault{Kind: fault.Internal, Message: "it couldn't be recorded that the result of " + id + " is shown to you", Hint: "Tell the user.", Cause: err})
	return &none
}

// failSealed is the answer to a call that wasn't begun for a reason which tells of the sealed results it was given.
func (s *Engine) failSealed(t *task, a wire.Answer) wire.Answer {
	var l flow.Label
	for _, sealed := range t.sealed {
		l |= flow.Both(sealed.Any())
	}
	p := s.broker.Flow()
	seals := func(r *flow.Rule) bool { return r.Violation(l, l) != 0 }
	if !p.Report && slices.ContainsFunc(p.Shown(), seals) || s.broker.Show(l.Any(), "") != nil {
		return s.seal(nil, t, a, l)
	}
	return a
}

// seal keeps an answer and gives its name; r is nil where no run gave it.
func (s *Engine) seal(r *run.Run, t *task, a wire.Answer, l flow.Label) wire.Answer {
	id := ""
	if r != nil {
		id = r.ID()
	}
	one, a := s.keep(id, t, a, l)
	if one != nil && r != nil {
		r.Sealed(one.ID)
	}
	return a
}

// keep is [Engine.seal] of what a run gave, maybe before; nil: it couldn't be kept.
func (s *Engine) keep(id string, t *task, a wire.Answer, l flow.Label) (*run.Sealed, wire.Answer) {
	kept := run.Sealed{Text: a.First(), Failed: a.Fault != nil, Type: typeOf(t.tool), Run: id}
	switch {
	case a.Fault != nil:
		kept.Result = json.RawMessage(wire.Begin().Raw("error", wire.Begin().Text("kind", string(a.Fault.Kind)).Text("message", a.Fault.Message).End()).End())
	case a.Large == nil:
		kept.Result = passed(json.RawMessage(a.Text), 1)
	case int64(len(a.Large.Shown)) == a.Large.Total:
		kept.Result = passed(a.Large.Shown, 1)
	default:
		kept.Result = json.RawMessage(unpassed)
	}
	one, err := s.broker.Seal(kept, l)
	if err != nil {
		s.log.Error("a result that may not be shown couldn't be kept", "run", kept.Run, "error", err)
		return nil, wire.Failed(&fault.Fault{Kind: fault.Internal, Message: "the result may not be shown to you, and couldn't be kept", Hint: "Tell the user."})
	}
	return one, s.sealedAnswer(one)
}

// typeOf is the static type of what a tool gives; nil: inline code.
func typeOf(t *registry.Tool) string {
	if t == nil {
		return "unknown"
	}
	whole := t.Report().Type.String()
	if _, result, ok := strings.Cut(whole, "} "); ok {
		return result
	}
	return whole
}

// sealedAnswer is what the model is told of a sealed result: nothing that depends on it, also not which of the labels
// that it may not see it has.
func (s *Engine) sealedAnswer(one *run.Sealed) wire.Answer {
	var all flow.Atoms
	p := s.broker.Flow()
	for _, rule := range p.Shown() {
		all |= rule.Forbidden()
	}
	labels := slices.Compact(slices.Sorted(slices.Values(slices.Concat(one.Data, one.Control))))
	if p != nil {
		labels = p.Names(all)
	}
	o := wire.Begin().Text("sealed", one.ID).Text("type", one.Type).Raw("labels", wire.Encode(labels))
	sealed := wire.Answer{Structured: json.RawMessage(o.End()), IsSealed: true}
	sealed.Text = fmt.Sprintf("The result, or why there is none, may depend on %s and isn't shown to you: it is sealed as %s. Pass it on with run {\"tool\":…,\"input\":…,\"sealed\":{\"/POINTER\":%q}}; the user sees it with 'mcp-pif flow show %[2]s'.",
		conjoin(labels), one.ID, one.ID)
	if p != nil && slices.ContainsFunc(p.Rules, func(r *flow.Rule) bool { return r.Else == flow.Ask }) { // the same whatever is sealed
		sealed.Text += " If it asked for something that needs the user's yes, 'mcp-pif approve' shows that; make the same call again after a yes."
	}
	return sealed
}

// maxSealedPlaces is how many places of an input may be sealed results, each of which is read from the record, and
// maxSealedBytes how much those have together, as much as an input may have, and maxSealedItems of commas and brackets.
const maxSealedPlaces, maxSealedBytes, maxSealedItems = 100, 16 << 20, 500_000

// unpassed is in the place of a sealed result that can't be passed on: a refusal would tell how large it is.
var unpassed = wire.Begin().Raw("error", wire.Begin().Text("kind", string(fault.ResultTooLarge)).Text("message", "the result is too large to be passed on").End()).End()

// Unpassed reports whether a sealed result is kept as its text alone: it was too large to be passed on, or is a plan.
func Unpassed(one *run.Sealed) bool {
	return slices.Contains([]string{string(unpassed), "null"}, string(one.Result))
}

// passed is a sealed result as it stands in an input, one of so many.
func passed(result json.RawMessage, of int) json.RawMessage {
	items := bytes.Count(result, []byte(",")) + bytes.Count(result, []byte("[")) + bytes.Count(result, []byte("{"))
	if len(result) > 0 && len(result) <= maxSealedBytes/of && items <= maxSealedItems/of && !wire.DeeperThan(result, wire.MaxDepth) {
		if _, err := core.ParseInput(result, core.InputData); err == nil {
			return result
		}
	}
	return json.RawMessage(unpassed)
}

// unseal puts sealed results into the input of a task, at their places. Nothing is read by types then: what doesn't
// fit would be a sign. A failure is given as try gives it.
func (s *Engine) unseal(ctx context.Context, a *wire.Arguments, t *task) *fault.Fault {
	raw, given := a.Raw("sealed")
	if !given || string(raw) == "null" || s.record != nil { // the record has the input
		return nil
	}
	if s.broker.Flow() == nil {
		return wire.Invalid("nothing is sealed here: the operator has no rules about what is shown", "run", runArguments)
	}
	if members, _ := wire.SplitMost(raw, maxSealedPlaces+1); len(members) > maxSealedPlaces {
		return a.Wrong("sealed", fmt.Sprintf("at most %d places", maxSealedPlaces), raw)
	}
	var places map[string]string
	if json.Unmarshal(raw, &places) != nil || len(places) == 0 {
		return a.Wrong("sealed", `an object of places in the input, such as {"/m":"s_…"}`, raw)
	}
	if t.as != core.InputData {
		return wire.Invalid("sealed results are data: leave input_as out", "run", runArguments)
	}
	t.sealed = map[string]flow.Label{}
	results, all := map[string]json.RawMessage{}, flow.Label(0)
	err := run.EachSealed(ctx, s.broker.Journal(), slices.Collect(maps.Values(places)), func(id string, one *run.Sealed) {
		result := passed(one.Result, len(places))
		for at := range places {
			if places[at] == id {
				results[at] = result
				t.sealed[at] = one.Label(s.broker.Flow())
				all |= t.sealed[at]
			}
		}
	})
	if ctx.Err() != nil {
		return queue.Cancelled()
	}
	for _, at := range slices.Sorted(maps.Keys(places)) {
		if results[at] == nil || err != nil {
			return noSealed(places[at])
		}
	}
	if len(places) > 1 { // together they decide whether they can be read
		for at := range t.sealed {
			t.sealed[at] |= flow.Label(all.Any()) << 32
		}
	}
	sent := t.input
	for _, sealed := range []bool{false, true} { // a failure is the caller's own
		t.instead = append([]json.RawMessage{t.input}, t.more...)
		if f := t.fill(a, sent, results, sealed); f != nil {
			return f
		}
	}
	return nil
}

// fill makes the inputs of a task of what was sent, with results at their places, or what stands for them.
func (t *task) fill(a *wire.Arguments, sent json.RawMessage, results map[string]json.RawMessage, sealed bool) *fault.Fault {
	var input any
	if len(sent) > 0 && pifjson.Decode(sent, &input) != nil {
		return a.Wrong("input", "JSON", sent)
	}
	for _, at := range slices.Sorted(maps.Keys(results)) {
		v := results[at]
		if !sealed {
			v = json.RawMessage(unpassed)
		}
		if !place(&input, at, v) {
			raw, _ := a.Raw("sealed")
			return a.Wrong("sealed", fmt.Sprintf("places in the input, and %q is none: name a key of a record in it, or \"\" for all of it", at), raw)
		}
	}
	t.input, t.more, t.names, t.reread = wire.Encode(input), nil, nil, true
	var params []string
	if t.tool != nil && t.tool.Unusable() == nil {
		all, _ := t.tool.Report().Arguments()
		for _, p := range all {
			params = append(params, p.Name)
		}
	}
	if len(params) < 2 {
		return nil
	}
	fields, _ := input.(map[string]any)
	for i, name := range params {
		v, ok := fields[name]
		if !ok {
			return a.Wrong("input", fmt.Sprintf("a record of %s: %s is missing", conjoin(params), name), nil)
		}
		if t.names = append(t.names, name); i == 0 {
			t.input = wire.Encode(v)
		} else {
			t.more = append(t.more, wire.Encode(v))
		}
	}
	return nil
}

// place puts a value at a pointer of records' keys; ok is false where there is no such place.
func place(in *any, at string, v json.RawMessage) (ok bool) {
	if at == "" {
		*in = v
		return true
	}
	if *in == nil {
		*in = map[string]any{}
	}
	keys := strings.Split(at, "/")
	o, ok := (*in).(map[string]any)
	for i, key := range keys[1:] {
		if !ok || keys[0] != "" {
			return false
		}
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		if i == len(keys)-2 {
			o[key] = v
			return true
		}
		o, ok = o[key].(map[string]any)
	}
	return false
}

// shadows is where the inputs of a task come from: nil is that nothing sealed is in them.
func (t *task) shadows() []*labelled.Shadow {
	if t.sealed == nil {
		return nil
	}
	var all flow.Label
	for _, l := range t.sealed {
		all |= l
	}
	list := make([]*labelled.Shadow, 1+len(t.more))
	for i := range list {
		list[i] = labelled.Whole(labelled.Label(all))
		raw := t.input
		if i > 0 {
			raw = t.more[i-1]
		}
		// A place counts only where all of them are in this very shape.
		prefix := ""
		if len(t.more) > 0 {
			if i >= len(t.names) {
				continue
			}
			prefix = "/" + t.names[i]
		}
		v, err := pifjson.Read(string(raw), wire.MaxDepth, nil)
		if err != nil || t.as != core.InputData {
			continue
		}
		tree, labels, ok := t.tree(v, prefix)
		if !ok {
			continue
		}
		if s, ok := labelled.Items(tree, v, func(name string) (labelled.Label, bool) {
			l, ok := labels[name]
			return labelled.Label(l), ok
		}); ok {
			list[i] = s
		}
	}
	return list
}

// tree is the sealed places of an input as [labelled.Items] reads them; ok is false where one of them isn't in the
// value, or may be read as something else than a field of a record.
func (t *task) tree(v value.Value, prefix string) (tree value.Value, labels map[string]flow.Label, ok bool) {
	labels = map[string]flow.Label{}
	var build func(at string, v value.Value) value.Value
	found, other := 0, false
	build = func(at string, v value.Value) value.Value {
		if l, ok := t.sealed[at]; ok {
			labels[at] = l
			found++
			return &value.Record{Fields: []value.Field{{Key: "label", Value: value.FromSlice([]value.Value{value.Str(at)})}}}
		}
		r, ok := v.(*value.Record)
		inside := func(p string) bool { return strings.HasPrefix(p, at+"/") }
		if !ok || !slices.ContainsFunc(slices.Collect(maps.Keys(t.sealed)), inside) {
			return &value.Record{}
		}
		fields := &value.Record{}
		other = other || len(r.Fields) == 1 && slices.Contains([]string{"record", "pair", "dec", "int"}, r.Fields[0].Key)
		for _, f := range r.Fields {
			key := strings.NewReplacer("~", "~0", "/", "~1").Replace(f.Key)
			fields.Fields = append(fields.Fields, value.Field{Key: f.Key, Value: build(at+"/"+key, value.Force(f.Value))})
		}
		return &value.Record{Fields: []value.Field{{Key: "fields", Value: fields}}}
	}
	tree = build(prefix, v)
	want := 0
	for at := range t.sealed {
		if at == prefix || strings.HasPrefix(at, prefix+"/") {
			want++
		}
	}
	return tree, labels, !other && found == want && (prefix != "" || want == len(t.sealed))
}
