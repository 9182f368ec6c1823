package registry

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unique"

	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/display"
)

// Facts is what was found out of a version when it was made, as it is on record
// with it. Nothing in it is believed that can be worked out again.
type Facts struct {
	// Semantics says by which rules it was found; where they are others now, only
	// the certificate may still be of use.
	Semantics int
	// Normal is the hash of the normal form; empty where there is none to compare.
	Normal string
	// Certificate is JSON of a [cert.Certificate]; nil where there is none.
	Certificate json.RawMessage
	// Input and Output are the schemas; nil where they are too long.
	Input, Output json.RawMessage
	// Answers is what operations answered then, as far as the schemas rely on it:
	// where they answer something else now, those are found out anew.
	Answers Answers
}

// semantics is raised where the same version has another normal form or other schemas
// than before.
const semantics = 5

// The bounds of what is on record: longer schemas are left out, and of a longer
// certificate the types.
const (
	maxSchema      = 2 << 10
	maxCertificate = 8 << 10
)

// Empty reports whether there is nothing on record.
func (f *Facts) Empty() bool {
	return f.Normal == "" && f.Certificate == nil && f.Input == nil && f.Output == nil
}

// facts is what goes on record with a version.
func (t *Tool) facts() Facts {
	k := t.know(ofTypes | ofSchemas | ofNormal | ofProof)
	f := Facts{Semantics: semantics, Normal: k.normal}
	if len(k.input) <= maxSchema && len(k.output) <= maxSchema && k.answers.size() <= maxSchema {
		f.Input, f.Output, f.Answers = k.input, k.output, k.answers
	}
	if k.proof != nil {
		f.Certificate = encode(k.proof)
		if len(f.Certificate) > maxCertificate {
			bare := *k.proof
			bare.Table, bare.Types = nil, nil
			f.Certificate = encode(&bare)
		}
		if len(f.Certificate) > maxCertificate {
			f.Certificate = nil
		}
	}
	return f
}

// kept is what of the facts on record stays in memory.
type kept struct {
	normal        [32]byte
	compared      bool // there is a normal form
	input, output unique.Handle[string]
	schemas       bool
	answers       Answers // that the schemas rely on
}

// keep is what stays in memory of facts; nil: nothing of use.
func (f *Facts) keep() *kept {
	if f.Semantics != semantics {
		return nil
	}
	var k kept
	if n, err := hex.Decode(k.normal[:], []byte(f.Normal[:min(len(f.Normal), 64)])); err == nil && n == len(k.normal) && len(f.Normal) == 64 {
		k.compared = true
	}
	if object(f.Input) && object(f.Output) && f.Answers.size() <= maxSchema {
		k.schemas, k.answers = true, f.Answers
		k.input, k.output = unique.Make(string(f.Input)), unique.Make(string(f.Output))
	}
	if !k.compared && !k.schemas {
		return nil
	}
	return &k
}

// object reports whether JSON is an object that isn't too long for a schema.
func object(text json.RawMessage) bool {
	return len(text) > 1 && len(text) <= maxSchema && text[0] == '{'
}

// size is how many bytes of what is kept count.
func (k *kept) size() int {
	if k == nil || !k.schemas {
		return 0
	}
	return len(k.input.Value()) + len(k.output.Value()) + k.answers.size()
}

// InputSchema is the JSON Schema of the tool's arguments when it is called by its
// name, which [check.Decode] reads. It must not be changed. Before the tool's types
// were worked out it is the one on record.
func (t *Tool) InputSchema() json.RawMessage {
	input, _ := t.schemas()
	return input
}

// GivesText reports whether all that the tool gives, on inputs of its type, is text.
func (t *Tool) GivesText() bool { return string(t.OutputSchema()) == `{"type":"string"}` }

// OutputSchema is the JSON Schema of what a call of the tool gives. It must not
// be changed.
func (t *Tool) OutputSchema() json.RawMessage {
	_, output := t.schemas()
	return output
}

func (t *Tool) schemas() (input, output json.RawMessage) {
	if k, ok := t.finding.remembers(ofSchemas); ok {
		return k.input, k.output
	}
	if t.kept != nil && t.kept.schemas && t.world.are(t.kept.answers) && !(t.code != nil && t.code.bad.Load()) {
		return json.RawMessage(t.kept.input.Value()), json.RawMessage(t.kept.output.Value())
	}
	k := t.know(ofSchemas)
	return k.input, k.output
}

// What a certificate on record is.
const (
	// ProofChecked is the status of one that was checked, and holds.
	ProofChecked = "checked"
	// ProofVoid is that of one that doesn't hold. It counts for nothing.
	ProofVoid = "void"
	// ProofNone is that of a version without one.
	ProofNone = "none"
)

// A Proof is a certificate on record, and what became of checking it.
type Proof struct {
	Status string
	// Why is the reason where it is void.
	Why string
	// Typed is set where it says that no run fails with type_error or unbound on an
	// input of its type.
	Typed bool
}

// Proof checks the certificate that is on record with a version of the registry,
// against its code and the versions that it is bound to.
func (r *Registry) Proof(t *Tool) Proof {
	t.finding.mu.Lock()
	p := t.finding.proven
	t.finding.mu.Unlock()
	if p != nil {
		return *p
	}
	c, ok, err := r.log.One(t.Seq)
	if err != nil {
		// It may be read at another time.
		return Proof{Status: ProofVoid, Why: "the record can't be read"}
	}
	made := Proof{Status: ProofNone}
	if ok && c.Err == nil && c.Name == t.Name && c.Version == t.Version {
		made = t.prove(&c.Facts)
	}
	t.finding.mu.Lock()
	t.finding.proven = &made
	t.finding.mu.Unlock()
	return made
}

// Certificate is the certificate of the tool, JSON of a [cert.Certificate]; nil: nothing is
// known that one could say.
func (t *Tool) Certificate() json.RawMessage {
	if t.Problem() != nil {
		return nil
	}
	f := t.facts()
	return f.Certificate
}

// Holds checks a certificate that came from elsewhere, such as a document, against the
// tool as it is here: what it is bound to may have other versions, if the hashes are those.
func (t *Tool) Holds(certificate json.RawMessage) Proof {
	var c cert.Certificate
	if len(certificate) > 0 && len(certificate) <= maxCertificate && json.Unmarshal(certificate, &c) == nil {
		for i := range c.Needs {
			if b := t.Bound[c.Needs[i].Name]; b != nil && b.Hash == c.Needs[i].Hash {
				c.Needs[i].Version = b.Version
			}
		}
		certificate = encode(&c)
	}
	return t.prove(&Facts{Certificate: certificate})
}

func (t *Tool) prove(f *Facts) Proof {
	if len(f.Certificate) == 0 {
		return Proof{Status: ProofNone}
	}
	void := func(format string, args ...any) Proof {
		return Proof{Status: ProofVoid, Why: fmt.Sprintf(format, args...)}
	}
	if len(f.Certificate) > maxCertificate {
		return void("it has %d bytes, at most %d are read", len(f.Certificate), maxCertificate)
	}
	var c cert.Certificate
	if err := json.Unmarshal(f.Certificate, &c); err != nil {
		return void("it can't be read")
	}
	if t.Problem() != nil {
		return void("the code can't be used")
	}
	if !c.Tool {
		return void("it isn't a tool's")
	}
	found := map[*Tool]known{}
	for _, b := range t.depends() {
		found[b] = b.know(ofProof)
	}
	tools := t.certified(found)
	if err := cert.Check(&c, t.Program().Term(), func(name string) (cert.Need, *cert.Type, bool) {
		if strings.HasPrefix(name, "!") && !slices.ContainsFunc(c.Needs, func(n cert.Need) bool { return n.Name == name }) {
			return cert.Need{}, nil, false // it doesn't rely on more than that there is an answer
		}
		return tools(name)
	}); err != nil {
		return void("%s", display.Truncate([]byte(err.Error()), 300))
	}
	return Proof{Status: ProofChecked, Typed: len(c.Types) > 0}
}
