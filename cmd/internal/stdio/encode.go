package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxErrorText bounds the message of an error. The SDK quotes params that it
// can't decode whole, which would send a client its 16 MiB back, escaped.
const maxErrorText = 8 << 10

// A line is a message on its way out. All its parts but key are JSON text
// without newlines; appendTo puts them together. The SDK would encode the
// finished result once more, only to copy it.
type line struct {
	key    jsonrpc.ID
	echo   string // instead of key, unless ""
	method string // "" for a response
	body   []byte // params, result or error; may be nil for params
	kind   bodyKind
	whole  []byte // instead of all of these: a line as it is
}

type bodyKind string

const (
	params bodyKind = `,"params":`
	result bodyKind = `,"result":`
	fault  bodyKind = `,"error":`
)

func (l line) appendTo(b []byte) []byte {
	if l.whole != nil {
		return append(append(b, l.whole...), '\n')
	}
	b = append(b, `{"jsonrpc":"2.0"`...)
	if l.kind != params || l.key.IsValid() {
		b = append(b, `,"id":`...)
		if l.echo != "" {
			b = append(b, l.echo...)
		} else {
			b = appendKey(b, l.key)
		}
	}
	if l.kind == params {
		b = append(b, `,"method":`...)
		b = appendString(b, l.method)
	}
	if len(l.body) > 0 {
		b = append(b, l.kind...)
		b = append(b, l.body...)
	}
	return append(b, "}\n"...)
}

// newLine prepares a message of the SDK. echo is the id of a response as the
// client wrote it, if that matters.
func newLine(msg jsonrpc.Message, echo string) (line, error) {
	switch m := msg.(type) {
	case *jsonrpc.Request:
		body, err := oneLine(m.Params)
		return line{key: m.ID, method: m.Method, kind: params, body: body}, err
	case *jsonrpc.Response:
		if m.Error != nil {
			return line{key: m.ID, echo: echo, kind: fault, body: errorBody(m.Error)}, nil
		}
		body, err := oneLine(m.Result)
		switch {
		case err != nil:
			return line{key: m.ID, echo: echo, kind: fault, body: errorBody(err)}, nil
		case len(body) == 0:
			body = []byte("null")
		}
		return line{key: m.ID, echo: echo, kind: result, body: body}, nil
	}
	return line{}, fmt.Errorf("stdio: can't send a %T", msg)
}

// oneLine removes the newlines from JSON text. The SDK's own encoder leaves
// none; a middleware that puts a result together itself might.
func oneLine(body []byte) ([]byte, error) {
	if bytes.IndexByte(body, '\n') < 0 {
		return body, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, body); err != nil {
		return nil, fmt.Errorf("stdio: malformed message: %w", err)
	}
	return b.Bytes(), nil
}

// errorBody encodes the error of a response. An error without a code is one
// that a handler returned as it came, which the SDK would send as code 0.
func errorBody(err error) []byte {
	var wire jsonrpc.Error
	if coded, ok := err.(*jsonrpc.Error); ok {
		wire = *coded
	} else {
		wire.Message = err.Error()
		if errors.As(err, &coded) {
			wire.Code = coded.Code
		}
	}
	if wire.Code == 0 {
		wire.Code = jsonrpc.CodeInternalError
	}
	if all := len(wire.Message); all > maxErrorText {
		cut := maxErrorText
		for cut > 0 && !utf8.RuneStart(wire.Message[cut]) {
			cut--
		}
		wire.Message = fmt.Sprintf("%s… (the first %d of %d bytes)", wire.Message[:cut], cut, all)
	}
	b, err := encode(&wire)
	if err != nil {
		wire.Data = nil // the only part that can fail to encode
		b, _ = encode(&wire)
	}
	return b
}

// encode does what [json.Marshal] does, without escapes for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
