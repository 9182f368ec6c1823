package main

import (
	"bytes"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// tamper edits the data of an event in a store that nobody has open. With sealed it
// gives the event the hash that it has now, as one would who knows how.
func tamper(t *testing.T, store string, sealed bool, pick string, edits map[string]string) {
	t.Helper()
	s, err := journal.Open(store, journal.Options{ReadOnly: true})
	must.NoError(t, err)
	events, _, err := s.Read(journal.Query{Changes: true, Tool: pick})
	if err != nil || len(events) != 1 {
		t.Fatal(len(events), err)
	}
	must.NoError(t, s.Close())
	e := events[0]
	data := e.Data
	for old, edited := range edits {
		if !bytes.Contains(data, []byte(old)) {
			t.Fatalf("there is no %s in %s", old, data)
		}
		data = bytes.Replace(data, []byte(old), []byte(edited), 1)
	}
	if e.Data = data; sealed {
		e.Hash = e.Seal()
	}
	db, err := sql.Open("sqlite", store) // package journal's driver
	must.NoError(t, err)
	defer db.Close()
	must.Succeed(t)(db.Exec(`UPDATE events SET data=?, hash=? WHERE seq=?`, []byte(e.Data), e.Hash[:], int64(e.Seq)))
}

// TestTamperedTool: a tool whose record was edited is never run, not by those that
// are bound to it either, and every way to it says what is wrong and whom to tell.
func TestTamperedTool(t *testing.T) {
	for what, sealed := range map[string]bool{"the data": false, "the data and its hash": true} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			store := filepath.Join(dir, "pif.db")
			p := start(t, "--log-level=error", "--store", store).open()
			p.makes("pay", "n => n * 2")
			p.makes("caller", "n => @pay(n)", "call:pay")
			p.makes("taker", `n => code_of("pay")`)
			p.makes("other", "n => n + 1")
			p.end()
			tamper(t, store, sealed, "pay", map[string]string{"n * 2": "n * 3", `},2]`: `},3]`}) // text and canonical JSON

			p = start(t, "--log-level=error", "--store", store).open()
			for name, arguments := range map[string]string{
				"pay": `{"input":3}`, "run": `{"tool":"pay","input":3}`, "caller": `{"input":3}`,
			} {
				r := p.call(name, arguments)
				text := r.Content[0].Text
				if !r.IsError || !strings.Contains(text, "refused") || !strings.Contains(text, "can't be used") || !strings.Contains(text, "journal verify") || strings.Contains(text, dir) {
					t.Errorf("%s: %s", name, text)
				}
			}
			if r := p.call("taker", `{"input":3}`); !r.IsError {
				t.Errorf("its code is %s", r.Content[0].Text)
			}
			if r := p.call("other", `{"input":3}`); r.Content[0].Text != "4" {
				t.Errorf("another tool: %s", r.Content[0].Text)
			}
			for name, arguments := range map[string]string{"list": `{}`, "describe": `{"name":"pay"}`} {
				text := p.call(name, arguments).Content[0].Text
				if !strings.Contains(text, "blocked") || !strings.Contains(text, "can't be used") || strings.Contains(text, `"sound":true`) {
					t.Errorf("%s: %s", name, text)
				}
			}
			p.makes("pay", "n => n * 2")
			if r := p.call("pay", `{"input":3}`); r.Content[0].Text != "6" {
				t.Errorf("evolved anew: %s", r.Content[0].Text)
			}
			p.end() // its log is whole
			if log := p.logged(); !sealed && (!strings.Contains(log, "pay") || !strings.Contains(log, "isn't what was recorded")) {
				t.Errorf("the operator is told %q", log)
			}
		})
	}
}
