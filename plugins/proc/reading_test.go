//go:build linux

package proc

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestPromptAfterParts: where the output of a line is taken in parts, or up to a
// pattern, the prompt on the other stream is there for who reads the rest.
func TestPromptAfterParts(t *testing.T) {
	h := hold(t, helper(t, "interpreter"))
	for _, first := range [][]any{{"max", 1000, "wait", patient}, {"pattern", "x{900}", "wait", patient}} {
		s := h.start()
		if v := h.does("read", "session", s, "wait", patient); text(v, "over") != "prompt" {
			t.Fatalf("at the beginning: %v", v)
		}
		h.does("send", "session", s, "text", "go\n")
		h.does("wait_for", "session", s, "prompt", true, "wait", patient)
		v := h.does("read", append([]any{"session", s}, first...)...)
		if over := text(v, "over"); over != "full" && over != "pattern" || text(v, "stderr") != "heard\n" || !bool(field(v, "more").(value.Bool)) {
			t.Fatalf("the first part: %v", v)
		}
		out := text(v, "stdout")
		for over := "full"; over == "full"; {
			v = h.does("read", "session", s, "max", 1000, "wait", patient)
			over, out = text(v, "over"), out+text(v, "stdout")
		}
		if text(v, "over") != "prompt" || text(v, "stderr") != "ready> " || out != strings.Repeat("x", 2500)+"\n" {
			t.Errorf("the rest: %v, in all %d bytes", v, len(out))
		}
	}
}

// TestPromptOfTheOperator: what the operator says prompts look like stands at the
// end of what is there, also where the expression doesn't say so.
func TestPromptOfTheOperator(t *testing.T) {
	c := helper(t, "interpreter")
	c.Prompt = "ready> "
	h := hold(t, c)
	s := h.start()
	h.does("read", "session", s, "wait", patient)
	h.does("send", "session", s, "text", "slow\n")
	if v := h.does("read", "session", s, "wait", patient); text(v, "over") != "prompt" || text(v, "stderr") != "ready> not yet\nready> " {
		t.Errorf("%v", v)
	}
}

// spanned is how much stands between the ends that TestSpanningPattern looks for.
const spanned = 300_000

func init() {
	roles["spanning"] = func([]string) {
		fmt.Print("BEGIN")
		for range 30 {
			fmt.Print(strings.Repeat(".", spanned/30))
			time.Sleep(5 * time.Millisecond)
		}
		for _, part := range []string{"EN", "D\xe2", "\x82", "\xac", "\n"} {
			fmt.Print(part)
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Hour)
	}
	roles["interpreter"] = func([]string) {
		for line := ""; ; {
			fmt.Fprint(os.Stderr, "ready> ")
			if _, err := fmt.Scanln(&line); err != nil {
				return
			}
			if line == "slow" {
				fmt.Fprint(os.Stderr, "ready> not yet")
				time.Sleep(time.Second)
				fmt.Fprint(os.Stderr, "\n")
				continue
			}
			fmt.Println(strings.Repeat("x", 2500))
			fmt.Fprint(os.Stderr, "heard\n")
		}
	}
}

// TestBlockThatRuns: after the empty line that ends a block no prompt for more of it
// is one; before, it is.
func TestBlockThatRuns(t *testing.T) {
	h := hold(t, python(t))
	s := h.start()
	h.does("read", "session", s, "wait", patient)
	h.does("send", "session", s, "text", "for n in range(2):\n")
	if v := h.does("read", "session", s, "wait", patient); text(v, "over") != "prompt" || text(v, "stderr") != "... " {
		t.Errorf("in a block: %v", v)
	}
	h.does("send", "session", s, "text", " import time; time.sleep(0.5); print(n)\n\n")
	if v := h.does("read", "session", s, "wait", patient); text(v, "over") != "prompt" || text(v, "stdout") != "0\n1\n" {
		t.Errorf("a block that runs: %v", v)
	}
}

// TestSpanningPattern: a pattern is found however far apart its ends come, and what
// stands between them.
func TestSpanningPattern(t *testing.T) {
	h := hold(t, helper(t, "spanning"))
	s := h.start()
	if v := h.does("wait_for", "session", s, "pattern", "(?s)^BEGIN.*END€\n$", "wait", patient); text(v, "over") != "pattern" {
		t.Fatalf("%v", v)
	}
	if v := h.does("read", "session", s, "pattern", "€\n", "max", mostMost, "wait", patient); len(text(v, "stdout")) != len("BEGINEND€\n")+spanned {
		t.Errorf("%d bytes of it", len(text(v, "stdout")))
	}
	h.does("stop", s)
}

// TestWholeCharacters: what is taken in parts, also after the end, is cut between
// characters, and one that is larger than a part comes whole.
func TestWholeCharacters(t *testing.T) {
	const all = "a€𝄞é"
	h := hold(t, helper(t, "cat"))
	for _, most := range []int{1, 2, 3, 5} {
		s := h.start()
		h.does("send", "session", s, "text", all, "eof", true)
		h.does("wait_for", "session", s, "prompt", false, "wait", patient)
		got := ""
		for range 20 {
			v := h.does("read", "session", s, "max", most, "wait", 0)
			got += text(v, "stdout")
			if !bool(field(v, "more").(value.Bool)) {
				break
			}
		}
		if got != all {
			t.Errorf("in parts of %d bytes: %q", most, got)
		}
	}
}

// TestSignalNames: as kill(1) takes them; nothing else is a signal.
func TestSignalNames(t *testing.T) {
	h := hold(t, helper(t, "sleep"))
	s := h.start()
	for _, name := range []string{"", "SIG", "SEGV", "9", "SIGSIGTERM", "TERM "} {
		h.fails("invalid", "signal", "session", s, "signal", name)
	}
	h.fails("invalid", "stop", "session", s, "grace", -1)
	for _, name := range []string{"WINCH", "SIGCONT", "sigterm"} {
		h.does("signal", "session", s, "signal", name)
	}
	if _, _, v := h.rest(s); text(v, "signal") != "SIGTERM" {
		t.Errorf("%v", v)
	}
}

// TestReadersAtOnce: of several that read one session each byte goes to one.
func TestReadersAtOnce(t *testing.T) {
	h := hold(t, helper(t, "cat"))
	s := h.start()
	var all sync.WaitGroup
	var got [3]string
	for i := range got {
		all.Go(func() {
			for over := ""; over != "end"; {
				v, err := h.try("read", "session", s, "silence", 5, "wait", 1000)
				if err != nil {
					t.Error(err)
					return
				}
				over, got[i] = text(v, "over"), got[i]+text(v, "stdout")
			}
		})
	}
	const parts = 50
	for range parts {
		h.does("send", "session", s, "text", "€")
		time.Sleep(2 * time.Millisecond)
	}
	h.does("send", "session", s, "eof", true)
	all.Wait()
	if n := len(got[0]) + len(got[1]) + len(got[2]); n != parts*len("€") {
		t.Errorf("%d bytes were read, of %d: %q", n, parts*len("€"), got)
	}
}
