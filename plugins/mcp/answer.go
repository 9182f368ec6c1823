package mcp

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/jsonvalue"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// answer makes the record of a tool's result: its text, its data as it declared or sent
// them, and what else there is, in order. Data are never guessed out of text: who writes the
// text would decide their type.
func (u *upstream) answer(o *operation, raw json.RawMessage) (value.Value, error) {
	whole, ok := value.Value(nil), utf8.Valid(raw)
	if ok {
		whole, ok = jsonvalue.Read(string(raw))
	}
	whole = u.hide.Load().Value(whole)
	result, isRecord := whole.(*value.Record)
	if !ok || !isRecord {
		return nil, unknown(o, "the server's answer can't be read exactly")
	}
	if kind, _ := member(result, "resultType").(value.Str); kind != "" && kind != "complete" {
		return nil, unknown(o, "the server's answer is of a kind that this client doesn't know")
	}
	blocks, ok := content(result)
	if !ok {
		return nil, unknown(o, "the server's answer is against the protocol: it has no list of contents")
	}
	var texts []string
	var parts []value.Value
	for _, b := range blocks {
		block, ok := b.(*value.Record)
		if !ok {
			return nil, unknown(o, "the server's answer is against the protocol: a content is no object")
		}
		if text, ok := member(block, "text").(value.Str); ok && member(block, "type") == value.Value(value.Str("text")) {
			texts = append(texts, string(text))
			continue
		}
		parts = append(parts, part(block))
	}
	isError, _ := member(result, "isError").(value.Bool)
	data := member(result, "structuredContent")
	if where, isMisfit := o.misfit(raw, data != nil); isMisfit && !bool(isError) {
		return nil, unknown(o, u.settings.Name+" answered "+o.word+" with another type than it declared"+u.hide.Load().Text(where))
	}
	if output := o.output(); data != nil && output != nil {
		data = output.Type.Integers(data)
	}
	text := strings.Join(texts, "\n")
	if data != nil && len(texts) == 1 && same(text, member(result, "structuredContent")) {
		text = "" // servers send data twice, once for clients that know none
	}
	record := &value.Record{}
	if data != nil {
		record.Fields = append(record.Fields, value.Field{Key: "data", Value: data})
	}
	if marks := marked(result); marks != nil {
		record.Fields = append(record.Fields, value.Field{Key: "ifc", Value: value.FromSlice(*marks)})
	}
	if parts != nil {
		record.Fields = append(record.Fields, value.Field{Key: "parts", Value: value.FromSlice(parts)})
	}
	record.Fields = append(record.Fields, value.Field{Key: "text", Value: value.Str(text)})
	if isError {
		return nil, sdk.Fail("failed", "the server says that it failed; its words are in the error's value").WithValue(record)
	}
	return record, nil
}

// marked is what a server says of where its answer comes from, in _meta.ifc: untrusted where others wrote it, private
// where not everyone may read it; nil: nothing. What can't be read is both.
func marked(result *value.Record) *[]value.Value {
	meta, _ := member(result, "_meta").(*value.Record)
	if meta == nil || member(meta, "ifc") == nil {
		return nil
	}
	marks := []value.Value{}
	said, _ := member(meta, "ifc").(*value.Record)
	if said == nil || member(said, "integrity") != value.Value(value.Str("trusted")) {
		marks = append(marks, value.Str("untrusted"))
	}
	public := false
	if said != nil {
		switch readers := member(said, "confidentiality").(type) {
		case value.Str:
			public = readers == "public"
		default:
			list, ok := value.Slice(readers)
			public = ok && len(list) == 1 && list[0] == value.Value(value.Str("public"))
		}
	}
	if !public {
		marks = append(marks, value.Str("private"))
	}
	return &marks
}

// content gives the blocks of a result; those of an older server may be missing beside data.
func content(result *value.Record) (blocks []value.Value, ok bool) {
	c := member(result, "content")
	if c == nil {
		return nil, member(result, "structuredContent") != nil
	}
	return value.Slice(c)
}

// member is a record's, or nil.
func member(r *value.Record, key string) value.Value {
	for _, f := range r.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// part is a content that is no text, with the members that programs know.
func part(block *value.Record) value.Value {
	fields := map[string]value.Value{}
	take := func(from *value.Record, as map[string]string) {
		for name, is := range as {
			if s, ok := member(from, name).(value.Str); ok {
				fields[is] = s
			}
		}
	}
	kind, _ := member(block, "type").(value.Str)
	switch kind {
	case "image", "audio":
		take(block, map[string]string{"mimeType": "mime", "data": "data"})
	case "resource_link":
		take(block, map[string]string{"mimeType": "mime", "uri": "uri", "name": "name"})
	case "resource":
		if r, ok := member(block, "resource").(*value.Record); ok {
			take(r, map[string]string{"mimeType": "mime", "uri": "uri", "text": "text", "blob": "data"})
		}
	default:
		kind = "unknown"
	}
	record := &value.Record{}
	for _, name := range []string{"data", "mime", "name", "text", "type", "uri"} { // in order
		v, ok := fields[name]
		if name == "type" {
			v, ok = kind, true
		}
		if ok {
			record.Fields = append(record.Fields, value.Field{Key: name, Value: v})
		}
	}
	return record
}

// misfit reports whether the data of an answer aren't of the type that the tool declared,
// and where, as in: , at "/issues/3".
func (o *operation) misfit(raw json.RawMessage, isThere bool) (where string, isMisfit bool) {
	output := o.output()
	if output == nil {
		return "", false
	}
	if !isThere {
		return ": there are no data", true
	}
	f := output.Check(textOf(raw, "structuredContent"))
	if f == nil || f.At == "" {
		return "", f != nil
	}
	return ", at " + strconv.QuoteToASCII(short(string(f.At))), true // the server may have made up a key
}

// textOf is a member of an object, as it came, or nil. A struct would have it by another spelling, too.
func textOf(object json.RawMessage, key string) json.RawMessage {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(object, &members)
	return members[key]
}

// same reports whether a text is JSON of the same worth as a value.
func same(text string, v value.Value) bool {
	if !utf8.ValidString(text) {
		return false
	}
	read, ok := jsonvalue.Read(text)
	if !ok {
		return false
	}
	one, err1 := jsonvalue.Write(read)
	two, err2 := jsonvalue.Write(v)
	return err1 == nil && err2 == nil && one == two
}

// valid is a text as a value can have it.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
