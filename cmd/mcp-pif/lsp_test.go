package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// edited is a session of an editor: what it sends, and what has to be in the answer of
// the server to that; "" where there is none.
var edited = []struct{ method, params, says string }{
	{"initialize", `{}`, `"hoverProvider":true`},
	{"initialized", `{}`, ""},
	{"textDocument/didOpen", `{"textDocument":{"uri":"a","text":"n => if n < 0 then \"é𝄞\" else n + \"s\""}}`, `"start":{"line":0,"character":32},"end":{"line":0,"character":33}`},
	{"textDocument/didChange", `{"textDocument":{"uri":"a"},"contentChanges":[{"text":"n => n +"}]}`, `"code":"parse_error"`},
	{"textDocument/formatting", `{"textDocument":{"uri":"a"}}`, `"result":[]`},
	{"textDocument/didChange", `{"textDocument":{"uri":"a"},"contentChanges":[{"text":"// of numbers\nlist=>list|>sum"}]}`, `"diagnostics":[]`},
	{"textDocument/hover", `{"textDocument":{"uri":"a"},"position":{"line":1,"character":1}}`, `(list[num]) -\u003e num\ncost: linear`},
	{"textDocument/hover", `{"textDocument":{"uri":"a"},"position":{"line":1,"character":13}}`, `sum (library)`},
	{"textDocument/completion", `{"textDocument":{"uri":"a"},"position":{"line":1,"character":14}}`, `"label":"list"`},
	{"textDocument/formatting", `{"textDocument":{"uri":"a"}}`, `"newText":"// of numbers\nlist =\u003e list |\u003e sum\n"`},
	{"textDocument/didOpen", `{"textDocument":{"uri":"b","text":"p => !fs.re"}}`, `"uri":"b"`},
	{"textDocument/completion", `{"textDocument":{"uri":"b"},"position":{"line":0,"character":11}}`, `"label":"fs.read","textEdit":{"newText":"fs.read","range":{"start":{"line":0,"character":6},"end":{"line":0,"character":11}}}`},
	{"textDocument/hover", `{"textDocument":{"uri":"gone"},"position":{"line":7,"character":7}}`, `"result":null`},
	{"no/such", `{}`, `-32601`},
	{"shutdown", `{}`, `"result":null`},
	{"exit", `{}`, ""},
}

// TestLSP has each message of a session answered.
func TestLSP(t *testing.T) {
	t.Parallel()
	var in, out, errs bytes.Buffer
	for i, m := range edited {
		id := fmt.Sprintf(`"id":%d,`, i)
		if strings.Contains(m.method, "/did") || m.method == "initialized" || m.method == "exit" {
			id = ""
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":%s}`, id, m.method, m.params)
		fmt.Fprintf(&in, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	if status := command([]string{"lsp"}, &in, &out, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	for _, m := range edited {
		if m.says == "" {
			continue
		}
		var n int
		if _, err := fmt.Fscanf(&out, "Content-Length: %d\r\n\r\n", &n); err != nil {
			t.Fatalf("%s: %v", m.method, err)
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(&out, body); err != nil || !json.Valid(body) || !bytes.Contains(body, []byte(m.says)) {
			t.Errorf("%s %s: there is no %s in %s, %v", m.method, m.params, m.says, body, err)
		}
	}
	if out.Len() > 0 {
		t.Errorf("it says more: %s", &out)
	}
}

// TestGrammarOfEditors holds the copy of the grammar in the extension against the
// grammar.
func TestGrammarOfEditors(t *testing.T) {
	t.Parallel()
	grammar, err := os.ReadFile("../../core/text/pif.tmLanguage.json")
	if err != nil {
		t.Fatal(err)
	}
	copied, err := os.ReadFile("../editors/vscode/syntaxes/pif.tmLanguage.json")
	if err != nil || !bytes.Equal(grammar, copied) {
		t.Errorf("cmd/editors/vscode/syntaxes has another grammar than core/text: copy it (%v)", err)
	}
}
