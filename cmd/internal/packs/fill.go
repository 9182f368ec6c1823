package packs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
	"text/template"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A filling is what the templates of a pack are filled with: what tools call the
// scopes that they use, one at least.
type filling struct {
	kind   string
	labels []string
}

// fill gives a file of a pack.
func (f filling) fill(name string) ([]byte, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := template.New(path.Base(name)).Delims("<%", "%>").Funcs(template.FuncMap{
		"ask":     f.ask,
		"each":    f.each,
		"rest":    f.rest,
		"choice":  f.choice,
		"labels":  func() string { return string(quoted(f.labels)) },
		"quoted":  func() string { return string(quoted(f.labels[0])) },
		"prefix":  func() string { return string(quoted(f.prefix())) },
		"library": prim.LibraryText,
		// Within a string:
		"scope":  func() string { return inString(f.prefix()) },
		"first":  func() string { return inString(sample(f.labels[0])) },
		"scopes": func() string { return inString(strings.Join(f.labels, ", ")) },
	}).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, nil); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// quoted is a value as JSON, which is also how the text form writes strings and lists.
func quoted(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // strings have JSON
	}
	return bytes.TrimSpace(b.Bytes())
}

func inString(s string) string { return strings.Trim(string(quoted(s)), `"`) }

// prefix is what the keys of a scope begin with.
func (f filling) prefix() string { return strings.TrimSuffix(f.labels[0], "**") }

// sample is something within a scope.
func sample(label string) string {
	return strings.ReplaceAll(strings.TrimSuffix(label, "/**"), "*", "a")
}

// ask is a request of an operation: where there are several grants, of the one that
// the tool's arguments mean.
func (f filling) ask(op, args string) string {
	if len(f.labels) == 1 {
		return request(op, "", args)
	}
	var b strings.Builder
	for i, label := range f.labels {
		if i < len(f.labels)-1 {
			fmt.Fprintf(&b, "if %s then ", f.means(label))
		}
		b.WriteString(request(op, label, args))
		if i < len(f.labels)-1 {
			b.WriteString(" else ")
		}
	}
	return "(" + b.String() + ")"
}

// means is the condition that a tool's arguments mean a scope.
func (f filling) means(label string) string {
	name := string(quoted(label))
	switch f.kind {
	case "fs":
		return fmt.Sprintf(`get(a, "folder", %s) == %s`, quoted(f.labels[0]), name)
	case "fetch":
		all := strings.HasSuffix(label, "/**")
		p := regexp.QuoteMeta(strings.TrimSuffix(label, "/**"))
		p = "^" + strings.ReplaceAll(p, `\*`, "[^/]*")
		if all || strings.Count(label, "/") == 2 {
			p += "($|[/?])"
		} else {
			p += `($|\?)`
		}
		return fmt.Sprintf("re_match(a.url, %s)", quoted(p))
	}
	return "program == " + name
}

// request is a request of an operation under one capability of the tool's, named if
// there are several.
func request(op, label, args string) string {
	if label != "" {
		in := "in: " + string(quoted(label))
		if args != "" {
			in += ", "
		}
		args = in + args
	}
	return fmt.Sprintf("!%s({%s})", op, args)
}

// each is what a format makes of each scope and the request of an operation there.
func (f filling) each(format, op string) string {
	all := make([]string, len(f.labels))
	for i, label := range f.labels {
		in := label
		if len(f.labels) == 1 {
			in = ""
		}
		all[i] = fmt.Sprintf(format, quoted(label), request(op, in, ""))
	}
	return strings.Join(all, ", ")
}

// rest is the outcomes, in an example, of such requests but the first: none.
func (f filling) rest(op string) string {
	return strings.Repeat(fmt.Sprintf(`, {"op": %q, "value": []}`, op), len(f.labels)-1)
}

// choice is the property by which a folder is chosen, where there are several.
func (f filling) choice() string {
	if len(f.labels) == 1 {
		return ""
	}
	return fmt.Sprintf(`"folder": {"enum": %s, "description": "which folder; the first if left out"}, `, quoted(f.labels))
}
