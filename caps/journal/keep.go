package journal

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"
)

// What a size limit is for, in parts of it.
const (
	// historyShare is the part that the history of the tools may take; of what
	// exceeds it only what the tools there are need stays.
	historyShare = 2
	// recentShare is the part that the newest events have at least, however
	// much the tools need.
	recentShare = 4
	// openShare is the part that runs may take that may go on yet, the newest maxOpen at most.
	openShare = 4
	maxOpen   = 1000
)

// How long what is open stays, however old: a task is known so long, a plan can be done so long, and one that was begun can be
// gone on with.
const (
	openTask = 24 * time.Hour
	openPlan = time.Hour
)

// A scope is what may be dropped, decided once for all the steps it takes.
type scope struct {
	limit  uint64          // what is up to here has to go, for the rest to fit
	last   uint64          // the newest event, which stays
	oldest time.Time       // what is before may go; zero: nothing for its age
	aged   uint64          // nothing that comes after goes for its age
	older  bool            // there is more that is too old
	open   map[string]bool // runs that may go on yet
	room   int64           // that what those need of the history may take
	keep   func(*Event) bool
}

// takes reports whether an event may go, if it isn't to be kept.
func (c *scope) takes(e *Event) bool {
	return e.Seq < c.last && (e.Seq <= c.limit || e.Seq <= c.aged && e.Time.Before(c.oldest))
}

// weight returns about what an event takes in the file.
func (e *Event) weight() int64 {
	return overhead + int64(len(e.Run)+len(e.Branch)+len(e.Data))
}

// scope decides what may be dropped.
func (s *Store) scope(ctx context.Context, o RetainOptions) (c scope, err error) {
	if o.MaxAge > 0 {
		c.oldest, c.aged = s.o.Now().Add(-o.MaxAge), math.MaxUint64
	}
	size, last, err := s.content(ctx)
	if err != nil {
		return c, err
	}
	most, blobs := int64(math.MaxInt64), map[Hash]int64(nil)
	if o.MaxBytes > 0 {
		most = o.MaxBytes / openShare
		if blobs, err = s.blobSizes(); err != nil {
			return c, err
		}
	}
	var taken int64
	if c.open, taken, err = s.openRuns(ctx, most, blobs); err != nil {
		return c, err
	}
	if o.MaxAge > 0 && o.GradualAge {
		if c.aged, c.older, err = s.eighth(ctx, c.oldest, c.open); err != nil {
			return c, err
		}
	}
	tools := func(e *Event) bool { return e.Kind.Changes() && e.Tool() != "" }
	c.room = most - taken
	c.keep = func(e *Event) bool { return tools(e) || c.open[e.Run] || o.Keep != nil && o.Keep(e) }
	if c.last = last; o.MaxBytes <= 0 || size <= o.MaxBytes {
		return c, nil
	}
	history := int64(0)
	err = s.Each(ctx, Query{Changes: true}, func(e *Event) error {
		history += e.weight()
		for h := range references(e.Data) {
			history += blobs[h]
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	if history <= o.MaxBytes/historyShare {
		c.limit, err = s.reach(ctx, o.MaxBytes-history-taken, blobs, c.open, true)
		return c, err
	}
	// What is needed depends on how much is dropped, and the other way round.
	if c.limit, err = s.reach(ctx, o.MaxBytes-taken, blobs, c.open, false); err != nil {
		return c, err
	}
	begun, err := s.begunWith(ctx, c.open)
	if err != nil {
		return c, err
	}
	_, old, err := s.neededEvents(ctx, &c, begun)
	if err != nil {
		return c, err
	}
	if c.limit, err = s.reach(ctx, max(o.MaxBytes-old-taken, o.MaxBytes/recentShare), blobs, c.open, false); err != nil {
		return c, err
	}
	tools, _, err = s.neededEvents(ctx, &c, begun)
	return c, err
}

// openRuns selects the runs that may go on yet, of which together so many bytes stay, and returns how many they take; where
// any number may stay, math.MaxInt64, that isn't counted.
func (s *Store) openRuns(ctx context.Context, most int64, blobs map[Hash]int64) (open map[string]bool, taken int64, err error) {
	var newest []string
	now := s.o.Now()
	// An end of a server that another took the run over from is none.
	const number = `iif(json_valid(CAST(%[1]s.data AS TEXT)), coalesce(json_extract(CAST(%[1]s.data AS TEXT), '$.resumed'), 0), 0)`
	over := `EXISTS (SELECT 1 FROM events x WHERE x.run <> '' AND x.run = e.run AND (+x.kind IN ('run.lost','task.cancelled') OR +x.kind = 'run.ended'
		AND NOT EXISTS (SELECT 1 FROM events t WHERE t.run <> '' AND t.run = e.run AND +t.kind IN ('task.resumed','plan.started')
			AND ` + fmt.Sprintf(number, "t") + ` > ` + fmt.Sprintf(number, "x") + `)))`
	err = each(s.readers, fmt.Sprintf(`SELECT run FROM events e WHERE kind IN ('task.created','plan.started','plan.made') AND `+indexedKinds+`
		AND time > CASE kind WHEN 'plan.made' THEN %d ELSE %d END AND run <> '' AND NOT `+over+` GROUP BY run ORDER BY max(seq) DESC LIMIT %d`,
		now.Add(-openPlan).UnixMicro(), now.Add(-openTask).UnixMicro(), maxOpen), func(scan func(...any) error) error {
		newest = append(newest, "")
		return scan(&newest[len(newest)-1])
	})
	open, counted := map[string]bool{}, map[Hash]bool{}
	for _, run := range newest {
		if err != nil {
			break
		}
		if most == math.MaxInt64 {
			open[run] = true
			continue
		}
		n, own := taken, map[Hash]bool{}
		err = s.Each(ctx, Query{Run: run}, func(e *Event) error {
			n += e.weight()
			for h := range references(e.Data) {
				if !counted[h] && !own[h] {
					own[h] = true
					n += blobs[h]
				}
			}
			if n > most {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			err = nil
			continue
		}
		open[run], taken = true, n
		maps.Copy(counted, own)
	}
	return open, taken, explain(s.path, err)
}

// names is runs as JSON, for droppable.
func names(runs map[string]bool) string {
	text, _ := json.Marshal(runs)
	return string(text)
}

// eighth returns the number at which the first eighth ends of what may be dropped, and whether
// what follows is before a time, too.
func (s *Store) eighth(ctx context.Context, oldest time.Time, open map[string]bool) (end uint64, more bool, err error) {
	var count int64
	err = s.readers.QueryRowContext(ctx, `SELECT count(*) `+droppable, names(open)).Scan(&count)
	if err == nil {
		err = s.readers.QueryRowContext(ctx, `SELECT seq `+droppable+` ORDER BY seq LIMIT 1 OFFSET ?`, names(open), count/8).Scan(&end)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	next := &Event{}
	if err == nil {
		next, err = oneEvent(s.readers, `SELECT `+columns+` `+droppable+` AND seq > ? ORDER BY seq LIMIT 1`, names(open), int64(end))
	}
	return end, next.Seq > 0 && next.Time.Before(oldest), explain(s.path, err)
}

// content returns about what events and blobs take, and the number of the newest
// event.
func (s *Store) content(ctx context.Context) (size int64, last uint64, err error) {
	err = s.readers.QueryRowContext(ctx, `SELECT
		(SELECT coalesce(sum(octet_length(data)+octet_length(run)+octet_length(branch)+?), 0) FROM events) + (SELECT coalesce(sum(size), 0) FROM blobs),
		(SELECT coalesce(max(seq), 0) FROM events)`, overhead).Scan(&size, &last)
	return size, last, explain(s.path, err)
}

// blobSizes returns how large each blob is.
func (s *Store) blobSizes() (map[Hash]int64, error) {
	sizes := map[Hash]int64{}
	err := each(s.readers, `SELECT hash, size FROM blobs`, func(scan func(...any) error) error {
		var name []byte
		var n int64
		err := scan(&name, &n)
		if len(name) == len(Hash{}) {
			sizes[Hash(name)] = n
		}
		return err
	})
	return sizes, explain(s.path, err)
}

// reach returns the number up to which events have to go for the rest to fit so many
// bytes; 0: all fit. What is of some runs is left out of the count, and what changed tools if others say so.
func (s *Store) reach(ctx context.Context, left int64, blobs map[Hash]int64, open map[string]bool, others bool) (limit uint64, err error) {
	// The newest first; a blob counts with the newest event that refers to it.
	counted := map[Hash]bool{}
	err = each(s.readers, `SELECT seq, kind, run, octet_length(run)+octet_length(branch), data FROM events ORDER BY seq DESC`, func(scan func(...any) error) error {
		var seq uint64
		var kind, run string
		var n int64
		var data sql.RawBytes
		if err := scan(&seq, &kind, &run, &n, &data); err != nil {
			return err
		}
		if others && Kind(kind).Changes() || open[run] {
			return nil
		}
		left -= overhead + n + int64(len(data))
		for h := range references(data) {
			if !counted[h] {
				counted[h] = true
				left -= blobs[h]
			}
		}
		if left < 0 {
			limit = seq
			return errEnough
		}
		return ctx.Err()
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return limit, explain(s.path, err)
}

// made is what the data of an event says that changes tools.
type made struct {
	seq     uint64
	weight  int64 // 0: it isn't old
	Tool    string
	Version int
	Bound   []struct {
		Tool    string
		Version int
	}
}

// neededEvents selects the changes without which the tools can't be had: as they are
// now, and as they were when the first run started that is not dropped; of runs that may go on
// yet, the newest first, as far as there is room, what they run and what they saw; and the
// versions that those were bound to, and so on. old is what those of them take
// that would be dropped otherwise.
func (s *Store) neededEvents(ctx context.Context, c *scope, runs []begun) (keep func(*Event) bool, old int64, err error) {
	type ref struct {
		tool    string
		version int
	}
	var history []*made
	versions := map[ref]*made{}
	now, then := map[string]*made{}, map[string]*made{}
	err = s.Each(ctx, Query{Changes: true}, func(e *Event) error {
		m := &made{seq: e.Seq}
		if json.Unmarshal(e.Data, m) != nil || m.Tool != e.Tool() {
			m = &made{seq: e.Seq, Tool: e.Tool()} // what else it says nobody can read
		} else if e.Kind != ToolRetired {
			versions[ref{m.Tool, m.Version}] = m
		}
		now[m.Tool], history = m, append(history, m)
		if c.takes(e) {
			m.weight = e.weight()
			then[m.Tool] = m
		}
		return nil
	})
	stay := map[uint64]bool{}
	var added []*made
	var follow func(m *made)
	follow = func(m *made) {
		if m == nil || stay[m.seq] {
			return
		}
		stay[m.seq], added = true, append(added, m)
		old += m.weight
		for _, b := range m.Bound {
			follow(versions[ref{b.Tool, b.Version}])
		}
	}
	for _, m := range now {
		follow(m)
	}
	for _, m := range then {
		follow(m)
	}
	most := old + c.room
	whereFits := func(all iter.Seq[*made]) {
		added = nil
		for m := range all {
			if follow(m); old > most {
				for _, m := range added {
					delete(stay, m.seq)
					old -= m.weight
				}
				return
			}
		}
	}
	for _, b := range runs {
		whereFits(slices.Values([]*made{versions[ref{b.Tool, b.Version}]}))
	}
	for i, b := range runs {
		if i == 0 || b.AsOf != runs[i-1].AsOf {
			saw := map[string]*made{}
			for _, m := range history {
				if m.seq <= b.AsOf {
					saw[m.Tool] = m
				}
			}
			whereFits(maps.Values(saw))
		}
	}
	return func(e *Event) bool { return stay[e.Seq] && e.Tool() != "" }, old, err
}

// begun is what the beginning of a run says of the tools.
type begun struct {
	Tool    string
	Version int
	AsOf    uint64 `json:"as_of"`
}

// begunWith gives what runs began with, those that saw the newest tools first.
func (s *Store) begunWith(ctx context.Context, runs map[string]bool) (all []begun, err error) {
	for run := range runs {
		for _, k := range []Kind{TaskCreated, RunStarted} { // that may be yet to come
			if err = s.Each(ctx, Query{Run: run, Kind: k}, func(e *Event) error {
				var b begun
				if json.Unmarshal(e.Data, &b) == nil {
					all = append(all, b)
				}
				return nil
			}); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(all, func(a, b begun) int {
		return cmp.Or(cmp.Compare(b.AsOf, a.AsOf), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Version, b.Version))
	})
	return all, nil
}
