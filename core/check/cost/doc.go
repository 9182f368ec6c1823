// Package cost bounds what a run takes before it runs: steps and memory, as
// formulas of the sizes of what it is given.
//
// The program is evaluated with sizes in the place of values ([Of]): a number is
// its magnitude and its words, a list its length and what an item can be, an
// input whatever is at its path. Functions that are known are gone through where
// they are applied. A fold, and a function that calls itself, is gone through
// once with what changes from round to round as variables of their own; how
// often it goes on, and how those grow (m ← a·m + b), gives the formula. A
// function that calls itself needs something that gets smaller with every call:
// a list's tail, or a number that a condition tests against a limit.
//
// A bound is never less than what a run takes; it may be more. Where there is
// none it is [Unbounded], and [Report.Why] says at which place that begins: a
// function or code from an input, a call of another tool, a recursion without
// a limit, a formula too large to be told. Bounds have one spelling
// ([ParseBound]), and are worked out for given sizes ([Bound.Eval], [Sizes]).
//
// Integers beyond 64 bits take more steps: that is in the formula (words), and
// not in the class. Steps that reading the input takes are its terms.
package cost
