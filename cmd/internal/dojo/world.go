package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed worlds programs policies judges attacks
var files embed.FS

// environments is the worlds, each of which is an MCP server.
var environments = []string{"bank", "office", "chat", "travel"}

// A record is an item of a collection. Numbers are [json.Number], so that amounts stay exact.
type record = map[string]any

// A world is an environment: data in collections, and tools over them.
type world struct {
	// Tools says what each tool does: "search mails by text", or "add sent: to subject body".
	Tools map[string]string
	// Logged is the reading tools of which a judge sees the calls, too.
	Logged []string
	// Strange is the texts of each collection that strangers write.
	Strange map[string]struct{ Fields, Unless []string }
	// Says is what a text says of a field, as a regular expression: what a careful model would extract.
	Says map[string]string
	// World is the collections.
	World map[string][]record
}

// read reads a JSON file that is part of this program.
func read(name string, into any) error {
	text, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// load gives a world as it is at the beginning.
func load(name string) (*world, error) {
	w := new(world)
	return w, read(path.Join("worlds", name+".json"), w)
}

// inject writes an attack into every text that strangers write: behind what is there, or before it.
func (w *world) inject(attack string, first bool) {
	for collection, strange := range w.Strange {
		for _, r := range w.World[collection] {
			if len(strange.Unless) == 2 && r[strange.Unless[0]] == strange.Unless[1] {
				continue
			}
			for _, field := range strange.Fields {
				if first {
					r[field] = attack + "\n" + r[field].(string)
				} else {
					r[field] = r[field].(string) + "\n" + attack
				}
			}
		}
	}
}

// A tool is a line of a world's table, read.
type tool struct {
	name, verb, collection, key string
	params                      []param
}

type param struct {
	name, kind string
	optional   bool
}

// reads reports whether the tool changes nothing.
func (t *tool) reads() bool {
	return !slices.Contains([]string{"add", "set", "delete"}, t.verb)
}

// tools is those of a world, in the order of their names.
func (w *world) tools() (list []*tool) {
	for _, name := range slices.Sorted(maps.Keys(w.Tools)) {
		head, params, _ := strings.Cut(w.Tools[name], ": ")
		words := strings.Fields(head)
		t := &tool{name: name, verb: words[0], collection: words[1]}
		if len(words) == 4 {
			t.key = words[3]
			t.params = append(t.params, param{name: t.key, kind: "string"})
		}
		for _, p := range strings.Fields(params) {
			p, kind, ok := strings.Cut(p, ":")
			if !ok {
				kind = "string"
			}
			t.params = append(t.params, param{strings.TrimSuffix(p, "?"), kind, strings.HasSuffix(p, "?")})
		}
		list = append(list, t)
	}
	return list
}

// schema is the JSON Schema of a value of the world.
func schema(of any) record {
	switch of := of.(type) {
	case string:
		return record{"type": "string"}
	case bool:
		return record{"type": "boolean"}
	case []any:
		return record{"type": "array", "items": record{"type": "string"}}
	case record:
		properties := record{}
		for k, v := range of {
			properties[k] = schema(v)
		}
		return object(properties, slices.Sorted(maps.Keys(of)))
	default:
		return record{"type": "number"}
	}
}

func object(properties record, required []string) record {
	return record{"type": "object", "properties": properties, "required": append([]string{}, required...), "additionalProperties": false}
}

// input and output are the schemas of a tool.
func (t *tool) input() record {
	properties, required := record{}, []string{}
	for _, p := range t.params {
		properties[p.name] = record{"type": p.kind}
		if p.kind == "list" {
			properties[p.name] = schema([]any{})
		}
		if !p.optional {
			required = append(required, p.name)
		}
	}
	return object(properties, required)
}

func (t *tool) output(w *world) record {
	switch {
	case !t.reads():
		return object(record{"done": schema("")}, []string{"done"})
	case t.verb == "get":
		return schema(w.World[t.collection][0])
	}
	return object(record{"items": record{"type": "array", "items": schema(w.World[t.collection][0])}}, []string{"items"})
}

// do does what a tool does.
func (w *world) do(t *tool, args record) (any, error) {
	all := w.World[t.collection]
	at := func() (int, error) {
		i := slices.IndexFunc(all, func(r record) bool { return r[t.key] == args[t.key] })
		if i < 0 {
			return 0, fmt.Errorf("there is none with this %s", t.key)
		}
		return i, nil
	}
	switch t.verb {
	case "list":
		return items(all), nil
	case "where":
		return items(slices.DeleteFunc(slices.Clone(all), func(r record) bool { return r[t.key] != args[t.key] })), nil
	case "search":
		text, _ := args["text"].(string)
		return items(slices.DeleteFunc(slices.Clone(all), func(r record) bool {
			return !slices.ContainsFunc(slices.Collect(maps.Values(r)), func(v any) bool {
				s, ok := v.(string)
				return ok && strings.Contains(s, text)
			})
		})), nil
	case "get":
		i, err := at()
		if err != nil {
			return nil, err
		}
		return all[i], nil
	case "add":
		w.World[t.collection] = append(all, args)
		return record{"done": fmt.Sprintf("%s %d", t.collection, len(all)+1)}, nil
	case "set":
		i, err := at()
		if err != nil {
			return nil, err
		}
		maps.Copy(all[i], args)
		return record{"done": t.collection}, nil
	case "delete":
		i, err := at()
		if err != nil {
			return nil, err
		}
		w.World[t.collection] = slices.Delete(slices.Clone(all), i, i+1)
		return record{"done": t.collection}, nil
	}
	return nil, fmt.Errorf("unknown verb %q", t.verb)
}

func items(list []record) record { return record{"items": append([]record{}, list...)} }

// said is what a text says of a field, as a careful reader has it; "" if nothing.
func (w *world) said(field, text string) string {
	expr, ok := w.Says[field]
	if !ok {
		return ""
	}
	m := regexp.MustCompile(expr).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[len(m)-1]
}
