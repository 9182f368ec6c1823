package statefile_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestChangeInCluster: the files of a state directory and of the profiles in it are changed by the node of the machine,
// whatever the folders above are called; others are this machine's.
func TestChangeInCluster(t *testing.T) {
	t.Parallel()
	sockets, err := os.MkdirTemp("", "s") // short enough for a socket's path
	must.NoError(t, err)
	defer os.RemoveAll(sockets)
	socket := filepath.Join(sockets, "s")
	l, err := net.Listen("unix", socket)
	must.NoError(t, err)
	asked := make(chan string, 10)
	var first time.Time
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var change statefile.Replacement
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
		if first.IsZero() {
			first = time.Now()
		}
		if time.Since(first) < 100*time.Millisecond { // the machine's file isn't what the cluster has yet
			w.WriteHeader(http.StatusConflict)
			return
		}
		asked <- change.Name
		_, _ = w.Write([]byte("null"))
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		must.NoError(t, server.Close())
		wait.For(t, served, "the end of the server")
	}()
	for _, state := range []string{"mcp-pif", "profiles/mcp-pif", "profiles/a/mcp-pif"} {
		state = filepath.Join(t.TempDir(), state)
		must.NoError(t, statefile.WriteCluster(state, statefile.Cluster{Order: "dev", Node: "n", Socket: socket}))
		for name, shared := range map[string]bool{
			"revoked.json": true, "profiles/p/flow.json": true, "profiles/p/tasks/schedules.json": true, "stores/p/tasks/schedules.json": false,
		} {
			path := filepath.Join(state, name)
			must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must.NoError(t, statefile.Change(path, func([]byte) ([]byte, error) { return []byte("{}"), nil }))
			got := ""
			select {
			case got = <-asked:
			default:
			}
			if _, err := os.Stat(path); shared != (got == name) || shared != os.IsNotExist(err) {
				t.Errorf("%s: the node was asked for %q, %v", path, got, err)
			}
		}
	}
}

// TestDecodeEnd: a document ends where it ends; what comes after it, as after one closing bracket too many, would be a
// restriction that isn't read.
func TestDecodeEnd(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"grant":["fs:./work"]}}, "deny":["fs.write:./work"]}`, `{}]`, `{} {}`, `{} x`} {
		var keys map[string]json.RawMessage
		if err := statefile.Decode([]byte(text), &keys); err == nil {
			t.Errorf("%s is read as %s", text, keys)
		}
	}
	var keys map[string]json.RawMessage
	if err := statefile.Decode([]byte("{\n \"deny\": [\n"), &keys); err == nil || !strings.HasPrefix(err.Error(), "line 2, column 11: ") {
		t.Errorf("of a document that is cut short: %v", err)
	}
	must.NoError(t, statefile.Decode([]byte(" {\"deny\": []}\n\n"), &keys))
}
