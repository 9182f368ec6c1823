package gen

import "strconv"

// Guarded gives a function of one parameter, as JSON, that asks fs.read for a value of
// any type, and then computes with it, decides by it and asks kv.put in all the ways in
// which one value may tell of another: by its parts, by tests, by keys and positions that
// are computed, by functions, failures, branches and calls.
func Guarded(draw Draw, size int) string {
	g := &guarded{draw: draw, budget: size}
	return `{"lam":"u","body":` + g.let(`{"fs.read":1}`, func() string { return g.let(`{"fs.read":{"kv.put":0}}`, g.stmt) }) + `}`
}

type guarded struct {
	draw   Draw
	budget int
	vars   []string // values of any kind, of which the first two are secret
	funcs  []string // of one parameter, which any value may be
}

func (g *guarded) let(value string, in func() string) string {
	name := "v" + strconv.Itoa(len(g.vars))
	g.vars = append(g.vars, name)
	body := in()
	g.vars = g.vars[:len(g.vars)-1]
	return `{"let":[["` + name + `",` + value + `]],"in":` + body + `}`
}

// bound gives what a body is that has one more variable.
func (g *guarded) bound(body func() string) (name, text string) {
	name = "v" + strconv.Itoa(len(g.vars))
	g.vars = append(g.vars, name)
	text = body()
	g.vars = g.vars[:len(g.vars)-1]
	return name, text
}

func (g *guarded) lam(body func() string) string {
	name, text := g.bound(body)
	return `{"lam":"` + name + `","body":` + text + `}`
}

func (g *guarded) secret() string { return `{"var":"` + g.vars[g.draw(2)] + `"}` }

func (g *guarded) open() string { return []string{"1", "0", `"a"`, `[]`, `"x"`, "2"}[g.draw(6)] }

func (g *guarded) done() bool {
	g.budget--
	return g.budget < 0
}

// test writes a truth value.
func (g *guarded) test() string {
	switch g.draw(6) {
	case 0:
		return `{"lt":[` + g.index() + `,1]}`
	case 1:
		return `{"isEmpty":` + g.list() + `}`
	case 2:
		return `{"has":[` + g.record() + `,` + g.key() + `]}`
	case 3:
		return `{"` + []string{"and", "or"}[g.draw(2)] + `":[` + g.flag() + `,` + g.flag() + `]}`
	}
	return g.flag()
}

func (g *guarded) flag() string {
	if g.draw(4) == 0 {
		return g.secret()
	}
	return `{"equal":[` + g.value() + `,` + g.open() + `]}`
}

// index writes 0 or 1.
func (g *guarded) index() string {
	if g.done() {
		return strconv.Itoa(g.draw(2))
	}
	switch g.draw(3) {
	case 0:
		return `{"mod":[{"length":{"to_text":` + g.value() + `}},2]}`
	case 1:
		return `{"mod":[{"length":` + g.list() + `},2]}`
	}
	return strconv.Itoa(g.draw(2))
}

func (g *guarded) key() string {
	if g.done() || g.draw(3) > 0 {
		return []string{`"a"`, `"b"`}[g.draw(2)]
	}
	return `{"if":{"cond":` + g.test() + `,"then":"a","else":"b"}}`
}

// list writes a list of any values.
func (g *guarded) list() string {
	if g.done() {
		return "[" + g.open() + "]"
	}
	switch g.draw(12) {
	case 0:
		return `{"chars":{"to_text":` + g.secret() + `}}`
	case 1:
		return `{"filter":[` + g.lam(g.test) + `,` + g.list() + `]}`
	case 2:
		return `{"map":[` + g.lam(g.value) + `,` + g.list() + `]}`
	case 3:
		return `{"` + []string{"values", "entries", "keys"}[g.draw(3)] + `":` + g.record() + `}`
	case 4:
		return `{"slice":[` + g.list() + `,` + g.index() + `,2]}`
	case 5:
		return `{"at":[` + g.list() + `,` + g.index() + `,null]}`
	case 6:
		return `{"push":[` + g.list() + `,` + g.value() + `]}`
	case 7:
		return `{"if":{"cond":` + g.test() + `,"then":` + g.list() + `,"else":` + g.list() + `}}`
	case 8:
		return `{"set_nth":[[` + g.value() + `,` + g.value() + `],` + g.index() + `,` + g.value() + `]}`
	case 9:
		return `{"cons":[` + g.value() + `,` + g.list() + `]}`
	}
	return `[` + g.value() + `,` + g.value() + `]`
}

func (g *guarded) record() string {
	if g.done() {
		return `{"record":{"a":` + g.open() + `}}`
	}
	switch g.draw(7) {
	case 0:
		return `{"put":[` + g.record() + `,` + g.key() + `,` + g.value() + `]}`
	case 1:
		return `{"merge":[` + g.record() + `,` + g.record() + `]}`
	case 2:
		return `{"del":[` + g.record() + `,` + g.key() + `]}`
	case 3:
		return `{"from_entries":[[{"pair":[` + g.key() + `,` + g.value() + `]}]]}`
	case 4:
		return `{"try":` + g.value() + `}`
	}
	return `{"record":{"a":` + g.value() + `,"b":` + g.value() + `}}`
}

// function writes a function that any value may be given to.
func (g *guarded) function(body func() string) string {
	if g.done() {
		return g.lam(g.open)
	}
	switch g.draw(5) {
	case 0:
		return `{"nth":[[` + g.lam(body) + `,` + g.lam(body) + `],` + g.index() + `]}`
	case 1:
		return `{"if":{"cond":` + g.test() + `,"then":` + g.lam(body) + `,"else":` + g.lam(body) + `}}`
	case 2:
		if n := len(g.funcs); n > 0 {
			return `{"var":"` + g.funcs[g.draw(n)] + `"}`
		}
	}
	return g.lam(body)
}

// value writes anything.
func (g *guarded) value() string {
	if g.done() {
		return g.open()
	}
	switch g.draw(26) {
	case 0, 1, 2:
		return g.secret()
	case 3:
		return `{"var":"` + g.vars[g.draw(len(g.vars))] + `"}`
	case 4:
		return `{"if":{"cond":` + g.test() + `,"then":` + g.value() + `,"else":` + g.value() + `}}`
	case 5:
		return `{"get":[` + g.record() + `,` + g.key() + `,` + g.value() + `]}`
	case 6:
		return `{"at":[[` + g.value() + `,` + g.value() + `],` + g.index() + `]}`
	case 7:
		return `{"nth":[` + g.list() + `,` + g.index() + `]}`
	case 8:
		return `{"head":` + g.list() + `}`
	case 9:
		return `{"` + []string{"fst", "snd"}[g.draw(2)] + `":{"pair":[` + g.value() + `,` + g.value() + `]}}`
	case 10:
		return `{"` + []string{"to_text", "to_json", "type_of", "try"}[g.draw(4)] + `":` + g.value() + `}`
	case 11:
		return `{"length":` + g.list() + `}`
	case 12:
		return `{"` + []string{"count", "find_index"}[g.draw(2)] + `":[` + g.lam(g.test) + `,` + g.list() + `]}`
	case 13:
		return `{"index_of":[` + g.list() + `,` + g.value() + `]}`
	case 14:
		return `{"app":[` + g.function(g.value) + `,` + g.value() + `]}`
	case 15:
		return `{"fold":[` + g.function(g.value) + `,` + g.value() + `,` + g.list() + `]}`
	case 16:
		return `{"call":{"tool":` + g.tool() + `,"input":` + g.value() + `}}`
	case 17:
		return `{"eval":` + g.code(g.value) + `}`
	case 18:
		return `{"par":[` + g.value() + `,` + g.value() + `]}`
	case 19:
		return g.let(g.value(), g.value)
	case 20:
		return `{"match":` + g.value() + `,"with":[[{"pair":["_",{"var":"q"}]},{"var":"q"}],[[{"var":"q"},{"rest":"_"}],{"var":"q"}],[{"record":{"a":{"var":"q"}}},{"var":"q"}],["_",` + g.open() + `]]}`
	case 21:
		return `{"raise":` + g.value() + `}`
	case 22:
		return g.list()
	case 23:
		return g.record()
	case 24:
		return g.rec(g.value)
	}
	return g.open()
}

// code writes quoted code.
func (g *guarded) code(body func() string) string {
	if g.done() || g.draw(2) == 0 {
		return `{"quote":` + body() + `}`
	}
	return `{"if":{"cond":` + g.test() + `,"then":{"quote":` + body() + `},"else":{"quote":` + body() + `}}}`
}

func (g *guarded) tool() string {
	names := []string{`"asks"`, `"echo"`, `"value"`, `"makes"`, `"two"`}
	if g.done() || g.draw(2) == 0 {
		return names[g.draw(5)]
	}
	return `{"if":{"cond":` + g.test() + `,"then":` + names[g.draw(5)] + `,"else":` + names[g.draw(5)] + `}}`
}

// rec writes a function that calls itself once, and its use.
func (g *guarded) rec(body func() string) string {
	name := "f" + strconv.Itoa(len(g.funcs))
	n, again := g.bound(func() string {
		return `{"if":{"cond":{"equal":[{"var":"` + g.vars[len(g.vars)-1] + `"},0]},"then":` + body() + `,"else":{"app":[{"var":"` + name + `"},0]}}}`
	})
	g.funcs = append(g.funcs, name)
	in := `[{"app":[{"var":"` + name + `"},` + g.open() + `]},` + body() + `]`
	g.funcs = g.funcs[:len(g.funcs)-1]
	return `{"letrec":[["` + name + `",{"lam":"` + n + `","body":` + again + `}]],"in":` + in + `}`
}

func (g *guarded) put() string { return `{"kv.put":` + g.value() + `}` }

// stmt writes what asks.
func (g *guarded) stmt() string {
	if g.done() {
		return `{"kv.put":` + g.open() + `}`
	}
	switch g.draw(15) {
	case 0:
		return `{"if":{"cond":` + g.test() + `,"then":` + g.stmt() + `,"else":` + g.stmt() + `}}`
	case 1:
		return `{"fold":[` + g.function(g.stmt) + `,` + g.value() + `,` + g.list() + `]}`
	case 2:
		return `{"try":[` + g.value() + `,` + g.stmt() + `]}`
	case 3:
		return `{"par":[` + g.stmt() + `,` + g.stmt() + `]}`
	case 4:
		return `{"try":{"par":[` + g.value() + `,[` + g.stmt() + `,` + g.stmt() + `]]}}`
	case 5:
		return `{"try":{"par":[[` + g.value() + `,` + g.stmt() + `],[` + g.stmt() + `,` + g.stmt() + `]]}}`
	case 6:
		return `{"app":[` + g.function(g.stmt) + `,` + g.value() + `]}`
	case 7:
		return `{"eval":` + g.code(g.stmt) + `}`
	case 8:
		return `{"map":[` + g.lam(g.stmt) + `,` + g.list() + `]}`
	case 9:
		return g.rec(g.stmt)
	case 10:
		return `{"` + []string{"and", "or"}[g.draw(2)] + `":[` + g.flag() + `,{"equal":[` + g.stmt() + `,0]}]}`
	case 11:
		return g.let(g.stmt(), g.stmt)
	case 12:
		return `[` + g.stmt() + `,` + g.stmt() + `]`
	}
	return g.put()
}
