package wire

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// right is a manifest that uses everything.
func right() *caps.Manifest {
	return &caps.Manifest{
		Kind: "kv-store", Version: "1.0.0-rc.1+x", Doc: "Keeps things.", Algebra: caps.Segments,
		Options: map[string][]string{"ro": nil, "links": {"ok", "no"}},
		Verbs: []caps.Verb{
			{Name: "get", Flags: caps.Flags{ReadOnly: true, Idempotent: true}},
			{Name: "put", Flags: caps.Flags{Destructive: true, OpenWorld: true}},
		},
		Operations: []caps.Operation{
			{Name: "kv-store.get", Doc: "Gets one.", Verb: "get", Result: "string", Params: []caps.Param{
				{Name: "key", Doc: "which", Type: "string", Main: true, Designates: true},
				{Name: "as", Type: "string", Optional: true, Enum: []string{"utf8", "base64"}},
			}},
			{Name: "kv-store.do", Doc: "Does it.", Verb: "put", VerbParam: "method", Result: "any", Params: []caps.Param{
				{Name: "method", Type: "string", Optional: true},
			}},
		},
	}
}

func TestManifestComesBack(t *testing.T) {
	m := right()
	b, err := proto.Marshal(ToManifest(m))
	must.NoError(t, err)
	sent := ToManifest(&caps.Manifest{})
	must.NoError(t, proto.Unmarshal(b, sent))
	back, err := FromManifest(sent)
	must.NoError(t, err)
	if d := cmp.Diff(m, back); d != "" {
		t.Fatal(d)
	}
	if !SameManifest(m, back) {
		t.Fatal("they aren't the same")
	}
	back.Operations[1].Params[0].Doc = "another"
	if SameManifest(m, back) {
		t.Fatal("a difference wasn't seen")
	}
}

func TestManifestMistakesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(m *caps.Manifest)
	}{
		{"a kind in capitals", "kind", func(m *caps.Manifest) { m.Kind = "KV" }},
		{"a kind with a dot", "kind", func(m *caps.Manifest) { m.Kind = "a.b" }},
		{"the kind of calls", "kind", func(m *caps.Manifest) { m.Kind = "call" }},
		{"a version with a line's end", "version", func(m *caps.Manifest) { m.Version = "1\n" }},
		{"no doc", "doc is missing", func(m *caps.Manifest) { m.Doc = " " }},
		{"a doc that turns the order of reading", "control", func(m *caps.Manifest) { m.Doc = "a\u202eb" }},
		{"a doc with an escape", "control", func(m *caps.Manifest) { m.Operations[0].Doc = "a\x1b[31mb" }},
		{"a doc that isn't UTF-8", "UTF-8", func(m *caps.Manifest) { m.Operations[0].Params[0].Doc = "\xff" }},
		{"a long doc", "bytes", func(m *caps.Manifest) { m.Doc = strings.Repeat("x", maxDoc+1) }},
		{"an unknown algebra", "algebra", func(m *caps.Manifest) { m.Algebra = "regexp" }},
		{"an option of the host", "host's", func(m *caps.Manifest) { m.Options["max"] = nil }},
		{"an option's value with a comma", "value", func(m *caps.Manifest) { m.Options["links"] = []string{"a,b"} }},
		{"no verbs", "0 verbs", func(m *caps.Manifest) { m.Verbs = nil }},
		{"a verb twice", "twice", func(m *caps.Manifest) { m.Verbs = append(m.Verbs, m.Verbs[0]) }},
		{"a verb that reads and destroys", "both", func(m *caps.Manifest) { m.Verbs[0].Destructive = true }},
		{"no operations", "0 operations", func(m *caps.Manifest) { m.Operations = nil }},
		{"an operation of another kind", "its name", func(m *caps.Manifest) { m.Operations[0].Name = "fs.read" }},
		{"an operation twice", "twice", func(m *caps.Manifest) { m.Operations[1].Name = m.Operations[0].Name }},
		{"an operation without a result", "result", func(m *caps.Manifest) { m.Operations[0].Result = "" }},
		{"an unknown verb", "there is no verb", func(m *caps.Manifest) { m.Operations[0].Verb = "fly" }},
		{"a verb from no argument", "gives its verb", func(m *caps.Manifest) { m.Operations[1].VerbParam = "verb" }},
		{"an argument called in", "host's", func(m *caps.Manifest) { m.Operations[0].Params[0].Name = "in" }},
		{"an argument twice", "twice", func(m *caps.Manifest) { m.Operations[0].Params[1].Name = "key" }},
		{"an unknown type", "type", func(m *caps.Manifest) { m.Operations[0].Params[0].Type = "float" }},
		{"two main arguments", "main", func(m *caps.Manifest) { m.Operations[0].Params[1].Main = true }},
		{"a designating number", "designates", func(m *caps.Manifest) { m.Operations[0].Params[0].Type = "int" }},
		{"values of a list", "only a string", func(m *caps.Manifest) { m.Operations[0].Params[1].Type = "list" }},
		{"too many operations", "operations", func(m *caps.Manifest) { m.Operations = make([]caps.Operation, maxOperations+1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := right()
			c.change(m)
			if _, err := FromManifest(ToManifest(m)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
	if err := CheckManifest(right()); err != nil {
		t.Fatalf("the right one: %v", err)
	}
	if _, err := FromManifest(nil); err == nil {
		t.Fatal("no manifest is one")
	}
}

// TestTypeOfAnswers: the type of an operation's answers goes over the wire in its one
// spelling; a manifest without one is as it was, and what is no type is refused.
func TestTypeOfAnswers(t *testing.T) {
	for said, want := range map[string]string{
		"":                        "",
		"string":                  "string",
		" { a : int , b? : dec }": "{a: int, b?: dec}",
		"unit | list[json]":       "unit | list[json]",
	} {
		in := ToManifest(right())
		in.Operations[0].Type = said
		m, err := FromManifest(in)
		if err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		if got := ToManifest(m).Operations[0].Type; got != want {
			t.Errorf("%q is sent on as %q", said, got)
		}
		other := ToManifest(m)
		other.Operations[0].Type = "bool"
		b, err := FromManifest(other)
		if err != nil || SameManifest(m, b) || !SameManifest(m, m) {
			t.Errorf("%q: another type makes no other manifest: %v", said, err)
		}
	}
	for _, said := range []string{"any", "(int) -> int", "a", "{b: int, a: int}", "nothing", "string\n", strings.Repeat("list[", 600) + "int" + strings.Repeat("]", 600)} {
		in := ToManifest(right())
		in.Operations[0].Type = said
		if _, err := FromManifest(in); err == nil || !strings.Contains(err.Error(), "type of") {
			t.Errorf("%.40q: %v", said, err)
		}
	}
}

// inParts is bytes as gRPC gives them: in several buffers.
func inParts(t *rapid.T, b []byte) mem.BufferSlice {
	var s mem.BufferSlice
	for len(b) > 0 {
		n := rapid.IntRange(1, len(b)).Draw(t, "part")
		s = append(s, mem.SliceBuffer(slices.Clone(b[:n])))
		b = b[n:]
	}
	return s
}

// The messages that are written and read by hand are those of the contract.
func TestMessagesAreThoseOfTheContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values().Draw(t, "value")
		e, err := EncodeValue(v, plenty)
		must.NoError(t, err)
		head := &pluginv1.InvokeRequest{
			Handle: rapid.Uint64().Draw(t, "handle"), Operation: rapid.String().Draw(t, "operation"), IdempotencyKey: "k",
			TimeoutNs: rapid.Int64().Draw(t, "timeout"), MaxOutcomeBytes: 5, Call: 6,
		}
		sent, err := Codec.Marshal(&Request{Head: head, Arguments: e})
		must.NoError(t, err)
		request := &pluginv1.InvokeRequest{}
		must.NoError(t, proto.Unmarshal(sent.Materialize(), request))
		want := proto.Clone(head).(*pluginv1.InvokeRequest)
		want.Arguments = e
		if !proto.Equal(request, want) {
			t.Fatalf("%v, want %v", request, want)
		}
		b, err := proto.Marshal(want)
		must.NoError(t, err)
		read := &Request{}
		if err := Codec.Unmarshal(inParts(t, b), read); err != nil || read.Err != nil {
			t.Fatal(err, read.Err)
		}
		if !proto.Equal(read.Head, head) || show(read.Value) != show(v) {
			t.Fatalf("%v %s", read.Head, show(read.Value))
		}

		sent, err = Codec.Marshal(&Response{Outcome: e})
		must.NoError(t, err)
		response := &pluginv1.InvokeResponse{}
		must.NoError(t, proto.Unmarshal(sent.Materialize(), response))
		event, err := Codec.Marshal(&Event{Outcome: &Response{Outcome: e}})
		must.NoError(t, err)
		streamed := &pluginv1.InvokeStreamResponse{}
		must.NoError(t, proto.Unmarshal(event.Materialize(), streamed))
		if !proto.Equal(streamed.GetOutcome(), response) {
			t.Fatalf("%v, in a stream %v", response, streamed)
		}
		one, of := &Response{}, &Event{}
		must.NoError(t, Codec.Unmarshal(inParts(t, sent.Materialize()), one))
		must.NoError(t, Codec.Unmarshal(inParts(t, event.Materialize()), of))
		for _, r := range []*Response{one, of.Outcome} {
			if r.Err != nil || r.Failure != nil || r.Size != len(e) || show(r.Value) != show(v) {
				t.Fatalf("%+v", r)
			}
		}
	})
}

func TestMessagesOfFailures(t *testing.T) {
	failure := &pluginv1.Failure{Code: "denied", Message: "m", Hint: "h", Retryable: true}
	sent, err := Codec.Marshal(&Response{Failure: failure})
	must.NoError(t, err)
	r := &Response{}
	if err := Codec.Unmarshal(sent, r); err != nil || r.Err != nil || !proto.Equal(r.Failure, failure) {
		t.Fatalf("%v, %+v", err, r)
	}
	field := func(number protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
	}
	unit, err := EncodeValue(value.Unit{}, plenty)
	must.NoError(t, err)
	for name, b := range map[string][]byte{
		"nothing": nil, "both": slices.Concat(field(responseValue, unit), field(responseFailure, nil)), "something else": field(9, nil),
	} {
		r := &Response{}
		if err := Codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, r); err != nil || !errors.Is(r.Err, ErrAnswer) {
			t.Errorf("%s: %v, %v", name, err, r.Err)
		}
	}
	large, err := EncodeValue(value.Str("more than 8"), plenty)
	must.NoError(t, err)
	for limit, want := range map[int]error{8: ErrAnswer, len(large): nil, 0: nil} {
		r := &Response{Limit: limit}
		if err := Codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(field(responseValue, large))}, r); err != nil || !errors.Is(r.Err, want) || r.Size != len(large) {
			t.Errorf("at most %d: %v, %+v", limit, err, r)
		}
		e := &Event{Limit: limit}
		if err := Codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(field(eventOutcome, field(responseValue, large)))}, e); err != nil || !errors.Is(e.Outcome.Err, want) {
			t.Errorf("at most %d in a stream: %v, %+v", limit, err, e.Outcome)
		}
		r = &Response{Limit: limit}
		if err := Codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(field(responseFailure, field(5, large[:len(large)-2])))}, r); err != nil || !errors.Is(r.Err, want) || r.Size != len(large) {
			t.Errorf("a failure of at most %d: %v, %+v", limit, err, r)
		}
	}
	if err := Codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer([]byte{0xff})}, &Response{}); err == nil {
		t.Error("half a tag is a message")
	}

	sent, err = Codec.Marshal(&Event{Outcome: &Response{Failure: failure}})
	must.NoError(t, err)
	e := &Event{}
	if err := Codec.Unmarshal(sent, e); err != nil || e.Outcome == nil || !proto.Equal(e.Outcome.Failure, failure) {
		t.Fatalf("%v, %+v", err, e)
	}
	outcome := field(eventOutcome, field(responseValue, unit))
	for name, b := range map[string][]byte{
		"two outcomes": slices.Concat(outcome, outcome), "one that is nothing": field(eventOutcome, nil), "large progress": field(1, make([]byte, MaxEvent)),
	} {
		e := &Event{}
		if err := Codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, e); err != nil || e.Outcome == nil || !errors.Is(e.Outcome.Err, ErrAnswer) {
			t.Errorf("%s: %v, %v", name, err, e.Outcome)
		}
	}
	sent, err = Codec.Marshal(&Event{Other: &pluginv1.InvokeStreamResponse{Event: &pluginv1.InvokeStreamResponse_Room{Room: 7}}})
	must.NoError(t, err)
	e = &Event{}
	if err := Codec.Unmarshal(sent, e); err != nil || e.Outcome != nil || e.Other.GetRoom() != 7 {
		t.Errorf("a request for room: %v, %+v", err, e)
	}
}

// A text that is most of an outcome is copied once when it comes, and not at all when it goes; a small one keeps nothing of what
// it came in.
func TestLargeTextsAreCopiedOnce(t *testing.T) {
	const size = 4 << 20
	large, small := value.Str(strings.Repeat("x", size)), value.Str("small")
	encoded, err := EncodeValue(&value.Record{Fields: []value.Field{{Key: "body", Value: large}, {Key: "status", Value: small}}}, 2*size)
	must.NoError(t, err)
	allocated := func(do func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	var sent mem.BufferSlice
	if n := allocated(func() { sent, err = Codec.Marshal(&Event{Outcome: &Response{Outcome: encoded}}) }); n > size/4 || err != nil {
		t.Errorf("sending takes %d bytes, %v", n, err)
	}
	var e Event
	if n := allocated(func() { err = Codec.Unmarshal(sent, &e) }); n > size*5/4 || err != nil {
		t.Errorf("reading takes %d bytes, %v", n, err)
	}
	fields := e.Outcome.Value.(*value.Record).Fields
	if fields[0].Value != value.Value(large) || fields[1].Value != value.Value(small) {
		t.Error("it isn't what was sent")
	}
	kept := [...]string{fields[0].Key, fields[1].Key, string(fields[1].Value.(value.Str))}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	e, fields = Event{}, nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	if before.HeapAlloc < after.HeapAlloc+size/2 {
		t.Errorf("%q keep the message: %d bytes before, %d after", kept, before.HeapAlloc, after.HeapAlloc)
	}
	runtime.KeepAlive(sent)
}
