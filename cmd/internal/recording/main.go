// Command recording records the tour and the approval of a tool in a terminal, and
// writes them as moving pictures (SVG), which the READMEs show:
//
//	go run ./cmd/internal/recording cmd
//
// It builds mcp-pif, runs it behind a pseudo-terminal (script of util-linux), and writes
// tour.svg and approve.svg into the folder named. A picture shows one screen after the
// other by CSS, without script, in colours that follow the viewer's theme.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: recording FOLDER")
	}
	if err := record(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func record(out string) error {
	dir, err := os.MkdirTemp("", "recording-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "mcp-pif")
	if text, err := exec.Command("go", "build", "-o", binary, "./cmd/mcp-pif").CombinedOutput(); err != nil {
		return fmt.Errorf("building: %w: %s", err, text)
	}
	r := &recorder{dir: dir}
	text, err := r.run("mcp-pif tour --all", nil)
	if err != nil {
		return fmt.Errorf("the tour: %w: %s", err, text)
	}
	chapters := regexp.MustCompile(`(?m)^\x1b\[1m\d  `).FindAllStringIndex(text, -1)
	var screens []string
	for i, c := range chapters {
		end := len(text)
		if i+1 < len(chapters) {
			end = chapters[i+1][0]
		}
		screens = append(screens, text[c[0]:end])
	}
	if err := os.WriteFile(filepath.Join(out, "tour.svg"), []byte(r.picture("mcp-pif tour", screens)), 0o644); err != nil {
		return err
	}
	if screens, err = r.approve(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "approve.svg"), []byte(r.picture("mcp-pif approve", screens)), 0o644)
}

// A recorder runs commands in a folder of its own, which holds mcp-pif.
type recorder struct{ dir string }

func (r *recorder) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "PATH="+r.dir+":"+os.Getenv("PATH"), "TERM=xterm-256color", "COLUMNS=116", "TMPDIR="+r.dir,
		"HOME="+r.dir, "XDG_STATE_HOME="+filepath.Join(r.dir, "state"))
	return cmd
}

// run runs a command behind a terminal and returns all that it printed. Where answer
// isn't nil it is asked for an answer after each piece; a non-empty one is typed.
func (r *recorder) run(line string, answer func(printed string) string) (string, error) {
	cmd := r.command("script", "-qec", "stty cols 116 rows 60; "+line, "/dev/null")
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() }).Stop()
	var text strings.Builder
	for buf := make([]byte, 4096); ; {
		n, err := out.Read(buf)
		text.Write(buf[:n])
		if answer != nil {
			if typed := answer(text.String()); typed != "" {
				answer = nil
				fmt.Fprintln(in, typed)
			}
		}
		if err != nil {
			break
		}
	}
	in.Close()
	err = cmd.Wait()
	return strings.ReplaceAll(text.String(), "\r\n", "\n"), err
}

// approve makes a tool that asks, and answers the question.
func (r *recorder) approve() ([]string, error) {
	for _, folder := range []string{"notes", "sandbox"} {
		if err := os.Mkdir(filepath.Join(r.dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	server := r.command(filepath.Join(r.dir, "mcp-pif"), "--cap", "fs.read:./notes", "--ask", "fs.write:./sandbox", "--log-level=error")
	in, err := server.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	defer server.Wait()
	defer in.Close()
	replies := bufio.NewScanner(out)
	for i, frame := range []map[string]any{
		{"method": "initialize", "params": map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "claude-code", "version": "1"}}},
		{"method": "tools/call", "params": map[string]any{"name": "evolve", "arguments": map[string]any{
			"name": "publish", "description": "Publish a note in capitals.", "capabilities": []string{"fs.read:./notes", "fs.write:./sandbox"},
			"code": "name =>\n  let text = !fs.read(name)\n  !fs.write({path: name, content: upper(text)}).bytes"}}},
	} {
		frame["jsonrpc"], frame["id"] = "2.0", i+1
		if err := json.NewEncoder(in).Encode(frame); err != nil {
			return nil, err
		}
		if !replies.Scan() {
			return nil, fmt.Errorf("the server has ended: %w", io.ErrUnexpectedEOF)
		}
		if i == 0 {
			fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
	}
	typed := regexp.MustCompile(`(?m)^  (yes \S+ \d+)`)
	var question string
	text, err := r.run("mcp-pif approve", func(printed string) string {
		m := typed.FindStringSubmatch(strings.ReplaceAll(ansi.Strip(printed), "\r", ""))
		if m == nil || !strings.HasSuffix(printed, "> ") {
			return ""
		}
		question = printed
		return m[1]
	})
	if err != nil {
		return nil, fmt.Errorf("approving: %w: %s", err, text)
	}
	prompt := "\x1b[2m$\x1b[0m mcp-pif approve\n"
	return []string{prompt + strings.ReplaceAll(question, "\r\n", "\n"), prompt + text}, nil
}

const (
	columns    = 118
	charWidth  = 7.83
	lineHeight = 18
	seconds    = 9 // that a screen is shown
)

var graphics = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// picture draws screens of text with colours, one after the other, without end. The
// recorder's folder is the reader's own there.
func (r *recorder) picture(title string, screens []string) string {
	height := 0
	for i, s := range screens {
		screens[i] = strings.ReplaceAll(s, r.dir, "~")
		height = max(height, strings.Count(strings.Trim(s, "\n"), "\n")+1)
	}
	w, h := float64(columns)*charWidth+40, float64(height*lineHeight+70)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label=%q>
<style>
svg{--b:#ffffff;--t:#24292f;--f:#6e7781;--r:#cf222e;--g:#116329;--y:#7d4e00;--c:#0550ae;--e:#d0d7de}
@media(prefers-color-scheme:dark){svg{--b:#0d1117;--t:#e6edf3;--f:#8b949e;--r:#ff7b72;--g:#7ee787;--y:#e3b341;--c:#79c0ff;--e:#30363d}}
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--t);white-space:pre}
.k1{font-weight:700}.k2{fill:var(--f)}.k31{fill:var(--r)}.k32{fill:var(--g)}.k33{fill:var(--y)}.k36{fill:var(--c)}
.s{opacity:0;animation:s %ds step-end infinite}
@keyframes s{0%%{opacity:1}%.3f%%{opacity:0}}
</style>
<rect x="1" y="1" width="%.0f" height="%.0f" rx="8" fill="var(--b)" stroke="var(--e)"/>
<text x="20" y="26" class="k2">%s</text>
`, w, h, title, seconds*len(screens), 100/float64(len(screens)), w-2, h-2, html.EscapeString(title))
	for i, s := range screens {
		fmt.Fprintf(&b, `<g class="s" style="animation-delay:%ds">`+"\n", seconds*i)
		for n, line := range strings.Split(strings.Trim(s, "\n"), "\n") {
			if line = spans(line); line != "" {
				fmt.Fprintf(&b, `<text x="20" y="%d">%s</text>`+"\n", 56+n*lineHeight, line)
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// spans is a line whose colours are spans of SVG.
func spans(line string) string {
	var b strings.Builder
	class, at := "", 0
	write := func(text string) {
		text = html.EscapeString(ansi.Strip(text))
		if text != "" && class != "" {
			text = `<tspan class="` + class + `">` + text + "</tspan>"
		}
		b.WriteString(text)
	}
	for _, m := range graphics.FindAllStringSubmatchIndex(line, -1) {
		write(line[at:m[0]])
		at, class = m[1], ""
		for code := range strings.SplitSeq(line[m[2]:m[3]], ";") {
			if code != "" && code != "0" {
				class = strings.TrimSpace(class + " k" + code)
			}
		}
	}
	write(line[at:])
	return strings.TrimRight(b.String(), " ")
}
