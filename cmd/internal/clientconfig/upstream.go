package clientconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An Upstream is what an entry of a client says of another MCP server: how it is started or
// where it is.
type Upstream struct {
	Command []string // the program and its arguments; nil: it is at URL
	Dir     string
	Env     map[string]string
	URL     string
	Headers map[string]string
	Off     bool // the client doesn't start it
}

// The members of entries. The clients that have them differ in their names alone.
var (
	variableMembers = []string{"env", "envs", "environment"}
	headerMembers   = []string{"headers", "http_headers"}
	urlMembers      = []string{"url", "serverUrl", "httpUrl", "uri"}
	// skippedMembers change nothing of what is started: what the client shows, allows and
	// waits for.
	skippedMembers = []string{
		"type", "transportType", "transport", "name", "display_name", "description", "timeout", "bundled", "source", "available_tools", "alwaysAllow", "autoApprove",
		"trust", "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "gallery", "version", "dev",
	}
)

// ReadUpstream reads an entry of any client. It refuses members that it doesn't know, and
// values that the client would fill in: what isn't understood isn't what the client starts.
func ReadUpstream(entry json.RawMessage) (*Upstream, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(entry, &members); err != nil {
		return nil, fmt.Errorf("its entry is no object")
	}
	u := &Upstream{Command: Command(entry), Env: map[string]string{}, Headers: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var into any
		switch raw := members[name]; {
		case string(raw) == "null", slices.Contains(skippedMembers, name) && string(raw) != `"sse"`, name == "command", name == "cmd", name == "args":
			continue
		case slices.Contains(variableMembers, name):
			into = &u.Env
		case slices.Contains(headerMembers, name):
			into = &u.Headers
		case slices.Contains(urlMembers, name):
			into = &u.URL
		case name == "cwd":
			into = &u.Dir
		case name == "disabled":
			into = &u.Off
		case name == "enabled":
			u.Off = string(raw) != "true"
			continue
		case name == "env_keys" && string(raw) == "[]": // Goose's keyring: nothing is there
			continue
		default:
			return nil, fmt.Errorf("its entry has the member %q, which isn't understood here", name)
		}
		if err := json.Unmarshal(members[name], into); err != nil {
			return nil, fmt.Errorf("the member %q of its entry isn't of the type that is known", name)
		}
	}
	if (len(u.Command) > 0) == (u.URL != "") {
		return nil, fmt.Errorf("its entry has no command and no URL, or both")
	}
	for _, text := range slices.Concat(u.Command, []string{u.Dir, u.URL}, slices.Collect(maps.Values(u.Env)), slices.Collect(maps.Values(u.Headers))) {
		if p := placeholder(text); p != "" {
			return nil, fmt.Errorf("it has %q, which the client fills in", p)
		}
	}
	return u, nil
}

// placeholder returns the first part of a text that a client would fill in, such as ${NAME};
// "": there is none.
func placeholder(text string) string {
	for _, ends := range [][2]string{{"${", "}"}, {"{env:", "}"}, {"{file:", "}"}} {
		if _, rest, ok := strings.Cut(text, ends[0]); ok {
			if inside, _, ok := strings.Cut(rest, ends[1]); ok {
				return ends[0] + inside + ends[1]
			}
		}
	}
	return ""
}
