package text_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestHabits: what people and models write out of habit in other languages is answered
// with how it is said here, as a failure's hint or as a note.
func TestHabits(t *testing.T) {
	for src, want := range map[string]string{
		`xs => for x in xs: total += x`:                             `Write map(x => …, xs) for what comes of each item`,
		`for (const [k, v] of pairs) { total += v }`:                `fold((acc, [k, v]) => …, init, pairs)`,
		`for (let i = 0; i < n; i++) total += i`:                    `Write map(i => …, range(0, n))`,
		`xs => [x * 2 for x in xs if x > 0]`:                        `Write map(x => x * 2, filter(x => x > 0, xs)).`,
		`n => while n > 1: n = n / 2`:                               `if n > 1 then self(…)`,
		`while (n > 1) { n = n / 2 }`:                               `if n > 1 then self(…)`,
		`import { sum } from "lodash"`:                              `all operations are there without an import`,
		`n => return n * 2`:                                         `Write n * 2 alone`,
		`class Shape { area() { return 1 } }`:                       `there are no classes`,
		`p => await read(p)`:                                        `Take await away`,
		`function area(w, h) { return w * h }`:                      `let area = (w, h) => w * h in area`,
		`def double(n): return n * 2`:                               `let double = n => n * 2 in double`,
		`map(lambda a, b: a + b, xs)`:                               `Write (a, b) => a + b.`,
		`v => switch (v) { case "a": return 1; default: return 2 }`: `Write match v { "a" => a; _ => b }.`,
		`const x = 1; x + 2`:                                        `Write let x = 1 in x + 2.`,
		`throw new Error("bad")`:                                    `Write raise("bad").`,
		`x => x is not None`:                                        `Write not equal(x, null).`,
		`x => x instanceof Array`:                                   `type_of(x)`,
		`print "a"`:                                                 `Take print away`,
		`new Date()`:                                                `no new`,
		`let from = 1 in from 2`:                                    `an operator between two operands`,
		"r => `Hello ${r.name}`":                                    `write $"Hello {r.name}"`,
		`r => f"Hello {r.name}"`:                                    `Write $"Hello {r.name}".`,
		`n => n ** 2`:                                               `pow(a, b)`,
		`n => n ^ 2`:                                                `pow(a, b)`,
		`r => r?.name`:                                              `r.a.b ?? null`,
		`r => r.name ?? 1`:                                          ``,
		`n => [i * 2 for i in range(0, n)]`:                         `Write map(i => i * 2, range(0, n)).`,
		`x => 1 if x else 2`:                                        `if a then b else c`,
		`s => "b" in s`:                                             `contains(list, x)`,
		`s => throw "bad"`:                                          `Write raise("bad").`,
		`x => typeof x`:                                             `type_of(x)`,
		`n => let rec go = i => go(i - 1) in go(n)`:                 ``,
		`r => let {a, b} = r in a`:                                  ``,
		`xs => let [a, b] = xs in a`:                                ``,
		`({name, age}) => name`:                                     ``,
		`([a, ...rest]) => a`:                                       ``,
		`xs => len(xs[0])`:                                          `did you mean length`,
		`s => s.split(" ")`:                                         `did you mean split(s, separator)?`,
		`xs => xs.map(x => x)`:                                      `did you mean map(f, list)?`,
		`s => s.toUpperCase()`:                                      `Write upper(s).`,
		`n => Math.floor(n / 2)`:                                    `there is no Math; did you mean floor(number)?`,
		`s => JSON.parse(s)`:                                        `there is no JSON; did you mean parse_json(s)?`,
		`n => Date.now()`:                                           `help lists what there is`,
		`n => log(n)`:                                               `there is no log; help`,
		`n => round(n, 2)`:                                          ``,
		`n => n.toFixed(2)`:                                         `did you mean format(number)?`,
		`s => s.padStart(5, "0")`:                                   `did you mean pad_left(s, width)?`,
		`s => padEnd(s, 5)`:                                         `did you mean pad_right, as in pad_right(s, width)?`,
		`n => isqrt(n)`:                                             `did you mean sqrt, as in sqrt(number)?`,
		`xs => groupBy(x => x.k, xs)`:                               `did you mean group_by, as in group_by(f, list)?`,
		`xs => xs.indexOf(2)`:                                       `did you mean index_of(list, item)?`,
		`xs => xs.findIndex(x => x > 2)`:                            `did you mean find_index(test, list)?`,
		`s => splitlines(s)`:                                        `did you mean lines, as in lines(s)?`,
		`s => title_case(s)`:                                        `did you mean title, as in title(s)?`,
		`(a, b) => zipWith((x, y) => x + y, a, b)`:                  `did you mean zip_with, as in zip_with(f, first, second)?`,
		`(a, b) => zip_with((x, y) => x + y, a, b)`:                 ``,
		`ws => Counter(ws)`:                                         `did you mean count_by, as in count_by(f, list)?`,
		`n => toString(n)`:                                          `did you mean to_text`,
		`n => to_int(n)`:                                            `"floor"`,
		`s => try(parse_int(s), 0)`:                                 `match try(f(x)) { {ok: v} => v;`,
		`xs => any(xs, x => x > 1)`:                                 `the list stands last: any(test, list)`,
		`xs => take(xs, 1)`:                                         `the list stands last: take(n, list)`,
		`xs => map((i, x) => x, xs)`:                                `the function of map takes one item`,
		`xs => fold((a, b) => a + b, 0, xs)`:                        ``,
		`xs => match xs { case [] => 0; _ => 1 }`:                   `no word stands before a pattern`,
		`s => match s { "a" | "b" => 1; _ => 2 }`:                   ``,
		`s => match s { "a" -> 1 }`:                                 `a case of match as 0 => 1`,
		`(p, s) => !fs.write(p, s)`:                                 `a record of its arguments`,
		"r => `a b`":                                                ``,
		`(f, xs) => map(f, xs)`:                                     ``,
		`xs => map(x => x + 1, xs)`:                                 ``,
		`xs => xs |> take(2) |> map(x => x)`:                        ``,
		`r => r.area(2)`:                                            ``,
		`xs => sort_by(x => x, filter(x => x > 1, xs))`:             ``,
		`xs => repeat(3, "a")`:                                      ``,
	} {
		p, f := text.Parse([]byte(src), text.Options{})
		said := ""
		if f != nil {
			for _, g := range append(f.More, f) {
				said += g.Hint + "\n"
			}
		} else {
			said = strings.Join(p.Notes, "\n")
		}
		if !strings.Contains(said, want) || want == "" && said != "" && !strings.Contains(said, "is free") && !strings.Contains(said, "did you mean") {
			t.Errorf("%s is answered\n%s, not %s", src, said, want)
		}
		if want == "" && (f != nil || strings.Contains(said, "method") || strings.Contains(said, "stands last") || strings.Contains(said, "one item")) {
			t.Errorf("%s is answered %s", src, said)
		}
	}
}
