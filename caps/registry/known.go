package registry

import (
	"container/list"
	"slices"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
)

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
	found := map[*Tool]known{}
	for _, b := range t.depends() {
		found[b] = b.finding.get((want|ofTypes)&^(ofSchemas|ofNormal), func(k *known, missing parts) { b.workOut(k, missing, found) })
	}
	return t.finding.get(want|ofTypes, func(k *known, missing parts) { t.workOut(k, missing, found) })
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
		for _, name := range t.boundNames() {
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
