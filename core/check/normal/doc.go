// Package normal gives terms a normal form, and says by it, and by trying,
// whether two programs do the same.
//
// Normalising is evaluating as far as things are known (normalisation by
// evaluation, Berger and Schwichtenberg 1991, with the bindings that strict
// evaluation and effects need, Danvy 1996). What isn't known, may fail or acts
// stays as a computation with a name, in the order in which the program does
// it; what always gives a value may be done elsewhere, once, or not at all.
// Functions are equal by what they give: variables are called by the number of
// binders around them. What computes with integers is a polynomial (sum.go), what
// joins strings a list of parts (join.go), and a row that fails for nothing but the
// kinds of its operands is a test of them and a computation that can't fail
// (guard.go). [Equations] is what is used, and nothing else is.
//
// Two programs are the same if for every input they give the same value, fail
// with the same kind, and ask for the same operations in the same order. Not
// part of that are steps, memory and depth, and the place and the words of a
// failure. A program that shows places or words (through try), looks at its own
// code (code_of self), or evaluates code that sees the variables around it is
// left alone: its normal form is itself ([Form.Opaque]).
//
// Everything has a budget and is deterministic. [Equal] says equal, with the
// reason, different, with an input that shows it, or that it doesn't know.
package normal
