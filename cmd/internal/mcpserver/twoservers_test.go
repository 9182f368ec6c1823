package mcpserver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// twoRules keep what is in the mail from the model and from being sent.
const twoRules = `{"sources":[{"of":"toy.get:mail/**","label":"mail"}],"rules":[{"to":"toy.send","not_from":"mail"},{"to":"model","not_from":"mail"}]}`

// mailOf is a message of a world: what is in it differs, and how much.
func mailOf(r *rand.Rand) value.Value {
	n := r.IntN(12)
	switch r.IntN(8) {
	case 0:
		return value.Str(strings.Repeat("s", n))
	case 1:
		return value.FromSlice([]value.Value{value.NewInt(int64(n)), value.Str("t")})
	}
	return &value.Record{Fields: []value.Field{
		{Key: "b", Value: value.Bool(n%2 == 0)}, {Key: "key", Value: value.Str([]string{"open/1", "mail/2", "none"}[r.IntN(3)])}, {Key: "n", Value: value.NewInt(int64(n))},
		{Key: "text", Value: value.Str(strings.Repeat("long", n*n*n))},
	}}
}

// templates is tools that read what is in a message, and try to tell of it in every way there is. N is a number.
var templates = []string{
	`k => !toy.get(k)`,
	`k => !toy.get(k).n`,
	`k => length(!toy.get(k).text)`,
	`k => if !toy.get(k).n > N then !toy.send({to: "a"}) else null`,
	`k => try(if !toy.get(k).n > N then !toy.send({to: "b"}) else 7)`,
	`k => try(!toy.send({to: "c", text: !toy.get(k).n}))`,
	`k => let m = !toy.get(k) in let _ = try(!toy.put({key: "open/2", value: m.n})) in !toy.get("open/2")`,
	`k => let m = !toy.get(k) in !toy.put({key: "mail/3", value: m.n})`,
	`k => if !toy.get(k).n > N then raise("x") else N`,
	`k => if !toy.get(k).n > N then raise("x") else raise("y")`,
	`k => fold((a, i) => a + i, 0, range(0, !toy.get(k).n * 2000))`,
	`k => let n = !toy.get(k).n in let f = m => if m > N then f(m + 1) else m in if n > N then f(n) else 0`,
	`k => par(try(!toy.get(k).text), !toy.get("open/1"))`,
	`k => let _ = !toy.get(k) in !toy.get("open/1")`,
	`k => try(!toy.get(!toy.get(k).key))`,
	`k => let m = try(!toy.get(k).n) in let _ = !toy.send({to: "d"}) in "done"`,
	`k => eval(quote(1))`,
	`k => map(i => !toy.get(k).text, range(0, N))`,
	`k => try(call("t1", k))`,
	`x => !toy.get("open/1")`,
	`x => !toy.send({to: "e", text: x})`,
	`r => try(!toy.send({to: "f", text: r}))`,
	`r => if get(r, "m", {n: N}).n > N then 1 else raise("low")`,
	`r => let _ = get(r, "m", 1) in !toy.send({to: "g", text: get(r, "x", "x")})`,
	`k => if !toy.get(k).n > N then continue({go: 1}) else 5`,
}

// A pair is two servers whose mail differs, and what each answered.
type pair struct {
	boxes [2]*mailbox
	said  [2][]string
	ids   [2][]string // of sealed results
}

var (
	sealedID = regexp.MustCompile(`s_[a-z2-7]{26}`)
	// moments is what differs between any two servers: times, hashes of events, names of runs and results.
	moments = regexp.MustCompile(`"(time|prev|hash|sha256)":"[^"]*"|[a-z2-7]{8}-\d+|results/[A-Z2-7]{26}|"result":"[A-Z2-7]{26}"`)
)

// call makes a call of both. SEALED in the arguments is the first result that was sealed, and so on.
func (p *pair) call(t testing.TB, tool, arguments string) {
	for i, m := range p.boxes {
		args := arguments
		for j, id := range p.ids[i] {
			args = strings.ReplaceAll(args, fmt.Sprintf("SEALED%d.", j), id)
		}
		var progress []string
		a := m.Server.Call(t.Context(), Call{Tool: tool, Arguments: json.RawMessage(args), Progress: func(p Progress) {
			progress = append(progress, fmt.Sprint(p.Steps, p.Round, p.Message))
		}})
		said := fmt.Sprint(a.first(), "\n", strings.Join(a.More, "\n"), "\n", string(a.Structured), a.Fault != nil, progress)
		for _, id := range sealedID.FindAllString(said, -1) {
			known := false
			for j, other := range p.ids[i] {
				if other == id {
					known = true
					said = strings.ReplaceAll(said, id, fmt.Sprint("sealed", j))
				}
			}
			if !known {
				p.ids[i] = append(p.ids[i], id)
				said = strings.ReplaceAll(said, id, fmt.Sprint("sealed", len(p.ids[i])-1))
			}
		}
		p.said[i] = append(p.said[i], tool+" "+arguments+"\n  "+moments.ReplaceAllString(said, "*"))
	}
}

// TestTwoServers: of two servers whose mail differs a model that may not be shown any of it can't tell which is which,
// and what reaches the plugin to be sent is the same.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	scripts := 150
	if testing.Short() {
		scripts = 30
	}
	if os.Getenv("PIF_FULL") != "" {
		scripts = 10_000
	}
	if n, err := strconv.Atoi(os.Getenv("TWO_SERVERS")); err == nil {
		scripts = n
	}
	sealed, sent := 0, 0
	for seed := range scripts {
		r := rand.New(rand.NewPCG(uint64(seed), 22))
		p := &pair{}
		for i := range p.boxes {
			p.boxes[i] = newMailbox(t, twoRules)
			p.boxes[i].limits.Result = 600
			mail := rand.New(rand.NewPCG(uint64(seed), uint64(100+i)))
			for _, key := range []string{"mail/1", "mail/2"} {
				p.boxes[i].notes[key] = mailOf(mail)
			}
		}
		made := 0
		for range 4 + r.IntN(12) {
			name := fmt.Sprint("t", r.IntN(max(1, made)))
			key := []string{`"mail/1"`, `"mail/2"`, `"open/1"`, `"mail/3"`}[r.IntN(4)]
			switch kind := r.IntN(13); {
			case made == 0 || kind < 4:
				code := strings.ReplaceAll(templates[r.IntN(len(templates))], "N", strconv.Itoa(r.IntN(8)))
				p.call(t, "evolve", string(encode(map[string]any{"name": fmt.Sprint("t", made), "code": code, "capabilities": []string{"toy:**", "call:**"}})))
				made++
			case kind < 8:
				p.call(t, "run", fmt.Sprintf(`{"tool":%q,"input":%s,"steps":%d,"drive":%v}`, name, key, []int{200, 5_000, 10_000_000}[r.IntN(3)], r.IntN(4) == 0))
			case kind == 8:
				p.call(t, name, fmt.Sprintf(`{"input":%s}`, key))
			case kind < 11 && len(p.ids[0]) > 0:
				p.call(t, "run", fmt.Sprintf(`{"tool":%q,"input":{"x":%s},"sealed":{"/m":"SEALED%d."}}`, name, key, r.IntN(len(p.ids[0]))))
			case kind == 11 && len(p.ids[0]) > 0:
				p.call(t, "run", fmt.Sprintf(`{"code":"x => x","input":null,"sealed":{"":"SEALED%d."}}`, r.IntN(len(p.ids[0]))))
			case kind == 12:
				p.call(t, []string{"journal", "list"}[r.IntN(2)], `{}`)
			default:
				p.call(t, []string{"describe", "history"}[r.IntN(2)], fmt.Sprintf(`{"name":%q}`, name))
			}
		}
		p.call(t, "journal", `{"limit":1000}`)
		for i := range p.said[0] {
			if p.said[0][i] != p.said[1][i] {
				t.Fatalf("script %d, call %d:\n%s\n%s\nwith %s\nand  %s", seed, i, p.said[0][i], p.said[1][i], show(p.boxes[0]), show(p.boxes[1]))
			}
		}
		a, b := p.boxes[0], p.boxes[1]
		if strings.Join(a.sent, "\n") != strings.Join(b.sent, "\n") || show(a, "open/1", "open/2") != show(b, "open/1", "open/2") {
			t.Fatalf("script %d: sent %q and %q\n%s", seed, a.sent, b.sent, strings.Join(p.said[0], "\n"))
		}
		if a.label()+b.label() != "" {
			t.Fatalf("script %d: the model was shown %q and %q\n%s", seed, a.label(), b.label(), strings.Join(p.said[0], "\n"))
		}
		sealed += len(p.ids[0])
		sent += len(a.sent)
	}
	if t.Logf("%d scripts, %d sealed, %d sent", scripts, sealed, sent); sealed < scripts || sent < scripts/10 {
		t.Errorf("of %d scripts %d results were sealed, and %d requests sent: that tests little", scripts, sealed, sent)
	}
}

// show is the notes of a world.
func show(m *mailbox, keys ...string) string {
	if keys == nil {
		keys = []string{"mail/1", "mail/2", "mail/3"}
	}
	var list []string
	for _, key := range keys {
		if v, ok := m.notes[key]; ok {
			text, _ := journal.AppendValue(nil, v, 1<<20)
			list = append(list, fmt.Sprintf("%s %.200s", key, text))
		}
	}
	return strings.Join(list, "; ")
}
