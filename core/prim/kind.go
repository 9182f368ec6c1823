package prim

import (
	"strings"

	"github.com/mcp-pif/mcp-pif/core/value"
)

// Kinds is a set of kinds of operand or result.
type Kinds uint16

// The kinds. Those up to KindDec are types of values; a KindName is a
// string in the program itself, a KindCode a term that is not evaluated here.
const (
	KindInt Kinds = 1 << iota
	KindBool
	KindString
	KindUnit
	KindList
	KindPair
	KindRecord
	KindFunction
	KindQuoted
	KindContinuation
	KindDec
	KindName
	KindCode

	KindAny    = KindName - 1
	KindNumber = KindInt | KindDec
	// KindData is what crosses between tools.
	KindData = KindAny &^ (KindFunction | KindContinuation)
)

// KindOf returns a value's type as a set of one.
func KindOf(v value.Value) Kinds {
	switch v.(type) {
	case value.Int:
		return KindInt
	case value.Dec:
		return KindDec
	case value.Bool:
		return KindBool
	case value.Str:
		return KindString
	case value.Unit:
		return KindUnit
	case value.Nil, *value.Cons:
		return KindList
	case *value.Pair:
		return KindPair
	case *value.Record:
		return KindRecord
	case *value.Closure:
		return KindFunction
	case *value.Code:
		return KindQuoted
	case *value.Continuation:
		return KindContinuation
	}
	return 0
}

// Has reports whether v is of one of the kinds.
func (k Kinds) Has(v value.Value) bool { return k&KindOf(v) != 0 }

var kindWords = []struct {
	kind       Kinds
	name, noun string
}{
	{KindInt, "int", "an integer"},
	{KindDec, "dec", "a decimal"},
	{KindBool, "bool", "true or false"},
	{KindString, "string", "a string"},
	{KindUnit, "unit", "null"},
	{KindList, "list", "a list"},
	{KindPair, "pair", "a pair"},
	{KindRecord, "record", "a record"},
	{KindFunction, "function", "a function"},
	{KindQuoted, "quoted", "quoted code"},
	{KindContinuation, "continuation", "a continuation"},
	{KindName, "name", "a name in quotes"},
	{KindCode, "code", "a term, not evaluated"},
}

// String gives the kinds' names with bars between: "int|string"; "any" for all.
func (k Kinds) String() string {
	return k.join("any", "|", func(i int) string { return kindWords[i].name })
}

// Phrase gives the kinds in words: "a list or a string".
func (k Kinds) Phrase() string {
	if k&KindNumber == KindNumber && k&KindAny != KindAny {
		if k == KindNumber {
			return "a number"
		}
		return "a number or " + (k &^ KindNumber).Phrase()
	}
	return k.join("any value", " or ", func(i int) string { return kindWords[i].noun })
}

func (k Kinds) join(all, sep string, word func(int) string) string {
	switch {
	case k&KindAny == KindAny:
		return all
	case k == KindData:
		return "data"
	}
	var words []string
	for i := range kindWords {
		if k&kindWords[i].kind != 0 {
			words = append(words, word(i))
		}
	}
	return strings.Join(words, sep)
}
