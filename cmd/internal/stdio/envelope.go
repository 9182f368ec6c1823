package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMembers bounds the members of an envelope, of which JSON-RPC knows six. It
// keeps the search for duplicate keys from being a way to spend our memory.
const maxMembers = 32

// codeOverloaded answers requests beyond the limits; it is the first of the
// codes JSON-RPC leaves to servers.
const codeOverloaded = -32000

// An envelope is a line taken apart. The slices are parts of the line and hold
// JSON text; nil means that the member is absent.
type envelope struct {
	version, id, method, params, result, fault []byte
	duplicate                                  string // a key that occurs twice
	folded                                     string // a key that is one of the six but for its case
	members                                    int
	others                                     [][]byte // keys of no meaning to JSON-RPC
}

// A refusal is a line that is no message, or one that can't be taken.
type refusal struct {
	code   int64
	id     []byte // JSON text; nil for null
	reason string
	data   json.RawMessage // nil: none
}

// fault is the refusal as an error of the protocol.
func (r *refusal) fault() *jsonrpc.Error {
	return &jsonrpc.Error{Code: r.code, Message: r.reason, Data: r.data}
}

func invalid(id []byte, format string, args ...any) *refusal {
	return &refusal{code: jsonrpc.CodeInvalidRequest, id: id, reason: "invalid request: " + fmt.Sprintf(format, args...)}
}

// set stores a member; the key is in its quotes.
func (e *envelope) set(key, value []byte) {
	e.members++
	if e.members > maxMembers {
		return
	}
	key = plainKey(key)
	var slot *[]byte
	switch string(key) {
	case `"jsonrpc"`:
		slot = &e.version
	case `"id"`:
		slot = &e.id
	case `"method"`:
		slot = &e.method
	case `"params"`:
		slot = &e.params
	case `"result"`:
		slot = &e.result
	case `"error"`:
		slot = &e.fault
	default:
		for _, known := range []string{`"jsonrpc"`, `"id"`, `"method"`, `"params"`, `"result"`, `"error"`} {
			if strings.EqualFold(string(key), known) { // which for encoding/json is the same
				e.folded = string(key)
			}
		}
		for _, other := range e.others {
			if bytes.Equal(other, key) {
				e.duplicate = string(key)
			}
		}
		e.others = append(e.others, key)
		return
	}
	if *slot != nil {
		e.duplicate = string(key)
	}
	*slot = value
}

// A message is a line understood: a call, a notification, or a response.
type message struct {
	id     id     // of a call or a response
	call   bool   // method and id
	method string // "" for a response
	params []byte // part of the line
	result []byte // part of the line; of a response
	fault  error  // of a response
	// refused is why a response is kept from the SDK, which reads the text itself over HTTP.
	refused *refusal
}

const unknownKey = "unknown key %.100s: keys are case-sensitive"

// maxValues bounds the values of a message, those in a call's arguments not counted, which we read
// ourselves: the SDK makes Go values of them, of a hundred bytes each, before anybody counts their memory.
const maxValues = 20_000

// MoveArguments takes the arguments out of a tool's call, and leaves an empty object in their place. Without
// any, arguments is nil.
func MoveArguments(call []byte) (rest, arguments []byte) {
	s := scanner{b: call}
	var e envelope
	if start := s.space(0); start == len(call) || call[start] != '{' || s.members(start, e.set) < 0 || e.params == nil {
		return call, nil
	}
	if arguments, _ = argumentsOf(e.params); arguments == nil {
		return call, nil
	}
	at := cap(call) - cap(arguments)
	return slices.Concat(call[:at], []byte("{}"), call[at+len(arguments):]), arguments
}

// argumentsOf returns the first member arguments of params, and how many values are in it; nil: there is none.
func argumentsOf(params []byte) (arguments []byte, values int) {
	s := scanner{b: params}
	before := 0
	if params[0] == '{' {
		s.members(0, func(key, value []byte) {
			if string(plainKey(key)) == `"arguments"` && arguments == nil {
				arguments, values = value, s.values-before
			}
			before = s.values
		})
	}
	return arguments, values
}

// parse understands a line. A nil message without a refusal is one to ignore: a
// response that can't be matched to anything, which nobody waits for.
func parse(line []byte) (*message, *refusal) {
	s := scanner{b: line}
	var e envelope
	start := s.space(0)
	end := -1
	object := start < len(line) && line[start] == '{'
	if object {
		end = s.members(start, e.set)
	} else {
		end = s.value(start)
	}
	if end >= 0 {
		if rest := s.space(end); rest < len(line) {
			end = s.fail(rest, "more after the message")
		}
	}
	switch {
	case end < 0:
		return nil, &refusal{code: jsonrpc.CodeParseError, reason: fmt.Sprintf("parse error: %s at byte %d", s.fault, s.at)}
	case !utf8.Valid(line):
		return nil, &refusal{code: jsonrpc.CodeParseError, reason: "parse error: not UTF-8"}
	case !object && line[start] == '[':
		return nil, invalid(nil, "batches are not supported: send one message a line")
	case !object:
		return nil, invalid(nil, "a message is an object")
	case e.members > maxMembers:
		return nil, invalid(nil, "more than %d members", maxMembers)
	case e.duplicate == `"id"`:
		return nil, invalid(nil, `duplicate key "id"`)
	}

	parsed, haveID := parseID(e.id)
	var back []byte // the id to refuse with
	if haveID {
		back = e.id
	}
	// A response is recognized before it is criticized: refusing a faulty one
	// would only start an exchange of complaints.
	if e.method == nil && (e.result != nil || e.fault != nil) {
		var refused *refusal
		switch {
		case e.folded != "":
			refused = invalid(nil, unknownKey, e.folded)
		case !haveID || string(e.version) != `"2.0"`:
			return nil, nil
		case s.values > maxValues:
			refused = tooMany(nil)
		}
		if refused != nil {
			return &message{id: parsed, refused: refused, fault: refused.fault()}, nil
		}
		return &message{id: parsed, result: e.result, fault: parseFault(e.fault, e.result != nil)}, nil
	}
	switch {
	case e.duplicate != "":
		return nil, invalid(back, "duplicate key %.100s", e.duplicate)
	case e.folded != "":
		return nil, invalid(back, unknownKey, e.folded)
	case string(e.version) != `"2.0"`:
		return nil, invalid(back, `"jsonrpc" must be "2.0"`)
	case len(e.id) > maxID:
		return nil, invalid(nil, "id is over %d bytes", maxID)
	case e.id != nil && !haveID:
		return nil, invalid(nil, "id must be a string or an integer of 64 bits")
	case e.method == nil:
		return nil, invalid(back, "no method")
	case e.method[0] != '"':
		return nil, invalid(back, "method must be a string")
	case len(e.method) > maxID:
		return nil, invalid(back, "method is over %d bytes", maxID)
	case e.params != nil && e.params[0] != '{' && e.params[0] != '[' && e.params[0] != 'n':
		return nil, invalid(back, "params must be an object")
	case s.deepest > MaxDepth:
		return nil, invalid(back, "params nest deeper than %d", MaxDepth)
	case s.values > maxValues:
		if string(e.method) == `"tools/call"` && e.params != nil {
			_, own := argumentsOf(e.params)
			s.values -= own
		}
		if s.values > maxValues {
			return nil, tooMany(back)
		}
	}
	m := &message{id: parsed, call: haveID}
	if bytes.IndexByte(e.method, '\\') < 0 {
		m.method = string(e.method[1 : len(e.method)-1])
	} else {
		m.method, _ = unquote(e.method)
	}
	if len(e.params) > 0 && e.params[0] != 'n' { // null is the same as none
		m.params = e.params
	}
	if (m.method == methodInitialize || m.method == "notifications/initialized") && len(m.params) > maxInitialize {
		return nil, badParams(back, fmt.Sprintf("those of %s are over %d bytes", m.method, maxInitialize))
	}
	if m.call {
		if m.method == methodCancelled { // of which the SDK reads the params before it sees the id
			return nil, invalid(back, "unexpected id for %q", m.method)
		}
		if why := unfit(m.method, m.params); why != "" {
			return nil, badParams(back, why)
		}
		if m.method == methodListen && m.id.big() { // it is in each notification, which the SDK writes
			return nil, invalid(back, "an integer id of %s is at most %d", methodListen, int64(maxExactInt))
		}
		if m.method == methodListen && wantsTasksUndeclared(m.params) {
			return nil, &refusal{
				code: mcp.CodeMissingRequiredClientCapabilities, id: back, reason: "missing required client capability: the extension " + tasksExtension,
				data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`),
			}
		}
	}
	return m, nil
}

const tasksExtension = "io.modelcontextprotocol/tasks"

// wantsTasksUndeclared reports whether a subscriptions/listen asks about tasks though its client doesn't declare
// their extension. The SDK doesn't know the member taskIds; no task is in what it agrees to.
func wantsTasksUndeclared(params []byte) bool {
	var p struct {
		Notifications struct {
			TaskIDs json.RawMessage `json:"taskIds"`
		} `json:"notifications"`
		Meta struct {
			Client struct {
				Extensions map[string]json.RawMessage `json:"extensions"`
			} `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil || len(p.Notifications.TaskIDs) == 0 {
		return false
	}
	_, declared := p.Meta.Client.Extensions[tasksExtension]
	return !declared
}

func tooMany(id []byte) *refusal {
	return invalid(id, "more than %d values besides a call's arguments", maxValues)
}

// parseFault reads the error of a response to one of our calls. One that isn't
// as JSON-RPC wants it is still an error, but null beside a result.
func parseFault(raw []byte, result bool) error {
	null := raw != nil && raw[0] == 'n'
	if raw == nil || null && result {
		return nil
	}
	fault := new(jsonrpc.Error)
	if err := json.Unmarshal(raw, fault); err != nil || null {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("malformed error: %.1000s", raw)}
	}
	return fault
}

// refuseOversized refuses a line over the limit, of which only the head and the tail
// are at hand. Clients put the id near the head or last, and one that gets no
// id back would wait for the answer until it loses patience.
func refuseOversized(head, tail []byte, limit int) *refusal {
	r := invalid(nil, "message too large: over %d bytes", limit)
	s := scanner{b: head}
	if i := s.space(0); i < len(head) && head[i] == '{' {
		var e envelope
		s.members(i, e.set)
		if _, ok := parseID(e.id); ok {
			r.id = bytes.Clone(e.id)
			return r
		}
	}
	r.id = lastID(tail)
	return r
}

// lastID returns the id that is the last member of an object of which tail is
// the end, or nil. If the line is JSON then the quotes of "id" can't be inside a
// string and the last brace closes the envelope; if it isn't, a wrong id does
// no harm beyond the client's own accounts.
func lastID(tail []byte) []byte {
	tail = bytes.TrimRight(tail, " \t\r")
	i := bytes.LastIndex(tail, []byte(`"id"`))
	if i < 0 {
		return nil
	}
	s := scanner{b: tail}
	if i = s.colon(i + len(`"id"`)); i < 0 {
		return nil
	}
	i = s.space(i)
	end := s.value(i)
	if end < 0 || s.space(end) != len(tail)-1 || tail[len(tail)-1] != '}' {
		return nil
	}
	if _, ok := parseID(tail[i:end]); !ok {
		return nil
	}
	return bytes.Clone(tail[i:end])
}

// cancelledID reads the params of a notifications/cancelled: the id of the call
// and whether there is one.
func cancelledID(params []byte) (target id, ok bool) {
	if len(params) == 0 || params[0] != '{' {
		return id{}, false
	}
	s := scanner{b: params}
	s.members(0, func(key, value []byte) {
		if string(plainKey(key)) == `"requestId"` {
			target, ok = parseID(value)
		}
	})
	return target, ok
}

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

// plainKey returns a key, which is in its quotes, without escapes that it doesn't need: the
// escaped spelling of a key is the same key.
func plainKey(key []byte) []byte {
	if bytes.IndexByte(key, '\\') >= 0 {
		if s, ok := unquote(key); ok {
			return appendString(nil, s)
		}
	}
	return key
}

// unquote decodes a JSON string.
func unquote(raw []byte) (string, bool) {
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// A member is one of the params of a method, and what opens its JSON.
type member struct {
	name     string
	opens    byte
	required bool
}

var (
	named     = member{"name", '"', true}
	addressed = member{"uri", '"', true}
	paged     = member{"cursor", '"', false}
	aboutTask = member{"taskId", '"', true}
	meta      = member{"_meta", '{', false}
	state     = member{"requestState", '"', false}
	responses = member{"inputResponses", '{', false}
)

// wanted is the params that methods need to be understood at all, of the methods that
// all versions of the protocol have, and of the extension's: in another one they aren't even known. The SDK
// finds the same, but says so in the names of its types or quotes the request, and lets a call of no tool pass.
var wanted = map[string][]member{
	"tools/call":               {named, state, responses},
	"prompts/get":              {named, {"arguments", '{', false}, state, responses},
	"resources/read":           {addressed, state, responses},
	"tools/list":               {paged},
	"prompts/list":             {paged},
	"resources/list":           {paged},
	"resources/templates/list": {paged},
	"tasks/get":                {aboutTask},
	"tasks/update":             {aboutTask, responses},
	"tasks/cancel":             {aboutTask},
	"completion/complete":      {{"ref", '{', true}, {"argument", '{', true}},
	"resources/subscribe":      {addressed},
	"resources/unsubscribe":    {addressed},
	"logging/setLevel":         {{"level", '"', true}},
}

// inSessions is the methods of these that the protocol without sessions doesn't know.
var inSessions = []string{"resources/subscribe", "resources/unsubscribe", "logging/setLevel"}

// versionMember is the member of _meta by which a request says that it has no session.
const versionMember = `"io.modelcontextprotocol/protocolVersion"`

// maxInitialize is how many bytes the params may have that a session keeps as long as it lasts. Clients
// send some hundred; an icon may be in them.
const maxInitialize = 64 << 10

// levels is what logging/setLevel takes.
var levels = []string{`"debug"`, `"info"`, `"notice"`, `"warning"`, `"error"`, `"critical"`, `"alert"`, `"emergency"`}

// unfit returns what is wrong with the params of a call; "": nothing.
func unfit(method string, params []byte) string {
	members, known := wanted[method]
	switch {
	case len(params) == 0:
		params = []byte("{}") // which for some methods is right
	case params[0] == '[':
		return "params must be an object" // JSON-RPC has arrays, MCP hasn't
	case slices.Contains(inSessions, method) && bytes.Contains(params, []byte(versionMember)):
		members, known = nil, false
	}
	var there uint8
	wrong := ""
	keys := map[string]struct{}{}
	check := func(m member, value []byte) {
		if value[0] != m.opens && (m.required || value[0] != 'n') && wrong == "" {
			wrong = fmt.Sprintf("%q of %s is %s", m.name, method, m.kind())
		}
	}
	s := scanner{b: params}
	s.members(0, func(key, value []byte) {
		key = plainKey(key)
		if _, twice := keys[string(key)]; twice && wrong == "" { // who reads them take the first, or the last
			wrong = fmt.Sprintf("duplicate key %.100s", key)
		}
		keys[string(key)] = struct{}{}
		for i, m := range members {
			if string(key[1:len(key)-1]) == m.name {
				there |= 1 << i
				check(m, value)
			}
		}
		switch {
		case string(key) == `"_meta"`:
			if known {
				check(meta, value)
			}
			if wrong == "" {
				wrong = unfitToken(value)
			}
		case known && method == "logging/setLevel" && string(key) == `"level"` && !slices.Contains(levels, string(value)) && wrong == "":
			wrong = "level is one of " + strings.Join(levels, ", ")
		case known && method != "tasks/update" && string(key) == `"inputResponses"` && wrong == "" && json.Unmarshal(value, new(mcp.InputResponseMap)) != nil:
			wrong = fmt.Sprintf("a response in \"inputResponses\" of %s is no result of elicitation/create, sampling/createMessage or roots/list", method)
		}
	})
	for i, m := range members {
		if m.required && there&(1<<i) == 0 && wrong == "" {
			wrong = fmt.Sprintf("%s needs %q, %s", method, m.name, m.kind())
		}
	}
	if wrong == "" {
		wrong = unfitInside(method, params)
	}
	return wrong
}

// unfitInside returns what is wrong with the params of a call whose members have members that the SDK wants of a type: it would
// quote the whole request.
func unfitInside(method string, params []byte) string {
	var into any
	switch method {
	case "prompts/get":
		into = new(mcp.GetPromptParams)
	case "completion/complete":
		into = new(mcp.CompleteParams)
	case methodListen:
		into = new(mcp.SubscriptionsListenParams)
	default:
		return ""
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(params, into); {
	case err == nil:
		return ""
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Sprintf("%q of %s takes no %.100s", wrong.Field, method, wrong.Value)
	default:
		return fmt.Sprintf("%s: %.200s", method, err)
	}
}

// unfitToken returns what is wrong with the progressToken of a _meta; "": nothing. It is in each notification, so it may have no
// more bytes than an id, and the SDK makes a float64 of a number.
func unfitToken(meta []byte) (wrong string) {
	if meta[0] != '{' {
		return ""
	}
	s := scanner{b: meta}
	s.members(0, func(key, value []byte) {
		if string(plainKey(key)) != `"progressToken"` {
			return
		}
		i, whole := parseID(value)
		f, _ := strconv.ParseFloat(string(value), 64) // 0 if it is no number
		switch {
		case len(value) > maxID:
			wrong = fmt.Sprintf("progressToken is over %d bytes", maxID)
		case whole && i.big(), !whole && math.Abs(f) > maxExactInt:
			wrong = fmt.Sprintf("an integer progressToken is at most %d", int64(maxExactInt))
		}
	})
	return wrong
}

func (m member) kind() string {
	if m.opens == '{' {
		return "an object"
	}
	return "a string"
}

// badParams refuses a call that is understood but for its params.
func badParams(id []byte, why string) *refusal {
	return &refusal{code: jsonrpc.CodeInvalidParams, id: id, reason: "invalid params: " + why}
}
