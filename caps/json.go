package caps

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// structured is a capability's second form. Limits holds options, too; a value
// is a string as in the text, a number for calls, true for what stands alone.
type structured struct {
	Cap    string         `json:"cap"`
	Ops    []string       `json:"ops,omitempty"`
	Limits map[string]any `json:"limits,omitempty"`
	Until  string         `json:"until,omitempty"`
}

// MarshalJSON gives {"cap":"fs:./sandbox","ops":["read"],"limits":{"calls":5},
// "until":"2027-01-01T00:00:00Z"}; the limits have the options too.
func (c Capability) MarshalJSON() ([]byte, error) {
	var head strings.Builder
	c.writeHead(&head, false)
	s := structured{Cap: head.String(), Ops: slices.Sorted(slices.Values(c.Verbs))}
	for _, o := range c.options() {
		if o.name == "until" {
			s.Until = o.value
			continue
		}
		if s.Limits == nil {
			s.Limits = map[string]any{}
		}
		switch {
		case o.name == "calls":
			s.Limits[o.name] = c.Limits.Calls
		case o.value == "":
			s.Limits[o.name] = true
		default:
			s.Limits[o.name] = o.value
		}
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads the structured form, or a string with the text form. It
// knows no kinds: what it gives must go through [Kinds.Check] before it is used.
func (c *Capability) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		var s structured
		if err := statefile.Decode(data, &s); err != nil {
			return fmt.Errorf("capability: %w", err)
		}
		if text, err = s.text(); err != nil {
			return fmt.Errorf("capability: %w", err)
		}
	}
	got, err := parser{text: text}.parse()
	if err != nil {
		return err
	}
	*c = got
	return nil
}

func (s structured) text() (string, error) {
	kind, scope, ok := strings.Cut(s.Cap, ":")
	if strings.ContainsAny(s.Cap, ",") || strings.Contains(kind, ".") {
		return "", errors.New(`"cap" is KIND:SCOPE, or the kind of a server, without verbs and options`)
	}
	if s.Ops != nil && len(s.Ops) == 0 {
		return "", errors.New(`"ops" is empty: leave it out for every verb`)
	}
	var b strings.Builder
	b.WriteString(kind)
	for i, op := range s.Ops {
		if !isWord(op) {
			return "", fmt.Errorf("unknown verb %s", quoted(op))
		}
		b.WriteByte(".,"[min(i, 1)])
		b.WriteString(op)
	}
	if ok {
		b.WriteString(":" + scope)
	}
	for name, v := range s.Limits {
		if name == "until" || strings.ContainsAny(name, ",=") {
			return "", fmt.Errorf("unknown limit %s", quoted(name))
		}
		b.WriteString("," + name)
		switch v := v.(type) {
		case bool:
			if !v {
				return "", fmt.Errorf("%s can't be false: leave it out", quoted(name))
			}
		case json.Number:
			b.WriteString("=" + v.String())
		case string:
			if strings.Contains(v, ",") || v == "" {
				return "", fmt.Errorf("%s can't be %s", quoted(name), quoted(v))
			}
			b.WriteString("=" + v)
		default:
			return "", fmt.Errorf("%s must be a number, a string or true", quoted(name))
		}
	}
	if s.Until != "" {
		if _, err := time.Parse(time.RFC3339, s.Until); err != nil || strings.Contains(s.Until, ",") {
			return "", fmt.Errorf(`"until" can't be %s`, quoted(s.Until))
		}
		b.WriteString(",until=" + s.Until)
	}
	return b.String(), nil
}

// Check gives a capability's canonical form, or says why it has none among
// these kinds.
func (k Kinds) Check(c Capability) (Capability, error) { return Parse(c.String(), k) }
