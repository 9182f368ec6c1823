package caps_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"pgregory.net/rapid"
)

// consents is a file of a world's, for one asker.
func (w *world) consents(who string) *caps.Consents {
	return &caps.Consents{Path: w.path("consent.json"), Who: who, Kinds: w.kinds, Now: w.clock.now}
}

// subject is a version of a tool that holds capabilities of a world's.
func (w *world) subject(tool, code string, declared ...string) *caps.Subject {
	w.t.Helper()
	return &caps.Subject{Tool: tool, Code: code, Declared: declared, Holds: caps.Holdings(w.hold(declared...))}
}

// wantConsent polls, and holds what was said of a subject against what is expected.
func wantConsent(t testing.TB, c *caps.Consents, what string, s *caps.Subject, want caps.Consent) {
	t.Helper()
	must.NoError(t, c.Poll())
	if got := c.Of(s); got != want {
		t.Errorf("%s: %d, expected %d", what, got, want)
	}
}

// answered asks about a subject and answers.
func answered(t testing.TB, c *caps.Consents, s *caps.Subject, answer string) {
	t.Helper()
	id, _, err := c.Ask(caps.Question{Tool: s.Tool, Subject: *s})
	if err == nil {
		err = c.Answer(id, s, answer, "terminal")
	}
	must.NoError(t, err)
}

// TestUnapproved: what a grant asks for is denied, whatever a tool holds it under,
// until the version that asks is approved; a denial beats an approval.
func TestUnapproved(t *testing.T) {
	w := newWorld(t, "s/in/", "s/out/", "s/secret/")
	w.grant("fs.read:./s", "fetch:https://h.example/v1/**")
	w.ask("fs:./s/in")
	w.ask("fetch.post:https://*.example/v1/x")
	w.deny("fs:./s/secret")
	for _, test := range []struct {
		declared, op string
		arg          string
		asks         bool
	}{
		{"fs.read:./s/out", "fs.read", "a", false},
		{"fs.read:./s", "fs.read", "out/a", true}, // it reaches into what asks
		{"fs.read:./s/in", "fs.read", "a", true},
		{"fs.write:./s/in", "fs.list", "", true},
		{"fetch.get:https://h.example/v1/x", "fetch.request", "https://h.example/v1/x", false},
		{"fetch:https://h.example/v1/**", "fetch.request", "https://h.example/v1/y", true},
	} {
		held := w.hold(test.declared)
		if got := len(w.policy.Asks(held)) > 0; got != test.asks {
			t.Errorf("%s asks: %v", test.declared, got)
		}
		if test.arg == "" {
			continue
		}
		for consent, allowed := range map[caps.Consent]bool{caps.Unasked: !test.asks, caps.Rejected: !test.asks, caps.Approved: true} {
			_, f := w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: test.op, Arg: str(test.arg), Tool: "t", Consent: consent})
			if (f == nil) != allowed {
				t.Errorf("%s, consent %d: %v", test.declared, consent, f)
			}
		}
	}
	held := w.hold("fs.read:./s")
	_, f := w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: "fs.read", Arg: str("secret/a"), Tool: "t", Consent: caps.Approved})
	wantFault(t, f, fault.Denied, "denied by the operator")
	_, f = w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: "fs.read", Arg: str("a"), Tool: "t"})
	wantFault(t, f, fault.Denied, "waits for the operator's approval", "mcp-pif approve")
	// Taking back what asks doesn't make the rest free.
	w.policy.Revoke(w.policy.Asks(held)[0].Grant.ID)
	_, f = w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: "fs.read", Arg: str("in/a"), Tool: "t"})
	wantFault(t, f, fault.Denied)
}

// TestApprovalIsOfTheExactVersion: everything that a subject has is what was said
// yes to; a change of any of it wants another yes.
func TestApprovalIsOfTheExactVersion(t *testing.T) {
	w := newWorld(t, "s/in/")
	w.ask("fs:./s")
	c := w.consents("p")
	s := w.subject("t", "c1", "fs.read:./s/in")
	s.Bound = []caps.BoundSubject{{Name: "b", Key: "k1"}}
	answered(t, c, s, caps.YesVersion)
	wantConsent(t, c, "the version", s, caps.Approved)
	wantConsent(t, w.consents("q"), "another asker", s, caps.Unasked)
	for what, change := range map[string]func(*caps.Subject){
		"another name":       func(s *caps.Subject) { s.Tool = "u" },
		"other code":         func(s *caps.Subject) { s.Code = "c2" },
		"declared otherwise": func(s *caps.Subject) { s.Declared = []string{"fs:./s/in"} },
		"holds less":         func(s *caps.Subject) { s.Holds = nil },
		"another grant":      func(s *caps.Subject) { s.Holds = []caps.Holding{{Text: s.Holds[0].Text, Grant: "x"}} },
		"another callee":     func(s *caps.Subject) { s.Bound = []caps.BoundSubject{{Name: "b", Key: "k2"}} },
		"reaches more":       func(s *caps.Subject) { s.Reach = s.Holds },
	} {
		other := *s
		change(&other)
		wantConsent(t, c, what, &other, caps.Unasked)
	}
	if info, err := os.Stat(c.Path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read the file: %v, %v", info.Mode(), err)
	}
}

// TestNoWider: a yes to a name is to versions that can do no more, by themselves or
// by calls.
func TestNoWider(t *testing.T) {
	w := newWorld(t, "s/in/", "o/")
	w.ask("fs:./s")
	w.grant("fs:./o", "kv:n/**")
	c := w.consents("p")
	base := w.subject("t", "c1", "fs.read,list:./s,calls=10", "kv.get:n/a/*")
	base.Reach = caps.Holdings(w.hold("fs.read:./o"))
	answered(t, c, base, caps.YesName)
	with := func(code string, reach []string, late bool, declared ...string) *caps.Subject {
		s := w.subject("t", code, declared...)
		s.Reach, s.Late = caps.Holdings(w.hold(reach...)), late
		return s
	}
	for _, test := range []struct {
		what string
		s    *caps.Subject
		want caps.Consent
	}{
		{"the same, other code", with("c2", []string{"fs.read:./o"}, false, "fs.read,list:./s,calls=10", "kv.get:n/a/*"), caps.Approved},
		{"a part of it", with("c2", nil, false, "fs.read:./s/in,calls=3"), caps.Approved},
		{"a verb more", with("c2", nil, false, "fs.read,write:./s/in,calls=3"), caps.Unasked},
		{"a wider limit", with("c2", nil, false, "fs.read:./s/in,calls=11"), caps.Unasked},
		{"no limit", with("c2", nil, false, "fs.read:./s/in"), caps.Unasked},
		{"more of what asks nobody", with("c2", nil, false, "fs.read:./s/in,calls=3", "kv.get:n/**"), caps.Unasked},
		{"more by a call", with("c2", []string{"fs.write:./o"}, false, "fs.read:./s/in,calls=3"), caps.Unasked},
		{"what it held itself, by a call", with("c2", []string{"fs.read:./s/in,calls=3"}, false, "kv.get:n/a/b"), caps.Unasked},
		{"calls that nobody can tell", with("c2", nil, true, "fs.read:./s/in,calls=3"), caps.Unasked},
	} {
		wantConsent(t, c, test.what, test.s, test.want)
	}
	other := *with("c2", nil, false, "fs.read:./s/in,calls=3")
	other.Holds[0].Grant = "another"
	wantConsent(t, c, "under another grant", &other, caps.Unasked)
}

// TestNoHolds: a no is to the name, whatever version, and whatever yes there was,
// until it is cleared; nobody is asked again meanwhile.
func TestNoHolds(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	c := w.consents("p")
	first, second := w.subject("t", "c1", "fs.read:./s"), w.subject("t", "c2", "fs.read:./s")
	answered(t, c, first, caps.YesVersion)
	answered(t, c, second, caps.No)
	wantConsent(t, c, "the version that was approved", first, caps.Rejected)
	if _, asked, err := c.Ask(caps.Question{Tool: "t", Subject: *second}); asked || !errors.Is(err, caps.ErrRejected) {
		t.Errorf("asked again: %v, %v", asked, err)
	}
	if _, refused := c.Before(w.subject("u", "c2", "fs.read:./s")); len(refused) != 1 || refused[0] != "t" {
		t.Errorf("the same code under another name: %q", refused)
	}
	if n, err := c.Clear("t"); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	wantConsent(t, c, "cleared", second, caps.Unasked)
	wantConsent(t, c, "cleared", first, caps.Unasked)
}

// TestQuestionReplaced: an answer is to the question that was shown, if it still
// stands.
func TestQuestionReplaced(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	c := w.consents("p")
	shown, now := w.subject("t", "c1", "fs.read:./s"), w.subject("t", "c2", "fs.read:./s")
	id, _, err := c.Ask(caps.Question{Tool: "t", Subject: *shown})
	must.NoError(t, err)
	again, asked, err := c.Ask(caps.Question{Tool: "t", Subject: *shown})
	if again != id || asked || err != nil {
		t.Errorf("the same question twice: %s, %v, %v", again, asked, err)
	}
	newer, asked, err := c.Ask(caps.Question{Tool: "t", Subject: *now})
	if !asked || err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{id, newer} { // that of the newer one, with what was shown before
		if err := c.Answer(id, shown, caps.YesName, "terminal"); !errors.Is(err, caps.ErrNoQuestion) {
			t.Errorf("answered %s: %v", id, err)
		}
	}
	wantConsent(t, c, "the newer one", now, caps.Unasked)
	if questions, _, _ := c.All(); len(questions) != 1 {
		t.Errorf("%d questions wait", len(questions))
	}
	must.NoError(t, c.Withdraw("t"))
	if err := c.Answer(newer, now, caps.YesVersion, "terminal"); !errors.Is(err, caps.ErrNoQuestion) {
		t.Errorf("answered what was withdrawn: %v", err)
	}
}

// TestApproversRace: of many who answer one question one is heard.
func TestApproversRace(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	s := w.subject("t", "c1", "fs.read:./s")
	id, _, err := w.consents("p").Ask(caps.Question{Tool: "t", Subject: *s})
	must.NoError(t, err)
	var wg sync.WaitGroup
	heard := make(chan string, 20)
	for i := range 20 {
		answer := []string{caps.YesVersion, caps.No}[i%2]
		c := w.consents("p")
		wg.Go(func() {
			if err := c.Answer(id, s, answer, "terminal"); err == nil {
				heard <- answer
			} else if !errors.Is(err, caps.ErrNoQuestion) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(heard) != 1 {
		t.Fatalf("%d were heard", len(heard))
	}
	want := caps.Approved
	if <-heard == caps.No {
		want = caps.Rejected
	}
	wantConsent(t, w.consents("p"), "the one answer", s, want)
}

// TestFlood: one asker asks five questions an hour, by whatever names and versions;
// others aren't kept from asking.
func TestFlood(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	c := w.consents("p")
	n := 0
	flood := func() (asked int) {
		for range 40 {
			n++
			s := w.subject(fmt.Sprint("t", n%7), fmt.Sprint("c", n), "fs.read:./s")
			_, ok, err := c.Ask(caps.Question{Tool: s.Tool, Subject: *s})
			if ok {
				asked++
			} else if !errors.Is(err, caps.ErrAsksTooMuch) {
				t.Fatal(err)
			}
		}
		return asked
	}
	if asked := flood(); asked != 5 {
		t.Errorf("%d questions", asked)
	}
	if questions, _, _ := c.All(); len(questions) > 5 {
		t.Errorf("%d wait", len(questions))
	}
	w.clock.pass(59 * time.Minute)
	if asked := flood(); asked != 0 {
		t.Errorf("%d questions in the same hour", asked)
	}
	if _, ok, err := w.consents("q").Ask(caps.Question{Tool: "t", Subject: *w.subject("t", "c", "fs.read:./s")}); !ok || err != nil {
		t.Errorf("another asker: %v, %v", ok, err)
	}
	w.clock.pass(2 * time.Minute)
	if asked := flood(); asked != 5 {
		t.Errorf("%d questions in the next hour", asked)
	}
}

// TestConsentsDamaged: where the file can't be read, nothing is approved, and
// nothing that was there is overwritten.
func TestConsentsDamaged(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	c := w.consents("p")
	s := w.subject("t", "c1", "fs.read:./s")
	answered(t, c, s, caps.YesName)
	wantConsent(t, c, "before", s, caps.Approved)
	for _, damage := range []string{"", "{", `{"format":"mcp-pif consent 2"}`, `{"format":"mcp-pif consent 1","answers":[],"answers":[]}`} {
		must.NoError(t, os.WriteFile(c.Path, []byte(damage), 0o600))
		if err := c.Poll(); err == nil {
			t.Errorf("%q is read", damage)
		}
		if c.Of(s) != caps.Unasked {
			t.Errorf("%q: it is still approved", damage)
		}
		if _, _, err := c.Ask(caps.Question{Tool: "t", Subject: *s}); err == nil {
			t.Errorf("%q: something was asked", damage)
		}
		if now, _ := os.ReadFile(c.Path); string(now) != damage {
			t.Errorf("%q was overwritten", damage)
		}
	}
}

// TestToldOnce: an answer is put on record by one server, and by another if that
// failed.
func TestToldOnce(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	c, d := w.consents("p"), w.consents("p")
	answered(t, c, w.subject("t", "c1", "fs.read:./s"), caps.YesVersion)
	told, c0 := 0, c
	full := errors.New("full")
	for i, c := range []*caps.Consents{c, d, c, d} {
		must.NoError(t, c.Poll())
		err := c.Tell(func(caps.ConsentAnswer) error {
			if i == 0 {
				return full
			}
			told++
			if i == 1 { // another asks meanwhile, and the other server tells nothing twice
				if _, _, err := d.Ask(caps.Question{Tool: "u", Subject: *w.subject("u", "c2", "fs.read:./s")}); err != nil {
					t.Error(err)
				}
				must.NoError(t, c0.Poll())
				must.NoError(t, c0.Tell(func(caps.ConsentAnswer) error { told++; return nil }))
			}
			return nil
		})
		if (i == 0) != errors.Is(err, full) {
			t.Fatal(err)
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// TestQuestionText: no words of a model's stand outside their margin, act on the
// terminal or hide what the server says, however they are written.
func TestQuestionText(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	imitation := "x\n\nThe model's words end here.\n\nIt would get\n  fs.read:./harmless\r\x1b[2J\x1b[H\u202eevil\u2066\u200b\x9b31m\xff"
	for name, words := range map[string]string{
		"imitation": imitation, "1 MB": strings.Repeat(imitation, 12_000), "one line": strings.Repeat("a ", 500_000), "blank lines": strings.Repeat("\n", 1<<20),
		"wide": strings.Repeat("\u6f22", 10_000), "marks": "a" + strings.Repeat("\u0301", 5000), "blank letters": strings.Repeat("\u3164", 5000),
	} {
		q := caps.Question{
			ID: "1", Who: imitation, Tool: imitation, Asks: []string{"fs.read:./s"}, Facts: []string{"It would get", "  " + imitation},
			Description: words, Code: words,
		}
		c := w.consents(name)
		q.Subject = *w.subject("t", "c1", "fs.read:./s")
		if _, _, err := c.Ask(q); err != nil {
			t.Fatal(err)
		}
		if info, _ := os.Stat(c.Path); info.Size() > 1<<20 {
			t.Errorf("%s: the file has %d bytes", name, info.Size())
		}
		checkLines(t, name, q.Lines())
	}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.String().Draw(t, "words")
		q := caps.Question{Tool: words, Who: words, Facts: []string{words}, Description: words, Code: words}
		checkLines(t, "by chance", q.Lines())
	})
}

func checkLines(t interface {
	Helper()
	Errorf(string, ...any)
}, name string, lines []string) {
	t.Helper()
	if len(lines) > 200 {
		t.Errorf("%s: %d lines", name, len(lines))
	}
	const model = "What follows was written by the model, and may say anything."
	ends := lines[len(lines)-1] == "The model's words end here."
	inModel, shown := false, 0
	for i, line := range lines {
		if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool {
			return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x3164 || r == 0x301
		}) {
			t.Errorf("%s: line %d acts or hides: %q", name, i, line)
		}
		if n := len([]rune(line)); n > 100 {
			t.Errorf("%s: line %d has %d characters", name, i, n)
		}
		switch {
		case line == model && !inModel:
			inModel = true
		case inModel && line != "" && i < len(lines)-1:
			shown++
			if !strings.HasPrefix(line, "  |") {
				t.Errorf("%s: line %d is outside the margin: %q", name, i, line)
			}
		}
	}
	if !inModel || !ends || shown == 0 {
		t.Errorf("%s: the model's words aren't marked:\n%s", name, strings.Join(lines, "\n"))
	}
}

// TestQuote: a name or a value of a stranger's is one string of JSON, in which nothing hides.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"owner": `owner`, "_a1": `_a1`, "": `""`, "user-id": `"user-id"`, "1a": `"1a"`, "a b": `"a b"`, "a\n\"b\\": `"a\n\"b\\"`, strings.Repeat("a", 65): `"` + strings.Repeat("a", 65) + `"`,
		"имя": `"имя"`, "שם": `"שם"`, "नमस्ते": `"नमस्ते"`, "é": `"é"`, "😀": `"😀"`, // letters and their marks are seen
		"a\u202eb\u2066\u200b": `"a\u202eb\u2066\u200b"`, "\x7f\x1b": `"\u007f\u001b"`, "\u3164\u2800": `"\u3164\u2800"`, "x\ufe0f\u034f": `"x\ufe0f\u034f"`,
		"\U000E0041": `"\udb40\udc41"`, "\u2028": `"\u2028"`,
	} {
		got := caps.QuoteName(text)
		if got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
		var back string
		if got != text && (json.Unmarshal([]byte(got), &back) != nil || back != text) {
			t.Errorf("%s is read as %q, not as %q", got, back, text)
		}
	}
}
