// Package wire is what plugins and their host have in common: how they shake
// hands, and how values, manifests and failures become messages and come back.
//
// Everything that arrives was written by somebody else. Decoding is bounded in
// depth, number of parts and bytes before it allocates, never panics, and gives
// either a value of the language exactly as it was sent or an error:
//
//   - [EncodeValue] and [DecodeValue] read and write the message Value of the
//     contract by hand. Generated code would make an object of a hundred bytes of
//     every two that a hostile sender writes.
//   - [FromManifest] checks all of a manifest; [CheckManifest] is the check alone.
//   - [Fault] is the one place where what went wrong becomes a fault.
//
// Packages sdk and host import it; authors of plugins don't.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/go-plugin"
	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
	"google.golang.org/protobuf/proto"
)

// ToManifest is a manifest as a message. Options are in the order of their names.
func ToManifest(m *caps.Manifest) *pluginv1.Manifest {
	out := &pluginv1.Manifest{Kind: m.Kind, Version: m.Version, Doc: m.Doc, Algebra: string(m.Algebra), Privileges: m.Privileges}
	for _, name := range slices.Sorted(maps.Keys(m.Options)) {
		out.Options = append(out.Options, &pluginv1.Option{Name: name, Values: m.Options[name]})
	}
	for _, v := range m.Verbs {
		out.Verbs = append(out.Verbs, &pluginv1.Verb{
			Name: v.Name, ReadOnly: v.ReadOnly, Idempotent: v.Idempotent, Destructive: v.Destructive, OpenWorld: v.OpenWorld,
		})
	}
	for _, o := range m.Operations {
		op := &pluginv1.Operation{Name: o.Name, Doc: o.Doc, Verb: o.Verb, VerbParam: o.VerbParam, Result: o.Result}
		if o.Type != nil {
			op.Type = o.Type.String()
		}
		for _, p := range o.Params {
			op.Params = append(op.Params, &pluginv1.Param{
				Name: p.Name, Doc: p.Doc, Type: p.Type, Optional: p.Optional, Main: p.Main, Designates: p.Designates, Enum: p.Enum,
				Secrets: p.Secrets, Prefix: p.Prefix,
			})
		}
		out.Operations = append(out.Operations, op)
	}
	return out
}

// FromManifest reads a manifest that a plugin sent, and checks it.
func FromManifest(in *pluginv1.Manifest) (*caps.Manifest, error) {
	if in == nil {
		return nil, errors.New("there is no manifest")
	}
	m := &caps.Manifest{Kind: in.Kind, Version: in.Version, Doc: in.Doc, Algebra: caps.Algebra(in.Algebra), Privileges: in.Privileges}
	for _, o := range in.Options {
		if _, twice := m.Options[o.GetName()]; twice {
			return nil, errors.New("duplicate option")
		}
		if m.Options == nil {
			m.Options = map[string][]string{}
		}
		m.Options[o.GetName()] = o.GetValues()
	}
	for _, v := range in.Verbs {
		m.Verbs = append(m.Verbs, caps.Verb{Name: v.GetName(), Flags: caps.Flags{
			ReadOnly: v.GetReadOnly(), Idempotent: v.GetIdempotent(), Destructive: v.GetDestructive(), OpenWorld: v.GetOpenWorld(),
		}})
	}
	for _, o := range in.Operations {
		op := caps.Operation{Name: o.GetName(), Doc: o.GetDoc(), Verb: o.GetVerb(), VerbParam: o.GetVerbParam(), Result: o.GetResult()}
		if said := o.GetType(); said != "" {
			var err error
			if op.Type, err = check.ParseAnswer(said); err != nil {
				return nil, fmt.Errorf("operation %s: the type of its answer: %w", clip(o.GetName()), err)
			}
		}
		for _, p := range o.GetParams() {
			op.Params = append(op.Params, caps.Param{
				Name: p.GetName(), Doc: p.GetDoc(), Type: p.GetType(), Optional: p.GetOptional(), Main: p.GetMain(),
				Designates: p.GetDesignates(), Enum: p.GetEnum(), Secrets: p.GetSecrets(), Prefix: p.GetPrefix(),
			})
		}
		m.Operations = append(m.Operations, op)
	}
	if err := CheckManifest(m); err != nil {
		return nil, err
	}
	return m, nil
}

// SaysManifest reports whether a message says a manifest, to the letter, and isn't read
// for that.
func SaysManifest(said *pluginv1.Manifest, m *caps.Manifest) bool {
	return proto.Equal(said, ToManifest(m))
}

// SameManifest reports whether two manifests say the same.
func SameManifest(a, b *caps.Manifest) bool {
	one, err := proto.MarshalOptions{Deterministic: true}.Marshal(ToManifest(a))
	if err != nil {
		return false
	}
	two, err := proto.MarshalOptions{Deterministic: true}.Marshal(ToManifest(b))
	return err == nil && bytes.Equal(one, two)
}

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
	kindName      = lazyregexp.New(`^[a-z][a-z0-9-]{0,31}$`)
	verbName      = lazyregexp.New(`^[a-z][a-z0-9_-]{0,31}$`)
	operationName = lazyregexp.New(`^[a-z][a-z0-9_]{0,47}$`)
	paramName     = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,47}$`)
	word          = lazyregexp.New(`^[A-Za-z0-9._+-]{1,64}$`)
	versionText   = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z.+-]*$`)
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
		c.that(!p.Prefix || p.Designates && m.Algebra == caps.Segments, "%s: only what designates segments can be a prefix", in)
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

// Protocol is the major version of the contract. It is go-plugin's protocol
// version too.
const Protocol = 1

// Handshake is what tells a plugin that a host started it. It keeps people from
// running a plugin by hand; it is no secret and no security.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  Protocol,
	MagicCookieKey:   "MCP_PIF_PLUGIN",
	MagicCookieValue: "a capability plugin is started by mcp-pif",
}

// Service is the name go-plugin knows the contract by.
const Service = "capability"

// The features of the contract that either side may lack.
const (
	FeatureProgress  = "progress"  // InvokeStream
	FeatureCancel    = "cancel"    // Cancel
	FeatureSecrets   = "secrets"   // InvokeRequest.secrets
	FeatureQuestions = "questions" // InvokeRequest.questions, Answer
	FeatureSizes     = "sizes"     // the header Size of large answers to Invoke
	FeatureRoom      = "room"      // InvokeStreamResponse.room, Answer
)

// Features is what this version has.
var Features = []string{FeatureProgress, FeatureCancel, FeatureSecrets, FeatureQuestions, FeatureSizes, FeatureRoom}

// What the host tells a plugin's process by its environment, besides what
// go-plugin does.
const (
	// EnvMaxMessage is the bytes of the largest message, in decimal.
	EnvMaxMessage = "MCP_PIF_MAX_MESSAGE"
	// EnvRoot is the descriptor of the grant's directory, in decimal; on Windows
	// the handle.
	EnvRoot = "MCP_PIF_ROOT"
	// EnvState is the path of the folder in which a plugin keeps its state.
	EnvState = "MCP_PIF_STATE"
	// EnvVariable is the value of the variable that the grant names; it isn't
	// there where that isn't set.
	EnvVariable = "MCP_PIF_VARIABLE"
	// EnvSettings is the descriptor from which a plugin reads its settings to their
	// end, in decimal; on Windows the handle. It isn't there where it has none.
	EnvSettings = "MCP_PIF_SETTINGS"
	// EnvCommand is what the grant's name is mapped to, a caps.Command in JSON; it
	// isn't there where it is mapped to nothing.
	EnvCommand = "MCP_PIF_COMMAND"
)

// The limits on messages.
const (
	// MaxMessage is the bytes of a message where nothing else is said.
	MaxMessage = 32 << 20
	// LargeOutcome is from how many bytes on an outcome is announced by the header Size.
	LargeOutcome = 64 << 10
	// MaxOverhead is what a message may have besides its value.
	MaxOverhead = 16 << 10
	// MaxManifest is the bytes of the answer to Describe.
	MaxManifest = 256 << 10
	// Window is how many bytes may be under way before the receiver says that it
	// read them: less, and a message of 64 KiB waits for that.
	Window = 1 << 20
	// MaxProgress is the bytes of a progress message that are passed on.
	MaxProgress = 500
	// MaxEvent is the bytes of an event that is no outcome.
	MaxEvent = 256 << 10
)
