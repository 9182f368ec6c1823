package caps

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/core/display"
)

// Consents is the file in which servers ask and a person answers: it lies in the
// state directory of the user, so that a terminal and the servers of every
// profile meet there. A server's is of one asker, and sees no other's answers. It
// is safe for concurrent use, and several processes may use the file: each change
// reads it under a lock and replaces it whole.
//
// A nil one has no answers, and can't ask.
type Consents struct {
	Path string
	// Who asks: the profile, or the store. Answers are to this one alone.
	Who   string
	Kinds Kinds
	Now   func() time.Time // nil: time.Now

	mu     sync.Mutex
	seen   os.FileInfo // the file as it was last read
	read   bool
	own    []ConsentAnswer    // those to Who
	judged map[string]Consent // by key
}

// A Question is a version of a tool that waits for a person's answer.
type Question struct {
	ID      string    `json:"id"`
	Who     string    `json:"who"`
	Tool    string    `json:"tool"`
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
	Subject Subject   `json:"subject"`
	// Facts is what the server says of it, a line each, and Asks the texts of
	// what waits.
	Facts []string `json:"facts"`
	Asks  []string `json:"asks"`
	// Description and Code are the model's words, cut to what a person reads.
	Description string `json:"description"`
	Code        string `json:"code"`
}

// What a [ConsentAnswer] can be.
const (
	YesVersion = "version" // yes, to this version alone
	YesName    = "name"    // yes, and to later ones of the name while they get no wider
	No         = "no"      // no, to every version of the name until it is cleared
)

// A ConsentAnswer is what a person said.
type ConsentAnswer struct {
	ID      string    `json:"id"` // the question's
	Who     string    `json:"who"`
	Tool    string    `json:"tool"`
	Version int       `json:"version"`
	Subject Subject   `json:"subject"`
	Answer  string    `json:"answer"`
	By      string    `json:"by"` // terminal, or elicitation
	Time    time.Time `json:"time"`
	// Told is set when a server has put it on record, Telling when one began to.
	Told    bool      `json:"told,omitempty"`
	Telling time.Time `json:"telling,omitzero"`
}

// What bounds the file.
const (
	askedHourly  = 5   // questions of one asker
	mostPending  = 100 // likewise
	mostAsked    = 1000
	mostAnswers  = 50 // to one asker about one name
	mostAllKept  = 20_000
	mostWords    = 4 << 10  // bytes of a description
	mostCode     = 16 << 10 // bytes of code
	mostFacts    = 120      // lines
	mostQuestion = 64 << 10 // bytes of a question
)

// consents is the file's content.
type consents struct {
	statefile.Format
	Questions []Question      `json:"questions"`
	Answers   []ConsentAnswer `json:"answers"`
	// Spent is when each asker asked in the last hour.
	Spent []spent `json:"spent"`
}

type spent struct {
	Who  string    `json:"who"`
	Time time.Time `json:"time"`
}

// Why nothing was asked, for [errors.Is].
var (
	// ErrAsksTooMuch means that an asker has asked as often as it may.
	ErrAsksTooMuch = errors.New("too many questions")
	// ErrAsksForTooMuch means that a question is longer than a person reads.
	ErrAsksForTooMuch = errors.New("the question is too long")
	// ErrRejected means that a person said no to the name.
	ErrRejected = errors.New("the operator said no")
	// ErrNoQuestion means that there is no such question now.
	ErrNoQuestion = errors.New("there is no such question now: it was answered, or a newer version took its place")
)

func (c *Consents) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// Of is what a person said to a subject, as far as the file was read.
func (c *Consents) Of(s *Subject) Consent {
	if c == nil {
		return Unasked
	}
	key := s.Key()
	c.mu.Lock()
	defer c.mu.Unlock()
	if judged, ok := c.judged[key]; ok {
		return judged
	}
	judged := judge(c.own, s, key, c.Kinds)
	if c.judged == nil || len(c.judged) >= mostEntries {
		c.judged = map[string]Consent{}
	}
	c.judged[key] = judged
	return judged
}

// Endorsed reports whether a person said yes to this very version, having seen its code and what its writer had been shown.
func (c *Consents) Endorsed(s *Subject) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	versions := slices.DeleteFunc(slices.Clone(c.own), func(a ConsentAnswer) bool { return a.Answer == YesName })
	return judge(versions, s, s.Key(), c.Kinds) == Approved
}

// judge finds what answers come to. A no is to the name, and the newest answer
// about the name that is a no holds against every yes before it.
func judge(answers []ConsentAnswer, s *Subject, key string, kinds Kinds) Consent {
	said := Unasked
	for i := range answers {
		a := &answers[i]
		switch {
		case a.Tool != s.Tool || a.Subject.Tool != s.Tool:
		case a.Answer == No:
			said = Rejected
		case said == Rejected: // until it is cleared
		case a.Answer == YesVersion && a.Subject.Key() == key,
			a.Answer == YesName && (a.Subject.Key() == key || a.Subject.NoWider(s, kinds)):
			said = Approved
		}
	}
	return said
}

// Poll reads the file if it is another than before. Where it can't be read nothing
// is approved any more.
func (c *Consents) Poll() error {
	if c == nil || c.Path == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.Path)
	if c.read && (err == nil && statefile.Unchanged(c.seen, info) || errors.Is(err, fs.ErrNotExist) && c.seen == nil) {
		return nil
	}
	content, err := c.document().Read()
	c.own, c.judged, c.read, c.seen = nil, nil, err == nil, info
	if err != nil {
		return err
	}
	c.take(content)
	return nil
}

// take keeps what concerns the asker; c.mu is held.
func (c *Consents) take(content *consents) {
	c.own, c.judged = nil, nil
	for _, a := range content.Answers {
		if a.Who == c.Who {
			c.own = append(c.own, a)
		}
	}
}

func (c *Consents) document() statefile.Document[consents] {
	return statefile.Document[consents]{Path: c.Path, Name: "consent", Format: "mcp-pif consent 1"}
}

// change replaces the file with what edit makes of it, alone among the processes
// that do. On an error, [statefile.ErrSame] among them, nothing has changed.
func (c *Consents) change(edit func(*consents) error) error {
	if c == nil || c.Path == "" {
		return errors.New("consent: there is no state directory to ask in")
	}
	var same bool
	err := c.document().Change(func(content *consents) error {
		err := edit(content)
		if same = errors.Is(err, statefile.ErrSame); err != nil {
			return err
		}
		hourAgo := c.now().Add(-time.Hour)
		content.Spent = slices.DeleteFunc(content.Spent, func(s spent) bool { return !s.Time.After(hourAgo) })
		if len(content.Answers) > mostAllKept {
			content.Answers = slices.Delete(content.Answers, 0, len(content.Answers)-mostAllKept)
		}
		return nil
	})
	if same || err != nil {
		return err
	}
	c.mu.Lock()
	c.seen, c.read = nil, false
	c.mu.Unlock()
	// What stands there now may be newer than what was written: in a cluster that took its time.
	return c.Poll()
}

// Ask puts a question where a person finds it, in the place of one about the same
// name. asked is false where the same question waits already; where the server says
// something else of it than it did, it is another. The error is [ErrRejected],
// [ErrAsksTooMuch], [ErrAsksForTooMuch] (in each case what waited about the name is
// withdrawn), or that the file can't be changed.
func (c *Consents) Ask(q Question) (id string, asked bool, err error) {
	if c != nil {
		q.Who, q.Time = c.Who, c.now().UTC().Truncate(time.Second)
	}
	q.Description, q.Code = display.Truncate(q.Description, mostWords), display.Truncate(q.Code, mostCode)
	key := q.Subject.Key()
	var why error
	err = c.change(func(content *consents) error {
		id, asked, why = "", false, nil
		for i := range content.Questions {
			old := &content.Questions[i]
			if old.Who != q.Who || old.Tool != q.Tool || old.Subject.Key() != key {
				continue
			}
			if !slices.Equal(old.Asks, q.Asks) || !slices.Equal(old.Facts, q.Facts) {
				// Nobody has to pay for what the operator changed.
				q.ID = questionID(content)
				id, asked, *old = q.ID, true, q
				return nil
			}
			if id = old.ID; old.Version == q.Version {
				return statefile.ErrSame
			}
			old.Version = q.Version
			return nil
		}
		waiting := len(content.Questions)
		content.Questions = slices.DeleteFunc(content.Questions, func(old Question) bool { return old.Who == q.Who && old.Tool == q.Tool })
		if judge(answersTo(content.Answers, q.Who), &q.Subject, key, c.Kinds) == Rejected {
			why = ErrRejected
		} else if q.long() {
			why = ErrAsksForTooMuch
		} else {
			why = content.spend(q.Who, q.Time)
		}
		if why != nil && waiting == len(content.Questions) {
			return statefile.ErrSame
		} else if why != nil {
			return nil
		}
		q.ID = questionID(content)
		id, asked = q.ID, true
		content.Questions = append(content.Questions, q)
		return nil
	})
	return id, asked, errors.Join(err, why)
}

// spend takes one question from what an asker may ask.
func (content *consents) spend(who string, now time.Time) error {
	n, waiting := 0, 0
	for _, s := range content.Spent {
		if s.Who == who && s.Time.After(now.Add(-time.Hour)) {
			n++
		}
	}
	for _, q := range content.Questions {
		if q.Who == who {
			waiting++
		}
	}
	if n >= askedHourly || waiting >= mostPending || len(content.Questions) >= mostAsked {
		return ErrAsksTooMuch
	}
	content.Spent = append(content.Spent, spent{who, now})
	return nil
}

// long reports whether a question is more than a person reads. What would be left out
// could be what matters, so such a one isn't put.
func (q *Question) long() bool {
	text, err := json.Marshal(q)
	return err != nil || len(text) > mostQuestion || len(q.factLines()) > mostFacts
}

func answersTo(all []ConsentAnswer, who string) (list []ConsentAnswer) {
	for _, a := range all {
		if a.Who == who {
			list = append(list, a)
		}
	}
	return list
}

// questionID is a short name that no question has.
func questionID(content *consents) string {
	for {
		var b [4]byte
		rand.Read(b[:]) // never fails
		if id := hex.EncodeToString(b[:]); !slices.ContainsFunc(content.Questions, func(q Question) bool { return q.ID == id }) {
			return id
		}
	}
}

// Withdraw takes back what waits about a name, if anything does.
func (c *Consents) Withdraw(tool string) error {
	if c == nil || c.Path == "" {
		return nil
	}
	content, err := c.document().Read()
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
	content, err := c.document().Read()
	if err != nil {
		return nil, nil, err
	}
	return content.Questions, content.Answers, nil
}

// Tell gives the answers to the asker that no server has put on record, once: tell
// is called before they count as told, without the file's lock, and an error of it leaves the rest untold.
func (c *Consents) Tell(tell func(ConsentAnswer) error) error {
	if c == nil || c.Path == "" {
		return nil
	}
	now := c.now().UTC()
	c.mu.Lock()
	untold := slices.ContainsFunc(c.own, func(a ConsentAnswer) bool { return a.untold(now) })
	c.mu.Unlock()
	if !untold {
		return nil
	}
	var all []ConsentAnswer
	err := c.change(func(content *consents) error {
		all = nil
		for i := range content.Answers {
			if a := &content.Answers[i]; a.Who == c.Who && a.untold(now) {
				a.Telling = now
				all = append(all, *a)
			}
		}
		if len(all) == 0 {
			return statefile.ErrSame
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		return err
	}
	told := map[string]bool{}
	var failed error
	for _, a := range all {
		if failed = tell(a); failed != nil {
			break
		}
		told[a.ID] = true
	}
	err = c.change(func(content *consents) error {
		for i := range content.Answers {
			if a := &content.Answers[i]; a.Who == c.Who && a.Telling.Equal(now) {
				a.Told, a.Telling = a.Told || told[a.ID], time.Time{}
			}
		}
		return nil
	})
	return errors.Join(failed, err)
}

// untold reports whether no server has put an answer on record, or is about to.
func (a *ConsentAnswer) untold(now time.Time) bool { return !a.Told && now.Sub(a.Telling) > maxTelling }

// maxTelling is after how long a server that began to put an answer on record has ended.
const maxTelling = time.Minute

// A grant that asks gives nothing by itself: a version of a tool that would hold
// any of it waits until a person says yes to that version. What a yes is to is a
// [Subject]; where questions and answers lie is [Consents].

// Consent is what a person said to a tool version.
type Consent uint8

// What a person said. The zero value is that nobody did, so that whoever forgets
// to ask has nothing.
const (
	Unasked Consent = iota
	Approved
	Rejected
)

// A Holding is a capability as a person approves it: its exact text, and the grant
// that it is held under.
type Holding struct {
	Text  string `json:"text"`
	Grant string `json:"grant,omitempty"` // the identity; "": a call
	// Defined is the hashes of the operations that are held, of a server's kind. Grant is the
	// server's identity then: what else is granted of it is no part of a yes.
	Defined string `json:"defined,omitempty"`
}

// Holdings is what capabilities are as a person approves them.
func Holdings(held []*Held) []Holding {
	list := make([]Holding, len(held))
	for i, h := range held {
		list[i].Text = h.String()
		if h.Grant != nil {
			list[i].Grant = h.Grant.ID
			if h.Grant.server != "" {
				list[i].Grant, list[i].Defined = h.Grant.server, h.Grant.Manifest.defined(&h.Capability)
			}
		}
	}
	return list
}

// A Subject is a tool version as a person approves it. Its number isn't part of
// it: the same code with the same authority, bound to the same, is the same.
type Subject struct {
	Tool     string   `json:"tool"`
	Code     string   `json:"code"` // the hash
	Declared []string `json:"declared,omitempty"`
	// MadeUnder is the labels of what its writer had been shown.
	MadeUnder []string `json:"made_under,omitempty"`
	// Holds is what it holds itself, in the order of the texts.
	Holds []Holding `json:"holds,omitempty"`
	// Reach is what the versions hold that it can call, and those that they can.
	Reach []Holding `json:"reach,omitempty"`
	// Late is set where it, or one that it calls, calls tools that are worked
	// out when it runs, or takes their code.
	Late bool `json:"late,omitempty"`
	// Bound is the versions that names in its code stand for, each with its key.
	Bound []BoundSubject `json:"bound,omitempty"`
}

// A BoundSubject is a version that a name stands for.
type BoundSubject struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Key is the same for the same subject, and for no other.
func (s *Subject) Key() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // it is strings
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// NoWider reports whether all that next can bring about, s can: each capability
// that it holds, or reaches by calls, lies within one of s's under the same grant.
// Of one that calls what is worked out at run time nobody can tell.
func (s *Subject) NoWider(next *Subject, kinds Kinds) bool {
	return s.Tool == next.Tool && !next.Late &&
		len(wider(s.Holds, next.Holds, kinds)) == 0 && len(wider(s.Reach, next.Reach, kinds)) == 0
}

// wider is those of next that lie within none of the old ones.
func wider(old, next []Holding, kinds Kinds) (list []Holding) {
	for _, n := range next {
		if !slices.ContainsFunc(old, func(o Holding) bool { return o.contains(n, kinds) }) {
			list = append(list, n)
		}
	}
	return list
}

func (o Holding) contains(n Holding, kinds Kinds) bool {
	if o.Grant != n.Grant || !subset(n.Defined, o.Defined) {
		return false
	}
	if o == n {
		return true
	}
	c, err := Parse(o.Text, kinds)
	if err != nil {
		return false
	}
	narrower, err := Parse(n.Text, kinds)
	return err == nil && kinds.Contains(c, narrower)
}

// Asks is those of the capabilities that a person has to approve now.
func (p *Policy) Asks(held []*Held) []*Held {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(held), func(h *Held) bool { return h.Grant == nil || !p.asks(h, h.Grant.Manifest) })
}

// Asking reports whether some grant asks.
func (p *Policy) Asking() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.ContainsFunc(p.grants, func(g *Grant) bool { return g.Asked })
}

// asks tells whether a person has to approve: some grant that asks has a verb
// and a part of the scope in common with what is held. One that was taken back
// asks, too.
func (p *Policy) asks(h *Held, m *Manifest) bool {
	for _, g := range p.grants {
		if !g.Asked || g.Kind != h.Kind {
			continue
		}
		if g.ID == h.Grant.ID {
			return true
		}
		common := len(m.Verbs) == 0
		for _, v := range m.Verbs {
			common = common || h.permits(v) && g.permits(v)
		}
		if !common {
			continue
		}
		if m.Algebra != Path {
			if m.Algebra.Overlaps(g.Scope, h.Scope) {
				return true
			}
			continue
		}
		at := h.Grant.realOf(h.Within)
		_, in := inside(g.Real, at)
		_, around := inside(at, g.Real)
		if in || around {
			return true
		}
	}
	return false
}
