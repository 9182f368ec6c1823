package check

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// Widen returns the report with the input of a run that succeeded in the parameters'
// types: what was inferred otherwise is proven wrong by it. What doesn't fit is of any
// type, and the rest stays. Where all fits, or the input isn't one that [Read] reads,
// the report is as it was.
func (r *Report) Widen(input json.RawMessage) *Report {
	c, f := r.call(input, nil, false)
	params, gives := r.Arguments()
	if f == nil && len(c.values) == len(params) {
		for i := range params {
			params[i].Type = params[i].Type.widen(json.RawMessage(c.values[i].src))
		}
	}
	t := r.Type.arguments(params, gives)
	if t == r.Type {
		return r
	}
	wide := *r
	wide.Type, wide.Typed, wide.wide = t, false, true
	return &wide
}

// arguments is the type with other parameters and another result, itself where they
// are the same.
func (t *Type) arguments(params []Parameter, result *Type) *Type {
	switch {
	case len(params) == 0:
		return result
	case !t.IsFunction() || t.Name != "":
		return t // the type doesn't tell its parameters
	}
	rest := t.Result.or().arguments(params[1:], result)
	if params[0].Type == t.Param.or() && rest == t.Result.or() {
		return t
	}
	u := *t
	u.Param, u.Result = params[0].Type, rest
	return &u
}

// widen is the type, made to fit data.
func (t *Type) widen(raw json.RawMessage) *Type {
	if isOpen(t) || t.Kinds&^(prim.KindData&^prim.KindQuoted) != 0 {
		return t
	}
	u := t
	if given, ok := members(raw); ok && t.Kinds&prim.KindRecord != 0 {
		u = t.widenRecord(given)
	}
	var items []json.RawMessage
	if t.Kinds&prim.KindList != 0 && json.Unmarshal(raw, &items) == nil {
		item := t.Item.or()
		for _, i := range items {
			item = item.widen(i)
		}
		if item != t.Item.or() {
			list := *t
			list.Item = item
			u = &list
		}
	}
	if !Fits(raw, u) {
		return Any
	}
	return u
}

// widenRecord is widen for a record with the members.
func (t *Type) widenRecord(given []member) *Type {
	u := *t
	u.Fields = slices.Clone(t.Fields)
	changed := false
	for i, f := range u.Fields {
		if !f.Optional && !isGiven(given, f.Key) {
			u.Fields[i].Optional, changed = true, true
		}
	}
	for _, m := range given {
		at, ok := slices.BinarySearchFunc(u.Fields, m.key, func(f Field, key string) int { return strings.Compare(f.Key, key) })
		of := &u.Rest
		if ok {
			of = &u.Fields[at].Type
		} else if u.Rest == nil {
			continue
		}
		if wide := (*of).widen(m.value); wide != *of {
			*of, changed = wide, true
		}
	}
	if !changed {
		return t
	}
	return &u
}
