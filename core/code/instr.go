// Package code is the machine's instruction set and the compiler from terms
// to it.
//
// A [Unit] is what one term compiles to: instructions for a register machine
// with overlapping windows, a table of constants, and for every instruction
// the place and the steps that a fault there has to report ([Meta]).
// Compiling decides everything that can be known without running: which
// register a variable lives in, which calls go to a function known in full,
// which pairs need never be built, how many steps each path costs. It decides
// nothing about meaning: package naive is the measure, and every program must
// give the same value, fault, place and steps on both.
//
// # Windows
//
// A function of n parameters sees R0 = its closure, R1…Rn = its arguments,
// Rn+1 = the return word, then let-bound variables and temporaries in the
// order of a stack. A caller evaluates the arguments in the callee's window,
// which starts at the caller's first free register; the result comes back in
// that register. Every register below the first free one holds a value at all
// times, so the collector needs no maps.
//
// # Authority
//
// Where an eval may narrow what is permitted, functions capture the authority
// of their creation as a variable that the compiler adds, and begin with an
// instruction that narrows what is permitted to it (gencall.go).
//
// # Steps
//
// One step per term evaluation, charged per path: a path's count is static,
// and is subtracted where the path ends in a call, a return or a loop's back
// edge; a jump carries the difference to what its label assumes. Meta.Pend is
// the part of the current path that an instruction's fault has to add.
package code

import "github.com/mcp-pif/mcp-pif/core/term"

// An Instr is one instruction, 16 bytes. What the operands mean is said at
// each opcode. K is, where the instruction ends or joins a path, the change to
// the machine's fuel word: steps in its low 40 bits, depth above (see
// [Depth1]); elsewhere an immediate word.
type Instr struct {
	Op      Op
	A, B, C uint8
	D       int32
	K       int64
}

// InstrSize is the size of an Instr in bytes; code offsets count bytes.
const InstrSize = 16

// Depth1 is one unit of depth in the fuel word.
const Depth1 = 1 << 40

// Meta is what a fault at an instruction reports.
type Meta struct {
	Pend int32 // steps of the current path evaluated so far
	Pos  int32 // place of the term, an offset into the unit's source
	// Row is that of a comparison: eq and equal have their instructions in common.
	// Side and Height are, of one that jumps, what it compares, and how many
	// registers hold values.
	Row    term.ID
	Side   Side
	Height uint8
}

// Side says which operands the registers of a comparison that jumps are.
type Side uint8

// The sides.
const (
	InOrder    Side = iota // A and B are the first and the second
	Swapped                // A and B are the second and the first
	ConstRight             // A is the first, the constant the second
	ConstLeft              // A is the second, the constant the first
)

// Op is an operation code.
type Op uint8

// The operations. A, B, C are registers unless said otherwise; "h" in D is the
// height: the number of registers that hold values, for the collector.
const (
	Halt    Op = iota
	Move       // A ← B
	Move2      // the same, and then C ← D
	LoadI      // A ← K, a word
	LoadK      // A ← constant D
	LoadCap    // A ← captured value D of the closure in R0
	Add        // A ← B + C; likewise to Mod
	Sub
	Mul
	Div
	Mod
	AddI // A ← B + K, K a tagged integer; C is 1 where the source subtracts −K
	MulI
	DivI
	ModI
	AndI // A ← B mod a power of two, K its mask, tagged
	ShrI // A ← B div a power of two, C the shift, K the tagged divisor
	Eq   // A ← B = C, K is 1 where the row is equal; likewise to Gte
	Lt
	Lte
	Gt
	Gte
	Not     // A ← not B
	Cons    // A ← cons B C, h in D
	Pair    // A ← pair B C, h in D
	Head    // A ← head B; likewise to IsEmpty
	Tail    //
	Fst     //
	Snd     //
	IsEmpty //
	Length  // A ← length B
	Concat  // A ← concat B C, h in D; K says whether B and A are known here alone, see JoinsFresh
	ConcatT // the same of B and the text of C, and then the two instructions after it are done, too
	Prim    // A ← row D of the table on the B registers from C on; K is h
	Get     // the same for get, its operands in the registers that K names (see [Packed])
	Compare // the same for compare
	At      // the same for at with two operands
	Nth     // the same for nth
	ToText  // the same for to_text
	Push    // the same for push
	PutOwn  // the same for put, B a register that is true where the record is known here alone, and then in place
	GetK    // A ← get of B and constant D; C and the register after it are free, K is their height
	Round   // A ← round_dec of B: K is the height, the scale << 8 and one of the roundings << 16; constant D names that; C and the two after it are free
	List    // A ← the list of the B registers from C on; D is h
	ConsN   // A ← cons of the B registers from C on, onto list K; D is h
	Rev     // A ← the list B reversed, D is h
	Record  // A ← record with the keys of constant D, values in registers from C on, K is h
	RecordL // A ← record with the keys of constant D, values reversed in the list B, K is h
	Jmp     // to D
	JF      // to D if A is false; B says who asked (Asker); likewise JT
	JT
	JEq // to D if A = B, C is 1 where the row is equal; likewise to JGe
	JNe
	JLt
	JGe
	JEqI // to D if A = C<<8|B, a signed 16-bit integer; likewise to JLeI
	JNeI
	JLtI
	JGeI
	JGtI
	JLeI
	TryLt  // of small integers, what the two instructions after it do: to D if A < B, else on after them
	TryGe  // the same for A >= B
	TryMax // A ← the larger of B and C if they are small integers, and to D; likewise TryMin
	TryMin
	JEmpty // to D if A is the empty list; likewise JCons
	JCons
	CallK     // call the function at code offset D, window A with its closure where it has one, B arguments
	CallKReg  // the same with one argument, which is in C
	CallKSubI // the same with one argument: B − C, both small
	TailK     // tail call of the function at D with B arguments from register A+1 on, closure in A, C the own return slot
	TailIn    // the same where the arguments are the function's own parameters, without a closure
	Loop0     // jump to D, a back edge
	Loop1     // B ← A, then the same
	Loop2     // B ← A, C ← A+1, then the same
	Call      // call the closure in A with B arguments
	TailCall  // tail call of the closure in A with B arguments, C the own return slot
	Check     // A holds a function with B of C arguments there: see package eval
	Pend      // what follows a Check that had to call
	Ret       // return A, C the return slot
	RetAdd    // return A + B, C the return slot, h in D
	RetImm    // return the immediate word D, C the return slot
	FoldInit  // acc in A, list in A+1: item to A+1, rest to A+2; to D if empty
	FoldPair  // the same, the pair of acc and item to A+1
	FoldLoop  // the next item of the rest in A+2, to D if there is one
	FoldPLoop // the same, the pair
	FoldCons  // where there is a next item, the Cons of B and A to A and the FoldLoop that are after it
	FoldRev   // the same with the item as it is, for as many as there are; C is 1 where the list is known here alone: its cells are used again
	FoldAdd   // of an Add of the item to A and the FoldLoop that are after it, for as many as there are whose sum is a small integer
	FoldFn    // f in A, acc in A+1, list in A+2: tests both; to D if empty
	FoldCall  // next pair and f to the window at A+3, to D if none
	Closure   // A ← closure of the function at D with B+C<<8 captured values and the header K
	Caps      // follows a Closure: h in A, six captured slots in D and K; never executed
	Alike     // A ← closure of the function at D with the captured values of the closure in A and the header K; h in B; C is 1 where the first of them is to be as the second
	Unpair    // R1 a pair: its halves to R1, R2, the return word to R3, to D
	Eval      // A ← eval of A in scope D
	TailEval  // return eval of A in scope D, C the own return slot
	CodeOf    // A ← code of the tool named by constant D
	CodeOfV   // A ← code of the tool named by the string in B
	Cont      // A ← continuation with input B
	Auth      // A ← the authority of a function that is made here
	Narrow    // narrows what is permitted to the first captured value; A the own return slot
	Restrict  // A, a function that takes several arguments, is as good as made here; h in D
	Effect    // A ← outcome of operation (constant D) on A
	CallTool  // A ← what the tool named A gives for A+1, or for the items of that where B is 1
	Par       // runs the D branches whose places follow in D+1 Branch instructions, the last of them the end; A ← their values
	Branch    // follows a Par: a branch begins D bytes from here; never executed
	EndPar    // a branch ends, its value is in A
	Unbound   // fails: the variable named by constant D
	NoSelf    // A ← the function of a tool whose code is no lambda; fails while there is none
	Sort      // A ← the list B sorted by the field that C names, and to D, or nothing
	Try       // what follows is tried: A to A+3 hold the handler; a caught fault comes to D
	EndTry    // A ← the record of success with B; the handler in A is gone; h in D
	Restore   // an eval or a function that narrowed what is permitted has ended; see package eval
	CallCode  // the code of a tool that is called was evaluated
	CallDone  // a tool that is called gave its result
	NumOps
)

// Asker says in B of JF and JT whose operand must be a truth value.
type Asker = uint8

// The askers.
const (
	AskIf Asker = iota
	AskAnd
	AskOr
	AskNot
	AskAnd2 // the second operand of and
	AskOr2
)

// Words of the machine that the compiler writes as immediates.
const (
	WordNil   = 0x009
	WordUnit  = 0x019
	WordFalse = 0x029
	WordTrue  = 0x039
	WordHole  = 0x049
)

// MaxInt and MinInt bound the integers that are immediate words (63 bits).
const (
	MaxInt = 1<<62 - 1
	MinInt = -1 << 62
)

// The places of the instructions that are there once for all units, where
// functions return to: Halt, Restore, CallCode and CallDone.
const (
	AtRestore  = 1 * InstrSize
	AtCallCode = 2 * InstrSize
	AtCallDone = 3 * InstrSize
)

// ClosureHeader returns the first word of a closure of so many words (an even
// number, the header among them) whose code is at the offset; package eval says how
// words are made.
func ClosureHeader(words int, entry int32, arity int) int64 {
	return int64(0xF | uint64(words)<<8 | uint64(entry/InstrSize)<<28 | uint64(arity)<<56)
}

// Packed returns what K of Get, Compare, At, Nth, ToText, Push and PutOwn holds: the height,
// with their operands at C, and the registers that these are in until then.
func Packed(height uint8, from [3]uint8) int64 {
	return int64(height) | int64(from[0])<<8 | int64(from[1])<<16 | int64(from[2])<<24
}

// Unpacked returns the register of operand i.
func (in *Instr) Unpacked(i int) uint8 { return uint8(in.K >> (8 + 8*i)) }

// The roundings of Round.
const (
	RoundDown = iota
	RoundHalfUp
	RoundHalfEven
)

// What K of Concat says: the first operand is what another concat made, which nothing else
// refers to, or the result has to be such.
const (
	JoinsFresh = 1 << iota
	GivesFresh
)
