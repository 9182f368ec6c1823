package code

import (
	"sync"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A Unit is compiled code. It is immutable and shared between goroutines.
type Unit struct {
	Code   []Instr
	Meta   []Meta
	Consts []Const
	*Extra // never nil
	// Entry is the offset of the function of no parameters that evaluates the
	// term; where the term is a lambda, Root is that lambda's function.
	Entry int32
	// Entangled is set, and nothing else, where the code captures more
	// variables through more functions than [MaxCaptures], or one function more
	// than an instruction has numbers for.
	Entangled bool
	// Narrows is set where the code is ready for evals that narrow authority:
	// functions hold that of their creation.
	Narrows bool
	Root    *Func
	root    Func
	// Window is how many words above its window's start any function of the
	// unit may write, its callees' arguments included.
	Window int
}

// An Extra is what only few units have.
type Extra struct {
	Scopes []Scope
	// Captures are, for an eval's code, the indices of Options.Scope that its
	// closure has to hold, in order.
	Captures []int32
	// Acting is the entries of the functions of several parameters whose first
	// captured value is their authority, in order.
	Acting []int32
	// Kin is the entries of functions whose closures hold the same values.
	Kin [][]int32
	// Uses is of rows of the library: the places below 0 in Meta are in it.
	Uses prim.Uses
}

// noExtra is that of the others.
var noExtra Extra

// A Func is an entry point that a closure can have.
type Func struct {
	Entry int32
	// Closed is set where no value has to be captured.
	Closed bool
	Arity  int
}

// A Const is a value that exists before the program runs. Exactly one of the
// fields is set: a literal (list, record, quote) as its term, a string for
// names, or the code offset of a closed function.
type Const struct {
	Term term.Term
	Keys []string
	Name string
	In   string // of an effect, beside Name
	Func *Func
}

// A Scope says where the variables are that an eval can see.
type Scope struct {
	Vars  []ScopeVar
	With  []string // the capabilities that stand beside the eval
	Depth int      // how many evals deep the code around it is
}

// A ScopeVar is one visible variable: a register, a captured value (−1−Slot),
// or, where Const ≥ 0, a constant.
type ScopeVar struct {
	Name  string
	Slot  int32
	Const int32
}

// Options say what a term is compiled as.
type Options struct {
	// Tool is set where the term is a tool's code, so that self is its
	// function.
	Tool bool
	// Eval is set for code that eval runs: Entry is then always there and Root
	// never. Scope names what an eval's code finds around it, captured in this order
	// by the closure it is run as; inner names last win.
	Eval  bool
	Scope []string
	// Depth is how many evals deep the code is.
	Depth int
	// Narrows is set where evals that are not in the term may be around its
	// functions: in an input, or around the code.
	Narrows bool
	// Base, ConstBase and ScopeBase are where the unit will be put in a
	// machine that has other units already (Base in bytes).
	Base                 int32
	ConstBase, ScopeBase int32
	// Look, where it isn't nil, is told of the work as it is done, and may panic to end it.
	Look func(parts int)
}

// fnInfo is what is known of a function while its unit is compiled.
type fnInfo struct {
	Func
	worker int32 // index, then entry, of the code that takes the halves of a pair; −1: none
	id     int32
	konst  int32 // 1 + the constant that is its closure
	lam    *node // the lambda, where it may be compiled again for fewer arguments
	busy   bool  // its code is being generated
	parts  [maxParams]*part
	pair   *[2]*fnInfo // the first parameter is the pair of these, and isn't passed
	twin   bool        // the first parameter is the closure itself and isn't passed
	hidden bool        // the first captured value is the authority
}

// A part is a known function's code for when its first arguments were given
// alone: a function of the others that captures them.
type part struct {
	info *fnInfo
	caps []capture
}

// fn is a function whose code is being generated.
type fn struct {
	parent  *fn
	info    *fnInfo
	code    []Instr
	meta    []Meta
	caps    []capture
	capAt   map[capture]int // where there are many
	ret     uint8           // the register of the return word
	start   int32           // where a self call in tail position goes, an index
	split   bool            // generating the worker: the parameter is two registers
	outline bool            // holds a part of another function: takes no depth
	pend    int64
	bound   int   // where the last label is
	top     uint8 // the highest register that was free where something was evaluated
	dead    bool
}

type capture struct {
	b    *binder
	half uint8
}

type compiler struct {
	opt      Options
	unit     *Unit
	extra    Extra
	infos    []*fnInfo
	root     *fnInfo // the tool's own function
	lowest   int32
	far      map[*scope]map[string]*binder
	f        *fn
	plain    int // >0: inside code that is a second version: no workers
	infoSlab slab[fnInfo]
	nodes    slab[node]
	binders  slab[binder]
	scopes   slab[scope]
	lists    arena[*node]
	params   arena[*binder]
	places   arena[int32]
	captures int
	tried    int              // where the last TryMax or TryMin is
	args     []term.Term      // a stack, for resolveApp
	strs     map[string]int32 // names
	keys     map[string]int32 // of records
	fns      []*fn            // for reuse
	code     []Instr
	meta     []Meta
}

// newFn returns a fn, with the buffers of an earlier one where there is one.
func (c *compiler) newFn(info *fnInfo, ret uint8) *fn {
	var f *fn
	if n := len(c.fns); n > 0 {
		f = c.fns[n-1]
		c.fns = c.fns[:n-1]
		*f = fn{code: f.code[:0], meta: f.meta[:0]}
	} else {
		f = new(fn)
	}
	f.parent, f.info, f.ret = c.f, info, ret
	c.f = f
	return f
}

// MaxCaptures is how many captured variables, counted for each function that
// captures them and each eval that can see them, one unit may have. It is what
// bounds the time and memory of compiling, which is otherwise in proportion to
// the size of the term.
const MaxCaptures = 1 << 19

// entangled is the panic that ends the compilation of a unit with more.
type entangled struct{}

func (c *compiler) take(n int) {
	if c.captures += n; c.captures > MaxCaptures {
		panic(entangled{})
	}
}

// Compile compiles t. What can go wrong goes wrong when the code runs, but for
// [Unit.Entangled].
func Compile(t term.Term, o Options) *Unit {
	u := new(Unit)
	CompileTo(u, t, o)
	return u
}

// CompileTo does what [Compile] does, to a unit that is zero and lies in what has it.
func CompileTo(u *Unit, t term.Term, o Options) {
	defer func() {
		if e := recover(); e != nil {
			if _, ok := e.(entangled); !ok {
				panic(e)
			}
			*u = Unit{Entangled: true, Extra: &noExtra}
		}
	}()
	c := compilers.Get().(*compiler)
	c.captures = 0
	c.opt, c.unit, c.plain, c.lowest = o, u, 0, 1<<30
	c.compile(t, o)
	c.infoSlab.reset()
	c.nodes.reset()
	c.binders.reset()
	c.scopes.reset()
	c.lists.reset()
	c.params.reset()
	c.places.reset()
	clear(c.infos)
	c.infos = c.infos[:0]
	if cap(c.code) > 1<<12 {
		c.code, c.meta, c.fns = nil, nil, nil
	}
	c.unit, c.far, c.f, c.strs, c.keys, c.root, c.opt.Look = nil, nil, nil, nil, nil, nil, nil
	compilers.Put(c)
}

func (c *compiler) compile(t term.Term, o Options) {
	u := c.unit
	c.code, c.meta = c.code[:0], c.meta[:0]
	if o.Base == 0 {
		c.code = append(c.code, Instr{Op: Halt}, Instr{Op: Restore}, Instr{Op: CallCode}, Instr{Op: CallDone})
		c.meta = append(c.meta, Meta{}, Meta{}, Meta{}, Meta{})
	}
	u.Narrows = o.Eval || o.Narrows || Evals(t)
	var s *scope
	for _, name := range o.Scope {
		b := c.newBinder(name)
		s = c.push(s, b)
	}
	if l, ok := t.(*term.Lam); ok && !o.Eval {
		n := c.newNode()
		n.pos, n.size = int32(t.Pos()), 1
		if _, several := l.Body.(*term.Lam); several && u.Narrows {
			// It may be applied to one argument inside an eval, which gives a
			// function with the authority that there is.
			n.b = c.newBinder("")
		}
		c.resolveLam(n, l, s)
		info := c.declare(n)
		info.Closed, info.hidden = true, n.b != nil
		if o.Tool {
			c.root = info
		}
		c.function(n, info, nil)
		c.link()
		u.root = info.Func
		u.Root = &u.root
		return
	}
	n := c.resolve(t, s)
	info := c.newInfo()
	main := c.newFn(info, 1)
	c.tail(n, 2)
	c.finish(main)
	u.Entry = info.Entry
	for _, k := range main.caps {
		c.extra.Captures = append(c.extra.Captures, k.b.level)
	}
	c.link()
}

// look tells of the work on a term.
func (c *compiler) look() {
	if c.opt.Look != nil {
		c.opt.Look(4)
	}
}

func (c *compiler) newInfo() *fnInfo {
	info := c.infoSlab.next()
	info.worker, info.id = -1, int32(len(c.infos))
	c.infos = append(c.infos, info)
	return info
}

// declare makes the info of a lambda's function before its code exists.
func (c *compiler) declare(n *node) *fnInfo {
	info := c.newInfo()
	info.Arity, info.Closed = len(n.params), n.closed
	info.hidden = n.b != nil && len(n.params) > 1
	return info
}

// finish appends a function's code to the unit.
func (c *compiler) finish(f *fn) {
	at := int32(len(c.code))
	f.info.Entry = c.opt.Base + at*InstrSize
	if f.info.worker >= 0 {
		f.info.worker = f.info.Entry + f.info.worker*InstrSize
	}
	if f.info.hidden {
		c.extra.Acting = append(c.extra.Acting, f.info.Entry)
	}
	c.unit.Window = max(c.unit.Window, int(f.top)+2*maxItems+maxParams)
	c.code = append(c.code, f.code...)
	c.meta = append(c.meta, f.meta...)
	c.f = f.parent
	c.fns = append(c.fns, f) // its captures stay readable until it is used again
}

// A small holds the code of a tiny program in one allocation.
type small struct {
	code [8]Instr
	meta [8]Meta
}

// link gives the calls of known functions their targets: until now D held the
// number of the function, negative for its worker.
func (c *compiler) link() {
	// A last instruction that is never reached, so that the address after any
	// other is inside the code.
	c.code, c.meta = append(c.code, Instr{Op: Halt}), append(c.meta, Meta{})
	code, meta := []Instr(nil), []Meta(nil)
	if n := len(c.code); n <= len(small{}.code) {
		s := new(small)
		code, meta = s.code[:0:n], s.meta[:0:n]
	}
	code = append(code, c.code...)
	c.unit.Code, c.unit.Meta = code, append(meta, c.meta...)
	c.unit.Extra = &noExtra
	if e := &c.extra; e.Scopes != nil || e.Captures != nil || e.Acting != nil || e.Kin != nil || e.Uses != nil {
		c.unit.Extra = new(*e)
		*e = Extra{}
	}
	for i := 0; i < len(code); i++ {
		switch in := &code[i]; in.Op {
		case CallK, CallKReg, CallKSubI, TailK, TailIn:
			if in.D < 0 {
				in.D = c.infos[-1-in.D].worker
			} else {
				in.D = c.infos[in.D].Entry
			}
		case Alike:
			f := c.infos[in.D]
			in.D, in.K = f.Entry, ClosureHeader(0, f.Entry, f.Arity)
		case Closure:
			f := c.infos[in.D]
			n := int(in.B) + int(in.C)<<8
			in.D = f.Entry
			in.K = ClosureHeader((n+2)&^1, f.Entry, f.Arity)
			i += (int(in.B) + int(in.C)<<8 + capsPer - 1) / capsPer
		}
	}
	for i := range c.unit.Consts {
		if k := &c.unit.Consts[i]; k.Func != nil {
			f := *k.Func
			k.Func = &f
		}
	}
}

func (c *compiler) constant(k Const) int32 {
	c.unit.Consts = append(c.unit.Consts, k)
	return c.opt.ConstBase + int32(len(c.unit.Consts)-1)
}

func (c *compiler) name(s string) int32 {
	if i, ok := c.strs[s]; ok {
		return i
	}
	if c.strs == nil {
		c.strs = make(map[string]int32)
	}
	i := c.constant(Const{Name: s})
	c.strs[s] = i
	return i
}

// literal returns the constant that is a string.
func (c *compiler) literal(t *term.Str) int32 {
	if i, ok := c.keys[t.Value]; ok {
		return i
	}
	if c.keys == nil {
		c.keys = make(map[string]int32)
	}
	i := c.constant(Const{Term: t})
	c.keys[t.Value] = i
	return i
}

// closure returns the constant that is the closure of a function that
// captures nothing.
func (c *compiler) closure(info *fnInfo) int32 {
	if info.konst == 0 {
		info.konst = c.constant(Const{Func: &info.Func}) + 1
	}
	return info.konst - 1
}

// An arena hands out slices and takes all back at once.
type arena[T any] struct{ buf []T }

func (a *arena[T]) take(n int) []T {
	if len(a.buf)+n > cap(a.buf) {
		// What was handed out stays valid in the old array.
		a.buf = make([]T, 0, max(2*cap(a.buf), n, 64))
	}
	a.buf = a.buf[:len(a.buf)+n]
	return a.buf[len(a.buf)-n : len(a.buf) : len(a.buf)]
}

func (a *arena[T]) reset() {
	if cap(a.buf) > 1<<14 {
		a.buf = nil
		return
	}
	clear(a.buf)
	a.buf = a.buf[:0]
}

// A slab hands out zeroed elements and takes all back at once.
type slab[T any] struct {
	chunks [][]T
	chunk  int
	used   int
}

const slabSize = 32

func (s *slab[T]) next() *T {
	if s.chunk == len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, slabSize))
	}
	p := &s.chunks[s.chunk][s.used]
	s.used++
	if s.used == slabSize {
		s.chunk, s.used = s.chunk+1, 0
	}
	return p
}

// mark is where the next element comes from; release takes back what was handed out since.
func (s *slab[T]) mark() [2]int { return [2]int{s.chunk, s.used} }

func (s *slab[T]) release(mark [2]int) {
	for s.chunk > mark[0] {
		if s.chunk < len(s.chunks) {
			clear(s.chunks[s.chunk][:s.used])
		}
		s.chunk, s.used = s.chunk-1, slabSize
	}
	clear(s.chunks[s.chunk][mark[1]:s.used])
	s.used = mark[1]
}

func (s *slab[T]) reset() {
	if len(s.chunks) > 64 {
		s.chunks = s.chunks[:64:64]
	}
	for i := 0; i < s.chunk && i < len(s.chunks); i++ {
		clear(s.chunks[i])
	}
	if s.chunk < len(s.chunks) {
		clear(s.chunks[s.chunk][:s.used])
	}
	s.chunk, s.used = 0, 0
}

func (c *compiler) newNode() *node        { return c.nodes.next() }
func (c *compiler) newScope() *scope      { return c.scopes.next() }
func (c *compiler) newList(n int) []*node { return c.lists.take(n) }
func (c *compiler) newBinder(name string) *binder {
	b := c.binders.next()
	b.name = name
	return b
}

var compilers = sync.Pool{New: func() any { return new(compiler) }}
