package run_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A modelRule is a rule of [TestFlowMany] as its model reads it: not_from is letters, "abc".
type modelRule struct {
	op, scope, argument, how string
	from                     string
	all                      bool // all_of
}

// A model is what rules of flow mean, a set of letters at a time.
type model struct {
	rules  []modelRule
	taints map[string]string // by prefix
}

func in(key, scope string) bool { return strings.HasPrefix(key, scope) }

// union is all letters of some.
func union(sets ...string) (all string) {
	for _, l := range "abc" {
		if strings.ContainsRune(strings.Join(sets, ""), l) {
			all += string(l)
		}
	}
	return all
}

// both is the letters in two.
func both(x, y string) string {
	return strings.Map(func(l rune) rune {
		if strings.ContainsRune(y, l) {
			return l
		}
		return -1
	}, x)
}

// label is what a key comes back with.
func (m *model) label(key string) string {
	sets := []string{both(key[:1], "abc")}
	for scope, label := range m.taints {
		if in(key, scope) {
			sets = append(sets, label)
		}
	}
	return union(sets...)
}

// does says whether a request is done: data is what its value is made of, decided what decided about it.
func (m *model) does(op, data, decided string, yes bool, keys ...string) (done, asked bool) {
	moved := ""
	if len(keys) > 1 {
		moved = union(m.label(keys[0]), m.label(keys[1]))
	}
	denied := false
	taken := map[string]string{}
	for _, r := range m.rules {
		meets := r.op == op && (r.scope == "" || len(keys) > 0 && in(keys[0], r.scope) || len(keys) > 1 && in(keys[1], r.scope))
		has := union(data, decided, moved)
		if r.argument != "" {
			has = union(data, moved)
		}
		broken := both(r.from, has)
		if !meets || broken == "" || r.all && broken != r.from {
			continue
		}
		switch r.how {
		case "deny":
			denied = true
		case "ask":
			asked = true
		case "taint":
			taken[r.scope] = union(taken[r.scope], broken)
		}
	}
	about := ""
	for _, r := range m.rules {
		about = union(about, r.from)
	}
	for _, key := range keys {
		held := m.label(key)
		for scope, label := range taken {
			if in(key, scope) {
				held = union(held, label)
			}
		}
		if has := both(union(data, decided, moved), about); both(has, held) != has {
			denied = true
		}
	}
	if denied {
		return false, false
	}
	if asked && !yes {
		return false, true
	}
	for scope, label := range taken {
		m.taints[scope] = union(m.taints[scope], label)
	}
	return true, asked
}

// TestFlowMany: random requests under random policies of several sources and rules are done where a simple model says so,
// and nothing is sent that holds what a rule denies.
func TestFlowMany(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 12))
			pick := func(of ...string) string { return of[r.IntN(len(of))] }
			sources := "abc"[:2+r.IntN(2)]
			m := &model{taints: map[string]string{}}
			var said, texts []string
			for _, l := range sources {
				said = append(said, fmt.Sprintf(`{"of":"toy.get:%c/**","label":"%c"}`, l, l))
			}
			rules := 2 + r.IntN(2)
			for i := range rules {
				rule := modelRule{op: pick("put", "put", "put", "move", "send"), how: pick("deny", "ask", "taint", "taint"), from: union(pick(strings.Split(sources, "")...), pick(strings.Split(sources, "")...)), all: r.IntN(5) == 0}
				switch {
				case i == 0:
					rule = modelRule{op: "send", how: "deny", from: rule.from}
				case rule.op == "send":
					rule.how, rule.argument = pick("deny", "ask"), pick("", "text")
				default:
					if rule.scope = pick("x/", "y/", "x/1", ""); rule.op == "put" {
						rule.argument = pick("", "value")
					}
				}
				m.rules = append(m.rules, rule)
				text := fmt.Sprintf(`{"to":"toy.%s","else":"%s","%s":["%s"]`, rule.op, rule.how, map[bool]string{true: "all_of", false: "not_from"}[rule.all], strings.Join(strings.Split(rule.from, ""), `","`))
				if rule.scope != "" {
					text = strings.Replace(text, `",`, ":"+map[bool]string{true: rule.scope, false: rule.scope + "**"}[rule.scope == "x/1"]+`",`, 1)
				}
				if rule.argument != "" {
					text += `,"argument":"` + rule.argument + `"`
				}
				texts = append(texts, text+"}")
			}
			config := `{"sources":[` + strings.Join(said, ",") + `],"rules":[` + strings.Join(texts, ",") + `]}`
			yes, asked := false, false
			p := newPosted(t, config, run.Options{AskFlow: func(context.Context, run.FlowQuestion) (bool, error) {
				asked = true
				return yes, nil
			}})
			keys := []string{"x/1", "x/2", "y/1", "z/1"}
			for _, key := range keys {
				p.kept[key] = value.Str("")
			}
			for _, l := range sources {
				keys = append(keys, string(l)+"/1", string(l)+"/2")
				p.kept[string(l)+"/1"], p.kept[string(l)+"/2"] = value.Str("<"+string(l)+">"), value.Str("<"+string(l)+">")
			}
			script := config
			for i := range 15 {
				from, also, decides, to := pick(keys...), pick(keys...), pick(append(keys, "", "", "", "")...), pick(keys...)
				data, decided := union(m.label(from), m.label(also)), ""
				got := fmt.Sprintf(`!toy.get("%s") ++ !toy.get("%s")`, from, also)
				op, code, acts := pick("put", "put", "put", "move", "send"), "", []string{to}
				switch op {
				case "put":
					code = fmt.Sprintf(`!toy.put({key: "%s", value: %s})`, to, got)
				case "move":
					code, data, acts = fmt.Sprintf(`!toy.move({from: "%s", to: "%s"})`, from, to), "", []string{from, to}
				case "send":
					code, acts = fmt.Sprintf(`!toy.send({to: "a", text: %s})`, got), nil
				}
				if decides != "" {
					decided = m.label(decides)
					code = fmt.Sprintf(`if !toy.get("%s") == "none" then null else %s`, decides, code)
				}
				yes, asked = r.IntN(2) == 0, false
				done, ask := m.does(op, data, decided, yes, acts...)
				name := fmt.Sprint("t", i)
				p.evolve(name, "x => "+code, "toy:**")
				_, f := p.run(t.Context(), name, "null")
				script += fmt.Sprintf("\n%s: %v %v", code, f == nil, asked)
				if (f == nil) != done || f != nil && f.Kind != fault.Denied || asked != ask {
					t.Fatalf("%s\nand it is done %v, and asked about %v: %v", script, done, ask, f)
				}
			}
			for _, text := range p.sent {
				for _, l := range m.rules[0].from {
					if strings.Contains(text, "<"+string(l)+">") {
						t.Errorf("%s\n%s was sent", script, text)
					}
				}
			}
		})
	}
}
