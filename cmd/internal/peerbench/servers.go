package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tiktoken-go/tokenizer"
)

// A task over two MCP servers: read the 200 issues of a tracker, 1 KiB each, join their
// assignees with the people of a directory, keep what is open and urgent, and file one report
// of the numbers in each team. A model does it one call at a time, with the largest pages that the
// servers have; or it writes one program for mcp-pif, after it looked the operations up and
// failed once. Both are done for real, and every byte that enters the model's context counts: the
// definitions of tools, a server's instructions, what the model writes, what it reads.

const (
	issues, issueBytes = 200, 1 << 10
	largestPage        = 100
	people             = 20
)

type issue struct {
	Number   int      `json:"number"`
	Title    string   `json:"title"`
	State    string   `json:"state"`
	Priority string   `json:"priority"`
	Assignee string   `json:"assignee"`
	Labels   []string `json:"labels"`
	URL      string   `json:"url"`
	Created  string   `json:"created_at"`
	Body     string   `json:"body"`
}

type person struct {
	Login string `json:"login"`
	Name  string `json:"name"`
	Team  string `json:"team"`
}

// newIssue makes an issue whose JSON has 1 KiB.
func newIssue(i int) issue {
	words := strings.Fields("the export of a large report stops when its page has more than one table and nobody sees why since the log says only that the worker ended we saw it twice on Monday after the upgrade and once before with another customer whose file was smaller please look at the queue first")
	is := issue{
		Number: 1000 + i, Title: fmt.Sprintf("Export %d stops in step %d", i*37%911, i%9), State: []string{"open", "closed", "open"}[i%3],
		Priority: []string{"low", "normal", "urgent", "normal", "low"}[i%5], Assignee: fmt.Sprintf("user%02d", i*7%people), Labels: []string{"export", fmt.Sprint("v", i%4)},
		URL: fmt.Sprintf("https://tracker.example.com/acme/shop/issues/%d", 1000+i), Created: fmt.Sprintf("2026-%02d-%02dT09:%02d:00Z", 1+i%12, 1+i%28, i%60),
	}
	var b strings.Builder
	for n := i * 13; ; n++ {
		b.WriteString(words[n%len(words)] + " ")
		is.Body = b.String()
		text, err := json.Marshal(is)
		if over := len(text) - issueBytes; err != nil || over >= 0 {
			is.Body = is.Body[:len(is.Body)-over]
			return is
		}
	}
}

type pageInput struct {
	Page    int `json:"page" jsonschema:"from 1 on"`
	PerPage int `json:"per_page" jsonschema:"at most 100"`
}

type issuePage struct {
	Issues []issue `json:"issues"`
	More   bool    `json:"more"`
}

type filing struct {
	Title string           `json:"title"`
	Teams map[string][]int `json:"teams" jsonschema:"numbers of issues, in order, by team"`
}

// wordServer is the first argument of this program where it is one of the servers.
const wordServer = "__server"

// serve is this program as one of the servers.
func serve(name string) error {
	server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1.0.0"}, nil)
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	if name == "tracker" {
		mcp.AddTool(server, &mcp.Tool{Name: "list_issues", Description: "Lists issues, a page at a time.", Annotations: reads},
			func(_ context.Context, _ *mcp.CallToolRequest, p pageInput) (*mcp.CallToolResult, issuePage, error) {
				size := min(max(p.PerPage, 1), largestPage)
				out := issuePage{Issues: []issue{}, More: p.Page*size < issues}
				for i := max(p.Page-1, 0) * size; i < min(issues, p.Page*size); i++ {
					out.Issues = append(out.Issues, newIssue(i))
				}
				return nil, out, nil
			})
	} else {
		mcp.AddTool(server, &mcp.Tool{Name: "list_people", Description: "Lists everybody with their teams.", Annotations: reads},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, map[string][]person, error) {
				return nil, map[string][]person{"people": directory()}, nil
			})
		mcp.AddTool(server, &mcp.Tool{Name: "file_report", Description: "Files a report."},
			func(_ context.Context, _ *mcp.CallToolRequest, r filing) (*mcp.CallToolResult, map[string]string, error) {
				text, err := json.Marshal(r.Teams)
				return nil, map[string]string{"filed": string(text)}, err
			})
	}
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

func directory() (all []person) {
	for i := range people {
		all = append(all, person{fmt.Sprintf("user%02d", i), fmt.Sprintf("Person %d", i), []string{"billing", "search", "mobile", "platform"}[i%4]})
	}
	return all
}

// solution is the report that is right.
func solution() map[string][]int {
	teams := map[string]string{}
	for _, p := range directory() {
		teams[p.Login] = p.Team
	}
	all := map[string][]int{}
	for i := range issues {
		if is := newIssue(i); is.State == "open" && is.Priority == "urgent" {
			all[teams[is.Assignee]] = append(all[teams[is.Assignee]], is.Number)
		}
	}
	return all
}

// composed is the same by mcp-pif. The text before has a mistake that models make: nothing
// pages.
const composed = `title =>
  let pages = map(n => !tracker.list_issues({page: n, per_page: 100}).data.issues, range(1, 3))
  let urgent = filter(i => i.state == "open" && i.priority == "urgent", flatten(pages))
  let team = fold((r, p) => put(r, p.login, p.team), {}, !people.list_people({}).data.people)
  !people.file_report({title: title, teams: map_values(is => map(i => i.number, is), group_by(i => get(team, i.assignee), urgent))}).data.filed`

// A reader is a model's context: what enters it.
type reader struct {
	codec  tokenizer.Codec
	calls  int
	tokens int
	known  int // of them, what servers tell before the first call
	turns  int // read over all calls, each of which reads the whole context
}

func (r *reader) read(text string) error {
	ids, _, err := r.codec.Encode(text)
	r.tokens += len(ids)
	return err
}

// readJSON reads JSON as models read and write it: => is not an escape sequence there.
func (r *reader) readJSON(v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return errors.Join(err, r.read(b.String()))
}

// meet reads what a server tells a model when it is connected.
func (r *reader) meet(ctx context.Context, s *mcp.ClientSession) error {
	err := r.read(s.InitializeResult().Instructions)
	for t, e := range s.Tools(ctx, nil) {
		if e != nil {
			return e
		}
		err = errors.Join(err, r.readJSON(map[string]any{"name": t.Name, "description": t.Description, "input_schema": t.InputSchema}))
	}
	r.known = r.tokens
	return err
}

// call calls a tool, and reads what was written for it and what came.
func (r *reader) call(ctx context.Context, s *mcp.ClientSession, tool string, args any) (string, error) {
	if err := r.readJSON(map[string]any{"name": tool, "input": args}); err != nil {
		return "", err
	}
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", err
	}
	var texts []string
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	r.calls++
	err = r.read(strings.Join(texts, "\n"))
	r.turns += r.tokens
	return strings.Join(texts, "\n"), err
}

// connect starts a server.
func connect(ctx context.Context, args ...string) (*mcp.ClientSession, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	return mcp.NewClient(&mcp.Implementation{Name: "peerbench", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
}

// oneByOne does the task a call at a time.
func oneByOne(ctx context.Context, r *reader, self string) error {
	tracker, err := connect(ctx, self, wordServer, "tracker")
	if err != nil {
		return err
	}
	defer tracker.Close()
	directory, err := connect(ctx, self, wordServer, "people")
	if err != nil {
		return err
	}
	defer directory.Close()
	if err := errors.Join(r.meet(ctx, tracker), r.meet(ctx, directory)); err != nil {
		return err
	}
	for page := 1; page <= issues/largestPage; page++ {
		if _, err := r.call(ctx, tracker, "list_issues", pageInput{page, largestPage}); err != nil {
			return err
		}
	}
	if _, err := r.call(ctx, directory, "list_people", struct{}{}); err != nil {
		return err
	}
	_, err = r.call(ctx, directory, "file_report", filing{"Urgent", solution()})
	return err
}

// asProgram does it by one program for mcp-pif.
func asProgram(ctx context.Context, r *reader, self string) error {
	dir, err := os.MkdirTemp("", "peerbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, lock := filepath.Join(dir, "mcp-pif"), filepath.Join(dir, "mcp.lock.json")
	if out, err := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join("..", "..", ".."), "-o", binary, "./cmd/mcp-pif").CombinedOutput(); err != nil {
		return fmt.Errorf("building mcp-pif: %s", out)
	}
	for _, name := range []string{"tracker", "people"} {
		if out, err := exec.CommandContext(ctx, binary, "mcp", "add", name, "--yes", "--accept", "--mcp-lock", lock, "--", self, wordServer, name).CombinedOutput(); err != nil {
			return fmt.Errorf("mcp-pif mcp add: %s", out)
		}
	}
	s, err := connect(ctx, binary, "serve", "--store=memory", "--log-level=error", "--mcp-lock", lock, "--cap", "tracker", "--cap", "people")
	if err != nil {
		return err
	}
	defer s.Close()
	if err := r.meet(ctx, s); err != nil {
		return err
	}
	if _, err := r.call(ctx, s, "help", map[string]any{"search": "issues people report"}); err != nil {
		return err
	}
	evolve := map[string]any{"name": "urgent", "capabilities": []string{"tracker", "people"}, "run": map[string]any{"input": "Urgent"}}
	var got string
	for _, code := range []string{strings.Replace(composed, ".data.issues", ".issues", 1), composed} {
		evolve["code"] = code
		if got, err = r.call(ctx, s, "evolve", evolve); err != nil {
			return err
		}
	}
	var made struct{ Run struct{ Result string } }
	var filed map[string][]int
	_ = json.Unmarshal([]byte(got), &made) // what isn't right is seen below
	_ = json.Unmarshal([]byte(made.Run.Result), &filed)
	if !maps.EqualFunc(filed, solution(), slices.Equal[[]int]) {
		return fmt.Errorf("the program's report isn't right: %s", got)
	}
	return nil
}

// writeServers does the task in both ways and prints what a model reads and writes for it.
func writeServers(out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return err
	}
	ctx := context.Background()
	one, ours := &reader{codec: codec}, &reader{codec: codec}
	if err := cmp.Or(oneByOne(ctx, one, self), asProgram(ctx, ours, self)); err != nil {
		return err
	}
	row := func(what string, one, ours int) {
		fmt.Fprintf(out, "%-46s %10d %10d   %.1f %% fewer\n", what, one, ours, 100-100*float64(ours)/float64(one))
	}
	fmt.Fprintf(out, "%-46s %10s %10s\n", fmt.Sprintf("%d items of %d bytes over two servers", issues, issueBytes), "one by one", "a program")
	row("calls", one.calls, ours.calls)
	row("tokens that enter the context", one.tokens, ours.tokens)
	row("  of them for the task, without definitions", one.tokens-one.known, ours.tokens-ours.known)
	row("tokens read, each call reading all before", one.turns, ours.turns)
	return nil
}
