//go:build linux

package mcp

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
)

// An answer is the record of its text, data and parts, exactly.
func TestAnswers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		// Arguments go by their names on the wire, and no number is another afterwards.
		w.gives("echo", `{"in_":"x","n":9007199254740993}`, `{"data":{"in":"x","n":9007199254740993},"text":""}`)
		w.gives("echo", `{"n":1.10}`, `{"data":{"n":1.10},"text":""}`)
		w.gives("echo", `{"n":123456789012345678901234567890,"filter":"a"}`, `{"data":{"filter":"a","n":123456789012345678901234567890},"text":""}`)
		for result, want := range map[string]string{
			`{"content":[]}`: `{"text":""}`,
			`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:                                    `{"text":"a\nb"}`,
			`{"content":[{"type":"text","text":"{\"a\":1}"}]}`:                                                       `{"text":"{\"a\":1}"}`,
			`{"content":[{"type":"text","text":"{\"b\":[], \"a\":1}"}],"structuredContent":{"a":1,"b":[]}}`:          `{"data":{"a":1,"b":[]},"text":""}`,
			`{"content":[{"type":"text","text":"{\"a\":2}"}],"structuredContent":{"a":1}}`:                           `{"data":{"a":1},"text":"{\"a\":2}"}`,
			`{"structuredContent":{"n":12345678901234567890123,"d":0.10}}`:                                           `{"data":{"d":0.10,"n":12345678901234567890123},"text":""}`,
			`{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"},{"type":"text","text":"t"}]}`:         `{"parts":[{"data":"AAAA","mime":"image/png","type":"image"}],"text":"t"}`,
			`{"content":[{"type":"resource_link","uri":"x://y","name":"n","mimeType":"m","description":"d"}]}`:       `{"parts":[{"mime":"m","name":"n","type":"resource_link","uri":"x://y"}],"text":""}`,
			`{"content":[{"type":"resource","resource":{"uri":"x://y","text":"t"}},{"type":"hologram","data":"x"}]}`: `{"parts":[{"text":"t","type":"resource","uri":"x://y"},{"type":"unknown"}],"text":""}`,
			`{"content":[{"type":"resource","resource":{"uri":"x://y","blob":"AAAA","mimeType":"m"}}]}`:              `{"parts":[{"data":"AAAA","mime":"m","type":"resource","uri":"x://y"}],"text":""}`,
		} {
			w.gives("raw", shown(t, argument("result", result)), want)
		}
		w.gives("typed", `{"data":"{\"issues\":[{\"number\":7.0}]}"}`, `{"data":{"issues":[{"number":7}]},"text":""}`)
	})
}

// What can't be an answer fails, and what happened stays unknown.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for _, result := range []string{
			`{"content":"` + mcptest.Canary + `"}`, `{"content":[1]}`, `{}`, `[]`, `"` + mcptest.Canary + `"`, `{"content":[],"content":[]}`,
			`{"content":[{"type":"text","text":"\ud800"}]}`, `{"content":[],"structuredContent":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
			`{"content":[],"structuredContent":` + strings.Repeat("[", 400_000) + strings.Repeat("]", 400_000) + `}`,
		} {
			w.fails("raw", shown(t, argument("result", result)), "unknown", "")
		}
		w.fails("typed", `{"data":"{\"issues\":[{\"number\":\"`+mcptest.Canary+`\"}]}"}`, "unknown", `answered typed with another type than it declared, at "/issues/0/number"`)
		w.fails("typed", `{"data":"{\"issues\":7}"}`, "unknown", "with another type")
		w.fails("typed", `{"data":"null"}`, "unknown", "with another type")
	})
}

// argument is a record of one argument.
func argument(name, text string) value.Value {
	return &value.Record{Fields: []value.Field{{Key: name, Value: value.Str(text)}}}
}
