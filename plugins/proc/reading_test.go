//go:build linux

package proc

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
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

// TestCostlyPattern: a search that would take a minute is given up, and one that is
// only long finds what there is to find.
func TestCostlyPattern(t *testing.T) {
	text := []byte(strings.Repeat("a", 4<<20) + "b")
	costly, err := newPattern("(a?){300}b")
	must.NoError(t, err)
	if place := costly.find(text, time.Now().Add(20*time.Millisecond)); place != nil {
		t.Errorf("found at %v all the same", place)
	}
	if place := costly.find(text[len(text)-1000:], time.Time{}); !slices.Equal(place, []int{699, 1000}) {
		t.Errorf("in little text it is at %v", place)
	}
	large, err := newPattern(strings.Repeat("a|", 50) + "€b")
	must.NoError(t, err)
	wide := []byte(strings.Repeat("€", 1<<20) + "€b")
	if place := large.find(wide, time.Now().Add(time.Hour)); !slices.Equal(place, []int{len(wide) - 4, len(wide)}) {
		t.Errorf("in much text it is at %v", place)
	}
}

// TestRing: whatever is added, what is given from a place on is what was added there,
// but for what is said to be lost; and no more is kept than there is room for, and
// some.
func TestRing(t *testing.T) {
	for seed := range uint64(300) {
		draw := rand.New(rand.NewPCG(seed, 1))
		r := ring{most: 1 + draw.IntN(64)}
		var all []byte
		for range 1 + draw.IntN(30) {
			part := make([]byte, draw.IntN(1+[]int{3, 70, 200}[draw.IntN(3)]))
			for i := range part {
				part[i] = byte(len(all) + i)
			}
			all = append(all, part...)
			r.add(part)
			if r.end() != int64(len(all)) || r.end()-r.begin() != int64(min(r.most, len(all))) || len(r.data) > r.most+r.most/4 {
				t.Fatalf("seed %d: it keeps %d to %d of %d in %d bytes", seed, r.begin(), r.end(), len(all), len(r.data))
			}
			at := draw.Int64N(r.end()+3) - 1
			got, lost := r.from(at)
			from := min(max(at, 0), r.end())
			if lost != max(0, r.begin()-from) || string(got) != string(all[from+lost:]) {
				t.Fatalf("seed %d: from %d it gives %v, %d lost", seed, at, got, lost)
			}
		}
	}
}

// TestDeniedFile: the file is found in what programs say of one that they couldn't open.
func TestDeniedFile(t *testing.T) {
	for output, want := range map[string]string{
		"cat: /etc/x: Permission denied\n":                                                  "/etc/x",
		"ls: cannot open directory '/srv/a b': Permission denied":                           "",
		"python3: can't open file '/srv/main.py': [Errno 13] Permission denied":             "/srv/main.py",
		"PermissionError: [Errno 13] Permission denied: '/srv/main.py'":                     "/srv/main.py",
		"ghc: /var/lib/ghc/package.conf.d/package.cache: openBinaryFile: permission denied": "/var/lib/ghc/package.conf.d/package.cache",
		"Error: EACCES: permission denied, open '/srv/a.js'":                                "/srv/a.js",
		"first\n/bin/sh: 1: /usr/bin/gcc: Permission denied\nlast":                          "/usr/bin/gcc",
		"permission denied to everybody":                                                    "",
		"/etc/x is fine":                                                                    "",
	} {
		if got := DeniedFile([]byte(output)); got != want && (want != "" || !strings.HasPrefix(got, "/srv/")) {
			t.Errorf("%q: %q, expected %q", output, got, want)
		}
	}
}

// TestRefusalTold: a session that ends since the sandbox refused it a file says which.
func TestRefusalTold(t *testing.T) {
	if _, err := os.Stat("/bin/cat"); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "secret.txt")
	must.NoError(t, os.WriteFile(file, []byte("x"), 0o644))
	c := helper(t, "echo")
	c.Path, c.Args = "/bin/cat", []string{"/bin/cat", file}
	h := hold(t, c)
	out, errs, v := h.rest(h.start())
	if out == "x" {
		t.Skip("nothing holds it here")
	}
	if why := text(v, "why"); !strings.Contains(why, "the program says it was refused "+strconv.Quote(file)) {
		t.Errorf("%s\n%s", errs, why)
	}
}

// TestRefusalIsTheProgramsWord: what a program says that it was refused is quoted, whatever is in it.
func TestRefusalIsTheProgramsWord(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	h := hold(t, sdk.Command{Args: []string{shell, "-c", `printf '/\377\001%01000d: Permission denied\n' 0 >&2; exit 1`}})
	s := h.start()
	_, errs, v := h.rest(s)
	why := text(v, "why")
	if !utf8.ValidString(why) || !strings.Contains(why, `the program says it was refused "/\x01000`) || len(why) > 500 || len(errs) < 1000 {
		t.Errorf("%d bytes, %q", len(errs), why)
	}
}

// TestAnswersOfTheirTypes: what the operations give of a session that runs, that has
// ended by itself and that was ended, is of the types that the manifest says.
func TestAnswersOfTheirTypes(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	h := hold(t, sdk.Command{Args: []string{shell}})
	ofType := plugintest.Types(h.plugin)
	does := func(operation string, args ...any) value.Value {
		t.Helper()
		v := h.does(operation, args...)
		ofType(t, "proc."+operation, v)
		return v
	}
	for _, last := range []string{"exit 3\n", "kill -9 $$\n", ""} {
		session := does("start")
		does("status", session)
		does("send", "session", session, "text", "echo a; echo b >&2\n")
		does("wait_for", "session", session, "pattern", "a", "wait", patient)
		does("read", "session", session, "pattern", "(a|b)\n", "wait", patient)
		does("read", "session", session, "wait", 0, "encoding", "base64")
		does("list")
		if last == "" {
			does("signal", "session", session, "signal", "INT")
			does("stop", session)
			continue
		}
		does("send", "session", session, "text", last)
		does("wait_for", "session", session, "prompt", false, "wait", patient)
		does("read", "session", session, "prompt", false, "wait", patient)
		does("status", session)
		does("stop", session)
	}
}

// TestConforms holds the plugin against the contract that all plugins keep. What its
// sessions do is in the other tests: the kit maps its names to no command.
func TestConforms(t *testing.T) {
	plugintest.Run(t, Plugin(), plugintest.Fixtures{
		Calls: []plugintest.Call{{Operation: "proc.list", Arguments: plugintest.Arguments()}},
	})
}
