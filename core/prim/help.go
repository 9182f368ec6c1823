package prim

import (
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// An Entry is a row as `help` shows it.
type Entry struct {
	Name     string        `json:"name"`
	Group    string        `json:"category"`
	Syntax   string        `json:"syntax"`
	Operands []string      `json:"operands,omitempty"` // "a: int", in order
	Result   string        `json:"result"`
	Doc      string        `json:"doc"`
	Examples []HelpExample `json:"examples"`
}

// A HelpExample is an example with its outcome in words.
type HelpExample struct {
	Code  string `json:"code"`
	Input string `json:"input,omitempty"`
	// Result is JSON; Error is a kind of failure. One of them is set.
	Result string `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Entries gives the rows of a category, or of all where it is empty, and of
// those only the one called name, where that isn't. Faults: invalid_request for
// a category or a name that doesn't exist, with the nearest one that does.
func Entries(category, name string) ([]Entry, *fault.Fault) {
	var found []Entry
	known := category == ""
	for i := range Table {
		r := &Table[i]
		if category != "" && r.Group != category {
			continue
		}
		known = true
		if name == "" || r.Name == name {
			found = append(found, r.entry())
		}
	}
	if !known {
		near := Closest(category, Groups)
		return nil, &fault.Fault{
			Kind:     fault.InvalidRequest,
			Message:  fmt.Sprintf("no category %q", category),
			Expected: "one of " + strings.Join(Groups, ", "),
			Got:      category,
			Near:     near,
			Hint:     "Name one of the categories, or none for all.",
		}
	}
	if len(found) == 0 {
		f := &fault.Fault{
			Kind:    fault.InvalidRequest,
			Message: fmt.Sprintf("no form or primitive %q", name),
			Got:     name,
			Near:    Nearest(name),
			Hint:    Instead(name),
		}
		if category != "" {
			f.Message += fmt.Sprintf(" in category %q", category)
		}
		if f.Hint == "" {
			f.Hint = "Ask for help without a name to see all of them."
			if f.Near != "" {
				f.Hint = fmt.Sprintf("Did you mean %q?", f.Near)
			}
		}
		return nil, f
	}
	return found, nil
}

func (r *Row) entry() Entry {
	e := Entry{Name: r.Name, Group: r.Group, Syntax: r.Spelling(), Result: r.Result.String(), Doc: r.Doc}
	for _, p := range r.Params {
		e.Operands = append(e.Operands, p.Name+": "+p.Kinds.String())
	}
	for _, x := range r.Examples {
		e.Examples = append(e.Examples, HelpExample{x.Code, x.Input, x.Want, string(x.Fault)})
	}
	return e
}

// Help is the text of [Entries]: one line for each row where no name is given,
// all that is known of it where one is. The faults are those of Entries.
func Help(category, name string) (string, *fault.Fault) {
	entries, f := Entries(category, name)
	if f != nil {
		return "", f
	}
	var b strings.Builder
	group := ""
	for _, e := range entries {
		if e.Group != group {
			if group != "" {
				b.WriteByte('\n')
			}
			group = e.Group
			b.WriteString(group + "\n")
		}
		fmt.Fprintf(&b, "  %s  %s %s\n", e.Syntax, e.Name, e.Doc)
		if name == "" && category == "" {
			continue
		}
		if len(e.Operands) > 0 {
			fmt.Fprintf(&b, "    operands %s; result %s\n", strings.Join(e.Operands, ", "), e.Result)
		}
		for _, x := range e.Examples {
			b.WriteString("    " + x.Code)
			if x.Input != "" {
				b.WriteString(" with input " + x.Input)
			}
			if x.Error != "" {
				b.WriteString(" fails: " + x.Error + "\n")
			} else {
				b.WriteString(" → " + x.Result + "\n")
			}
		}
	}
	return b.String(), nil
}
