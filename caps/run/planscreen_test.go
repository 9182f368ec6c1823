package run_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core"
)

var update = flag.Bool("update", false, "write the screens of plans into cmd/README.md")

// TestPlanScreens holds the screens in cmd/README.md against plans as they are shown.
func TestPlanScreens(t *testing.T) {
	t.Parallel()
	e := newEntries(1)
	e.kept["inbox"] = "Dear team, the figures of this month are attached, and those of the last one are corrected."
	w := newWorldOf(t, ledger, run.Options{}, e.perform, "led:**")
	var screens []string
	for _, c := range []struct{ name, code, input string }{
		{"newsletter", `u => let text = !led.get("inbox") in map(i => !led.put({key: "to-" ++ to_text(i) ++ "-acme", value: text}), range(1, 41))`, `null`},
		{"triage", `r => let ticket = !led.put({key: r.ticket, value: "open: " ++ !led.get("inbox")}) in let b = !led.put({key: ticket.text, value: {of: ticket.id, seen: to_text(ticket.ok)}}) in if b.ok then !led.put({key: "log", value: "ok"}) else null`, `{"ticket":"T4711"}`},
		{"archive", `u => map(i => [!led.put({key: "archive-of-november-2026-sheet-number-" ++ to_text(i), value: i}), !led.get("inbox")], range(0, 190))`, `null`},
	} {
		made := w.evolve(c.name, c.code, "led:**")
		in, err := core.ParseInput([]byte(c.input), core.InputData)
		if err != nil {
			t.Fatal(err)
		}
		p, f := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", c.input)).Plan(t.Context(), time.Now().Add(time.Hour),
			run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
		if f != nil {
			t.Fatal(f)
		}
		lines, fits := p.Lines()
		if !fits {
			lines = append(append(lines[:4:4], "…"), "(too long to be approved: the call is refused)")
		}
		screens = append(screens, "```text\n"+strings.Join(lines, "\n")+"\n```\n")
	}
	const path, begin, end = "../../cmd/README.md", "<!-- plan screens -->\n", "<!-- end plan screens -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, ok2 := strings.Cut(rest, end)
	want := "\n" + strings.Join(screens, "\n") + "\n"
	switch {
	case !ok || !ok2:
		t.Fatal("there are no marks")
	case *update:
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case got != want:
		t.Errorf("the screens are others; run with -update and look at them:\n%s", want)
	}
}

// TestPlanScreenAlike: contents that begin alike and differ behind what is shown are counted.
func TestPlanScreenAlike(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, ledger, run.Options{}, newEntries(1).perform, "led:**")
	made := w.evolve("alike", `u => map(i => !led.put({key: "k" ++ to_text(i), value: repeat_text("same beginning ", 12) ++ (if i == 4 then "EVIL" else "fine")}), range(0, 8))`, "led:**")
	in, err := core.ParseInput([]byte(`null`), core.InputData)
	if err != nil {
		t.Fatal(err)
	}
	p, f := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", "null")).Plan(t.Context(), time.Now().Add(time.Hour),
		run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
	if f != nil {
		t.Fatal(f)
	}
	lines, _ := p.Lines()
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "(2 different ones)") {
		t.Error(text)
	}
}
