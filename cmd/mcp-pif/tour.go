package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/plugins/host"
)

func newTour() *cobra.Command {
	return &cobra.Command{
		Use:   "tour",
		Short: "Demonstrate the server, in a few seconds",
		Long: `Start a server as an MCP client would, make tools with it and run them, let it
refuse what it must, go back to an earlier version, do a run again from the record,
and show each call with its answer. What is made is kept in a temporary folder, and
gone afterwards. The exit status is 1 if anything is not as it should be.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return failing(tour(cmd)) },
	}
}

// A stop is a part of the tour.
type stop struct {
	title string
	visit func(*guide) error
}

// tourTime is how long the tour may take before something must be wrong.
const tourTime = 2 * time.Minute

func tour(cmd *cobra.Command) error {
	ctx, stop := signal.NotifyContext(commandContext(cmd), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, tourTime)
	defer cancel()
	g := &guide{ctx: ctx, out: cmd.OutOrStdout(), began: time.Now()}
	err := g.travel()
	if g.session != nil {
		g.session.Close()
	}
	if g.scratch != nil {
		g.scratch.Remove()
	}
	if err != nil {
		if log := strings.TrimSpace(g.log.String()); log != "" {
			err = fmt.Errorf("%w\nthe server's log:\n%s", err, log)
		}
		return err
	}
	g.say("\nEverything worked (%v).", time.Since(g.began).Round(time.Millisecond))
	return nil
}

// A guide is a client that shows what it does.
type guide struct {
	ctx     context.Context
	out     io.Writer
	began   time.Time
	log     bytes.Buffer // the server's
	session *mcp.ClientSession
	scratch *host.Scratch
	dir     string // its path, where the store and the granted sandbox are
}

// tourStore is where the tour's servers keep what they make, in their folder.
const tourStore = "tools.db"

func (g *guide) say(format string, args ...any) { fmt.Fprintf(g.out, format+"\n", args...) }

// travel visits all stops: first with a server that grants nothing, then with
// one that grants a folder.
func (g *guide) travel() error {
	var err error
	if g.scratch, err = host.NewScratch(""); err != nil {
		return err
	}
	g.dir = g.scratch.Path
	if err := g.connect("--store", tourStore); err != nil {
		return err
	}
	if err := g.visit(stops); err != nil {
		return err
	}
	if err := g.session.Close(); err != nil {
		return fmt.Errorf("ending the first server: %w", err)
	}
	sandbox := filepath.Join(g.dir, "sandbox")
	if err := os.Mkdir(sandbox, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(sandbox, "numbers.txt"), []byte("3\n1\n2\n"), 0o600); err != nil {
		return err
	}
	g.say("")
	if err := g.connect("--store", tourStore, "--cap", "fs:./sandbox"); err != nil {
		return err
	}
	return g.visit(grantedStops)
}

func (g *guide) visit(stops []stop) error {
	for _, stop := range stops {
		g.say("\n%s", stop.title)
		if err := stop.visit(g); err != nil {
			return fmt.Errorf("the tour ended at %q: %w", stop.title, err)
		}
	}
	return nil
}

// connect starts this program as a server with these flags.
func (g *guide) connect(flags ...string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	server := exec.Command(self, append([]string{"serve", "--log-level=error"}, flags...)...)
	server.Args[0] = os.Args[0]
	server.Dir = g.dir
	server.Stderr = &g.log
	client := mcp.NewClient(&mcp.Implementation{Name: "mcp-pif-tour", Version: version()}, nil)
	g.say("Starting the server as an MCP client would: %s", strings.Join(append([]string{"mcp-pif", "serve"}, flags...), " "))
	g.session, err = client.Connect(g.ctx, &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		return fmt.Errorf("connecting to the server: %w", err)
	}
	return nil
}

// command runs this program as a person would, on the tour's store, and shows
// what it prints.
func (g *guide) command(args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	g.say("  $ mcp-pif %s --store %s", strings.Join(args, " "), tourStore)
	cmd := exec.CommandContext(g.ctx, self, append(args, "--store", tourStore)...)
	cmd.Args[0] = os.Args[0]
	cmd.Dir = g.dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	for line := range strings.Lines(string(out)) {
		g.say("    %s", firstLine(strings.TrimRight(line, "\n"), 120))
	}
	if err != nil {
		return "", fmt.Errorf("mcp-pif %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return string(out), nil
}

// prints runs a command whose output is to hold these words.
func (g *guide) prints(args []string, words ...string) error {
	out, err := g.command(args...)
	if err != nil {
		return err
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			return fmt.Errorf("mcp-pif %s: expected %q, got %s", strings.Join(args, " "), w, out)
		}
	}
	return nil
}

// reply is what came back from a call.
type reply struct {
	text   string
	failed bool
	data   map[string]json.RawMessage
}

// field gives a member of the structured answer as text.
func (r *reply) field(name string) string { return string(r.data[name]) }

// call makes a call and shows it with its answer.
func (g *guide) call(tool, arguments string) (*reply, error) {
	g.say("  → %s %s", tool, arguments)
	res, err := g.session.CallTool(g.ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w", tool, err)
	}
	r := &reply{failed: res.IsError}
	if len(res.Content) > 0 {
		if t, ok := res.Content[0].(*mcp.TextContent); ok {
			r.text = t.Text
		}
	}
	// The client decoded the structured content; its numbers don't matter here.
	structured, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(structured, &r.data)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", tool, err)
	}
	mark := "←"
	if r.failed {
		mark = "✗"
	}
	for i, line := range strings.Split(r.text, "\n") {
		if i > 0 {
			mark = " "
		}
		g.say("  %s %s", mark, firstLine(line, 200))
	}
	return r, nil
}

// gives makes a call whose text is known.
func (g *guide) gives(tool, arguments, text string) error {
	r, err := g.call(tool, arguments)
	if err != nil {
		return err
	}
	var plain string // of a tool that gives text
	if r.failed || r.text != text && (json.Unmarshal([]byte(text), &plain) != nil || r.text != plain) {
		return fmt.Errorf("expected %s, got %s", text, r.text)
	}
	return nil
}

// makes makes a tool.
func (g *guide) makes(arguments string) error {
	r, err := g.call("evolve", arguments)
	if err != nil {
		return err
	}
	if r.failed {
		return fmt.Errorf("evolve failed: %s", r.text)
	}
	return nil
}

// fails makes a call that must fail, in words that hold the given ones.
func (g *guide) fails(tool, arguments string, words ...string) error {
	r, err := g.call(tool, arguments)
	if err != nil {
		return err
	}
	if !r.failed {
		return fmt.Errorf("expected a failure, got %s", r.text)
	}
	for _, w := range words {
		if !strings.Contains(r.text, w) {
			return fmt.Errorf("expected a failure that says %q, got %s", w, r.text)
		}
	}
	return nil
}

// told shows parts of what evolve tells of a tool, each of which must hold a text.
func (g *guide) told(r *reply, parts map[string]string) error {
	var answer map[string]json.RawMessage
	if err := json.Unmarshal([]byte(r.text), &answer); err != nil || r.failed {
		return fmt.Errorf("expected what is known of the tool, got %s", r.text)
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		g.say("    %s: %s", name, firstLine(string(answer[name]), 100))
		if !strings.Contains(string(answer[name]), parts[name]) {
			return fmt.Errorf("expected %s in %s, got %s", parts[name], name, answer[name])
		}
	}
	return nil
}
