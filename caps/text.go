package caps

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A TextError says what is wrong with a capability's text, and where.
type TextError struct {
	Text    string
	At      int // bytes from the beginning of Text
	Message string
	Hint    string // an imperative sentence, or empty
}

// Error gives the text, what is wrong and what to do.
func (e *TextError) Error() string {
	if e.At == 0 {
		return fmt.Sprintf("capability %s: %s", quoted(e.Text), e.Said())
	}
	return fmt.Sprintf("capability %s: at %d: %s", quoted(e.Text), e.At, e.Said())
}

// Said gives what is wrong and what to do, without the text.
func (e *TextError) Said() string {
	switch {
	case e.Hint == "":
		return e.Message
	case strings.HasSuffix(e.Message, "?"):
		return e.Message + " " + e.Hint
	}
	return e.Message + ". " + e.Hint
}

// Parse reads a capability in any of its spellings,
// KIND[.VERB[,VERB…]]:SCOPE[,OPTION[=VALUE]]…, and gives the canonical one. What
// the kind's manifest doesn't have is an error, a [*TextError], never ignored. The
// kind of an MCP server has no scope, and a verb of it may end in a star, for those
// that there are now.
func Parse(text string, kinds Kinds) (Capability, error) {
	return parser{text: text, kinds: kinds, strict: true}.parse()
}

// ParsePattern is [Parse] for what takes away: verbs that end in a star stay, and so
// have those that there will be later.
func ParsePattern(text string, kinds Kinds) (Capability, error) {
	return parser{text: text, kinds: kinds, strict: true, patterns: true}.parse()
}

// A parser reads one text. Without strict it takes any kind and leaves verbs
// and options as they are.
type parser struct {
	text     string
	kinds    Kinds
	strict   bool
	patterns bool // a verb with a star isn't replaced by those that it means
	manifest *Manifest
}

func (p parser) fail(at int, hint, format string, a ...any) error {
	return &TextError{Text: p.text, At: at, Message: fmt.Sprintf(format, a...), Hint: hint}
}

// maxText bounds a text: a scope of the largest size, all of it encoded.
const maxText = 4 * maxScope

// completed is a text that leaves out the one scope that its kind has, or the name main where
// any name does and nothing is taken away, with the scope; "": it isn't one.
func (p parser) completed() string {
	head, options, more := strings.Cut(p.text, ",")
	m := p.manifest
	if m == nil {
		return ""
	}
	only := m.Only
	if what, _ := m.scopeWords(); what == "" && m.Algebra == Exact && len(m.Privileges) == 0 && !p.patterns {
		only = "main"
	}
	if only == "" {
		return ""
	}
	if more {
		options = "," + options
	}
	return head + ":" + only + options
}

func (p parser) parse() (Capability, error) {
	var c Capability
	if len(p.text) > maxText {
		return c, p.fail(maxText, "", "it has more than %d bytes", maxText)
	}
	kind := p.text[:strings.IndexAny(p.text+":", ".:,")]
	if !isWord(kind) {
		return c, p.fail(0, "", "a kind is lower-case letters, digits and dashes, not %s", quoted(kind))
	}
	c.Kind = kind
	m, known := p.kinds.Manifest(kind)
	if p.strict {
		if p.manifest = m; !known {
			if name, verbs, isMCP := strings.Cut(strings.TrimPrefix(p.text, "mcp:"), "/"); kind == "mcp" && p.kinds.isServer(name) {
				if isMCP {
					name += "." + verbs
				}
				return c, p.fail(0, "Write "+name+".", "an MCP server is a kind by its own name")
			}
			return c, p.fail(0, "Known kinds: "+strings.Join(p.kinds.names(), ", ")+"; an MCP server is one once 'mcp-pif mcp add' added it.", "unknown kind %s%s", kind, closest(kind, p.kinds.names()))
		}
	}
	head, tail, ok := strings.Cut(p.text, ":")
	if whole := p.completed(); !ok && whole != "" {
		head, tail, ok = strings.Cut(whole, ":")
	}
	scoped := true
	if p.strict && m.Server != "" || !p.strict && (!ok || strings.Contains(head, "=")) {
		head, tail = p.unscoped()
		scoped = false
		if name, _, _ := strings.Cut(head, "."); name != kind {
			return c, p.fail(len(kind), "Write "+kind+", or "+kind+".NAME for one operation.", "%s is a server, which has no scope", kind)
		}
	} else if !ok {
		return c, p.fail(len(p.text), p.manifest.scopeHint(p.text), "the colon before the scope is missing")
	}
	if _, verbs, dotted := strings.Cut(head, "."); dotted {
		var err error
		if c.Verbs, err = p.verbs(verbs, len(kind)+1); err != nil {
			return c, err
		}
	}
	parts := strings.Split(tail, ",")
	at := len(head) + 1
	if scoped {
		if err := p.scope(&c, parts[0], at); err != nil {
			return c, err
		}
	}
	seen := map[string]bool{}
	for i, part := range parts[1:] {
		at += len(parts[i]) + 1
		name, value, valued := strings.Cut(part, "=")
		if seen[name] {
			return c, p.fail(at, "", "duplicate option %s", quoted(name))
		}
		seen[name] = true
		if err := p.option(&c, name, value, valued); err != nil {
			return c, p.fail(at, "", "%v", err)
		}
	}
	return c, p.narrow(&c)
}

// unscoped takes a text without a scope apart: what stands before the options, and
// those, after a comma.
func (p parser) unscoped() (head, options string) {
	head, rest, more := strings.Cut(p.text, ",")
	for more && strings.Contains(head, ".") {
		word, after, another := strings.Cut(rest, ",")
		if word == optionRO || strings.Contains(word, "=") {
			break
		}
		head, rest, more = head+","+word, after, another
	}
	if more {
		options = "," + rest
	}
	return head, options
}

func (p parser) verbs(list string, at int) ([]string, error) {
	words := strings.Split(list, ",")
	var verbs []string
	for i, v := range words {
		prefix, star := strings.CutSuffix(v, "*")
		star = star && (!p.strict || p.manifest.Server != "")
		if !isWord(v) && !(star && (prefix == "" || isWord(prefix))) {
			return nil, p.fail(at, "", "unknown verb %s", quoted(v))
		}
		if slices.Contains(words[:i], v) {
			return nil, p.fail(at, "", "duplicate verb %s", v)
		}
		meant := []string{v}
		if p.strict && !(star && p.patterns) {
			if meant = permitted(&Capability{Verbs: meant}, p.manifest); len(meant) == 0 {
				return nil, p.fail(at, p.manifest.verbList(), "the kind %s has no verb %s%s", p.manifest.Kind, v, closest(v, p.manifest.verbNames()))
			}
		}
		verbs = append(verbs, meant...)
		at += len(v) + 1
	}
	slices.Sort(verbs)
	return slices.Compact(verbs), nil
}

// verbList is a sentence.
func (m *Manifest) verbList() string {
	if len(m.Verbs) == 0 {
		return "Write " + m.Kind + ":SCOPE."
	}
	const most = 40
	names := m.verbNames()
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return "Its verbs: " + strings.Join(names, ", ") + "."
}

// verbNames returns the names of the kind's verbs.
func (m *Manifest) verbNames() []string {
	names := make([]string, len(m.Verbs))
	for i, v := range m.Verbs {
		names[i] = v.Name
	}
	return names
}

// closest asks whether a name of the list was meant; "" if none is near.
func closest(name string, names []string) string {
	near := prim.Closest(name, names)
	for _, same := range [][]string{{"put", "write", "set", "save", "store"}, {"get", "read", "load"}, {"delete", "remove", "del"}} {
		if i := slices.IndexFunc(names, func(n string) bool { return slices.Contains(same, n) }); i >= 0 && slices.Contains(same, name) {
			near = names[i]
		}
	}
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// scope reads [NAME=]SCOPE.
func (p parser) scope(c *Capability, s string, at int) error {
	if name, rest, ok := strings.Cut(s, "="); ok && (isName(name) || name == "") {
		if p.strict && p.manifest.Algebra != Path {
			return p.fail(at, "Write %3D for a = in a scope.", "only paths can be given names")
		}
		if name == "" {
			return p.fail(at, "Write NAME=PATH, or %3D for a = in a path.", "the name before = is missing")
		}
		c.Name, s = name, rest
		at += len(name) + 1
	}
	algebra := Algebra("")
	if p.strict {
		algebra = p.manifest.Algebra
	} else if likeURL(s) {
		algebra = URL
	}
	if algebra != URL {
		var err error
		if s, err = decode(s); err != nil {
			return p.fail(at, "", "%v", err)
		}
	} else if strings.ContainsFunc(s, invisible) {
		return p.fail(at, "Write it percent-encoded.", "the scope has a character that can't be seen")
	}
	if algebra == "" {
		if s == "" || len(s) > maxScope || plainText(s) != nil {
			return p.fail(at, "", "the scope is empty, too long or has control characters")
		}
		c.Scope = s
		return nil
	}
	canonical, err := algebra.Canonical(s)
	if err != nil {
		return p.fail(at, p.manifest.scopeHint(p.text), "%s", scopeRefused(err))
	}
	if m := p.manifest; m != nil && m.Only != "" && canonical != m.Only {
		return p.fail(at, "Write "+m.Kind+":"+m.Only+".", "%s has one scope, which is %s", m.Kind, m.Only)
	}
	c.Scope = canonical
	return nil
}

// scopeRefused is what is wrong with a scope, with the scope as what it is about.
func scopeRefused(err error) string {
	if said := err.Error(); strings.HasPrefix(said, "the scope ") {
		return said
	}
	return "the scope is refused: " + err.Error()
}

// narrow brings verbs and ro to one spelling.
func (p parser) narrow(c *Capability) error {
	if _, ro := c.Options[optionRO]; !ro || c.Verbs == nil || !p.strict {
		return nil
	}
	c.Verbs = slices.DeleteFunc(c.Verbs, func(v string) bool {
		verb, _ := p.manifest.Verb(v)
		return !verb.ReadOnly
	})
	if len(c.Verbs) == 0 {
		hint := ""
		if p.manifest.Server != "" {
			hint = "Take the server's word for what only reads with mcp-pif mcp accept " + c.Kind + "."
		}
		return p.fail(0, hint, "ro leaves none of the verbs")
	}
	delete(c.Options, optionRO)
	if len(c.Options) == 0 {
		c.Options = nil
	}
	return nil
}

// isName tells the names that operators give to paths.
func isName(s string) bool {
	return isSecretName(s) && s[0] != '-' && s[0] != '.'
}

// decode undoes the percent-encoding of a scope.
func decode(s string) (string, error) {
	if strings.ContainsFunc(s, invisible) {
		return "", errors.New("spaces and characters that can't be seen are percent-encoded: %20")
	}
	if !strings.Contains(s, "%") {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) || unhex(s[i+1]) < 0 || unhex(s[i+2]) < 0 {
			return "", errors.New("a percent sign in a scope is written %25")
		}
		b.WriteByte(byte(unhex(s[i+1])<<4 | unhex(s[i+2])))
		i += 2
	}
	return b.String(), nil
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// invisible tells the characters that are percent-encoded because a reader
// would not see them, or not see where they stand.
func invisible(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }

// encode writes a scope so that it is one word of a text.
func encode(b *strings.Builder, s string, named bool) {
	eq := -1
	if before, _, ok := strings.Cut(s, "="); ok && !named && (before == "" || isName(before)) {
		eq = len(before)
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == ',' || r == '%' || i == eq || invisible(r) || r == utf8.RuneError {
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(b, "%%%02X", c)
			}
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
}

// String is the canonical text. For a capability that wasn't parsed it is a
// text that says the same where there is one.
func (c Capability) String() string {
	var b strings.Builder
	c.writeHead(&b, true)
	for _, o := range c.options() {
		b.WriteByte(',')
		b.WriteString(o.name)
		if o.value != "" {
			b.WriteByte('=')
			b.WriteString(o.value)
		}
	}
	return b.String()
}

// writeHead writes what stands before the options.
func (c Capability) writeHead(b *strings.Builder, verbs bool) {
	b.WriteString(c.Kind)
	if verbs && c.Verbs != nil {
		sorted := slices.Clone(c.Verbs)
		slices.Sort(sorted)
		b.WriteByte('.')
		b.WriteString(strings.Join(sorted, ","))
	}
	if c.Scope == "" {
		return
	}
	b.WriteByte(':')
	if c.Name != "" {
		b.WriteString(c.Name)
		b.WriteByte('=')
	}
	encode(b, c.Scope, c.Name != "")
}

// An option is one word after the scope; value is empty for those that stand
// alone.
type option struct{ name, value string }

// options is all of them in the canonical order: ro, the kind's own by name,
// then limits and until.
func (c Capability) options() []option {
	var list []option
	for _, name := range slices.SortedFunc(maps.Keys(c.Options), func(a, b string) int {
		return cmp.Or(cmp.Compare(btoi(a != optionRO), btoi(b != optionRO)), strings.Compare(a, b))
	}) {
		list = append(list, option{name, c.Options[name]})
	}
	l := c.Limits
	if l.Calls != 0 {
		list = append(list, option{"calls", fmt.Sprint(l.Calls)})
	}
	if l.Bytes != 0 {
		list = append(list, option{"bytes", formatSize(l.Bytes)})
	}
	if l.Max != 0 {
		list = append(list, option{"max", formatSize(l.Max)})
	}
	if l.Rate != (Rate{}) {
		list = append(list, option{"rate", l.Rate.String()})
	}
	if l.Timeout != 0 {
		list = append(list, option{"timeout", formatDuration(l.Timeout)})
	}
	if !c.Until.IsZero() {
		list = append(list, option{"until", c.Until.UTC().Format(time.RFC3339Nano)})
	}
	return list
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

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
