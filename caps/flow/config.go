package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// A Config is the member "flow" of a policy file, with what flags add.
type Config struct {
	Sources []SourceConfig  `json:"sources,omitempty"`
	Rules   []RuleConfig    `json:"rules,omitempty"`
	Release []ReleaseConfig `json:"release,omitempty"`
	// Session is "count", "ignore" or {"start":["web"]}.
	Session json.RawMessage `json:"session,omitempty"`
	// Steps is how many steps of a run are followed at most; 0: 5,000,000.
	Steps uint64 `json:"steps,omitempty"`

	// Designate adds the sources and rules of the preset, Report has nothing denied.
	Designate bool `json:"-"`
	Report    bool `json:"-"`
	// Partial is set where not all that is granted is known: then a rule may be about the rest.
	Partial bool `json:"-"`
	// Dir is the folder that relative paths are of, "" for the working directory.
	Dir string `json:"-"`
}

// A SourceConfig names what certain requests give.
type SourceConfig struct {
	Of    string `json:"of"`
	Label words  `json:"label"`
	// Items is a PIF function of the outcome that says where its parts come from.
	Items string `json:"items,omitempty"`
	// Arguments is "ignored" where the answer doesn't depend on what is asked.
	Arguments string `json:"arguments,omitempty"`
	// Trust is "labels" where what a server calls trusted and public in _meta.ifc hasn't the label.
	Trust string `json:"trust,omitempty"`

	place string // that errors name
}

// A RuleConfig says what may not go where.
type RuleConfig struct {
	To       string          `json:"to"`
	Argument json.RawMessage `json:"argument,omitempty"`
	NotFrom  words           `json:"not_from,omitempty"`
	AllOf    words           `json:"all_of,omitempty"`
	By       string          `json:"by,omitempty"`
	Else     string          `json:"else,omitempty"`
	// Except is schemas of results that are shown in spite of a rule to "model", and Bits
	// how much all of them may tell.
	Except []json.RawMessage `json:"except,omitempty"`
	Bits   int               `json:"bits,omitempty"`

	place string
}

// A ReleaseConfig takes labels off what a version of a tool gives.
type ReleaseConfig struct {
	Tool string `json:"tool"` // NAME@sha256:HASH
	From words  `json:"from"`
	To   words  `json:"to"`
}

// words is a list of words, which may be written as one.
type words []string

// UnmarshalJSON reads "a" or ["a","b"].
func (w *words) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil && string(text) != "null" {
		*w = words{one}
		return nil
	}
	var all []string
	if err := json.Unmarshal(text, &all); err != nil || len(all) == 0 {
		return errors.New("write a name, or a list of names")
	}
	*w = all
	return nil
}

// ParseConfig reads the member "flow" of a policy file. Unknown members are errors: a
// rule with a misspelled one would forbid nothing.
func ParseConfig(text []byte) (Config, error) {
	var c Config
	var any map[string]json.RawMessage
	if err := statefile.Decode(text, &any); err != nil || any == nil {
		return c, errors.New(`flow must be {"sources":[{"of":"CAPABILITY","label":"NAME"}],"rules":[{"to":"CAPABILITY","not_from":["NAME"]}]}`)
	}
	if err := decode(text, &c); err != nil {
		return c, fmt.Errorf("flow: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	for i := range c.Sources {
		c.Sources[i].place = fmt.Sprintf("flow.sources[%d]", i)
	}
	for i := range c.Rules {
		c.Rules[i].place = fmt.Sprintf("flow.rules[%d]", i)
	}
	return c, nil
}

// decode reads a part of the policy, of which unknown members are errors.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err != nil && strings.HasPrefix(err.Error(), "json: unknown field") {
		var names []string
		for f := range reflect.TypeOf(into).Elem().Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				names = append(names, name)
			}
		}
		return fmt.Errorf("%w; beside it there are %s", err, conjoin(names, "and"))
	}
	return err
}

// UnmarshalJSON refuses unknown members.
func (c *SourceConfig) UnmarshalJSON(text []byte) error {
	type plain SourceConfig
	return decode(text, (*plain)(c))
}

// UnmarshalJSON refuses unknown members.
func (c *RuleConfig) UnmarshalJSON(text []byte) error {
	type plain RuleConfig
	return decode(text, (*plain)(c))
}

// Label adds a source as the flag --label writes it, NAME=CAPABILITY.
func (c *Config) Label(flag string) error {
	name, of, ok := strings.Cut(flag, "=")
	if !ok || name == "" || of == "" {
		return fmt.Errorf("--label %q: write NAME=CAPABILITY, such as private=fs.read:./private", flag)
	}
	c.Sources = append(c.Sources, SourceConfig{Of: of, Label: words{name}, place: fmt.Sprintf("--label %q", flag)})
	return nil
}

// NoFlow adds a rule as the flag --no-flow writes it, NAME[,NAME…]>CAPABILITY[:ARGUMENT]. What
// follows the last colon is an argument if some operation that is meant has one of the name.
func (c *Config) NoFlow(flag string) error {
	from, to, ok := strings.Cut(flag, ">")
	if !ok || from == "" || to == "" {
		return fmt.Errorf("--no-flow %q: write NAME>CAPABILITY, or NAME>CAPABILITY:ARGUMENT, such as 'private>fetch' or 'mail,web>mail.send:to'", flag)
	}
	c.Rules = append(c.Rules, RuleConfig{To: to, NotFrom: strings.Split(from, ","), place: fmt.Sprintf("--no-flow %q", flag), Argument: json.RawMessage("0")})
	return nil
}

// Preset takes the value of the flag --flow, a list of words.
func (c *Config) Preset(flag string) error {
	for word := range strings.SplitSeq(flag, ",") {
		label, isStart := strings.CutPrefix(word, "start=")
		switch {
		case word == "designate":
			c.Designate = true
		case word == "report":
			c.Report = true
		case word != "count" && !isStart:
			return fmt.Errorf("--flow is designate, report, start=LABEL, count, or several with commas, not %q", word)
		case c.Session != nil:
			return fmt.Errorf("--flow %s: it is said already what the model has seen from the start: %s", flag, c.Session)
		case isStart:
			c.Session, _ = json.Marshal(map[string][]string{"start": {label}}) // texts
		default:
			c.Session = json.RawMessage(`"count"`)
		}
	}
	return nil
}

// Empty reports whether nothing is said of flow.
func (c *Config) Empty() bool {
	return len(c.Sources)+len(c.Rules) == 0 && !c.Designate && c.Session == nil
}
