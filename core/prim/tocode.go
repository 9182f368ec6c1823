package prim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A coder makes a term of data, and with it the JSON that the term's places
// refer to.
type coder struct {
	src   []byte
	depth int
	path  []int // the args on the way to the node being made
	bad   *fault.Fault
}

// toCode makes quoted code of data.
func toCode(v value.Value) (value.Value, *fault.Fault) {
	var c coder
	t := c.node(v)
	if c.bad != nil {
		return nil, c.bad
	}
	return &value.Code{Term: t, Source: &term.Source{Text: c.src, In: "eval"}}, nil
}

// fail refuses the node being made.
func (c *coder) fail(kind fault.Kind, message, expected string, got value.Value) term.Term {
	if c.bad != nil {
		return &term.Unit{}
	}
	place := ""
	for _, i := range c.path {
		if len(place) > 200 {
			place += "…"
			break
		}
		place += "/args/" + strconv.Itoa(i)
	}
	place = cmp.Or(place, "the top")
	c.bad = &fault.Fault{
		Kind: kind, Message: "to_code: at " + place + ": " + message, Expected: expected,
		Hint: `Build nodes as to_data shows them: {"to_data":{"quote":{"add":[1,{"var":"x"}]}}}.`,
	}
	if got != nil {
		c.bad.Got = Describe(got)
	}
	return &term.Unit{}
}

func (c *coder) w(parts ...string) {
	for _, p := range parts {
		c.src = append(c.src, p...)
	}
}

// A dataNode is a record that says a node.
type dataNode struct {
	op     string
	args   []value.Value
	fields []value.Field // besides op and args
}

// read takes a record apart.
func (c *coder) read(v value.Value) (n dataNode, ok bool) {
	v = value.Force(v)
	r, ok := v.(*value.Record)
	if !ok {
		c.fail(fault.TypeError, "a node is a record, not "+Describe(v), "a record with op and args", v)
		return n, false
	}
	for _, f := range r.Fields {
		part := value.Force(f.Value)
		switch f.Key {
		case "op":
			s, ok := part.(value.Str)
			if !ok {
				c.fail(fault.TypeError, "op is a string, not "+Describe(part), "a string", part)
				return n, false
			}
			n.op = string(s)
		case "args":
			if KindOf(part) != KindList {
				c.fail(fault.TypeError, "args is a list, not "+Describe(part), "a list", part)
				return n, false
			}
			n.args = slice(part)
		default:
			if len(n.fields) == 4 {
				c.fail(fault.ParseError, "a node has no key "+quoted(f.Key), "op, args and what to_data puts beside them", nil)
				return n, false
			}
			n.fields = append(n.fields, value.Field{Key: f.Key, Value: part})
		}
	}
	if n.op == "" {
		c.fail(fault.ParseError, "the record has no op", "a record with op and args", v)
		return n, false
	}
	return n, true
}

// beside returns the only other key that a node has, nil if it has none; a
// different one is refused.
func (c *coder) beside(n dataNode, key string, kinds Kinds) value.Value {
	var found value.Value
	for _, f := range n.fields {
		if f.Key != key {
			c.fail(fault.ParseError, fmt.Sprintf("%s has no key %s", quoted(n.op), quoted(f.Key)), "the keys that to_data gives", nil)
			return nil
		}
		found = f.Value
	}
	switch {
	case found != nil && !kinds.Has(found):
		c.fail(fault.TypeError, fmt.Sprintf("the %s of %s is %s, not %s", key, n.op, kinds.Phrase(), Describe(found)), kinds.Phrase(), found)
		return nil
	case found == nil && key != "":
		c.fail(fault.ParseError, n.op+" lacks "+quoted(key), quoted(key), nil)
	}
	return found
}

// name returns the string that a node has under a key.
func (c *coder) name(n dataNode, key string) string {
	s, _ := c.beside(n, key, KindString).(value.Str)
	if !utf8.ValidString(string(s)) {
		c.fail(fault.ParseError, fmt.Sprintf("the %s of %s is not valid UTF-8", key, n.op), "valid UTF-8", nil)
	}
	return string(s)
}

// operands makes the args, which must be so many; −1: any number.
func (c *coder) operands(n dataNode, want int, sep string) []term.Term {
	if c.bad != nil {
		return make([]term.Term, max(want, 0))
	}
	if want >= 0 && len(n.args) != want {
		c.fail(fault.ParseError, fmt.Sprintf("%s takes %d args, not %d", n.op, want, len(n.args)), strconv.Itoa(want)+" args", nil)
		return make([]term.Term, want)
	}
	ts := make([]term.Term, len(n.args))
	for i := range n.args {
		if i > 0 {
			c.w(sep)
		}
		ts[i] = c.arg(n, i)
	}
	return ts
}

func (c *coder) arg(n dataNode, i int) term.Term {
	c.path = append(c.path, i)
	t := c.node(n.args[i])
	c.path = c.path[:len(c.path)-1]
	return t
}

func (c *coder) node(v value.Value) term.Term {
	if c.bad != nil {
		return &term.Unit{}
	}
	n, ok := c.read(v)
	if !ok {
		return &term.Unit{}
	}
	if c.depth += 2; c.depth > maxNesting {
		return c.fail(fault.ParseError, fmt.Sprintf("written out, the code is nested more than %d deep", maxNesting), "less nesting", nil)
	}
	defer func() { c.depth -= 2 }()
	at := term.At(len(c.src))
	switch n.op {
	case "int", "dec", "bool", "string", "null", "var", "self", "code_of":
		if n.op != "code_of" || len(n.args) == 0 {
			return c.leaf(n, at)
		}
	case "lam":
		param := c.name(n, "param")
		c.w(`{"lam":`, quoteJSON(param), `,"body":`)
		body := c.operands(n, 1, "")
		c.w("}")
		return &term.Lam{At: at, Param: param, Body: body[0]}
	case "list":
		c.beside(n, "", 0)
		c.w("[")
		items := c.operands(n, -1, ",")
		c.w("]")
		return &term.List{At: at, Items: items}
	case "record":
		return c.record(n, at)
	case "letrec":
		return c.letrec(n, at)
	case "effect":
		op := c.name(n, "name")
		if kind, verb, _ := strings.Cut(op, "."); kind == "" || verb == "" {
			return c.fail(fault.ParseError, "the effect "+quoted(op)+" has no kind or no verb", "kind.verb", nil)
		}
		c.w("{", quoteJSON(op), ":")
		arg := c.operands(n, 1, "")
		c.w("}")
		e, ok := term.NewEffect(at, op, arg[0])
		if !ok {
			return c.fail(fault.ParseError, `the "in" of an effect is a string that isn't empty, written in the code`, "a node with op string", nil)
		}
		return e
	}
	return c.row(n, at)
}

// leaf makes a node without operands.
func (c *coder) leaf(n dataNode, at term.At) term.Term {
	c.operands(n, 0, "")
	switch n.op {
	case "int":
		i, ok := c.beside(n, "value", KindInt).(value.Int)
		if !ok {
			break
		}
		s := ""
		if i.Words() <= 4*free {
			s = i.Big().String()
		}
		if s == "" || len(s) > value.MaxDigits {
			return c.fail(fault.OutOfRange, "an integer in code has at most 4096 digits", "at most 4096 digits", i)
		}
		c.w(s)
		if small, ok := i.Int64(); ok {
			return &term.Int{At: at, Value: small}
		}
		return &term.Big{At: at, Value: i.Big()}
	case "dec":
		if d, ok := c.beside(n, "value", KindDec).(value.Dec); ok {
			c.w(`{"dec":"`, d.String(), `"}`)
			return &term.Dec{At: at, Unscaled: d.Unscaled(), Scale: d.Scale()}
		}
	case "bool":
		b, _ := c.beside(n, "value", KindBool).(value.Bool)
		c.w(strconv.FormatBool(bool(b)))
		return &term.Bool{At: at, Value: bool(b)}
	case "string":
		s := c.name(n, "value")
		c.w(quoteJSON(s))
		return &term.Str{At: at, Value: s}
	case "var":
		s := c.name(n, "name")
		c.w(`{"var":`, quoteJSON(s), "}")
		return &term.Var{At: at, Name: s}
	case "code_of":
		s := c.name(n, "name")
		c.w(`{"code_of":`, quoteJSON(s), "}")
		return &term.CodeOf{At: at, Name: s}
	case "self":
		c.beside(n, "", 0)
		c.w(`{"self":true}`)
		return &term.Self{At: at}
	case "null":
		c.beside(n, "", 0)
		c.w("null")
	}
	return &term.Unit{At: at}
}

func (c *coder) record(n dataNode, at term.At) term.Term {
	keys, ok := c.texts(n, "keys", len(n.args))
	if !ok {
		return &term.Unit{}
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	t := &term.Record{At: at}
	c.w(`{"record":{`)
	for k, i := range order {
		if k > 0 {
			if keys[order[k-1]] == keys[i] {
				return c.fail(fault.ParseError, "record has the key "+quoted(keys[i])+" twice", "each key once", nil)
			}
			c.w(",")
		}
		c.w(quoteJSON(keys[i]), ":")
		t.Fields = append(t.Fields, term.Field{Key: keys[i], Value: c.arg(n, i)})
	}
	c.w("}}")
	return t
}

// texts returns the list of strings beside a node, which are as many as count.
func (c *coder) texts(n dataNode, key string, count int) ([]string, bool) {
	list := c.beside(n, key, KindList)
	if list == nil {
		return nil, false
	}
	var all []string
	for k := range items(list) {
		k = value.Force(k)
		s, ok := k.(value.Str)
		if !ok {
			c.fail(fault.TypeError, fmt.Sprintf("the %s of %s are strings, not %s", key, n.op, Describe(k)), "strings", k)
			return nil, false
		}
		all = append(all, string(s))
	}
	if len(all) != count {
		c.fail(fault.ParseError, fmt.Sprintf("%s has %d %s and %d args", n.op, len(all), key, len(n.args)), fmt.Sprintf("%d %s", max(count, 1), key), nil)
		return nil, false
	}
	return all, true
}

// letrec makes functions that see one another: the args but the last, by their names.
func (c *coder) letrec(n dataNode, at term.At) term.Term {
	last := len(n.args) - 1
	names, ok := c.texts(n, "names", last)
	if !ok {
		return &term.Unit{}
	}
	if last < 1 {
		return c.fail(fault.ParseError, "letrec has no function", "a name and two args, or more", nil)
	}
	t := &term.LetRec{At: at}
	seen := map[string]bool{}
	c.w(`{"letrec":[`)
	c.depth++
	for i, name := range names {
		if seen[name] {
			return c.fail(fault.ParseError, "letrec has the name "+quoted(name)+" twice", "each name once", nil)
		}
		seen[name] = true
		if i > 0 {
			c.w(",")
		}
		c.w("[", quoteJSON(name), ",")
		l, ok := c.arg(n, i).(*term.Lam)
		if !ok {
			return c.fail(fault.ParseError, "letrec has an arg for the name "+quoted(name)+" that is no lam", "a node with op lam", nil)
		}
		c.w("]")
		t.Funcs = append(t.Funcs, term.Func{Name: name, Lam: l})
	}
	c.depth--
	c.w(`],"in":`)
	t.Body = c.arg(n, last)
	c.w("}")
	return t
}

// row makes a node of the table.
func (c *coder) row(n dataNode, at term.At) term.Term {
	id, r, ok := lookups.lookup(n.op)
	switch {
	case !ok || r.Sugar() || r.Shape == Literal:
		c.fail(fault.ParseError, "there is no operation "+quoted(n.op), "an operation's name", nil)
		if near := lookups.nearest(n.op); near != "" {
			c.bad.Near = near
		}
		return &term.Unit{}
	case !r.Takes(len(n.args)) && r.Shape != Flag:
		many := r.Operands()
		return c.fail(fault.ParseError, fmt.Sprintf("%s takes %s args, not %d", n.op, many, len(n.args)), many+" args", nil)
	}
	c.beside(n, "", 0)
	c.w(`{"`, r.Name, `":`)
	var args []term.Term
	switch r.Shape {
	case Flag:
		args = c.operands(n, 0, "")
		c.w("true")
	case Unary, NamedOrTerm:
		args = c.operands(n, 1, "")
	case Within:
		args = c.operands(n, -1, `,"with":`)
		if _, ok := term.With(args); !ok {
			return c.fail(fault.ParseError, "what stands beside eval is a list of strings written in the code", "a node with op list and args with op string", nil)
		}
	case Keyed, KeyedOrArray:
		c.w("{")
		for i, p := range r.Params {
			if i > 0 {
				c.w(",")
			}
			if i == len(r.Params)-1 && r.Listed(len(n.args)) {
				c.depth++
				c.w(quoteJSON(r.List), ":[")
				for j := i; j < len(n.args); j++ {
					if j > i {
						c.w(",")
					}
					args = append(args, c.arg(n, j))
				}
				c.w("]")
				c.depth--
				break
			}
			c.w(quoteJSON(p.Name), ":")
			args = append(args, c.arg(n, i))
		}
		c.w("}")
	default:
		c.w("[")
		args = c.operands(n, -1, ",")
		c.w("]")
	}
	c.w("}")
	if c.bad != nil {
		return &term.Unit{}
	}
	switch n.op {
	case "app":
		return &term.App{At: at, Func: args[0], Arg: args[1]}
	case "if":
		return &term.If{At: at, Cond: args[0], Then: args[1], Else: args[2]}
	case "continue":
		return &term.Continue{At: at, Input: args[0]}
	case "quote":
		return &term.Quote{At: at, Body: args[0]}
	}
	return &term.Prim{At: at, ID: id, Args: args}
}

// dataWork returns the steps of making code of data, one for each 16 words.
func dataWork(args []value.Value, left uint64) uint64 {
	nodes, bytes := measureData(args[0], left)
	if nodes > maxWords/64 {
		return math.MaxUint64
	}
	return nodes/4 + bytes/(8*perStep)
}

// measureData counts what toCode would look at, up to a limit.
func measureData(v value.Value, left uint64) (nodes, bytes uint64) {
	todo := []value.Value{v}
	left = min(left, maxWords/128)
	for len(todo) > 0 && nodes/4 <= left {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		nodes++
		t, size := value.Measure(v)
		if t != value.TypeRecord {
			continue
		}
		if nodes += uint64(size) / 16; size > 16 {
			continue // no node has so many
		}
		r := value.Force(v).(*value.Record)
		for _, f := range r.Fields {
			if t, size := value.Measure(f.Value); t == value.TypeString {
				bytes += uint64(size)
			} else if f.Key == "args" || f.Key == "keys" || f.Key == "names" {
				for item := range items(f.Value) {
					if todo = append(todo, item); uint64(len(todo))/4 > left {
						break
					}
				}
			}
		}
	}
	return nodes, bytes
}
