package stdio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-pif/mcp-pif/core/wait"
)

// Every line here is no message; each is answered by the code and id, and the
// session goes on as if nothing had been said.
var malformed = []struct {
	name, line string
	code       int64
	id         string
	reason     string
}{
	{"text", `hello`, -32700, "null", "byte 0"},
	{"open brace", `{`, -32700, "null", "unexpected end"},
	{"open brackets", strings.Repeat("[", 1_000_000), -32700, "null", "unexpected end at byte 1000000"},
	{"open objects", strings.Repeat(`{"a":`, 200_000), -32700, "null", "unexpected end"},
	{"mixed brackets", strings.Repeat("[", 70) + "}", -32700, "null", "byte 70"},
	{"truncated", `{"jsonrpc":"2.0","id":1,"method":"ping"`, -32700, "null", "unexpected end"},
	{"two messages", pingLine("1") + pingLine("2"), -32700, "null", "more after"},
	{"old Mac newline", pingLine("1") + "\r" + pingLine("2"), -32700, "null", "more after"},
	{"trailing comma", `{"jsonrpc":"2.0","id":1,"method":"ping",}`, -32700, "null", "key"},
	{"no colon", `{"jsonrpc" "2.0"}`, -32700, "null", "expected :"},
	{"unquoted key", `{jsonrpc:"2.0"}`, -32700, "null", "key"},
	{"single quotes", `{'jsonrpc':'2.0'}`, -32700, "null", "key"},
	{"NUL alone", "\x00", -32700, "null", "byte 0"},
	{"NUL between", "{\x00}", -32700, "null", ""},
	{"NUL in a string", `{"jsonrpc":"2.0","id":1,"method":"pi` + "\x00" + `ng"}`, -32700, "null", "control character"},
	{"tab in a string", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\tng\"}", -32700, "null", "control character"},
	{"bad escape", `{"jsonrpc":"2.0","id":1,"method":"\x41"}`, -32700, "null", "escape"},
	{"bad unicode escape", `{"jsonrpc":"2.0","id":1,"method":"\u00g0"}`, -32700, "null", "hexadecimal"},
	{"leading zero", `{"jsonrpc":"2.0","id":01,"method":"ping"}`, -32700, "null", "expected , or }"},
	{"plus sign", `{"jsonrpc":"2.0","id":+1,"method":"ping"}`, -32700, "null", "value"},
	{"NaN", `{"jsonrpc":"2.0","id":NaN,"method":"ping"}`, -32700, "null", "value"},
	{"not UTF-8", `{"jsonrpc":"2.0","id":1,"method":"` + "\xff" + `"}`, -32700, "null", "UTF-8"},
	{"surrogates in UTF-8", `{"jsonrpc":"2.0","id":1,"method":"` + "\xed\xa0\x80" + `"}`, -32700, "null", "UTF-8"},
	{"mark in the middle", "\xef\xbb\xbf" + pingLine("1"), -32700, "null", "byte 0"},

	{"null", `null`, -32600, "null", "object"},
	{"number", `17`, -32600, "null", "object"},
	{"string", `"ping"`, -32600, "null", "object"},
	{"batch", `[` + pingLine("1") + `]`, -32600, "null", "batches"},
	{"empty batch", `[]`, -32600, "null", "batches"},
	{"nested brackets", strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000), -32600, "null", "batches"},
	{"empty object", `{}`, -32600, "null", "2.0"},
	{"no version", `{"id":1,"method":"ping"}`, -32600, "1", "2.0"},
	{"version 1.0", `{"jsonrpc":"1.0","id":"a","method":"ping"}`, -32600, `"a"`, "2.0"},
	{"version a number", `{"jsonrpc":2.0,"id":1,"method":"ping"}`, -32600, "1", "2.0"},
	{"capital key", `{"Jsonrpc":"2.0","id":1,"method":"ping"}`, -32600, "1", "case-sensitive"},
	{"no method", `{"jsonrpc":"2.0","id":1}`, -32600, "1", "method"},
	{"method a number", `{"jsonrpc":"2.0","id":1,"method":1}`, -32600, "1", "method"},
	{"method null", `{"jsonrpc":"2.0","id":1,"method":null}`, -32600, "1", "method"},
	{"method an object, no id", `{"jsonrpc":"2.0","method":{}}`, -32600, "null", "method"},
	{"params a string", `{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}`, -32600, "1", "params"},
	{"params a number", `{"jsonrpc":"2.0","id":1,"method":"ping","params":1}`, -32600, "1", "params"},
	{"a notification with an id", `{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled"}`, -32600, "1", "unexpected id"},
	{"a notification with an id and odd params", `{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled","params":{"_meta":[]}}`, -32600, "1", "unexpected id"},
	{"params an array", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, -32602, "1", "params must be an object"},
	{"no tool's name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}`, -32602, "1", `tools/call needs "name", a string`},
	{"no params of a call", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, -32602, "1", `tools/call needs "name", a string`},
	{"params of a call null", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, -32602, "1", `tools/call needs "name", a string`},
	{"no params of a subscription", `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe"}`, -32602, "1", `resources/subscribe needs "uri", a string`},
	{"no level", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel"}`, -32602, "1", `logging/setLevel needs "level", a string`},
	{"a subscription to a number", `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":5}}`, -32602, "1", `"uri" of resources/subscribe is a string`},
	{"a tool's name in capitals", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"echo"}}`, -32602, "1", `tools/call needs "name"`},
	{"a tool's name null", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":null}}`, -32602, "1", `"name" of tools/call is a string`},
	{"a tool's name a number", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`, -32602, "1", `"name" of tools/call is a string`},
	{"_meta a number", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":5}}`, -32602, "1", `"_meta" of tools/list is an object`},
	{"cursor a number", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":5}}`, -32602, "1", `"cursor" of tools/list is a string`},
	{"ref a string", `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":"x","argument":{}}}`, -32602, "1", `"ref" of completion/complete is an object`},
	{"a prompt's argument a number", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"a","arguments":{"x":5}}}`, -32602, "1", `"arguments" of prompts/get takes no number`},
	{"a completion's argument a list", `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt"},"argument":{"value":["` + strings.Repeat("x", 9000) + `"]}}}`, -32602, "1", `"argument.value" of completion/complete takes no array`},
	{"a ref of another kind", `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"x"},"argument":{}}}`, -32602, "1", `completion/complete: unrecognized content type "x"`},
	{"listened to what is no list", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":5},` + modern + `}}`, -32602, "1", `"notifications.resourceSubscriptions" of subscriptions/listen takes no number`},
	{"no argument", `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{}}}`, -32602, "1", `needs "argument", an object`},
	{"a task's name a number", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":5}}`, -32602, "1", `"taskId" of tasks/get is a string`},
	{"responses to a task's questions in a list", `{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{"taskId":"a","inputResponses":[]}}`, -32602, "1", `"inputResponses" of tasks/update is an object`},
	{"the state of a call a number", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","requestState":5,` + modern + `}}`, -32602, "1", `"requestState" of tools/call is a string`},
	{"responses to a call's questions in a list", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","inputResponses":[],` + modern + `}}`, -32602, "1", `"inputResponses" of tools/call is an object`},
	{"a response that is none", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b","inputResponses":{"a":1},` + modern + `}}`, -32602, "1", `a response in "inputResponses" of resources/read is no result of elicitation/create`},
	{"a response without its type", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"a","inputResponses":{"a":{"x":1}},` + modern + `}}`, -32602, "1", `a response in "inputResponses" of prompts/get is no result of elicitation/create`},
	{"tasks listened to, undeclared", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["a"]},` + modern + `}}`, -32021, "1", "io.modelcontextprotocol/tasks"},
	{"listened to by an id that goes back in another form", `{"jsonrpc":"2.0","id":9007199254740993,"method":"subscriptions/listen","params":{"notifications":{},` + modern + `}}`, -32600, "9007199254740993", "at most 9007199254740992"},
	{"a tool's name twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","n\u0061me":"b"}}`, -32602, "1", `duplicate key "name"`},
	{"arguments twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{},"arguments":null}}`, -32602, "1", `duplicate key "arguments"`},
	{"a param of an unknown method twice", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"b":2,"a":1}}`, -32602, "1", `duplicate key "a"`},
	{"large params of initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"` + strings.Repeat("x", 64<<10) + `"}}}`, -32602, "1", "over 65536 bytes"},
	{"large params of notifications/initialized", `{"jsonrpc":"2.0","method":"notifications/initialized","params":{"_meta":{"x":"` + strings.Repeat("x", 64<<10) + `"}}}`, -32602, "null", "over 65536 bytes"},
	{"no level of a log", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}`, -32602, "1", `level is one of "debug"`},
	{"progressToken too long", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progress\u0054oken":"` + strings.Repeat("x", maxID) + `"}}}`, -32602, "1", "progressToken is over 1024 bytes"},
	{"progressToken that goes back as another", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":9007199254740993}}}`, -32602, "1", "an integer progressToken is at most 9007199254740992"},
	{"progressToken below these", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":-9007199254740993}}}`, -32602, "1", "an integer progressToken is at most 9007199254740992"},
	{"progressToken over 64 bits", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":1e400}}}`, -32602, "1", "an integer progressToken is at most 9007199254740992"},
	{"id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600, "null", "id must be"},
	{"id true", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, -32600, "null", "id must be"},
	{"id an object", `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, -32600, "null", "id must be"},
	{"id an array", `{"jsonrpc":"2.0","id":[1],"method":"ping"}`, -32600, "null", "id must be"},
	{"id a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, -32600, "null", "id must be"},
	{"id nearly whole", `{"jsonrpc":"2.0","id":1.00000000000000000000001,"method":"ping"}`, -32600, "null", "id must be"},
	{"id over 64 bits", `{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}`, -32600, "null", "id must be"},
	{"id astronomical", `{"jsonrpc":"2.0","id":1e999999999,"method":"ping"}`, -32600, "null", "id must be"},
	{"id too long", pingLine(`"` + strings.Repeat("x", maxID-1) + `"`), -32600, "null", "id is over 1024 bytes"},
	{"id too long, an integer", pingLine("1." + strings.Repeat("0", maxID)), -32600, "null", "id is over 1024 bytes"},
	{"method too long", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", maxID) + `"}`, -32600, "1", "method is over 1024 bytes"},
	{"two methods", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}`, -32600, "1", "duplicate"},
	{"two ids", `{"jsonrpc":"2.0","id":1,"method":"ping","id":1}`, -32600, "null", "duplicate"},
	{"two params", `{"jsonrpc":"2.0","params":{},"id":1,"method":"ping","params":{}}`, -32600, "1", "duplicate"},
	{"two of a key unknown", `{"jsonrpc":"2.0","id":1,"x":1,"method":"ping","x":1}`, -32600, "1", "duplicate"},
	{"two methods, one escaped", `{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"ping"}`, -32600, "1", "duplicate"},
	{"many members", `{"jsonrpc":"2.0","id":1,"method":"ping"` + manyMembers(100_000) + `}`, -32600, "null", "members"},
	{"deep params", `{"jsonrpc":"2.0","method":"ping","params":{"a":` + nested(1_000_000) + `},"id":1}`, -32600, "1", "deeper"},
	{"params one too deep", `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + nested(MaxDepth+1) + `}`, -32600, "1", "deeper"},
}

func nested(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"%d":0`, i)
	}
	return b.String()
}

func TestMalformed(t *testing.T) {
	s := start(t, nil).initialized()
	cases := slices.Clip(malformed)
	for _, key := range []string{"JSONRPC", "Id", "Method", "paramſ", `\u0050arams`, "Result", "Error"} { // as encoding/json reads them, too
		c := malformed[0]
		c.name, c.line, c.code, c.id, c.reason = key, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"`+key+`":{}}`, -32600, "1", "case-sensitive"
		cases = append(cases, c)
	}
	for _, c := range cases {
		// Notes of the subtest would end the shared session's test; so no t.Run.
		s.send(c.line)
		m := s.receive()
		if m.Error == nil || len(m.Error.Message) > 2*maxID || m.Error.Code != c.code || string(m.ID) != c.id || !strings.Contains(m.Error.Message, c.reason) {
			t.Errorf("%s: got %v for id %s, want %d %q for id %s", c.name, m.Error, m.ID, c.code, c.reason, c.id)
		}
		s.alive()
	}
	// What a version doesn't have isn't held to the params of one that has it.
	for _, method := range []string{"resources/subscribe", "resources/unsubscribe", "logging/setLevel"} {
		s.send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"level":"loud",` + modern + `}}`)
		s.refused(-32601, "1", method)
	}
	s.in.Close()
	s.over()
}

// What is odd but a message is taken as one.
func TestTolerated(t *testing.T) {
	s := start(t, nil)
	// A mark may open the stream, and arrive in pieces.
	for _, piece := range []string{"\xef", "\xbb", "\xbf"} {
		io.WriteString(s.in, piece)
	}
	s.initialized()
	for _, c := range []struct{ name, line string }{
		{"spaces around", " \t" + callLine("1", "echo", "x") + " \t "},
		{"CRLF", callLine("1", "echo", "x") + "\r"},
		{"blank lines", "\n\r\n \t \n" + callLine("1", "echo", "x")},
		{"space within", strings.ReplaceAll(callLine("1", "echo", "x"), ":", " :\t")},
		{"escaped keys", strings.Replace(callLine("1", "echo", "x"), "method", `\u006d\u0065thod`, 1)},
		{"escaped keys of the params", strings.NewReplacer(`"name"`, `"n\u0061me"`, `"arguments"`, `"argument\u0073"`).Replace(callLine("1", "echo", "x"))},
		{"escaped method", strings.Replace(callLine("1", "echo", "x"), "tools/call", `tools\/c\u0061ll`, 1)},
		{"members unknown", strings.Replace(callLine("1", "echo", "x"), `"id"`, `"é":1,"extra":[{}],"id"`, 1)},
		{"id last", `{"method":"tools/call","params":{"name":"echo","arguments":{"x":"x"}},"jsonrpc":"2.0","id":1}`},
		{"a result besides", strings.Replace(callLine("1", "echo", "x"), `"id"`, `"result":1,"id"`, 1)},
		{"deep arguments", strings.Replace(callLine("1", "echo", "x"), `"x":`, `"deep":`+nested(MaxDepth-2)+`,"x":`, 1)},
	} {
		s.send(c.line)
		if m := s.receive(); m.Error != nil || string(m.ID) != "1" || m.text(t) != "x" {
			t.Errorf("%s: got %+v (%v)", c.name, m, m.Error)
		}
	}
	// An optional member that is null is none.
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":null,"_meta":null}}`)
	if m := s.receive(); m.Error != nil {
		t.Errorf("tools/list: %+v", m)
	}
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":9007199254740992}}}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"progressToken":"9007199254740993"}}}`)
	for range 2 {
		if m := s.receive(); m.Error != nil {
			t.Errorf("tools/list: %+v", m)
		}
	}
	// Params of null are none.
	s.send(`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`)
	if m := s.receive(); m.Error != nil || string(m.Result) != "{}" {
		t.Errorf("ping: %+v", m)
	}
}

// Responses that nobody waits for are passed over, faulty ones too.
func TestUnaskedResponses(t *testing.T) {
	s := start(t, nil).initialized()
	s.send(
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":"init","result":{}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`,
		`{"jsonrpc":"2.0","id":[1],"error":7}`,
		`{"id":1,"result":null}`,
		`{"jsonrpc":"2.0","id":1,"error":null}`,
	)
	s.alive()
}

// The text of an id comes back as it was sent.
func TestIDs(t *testing.T) {
	s := start(t, nil).initialized()
	for _, id := range []string{
		`"` + strings.Repeat("x", maxID-2) + `"`,
		`0`, `-1`, `7`, `""`, `"7"`, `"a b"`, `"\u0061"`, `"\"\\\n"`, `"é😀"`, `"\ud800"`, `"\u0000integer 9007199254740993"`,
		`1.0`, `-0`, `0.0`, `1e2`, `10E-1`, `1.50e+1`, `0e99`,
		`9007199254740992`, `9007199254740993`, `-9007199254740993`, `9223372036854775807`, `-9223372036854775808`, `9.223372036854775807e18`,
	} {
		s.send(callLine(id, "echo", "x"))
		s.answered(id, "x")
	}
	// They are told apart, or not, by what they mean. What was cancelled may hold its id
	// for a while yet: each is held once.
	for _, pair := range [][2]string{
		{`9007199254740993`, `9007199254740992`}, {`1`, `"1"`}, {`9007199254740995`, `"9007199254740995"`},
	} {
		s.send(callLine(pair[0], "hold", pair[0]))
		s.reached(pair[0])
		s.send(callLine(pair[1], "echo", "x"))
		s.answered(pair[1], "x")
		s.send(cancelLine(pair[0]))
		s.reached("cancelled " + pair[0])
	}
	for _, pair := range [][2]string{{`5`, `5.0`}, {`"b"`, `"\u0062"`}} {
		s.send(callLine(pair[0], "hold", pair[0]))
		s.reached(pair[0])
		s.send(callLine(pair[1], "echo", "x"))
		s.refused(-32600, "null", "in use")
		s.send(cancelLine(pair[1]))
		s.reached("cancelled " + pair[0])
	}
}

// An oversized line is answered, with its id if that is near either end, and
// is never held in memory.
func TestOversized(t *testing.T) {
	const limit = 100_000
	fill := strings.Repeat("x", 2*limit)
	head := callLine("1", "echo", fill)
	tail := `{"method":"tools/call","params":{"id":5,"arguments":{"x":"` + fill + `"}},"jsonrpc":"2.0","id":"t"}`
	s := start(t, func(tr *Transport) { tr.MaxFrame = limit }).initialized()
	for _, c := range []struct{ name, line, id string }{
		{"id first", head, "1"},
		{"id last", tail, `"t"`},
		{"id last, spaces", tail + " \r", `"t"`},
		{"id only in the params", `{"method":"x","params":{"x":"` + fill + `","id":5}}`, "null"},
		{"id only in a string", `{"method":"x","params":"` + fill + `,\"id\":5}`, "null"},
		{"id in the middle", `{"a":"` + fill + `","id":5,"b":"` + fill + `"}`, "null"},
		{"id bad", `{"id":{},"a":"` + fill + `"}`, "null"},
		{"id cut off", `{"a":"` + strings.Repeat("x", headSize-13) + `","id":12345,"b":"` + fill + `"}`, "null"},
		{"a batch", `[` + head + `]`, "null"},
		{"not JSON", fill, "null"},
		{"brackets", strings.Repeat("[", 3*limit), "null"},
		{"NULs", strings.Repeat("\x00", 3*limit), "null"},
		{"one byte too many", pad(pingLine("3"), limit+1), "3"},
	} {
		s.send(c.line)
		m := s.receive()
		if m.Error == nil || m.Error.Code != -32600 || string(m.ID) != c.id || !strings.Contains(m.Error.Message, "too large") {
			t.Errorf("%s: got %v for id %s, want id %s", c.name, m.Error, m.ID, c.id)
		}
		s.alive()
	}
	// The id of a call in flight isn't used: the error would pass for its answer.
	s.send(callLine("1", "hold", "held"))
	s.reached("held")
	s.send(head)
	s.refused(-32600, "null", "too large")
	s.send(pad(pingLine("3"), limit))
	if m := s.receive(); m.Error != nil || string(m.ID) != "3" {
		t.Errorf("a line of just the limit: %v", m.Error)
	}
}

func pad(line string, size int) string { return line + strings.Repeat(" ", size-len(line)) }

// At the default limit, 20 MiB and then 2 GiB in one line.
func TestOversizedMemory(t *testing.T) {
	s := start(t, nil).initialized()
	mib := strings.Repeat("[", 1<<20)
	for _, mibs := range []int{20, 2 << 10} {
		if mibs > 20 && testing.Short() {
			break
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range mibs {
			io.WriteString(s.in, mib)
		}
		s.send("")
		s.refused(-32600, "null", "too large")
		s.alive()
		runtime.ReadMemStats(&after)
		if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 64 {
			t.Errorf("a line of %d MiB allocated %d MiB", mibs, grown)
		}
	}
}

// What was malformed or too long is answered at the end of input too, and a
// last line needs no newline.
func TestEndWithoutNewline(t *testing.T) {
	for _, c := range []struct {
		line, id string
		code     int64
	}{
		{callLine("1", "echo", "x"), "1", 0},
		{`{"jsonrpc"`, "null", -32700},
		{"\xef\xbb", "null", -32700},
		{callLine("1", "echo", strings.Repeat("x", 2000)), "1", -32600},
	} {
		s := start(t, func(tr *Transport) { tr.MaxFrame = 1000 })
		if c.id == "1" {
			s.initialized()
		}
		io.WriteString(s.in, c.line)
		s.in.Close()
		if c.code == 0 {
			s.answered(c.id, "x")
		} else {
			s.refused(c.code, c.id, "")
		}
		s.over()
	}
}

// FuzzFrames sends any bytes, then a ping, which must be answered; everything
// said until then must be JSON-RPC, and the end of input must end the session.
// What is JSON, and what isn't, must be what the standard library says.
//
// Run it with -fuzzminimizetime=1x: which branches of the SDK a session takes
// varies from run to run, and minimizing would chase that for a minute a time.
func FuzzFrames(f *testing.F) {
	for _, c := range malformed {
		if len(c.line) < 10_000 {
			f.Add([]byte(c.line))
		}
	}
	for _, l := range []string{
		initializeLine + "\r\n" + initializedLine + "\n" + callLine("1", "echo", "x") + cancelLine("1"),
		"\xef\xbb\xbf" + callLine("1", "echo", strings.Repeat("x", 2000)) + "\n" + pingLine("2"),
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + modern + `,"notifications":{"toolsListChanged":true}}}` + "\n" + cancelLine("1.0"),
		`{"jsonrpc":"2.0","id":-9.007199254740993e15,"method":"server/discover","params":{` + modern + `}}`,
	} {
		f.Add([]byte(l))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for l := range bytes.Lines(data) {
			l = bytes.TrimSuffix(l, []byte("\n"))
			if blank(l) {
				continue
			}
			_, refused := parse(l)
			notJSON := refused != nil && refused.code == -32700
			if want := !json.Valid(l) || !utf8.Valid(l); notJSON != want {
				t.Fatalf("%q: refused as %+v, want not JSON: %v", l, refused, want)
			}
		}
		s := start(t, func(tr *Transport) { tr.MaxFrame = 1000 })
		go func() {
			s.in.Write(data)
			s.in.Write([]byte("\n" + pingLine(`"fuzz"`) + "\n"))
			s.in.Close()
		}()
		for {
			if m := s.receive(); string(m.ID) == `"fuzz"` && m.Method == "" {
				break
			}
		}
		for {
			if _, err := s.next(); err != nil {
				break
			}
		}
		if err := s.ended(); err != nil {
			t.Fatalf("Run: %v", err)
		}
	})
}

// batched is a session of the version that has batches.
func batched(t *testing.T, version string) *session {
	t.Helper()
	s := start(t, nil)
	s.send(strings.Replace(initializeLine, "2025-11-25", version, 1))
	if m := s.receive(); m.Error != nil || !strings.Contains(string(m.Result), version) {
		t.Fatalf("initialize: %+v", m)
	}
	s.send(initializedLine)
	return s
}

// array expects the next line to be an array of answers, and gives each by its id.
func (s *session) array() map[string]received {
	s.t.Helper()
	s.raw.SetReadDeadline(time.Now().Add(wait.Limit(s.t)))
	l, err := s.out.ReadBytes('\n')
	if err != nil {
		s.t.Fatalf("receiving: %v", err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(l, &all); err != nil || len(all) == 0 {
		s.t.Fatalf("not an array of answers: %.300s", l)
	}
	got := map[string]received{}
	for _, a := range all {
		m := decode(s.t, append(slices.Clone(a), '\n'))
		if _, twice := got[string(m.ID)]; twice {
			s.t.Errorf("two answers for %s", m.ID)
		}
		got[string(m.ID)] = m
	}
	return got
}

// The answers to a batch come in one line, once all are there: those of calls, and those
// to what can't be taken. What is cancelled, and what asks for no answer, has none.
func TestBatch(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2024-11-05"} {
		s := batched(t, version)
		s.send("[" + strings.Join([]string{
			callLine("1", "echo", "one"),
			callLine(`"two"`, "hold", "held"),
			callLine("3", "hold", "given up"),
			initializedLine,
			`{"jsonrpc":"2.0","id":17,"result":{}}`,
			`{"jsonrpc":"2.0","id":18,"error":null}`,
			`{"jsonrpc":"2.0","id":4}`,
			initializeLine,
			callLine("5.0", "echo", "five"),
		}, " ,\t") + "]\r")
		s.reached("held", "given up")
		s.send(cancelLine("3"))
		s.alive() // and nothing was sent before it
		s.free()
		got := s.array()
		if len(got) != 5 {
			t.Errorf("%d answers: %v", len(got), got)
		}
		for id, want := range map[string]string{"1": "one", `"two"`: "released", "5.0": "five"} {
			if m := got[id]; m.Error != nil || m.text(t) != want {
				t.Errorf("%s: %+v", id, m)
			}
		}
		for id, want := range map[string]string{"4": "no method", `"init"`: "part of a batch"} {
			if m := got[id]; m.Error == nil || m.Error.Code != -32600 || !strings.Contains(m.Error.Message, want) {
				t.Errorf("%s: %+v", id, m)
			}
		}
		s.send("[" + initializedLine + "]") // which has no answer
		s.alive()
		s.in.Close()
		s.over()
	}
}

// What is no batch is refused as one.
func TestBatchRefused(t *testing.T) {
	s := batched(t, "2025-03-26")
	for _, c := range []struct {
		line, reason string
		code         int64
	}{
		{"[]", "empty", -32600},
		{"[" + pingLine("1"), "unexpected end", -32700},
		{"[" + pingLine("1") + ",]", "value", -32700},
		{"[" + pingLine("1") + "] []", "more after", -32700},
		{"[" + strings.Repeat("1,", maxBatch) + "1]", "over 1000", -32600},
	} {
		s.send(c.line)
		s.refused(c.code, "null", c.reason)
		s.alive()
	}
	s.send("[1,[" + pingLine("1") + "]]")
	s.raw.SetReadDeadline(time.Now().Add(wait.Limit(s.t)))
	if l, err := s.out.ReadString('\n'); err != nil || strings.Count(l, "-32600") != 2 {
		t.Errorf("%s %v", l, err)
	}
	s.in.Close()
	s.over()
}

// A call of a batch doesn't keep the memory of the whole line, of which its own bytes alone are counted.
func TestBatchIsCopied(t *testing.T) {
	conn := &conn{calls: calls{maxCalls: 1, maxBytes: 1 << 20}}
	conn.batches.Store(true)
	line := []byte("[" + callLine("1", "echo", "one") + "]")
	if _, ok := conn.unpack(frame{line: line, owned: true}); !ok {
		t.Fatal("no batch")
	}
	m, refused := conn.take(conn.parts[0])
	clear(line)
	if r, ok := m.(*jsonrpc.Request); !ok || !bytes.Contains(r.Params, []byte("one")) {
		t.Errorf("%+v %v", m, refused)
	}
}

// The end of input loses no answer of a batch, also where what the others waited for
// is cancelled.
func TestBatchAtTheEnd(t *testing.T) {
	s := batched(t, "2025-03-26")
	s.send("["+callLine("1", "echo", "one")+","+callLine("2", "stubborn", "stuck")+"]", "["+callLine("3", "echo", "three")+"]")
	s.reached("stuck")
	if got := s.array(); got["3"].text(t) != "three" {
		t.Errorf("%v", got)
	}
	s.send(cancelLine("2"))
	s.in.Close()
	if got := s.array(); len(got) != 1 || got["1"].text(t) != "one" {
		t.Errorf("%v", got)
	}
	s.free()
	s.over()
}

// One slow call doesn't hold all that was answered beside it.
func TestBatchOfLargeAnswers(t *testing.T) {
	s := batched(t, "2025-03-26")
	const n, size = 12, 256 << 10
	calls := []string{callLine(`"slow"`, "hold", "slow")}
	for i := range n {
		calls = append(calls, callLine(fmt.Sprint(i), "echo", strings.Repeat("x", size)))
	}
	s.send("[" + strings.Join(calls, ",") + "]")
	s.reached("slow")
	got := 0
	for got < n*size/highWater*highWater/size {
		got += len(s.array())
	}
	s.free()
	for got < n+1 {
		got += len(s.array())
	}
	s.in.Close()
	s.over()
}

// TestRefusal holds what is refused for others to what is refused here.
func TestRefusal(t *testing.T) {
	for _, c := range malformed {
		var m received
		if err := json.Unmarshal(Refusal([]byte(c.line), false), &m); err != nil || m.Error == nil ||
			m.Error.Code != c.code || string(m.ID) != c.id || !strings.Contains(m.Error.Message, c.reason) {
			t.Errorf("%s: %+v %v", c.name, m, err)
		}
	}
	batch := "[" + pingLine("1") + "," + initializedLine + "]"
	for _, line := range []string{pingLine("1"), initializedLine, `{"jsonrpc":"2.0","id":1,"result":{}}`, pingLine("9007199254740992"), pingLine(`"9007199254740993"`)} {
		if got := Refusal([]byte(line), false); got != nil {
			t.Errorf("%s: %s", line, got)
		}
	}
	if got := Refusal([]byte(batch), true); got != nil {
		t.Errorf("%s: %s", batch, got)
	}
	if got := Refusal([]byte(strings.Replace(batch, "[", "["+pingLine(`"1"`)+",", 1)), true); got != nil {
		t.Errorf("another id is refused: %s", got)
	}
	for _, line := range []string{batch[:len(batch)-1] + ",1]", "[]", "[1", batch[:len(batch)-1] + "," + pingLine("1.0") + "]"} {
		if got := Refusal([]byte(line), true); got == nil {
			t.Errorf("%s is taken", line)
		}
	}
	// The SDK would give 9007199254740992 back.
	if got := string(Refusal([]byte(pingLine("9007199254740993")), false)); !strings.Contains(got, `"id":9007199254740993,"error"`) {
		t.Error(got)
	}
}

// TestCrowded counts what isn't in a call's arguments, of which the SDK makes Go values.
func TestCrowded(t *testing.T) {
	t.Parallel()
	many := "[" + strings.Repeat("[],", 20_000) + "1]"
	for text, refused := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":` + many + `}}}`:                                           true,
		`{"jsonrpc":"2.0","method":"notifications/x","params":{"x":` + many + `}}`:                                                 true,
		`{"jsonrpc":"2.0","id":1,"result":{"content":` + many + `}}`:                                                               true,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f","arguments":{"x":` + many + `}}}`:                      false,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f","argument\u0073":{"x":` + many + `}}}`:                 false,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f","arguments":{},"arguments":{"x":` + many + `}}}`:       true,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f","arguments":{"x":` + many + `},"_meta":` + many + `}}`: true,
	} {
		if got := string(Refusal([]byte(text), false)); strings.Contains(got, "more than 20000 values") != refused {
			t.Errorf("%.80s…: %s", text, got)
		}
	}
	call := `{"id":1,"params":{"name":"f","argument\u0073":{"x":[1]},"_meta":{}}}`
	if rest, arguments := MoveArguments([]byte(call)); string(rest) != strings.Replace(call, `{"x":[1]}`, `{}`, 1) || string(arguments) != `{"x":[1]}` {
		t.Errorf("%s, %s", rest, arguments)
	}
}
