package mcplock

import (
	"encoding/json"
	"maps"
	"slices"
)

// A Difference is how what a server lists now differs from what was accepted. A tool that
// isn't in it is as it was accepted.
type Difference struct {
	// Held is the tools that may not be called until the operator accepts the change, by word.
	Held map[string]Held
	// Gone is the words of the tools that aren't listed any more.
	Gone []string
	// Added is the tools that don't exist for programs, in the order of the list.
	Added []Added
}

// Held is why a tool is held.
type Held struct {
	Words bool // only title and description differ
	Twice bool // the list has the name more than once
	Now   json.RawMessage
}

// An Added tool is one that was never accepted.
type Added struct {
	Tool    string // name on the wire, a stranger's text
	Renamed string // the word of the tool that is gone and differs in its name alone; "": none
	Now     json.RawMessage
}

// Same reports whether nothing differs.
func (d *Difference) Same() bool { return len(d.Held)+len(d.Gone)+len(d.Added) == 0 }

// Compare holds a server's list of tools to what was accepted. What can't be read is no tool:
// one that was accepted is gone then.
func Compare(accepted *Server, listed []json.RawMessage) Difference {
	d := Difference{Held: map[string]Held{}}
	words := make(map[string]string, len(accepted.Tools)) // by name on the wire
	for word, t := range accepted.Tools {
		words[t.Tool] = word
	}
	seen := map[string]bool{}
	var added []definition
	for _, raw := range listed {
		now, err := define(raw)
		name := now.name()
		if err != nil || name == "" {
			continue
		}
		word, known := words[name]
		t := accepted.Tools[word]
		switch {
		case !known && now.isTask(): // it is left out, whenever it comes
		case !known:
			added = append(added, now)
			d.Added = append(d.Added, Added{Tool: name, Now: raw})
		case seen[word]:
			d.Held[word] = Held{Twice: true, Now: raw}
		case !now.is(t.Hash):
			words := now.with("title", t.Title).with("description", t.Description)
			d.Held[word] = Held{Words: words.is(t.Hash), Now: raw}
		}
		seen[word] = known
	}
	for _, word := range slices.Sorted(maps.Keys(accepted.Tools)) {
		if seen[word] {
			continue
		}
		d.Gone = append(d.Gone, word)
		t := accepted.Tools[word]
		for i, now := range added {
			if d.Added[i].Renamed == "" && now.with("name", t.Tool).is(t.Hash) {
				d.Added[i].Renamed = word
				break
			}
		}
	}
	return d
}

// is reports whether the definition has a hash.
func (d definition) is(want string) bool {
	got, err := d.hash()
	return err == nil && got == want
}
