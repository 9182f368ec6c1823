package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// unread asks for lists over standard input, and reads none. How many tools there are doesn't matter:
// a page has a thousand.
func unread(ctx context.Context, s *server) error {
	end := context.AfterFunc(ctx, s.kill)
	defer end()
	out := bufio.NewReader(s.out)
	ask := func(id int, method, params string) error {
		if _, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
			return err
		}
		for {
			line, err := out.ReadString('\n')
			if err != nil || strings.Contains(line, fmt.Sprintf(`"id":%d,`, id)) {
				return err
			}
		}
	}
	if err := ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`); err != nil {
		return err
	}
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i := range 100 {
		var made []string
		for j := range 10 {
			made = append(made, fmt.Sprintf(`{"name":"tool_%d","code":"n => n + %d","description":%q}`, 10*i+j, j, strings.Repeat("adds ", 60)))
		}
		if err := ask(i+1, "tools/call", `{"name":"evolve","arguments":{"tools":[`+strings.Join(made, ",")+`]}}`); err != nil {
			return err
		}
	}
	for i := range 10_000 {
		if _, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", 1000+i); err != nil {
			break
		}
	}
	<-ctx.Done()
	return nil
}

// evolves has every principal make large tools, several at once.
func evolves(ctx context.Context, s *server) error {
	code := "[1" + strings.Repeat(",1", 130_000) + "]"
	var all sync.WaitGroup
	for i := range principals {
		for j := range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					tool, arguments := "run", object{"code": code}
					if j%2 == 0 {
						tool, arguments = "evolve", object{"name": fmt.Sprint("t", j), "code": code}
					}
					if _, err := s.call(ctx, fmt.Sprint("p", i), tool, arguments); err != nil && ctx.Err() == nil {
						time.Sleep(20 * time.Millisecond) // there is no room for more
					}
				}
			})
		}
	}
	all.Wait()
	return nil
}

// cancelled cancels a run of each program, and notes when the journal has its end.
func cancelled(ctx context.Context, s *server) error {
	ended := func() int {
		text, _ := s.call(ctx, "p0", "journal", object{"kind": "run.ended", "limit": 50})
		return strings.Count(text, `"kind":"run.ended"`)
	}
	for _, code := range programs {
		if code == "" { // its attack has another
			continue
		}
		before := ended()
		one, cancel := context.WithTimeout(ctx, time.Second)
		_, err := s.call(one, "p0", "run", object{"code": code, "steps": mostSteps})
		began := time.Now()
		cancel()
		if err == nil {
			continue // it was over before
		}
		for ctx.Err() == nil && ended() == before {
			time.Sleep(5 * time.Millisecond)
		}
		late := time.Since(began)
		s.note(func(f *figures) { f.late, f.cut = max(f.late, late), f.cut || ctx.Err() != nil })
	}
	return nil
}
