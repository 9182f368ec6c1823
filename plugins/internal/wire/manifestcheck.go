package wire

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/display"
)

// The bounds of a manifest. A plugin may be somebody else's: what it says of
// itself is shown to people and models, and kept in memory.
const (
	maxOperations = 128
	maxVerbs      = 64
	maxParams     = 32
	maxOptions    = 16
	maxWords      = 64   // values of an option or an argument
	maxDoc        = 2000 // bytes of a sentence
	maxVersion    = 64
	maxPrivileges = 16
)

var (
	kindName      = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	verbName      = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
	operationName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)
	paramName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,47}$`)
	word          = regexp.MustCompile(`^[A-Za-z0-9._+-]{1,64}$`)
	versionText   = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]*$`)
)

// ofHost is the options that belong to the host, whatever the kind.
var ofHost = []string{"calls", "bytes", "rate", "timeout", "until", "max"}

// secretTypes is the types of arguments in which a secret can be named.
var secretTypes = []string{"any", "record", "list"}

var paramTypes = []string{"int", "bool", "string", "list", "record", "any"}

// CheckManifest says all that is wrong with a manifest, or nil: names outside
// their alphabets, too many or too long parts, verbs and arguments that are
// named and don't exist. The kind of an MCP server is made by the host, of a lock that
// bounds it, and may have a stranger's words: it needs to be one that can be decided.
func CheckManifest(m *caps.Manifest) error {
	if m.Server != "" {
		return m.Check()
	}
	c := &checker{}
	c.that(kindName.MatchString(m.Kind) && m.Kind != "call", "kind %q: a lower-case word other than call", clip(m.Kind))
	c.that(len(m.Version) <= maxVersion && versionText.MatchString(m.Version), "version %q: something like 1.0.0", clip(m.Version))
	c.doc("its doc", m.Doc, true)
	c.that(slices.Contains([]caps.Algebra{caps.Path, caps.URL, caps.Segments, caps.Exact}, m.Algebra), "scope algebra %q: path, url, segments or exact", clip(string(m.Algebra)))
	c.options(m)
	c.privileges(m)
	c.that(len(m.Verbs) >= 1 && len(m.Verbs) <= maxVerbs, "%d verbs: 1 to %d", len(m.Verbs), maxVerbs)
	for i, v := range m.Verbs {
		c.that(verbName.MatchString(v.Name), "verb %q: a lower-case word", clip(v.Name))
		c.that(!slices.ContainsFunc(m.Verbs[:i], func(o caps.Verb) bool { return o.Name == v.Name }), "verb %q twice", clip(v.Name))
		c.that(!v.ReadOnly || !v.Destructive, "verb %q is both read-only and destructive", clip(v.Name))
	}
	c.that(len(m.Operations) >= 1 && len(m.Operations) <= maxOperations, "%d operations: 1 to %d", len(m.Operations), maxOperations)
	for i := range m.Operations {
		o := &m.Operations[i]
		c.that(!slices.ContainsFunc(m.Operations[:i], func(e caps.Operation) bool { return e.Name == o.Name }), "operation %q twice", clip(o.Name))
		c.operation(m, o)
		if len(c.wrong) > 20 {
			break
		}
	}
	return errors.Join(c.wrong...)
}

// A checker collects what is wrong.
type checker struct{ wrong []error }

func (c *checker) that(ok bool, format string, args ...any) {
	if !ok {
		c.wrong = append(c.wrong, fmt.Errorf(format, args...))
	}
}

// doc checks a text that is shown.
func (c *checker) doc(what, s string, needed bool) {
	c.that(!needed || strings.TrimSpace(s) != "", "%s is missing", what)
	c.that(len(s) <= maxDoc, "%s has %d bytes, at most %d", what, len(s), maxDoc)
	bad := func(r rune) bool {
		return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
	}
	c.that(utf8.ValidString(s) && strings.IndexFunc(s, bad) < 0, "%s holds control characters or isn't UTF-8", what)
}

func (c *checker) options(m *caps.Manifest) {
	c.that(len(m.Options) <= maxOptions, "%d options: at most %d", len(m.Options), maxOptions)
	for name, values := range m.Options {
		c.that(kindName.MatchString(name), "option %q: a lower-case word", clip(name))
		c.that(!slices.Contains(ofHost, name), "option %q is the host's", clip(name))
		c.that(len(values) <= maxWords, "option %q has %d values, at most %d", clip(name), len(values), maxWords)
		for _, v := range values {
			c.that(word.MatchString(v), "option %q: its value %q", clip(name), clip(v))
		}
		if len(c.wrong) > 20 {
			return
		}
	}
}

// The privileges by which a process gets something of the host's.
const (
	PrivilegeState    = "state"    // a folder that lasts
	PrivilegeVariable = "variable" // the environment variable that its grant names
	PrivilegeCommand  = "command"  // what the operator maps its grant's name to
)

// privileges checks what is asked of the system. A file's path is absolute and
// clean, so that a person reads where it leads.
func (c *checker) privileges(m *caps.Manifest) {
	all := m.Privileges
	c.that(len(all) <= maxPrivileges, "%d privileges: at most %d", len(all), maxPrivileges)
	for i, p := range all {
		file, isFile := strings.CutPrefix(p, "files:")
		ok := p == "network" || p == "processes" || p == PrivilegeState || p == PrivilegeVariable || p == PrivilegeCommand ||
			isFile && path.IsAbs(file) && path.Clean(file) == file && file != "/" && len(file) <= 1024
		c.that(ok, "privilege %q: network, processes, state, variable, command or files:/PATH", clip(p))
		c.that(p != PrivilegeVariable && p != PrivilegeCommand || m.Algebra == caps.Exact, "privilege %s: its scopes name one each, so they are exact", p)
		c.that(!slices.Contains(all[:i], p), "privilege %q twice", clip(p))
		c.doc("a privilege", p, true)
		if len(c.wrong) > 20 {
			return
		}
	}
}

func (c *checker) operation(m *caps.Manifest, o *caps.Operation) {
	kind, name, _ := strings.Cut(o.Name, ".")
	at := "operation " + clip(o.Name)
	c.that(kind == m.Kind && operationName.MatchString(name), "%s: its name is %s, a dot and a lower-case word", at, clip(m.Kind))
	c.doc("the doc of "+at, o.Doc, true)
	c.doc("the result of "+at, o.Result, true)
	if o.Type != nil {
		err := o.Type.Answerable()
		c.that(err == nil, "%s: the type of its answer: %v", at, err)
		c.doc("the type of the answer of "+at, o.Type.String(), true)
	}
	_, known := m.Verb(o.Verb)
	c.that(known, "%s: there is no verb %q", at, clip(o.Verb))
	c.that(len(o.Params) <= maxParams, "%s: %d arguments, at most %d", at, len(o.Params), maxParams)
	mains, verbParam := 0, o.VerbParam == ""
	for i := range o.Params {
		p := &o.Params[i]
		in := at + ", argument " + clip(p.Name)
		c.that(paramName.MatchString(p.Name), "%s: a word", in)
		c.that(p.Name != "in", "%s: in is the host's, it names the capability", in)
		c.that(!slices.ContainsFunc(o.Params[:i], func(e caps.Param) bool { return e.Name == p.Name }), "%s: twice", in)
		c.that(slices.Contains(paramTypes, p.Type), "%s: type %q, not one of %s", in, clip(p.Type), strings.Join(paramTypes, ", "))
		c.doc("the doc of "+in, p.Doc, false)
		c.that(p.Enum == nil || p.Type == "string", "%s: only a string has its values listed", in)
		c.that(len(p.Enum) <= maxWords, "%s: %d values, at most %d", in, len(p.Enum), maxWords)
		for _, v := range p.Enum {
			c.that(word.MatchString(v), "%s: its value %q", in, clip(v))
		}
		c.that(!p.Designates || p.Type == "string", "%s: what designates is a string", in)
		c.that(!p.Secrets || slices.Contains(secretTypes, p.Type), "%s: what takes secrets is of the type any, record or list", in)
		c.that(!p.Secrets || m.Algebra != caps.Path, "%s: secrets are bound to URLs and names, and no kind whose scopes are paths takes any", in)
		if p.Main {
			mains++
		}
		if p.Name == o.VerbParam {
			verbParam = true
			c.that(p.Type == "string", "%s gives the verb and is not a string", in)
		}
		if len(c.wrong) > 20 {
			return
		}
	}
	c.that(mains <= 1, "%s: %d main arguments, at most one", at, mains)
	c.that(verbParam, "%s: no argument %q gives its verb", at, clip(o.VerbParam))
}

// clip truncates a name as messages show it.
func clip(s string) string { return display.Truncate(s, 60) }
