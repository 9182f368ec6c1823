package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A level is an object or a list of a document that is being read.
type level struct {
	keys map[string]bool // of an object; nil: a list
	key  string          // the member under way, of an object
	want bool            // a key comes next
	n    int             // items so far
}

// twice refuses a document in which an object has a key twice, however it is
// written, wherever that is.
func twice(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var open []*level
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var in *level
		if len(open) > 0 {
			in = open[len(open)-1]
		}
		if key, ok := token.(string); ok && in != nil && in.want {
			if in.keys[key] {
				return fmt.Errorf("the key %q is there twice, in %s", shorten([]byte(key), 80), placeOf(open))
			}
			in.keys[key], in.key, in.want = true, key, false
			continue
		}
		switch token {
		case json.Delim('{'):
			open = append(open, &level{keys: map[string]bool{}, want: true})
			continue
		case json.Delim('['):
			open = append(open, &level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			if in = nil; len(open) > 0 {
				in = open[len(open)-1]
			}
		}
		if in != nil {
			in.want = in.keys != nil
			in.n++
		}
	}
}

// placeOf is where the innermost object is, for a person: no more of it than can be
// read.
func placeOf(open []*level) string {
	const most = 200
	at := fault.Pointer("")
	for _, l := range open[:len(open)-1] {
		if len(at) > most {
			break
		}
		if l.keys != nil {
			at = at.Key(shorten([]byte(l.key), most))
		} else {
			at = at.Index(l.n)
		}
	}
	if at == "" {
		return "the document itself"
	}
	return shorten([]byte(at), most)
}
