package ui

import (
	"maps"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// showQuestions is what waits for an answer, as the terminal shows it.
func showQuestions(q *request) (view, error) {
	questions, answers, err := q.page.o.Questions.All()
	if err != nil {
		return view{}, err
	}
	type question struct {
		caps.Question
		Lines []string
	}
	d := struct {
		Questions []question
		Answers   []caps.ConsentAnswer
	}{}
	for i := range questions {
		d.Questions = append(d.Questions, question{questions[i], questions[i].Lines()})
	}
	slices.Reverse(answers)
	d.Answers = answers[:min(len(answers), perPage)]
	return view{Template: "questions.html", Title: "Questions", Data: &d}, nil
}

// showServers is the MCP servers of the lock file.
func showServers(q *request) (view, error) {
	l, err := q.page.o.Servers()
	if err != nil {
		return view{}, err
	}
	type tool struct {
		Word string
		*mcplock.Tool
		Flags string
	}
	type server struct {
		Name string
		*mcplock.Server
		Problem string
		Tools   []tool
		Open    bool
	}
	d := struct {
		Path    string
		Servers []server
	}{Path: l.Path}
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		s := server{Name: name, Server: l.Servers[name], Problem: q.page.o.Problem(l, name), Open: name == q.FormValue("name")}
		for _, word := range slices.Sorted(maps.Keys(s.Server.Tools)) {
			t := s.Server.Tools[word]
			s.Tools = append(s.Tools, tool{word, t, t.Flags().Words()})
		}
		d.Servers = append(d.Servers, s)
	}
	return view{Template: "servers.html", Title: "Servers", Data: &d}, nil
}

// showFlow is the rules about where data may flow, in sentences.
func showFlow(q *request) (view, error) {
	return view{Template: "flow.html", Title: "Flow", Data: q.store.Flow}, nil
}
