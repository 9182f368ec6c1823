package statefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A level is an object or a list of a document that is being read.
type level struct {
	keys map[string]bool // of an object; nil: a list
	key  string          // the member under way, of an object
	want bool            // a key comes next
	n    int             // items so far
}

// UniqueKeys refuses a document of JSON in which an object has a key twice, however
// it is written, and says where; with fold also in letters of another case, as
// [encoding/json] matches them to fields. Levels is how deep the document may be, 0:
// any depth.
func UniqueKeys(text []byte, fold bool, levels int) error {
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
			as := key
			if fold {
				as = strings.ToLower(key)
			}
			if in.keys[as] {
				return fmt.Errorf("duplicate key %s in %s", strconv.Quote(display.Truncate(key, 80)), placeOf(open))
			}
			in.keys[as], in.key, in.want = true, key, false
			continue
		}
		if levels > 0 && len(open) > levels {
			return errors.New("it is nested too deeply")
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
			at = at.Key(display.Truncate(l.key, most))
		} else {
			at = at.Index(l.n)
		}
	}
	if at == "" {
		return "the document itself"
	}
	return display.Truncate(string(at), most)
}
