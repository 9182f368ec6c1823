package registry

import (
	"cmp"
	"container/list"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/display"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
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
const semantics = 9

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
		f.Certificate = pifjson.MustEncode(k.proof)
		if len(f.Certificate) > maxCertificate {
			bare := *k.proof
			bare.Table, bare.Types = nil, nil
			f.Certificate = pifjson.MustEncode(&bare)
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
		certificate = pifjson.MustEncode(&c)
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

// parts is which parts of what is known of a version are meant.
type parts uint8

const (
	ofTypes parts = 1 << iota
	ofSchemas
	ofCost
	ofNormal
	ofProof
)

// known is what is known of a version before it runs: a function of its code, of
// its examples, of the versions that it is bound to, and of what operations answer, and
// of nothing else. What it refers to is immutable.
type known struct {
	have     parts
	report   *check.Report
	problems int // of the report, before it was shortened
	unknowns int
	input    []byte
	output   []byte
	declared *check.Declared // nil: nothing was, or it can't be used
	cost     cost.Report
	costed   bool
	normal   string // the hash of the normal form; "": there is none to compare
	proof    *cert.Certificate
	answers  Answers // that its types rely on
	source   int     // bytes of the code, of which a name in the report keeps all
	size     int     // about the bytes that it takes
}

// A finding is where what is known of a version is remembered, as long as there is
// room. Copies of a version that are bound to the same versions share it.
type finding struct {
	mu    sync.Mutex
	known known
	// proven is what became of the certificate on record; see [Registry.Proof].
	proven *Proof

	// What the memory knows of it, under the memory's lock.
	place   *list.Element
	counted int
}

// get gives what is known with some parts, which are worked out by make where they
// aren't there.
func (f *finding) get(want parts, work func(k *known, missing parts)) known {
	k := f.worked(want, work)
	remembered.touch(f, k.size)
	return k
}

// worked lets go of the lock where work panics, too: a server survives that.
func (f *finding) worked(want parts, work func(k *known, missing parts)) known {
	f.mu.Lock()
	defer f.mu.Unlock()
	if missing := want &^ f.known.have; missing != 0 {
		work(&f.known, missing)
		f.known.have |= missing
		f.known.size = f.known.measure()
	}
	return f.known
}

// forget makes room.
func (f *finding) forget() {
	f.mu.Lock()
	f.known = known{}
	f.mu.Unlock()
}

// know works out what is known of a version, that of the versions that it is bound
// to before it.
func (t *Tool) know(want parts) known {
	if k, ok := t.finding.remembers(want); ok {
		return k
	}
	found := t.needed(want)
	return t.finding.get(want|ofTypes, func(k *known, missing parts) { t.workOut(k, missing, found) })
}

// needed is what is known of the versions that t is bound to.
func (t *Tool) needed(want parts) map[*Tool]known {
	found := map[*Tool]known{}
	for _, b := range t.depends() {
		found[b] = b.finding.get((want|ofTypes)&^(ofSchemas|ofNormal), func(k *known, missing parts) { b.workOut(k, missing, found) })
	}
	return found
}

// Derive finds a type for each term of the code, anew at each call.
func (t *Tool) Derive() *check.Derivation {
	p := t.Program()
	return check.Derive(p.Term(), p.Tool().Source, t.env(t.withGroup(t.needed(ofTypes))), check.Budget{Steps: typeSteps})
}

func (f *finding) remembers(want parts) (known, bool) {
	f.mu.Lock()
	k := f.known
	f.mu.Unlock()
	if want&^k.have != 0 {
		return known{}, false
	}
	remembered.touch(f, k.size)
	return k, true
}

// The bounds of what a version depends on, so far as it is looked at. Of a version
// with more below it nothing is known of what it calls: tools can be bound to
// each other in chains of any length.
const (
	mostBelow      = 50
	mostBelowBytes = 128 << 10
)

// depends is the versions that a version is bound to, and those that these are
// bound to, each after those that it is bound to itself; nil where there are too
// many.
func (t *Tool) depends() []*Tool {
	if len(t.Bound) == 0 {
		return nil
	}
	seen := map[*Tool]bool{t: true}
	bytes := 0
	var list []*Tool
	var walk func(t *Tool) bool
	walk = func(t *Tool) bool {
		for _, name := range slices.Sorted(maps.Keys(t.Bound)) {
			b := t.Bound[name]
			if seen[b] {
				continue
			}
			seen[b] = true
			bytes += len(b.Source)
			if len(seen) > mostBelow+1 || bytes > mostBelowBytes || !walk(b) {
				return false
			}
			list = append(list, b)
		}
		return true
	}
	if !walk(t) {
		return nil
	}
	return list
}

// Report is what is known of the tool's code before it runs: its type, what it can
// ask for, and where it must fail. The first call works it out. Of what there are
// very many of, it has the first; see [Tool.Counts].
func (t *Tool) Report() *check.Report { return t.know(ofTypes).report }

// Counts is how many places must fail, and how many are dynamic.
func (t *Tool) Counts() (problems, unknowns int) {
	k := t.know(ofTypes)
	return k.problems, k.unknowns
}

// Cost is what a run of the tool takes at most; ok is false where the code is too
// large for it to be worked out.
func (t *Tool) Cost() (r cost.Report, ok bool) {
	k := t.know(ofCost)
	return k.cost, k.costed
}

// Normal is the hash of the normal form of the tool's code, empty where it has none
// that can be compared: its code observes how it is written, or is too large.
func (t *Tool) Normal() string { return t.know(ofNormal).normal }

// Unreachable is those of some operations that no run of the tool can have
// performed, by the tool or by one that it calls, whatever it holds.
func (t *Tool) Unreachable(ops []string) []string {
	r := t.Report()
	if r.Open {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(ops), func(op string) bool {
		return slices.ContainsFunc(r.Effects, func(e check.Effect) bool { return e.May(op) })
	})
}

// Cannot is the operations of some kinds that no run of the tool can have performed
// (see [Tool.Unreachable]), sorted: "fs.*" is all of a kind.
func (t *Tool) Cannot(kinds caps.Kinds) []string {
	var list []string
	for kind, m := range kinds {
		ops := make([]string, len(m.Operations))
		for i := range m.Operations {
			ops[i] = m.Operations[i].Name
		}
		absent := t.Unreachable(ops)
		if len(ops) > 0 && len(absent) == len(ops) {
			absent = []string{kind + ".*"}
		}
		list = append(list, absent...)
	}
	slices.Sort(list)
	return list
}

// An index is the versions that something is left of, by the hashes of their
// normal forms as they are on record.
type index struct {
	mu sync.Mutex
	by map[[32]byte][]*Tool
}

func newIndex() *index { return &index{by: map[[32]byte][]*Tool{}} }

func (x *index) add(t *Tool) {
	if x == nil || t.kept == nil || !t.kept.compared {
		return
	}
	x.mu.Lock()
	x.by[t.kept.normal] = append(x.by[t.kept.normal], t)
	x.mu.Unlock()
}

func (x *index) remove(t *Tool) {
	if x == nil || t.kept == nil || !t.kept.compared {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	list := x.by[t.kept.normal]
	i := slices.Index(list, t)
	switch {
	case i < 0:
	case len(list) == 1:
		delete(x.by, t.kept.normal)
	default:
		list[i] = list[len(list)-1]
		list[len(list)-1] = nil
		x.by[t.kept.normal] = list[:len(list)-1]
	}
}

// clear empties it.
func (x *index) clear() {
	if x == nil {
		return
	}
	x.mu.Lock()
	clear(x.by)
	x.mu.Unlock()
}

// like is the versions with the same hash.
func (x *index) like(t *Tool) []*Tool {
	if x == nil || t.kept == nil || !t.kept.compared {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.by[t.kept.normal])
}

// mostLike is how many versions with the same hash on record are looked at.
const mostLike = 3

// Same is a current tool of another name whose code does the same as that of a
// version which was kept: for every input it gives the same, fails with the same
// kind, and asks for the same in the same order, of the same versions of tools.
// What it may do, it may still hold other capabilities for. nil: none is known.
func (r *Registry) Same(t *Tool) *Tool {
	s := r.current.Load()
	list := slices.DeleteFunc(r.same.like(t), func(u *Tool) bool {
		now, ok := s.Get(u.Name)
		return !ok || now != u || u.Name == t.Name
	})
	slices.SortFunc(list, func(a, b *Tool) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, u := range list[:min(len(list), mostLike)] {
		// What is on record is not believed.
		if u.Problem() == nil && u.Normal() != "" && u.Normal() == t.Normal() && SameVersions(t, u) {
			return u
		}
	}
	return nil
}

// SameVersions reports whether two versions are bound to the same ones.
func SameVersions(t, u *Tool) bool {
	return maps.EqualFunc(t.Bound, u.Bound, func(a, b *Tool) bool { return a.Version == b.Version && a.Hash == b.Hash })
}
