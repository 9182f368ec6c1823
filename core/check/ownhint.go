package check

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// OwnHint returns the hint on a fault of a run of code in the text form with the code that
// failed in it, written as it may be meant; empty: there is none.
func OwnHint(root term.Term, src *term.Source, f *fault.Fault) string {
	if src == nil || src.Form != term.PIF || f.Line == 0 {
		return ""
	}
	at := failed(root, text.Lines(src.Text), f)
	if conditional(at) {
		cond := operandsOf(at)[0]
		if strings.Contains(f.Message, "second operand") {
			cond = operandsOf(at)[1]
		}
		return notTruth(at, cond, f.Message)
	}
	t, ok := at.(*term.Prim)
	if !ok {
		return ""
	}
	written := func(t term.Term) string {
		s := printBound(t)
		if len(s) > longestOwn || strings.Contains(s, "\n") {
			return ""
		}
		return s
	}
	whole := written(t)
	of := func(name string, which ...int) string {
		u := &term.Prim{ID: t.ID, Args: slices.Clone(t.Args)}
		for _, i := range which {
			s, ok := u.Args[i].(*term.Str)
			spelled := ok && t.ID != prim.Concat && strings.Trim(s.Value, "0123456789.") == ""
			if id, _, _ := prim.Lookup(name); spelled || !isLiteral(u.Args[i]) || t.ID == prim.Concat && isNumeral(u.Args[i]) {
				u.Args[i] = &term.Prim{ID: id, Args: []term.Term{u.Args[i]}}
			}
		}
		if slices.Equal(u.Args, t.Args) {
			return ""
		}
		return written(u)
	}
	row := prim.Get(t.ID)
	isText, isList := strings.Contains(f.Message, "not the string"), strings.Contains(f.Message, "not a list")
	fill := func(format string, parts ...any) string {
		if slices.Contains(parts, any("")) {
			return ""
		}
		return fmt.Sprintf(format, parts...)
	}
	switch name := row.Name; {
	case whole == "":
	case f.Kind == fault.MissingKey && len(t.Args) == 2 && strings.HasPrefix(whole, "get("):
		return fill("Write %s, null), or what stands in for it in place of null.", strings.TrimSuffix(whole, ")"))
	case f.Kind == fault.MissingKey || f.Kind == fault.OutOfRange && t.ID == prim.At:
		if key, ok := t.Args[1].(*term.Str); ok {
			if of, ok := t.Args[0].(*term.Prim); ok && strings.EqualFold(key.Value, "weekday") && prim.Get(of.ID).Name == "parse_time" {
				return fill("Write weekday(%s).", written(of.Args[0]))
			}
			if after := key.Pos() + len(key.Value); src.Text[t.Pos()] == '.' && after < len(src.Text) && src.Text[after] == '(' {
				return "" // of a method
			}
		}
		if len(t.Args) == 2 && (name == "get" || t.ID == prim.At) {
			return fill("Write %s ?? d, with d for what stands in for it.", whole)
		}
	case f.Kind == fault.DivisionByZero && len(t.Args) > 1 && !isLiteral(t.Args[1]):
		return fill("Test the divisor first: if %s == 0 then 0 else %s.", written(t.Args[1]), whole)
	case f.Kind == fault.OutOfRange && t.ID == prim.Div:
		return fill("Write ratio(%[1]s, %[2]s), which has 16 digits, or div_dec(%[1]s, %[2]s, 2, \"half_up\").", written(t.Args[0]), written(t.Args[1]))
	case f.Kind == fault.EmptyList && len(t.Args) == 1 && !isLiteral(t.Args[0]):
		return fill("Test the list first: if isEmpty(%s) then null else %s.", written(t.Args[0]), whole)
	case f.Kind != fault.TypeError:
	case strings.Contains(f.Message, "true or false, and it gave "):
		if l, ok := t.Args[0].(*term.Lam); ok {
			_, gave, _ := strings.Cut(f.Message, "and it gave ")
			return notTruth(t, l.Body, "not "+gave)
		}
	case name == "count" && strings.Contains(f.Message, "first operand") && !strings.Contains(f.Message, "record"):
		return fill("Write count(x => x == %s, %s).", written(t.Args[0]), written(t.Args[1]))
	case name == "count" && isText && literalKind(t.Args[0]) == prim.KindString:
		return fill("Write length(split(%s, %s)) - 1 for how often the one is in the other.", written(t.Args[1]), written(t.Args[0]))
	case name == "append" && repeats(t.Args) != nil:
		return fill("A text was repeated here; a list of copies is %s.", written(repeats(t.Args)))
	case t.ID == prim.Add && strings.Contains(f.Message, "not a record"):
		return fill("Write {...%s, ...%s} for the fields of both.", written(t.Args[0]), written(t.Args[1]))
	case name == "isEmpty":
		for says, none := range map[string]string{"not a record": "{}", "not the string": `""`, "not null": "null"} {
			if strings.Contains(f.Message, says) {
				return fill("Write %s == %s.", written(t.Args[0]), none)
			}
		}
	case len(t.Args) > 1 && t.ID != prim.Concat && (strings.Contains(f.Message, "takes a string as its second operand, not the integer") || t.ID == prim.At && strings.HasPrefix(f.Message, "the index into a record")):
		if n, ok := t.Args[1].(*term.Int); ok && row.Params[0].Kinds&prim.KindRecord != 0 {
			keyed := &term.Prim{ID: t.ID, Args: slices.Clone(t.Args)}
			keyed.Args[1] = &term.Str{Value: strconv.FormatInt(n.Value, 10)}
			return fill("A key is a text: write %s.", written(keyed))
		}
		if v, ok := t.Args[1].(*term.Var); ok && !strings.HasPrefix(string(src.Text[v.Pos():]), v.Name) { // made by what reads ??
			return "A key is a text: write r[to_text(k)] for the key of a number."
		}
		return fill("A key is a text: write %s.", of("to_text", 1))
	case name == "set_nth" && strings.Contains(f.Message, "second operand"):
		return fill("set_nth takes the index before the value: %s.", written(&term.Prim{ID: t.ID, Args: []term.Term{t.Args[0], t.Args[2], t.Args[1]}}))
	case strings.Contains(f.Message, "not for a list") && len(t.Args) == 2:
		return fill("%[1]s takes the list first: %[1]s(%[3]s, %[2]s).", name, written(t.Args[0]), written(t.Args[1]))
	case isList && (t.ID == prim.Add || t.ID == prim.Concat):
		return fill("Join lists with append(%s, %s).", written(t.Args[0]), written(t.Args[1]))
	case isText && t.ID == prim.Sub && dated.MatchString(f.Message):
		return fill("Write diff_time(%s, %s, \"days\").", written(t.Args[0]), written(t.Args[1]))
	case isText && t.ID == prim.Add && strings.Contains(f.Message, "first operand") && !isLiteral(t.Args[1]):
		return fill("Join texts with %[1]s ++ %[2]s; of numbers in texts write %[3]s. Where %[2]s is a number write %[1]s ++ %[4]s.", written(t.Args[0]), written(t.Args[1]), of("to_dec", 0, 1), written(&term.Prim{ID: toText, Args: t.Args[1:]}))
	case isText && t.ID == prim.Add:
		return fill("Join texts with %s ++ %s; of numbers in texts write %s.", written(t.Args[0]), written(t.Args[1]), of("to_dec", 0, 1))
	case isText && (t.ID == prim.Sub || t.ID == prim.Mul || t.ID == prim.Div), isText && row.Group == "comparison" && len(t.Args) == 2 && slices.ContainsFunc(t.Args, isNumeral):
		return fill("Make numbers of the texts: %s.", of("to_dec", 0, 1))
	case isText && (t.ID == prim.Mod || name == "format") && inPlaces(t.Args) != "":
		return fill("Write %s.", inPlaces(t.Args))
	case isText && t.ID == prim.Mod:
		return fill("Make numbers of the texts: %s.", of("parse_int", 0, 1))
	case strings.HasPrefix(name, "pad_") && strings.Contains(f.Message, "first operand"):
		return fill("Make a text of the value: %s.", of("to_text", 0))
	case isText && name == "to_int":
		return fill("Write parse_int(%s), or to_dec of a text with a fraction.", written(t.Args[0]))
	case t.ID == prim.Concat && strings.Contains(f.Message, "first operand") && !strings.Contains(f.Message, "null"):
		if isNumeral(t.Args[1]) {
			return fill("Make texts of the values: %s.", of("to_text", 0, 1))
		}
		return fill("Make a text of the value: %s.", of("to_text", 0))
	case t.ID == prim.Concat && !strings.Contains(f.Message, "null"):
		return fill("Make a text of the value: %s.", of("to_text", 1))
	}
	return ""
}

// dated is what quotes a date.
var dated = regexp.MustCompile(`"\d{4}-\d\d-\d\d`)

var toText, _, _ = prim.Lookup("to_text")

// repeats returns repeat(n, text) where an operand is the text repeated; nil: none is.
func repeats(args []term.Term) term.Term {
	for _, t := range args {
		if p, ok := t.(*term.Prim); ok && prim.Get(p.ID).Name == "repeat_text" {
			id, _, _ := prim.Lookup("repeat")
			return &term.Prim{ID: id, Args: []term.Term{p.Args[1], p.Args[0]}}
		}
	}
	return nil
}

// notTruth is the hint on a condition that gave what a message says.
func notTruth(of, cond term.Term, message string) string {
	for _, c := range conditions {
		if strings.Contains(message, c.says) {
			return truth(of, cond, c.kinds)
		}
	}
	return ""
}

// printBound is [PrintText] where something binds the variables: a name that is an operation's, too,
// is written as it is.
func printBound(t term.Term) string {
	outer, inner := t, term.Term(&term.Unit{})
	for _, name := range term.Free(t) {
		if text.Print(&term.Var{Name: name})[0] == '`' {
			outer, inner = &term.Lam{Param: name, Body: outer}, &term.Lam{Param: name, Body: inner}
		}
	}
	return strings.TrimPrefix(string(PrintText(outer)), strings.TrimSuffix(string(PrintText(inner)), "null"))
}

// place is where "%d of %s" and "{} of {}" have a value, in other languages.
var place = regexp.MustCompile(`%[-+ 0#]*\d*(?:\.\d+)?[a-z]|\{\w*(?::[^{}]*)?\}`)

// inPlaces returns a text with the values in it that are given after it; "": it isn't known, or
// has other places.
func inPlaces(args []term.Term) string {
	s, ok := args[0].(*term.Str)
	values := args[1:]
	if len(values) == 1 {
		if l, ok := values[0].(*term.List); ok {
			values = l.Items
		} else if p, ok := values[0].(*term.Prim); ok && p.ID == prim.Pair {
			values = p.Args
		}
	}
	if !ok || len(place.FindAllString(s.Value, -1)) != len(values) {
		return ""
	}
	i := 0
	return "$" + place.ReplaceAllStringFunc(string(text.AppendString(nil, s.Value)), func(how string) string {
		i++
		how = strings.NewReplacer("%-", ":<", "%", ":", "{", "", "}", "").Replace(how)
		if how = strings.TrimSuffix(strings.TrimSuffix(how[strings.IndexByte(how+":", ':'):], "s"), ":"); how == ":d" {
			how = ""
		}
		value := string(PrintText(values[i-1]))
		if p, f := text.Parse([]byte(fmt.Sprintf("$\"{x%s}\"", how)), text.Options{}); f != nil || p == nil {
			how = ""
		}
		return "{" + value + how + "}"
	})
}

// NoFunction returns the message and the hint of a fault of a run of code in the text form that
// called what is no function; empty: it is another fault.
func NoFunction(root term.Term, src *term.Source, f *fault.Fault) (message, hint string) {
	got, ok := strings.CutPrefix(f.Message, prim.Mismatch(prim.App, 0, "").Message)
	if src == nil || src.Form != term.PIF || f.Line == 0 || !ok {
		return "", ""
	}
	if name, params := overApplied(root, failed(root, text.Lines(src.Text), f)); params > 0 {
		arguments := "1 argument"
		if params > 1 {
			arguments = strconv.Itoa(params) + " arguments"
		}
		return fmt.Sprintf("%s takes %s and gave %s, which can't be called with one more", name, arguments, got),
			fmt.Sprintf("Leave the last argument out, give %s a parameter for it, or have it give a function.", name)
	}
	return "only a function can be called, not " + got, "Write f(x) with a function f, x[i] for an item or a field; operators stand between two operands."
}

// overApplied returns the name of the function that t gives one argument too many, and how many
// parameters its only binding in root has; 0: there is no such function.
func overApplied(root, t term.Term) (name string, params int) {
	given := 0
	for app, ok := t.(*term.App); ok; app, ok = t.(*term.App) {
		t, given = app.Func, given+1
	}
	v, ok := t.(*term.Var)
	if !ok {
		return "", 0
	}
	bindings := 0
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		switch t := t.(type) {
		case *term.Lam:
			if t.Param == v.Name {
				bindings++
			}
		case *term.App:
			if l, ok := t.Func.(*term.Lam); ok && l.Param == v.Name {
				params = len(term.Params(t.Arg))
			}
		case *term.LetRec:
			for _, f := range t.Funcs {
				if f.Name == v.Name {
					bindings++
					params = len(term.Params(f.Lam))
				}
			}
		}
		return term.Children(t, walk)
	}
	if walk(root); bindings != 1 || params != given-1 {
		return "", 0
	}
	return v.Name, params
}

// failed returns the operation or application that a fault names, or the conditional, where it stands.
func failed(root term.Term, lines *text.LineIndex, f *fault.Fault) (found term.Term) {
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		name := ""
		if p, ok := t.(*term.Prim); ok {
			if name = prim.Get(p.ID).Name; f.Kind == fault.MissingKey || p.ID == prim.At && (f.Kind == fault.OutOfRange || strings.HasPrefix(f.Message, "the index into a record")) {
				name = f.Message
			}
		} else if conditional(t) {
			name = "if"
		} else if _, ok := t.(*term.App); ok {
			name = prim.Get(prim.App).Name
		}
		if name != "" && t.Pos() >= 0 && strings.HasPrefix(f.Message+" ", name+" ") {
			if line, col := lines.Position(t.Pos()); line == f.Line && col == f.Col {
				found = t
				return false
			}
		}
		return term.Children(t, walk)
	}
	walk(root)
	return found
}

func isNumeral(t term.Term) bool { return literalKind(t) == prim.KindNumber }
