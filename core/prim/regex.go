package prim

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var textAndPattern = []Param{{"s", KindString}, {"pattern", KindString}}

// regex is the rows of regular expressions. Their steps are those of compiling the
// pattern, of each instruction that matching comes to, and of what is made.
var regex = []Row{
	{
		Name: "re_match", Group: "regex", Shape: Array, Params: textAndPattern, Result: KindBool,
		Doc: "is true if the regular expression (RE2) fits somewhere in s; with ^ and $ around it all of s has to fit.",
		Examples: []Example{
			{Code: `{"re_match":["order 66","[0-9]+"]}`, Want: `true`, Steps: 14},
			{Code: `{"re_match":["order 66","^[0-9]+$"]}`, Want: `false`},
			{Code: `{"re_match":["order 66",66]}`, Fault: fault.TypeError},
		},
		For:  matchFacts(nil, oneMatch),
		Also: []string{"re.match", "re.fullmatch", "regex.test", "regexp.test", "regex_match", "regex", "regexp", "match_regex", "regex_test", "re_test", "test", "test_regex", "matches", "re_search_test", "re_fullmatch", "fullmatch", "is_match", "ismatch"},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			v, f := beginSearch("re_match", args, m, func(p *pattern) bool { return false }, true)
			if f != nil {
				return nil, f
			}
			return v.result(value.Bool(v.find(0)), nil)
		},
	},
	{
		Name: "re_find", Group: "regex", Shape: Array, Params: textAndPattern, Result: KindString | KindList | KindRecord | KindUnit,
		Doc: "gives the first text in s that the regular expression fits, or null: the text itself if the pattern has no groups, the text of its only group, a list of the texts of several, or a record of those that have names as in (?P<year>[0-9]{4}), with \"\" for a group that took no part.",
		Examples: []Example{
			{Code: `{"re_find":["order 66","[0-9]+"]}`, Want: `"66"`},
			{Code: `{"re_find":["k=v","(\\w+)=(\\w+)"]}`, Want: `["k","v"]`},
			{Code: `{"re_find":["k=v","(?P<key>\\w+)=(?P<value>\\w+)"]}`, Want: `{"key":"k","value":"v"}`},
			{Code: `{"re_find":["none","[0-9]+"]}`, Want: `null`},
			{Code: `{"re_find":[["k=v"],"="]}`, Fault: fault.TypeError},
		},
		For:  matchFacts(func(p *pattern) *Type { return orNull(given(p)) }, oneMatch),
		Also: []string{"re.search", "re_search", "regex_find", "regex_search", "regex_extract", "regexp_extract", "re_extract", "re_exec", "re_capture", "find_match", "match_groups", "regexp_find", "re_find_first"},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			v, f := beginSearch("re_find", args, m, inGroups, false)
			if f != nil {
				return nil, f
			}
			var made value.Value = value.Unit{}
			if v.find(0) {
				texts, bytes := v.texts(v.match)
				if f = v.make(texts, bytes); f == nil {
					made = v.give(v.match)
				}
			}
			return v.result(made, f)
		},
	},
	{
		Name: "re_find_all", Group: "regex", Shape: Array, Params: textAndPattern, Result: KindList,
		Doc: "gives a list of all texts in s that the regular expression fits, from left to right, each as re_find gives it.",
		Examples: []Example{
			{Code: `{"re_find_all":["a1 b22","[0-9]+"]}`, Want: `["1","22"]`},
			{Code: `{"re_find_all":["a=1 b=2","(?P<k>\\w)=(?P<v>\\d)"]}`, Want: `[{"k":"a","v":"1"},{"k":"b","v":"2"}]`},
			{Code: `{"get":[{"try":{"re_find_all":["a","(a"]}},"ok","no pattern"]}`, Want: `"no pattern"`},
			{Code: `{"re_find_all":["[0-9]+",12]}`, Fault: fault.TypeError},
		},
		For:  matchFacts(func(p *pattern) *Type { return listOf(given(p)) }, allMatches),
		Also: []string{"re.findall", "re.finditer", "match_all", "matchall", "findall", "re_findall", "finditer", "re_match_all", "regex_find_all", "regex_findall", "regexp_find_all", "regex_match_all", "find_all", "re_scan", "regexp_matches", "re_all"},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			v, f := beginSearch("re_find_all", args, m, inGroups, false)
			if f != nil {
				return nil, f
			}
			var all []value.Value
			f = v.all(func(match []int) *fault.Fault {
				f := v.make(v.texts(match))
				if f == nil {
					all = append(all, v.give(match))
				}
				return f
			})
			return v.result(v.list(all), f)
		},
	},
	{
		Name: "re_replace", Group: "regex", Shape: Array, Result: KindString,
		Params: []Param{{"s", KindString}, {"pattern", KindString}, {"new", KindString}},
		Doc:    "gives s with new in place of every text that the regular expression fits; $1 or ${name} in new is the text of a group, $0 the whole, $$ a dollar.",
		Examples: []Example{
			{Code: `{"re_replace":["a  b   c"," +"," "]}`, Want: `"a b c"`},
			{Code: `{"re_replace":["k=v","(\\w+)=(\\w+)","$2=$1"]}`, Want: `"v=k"`},
			{Code: `{"re_replace":["2026-11-22","(?P<y>\\d+)-(?P<m>\\d+)-(?P<d>\\d+)","${d}.${m}.${y}"]}`, Want: `"22.11.2026"`},
			{Code: `{"re_replace":["cost","o","$1"]}`, Fault: fault.OutOfRange},
		},
		For:  matchFacts(func(*pattern) *Type { return typeString }, allMatches),
		Also: []string{"re.sub", "re_sub", "regex_replace", "regexp_replace", "gsub", "re_replace_all", "replace_regex", "regex_replace_all", "regex_sub"},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			var to replacement
			v, f := beginSearch("re_replace", args, m, func(*pattern) bool { return true }, false)
			if f == nil {
				to, f = newReplacement(v.p, string(args[2].(value.Str)), m)
			}
			if f != nil {
				return nil, f
			}
			out, from := textBuffer{hold: m.Hold}, 0
			write := func(s string) *fault.Fault {
				if f := v.make(0, len(s)); f != nil {
					return f
				}
				return out.write(s)
			}
			f = v.all(func(match []int) *fault.Fault {
				f := write(v.s[from:match[0]])
				for i := 0; i < len(to) && f == nil; i++ {
					v.work++
					if f = write(to[i].text); f == nil && to[i].group >= 0 {
						f = write(v.text(match, to[i].group))
					}
				}
				from = match[1]
				return f
			})
			if f == nil {
				f = write(v.s[from:])
			}
			made := ""
			if f == nil {
				made, f = out.text()
			}
			return v.result(value.Str(made), f)
		},
	},
	{
		Name: "re_split", Group: "regex", Shape: Array, Params: textAndPattern, Result: KindList,
		Doc: "gives the strings between the texts in s that the regular expression fits.",
		Examples: []Example{
			{Code: `{"re_split":["a, b;c","[,;] *"]}`, Want: `["a","b","c"]`},
			{Code: `{"re_split":["","[,;]"]}`, Want: `[""]`},
			{Code: `{"re_split":["a b",null]}`, Fault: fault.TypeError},
		},
		For:  matchFacts(func(*pattern) *Type { return typeStrings }, allMatches),
		Also: []string{"re.split", "regex_split", "regexp_split", "split_regex", "re_tokenize"},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			v, f := beginSearch("re_split", args, m, func(*pattern) bool { return false }, false)
			if f != nil {
				return nil, f
			}
			var all []value.Value
			from := 0
			add := func(to int) *fault.Fault {
				f := v.make(1, to-from)
				if f == nil {
					all = append(all, value.Str(v.s[from:to]))
				}
				return f
			}
			f = v.all(func(match []int) *fault.Fault {
				// An empty match parts nothing from nothing.
				if match[1] == 0 || match[0] == match[1] && match[0] == len(v.s) {
					return nil
				}
				f := add(match[0])
				from = match[1]
				return f
			})
			if f == nil {
				f = add(len(v.s))
			}
			return v.result(v.list(all), f)
		},
	},
}

// beginSearch begins the search of a row, whose first operands are the text and the
// pattern; groups tells whether the groups are wanted.
func beginSearch(row string, args []value.Value, m *Meter, groups func(*pattern) bool, test bool) (*search, *fault.Fault) {
	p, f := compile(row, string(args[1].(value.Str)), m)
	if f != nil {
		return nil, f
	}
	return newSearch(p, string(args[0].(value.Str)), groups(p), test, m)
}

func inGroups(p *pattern) bool { return p.groups() > 0 }

// make charges what is about to be made: so many texts, of so many bytes together.
func (v *search) make(texts, bytes int) *fault.Fault {
	v.made += int64(bytes) + 64*int64(texts)
	v.work += uint64(texts) + uint64(bytes)/(8*perStep/perMatchStep)
	if v.work >= 1<<12 {
		if v.charge(); v.spent {
			return OutOfFuel(v.m.Left)
		}
	}
	return v.m.room(v.made)
}

// list does [value.FromSlice] in pieces.
func (v *search) list(all []value.Value) value.Value {
	var list value.Value = value.Nil{}
	for i := len(all) - 1; i >= 0; i-- {
		v.m.look(4)
		list = &value.Cons{Head: all[i], Tail: list}
	}
	return list
}

// texts returns how many texts a match gives, and how long they are together.
func (v *search) texts(match []int) (n, bytes int) {
	if v.p.groups() == 0 {
		return 1, match[1] - match[0]
	}
	for i := 1; i < len(v.p.names); i++ {
		if name := v.p.names[i]; !v.p.named || name != "" {
			n++
			bytes += len(v.text(match, i)) + len(name)
		}
	}
	return n, bytes
}

// give returns what a match gives.
func (v *search) give(match []int) value.Value {
	switch n := v.p.groups(); {
	case n == 0:
		return value.Str(v.text(match, 0))
	case v.p.named:
		var fields []value.Field
		for i, name := range v.p.names {
			if name != "" {
				fields = append(fields, value.Field{Key: name, Value: value.Str(v.text(match, i))})
			}
		}
		return recordOf(fields, v.m)
	case n == 1:
		return value.Str(v.text(match, 1))
	}
	all := make([]value.Value, v.p.groups())
	for i := range all {
		all[i] = value.Str(v.text(match, i+1))
	}
	return value.FromSlice(all)
}

// matchFacts returns what is known of a row's result and steps; of where the pattern
// isn't known, p is nil there.
func matchFacts(gives func(p *pattern) *Type, grows func(p *pattern) *Growth) func([]*string) (*Type, *Growth) {
	return func(known []*string) (*Type, *Growth) {
		var p *pattern
		if len(known) > 1 && known[1] != nil {
			p, _ = compile("", *known[1], &Meter{Left: Unlimited})
		}
		if gives == nil {
			return nil, grows(p)
		}
		return gives(p), grows(p)
	}
}

// given returns the type of what a match gives; of re_find's it may be null.
func given(p *pattern) *Type {
	switch {
	case p == nil:
		return &Type{Kinds: KindString | KindList | KindRecord, Item: typeString, Rest: typeString}
	case p.named:
		t := &Type{Kinds: KindRecord}
		names := slices.Clone(p.names)
		for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
			if name != "" {
				t.Fields = append(t.Fields, Field{Key: name, Type: typeString})
			}
		}
		return t
	case p.groups() > 1:
		return typeStrings
	}
	return &Type{Kinds: KindString, Group: p.groups() == 1}
}

func orNull(t *Type) *Type {
	u := *t
	u.Kinds |= KindUnit
	return &u
}

// perCharacter bounds the steps at a character: an instruction leads to at most two
// others and is gone over once.
func (p *pattern) perCharacter() (visits, compiling, groups uint64) {
	if p == nil {
		return 3*maxInstructions + 2, maxInstructions + maxClassRunes/8, maxInstructions / 2
	}
	return 3*uint64(len(p.code)) + 2, p.steps, uint64(p.groups())
}

// oneMatch returns the growth of a row that looks for one.
func oneMatch(p *pattern) *Growth {
	visits, compiling, groups := p.perCharacter()
	return &Growth{
		Bytes: Bound{some(1, bytesOf(0)), some(1, bytesOf(1))}, Items: Bound{some(groups)},
		Steps: Bound{
			some(1, bytesOf(1)), some(compiling + 2*visits/perMatchStep + 2 + groups),
			{Times: visits + groups, Per: perMatchStep, Of: []Measure{bytesOf(0)}},
		},
	}
}

// allMatches returns the growth of a row that looks for all: each may have to look at all
// that comes after it.
func allMatches(p *pattern) *Growth {
	visits, compiling, groups := p.perCharacter()
	n, pattern, to := bytesOf(0), bytesOf(1), bytesOf(2)
	return &Growth{
		Bytes: Bound{some(1, n), some(1, pattern), some(1, to), some(2, n, to)}, Items: Bound{some(1, n), some(2 + groups)},
		Steps: Bound{
			some(1, pattern), some(compiling + visits + 2*groups + 8),
			{Times: visits, Per: perMatchStep, Of: []Measure{n, n}},
			{Times: 4*visits + 2*groups + 4, Per: perMatchStep, Of: []Measure{n}},
			{Times: 1, Per: 4, Of: []Measure{to}}, {Times: 1, Per: 4, Of: []Measure{n, to}},
		},
	}
}
