package ui

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// What a page with Act can do. Each takes something away, or gives nothing that isn't there.
const (
	doRetire   = "retire"
	doRollback = "rollback"
	doRevoke   = "revoke"
)

// moved is the error of an answer that is another page.
type moved string

func (m moved) Error() string { return "moved to " + string(m) }

// An act is a change before it is made: what happens, in sentences, or why the page won't.
type act struct {
	Do, Title, Name string
	Version         int // that it is about
	If              int // the version that must be the current one; 0: there is none
	Grant           string
	Happens         []string
	Refused         string
	Command         string // that does it at a terminal
}

// showAct is what happens if one agrees.
func showAct(q *request) (view, error) {
	a, _, err := q.act()
	if err != nil {
		return view{}, err
	}
	return view{Template: "act.html", Title: a.Title, Data: &a}, nil
}

// act reads which change is meant, and judges it by how things are now.
func (q *request) act() (a act, g *caps.Grant, err error) {
	if !q.page.o.Act {
		return a, nil, missing("This page changes nothing: it was started without --act.")
	}
	a = act{Do: q.FormValue("do"), Name: q.FormValue("name"), Grant: q.FormValue("grant")}
	if a.Do == doRevoke {
		return q.judgeRevoke(a)
	}
	now, there := q.store.Tools.Snapshot().Get(a.Name)
	if there {
		a.If = now.Version
	}
	switch a.Do {
	case doRetire:
		if !there {
			return a, nil, missing("There is no such tool now.")
		}
		a.Title, a.Version = "Retire "+a.Name, now.Version
		a.Command = "mcp-pif tools retire " + caps.ShellQuote(caps.Visible(a.Name)) + q.of()
		a.Happens = []string{"Models don't see the tool any more, and calls of it fail.", "Its history stays: a rollback brings it back."}
		for _, o := range q.store.all() {
			if o.Name != a.Name && o.Uses()[a.Name] != nil {
				a.Happens = append(a.Happens, o.Name+" goes on using the version that it is bound to.")
			}
		}
		a.Happens = a.Happens[:min(len(a.Happens), 30)]
	case doRollback:
		if a.Version, err = strconv.Atoi(q.FormValue("v")); err != nil || a.Version < 1 {
			return a, nil, missing("Which version?")
		}
		old, _, err := q.tool(a.Name, strconv.Itoa(a.Version))
		if err != nil {
			return a, nil, err
		}
		a.Title = fmt.Sprintf("Roll %s back to version %d", a.Name, a.Version)
		a.Command = fmt.Sprintf("mcp-pif tools rollback %s %d%s", caps.ShellQuote(caps.Visible(a.Name)), a.Version, q.of())
		a.Happens = []string{"The next version has the code, the description, the declaration and the examples of that version.", "History goes on: nothing is undone."}
		switch wider := q.store.widens(now, old); {
		case there && now.Version == a.Version:
			a.Refused = "It is the current version."
		case len(old.Group) > 0 || there && len(now.Group) > 0:
			a.Refused = "It was made together with others, which would be carried along."
		case wider != "":
			a.Refused = "It would get wider: " + wider
		default:
			a.Happens = append(a.Happens, "It gets no wider than it is now.")
		}
	default:
		return a, nil, missing("The page can't do that.")
	}
	return a, nil, nil
}

func (q *request) judgeRevoke(a act) (act, *caps.Grant, error) {
	for _, g := range q.store.Policy.Grants() {
		if g.ID != a.Grant {
			continue
		}
		a.Title, a.Name = "Revoke "+g.String(), g.String()
		a.Command = "mcp-pif caps revoke " + caps.ShellQuote(caps.Visible(g.String()))
		if g.Principal != "" {
			a.Command += " --principal " + caps.ShellQuote(caps.Visible(g.Principal))
		}
		a.Happens = []string{
			"Every server of yours refuses what is within it, within a second: effects under way included.",
			"It outlives servers and beats their flags, until 'mcp-pif caps restore' at a terminal.",
		}
		if g.Revoked() {
			a.Refused = "It is revoked already."
		}
		return a, g, nil
	}
	return a, nil, missing("There is no such grant now.")
}

// widens says what a version could do that the current one can't, by this policy or another:
// what it declares counts, too, since a server may grant more than this page knows of. ""
// means nothing.
func (s *Store) widens(now, next *registry.Tool) string {
	before, declared := &caps.Subject{Tool: next.Name}, map[string]bool{}
	if now != nil {
		before = registry.SubjectOf(now)
		declare(now, declared, map[*registry.Tool]bool{})
	}
	wants := map[string]bool{}
	declare(next, wants, map[*registry.Tool]bool{})
	for text := range wants {
		if !declared[text] {
			return "it, or a tool that it calls, declares " + text
		}
	}
	after := registry.SubjectOf(next)
	if after.Late {
		return "it calls tools that are worked out when it runs, or takes their code"
	}
	if !before.NoWider(after, s.Policy.Kinds()) {
		return "it reaches more than the current version"
	}
	return ""
}

// declare collects what a tool declares and those that it is bound to.
func declare(t *registry.Tool, texts map[string]bool, seen map[*registry.Tool]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	for _, text := range t.Declared {
		texts[text] = true
	}
	for _, b := range t.Bound {
		declare(b, texts, seen)
	}
}

// doAct makes a change, if things still are as the page with it said.
func doAct(q *request) (view, error) {
	a, g, err := q.act()
	if err != nil {
		return view{}, err
	}
	if seen, err := strconv.Atoi(q.PostForm.Get("if")); a.Refused == "" && (err != nil || seen != a.If) {
		a.Refused = "It was changed since the page with the question was loaded."
	}
	if a.Refused != "" {
		return view{Template: "act.html", Title: a.Title, Data: &a}, nil
	}
	if a.Do == doRevoke {
		r, err := caps.RevocationOf(g.String(), q.store.Policy.Kinds(), "", g.Principal)
		if err == nil {
			err = q.page.o.Revocations.Add(r)
		}
		if err != nil {
			return view{}, err
		}
		return view{}, moved(at(q.profile, "authority", "grant", g.ID))
	}
	s, err := q.page.o.Open(q.profile, true)
	if err != nil {
		return view{}, err
	}
	defer s.Close()
	edit := registry.Edit{IfVersion: &a.If}
	if a.Do == doRetire {
		_, err = s.Tools.Retire(a.Name, edit)
	} else {
		now, _ := s.Tools.Snapshot().Get(a.Name)
		edit.Check = func(candidate *registry.Tool, _ *registry.Snapshot) *fault.Fault {
			if wider := s.widens(now, candidate); wider != "" {
				return fault.New(fault.Refused, "it would get wider: "+wider)
			}
			return nil
		}
		_, err = s.Tools.Rollback(a.Name, a.Version, edit)
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok && slices.Contains([]fault.Kind{fault.Conflict, fault.Refused, fault.NoTool}, f.Kind) {
		a.Refused = f.Message
		return view{Template: "act.html", Title: a.Title, Data: &a}, nil
	}
	if err != nil {
		return view{}, err
	}
	return view{}, moved(at(q.profile, "tool", "name", a.Name))
}
