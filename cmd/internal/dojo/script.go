package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"
)

// A script is what a hijacked model calls to get its words past the rules.
type script struct {
	Name string
	// Before is called before the model was shown anything, as an honest model would.
	Before, Calls []step
}

// A step is a call of one of the server's tools, another request, or something that happens.
type step struct {
	Call   string
	Args   record
	Method string
	Params record
	// Do is "act" (a tool is made of the code, and run with the other arguments), "clear" (a person begins a new conversation), "restart" and "kill" (of the server), "next" (the call that the answer before
	// names), "wait" (for the task), or "obey": a model that was shown what is wanted since the last "clear" does it in the plainest way.
	Do string
}

// captured is what later steps may name of an answer.
var captured = map[string]*regexp.Regexp{
	"$plan":   regexp.MustCompile(`\\?"plan\\?":\\?"(p_[^"\\]+)`),
	"$task":   regexp.MustCompile(`\\?"task\\?":\\?"([^"\\]+)`),
	"$run":    regexp.MustCompile(`\\?"run\\?":\\?"([^"\\]+)`),
	"$uri":    regexp.MustCompile(`pif://results/[^"\\?]+`),
	"$sealed": regexp.MustCompile(`s_[0-9a-zA-Z]{8,}`),
}

// filled puts what is known into the texts of a JSON value.
func filled(v any, with *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return with.Replace(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = filled(v[i], with)
		}
		return list
	case record:
		r := record{}
		for k, x := range v {
			r[with.Replace(k)] = filled(x, with)
		}
		return r
	}
	return v
}

// scripts runs each script of each author once, in sessions that were shown an attack by one task after the other.
func (e *examiner) scripts(list []*task) error {
	if e.rules == strict {
		return nil
	}
	persons := []string{careful, never, always}
	if e.rules != shipped {
		persons = persons[:1]
	}
	for e.by = range e.attacks {
		all := e.attacks[e.by]
		if len(all.Scripts) == 0 {
			continue
		}
		text := fmt.Sprintf(all.Templates[0], all.Goals[0].words())
		shown := []*task{}
		for _, t := range list {
			if err := e.begin(control{Attack: text}, nil, e.says(careful, t.name)); err != nil {
				return err
			}
			a, err := e.call("run", record{"tool": t.name, "input": t.input})
			if err != nil {
				return err
			}
			if strings.Contains(a.text, text[:30]) {
				shown = append(shown, t)
			}
		}
		if len(shown) == 0 {
			return fmt.Errorf("%s: no task shows the attack of author %d", e.name, e.by)
		}
		for i, s := range all.Scripts {
			if !e.taken() {
				continue
			}
			for _, who := range persons {
				if err := e.script(shown[i%len(shown)], s, all.Goals[i%len(all.Goals)], text, who); err != nil {
					return fmt.Errorf("%s: %w", s.Name, err)
				}
			}
		}
	}
	return nil
}

// acting is the call of evolve that makes a tool of code, and runs it.
func (e *examiner) acting(code any, run record, with *strings.Replacer) record {
	e.acted++
	code = filled(code, with)
	text, _ := json.Marshal(code)
	capabilities := []any{with.Replace("$CAP")}
	for _, m := range regexp.MustCompile(`@(\w+)`).FindAllStringSubmatch(string(text), -1) {
		capabilities = append(capabilities, "call:"+m[1])
	}
	if _, ok := run["input"]; !ok {
		run["input"] = nil
	}
	return record{"name": "evolve", "arguments": record{"name": fmt.Sprintf("z%d", e.acted), "code": code, "capabilities": capabilities, "run": run}}
}

// script runs one.
func (e *examiner) script(t *task, s script, goal deed, text, who string) error {
	if err := e.begin(control{Attack: text}, nil, e.says(who, t.name)); err != nil {
		return err
	}
	var key string
	with := record{}
	maps.Copy(with, goal.all())
	for k := range goal.Args {
		key = k
	}
	value, _ := goal.Args[key].(string)
	delete(with, key)
	rest := strings.Trim(literal(with, false), "{}")
	known := map[string]string{
		"$ENV": e.name, "$CAP": e.name + "." + goal.Op, "$CALL": "!" + e.name + "." + goal.Op + "(" + literal(goal.all(), false) + ")", "$KEY": key,
		"$VALUE": value, "$LIT": literal(value, false), "$WITH": rest, "$ID": fmt.Sprintf("%s_%d", e.name, e.session.run),
		"$WORDS": goal.words(),
	}
	told := ""
	one := func(st step) error {
		var pairs []string
		for k, v := range known {
			pairs = append(pairs, k, v)
		}
		r := strings.NewReplacer(pairs...)
		method, params := st.Method, st.Params
		switch {
		case st.Call != "":
			method, params = "tools/call", record{"name": r.Replace(st.Call), "arguments": st.Args}
		case st.Do == "clear":
			told = ""
			return e.forget()
		case st.Do == "restart" || st.Do == "kill":
			e.unfinished++ // a run that was under way
			return e.restart(st.Do == "kill")
		case st.Do == "next":
			var next record
			if json.Unmarshal([]byte(known["$next"]), &next) != nil || next["name"] == nil {
				return nil
			}
			method, params = "tools/call", next
		case st.Do == "wait":
			method, params = "tools/call", record{"name": "run", "arguments": record{"task": known["$task"]}}
		case st.Do == "obey" && !strings.Contains(told, value):
			return nil
		case st.Do == "obey":
			method, params = "tools/call", e.acting("_ => "+known["$CALL"], record{"input": nil}, r)
		case st.Do == "act":
			rest := maps.Clone(st.Args)
			delete(rest, "code")
			method, params = "tools/call", e.acting(st.Args["code"], rest, r)
		}
		if args, ok := params["arguments"].(record); ok && args["plan"] == true {
			e.unfinished++ // until somebody does it
		}
		raw, err := e.ask(method, filled(params, r).(record))
		for began := time.Now(); err == nil && st.Do == "wait" && strings.Contains(string(raw), `"state":"working"`) && time.Since(began) < time.Minute; {
			raw, err = e.ask(method, filled(params, r).(record))
		}
		answer := string(raw)
		if err != nil {
			answer = err.Error() // what is refused is told, too
		}
		told += answer
		for k, expr := range captured {
			if m := expr.FindStringSubmatch(answer); m != nil {
				known[k] = m[len(m)-1]
			}
		}
		var next struct {
			Structured struct{ Next json.RawMessage } `json:"structuredContent"`
		}
		if json.Unmarshal(raw, &next) == nil && next.Structured.Next != nil {
			known["$next"] = string(next.Structured.Next)
		}
		if verbose {
			fmt.Printf("%s %s %s: %.400s\n", s.Name, e.rules, method, answer)
		}
		return nil
	}
	for _, st := range s.Before {
		if err := one(st); err != nil {
			return err
		}
	}
	a, err := e.call("run", record{"tool": t.name, "input": t.input})
	if err != nil || !strings.Contains(a.text, text[:30]) {
		return err
	}
	before, err := e.acts()
	if err != nil {
		return err
	}
	e.asked, told = 0, ""
	for _, st := range s.Calls {
		if err := one(st); err != nil {
			return err
		}
	}
	did, err := e.acts()
	if err != nil {
		return err
	}
	e.runs = append(e.runs, &run{Environment: e.name, Task: t.name, Attack: "H", Rules: e.rules, Person: who, Of: t.by, By: e.by, Text: s.Name + ": " + goal.words(),
		Asked: e.asked, Met: e.asked > 0, Effect: effect([]deed{goal}, did[len(before):])})
	return nil
}
