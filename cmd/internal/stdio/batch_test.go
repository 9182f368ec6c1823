package stdio

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
)

// batched is a session of the version that has batches.
func batched(t *testing.T, version string) *session {
	t.Helper()
	s := start(t, nil)
	s.send(strings.Replace(initializeLine, "2025-11-25", version, 1))
	if m := s.receive(); m.Error != nil || !strings.Contains(string(m.Result), version) {
		t.Fatalf("initialize: %+v", m)
	}
	s.send(initializedLine)
	return s
}

// array expects the next line to be an array of answers, and gives each by its id.
func (s *session) array() map[string]received {
	s.t.Helper()
	s.raw.SetReadDeadline(time.Now().Add(wait.Limit(s.t)))
	l, err := s.out.ReadBytes('\n')
	if err != nil {
		s.t.Fatalf("receiving: %v", err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(l, &all); err != nil || len(all) == 0 {
		s.t.Fatalf("not an array of answers: %.300s", l)
	}
	got := map[string]received{}
	for _, a := range all {
		m := decode(s.t, append(slices.Clone(a), '\n'))
		if _, twice := got[string(m.ID)]; twice {
			s.t.Errorf("two answers for %s", m.ID)
		}
		got[string(m.ID)] = m
	}
	return got
}

// The answers to a batch come in one line, once all are there: those of calls, and those
// to what can't be taken. What is cancelled, and what asks for no answer, has none.
func TestBatch(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2024-11-05"} {
		s := batched(t, version)
		s.send("[" + strings.Join([]string{
			callLine("1", "echo", "one"),
			callLine(`"two"`, "hold", "held"),
			callLine("3", "hold", "given up"),
			initializedLine,
			`{"jsonrpc":"2.0","id":17,"result":{}}`,
			`{"jsonrpc":"2.0","id":4}`,
			initializeLine,
			callLine("5.0", "echo", "five"),
		}, " ,\t") + "]\r")
		s.reached("held", "given up")
		s.send(cancelLine("3"))
		s.alive() // and nothing was sent before it
		s.free()
		got := s.array()
		if len(got) != 5 {
			t.Errorf("%d answers: %v", len(got), got)
		}
		for id, want := range map[string]string{"1": "one", `"two"`: "released", "5.0": "five"} {
			if m := got[id]; m.Error != nil || m.text(t) != want {
				t.Errorf("%s: %+v", id, m)
			}
		}
		for id, want := range map[string]string{"4": "no method", `"init"`: "part of a batch"} {
			if m := got[id]; m.Error == nil || m.Error.Code != -32600 || !strings.Contains(m.Error.Message, want) {
				t.Errorf("%s: %+v", id, m)
			}
		}
		s.send("[" + initializedLine + "]") // which has no answer
		s.alive()
		s.in.Close()
		s.over()
	}
}

// What is no batch is refused as one.
func TestBatchRefused(t *testing.T) {
	s := batched(t, "2025-03-26")
	for _, c := range []struct {
		line, reason string
		code         int64
	}{
		{"[]", "empty", -32600},
		{"[" + pingLine("1"), "unexpected end", -32700},
		{"[" + pingLine("1") + ",]", "value", -32700},
		{"[" + pingLine("1") + "] []", "more after", -32700},
		{"[" + strings.Repeat("1,", maxBatch) + "1]", "over 1000", -32600},
	} {
		s.send(c.line)
		s.refused(c.code, "null", c.reason)
		s.alive()
	}
	s.send("[1,[" + pingLine("1") + "]]")
	s.raw.SetReadDeadline(time.Now().Add(wait.Limit(s.t)))
	if l, err := s.out.ReadString('\n'); err != nil || strings.Count(l, "-32600") != 2 {
		t.Errorf("%s %v", l, err)
	}
	s.in.Close()
	s.over()
}

// The end of input loses no answer of a batch, also where what the others waited for
// is cancelled.
func TestBatchAtTheEnd(t *testing.T) {
	s := batched(t, "2025-03-26")
	s.send("["+callLine("1", "echo", "one")+","+callLine("2", "stubborn", "stuck")+"]", "["+callLine("3", "echo", "three")+"]")
	s.reached("stuck")
	if got := s.array(); got["3"].text(t) != "three" {
		t.Errorf("%v", got)
	}
	s.send(cancelLine("2"))
	s.in.Close()
	if got := s.array(); len(got) != 1 || got["1"].text(t) != "one" {
		t.Errorf("%v", got)
	}
	s.free()
	s.over()
}

// One slow call doesn't hold all that was answered beside it.
func TestBatchOfLargeAnswers(t *testing.T) {
	s := batched(t, "2025-03-26")
	const n, size = 12, 256 << 10
	calls := []string{callLine(`"slow"`, "hold", "slow")}
	for i := range n {
		calls = append(calls, callLine(fmt.Sprint(i), "echo", strings.Repeat("x", size)))
	}
	s.send("[" + strings.Join(calls, ",") + "]")
	s.reached("slow")
	got := 0
	for got < n*size/highWater*highWater/size {
		got += len(s.array())
	}
	s.free()
	for got < n+1 {
		got += len(s.array())
	}
	s.in.Close()
	s.over()
}

// TestRefusal holds what is refused for others to what is refused here.
func TestRefusal(t *testing.T) {
	for _, c := range malformed {
		var m received
		if err := json.Unmarshal(Refusal([]byte(c.line), false), &m); err != nil || m.Error == nil ||
			m.Error.Code != c.code || string(m.ID) != c.id || !strings.Contains(m.Error.Message, c.reason) {
			t.Errorf("%s: %+v %v", c.name, m, err)
		}
	}
	batch := "[" + pingLine("1") + "," + initializedLine + "]"
	for _, line := range []string{pingLine("1"), initializedLine, `{"jsonrpc":"2.0","id":1,"result":{}}`, pingLine("9007199254740992"), pingLine(`"9007199254740993"`)} {
		if got := Refusal([]byte(line), false); got != nil {
			t.Errorf("%s: %s", line, got)
		}
	}
	if got := Refusal([]byte(batch), true); got != nil {
		t.Errorf("%s: %s", batch, got)
	}
	for _, line := range []string{batch[:len(batch)-1] + ",1]", "[]", "[1"} {
		if got := Refusal([]byte(line), true); got == nil {
			t.Errorf("%s is taken", line)
		}
	}
	// The SDK would give 9007199254740992 back.
	if got := string(Refusal([]byte(pingLine("9007199254740993")), false)); !strings.Contains(got, `"id":9007199254740993,"error"`) {
		t.Error(got)
	}
}
