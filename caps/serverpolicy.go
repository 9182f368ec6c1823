package caps

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// A ServerPolicy is what the operator says of an MCP server of the lock: what its process gets
// and reaches, how its sessions are kept, and what its tools may be asked. Models choose none of
// it.
type ServerPolicy struct {
	// Env is the variables of its process, Headers those of each request to its URL.
	Env     map[string]ServerValue `json:"env"`
	Headers map[string]ServerValue `json:"headers"`
	// Dir is where its process runs; Read and Write are what it reaches besides, as in [Command].
	Dir   string   `json:"dir"`
	Read  []string `json:"read"`
	Write []string `json:"write"`
	// Network is the origins that its process may connect to, or "any" alone.
	Network ServerNetwork `json:"network"`
	// Elicit lets it ask the user, if a tool that calls it may ask as well.
	Elicit bool `json:"elicit"`
	// Session is who shares a session with it: the tools of a "principal", which is the
	// default, or nobody beyond a "run".
	Session string `json:"session"`
	// Concurrent is how many calls it gets at once; 0: the plugin's default.
	Concurrent int `json:"concurrent"`
	// Idle is how long a session lasts that is asked nothing, such as 10m; "": the plugin's
	// default.
	Idle string `json:"idle"`
	// Shared lets every principal use the same login.
	Shared bool `json:"shared"`
	// Tools is what is said of single tools, by word; nil: the tool is removed.
	Tools map[string]*ToolPolicy `json:"tools"`
}

// A ToolPolicy is what the operator says of one tool of a server.
type ToolPolicy struct {
	// Doc replaces the server's own words.
	Doc string `json:"doc"`
	// Input is the schema that arguments have to meet besides the server's own; a call that
	// doesn't is denied.
	Input json.RawMessage `json:"input"`
	// Designates is the arguments that say what is acted on.
	Designates []string `json:"designates"`
}

// A ServerValue is the value of a variable or a header: a text, or the name of a secret of the
// operator's.
type ServerValue struct{ Text, Secret string }

// UnmarshalJSON reads "TEXT" or {"secret":"NAME"}.
func (v *ServerValue) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &v.Text) == nil && raw[0] == '"' {
		return nil
	}
	var named struct {
		Secret string `json:"secret"`
	}
	if err := statefile.Decode(raw, &named); err != nil || named.Secret == "" {
		return errors.New(`a value is "TEXT" or {"secret":"NAME"}`)
	}
	v.Secret = named.Secret
	return nil
}

// MarshalJSON is the form that UnmarshalJSON reads.
func (v ServerValue) MarshalJSON() ([]byte, error) {
	if v.Secret != "" {
		return json.Marshal(map[string]string{"secret": v.Secret})
	}
	return json.Marshal(v.Text)
}

// A ServerNetwork is a list of origins, or "any" alone.
type ServerNetwork []string

// AnyNetwork is the word for connections to anywhere.
const AnyNetwork = "any"

// UnmarshalJSON reads "any" or a list of origins.
func (n *ServerNetwork) UnmarshalJSON(raw []byte) error {
	if string(raw) == `"any"` {
		*n = ServerNetwork{AnyNetwork}
		return nil
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		return errors.New(`network is "any" or a list of origins`)
	}
	*n = list
	return nil
}

// ParseServer reads what a policy file says of one server. An unknown or duplicate key is an
// error, since a misspelled restriction would restrict nothing.
func ParseServer(text []byte) (*ServerPolicy, error) {
	var p *ServerPolicy
	if err := statefile.Decode(text, &p); err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errors.New(`write {"env":{"NAME":{"secret":"SECRET"}},"read":["./dir"]}`)
	}
	return p, p.check()
}

func (p *ServerPolicy) check() error {
	for _, origin := range p.Network {
		u, err := url.Parse(origin)
		if origin == AnyNetwork && len(p.Network) == 1 {
			continue
		}
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf(`network: %s is no origin, such as https://api.example.com`, quoted(origin))
		}
	}
	if p.Session != "" && p.Session != "principal" && p.Session != "run" {
		return fmt.Errorf("session is principal or run, not %s", quoted(p.Session))
	}
	if p.Concurrent < 0 || p.Concurrent > 256 {
		return fmt.Errorf("concurrent is %d: 1 to 256", p.Concurrent)
	}
	if d, err := time.ParseDuration(p.Idle); p.Idle != "" && (err != nil || d <= 0) {
		return fmt.Errorf("idle is %s: a time such as 10m", quoted(p.Idle))
	}
	for name := range p.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("env has the variable %s", quoted(name))
		}
	}
	for name := range p.Headers {
		if !isName(name) {
			return fmt.Errorf("headers has the header %s", quoted(name))
		}
	}
	for _, word := range slices.Sorted(maps.Keys(p.Tools)) {
		if !isWord(word) {
			return fmt.Errorf("tools has %s, which is no operation's word", quoted(word))
		}
	}
	return nil
}
