package prim

import (
	"math"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Meter counts the work of an analysis, or of a walk through values, while it is
// done, since how much that is shows only then. The evaluator that makes one charges
// what was used.
type Meter struct {
	// Left is the steps that are there.
	Left uint64
	// Memory is the bytes that what is made may have; 0: any number.
	Memory int64
	// Hold takes so many bytes more until the work ends; a fault says that there is
	// no room for them. nil: there is.
	Hold func(bytes int64) *fault.Fault
	// Look is told of work as it is done, in parts of values, some tens of
	// nanoseconds each. It doesn't come back where nobody wants the rest. nil:
	// somebody always does.
	Look func(parts int)
	used uint64
}

// Unlimited is what a meter has left that counts nothing.
const Unlimited = math.MaxUint64

// look tells the run's owner of work, if it asked to be told.
func (m *Meter) look(parts int) {
	if look := m.looks(); look != nil {
		look(parts)
	}
}

// looks returns what is told of work; nil: nothing is.
func (m *Meter) looks() func(parts int) {
	if m == nil {
		return nil
	}
	return m.Look
}

// setWalked sets what was used to that of a walk over so many words, and more steps.
func (m *Meter) setWalked(words, more uint64) {
	if m.used = stepsOf(words); m.used < math.MaxUint64 {
		m.used += more
	}
}

// over reports whether something of so many bytes is more than may be made.
func (m *Meter) over(bytes uint64) bool { return m.Memory > 0 && bytes > uint64(m.Memory) }

// room returns the fault of something of so many bytes that is more than may be
// made.
func (m *Meter) room(bytes int64) *fault.Fault {
	if m.over(uint64(bytes)) {
		return OutOfMemory(m.Memory)
	}
	return nil
}

// hold calls [Meter.Hold], if there is one.
func (m *Meter) hold(bytes int64) *fault.Fault {
	if m.Hold == nil {
		return nil
	}
	return m.Hold(bytes)
}

// take sets what was used to so many steps, for something of so many bytes; a fault
// says that one of them is more than there is.
func (m *Meter) take(steps uint64, bytes int64) *fault.Fault {
	if m.used = steps; m.used > m.Left {
		return OutOfFuel(m.Left)
	}
	return m.room(bytes)
}

// Spend takes n steps for work that is about to be done. false: they are not
// there, and the analysis has to end; what it gives is not looked at then.
func (m *Meter) Spend(n uint64) bool {
	if m.used > m.Left || n > m.Left-m.used {
		m.used = math.MaxUint64
		return false
	}
	m.used += n
	m.look(int(min(n, 1<<20)))
	return true
}

// Used returns the steps that were taken, and more than there are where those were
// not enough.
func (m *Meter) Used() uint64 { return m.used }

// An Analysis is the meaning of a row that reasons about code. Its operands are
// of the row's kinds. It is a function of them alone: whatever the meter has, it
// gives the same value, or has no budget for it.
type Analysis func(code []*value.Code, m *Meter) (value.Value, *fault.Fault)

// Analyses is what the rows infer, cost, normalize and equivalent do. They need all of
// the language, which is built on this package, so package core sets them when it
// is initialised; in a program without it the rows fail.
var Analyses struct {
	Infer, Cost, Normalize, Equivalent Analysis
}

// analysis returns a row's Analysis, by what Analyses has when it is run.
func analysis(name string, of func() Analysis) func([]value.Value, *Meter) (value.Value, *fault.Fault) {
	return func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
		do := of()
		if do == nil {
			return nil, fault.New(fault.RuntimeError, name+" isn't there: this program runs without the checker").
				Hinted("Import package core in the program that runs this.")
		}
		code := make([]*value.Code, len(args))
		for i, a := range args {
			code[i] = a.(*value.Code)
		}
		return do(code, m)
	}
}

// analyses is the rows that say what code does, before it does it.
var analyses = []Row{
	{
		Name: "infer", Group: "code", Shape: UnaryOrArray, Params: oneCode, Result: KindRecord,
		Doc: "says of quoted code what is known before it runs: type, params with theirs, result, expects (the free variables' types), effects, sound if no test of a kind can fail, problems that must fail, and unknown for the places that only the run can tell.",
		Examples: []Example{
			{
				Code:  `{"infer":{"quote":{"lam":"n","body":{"add":[{"var":"n"},1]}}}}`,
				Want:  `{"effects":[],"expects":{},"params":[{"name":"n","type":"num"}],"problems":[],"result":"num","sound":true,"type":"(num) -> num","unknown":[]}`,
				Steps: 1682,
			},
			{Code: `{"get":[{"infer":{"quote":{"lam":"p","body":{"get":[{"fs.read":{"path":{"var":"p"}}},"text"]}}}},"effects"]}`, Want: `["fs.read"]`},
			{Code: `{"get":[{"head":{"get":[{"infer":{"quote":{"add":["a",1]}}},"problems"]}},"kind"]}`, Want: `"type_error"`},
			{Code: `{"get":[{"get":[{"infer":{"quote":{"not":{"var":"x"}}}},"expects"]},"x"]}`, Want: `"bool"`},
			{Code: `{"infer":5}`, Fault: fault.TypeError},
		},
		Analysis: analysis("infer", func() Analysis { return Analyses.Infer }),
	},
	{
		Name: "cost", Group: "code", Shape: UnaryOrArray, Params: oneCode, Result: KindRecord,
		Doc: "says of quoted code what a run takes at most: class (constant, linear, polynomial, exponential, or budget where only the budget ends it), steps and memory as formulas of the sizes of the inputs (\"\" where there is none), exact if every run that succeeds takes just those steps, and why with the places that make it grow.",
		Examples: []Example{
			{
				Code: `{"cost":{"quote":{"lam":"xs","body":{"length":{"var":"xs"}}}}}`,
				Want: `{"class":"linear","exact":false,"memory":"267520 + 16·n + 64·m, n = bytes of xs, m = length of xs","steps":"5 + 1/64·n + m, n = length of xs, m = terms of xs","why":[]}`,
			},
			{Code: `{"get":[{"cost":{"quote":{"lam":"n","body":{"mul":[{"var":"n"},2]}}}},"class"]}`, Want: `"constant"`},
			{Code: `{"get":[{"cost":{"quote":{"lam":"n","body":{"app":[{"self":true},{"var":"n"}]}}}},"class"]}`, Want: `"budget"`},
			{Code: `{"cost":5}`, Fault: fault.TypeError},
		},
		Analysis: analysis("cost", func() Analysis { return Analyses.Cost }),
	},
	{
		Name: "normalize", Group: "code", Shape: UnaryOrArray, Params: oneCode, Result: KindRecord,
		Doc: "gives quoted code's normal form as code with its hash, normal if it is one, and a reason where the code is left as it is.",
		Examples: []Example{
			{
				Code:  `{"get":[{"normalize":{"quote":{"lam":"n","body":{"add":[{"var":"n"},{"add":[1,1]}]}}}},"code"]}`,
				Want:  `{"lam":"v0","body":{"add":[{"var":"v0"},2]}}`,
				Steps: 3164,
			},
			{Code: `{"eval":{"get":[{"normalize":{"quote":{"mul":[6,7]}}},"code"]}}`, Want: `42`},
			{Code: `{"normalize":"n => n"}`, Fault: fault.TypeError},
		},
		Analysis: analysis("normalize", func() Analysis { return Analyses.Normalize }),
	},
	{
		Name: "equivalent", Group: "code", Shape: Array, Params: []Param{{"a", KindQuoted}, {"b", KindQuoted}}, Result: KindRecord,
		Doc: "says whether two pieces of quoted code do the same for every input and all values of their free variables: answer is equal, different or unknown, reason says why, and inputs (of the free variables by name, then of the parameters) show a difference, left and right what came of them.",
		Examples: []Example{
			{
				Code: `{"equivalent":[{"quote":{"lam":"x","body":{"map":[{"lam":"y","body":{"var":"y"}},[{"var":"x"}]]}}},{"quote":{"lam":"z","body":[{"var":"z"}]}}]}`,
				Want: `{"answer":"equal","inputs":[],"left":"","reason":"they have the same normal form","right":""}`,
			},
			{
				Code: `{"equivalent":[{"quote":{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}},{"quote":{"lam":"x","body":{"add":[{"var":"x"},{"var":"x"}]}}}]}`,
				Want: `{"answer":"different","inputs":[1],"left":"1","reason":"for 1 one gives 1, the other 2","right":"2"}`,
			},
			{
				Code:  `{"get":[{"equivalent":[{"quote":{"lam":"x","body":{"add":[{"add":[{"var":"x"},{"var":"x"}]},{"var":"x"}]}}},{"quote":{"lam":"x","body":{"mul":[{"var":"x"},3]}}}]},"answer"]}`,
				Want:  `"unknown"`,
				Steps: 60228,
			},
			{Code: `{"equivalent":[{"quote":1},1]}`, Fault: fault.TypeError},
		},
		Analysis: analysis("equivalent", func() Analysis { return Analyses.Equivalent }),
	},
}
