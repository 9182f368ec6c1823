package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

func newLSP() *cobra.Command {
	var o app.CapOptions
	cmd := &cobra.Command{
		Use:   "lsp",
		Short: "Serve the Language Server Protocol to an editor",
		Long: `Serve the Language Server Protocol on standard input and output, for files in the text
form: problems as you type, on hover the type of a name, the help of an operation, or the type
and the cost of the program, completion, and formatting. With --profile or --store it knows the
tools that are kept there. Nothing is run. cmd/editors/vscode has an extension.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			auth, err := o.Look(app.Warnings(cmd))
			if err != nil {
				return cli.Failed(err)
			}
			defer auth.Close()
			tools, err := o.Copied(cmd, auth)
			if err != nil {
				return cli.Failed(err)
			}
			s := &languageServer{
				auth: auth, tools: tools, out: cli.RawOut(cmd), open: map[string]string{},
				help: engine.New(engine.Options{Broker: auth.Broker, Registry: tools}),
			}
			return cli.Failed(s.serve(cli.Context(cmd), cmd.InOrStdin()))
		},
	}
	o.Register(cmd.Flags(), app.KeptNowhere)
	return cmd
}

// A languageServer answers one editor.
type languageServer struct {
	auth  *app.Authority
	tools *registry.Registry
	help  *engine.Engine
	out   io.Writer
	open  map[string]string // the texts of files, by their URI
}

// What the protocol sends, as far as it is used.
type (
	lspMessage struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			TextDocument   struct{ URI, Text string } `json:"textDocument"`
			Position       lspPosition                `json:"position"`
			ContentChanges []struct{ Text string }    `json:"contentChanges"`
		} `json:"params"`
	}
	lspPosition struct {
		Line      int `json:"line"`
		Character int `json:"character"` // in units of UTF-16
	}
	lspRange struct {
		Start lspPosition `json:"start"`
		End   lspPosition `json:"end"`
	}
	lspDiagnostic struct {
		Range    lspRange `json:"range"`
		Severity int      `json:"severity"` // 1 is an error, 2 a warning
		Source   string   `json:"source"`
		Code     string   `json:"code,omitempty"`
		Message  string   `json:"message"`
	}
)

// serve reads messages until the editor ends.
func (s *languageServer) serve(ctx context.Context, in io.Reader) error {
	r := bufio.NewReader(in)
	for {
		header, err := textproto.NewReader(r).ReadMIMEHeader()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil || n < 0 || n > cli.MaxSource {
			return fmt.Errorf("a message has a Content-Length of at most %d, not %q", cli.MaxSource, header.Get("Content-Length"))
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		var m lspMessage
		if err := json.Unmarshal(body, &m); err != nil {
			return fmt.Errorf("a message is not understood: %w", err)
		}
		if m.Method == "exit" {
			return nil
		}
		result, known := s.handle(ctx, &m)
		if m.ID == nil {
			continue
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result}
		if !known {
			delete(answer, "result")
			answer["error"] = map[string]any{"code": -32601, "message": "method not found: " + m.Method}
		}
		if err := s.send(answer); err != nil {
			return err
		}
	}
}

func (s *languageServer) send(message any) error {
	body := cli.Marshal(message)
	_, err := fmt.Fprintf(s.out, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// handle does what a message asks for.
func (s *languageServer) handle(ctx context.Context, m *lspMessage) (result any, known bool) {
	uri := m.Params.TextDocument.URI
	switch m.Method {
	case "initialize":
		return map[string]any{
			"serverInfo": map[string]string{"name": "mcp-pif", "version": cli.Version()},
			"capabilities": map[string]any{
				"textDocumentSync": 1, "hoverProvider": true, "documentFormattingProvider": true,
				"completionProvider": map[string]any{"triggerCharacters": []string{"@", "!", "."}},
			},
		}, true
	case "textDocument/didOpen":
		s.changed(uri, m.Params.TextDocument.Text)
	case "textDocument/didChange":
		for _, c := range m.Params.ContentChanges {
			s.changed(uri, c.Text)
		}
	case "textDocument/didClose":
		delete(s.open, uri)
		s.publish(uri, []lspDiagnostic{})
	case "textDocument/hover":
		return s.hover(ctx, s.open[uri], m.Params.Position), true
	case "textDocument/completion":
		return s.completion(s.open[uri], m.Params.Position), true
	case "textDocument/formatting":
		return s.format(s.open[uri]), true
	}
	return nil, m.Method == "shutdown" || m.ID == nil
}

// changed keeps a file's text, and tells the editor what is wrong with it.
func (s *languageServer) changed(uri, src string) {
	s.open[uri] = src
	found := []lspDiagnostic{}
	add := func(severity int, kind fault.Kind, line, col int, message, hint string) {
		if hint != "" {
			message += "\n" + hint
		}
		found = append(found, lspDiagnostic{wordAt(src, line, col), severity, "pif", string(kind), message})
	}
	r, err := s.examine(src)
	var f *fault.Fault
	switch {
	case errors.As(err, &f):
		for _, f := range append([]*fault.Fault{f}, f.More...) {
			add(1, f.Kind, f.Line, f.Col, f.Message, core.HintInText(f.Hint))
		}
	case err == nil:
		for _, p := range r.Problems {
			add(1, p.Kind, p.Line, p.Col, p.Message, p.Hint)
		}
		for _, u := range r.Unknown {
			add(2, "", u.Line, u.Col, u.Message, "")
		}
	}
	s.publish(uri, found)
}

// publish tells the editor all that is wrong with a file.
func (s *languageServer) publish(uri string, found []lspDiagnostic) {
	_ = s.send(map[string]any{"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": map[string]any{"uri": uri, "diagnostics": found}})
}

// compile reads a program.
func (s *languageServer) compile(src string) (*registry.Tool, error) {
	_, t, err := s.tools.Snapshot().Trying(registry.Definition{Name: "it", Code: []byte(src), Text: !json.Valid([]byte(src))})
	return t, err
}

// examine finds out about a program what check does.
func (s *languageServer) examine(src string) (*checkReport, error) {
	t, err := s.compile(src)
	if err != nil {
		return nil, err
	}
	about := subject{tool: t, tools: s.tools, others: s.tools.Snapshot(), kinds: s.auth.Kinds, cannot: t.Cannot(s.auth.Kinds)}
	return about.report(false), nil
}

// lspWord is what hover and completion take for a word.
var lspWord = lazyregexp.New(`[@!]?[\p{L}_][\p{L}\p{Nd}_.]*`)

// lspWords returns where the words of a line are. What follows a point is a word of its
// own, but in the names of tools and effects.
func lspWords(line string) (spans [][2]int) {
	for _, span := range lspWord.Compiled().FindAllStringIndex(line, -1) {
		from, words := span[0], []string{line[span[0]:span[1]]}
		if !strings.ContainsAny(words[0][:1], "@!") {
			words = strings.Split(words[0], ".")
		}
		for _, word := range words {
			spans = append(spans, [2]int{from, from + len(word)})
			from += len(word) + 1
		}
	}
	return spans
}

// typeAt returns the type of the variable or field that is written at an offset; nil: there
// is none, or it isn't known.
func (s *languageServer) typeAt(src, word string, at int) *check.Type {
	t, err := s.compile(src)
	if err != nil {
		return nil
	}
	var found term.Term
	bound := false
	var walk func(n term.Term) bool
	walk = func(n term.Term) bool {
		switch v := n.(type) {
		case *term.Var:
			if v.Name == word && (bound || v.Pos() == at) {
				found = v
			}
		case *term.Prim:
			if at > 0 && src[at-1] == '.' && v.Pos() == at-1 {
				found = v
			}
		case *term.Lam:
			switch {
			case v.Param == word && bound: // another
				return true
			case v.Param == word && v.Pos() == at: // as its first use
				bound = true
				walk(v.Body)
				return false
			}
		}
		return found == nil && term.Children(n, walk)
	}
	walk(t.Program().Term())
	return t.Derive().Shown(found)
}

// hover explains the operation, or tells the type of the name, at a position, or else explains
// the whole program.
func (s *languageServer) hover(ctx context.Context, src string, at lspPosition) any {
	line, before := lineUpTo(src, at)
	for _, span := range lspWords(line) {
		word := strings.Trim(line[span[0]:span[1]], "@!")
		if span[0] > len(before) || span[1] < len(before) || slices.Contains(text.Keywords(), word) {
			continue
		}
		field := span[0] > 0 && line[span[0]-1] == '.' && !strings.HasPrefix(line[span[1]:], "(")
		if _, _, row := prim.Lookup(word); row && !field || strings.HasPrefix(line[span[0]:], "!") {
			if a := app.CallTool(ctx, s.help, "help", map[string]any{"name": word}); a.Fault == nil {
				return markup(a.Text)
			}
		} else if typ := s.typeAt(src, word, len(strings.Join(strings.SplitAfter(src, "\n")[:at.Line], ""))+span[0]); typ != nil {
			return markup(fmt.Sprintf("%s: %s", word, typ))
		}
	}
	r, err := s.examine(src)
	if err != nil {
		return nil
	}
	said := r.Type
	if r.Cost != nil {
		said += "\n" + r.Cost.short()
	}
	if len(r.Least) > 0 {
		said += "\nneeds: " + strings.Join(r.Least, " ")
	}
	return markup(said)
}

func markup(said string) any {
	return map[string]any{"contents": map[string]string{"kind": "plaintext", "value": said}}
}

// completion lists what a word can be: a name of the file, a keyword, an operation, a
// tool after @, an operation of a capability after !.
func (s *languageServer) completion(src string, at lspPosition) any {
	_, before := lineUpTo(src, at)
	word := ""
	if all := lspWords(before + "_"); len(all) > 0 {
		word = before[all[len(all)-1][0]:]
	}
	// What is replaced is given: an editor may take a point for the end of a word.
	typed := len(utf16.Encode([]rune(strings.TrimLeft(word, "@!"))))
	replaced := lspRange{lspPosition{at.Line, max(0, at.Character-typed)}, at}
	items := []map[string]any{}
	add := func(kind int, detail string, names ...string) {
		for _, name := range names {
			items = append(items, map[string]any{"label": name, "kind": kind, "detail": detail, "textEdit": map[string]any{"range": replaced, "newText": name}})
		}
	}
	const function, keyword, variable, module = 3, 14, 6, 9
	switch {
	case strings.HasPrefix(word, "@"):
		for _, t := range s.tools.Snapshot().All() {
			add(module, t.Description, t.Name)
		}
	case strings.HasPrefix(word, "!"):
		for _, m := range s.auth.Kinds {
			for i := range m.Operations {
				add(function, m.Operations[i].Doc, m.Operations[i].Name)
			}
		}
	default:
		for i := range prim.Table {
			if r := &prim.Table[i]; r.Operation() {
				add(function, r.Doc, r.Name)
			}
		}
		add(keyword, "", text.Keywords()...)
		names := lspWord.Compiled().FindAllString(src, -1)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if _, _, row := prim.Lookup(name); !row && name != word && !strings.ContainsAny(name, "@!.") && !slices.Contains(text.Keywords(), name) {
				add(variable, "", name)
			}
		}
	}
	return items
}

// format is the change that lays a file out; none if it can't be read.
func (s *languageServer) format(src string) any {
	out, err := formatted(strings.TrimSpace(src), false)
	if err != nil || string(out) == src {
		return []any{}
	}
	lines := strings.Count(src, "\n") + 1
	return []any{map[string]any{"range": lspRange{End: lspPosition{Line: lines}}, "newText": string(out)}}
}

// lineUpTo returns the line of a position, and what of it is before that.
func lineUpTo(src string, at lspPosition) (line, before string) {
	lines := strings.Split(src, "\n")
	if at.Line < 0 || at.Line >= len(lines) {
		return "", ""
	}
	line = lines[at.Line]
	units := utf16.Encode([]rune(line))
	return line, string(utf16.Decode(units[:max(0, min(at.Character, len(units)))]))
}

// wordAt returns the range of the word at a line and a column of code points, both
// from 1.
func wordAt(src string, line, col int) lspRange {
	lines := strings.Split(src, "\n")
	line = max(1, min(line, len(lines)))
	runes := []rune(lines[line-1])
	from := max(0, min(col-1, len(runes)))
	n := len([]rune(lspWord.Compiled().FindString(string(runes[from:]))))
	if at := lspWord.Compiled().FindStringIndex(string(runes[from:])); at == nil || at[0] > 0 {
		n = min(1, len(runes)-from)
	}
	unit := func(n int) lspPosition { return lspPosition{line - 1, len(utf16.Encode(runes[:n]))} }
	return lspRange{unit(from), unit(from + n)}
}
