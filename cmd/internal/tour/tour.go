// Package tour is the command that shows what the server does: a client that starts
// this program as its server, in chapters of one screen each.
//
// It makes the calls that a model would make and fails if an answer isn't what the
// chapter says. What it makes lies in a temporary folder, and is removed. [Serve] is
// the small MCP server, a shop, that its last chapter puts behind the server.
package tour

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/host"
)

func New() *cobra.Command {
	g := &guide{}
	cmd := &cobra.Command{
		Use:   "tour",
		Short: "Show what the server does, in six short chapters",
		Long: `Start the server as an MCP client does, make tools with it, let it refuse what it
must, ask before it acts, and show what it recorded. On a terminal each chapter waits
for Enter. What the tour makes lies in a temporary folder and is gone afterwards. The
exit status is 1 if an answer isn't as it should be.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cli.Failed(g.tour(cmd)) },
	}
	cmd.Flags().BoolVar(&g.all, "all", false, "show all chapters without waiting for Enter")
	return cmd
}

// A chapter is one screen of the tour.
type chapter struct {
	title string
	flags []string // of the server that it starts; nil: it goes on with the last one
	visit func(*guide) error
	try   string // a command that shows more of it
}

// tourTimeout bounds the time of a tour that waits for nobody.
const tourTimeout = 2 * time.Minute

// A guide is a client that shows what it does.
type guide struct {
	all     bool
	ctx     context.Context
	out     io.Writer
	in      *bufio.Reader // a person at a terminal; nil: nobody
	color   bool
	width   int          // of a line
	log     bytes.Buffer // the server's
	session *mcp.ClientSession
	dir     string // where the store and the granted sandbox are
	refused bool   // the person said no to the tool that writes
}

func (g *guide) tour(cmd *cobra.Command) error {
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	g.ctx, g.out = ctx, cmd.OutOrStdout()
	isTerminal := cli.IsTerminal(g.out)
	if g.color = isTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"; g.color {
		g.out = cli.RawOut(cmd) // the escape sequences are ours
	}
	g.width = 110
	if columns := cli.TerminalWidth(g.out); columns > 20 {
		g.width = min(g.width, columns-6)
	}
	if isTerminal && cli.IsTerminal(cmd.InOrStdin()) && !g.all {
		g.in = bufio.NewReader(cmd.InOrStdin())
	} else {
		var cancel context.CancelFunc
		g.ctx, cancel = context.WithTimeout(ctx, tourTimeout)
		defer cancel()
	}
	scratch, err := host.NewScratch("")
	if err != nil {
		return err
	}
	defer scratch.Remove()
	g.dir = scratch.Path
	if tourSandbox() != "require" {
		var off []string
		for _, l := range host.System().Missing() {
			off = append(off, l.Name)
		}
		g.tell("Layers of the sandbox that are off here: " + strings.Join(off, ", "))
	}
	err = g.travel()
	if g.session != nil {
		g.session.Close()
	}
	if err != nil {
		if log := strings.TrimSpace(g.log.String()); log != "" {
			err = fmt.Errorf("%w\nthe server's log:\n%s", err, log)
		}
		return err
	}
	g.say("\n%s", g.paint("Everything worked, and nothing of it is left.", bold))
	g.say("Next: mcp-pif install --client claude-code     the language: mcp-pif repl")
	return nil
}

// travel visits all chapters.
func (g *guide) travel() error {
	for i, c := range chapters {
		if i > 0 && !g.wait() {
			return fmt.Errorf("the tour was left before chapter %d", i+1)
		}
		g.say("\n%s\n", g.paint(fmt.Sprintf("%d  %s", i+1, c.title), bold))
		if c.flags != nil {
			if err := g.connect(c.flags...); err != nil {
				return err
			}
		}
		if err := c.visit(g); err != nil {
			return fmt.Errorf("the tour ended in chapter %d, %q: %w", i+1, c.title, err)
		}
		g.say("%s mcp-pif %s", g.paint("Try it:", bold), c.try)
	}
	return nil
}

// wait waits for Enter if a person is there. It reports whether to go on.
func (g *guide) wait() bool {
	if g.in == nil {
		return true
	}
	fmt.Fprint(g.out, g.paint("Enter for the next chapter ", cli.Faint))
	return g.read() != nil
}

// read reads a person's line; nil: there is none.
func (g *guide) read() *string {
	line := make(chan *string, 1)
	go func() {
		text, err := g.in.ReadString('\n')
		if text = strings.TrimSpace(text); err != nil {
			line <- nil
			return
		}
		line <- &text
	}()
	select {
	case text := <-line:
		return text
	case <-g.ctx.Done():
		return nil
	}
}

// More looks of text on a terminal.
const (
	bold  = "1"
	green = "32"
)

func (g *guide) paint(text, look string) string {
	if !g.color {
		return text
	}
	return "\x1b[" + look + "m" + text + "\x1b[0m"
}

func (g *guide) say(format string, args ...any) { fmt.Fprintf(g.out, format+"\n", args...) }

// tell says what comes next, in words.
func (g *guide) tell(text string) { g.say("%s", g.paint(text, cli.Faint)) }

// show prints lines behind a mark, the first with it and the others indented.
func (g *guide) show(mark, look, text string) {
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i > 0 {
			mark = " "
		}
		g.say("  %s %s", g.paint(mark, look), cli.FirstLine(cli.PrintableLines(line), g.width))
	}
}

// self is this program with arguments, in the tour's folder and with its state there.
func (g *guide) self(args ...string) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.CommandContext(g.ctx, path, args...)
	cmd.Args[0] = os.Args[0]
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(g.dir, "state"))
	return cmd, nil
}

// connect starts this program as a server with these flags, in place of the one before.
func (g *guide) connect(flags ...string) error {
	if g.session != nil {
		if err := g.session.Close(); err != nil {
			return fmt.Errorf("ending the server: %w", err)
		}
		g.session = nil
	}
	if err := g.lay(); err != nil {
		return err
	}
	g.show("$", cli.Faint, strings.Join(append([]string{"mcp-pif"}, flags...), " "))
	server, err := g.self(append([]string{"serve", "--log-level=error", "--store", "tools.db", "--sandbox=" + tourSandbox()}, flags...)...)
	if err != nil {
		return err
	}
	server.Stderr = &g.log
	client := mcp.NewClient(&mcp.Implementation{Name: "mcp-pif-tour", Version: cli.Version()}, &mcp.ClientOptions{ElicitationHandler: g.elicit})
	g.session, err = client.Connect(g.ctx, &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		return fmt.Errorf("connecting to the server: %w", err)
	}
	return nil
}

// lay makes the folder that is granted, with a file in it.
func (g *guide) lay() error {
	sandbox := filepath.Join(g.dir, "sandbox")
	if err := os.MkdirAll(sandbox, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(sandbox, "numbers.txt"), []byte("3\n1\n2\n"), 0o600)
}

// elicit is the form that the client shows when the server asks a person.
func (g *guide) elicit(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	for line := range strings.SplitSeq(r.Params.Message, "\n") {
		if line != "" && !strings.HasPrefix(line, "  asked") && !strings.HasPrefix(line, "  question") && !strings.HasPrefix(line, "      ") {
			g.say("  %s %s", g.paint("┃", cli.Cyan), cli.FirstLine(line, g.width))
		}
		if strings.HasPrefix(line, "  fs.") { // what it would get
			break
		}
	}
	g.say("  %s …", g.paint("┃", cli.Cyan))
	answer := "yes, for this version alone"
	if g.in == nil {
		g.say("  %s %s", g.paint("┃ you:", cli.Cyan), answer)
	} else {
		fmt.Fprintf(g.out, "  %s Enter for yes, no for no: ", g.paint("┃ you:", cli.Cyan))
		if text := g.read(); text == nil || strings.HasPrefix(strings.ToLower(*text), "n") {
			answer, g.refused = "no", true
		}
	}
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": answer}}, nil
}

// command runs this program as a person would, and shows what it prints, which has to
// hold these words. It shows at most max lines, the last among them.
func (g *guide) command(args []string, max int, words ...string) error {
	cmd, err := g.self(args...)
	if err != nil {
		return err
	}
	g.show("$", cli.Faint, strings.ReplaceAll("mcp-pif "+strings.Join(args, " "), cmd.Path, "mcp-pif"))
	if cmd.Args[1] != "mcp" {
		cmd.Args = append(cmd.Args, "--store", "tools.db")
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("mcp-pif %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) > max {
		lines[max-1] = lines[len(lines)-1]
	}
	for _, line := range lines[:min(len(lines), max)] {
		g.say("    %s", cli.FirstLine(strings.ReplaceAll(line, g.dir+string(filepath.Separator), ""), g.width))
	}
	for _, w := range words {
		if !strings.Contains(string(out), w) {
			return fmt.Errorf("mcp-pif %s: expected %q, got %s", strings.Join(args, " "), w, out)
		}
	}
	return nil
}

// A reply is what came back from a call.
type reply struct {
	text   string
	failed bool
	data   map[string]json.RawMessage
}

// call makes a call of the model's.
func (g *guide) call(tool string, arguments map[string]any) (*reply, error) {
	res, err := g.session.CallTool(g.ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w", tool, err)
	}
	r := &reply{failed: res.IsError}
	if len(res.Content) > 0 {
		if t, ok := res.Content[0].(*mcp.TextContent); ok {
			r.text = t.Text
		}
	}
	structured, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(structured, &r.data)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", tool, err)
	}
	return r, nil
}

// gives shows a call with its answer, which has to be a text.
func (g *guide) gives(tool string, arguments map[string]any, shown, want string) error {
	g.show("▸", cli.Cyan, shown)
	r, err := g.call(tool, arguments)
	if err != nil {
		return err
	}
	if r.failed || r.text != want {
		return fmt.Errorf("expected %s, got %s", want, r.text)
	}
	g.show("→", green, r.text)
	return nil
}

// runs runs code and shows its result.
func (g *guide) runs(code, want string) error {
	return g.gives("run", map[string]any{"code": code}, "run  "+code, want)
}

// fails shows a call that must fail, in words that hold the given ones. It shows at
// most max lines of the answer.
func (g *guide) fails(tool string, arguments map[string]any, shown string, max int, words ...string) error {
	g.show("▸", cli.Cyan, shown)
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
	lines := strings.Split(r.text, "\n")
	g.show("✗", cli.Red, strings.Join(lines[:min(len(lines), max)], "\n"))
	return nil
}

// evolves makes a tool and shows what is known of it.
func (g *guide) evolves(name, code string, more map[string]any) error {
	g.show("▸", cli.Cyan, "evolve  "+name+" =\n  "+strings.ReplaceAll(code, "\n", "\n  "))
	arguments := map[string]any{"name": name, "code": code}
	maps.Copy(arguments, more)
	r, err := g.call("evolve", arguments)
	if err != nil {
		return err
	}
	if r.failed {
		return fmt.Errorf("evolve failed: %s", r.text)
	}
	var known struct{ Type, Cost string }
	if err := json.Unmarshal([]byte(r.text), &known); err != nil {
		return fmt.Errorf("the answer of evolve: %w", err)
	}
	g.show("→", green, strings.TrimRight(known.Type+"   "+known.Cost, " "))
	return nil
}
