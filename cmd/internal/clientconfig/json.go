package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/tailscale/hujson"
)

// readJSON reads JSON with comments and trailing commas.
func readJSON(text []byte) (hujson.Value, error) {
	if bytes.HasPrefix(text, []byte("\uFEFF")) {
		return hujson.Value{}, errors.New("it begins with a byte order mark: save it as UTF-8 without one")
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{\n}\n")
	}
	v, err := hujson.Parse(bytes.Clone(text)) // which its methods write to
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if _, ok := v.Value.(*hujson.Object); err == nil && !ok {
		err = errors.New("it has no object")
	}
	return v, err
}

func parseJSON(text []byte) (map[string]any, error) {
	v, err := readJSON(text)
	if err != nil {
		return nil, err
	}
	v.Standardize()
	tree := map[string]any{}
	return tree, json.Unmarshal(v.Pack(), &tree)
}

func pointer(tokens ...string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(escape.Replace(t))
	}
	return b.String()
}

func setJSON(text []byte, members []string, name string, entry json.RawMessage) ([]byte, error) {
	value, err := readJSON(text)
	if err != nil {
		return nil, err
	}
	type operation struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value,omitempty"`
	}
	var patch []operation
	for i := range members {
		if at := pointer(members[:i+1]...); value.Find(at) == nil && entry != nil {
			patch = append(patch, operation{"add", at, json.RawMessage("{}")})
		}
	}
	at := pointer(append(members[:len(members):len(members)], name)...)
	switch {
	case entry != nil:
		patch = append(patch, operation{"add", at, entry}) // which replaces, if it is there
	case value.Find(at) != nil:
		patch = append(patch, operation{Op: "remove", Path: at})
	default:
		return text, nil
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	if err := value.Patch(encoded); err != nil {
		return nil, err
	}
	if entry != nil {
		indent(value.Find(at), len(members)+1)
		for i := range len(members) + 1 {
			ownLine(&value, append(members[:len(members):len(members)], name)[:i+1])
		}
	}
	return value.Pack(), nil
}

// ownLine has a member that was added begin on a line of its own.
func ownLine(value *hujson.Value, members []string) {
	last := len(members) - 1
	parent := value
	if last > 0 {
		parent = value.Find(pointer(members[:last]...))
	}
	object := parent.Value.(*hujson.Object)
	for i := range object.Members {
		m := &object.Members[i]
		if m.Name.Value.(hujson.Literal).String() != members[last] {
			continue
		}
		if extra := string(m.Name.BeforeExtra); strings.TrimSpace(extra[strings.LastIndex(extra, "\n")+1:]) == "" && !strings.HasSuffix(extra, " ") {
			m.Name.BeforeExtra = hujson.Extra(strings.TrimRight(extra, "\n") + "\n" + strings.Repeat("  ", last+1))
			if len(m.Value.BeforeExtra) == 0 {
				m.Value.BeforeExtra = hujson.Extra(" ")
			}
		}
		if i == len(object.Members)-1 && !bytes.Contains(object.AfterExtra, []byte("\n")) {
			object.AfterExtra = append(object.AfterExtra, "\n"+strings.Repeat("  ", last)...)
		}
	}
}

// indent lays a new entry out in lines of its own, as people write such files.
func indent(v *hujson.Value, depth int) {
	var b bytes.Buffer
	plain := v.Clone()
	plain.Minimize()
	if json.Indent(&b, bytes.TrimSpace(plain.Pack()), strings.Repeat("  ", depth), "  ") != nil {
		return
	}
	if laid, err := hujson.Parse(b.Bytes()); err == nil {
		v.Value = laid.Value
	}
}
