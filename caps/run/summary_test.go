package run_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
)

// TestShownWords: what an event tells of is in words, with what a person wrote as it was written.
func TestShownWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind       journal.Kind
		data, want string
	}{
		{journal.RunStarted, `{"tool":"hyp","version":1,"inputs":[3,"a"]}`, "hyp@1  3, a"},
		{journal.RunStarted, `{"tool":"f","version":1,"input":["\u65e5\u672c","\u001b\\\u65e5\ud83d\ude42"]}`, `f@1  ["日本","\u001b\\日🙂"]`},
		{journal.ConsentAsked, `{"tool":"w","version":1,"question":"q","capabilities":["fs:./a","echo"],"subject":"k"}`, "w@1  asks for fs:./a echo  q"},
		{journal.ConsentAnswered, `{"tool":"w","version":1,"question":"q","answer":"yes","by":"terminal"}`, "w@1  yes  by terminal  q"},
		{journal.PlanMade, `{"plan":"p_a"}`, "planned  p_a"},
		{journal.PlanAnswered, `{"plan":"p_a","yes":true}`, "plan approved  p_a"},
		{journal.FlowAsked, `{"n":1,"op":"http.get","rule":2,"from":["mail"],"question":"f_a"}`, "http.get  rule 2  f_a"},
		{journal.FlowAnswered, `{"question":"f_a","yes":true,"by":"terminal"}`, "f_a  yes"},
		{journal.FlowAnswered, `{"question":"f_a","used":true}`, "f_a  the yes is used"},
		{journal.FlowCleared, `{"label":["mail","web"],"bits":{"mail":3},"taints":{"kv:n/**":["mail"]},"moves":{"a-1/2":["x","y"]}}`,
			"forgotten  shown: mail, web  3 bits of mail  kv:n/** holds mail  run a-1/2 moves between x and y"},
		{journal.FlowCleared, `{"label":["mail"],"only":true}`, "only this was forgotten  shown: mail"},
		{journal.SessionLabelled, `{"label":["mail","web"]}`, "the model was shown data of mail, web"},
		{journal.StoreTainted, `{"store":"kv:n/**","from":["mail","web"]}`, "kv:n/** holds data of mail, web"},
		{journal.ResultSealed, `{"sealed":"s_a","label":["mail"],"value":{"bytes":9,"sha256":"x"}}`, "s_a is sealed: it has data of mail"},
		{journal.Checkpoint, `{"to":7,"dropped":5}`, "5 of the events up to 7 were dropped"},
	} {
		e := &journal.Event{Seq: 7, Kind: c.kind, Data: []byte(c.data)}
		shown := run.ShowEvent(e)
		if got := shown.Words(e); got != c.want {
			t.Errorf("%s %s: %s, not %s", c.kind, c.data, got, c.want)
		}
	}
}
