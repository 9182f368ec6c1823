package wire

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of everything else
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/mcp-pif/mcp-pif/core/value"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// A Request is an InvokeRequest whose arguments are a value. Between a value and
// gRPC's buffers there is no copy of the bytes that way: they are written where
// they are sent from, and read where they arrived.
type Request struct {
	// Head is the message without its arguments.
	Head *pluginv1.InvokeRequest
	// Arguments is what is sent, of [EncodeValue].
	Arguments []byte
	// Value is what arrived, and Err why it is none.
	Value value.Value
	Err   error
}

// A Response is an InvokeResponse whose outcome is a value or a failure.
type Response struct {
	// Failure is set where the outcome is none.
	Failure *pluginv1.Failure
	// Outcome is what is sent where there is no failure.
	Outcome []byte
	// Value is what arrived, Size its bytes, or of a failure at least those, and Err why it is none.
	Value value.Value
	Size  int
	Err   error
	// Limit is what Size may be, unless it is 0: more isn't read.
	Limit int
}

// An Event is an InvokeStreamResponse whose outcome is a [Response].
type Event struct {
	// Outcome is nil where the event is another.
	Outcome *Response
	Other   *pluginv1.InvokeStreamResponse
	// Limit is what an outcome's is.
	Limit int
}

// Size is the header in which an answer to Invoke says how many bytes a large outcome has.
const Size = "pif-size"

const (
	requestArguments = 3
	responseValue    = 1
	responseFailure  = 2
	eventOutcome     = 2
)

// Codec is gRPC's codec for protobuf, with [Request], [Response] and [Event] written and
// read by hand. The bytes are those of the contract.
var Codec encoding.CodecV2 = codec{encoding.GetCodecV2("proto")}

type codec struct{ other encoding.CodecV2 }

// Name is that of the codec for protobuf, since it is one.
func (c codec) Name() string { return c.other.Name() }

// Marshal writes a message.
func (c codec) Marshal(m any) (mem.BufferSlice, error) {
	switch m := m.(type) {
	case *Request:
		head, err := proto.Marshal(m.Head)
		if err != nil {
			return nil, err
		}
		return joined(head, requestArguments, m.Arguments), nil
	case *Response:
		if m.Failure != nil {
			return c.other.Marshal(m.failed())
		}
		return joined(nil, responseValue, m.Outcome), nil
	case *Event:
		switch {
		case m.Outcome == nil:
			return c.other.Marshal(m.Other)
		case m.Outcome.Failure != nil:
			outcome := &pluginv1.InvokeStreamResponse_Outcome{Outcome: m.Outcome.failed()}
			return c.other.Marshal(&pluginv1.InvokeStreamResponse{Event: outcome})
		}
		size := len(m.Outcome.Outcome)
		head := protowire.AppendTag(nil, eventOutcome, protowire.BytesType)
		head = protowire.AppendVarint(head, uint64(protowire.SizeTag(responseValue)+protowire.SizeBytes(size)))
		return joined(head, responseValue, m.Outcome.Outcome), nil
	}
	return c.other.Marshal(m)
}

func (m *Response) failed() *pluginv1.InvokeResponse {
	return &pluginv1.InvokeResponse{Outcome: &pluginv1.InvokeResponse_Failure{Failure: m.Failure}}
}

// joined is a message's first bytes and a value in a field.
func joined(head []byte, number protowire.Number, v []byte) mem.BufferSlice {
	head = protowire.AppendTag(head, number, protowire.BytesType)
	return mem.BufferSlice{mem.SliceBuffer(protowire.AppendVarint(head, uint64(len(v)))), mem.SliceBuffer(v)}
}

// Unmarshal reads a message. That a value is none is told in the message: it is
// the plugin's or the program's mistake, not the connection's.
func (c codec) Unmarshal(data mem.BufferSlice, m any) error {
	switch m := m.(type) {
	case *Request:
		return m.read(textOf(data))
	case *Response:
		return m.read(textOf(data))
	case *Event:
		return m.read(textOf(data))
	}
	return c.other.Unmarshal(data, m)
}

// textOf is all of a message. What is most of it is never copied again.
func textOf(data mem.BufferSlice) string {
	var s strings.Builder
	s.Grow(data.Len())
	for _, b := range data {
		s.Write(b.ReadOnlyData())
	}
	return s.String()
}

func (m *Request) read(s string) error {
	var head []byte
	var arguments string
	if err := eachField(s, func(number protowire.Number, whole, contents string) {
		if number == requestArguments {
			arguments = contents
		} else {
			head = append(head, whole...)
		}
	}); err != nil {
		return err
	}
	m.Head = &pluginv1.InvokeRequest{}
	if err := proto.Unmarshal(head, m.Head); err != nil {
		return err
	}
	m.Value, m.Err = decodeValue(arguments, len(s))
	return nil
}

func (m *Response) read(s string) error { return m.readPart(s, len(s)) }

// readPart reads one that is part of a message of so many bytes.
func (m *Response) readPart(s string, message int) error {
	var outcome, failure string
	valued, failed := false, false
	if err := eachField(s, func(number protowire.Number, _, contents string) {
		switch number {
		case responseValue:
			outcome, valued = contents, true
		case responseFailure:
			failure, failed = contents, true
		}
	}); err != nil {
		return err
	}
	switch {
	case valued == failed:
		m.Err = ErrAnswer
	case failed:
		if m.Size = max(m.Size, len(failure)); m.Limit > 0 && len(failure) > m.Limit {
			m.Err = ErrLarger
			return nil
		}
		m.Failure = &pluginv1.Failure{}
		return proto.Unmarshal([]byte(failure), m.Failure)
	default:
		if m.Size = len(outcome); m.Limit > 0 && m.Size > m.Limit {
			m.Err = ErrLarger
			return nil
		}
		m.Value, m.Err = decodeValue(outcome, message)
	}
	return nil
}

func (m *Event) read(s string) error {
	outcomes, outcome := 0, ""
	if err := eachField(s, func(number protowire.Number, _, contents string) {
		if number == eventOutcome {
			outcomes, outcome = outcomes+1, contents
		}
	}); err != nil {
		return err
	}
	switch {
	case outcomes == 0 && len(s) <= MaxEvent:
		m.Other = &pluginv1.InvokeStreamResponse{}
		return proto.Unmarshal([]byte(s), m.Other)
	case outcomes == 1:
		m.Outcome = &Response{Limit: m.Limit}
		return m.Outcome.readPart(outcome, len(s))
	}
	m.Outcome = &Response{Err: ErrAnswer}
	return nil
}

// eachField calls visit with each field of a message: all of its bytes, and the
// contents where they are length-delimited.
func eachField(s string, visit func(number protowire.Number, whole, contents string)) error {
	for s != "" {
		f, n, err := consumeField(s)
		if err != nil {
			return fmt.Errorf("a message can't be read: %w", err)
		}
		visit(f.number, s[:n], f.contents)
		s = s[n:]
	}
	return nil
}
