package wire

import (
	"fmt"

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
	// Value is what arrived, Size its bytes, and Err why it is none.
	Value value.Value
	Size  int
	Err   error
}

// ResponseOf reads the message as it comes in a stream.
func ResponseOf(m *pluginv1.InvokeResponse) *Response {
	r := &Response{}
	switch outcome := m.GetOutcome().(type) {
	case *pluginv1.InvokeResponse_Value:
		r.Size = len(outcome.Value)
		r.Value, r.Err = DecodeValue(outcome.Value)
	case *pluginv1.InvokeResponse_Failure:
		r.Failure = outcome.Failure
	default:
		r.Err = ErrAnswer
	}
	return r
}

// Size is the header in which an answer to Invoke says how many bytes a large outcome has.
const Size = "pif-size"

const (
	requestArguments = 3
	responseValue    = 1
	responseFailure  = 2
)

// Codec is gRPC's codec for protobuf, with [Request] and [Response] written and
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
			return c.other.Marshal(&pluginv1.InvokeResponse{Outcome: &pluginv1.InvokeResponse_Failure{Failure: m.Failure}})
		}
		return joined(nil, responseValue, m.Outcome), nil
	}
	return c.other.Marshal(m)
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
		buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer buffer.Free()
		return m.read(buffer.ReadOnlyData())
	case *Response:
		buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer buffer.Free()
		return m.read(buffer.ReadOnlyData())
	}
	return c.other.Unmarshal(data, m)
}

func (m *Request) read(b []byte) error {
	var head, arguments []byte
	if err := eachField(b, func(number protowire.Number, whole, contents []byte) {
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
	m.Value, m.Err = DecodeValue(arguments)
	return nil
}

func (m *Response) read(b []byte) error {
	var outcome, failure []byte
	valued, failed := false, false
	if err := eachField(b, func(number protowire.Number, _, contents []byte) {
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
		m.Failure = &pluginv1.Failure{}
		return proto.Unmarshal(failure, m.Failure)
	default:
		m.Size = len(outcome)
		m.Value, m.Err = DecodeValue(outcome)
	}
	return nil
}

// eachField calls visit with each field of a message: all of its bytes, and the
// contents where they are length-delimited.
func eachField(b []byte, visit func(number protowire.Number, whole, contents []byte)) error {
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("a message can't be read: %w", protowire.ParseError(n))
		}
		m := protowire.ConsumeFieldValue(number, wire, b[n:])
		if m < 0 {
			return fmt.Errorf("a message can't be read: %w", protowire.ParseError(m))
		}
		var contents []byte
		if wire == protowire.BytesType {
			contents, _ = protowire.ConsumeBytes(b[n:])
		}
		visit(number, b[:n+m], contents)
		b = b[n+m:]
	}
	return nil
}
