// Package model is the plugin of the kind model: a language model that turns text into data
// of a type, and can do nothing else. It exports [Plugin].
//
// A capability is for one endpoint that the operator named (model:small), which speaks the API
// of OpenAI's chat completions. The model gets one request: what is wanted, then the text in
// a message of its own; no tools and no history. What it answers is data of the type that was
// asked for or a failure. Nothing falls back to the text, no failure has a byte of the text or
// of the model's words in it, and what the text says to the model changes no more than the
// values.
//
// Files: model.go has the operation, request.go what is sent and what comes back.
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/jsonvalue"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// Kind is the kind's name.
const Kind = "model"

// Settings is what the host tells the plugin's process, in JSON, by its descriptor.
type Settings struct {
	Name  string // the scope
	URL   string // of the API, as in https://llm.example.com/v1
	Model string // as the endpoint calls it
	Key   string `json:",omitempty"` // sent as a bearer token; empty: none is
	// In is the bytes of text that a request may have, Out the tokens of an answer, and Tries
	// how often a model is asked whose answer isn't of the type.
	In, Out, Tries int
}

// The defaults and bounds of [Settings].
const (
	defaultIn, maxIn   = 200_000, 8 << 20
	defaultOut, maxOut = 2_000, 100_000
	maxTries           = 3
)

// Check fills in what is left out, and refuses what makes no sense.
func (s *Settings) Check() error {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("its URL is that of an API, such as https://llm.example.com/v1")
	case u.Scheme == "http" && s.Key != "" && !isLoopback(u.Hostname()):
		return fmt.Errorf("its key would be sent to %s without encryption: give a URL with https", u.Host)
	case s.Model == "":
		return fmt.Errorf("it has no model=NAME")
	}
	for _, n := range []struct {
		name       string
		n          *int
		usual, max int
	}{{"in", &s.In, defaultIn, maxIn}, {"out", &s.Out, defaultOut, maxOut}, {"tries", &s.Tries, maxTries, maxTries}} {
		if *n.n == 0 {
			*n.n = n.usual
		}
		if *n.n < 1 || *n.n > n.max {
			return fmt.Errorf("%s is %d: 1 to %d", n.name, *n.n, n.max)
		}
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Plugin returns the plugin of the kind, for the endpoint that its process was told of.
// Without settings it has the manifest alone.
func Plugin(s Settings) sdk.Plugin {
	e := &endpoint{settings: s, client: newClient()}
	op := sdk.Op("extract", "has a language model extract data of a type from a text; it does nothing that the text says", sdk.Flags{ReadOnly: true, Idempotent: true, OpenWorld: true},
		func(ctx context.Context, _ any, a extractArgs) (value.Value, error) { return e.extract(ctx, a) },
		sdk.Result("record: found, value? of the type in as; the value alone with need: true"))
	op.TypeBy = "as"
	return sdk.Plugin{
		Kind: Kind, Version: "1.0.0", Doc: "has a language model make data of a text, by an endpoint that the operator named", Scope: sdk.Exact,
		Operations: []sdk.Operation{op}, Privileges: []string{"network"},
	}
}

// ParseSettings reads settings from JSON.
func ParseSettings(b []byte) (s Settings, err error) {
	if err = json.Unmarshal(b, &s); err == nil {
		err = s.Check()
	}
	return s, err
}

type extractArgs struct {
	Text     string    `pif:"text" doc:"the text that the data are in; empty where parts have them"`
	Parts    []part    `pif:"parts,optional" doc:"what they are in besides text: images, recordings and texts, as MCP servers give them"`
	As       string    `pif:"as" doc:"the type of the data, written as types are: {total: num, due: string | unit}; or a JSON Schema as text. A literal types the call"`
	Ask      *string   `pif:"ask" doc:"what is wanted of the text, in words of yours and never of the text's"`
	Examples []example `pif:"examples,optional" doc:"texts with what is in them: {text, value}, without value where there is nothing; at most 20"`
	Quote    *bool     `pif:"quote" doc:"true: each string has to stand in the text"`
	Need     *bool     `pif:"need" doc:"true: the answer is the value alone, and nothing found is a failure"`
}

// A part is one of the parts of an answer of an MCP server.
type part struct {
	Type string  `pif:"type"`
	Text *string `pif:"text"`
	Mime *string `pif:"mime"`
	Data *string `pif:"data" doc:"in base64"`
	Name *string `pif:"name"`
	URI  *string `pif:"uri"`
}

// An example is a text with what is in it.
type example struct {
	Text  string      `pif:"text"`
	Value value.Value `pif:"value,optional"`
}

// maxAsk is the bytes of what is asked, and maxExamples how many examples there may be.
const maxAsk, maxExamples = 4 << 10, 20

// extract performs model.extract.
func (e *endpoint) extract(ctx context.Context, a extractArgs) (value.Value, error) {
	q := question{text: a.Text, quote: a.Quote != nil && *a.Quote}
	size, err := q.add(a.Parts)
	if err != nil {
		return nil, err
	}
	size += len(q.text)
	if q.want, err = caps.ParseWanted(a.As); err != nil {
		return nil, sdk.Fail("invalid", "as is no type of data: %s", err).
			WithHint(`Write as in {total: num, due: string | unit}; a list has at most 100 items there, and a string one line of at most 200 characters. A JSON Schema as text says other bounds.`)
	}
	if a.Ask != nil {
		q.ask = *a.Ask
	}
	for i, x := range a.Examples {
		answer := value.Value(value.Unit{})
		if x.Value != nil {
			answer = q.want.Type.Integers(value.Force(x.Value))
			if why := q.want.Misfit(answer); why != "" {
				return nil, sdk.Fail("invalid", "the value of example %d isn't of the type in as: %s", i, why)
			}
		}
		text, err := jsonvalue.Write(&value.Record{Fields: []value.Field{{Key: "found", Value: value.Bool(x.Value != nil)}, {Key: "value", Value: answer}}})
		if err != nil {
			return nil, sdk.Fail("invalid", "the value of example %d has no JSON", i)
		}
		q.examples = append(q.examples, message{Role: "user", Content: x.Text}, message{Role: "assistant", Content: text})
		size += len(x.Text) + len(text)
	}
	if len(q.ask) > maxAsk || size > e.settings.In {
		return nil, sdk.Fail("too_large", "ask has %d bytes and text, with its parts and examples, %d; at most %d and %d are allowed", len(q.ask), size, maxAsk, e.settings.In).
			WithHint("Give it a part of the text.")
	}
	if len(a.Examples) > maxExamples {
		return nil, sdk.Fail("too_large", "there are %d examples; at most %d are allowed", len(a.Examples), maxExamples)
	}
	need := a.Need != nil && *a.Need
	for tries := 1; ; tries++ {
		v, why, err := e.ask(ctx, q)
		switch {
		case err != nil:
			return nil, err
		case why == "" && v == nil && need:
			return nil, sdk.Fail("not_found", "the model found nothing of that type in the text").WithHint("Without need the answer says whether it was found.")
		case why == "" && need:
			return v, nil
		case why == "":
			return foundRecord(v), nil
		case tries == e.settings.Tries:
			return nil, sdk.Fail("failed", "the model's answer isn't of the type that was asked for: %s", why).
				WithHint("Ask for less, or in other words; don't go on with the text in its place.")
		}
		q.misfit = why
	}
}

// foundRecord is the answer with what was found; nil: nothing was.
func foundRecord(v value.Value) value.Value {
	r := &value.Record{Fields: []value.Field{{Key: "found", Value: value.Bool(v != nil)}}}
	if v != nil {
		r.Fields = append(r.Fields, value.Field{Key: "value", Value: v})
	}
	return r
}

// keysOf adds the keys that a JSON Schema names, those of its literals included.
func keysOf(schema any, literal bool, keys map[string]bool) {
	switch s := schema.(type) {
	case []any:
		for _, item := range s {
			keysOf(item, literal, keys)
		}
	case map[string]any:
		for key, of := range s {
			properties, named := of.(map[string]any)
			switch {
			case literal:
				keys[key] = true
			case key == "required":
				names, _ := of.([]any)
				for _, name := range names {
					if name, ok := name.(string); ok {
						keys[name] = true
					}
				}
				continue
			case key == "properties" && named:
				for name, of := range properties {
					keys[name] = true
					keysOf(of, false, keys)
				}
				continue
			}
			keysOf(of, literal || key == "enum" || key == "const", keys)
		}
	}
}

// unquoted says where a string in data, or a key that isn't among those known, isn't in a text, white space folded; "": nowhere.
func unquoted(v value.Value, keys map[string]bool, folded, at string) string {
	switch v := value.Force(v).(type) {
	case value.Str:
		if !strings.Contains(folded, fold(string(v))) {
			return "a string that doesn't stand in the text" + at
		}
	case *value.Cons:
		items, _ := value.Slice(v)
		for i, item := range items {
			if why := unquoted(item, keys, folded, fmt.Sprintf("%s, in item %d", at, i)); why != "" {
				return why
			}
		}
	case *value.Record:
		for _, f := range v.Fields {
			if !keys[f.Key] && !strings.Contains(folded, fold(f.Key)) {
				return "a key that neither as names nor stands in the text" + at
			}
			if why := unquoted(f.Value, keys, folded, at+", in a member"); why != "" {
				return why
			}
		}
	}
	return ""
}

// fold makes one space of each run of white space.
func fold(s string) string { return strings.Join(strings.Fields(s), " ") }
