package caps

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Withdraw takes back what waits about a name, if anything does.
func (c *Consents) Withdraw(tool string) error {
	if c == nil || c.Path == "" {
		return nil
	}
	content, err := c.load()
	meant := func(q Question) bool { return q.Who == c.Who && q.Tool == tool }
	if err != nil || !slices.ContainsFunc(content.Questions, meant) {
		return err
	}
	return c.change(func(content *consents) error {
		content.Questions = slices.DeleteFunc(content.Questions, meant)
		return nil
	})
}

// Answer answers the question of an identity, and takes it away. It must be about
// the subject that the person was shown: the error is [ErrNoQuestion] where it was
// answered meanwhile, or another took its place.
func (c *Consents) Answer(id string, shown *Subject, answer, by string) error {
	if answer != YesVersion && answer != YesName && answer != No {
		return fmt.Errorf("consent: no answer is called %s", quoted(answer))
	}
	key := shown.Key()
	return c.change(func(content *consents) error {
		i := slices.IndexFunc(content.Questions, func(q Question) bool { return q.ID == id })
		if i < 0 || content.Questions[i].Subject.Key() != key {
			return ErrNoQuestion
		}
		q := &content.Questions[i]
		a := ConsentAnswer{
			ID: q.ID, Who: q.Who, Tool: q.Tool, Version: q.Version, Subject: q.Subject,
			Answer: answer, By: by, Time: c.now().UTC().Truncate(time.Second),
		}
		content.Questions = slices.Delete(content.Questions, i, i+1)
		about := 0
		for i := len(content.Answers) - 1; i >= 0; i-- {
			if old := &content.Answers[i]; old.Who == a.Who && old.Tool == a.Tool {
				// A forgotten yes has to be said again; a no is never forgotten.
				if about++; about >= mostAnswers && old.Answer != No {
					content.Answers = slices.Delete(content.Answers, i, i+1)
				}
			}
		}
		content.Answers = append(content.Answers, a)
		return nil
	})
}

// Clear forgets all that was said about a name, yes and no, to every asker, and
// gives how many answers those were.
func (c *Consents) Clear(tool string) (n int, err error) {
	err = c.change(func(content *consents) error {
		before := len(content.Answers)
		content.Answers = slices.DeleteFunc(content.Answers, func(a ConsentAnswer) bool { return a.Tool == tool })
		n = before - len(content.Answers)
		return nil
	})
	return n, err
}

// Before is what was approved last of a name, and under which other names the same
// code was refused, as far as the file was read.
func (c *Consents) Before(s *Subject) (approved *Subject, refused []string) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.own {
		a := &c.own[i]
		switch {
		case a.Answer == No && a.Subject.Code == s.Code && a.Tool != s.Tool:
			refused = append(refused, a.Tool)
		case a.Answer != No && a.Tool == s.Tool:
			approved = &a.Subject
		}
	}
	slices.Sort(refused)
	return approved, slices.Compact(refused)
}

// All is every asker's questions and answers, in the order in which they came.
func (c *Consents) All() ([]Question, []ConsentAnswer, error) {
	content, err := c.load()
	if err != nil {
		return nil, nil, err
	}
	return content.Questions, content.Answers, nil
}

// Tell gives the answers to the asker that no server has put on record, once: tell
// is called before they count as told, and an error of it leaves the rest untold.
func (c *Consents) Tell(tell func(ConsentAnswer) error) error {
	if c == nil || c.Path == "" {
		return nil
	}
	c.mu.Lock()
	untold := slices.ContainsFunc(c.own, func(a ConsentAnswer) bool { return !a.Told })
	c.mu.Unlock()
	if !untold {
		return nil
	}
	var failed error
	err := c.change(func(content *consents) error {
		for i := range content.Answers {
			if a := &content.Answers[i]; a.Who == c.Who && !a.Told {
				if failed = tell(*a); failed != nil {
					break
				}
				a.Told = true
			}
		}
		return nil
	})
	return errors.Join(failed, err)
}
