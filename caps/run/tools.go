package run

import (
	"encoding/json"
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
)

// Blobs is a journal that keeps large texts beside its events.
type Blobs interface {
	Blob(journal.Hash) ([]byte, error)
}

// evolved is the data of an event of kind tool.evolved.
type evolved struct {
	Tool        string
	Version     int
	Hash        string
	Declared    []string
	Source      json.RawMessage // a string, or the digest of a blob
	Form        string
	Description string
	Bound       []struct {
		Tool    string
		Version int
	}
}

// Tools makes the tools that a journal tells of. What they may do is decided
// anew. The errors of the second kind are of single tools, which are left out.
func Tools(j journal.Journal, policy *caps.Policy) (*registry.Snapshot, []error, error) {
	events, _, err := j.Read(journal.Query{Kind: "tool"})
	if err != nil {
		return nil, nil, err
	}
	var versions []registry.Stored
	for i := range events {
		if events[i].Kind != journal.ToolEvolved {
			continue
		}
		v, err := stored(j, &events[i])
		if err != nil {
			return nil, nil, fmt.Errorf("event %d of the journal: %w", events[i].Seq, err)
		}
		versions = append(versions, v)
	}
	s, problems := registry.Restore(versions, policy)
	return s, problems, nil
}

func stored(j journal.Journal, e *journal.Event) (v registry.Stored, err error) {
	var data evolved
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return v, err
	}
	v.Name, v.Version, v.Hash, v.Capabilities = data.Tool, data.Version, data.Hash, data.Declared
	v.Description, v.Text = data.Description, data.Form == "text"
	for _, b := range data.Bound {
		v.Bound = append(v.Bound, registry.Ref{Name: b.Tool, Version: b.Version})
	}
	var text string
	if json.Unmarshal(data.Source, &text) == nil {
		v.Code = []byte(text)
		return v, nil
	}
	var digest struct{ Sha256 journal.Hash }
	if err := json.Unmarshal(data.Source, &digest); err != nil {
		return v, err
	}
	blobs, ok := j.(Blobs)
	if !ok {
		return v, fmt.Errorf("the source of %q is not kept", data.Tool)
	}
	v.Code, err = blobs.Blob(digest.Sha256)
	return v, err
}
