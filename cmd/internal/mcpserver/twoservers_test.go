package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// twoRules keep what is in the mail, and what is on the web, from the model and from being sent.
const twoRules = `{"sources":[{"of":"toy.get:mail/**","label":"mail"},{"of":"toy.get:web/**","label":"web"}],
 "rules":[{"to":"toy.send","not_from":["mail","web"]},{"to":"model","not_from":["mail","web"]}]}`

// manyRules say the same with a rule for each source, and have the mail take on what is of the web.
const manyRules = `{"sources":[{"of":"toy.get:mail/**","label":"mail"},{"of":"toy.get:web/**","label":"web"}],
 "rules":[{"to":"toy.put:mail/**","not_from":"web","else":"taint"},{"to":"toy.send","not_from":"mail"},{"to":"toy.send","not_from":"web"},{"to":"model","not_from":"mail"},{"to":"model","not_from":"web"}]}`

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
		{Key: "b", Value: value.Bool(n%2 == 0)}, {Key: "key", Value: value.Str([]string{"open/1", "mail/2", "none", "web/1"}[r.IntN(4)])}, {Key: "n", Value: value.NewInt(int64(n))},
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
	`k => let _ = upper(to_json(!toy.get(k))) in "done"`,
	`k => let _ = !toy.send({to: "k"}) in if try(!toy.get("mail/1").n > N) == {ok: true} then continue(k) else 5`,
	`k => if k == "mail/1" then continue("mail/2") else !toy.get(k)`,
	`k => let _ = if !toy.get(k).n > N then raise("x") else 0 in "done"`,
	`k => let _ = try(if !toy.get(k).n > N then fold((a, i) => a + i, 0, range(0, 3000000)) else 0) in "done"`,
	`k => if is_string(k) then continue({got: !toy.get(k)}) else !toy.send({to: "h", text: k})`,
	`k => let m = !toy.get(k) in if m.n > N then !toy.get("web/1") else m`,
	`k => try(!toy.send({to: "i", text: if !toy.get(k).n > N then !toy.get("web/1").n else 1}))`,
	`k => let _ = !toy.get("web/1").n in try(!toy.send({to: "j", text: !toy.get(k).n}))`,
	`k => !toy.list("mai")`,
	`k => !toy.send({to: "l", text: try(!toy.list("mai"))})`,
	`k => try(!toy.put({key: if !toy.get(k).n > N then "open/3" else "open/4", value: 1}))`,
}

// A pair is two servers whose mail differs, each with a client of its own, and what each client got: every message, as it came.
type pair struct {
	boxes    [2]*mailbox
	sessions [2]*mcp.ClientSession
	wires    [2]*cable
	said     [2][]string
	ids      [2][]string // of sealed results
	parted   int         // how many answers there were when a store of only one had taken on a label; 0: none has
}

// A cable remembers what a client reads.
type cable struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *cable) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Lists that changed are told of in their own time.
	if line := string(b); strings.HasPrefix(line, "read: ") && !strings.Contains(line, "list_changed") {
		w.text.WriteString(line)
	}
	return len(b), nil
}

func (w *cable) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.text.String()
	w.text.Reset()
	return text
}

var (
	sealedID = regexp.MustCompile(`s_[a-z2-7]{26}`)
	// moments is what differs between any two servers: times, hashes of events, names of runs and results.
	moments = regexp.MustCompile(`"(time|prev|hash|sha256|created_?[Aa]t|last_?[Uu]pdated_?[Aa]t)\\*":\\*"[^"]*"|"uptime_ms\\*":\d+|[a-z2-7]{8}-\d+|results/[A-Z2-7]{26}|"result\\*":\\*"[A-Z2-7]{26}`)
)

func newPair(t testing.TB, rules string, seed uint64) *pair {
	p := &pair{}
	for i := range p.boxes {
		p.boxes[i] = newMailbox(t, rules)
		p.boxes[i].Server = remade(p.boxes[i].Server, func(o *Options) { o.Limits.Result = 600 })
		mail := rand.New(rand.NewPCG(seed, uint64(100+i)))
		for _, key := range []string{"mail/1", "mail/2", "web/1"} {
			p.boxes[i].notes[key] = mailOf(mail)
		}
		p.boxes[i].notes[fmt.Sprint("mail/key", mail.IntN(100))] = value.Unit{}
		theirs, ours := mcp.NewInMemoryTransports()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- p.boxes[i].Serve(ctx, theirs) }()
		p.wires[i] = &cable{}
		cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.LoggingTransport{Transport: ours, Writer: p.wires[i]}, nil)
		if err != nil {
			cancel()
			t.Fatal(err)
		}
		p.sessions[i] = cs
		t.Cleanup(func() {
			cs.Close()
			cancel()
			wait.For(t, done, "the end of a session")
		})
	}
	return p
}

// both asks both, and keeps what their clients got. An error of the protocol is an answer like any other.
func (p *pair) both(what string, ask func(i int, cs *mcp.ClientSession)) {
	for i, cs := range p.sessions {
		ask(i, cs)
		said := p.wires[i].take()
		for _, id := range sealedID.FindAllString(said, -1) {
			j := slices.Index(p.ids[i], id)
			if j < 0 {
				j = len(p.ids[i])
				p.ids[i] = append(p.ids[i], id)
			}
			said = strings.ReplaceAll(said, id, fmt.Sprint("sealed", j))
		}
		p.said[i] = append(p.said[i], what+"\n  "+moments.ReplaceAllString(said, "*"))
	}
	if p.parted == 0 && !reflect.DeepEqual(p.boxes[0].state().Taints, p.boxes[1].state().Taints) {
		p.parted = len(p.said[0])
	}
}

// call makes a call of both. SEALED0. in the arguments is the first result that was sealed, and so on.
func (p *pair) call(t testing.TB, tool, arguments string) {
	p.both(tool+" "+arguments, func(i int, cs *mcp.ClientSession) {
		args := arguments
		for j, id := range p.ids[i] {
			args = strings.ReplaceAll(args, fmt.Sprintf("SEALED%d.", j), id)
		}
		params := &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)}
		params.SetProgressToken("p")
		_, _ = cs.CallTool(t.Context(), params)
	})
}

// look asks both for something else than a call, which r chooses.
func (p *pair) look(t testing.TB, r *rand.Rand, name string) {
	uri := []string{"pif://server", "pif://tools/" + name, "pif://tools/" + name + "/1", "pif://published/" + name, "pif://capabilities", "pif://journal/RUN"}[r.IntN(6)]
	kind := r.IntN(6)
	p.both(fmt.Sprint("look ", kind, " ", uri, " ", name), func(i int, cs *mcp.ClientSession) {
		switch ctx := t.Context(); kind {
		case 0:
			_, _ = cs.ListTools(ctx, nil)
		case 1:
			_, _ = cs.ListResources(ctx, nil)
		case 2:
			_, _ = cs.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"k": "mail/1"}})
		case 3:
			_, _ = cs.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "pif://journal/{run}"}, Argument: mcp.CompleteParamsArgument{Name: "run"}})
		case 4:
			_, _ = cs.ListPrompts(ctx, nil)
		default:
			began, _, err := p.boxes[i].broker.Journal().Read(journal.Query{Kind: journal.RunStarted, Limit: 1, Last: true})
			must.NoError(t, err)
			run := "none"
			if len(began) > 0 {
				run = began[0].Run
			}
			_, _ = cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: strings.Replace(uri, "RUN", run, 1)})
		}
	})
}

// TestTwoServers: of two servers whose mail differs a model that may not be shown any of it can't tell which is which,
// and what reaches the plugin to be sent is the same.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	scripts := must.Full(40, 10_000)
	if n, err := strconv.Atoi(os.Getenv("TWO_SERVERS")); err == nil {
		scripts = n
	}
	sealed, sent, parted := 0, 0, 0
	for seed := range scripts {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { // which closes both servers
			r := rand.New(rand.NewPCG(uint64(seed), 22))
			p := newPair(t, [...]string{twoRules, manyRules}[seed%2], uint64(seed))
			made := 0
			for range 4 + r.IntN(12) {
				name := fmt.Sprint("t", r.IntN(max(1, made)))
				key := []string{`"mail/1"`, `"mail/2"`, `"open/1"`, `"mail/3"`, `"web/1"`}[r.IntN(5)]
				switch kind := r.IntN(15); {
				case made == 0 || kind < 4:
					code := strings.ReplaceAll(templates[r.IntN(len(templates))], "N", strconv.Itoa(r.IntN(8)))
					args := map[string]any{"name": fmt.Sprint("t", made), "code": code, "capabilities": []string{"toy:**", "call:**"}}
					switch r.IntN(8) {
					case 0:
						args["as"] = "prompt"
					case 1:
						args["as"], args["code"] = "resource", strings.Replace(strings.Replace(code, "k =>", "", 1), "(k)", `("mail/1")`, -1)
					case 2:
						args["run"] = map[string]any{"input": "mail/1"}
					}
					p.call(t, "evolve", string(wire.Encode(args)))
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
				case kind > 12:
					p.look(t, r, name)
				default:
					p.call(t, []string{"describe", "history"}[r.IntN(2)], fmt.Sprintf(`{"name":%q}`, name))
				}
			}
			p.call(t, "evolve", `{"name":"t0","code":"x => 1"}`)
			p.call(t, "history", `{"name":"t0"}`)
			p.call(t, "journal", `{"limit":1000}`)
			compared := cmp.Or(p.parted, len(p.said[0]))
			for i := range compared {
				if p.said[0][i] != p.said[1][i] {
					t.Fatalf("script %d, call %d:\n%s\n%s\nwith %s\nand  %s", seed, i, p.said[0][i], p.said[1][i], show(p.boxes[0]), show(p.boxes[1]))
				}
			}
			if p.parted > 0 {
				parted++
				return
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
		}) {
			return
		}
	}
	if t.Logf("%d scripts, %d sealed, %d sent, %d parted", scripts, sealed, sent, parted); sealed < scripts || sent < scripts/10 || parted > max(1, scripts/10) {
		t.Errorf("of %d scripts %d results were sealed, %d requests sent, and %d scripts ended before: that tests little", scripts, sealed, sent, parted)
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
