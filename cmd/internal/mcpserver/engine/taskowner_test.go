package engine

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// ofHost is a node that has the whole name of its host.
type ofHost struct{ Node }

func (ofHost) Name() string { return "a.example" }

// TestOwnerLives has a server whose name has dots, and names that would lead out of the folder.
func TestOwnerLives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o, err := ownTasks(dir, "abc", ofHost{})
	must.NoError(t, err)
	for name, want := range map[string]bool{"abc@a.example": true, "abd@a.example": false, "abc": false, "": false, "../abc@a.example": false, `..\abc`: false} {
		if OwnerLives(dir, name) != want {
			t.Errorf("%q lives: %v", name, !want)
		}
	}
	must.NoError(t, o.close())
	if OwnerLives(dir, "abc@a.example") {
		t.Error("it lives after its end")
	}
}
