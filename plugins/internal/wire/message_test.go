package wire

import (
	"errors"
	"slices"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

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
		e, err := Measure(v, plenty)
		if err != nil {
			t.Fatal(err)
		}
		head := &pluginv1.InvokeRequest{
			Handle: rapid.Uint64().Draw(t, "handle"), Operation: rapid.String().Draw(t, "operation"), IdempotencyKey: "k",
			TimeoutNs: rapid.Int64().Draw(t, "timeout"), MaxOutcomeBytes: 5, Call: 6,
		}
		sent, err := Codec.Marshal(&Request{Head: head, Arguments: e})
		if err != nil {
			t.Fatal(err)
		}
		request := &pluginv1.InvokeRequest{}
		if err := proto.Unmarshal(sent.Materialize(), request); err != nil {
			t.Fatal(err)
		}
		want := proto.Clone(head).(*pluginv1.InvokeRequest)
		want.Arguments = e.Append(nil)
		if !proto.Equal(request, want) {
			t.Fatalf("%v, want %v", request, want)
		}
		b, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		read := &Request{}
		if err := Codec.Unmarshal(inParts(t, b), read); err != nil || read.Err != nil {
			t.Fatal(err, read.Err)
		}
		if !proto.Equal(read.Head, head) || show(read.Value) != show(v) {
			t.Fatalf("%v %s", read.Head, show(read.Value))
		}

		sent, err = Codec.Marshal(&Response{Outcome: e})
		if err != nil {
			t.Fatal(err)
		}
		response := &pluginv1.InvokeResponse{}
		if err := proto.Unmarshal(sent.Materialize(), response); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Response{ResponseOf(response), {}} {
			if r.Value == nil {
				if err := Codec.Unmarshal(inParts(t, sent.Materialize()), r); err != nil {
					t.Fatal(err)
				}
			}
			if r.Err != nil || r.Failure != nil || r.Size != e.Len() || show(r.Value) != show(v) {
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
	if err := Codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer([]byte{0xff})}, &Response{}); err == nil {
		t.Error("half a tag is a message")
	}
}
