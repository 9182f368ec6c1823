package term

import (
	"slices"
	"strings"
)

// NewEffect makes an effect. The field "in" of an argument that is a literal
// record goes to In; it must be a string that isn't empty, written in the code:
// ok is false where it is something else.
func NewEffect(at At, op string, arg Term) (e *Effect, ok bool) {
	e = &Effect{At: at, Op: op, Arg: arg}
	r, isRecord := arg.(*Record)
	if !isRecord {
		return e, true
	}
	i, found := slices.BinarySearchFunc(r.Fields, "in", func(f Field, key string) int { return strings.Compare(f.Key, key) })
	if !found {
		return e, true
	}
	s, isStr := r.Fields[i].Value.(*Str)
	if !isStr || s.Value == "" {
		return e, false
	}
	rest := slices.Concat(r.Fields[:i], r.Fields[i+1:])
	e.In, e.Arg = s.Value, &Record{At: r.At, Fields: rest}
	return e, true
}

// Argument returns the effect's argument as it is written, with In among its fields.
func (e *Effect) Argument() Term {
	r, ok := e.Arg.(*Record)
	if e.In == "" || !ok {
		return e.Arg
	}
	i, _ := slices.BinarySearchFunc(r.Fields, "in", func(f Field, key string) int { return strings.Compare(f.Key, key) })
	return &Record{At: r.At, Fields: slices.Insert(slices.Clone(r.Fields), i, Field{"in", &Str{r.At, e.In}})}
}

// With returns the list that stands beside an eval, whose operands args are: the
// texts of the capabilities by which effects can be performed meanwhile. ok is false
// where it isn't a list of strings written in the code.
func With(args []Term) (texts []string, ok bool) {
	if len(args) < 2 {
		return nil, true
	}
	l, ok := args[1].(*List)
	if !ok {
		return nil, false
	}
	for _, item := range l.Items {
		s, ok := item.(*Str)
		if !ok {
			return nil, false
		}
		texts = append(texts, s.Value)
	}
	return texts, true
}
