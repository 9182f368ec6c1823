package stdio

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// bigPrefix opens the stand-in for an integer id that a float64 can't hold. The
// SDK can make an id only from a float64 or a string, and would answer
// 9007199254740993 as ...992; so it gets a string, and the client gets back the
// text it sent. A client whose own string ids look like this gains at worst a
// refusal, "already in use", of its own request.
const bigPrefix = "\x00integer "

// maxID is the most bytes that the JSON of an id or a method may have. An id is held in
// several copies until its answer is read, which may be never, and what is wrong with a method is said
// with its name. Clients use integers and UUIDs.
const maxID = 1 << 10

// An id is the id of a request: as the SDK knows it, and as the client wrote it.
type id struct {
	key  jsonrpc.ID
	echo string // the client's text, where [appendKey] would write another; else ""
}

// parseID reads the JSON text of an id: a string, or an integer within int64,
// however written, of [maxID] bytes at most. It reports false for anything else, null included: MCP has
// no null ids.
func parseID(raw []byte) (id, bool) {
	if len(raw) == 0 || len(raw) > maxID {
		return id{}, false
	}
	if raw[0] == '"' {
		if bytes.IndexByte(raw, '\\') < 0 {
			return id{key: key(string(raw[1 : len(raw)-1]))}, true
		}
		s, ok := unquote(raw)
		return id{key(s), string(raw)}, ok
	}
	if raw[0] != '-' && (raw[0] < '0' || '9' < raw[0]) {
		return id{}, false
	}
	text := string(raw)
	digits, ok := integer(text)
	if !ok {
		return id{}, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return id{}, false
	}
	var out id
	if n < -1<<53 || 1<<53 < n {
		return id{key(bigPrefix + digits), text}, true
	}
	out.key = key(float64(n))
	if strconv.FormatInt(n, 10) != text {
		out.echo = text
	}
	return out, true
}

// text returns the id as JSON.
func (i id) text() string { return string(appendID(nil, i)) }

// big reports whether the SDK knows the id by a stand-in.
func (i id) big() bool {
	s, ok := i.key.Raw().(string)
	return ok && i.echo != "" && strings.HasPrefix(s, bigPrefix) && i.echo[0] != '"'
}

// integer rewrites a JSON number without point and exponent, and reports false
// if it has a fraction or more digits than an int64. It works on the text: as a
// float64, 1.00000000000000000001 would pass for 1.
func integer(text string) (string, bool) {
	if !strings.ContainsAny(text, ".eE") {
		return text, true
	}
	sign := ""
	if text[0] == '-' {
		sign, text = "-", text[1:]
	}
	exponent := 0
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[e+1:]); err != nil {
			return "", false
		}
		text = text[:e]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0", true
	}
	exponent -= len(fraction)
	short := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(short)
	if exponent < 0 || exponent > 19 || len(short)+exponent > 19 {
		return "", false
	}
	return sign + short + strings.Repeat("0", exponent), true
}

// key makes the SDK's id of a float64 or a string.
func key(v any) jsonrpc.ID {
	k, err := jsonrpc.MakeID(v)
	if err != nil {
		panic("stdio: " + err.Error()) // both types are documented to be accepted
	}
	return k
}

// appendKey appends an id as JSON: null if there is none.
func appendKey(b []byte, k jsonrpc.ID) []byte {
	switch v := k.Raw().(type) {
	case int64:
		return strconv.AppendInt(b, v, 10)
	case string:
		return appendString(b, v)
	}
	return append(b, "null"...)
}

// appendID appends an id as the client wrote it.
func appendID(b []byte, i id) []byte {
	if i.echo != "" {
		return append(b, i.echo...)
	}
	return appendKey(b, i.key)
}

// appendString appends s as JSON.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			// Rare enough to be left to the standard library, which also puts
			// right what isn't UTF-8.
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("stdio: " + err.Error()) // a string always has a JSON form
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// unquote decodes a JSON string.
func unquote(raw []byte) (string, bool) {
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}
