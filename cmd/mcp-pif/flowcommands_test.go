package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestForget: nothing is forgotten that isn't on record, and what is on record and stays is told.
func TestForget(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "flow.json")
	must.NoError(t, os.WriteFile(path, []byte(`{"label":["a","b"]}`), 0o600))
	s, err := flow.NewSession(path, nil)
	must.NoError(t, err)
	var all []string
	full := errors.New("the disk is full")
	record := func(text []byte) error {
		all = append(all, string(text))
		return full
	}
	state, err := s.State()
	must.NoError(t, err)
	if err := forget(s, state, record); !errors.Is(err, full) {
		t.Error(err)
	}
	if now, err := s.State(); err != nil || now.Empty() {
		t.Errorf("it is forgotten and isn't on record: %v", err)
	}
	full = nil
	if err := forget(s, flow.SessionState{Label: []string{"a"}}, record); !errors.Is(err, flow.ErrMore) {
		t.Error(err)
	}
	must.NoError(t, forget(s, state, record))
	if now, err := s.State(); err != nil || !now.Empty() {
		t.Errorf("%v stays: %v", now, err)
	}
	if want := []string{`{"label":["a","b"]}`, `{"label":["a"]}`, `{"only":true}`, `{"label":["a","b"]}`}; !slices.Equal(all, want) {
		t.Errorf("on record are %q", all)
	}
}
