// Package check says what a program is before it runs: the type of what it
// gives, what it can ask the world for, where it must fail, and where it can't
// be known whether it does.
//
// Inference is algebraic subtyping (Parreaux, "The Simple Essence of Algebraic
// Subtyping", ICFP 2020): every term gives a variable, what a term makes flows
// into it as a lower bound, and what a term needs of a value is tested on each
// bound that arrives (graph.go, demand.go). Types are unions with at most one
// part of each kind, so that a bound meets one part only. A function bound by
// let is typed anew at each of its uses, which is what generalising it means in
// a language without mutation; `self` has one type in its own body.
//
// What a caller may give is found by calling the program with unknown values:
// an unknown that is tested becomes a value of the kinds that the tests permit,
// and a kind that would fail is no part of the input's type (seed.go). So
// parameters have the widest type with which no test fails.
//
// Nothing is refused. A [Report] has a diagnostic where a place fails whenever
// it is evaluated, and a dynamic place, with its reason, where a value's type
// can't be known or a test is left to the run. A program without either never
// fails with type_error or unbound on an input of its type.
//
// Types are immutable; [Type.String] and [ParseType] are inverse (notation.go
// has the grammar). [Derive] gives a type for every term of a program in its
// order, such that a checker without inference can verify each by its
// neighbours. Schemas of a tool's input and output come from the type
// (schema.go, decode.go); a narrower one that an author declares is held against it
// and against the arguments (declare.go, declared.go, held.go). A schema that another
// program wrote is read as a type, and values are held to it, by [FromSchema].
package check
