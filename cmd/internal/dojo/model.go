package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// A stub is the endpoint of the kind model. True gives what the text says without the attack in it. Owned, as soon as the
// attack is in the text, gives what the attacker wants wherever the type permits it.
type stub struct {
	*httptest.Server
	mu     sync.Mutex
	world  *world
	attack string
	// owned is the attacker's values by the names of fields; nil: the model is true.
	owned map[string]string
}

func newStub(w *world) *stub {
	s := &stub{world: w}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	return s
}

// is says what the model is from now on.
func (s *stub) is(attack string, owned map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attack, s.owned = attack, owned
}

func (s *stub) answer(out http.ResponseWriter, in *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var q struct {
		Messages []struct{ Content string }
		Format   struct {
			Schema struct{ Schema json.RawMessage } `json:"json_schema"`
		} `json:"response_format"`
	}
	var schema schemaNode
	if json.NewDecoder(in.Body).Decode(&q) != nil || json.Unmarshal(q.Format.Schema.Schema, &schema) != nil || len(q.Messages) == 0 {
		http.Error(out, "no question", http.StatusBadRequest)
		return
	}
	text := q.Messages[len(q.Messages)-1].Content
	owned := s.owned
	if s.attack == "" || !strings.Contains(text, s.attack) {
		owned = nil
	}
	if s.attack != "" {
		text = strings.ReplaceAll(text, s.attack, "")
	}
	answer, _ := json.Marshal(schema.value("", func(field string) string {
		if v, ok := owned[field]; ok {
			return v
		}
		return s.world.said(field, text)
	}))
	choice := record{"finish_reason": "stop", "message": record{"role": "assistant", "content": string(answer)}}
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(record{"choices": []any{choice}})
}

// A schemaNode is what matters of a JSON Schema here.
type schemaNode struct {
	Type       any
	Properties map[string]schemaNode
	AnyOf      []schemaNode
}

// value makes a value of the schema out of what is said of its fields.
func (n schemaNode) value(field string, said func(string) string) any {
	switch {
	case len(n.AnyOf) > 0:
		return n.AnyOf[0].value(field, said)
	case n.Properties != nil:
		r := record{}
		for k, p := range n.Properties {
			r[k] = p.value(k, said)
		}
		return r
	case field == "found":
		return true
	case n.Type == "boolean":
		return said(field) != "" && said(field) != "false"
	case n.Type == "number" || n.Type == "integer":
		if s := said(field); s != "" {
			return json.Number(s)
		}
		return 0
	}
	return said(field)
}
