package caps

import (
	types "github.com/mcp-pif/mcp-pif/core/check"
)

// Algebra is one of the host's ways to say what lies within a scope.
type Algebra string

// The scope algebras. A plugin picks one; containment is always the host's to
// decide.
const (
	// Path is a directory or a file below the root of a grant. Designating
	// arguments are relative paths.
	Path Algebra = "path"
	// URL is an origin with a path pattern. Designating arguments are URLs.
	URL Algebra = "url"
	// Segments is names of segments between slashes, with * and **.
	Segments Algebra = "segments"
	// Exact is one name.
	Exact Algebra = "exact"
)

// A Manifest is what a plugin says of itself. It is data: reading one starts no
// process.
type Manifest struct {
	Kind    string // "fs": lower case letters, digits and dashes
	Version string
	Doc     string // a sentence
	// Server is the MCP server of the operator's lock that this kind stands for; "" for a
	// plugin's own kind. What such a server wrote, in Words, in the docs, names and values
	// of its arguments and in its types, is a stranger's.
	Server  string
	Algebra Algebra
	// Only is the one scope that there is, of a kind built into the host: a text may
	// leave it out. "": scopes are the operator's.
	Only string
	// Lent is set where the MCP servers that a tool calls act by it, too: a tool keeps what it
	// declares of the kind for them, if its own code doesn't use it.
	Lent bool
	// Options is the options that capabilities of this kind may carry besides
	// the host's own (calls, bytes, rate, timeout, until, max): name to the
	// values it may have; no values: it stands alone, like ro.
	Options    map[string][]string
	Verbs      []Verb
	Operations []Operation
	// Privileges is what its process needs of the system besides what its
	// grants give: "network", "processes", "files:/PATH" (to be read), "state"
	// (a folder that lasts), "variable" (the one that a grant names) and
	// "command" (what the operator maps its name to). None is asked of a plugin
	// that only computes.
	Privileges []string
}

// A Verb is what a capability of the kind may be narrowed to.
type Verb struct {
	Name string // "read"
	Flags
}

// Flags say what acting can do at worst.
type Flags struct {
	ReadOnly    bool // changes nothing that anybody can see
	Idempotent  bool // a second time changes nothing more
	Destructive bool // may destroy what was there
	OpenWorld   bool // reaches things outside this machine
}

// An Operation is what programs ask for. As JSON it is what a plugin says, as its lock has it.
type Operation struct {
	Name string `json:"name"` // "fs.read"
	Wire string `json:"-"`    // the tool's name on the wire, of a server's
	Doc  string `json:"doc"`
	// Hash is that of the tool's definition, of a server's: a grant and an approval are of the
	// operations that they have, each as it was defined then.
	Hash string `json:"-"`
	// Input is what the arguments have to meet besides Params; nil: nothing more.
	Input Schema `json:"-"`
	// Words is the server's own description, shown in quotes, never as ours.
	Words string `json:"-"`
	// Verb is the verb a capability must have for it. Where VerbParam is set
	// it is that argument, in lower case, and Verb where there is none.
	Verb      string `json:"verb"`
	VerbParam string `json:"verb_from,omitempty"`
	// Params is its arguments; read them by [Operation.Takes].
	Params []Param `json:"params"`
	// Most is how many bytes its outcome may have, where that is less than the
	// capability allows; 0: what that allows.
	Most   int64  `json:"-"`
	Result string `json:"result"` // in words: "string", "record: bytes, hash"
	// Type is what each answer is of: the host has no program get another, and types
	// what programs do with it. nil: it is some data. See [types.ParseAnswer]. Read it by
	// [Operation.Gives].
	Type *types.Type `json:"type,omitempty"`
	// Late is set where Params and Type are made of schemas when they are first asked for,
	// since a start would take long to make those of all operations; nil: they are there.
	Late func() ([]Param, *types.Type) `json:"-"`
	// Cut reports whether a part of their types is data of any kind, since the notation of the whole would be too
	// long; nil: none is.
	Cut func() bool `json:"-"`
	// TypeBy is the argument, a string, that says the type of the answer ([Wanted]); "": Type
	// has it. Only kinds that ship have it.
	TypeBy string `json:"-"`
	// Once is arguments, each with the value ("": any) with which the operation isn't idempotent,
	// whatever its verb is: a second time it finds what the first made. Only kinds that ship have it.
	Once [][2]string `json:"-"`
}

// A Param is an argument of an operation.
type Param struct {
	Name string `json:"name"`
	Wire string `json:"-"`    // its name on the wire, if that is another
	Type string `json:"type"` // int, bool, string, list, record, any
	Doc  string `json:"doc,omitempty"`
	// Of is its type where Type alone says too little: the host has no other value
	// performed, reads whole numbers as integers by it, and types programs by it. nil:
	// nothing more than Type.
	Of *types.Type `json:"-"`
	// Optional arguments may be left out.
	Optional bool `json:"optional,omitempty"`
	// Main may stand alone in place of the record: at most one is.
	Main bool `json:"main,omitempty"`
	// Designates is set where the argument says what is acted on, and so has
	// to lie within the capability's scope.
	Designates bool `json:"designates,omitempty"`
	// Prefix is set where it designates whatever begins with its text, not what is called so.
	Prefix bool `json:"prefix,omitempty"`
	// Enum is the values a string may have; nil: any.
	Enum []string `json:"enum,omitempty"`
	// Secrets is set where a program may name a secret of the operator's; see
	// [SecretsIn].
	Secrets bool `json:"secrets,omitempty"`
}

// Takes is the operation's arguments.
func (o *Operation) Takes() []Param { params, _ := o.made(); return params }

// Gives is the type of the operation's answers; see Type.
func (o *Operation) Gives() *types.Type { _, t := o.made(); return t }

func (o *Operation) made() ([]Param, *types.Type) {
	if o.Late != nil {
		return o.Late()
	}
	return o.Params, o.Type
}

// Argument gives the type of what the operation takes.
func (o *Operation) Argument() *types.Type {
	params := o.Takes()
	var fields []types.Field
	alone := types.Nothing
	for i := range params {
		p := &params[i]
		fields = append(fields, types.Field{Key: p.Name, Type: p.of(), Optional: p.Optional})
		if p.Main {
			alone = p.of()
		}
	}
	return types.Record(fields, nil).Or(alone)
}

// of is the type of the values that an argument may have.
func (p *Param) of() *types.Type {
	switch {
	case p.Of != nil:
		return p.Of
	case p.Type == "int":
		return types.Int
	case p.Type == "bool":
		return types.Bool
	case p.Type == "string":
		return types.String
	case p.Type == "list":
		return types.List(types.Any)
	case p.Type == "record":
		return types.Record(nil, types.Any)
	}
	return types.Any
}

// Operation finds an operation by its name.
func (m *Manifest) Operation(name string) (*Operation, bool) {
	for i := range m.Operations {
		if m.Operations[i].Name == name {
			return &m.Operations[i], true
		}
	}
	return nil, false
}

// Verb finds a verb.
func (m *Manifest) Verb(name string) (Verb, bool) {
	for _, v := range m.Verbs {
		if v.Name == name {
			return v, true
		}
	}
	return Verb{}, false
}
