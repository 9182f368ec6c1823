package journal

import (
	"context"
	"math"
	"time"
)

// Limits is how much of a store's past an operator wants. The zero value is all.
type Limits struct {
	// Size is how large the file may be, in bytes; 0: any size.
	Size int64
	// Age is how old events may be; 0: any age.
	Age time.Duration
}

// The file is brought to nine tenths of its size limit, and events may be older
// than the age limit by a twentieth of it, an hour at most, so that much is
// dropped rarely and not little always.
const (
	sizeSlack = 10
	ageSlack  = 20
)

// Trim brings the store within limits, as [Store.Retain] does; where it is within
// them, which it knows by a glance, it does nothing. Size is that of the pages in
// use: what is dropped leaves free ones, which the file gives back then, too.
func (s *Store) Trim(ctx context.Context, l Limits, dry bool) (Retained, error) {
	return s.trim(ctx, l, 0, RetainOptions{DryRun: dry})
}

// maxRounds is how often a trim estimates again what has to go.
const maxRounds = 4

// trim does what Trim does where somebody waits for so many bytes, 0: nobody. Nothing
// goes for its age before it is worth it.
func (s *Store) trim(ctx context.Context, l Limits, wanted int64, o RetainOptions) (all Retained, err error) {
	s.flush()
	size := l.Size - l.Size/sizeSlack // to be left
	due := l.Size
	if wanted > 0 {
		used, file := room(l.Size, wanted)
		size, o.enough = min(size, used), max(1, file)
		due = size
		size -= size / 8 // others write meanwhile
	}
	for round := range maxRounds {
		used, err := s.inUse(ctx)
		var left int64 // of blobs that are waited for
		if err == nil && l.Size > 0 && used > due && !o.DryRun {
			var blobs int
			if blobs, left, err = s.sweep(ctx, o); err == nil {
				all.Blobs += blobs
				used, err = s.inUse(ctx)
			}
		}
		if err != nil {
			return all, err
		}
		o.MaxBytes, o.MaxAge = 0, 0
		if l.Size > 0 && used > due {
			counted, _, err := s.content(ctx)
			if err != nil {
				return all, err
			}
			// Retain counts what is in the pages, which are never all full, and not the blobs
			// that are waited for.
			o.MaxBytes = max(1, int64(float64(size)*min(1, float64(counted)/float64(used)))-left)
		}
		if l.Age > 0 && round == 0 {
			due, err := s.hasBefore(ctx, s.o.Now().Add(-l.Age-min(l.Age/ageSlack, time.Hour)))
			if err != nil {
				return all, err
			}
			if due {
				o.MaxAge = l.Age
			}
		}
		if o.MaxBytes == 0 && o.MaxAge == 0 {
			if all.Blobs > 0 || wanted > 0 && round == 0 {
				err = s.vacuum(ctx, o.enough)
			}
			return all, err
		}
		done, err := s.Retain(ctx, o)
		all.add(done)
		if err != nil || o.DryRun || o.MaxBytes == 0 || done.Dropped == 0 {
			return all, err
		}
	}
	return all, nil
}

// add adds what was done next.
func (r *Retained) add(next Retained) {
	if next.Through > 0 {
		r.Through, r.Kept = next.Through, next.Kept
	}
	r.Dropped += next.Dropped
	r.Bytes += next.Bytes
	r.Blobs += next.Blobs
	r.Older = r.Older || next.Older
}

// droppable selects the events after the checkpoint, but for the newest, that don't change tools, and aren't of some runs: the
// members of a JSON object.
const droppable = `FROM events WHERE seq > (SELECT coalesce(max(seq), 0) FROM events WHERE kind = 'checkpoint' AND ` + indexedKinds + `)
	AND kind NOT IN ('tool.evolved','tool.retired','tool.rolled_back') AND run NOT IN (SELECT key FROM json_each(?))
	AND seq < (SELECT max(seq) FROM events)`

// inUse returns how many bytes of the file are in use.
func (s *Store) inUse(ctx context.Context) (used int64, err error) {
	err = s.readers.QueryRowContext(ctx, `SELECT ((SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count)) *
		(SELECT page_size FROM pragma_page_size)`).Scan(&used)
	return used, explain(s.path, err)
}

// hasBefore reports whether the oldest event that may be dropped is from before a time.
func (s *Store) hasBefore(ctx context.Context, t time.Time) (has bool, err error) {
	look := func(open map[string]bool) error {
		return s.readers.QueryRowContext(ctx, `SELECT coalesce((SELECT time `+droppable+` ORDER BY seq LIMIT 1) < ?, 0)`, names(open), t.UnixMicro()).Scan(&has)
	}
	open := map[string]bool{}                // null would select nothing
	if err = look(open); err == nil && has { // only then does it matter what is open
		if open, _, err = s.openRuns(ctx, math.MaxInt64, nil); err == nil {
			err = look(open)
		}
	}
	return has, explain(s.path, err)
}

// trimmed is how often KeepWithin looks. Where it found nothing to drop it may take
// one part in trimShare of the time: what can't be brought within its limits isn't
// read again and again. Where it dropped an eighth of what may be dropped for its age and there
// is more, it goes on after one part in ageShare of that age, an hour at most.
const (
	trimmed   = 2 * time.Second
	trimShare = 50
	tellEvery = 10 * time.Second
	ageShare  = 16
)

// KeepWithin trims the store to limits now, and then every two seconds, and when a
// write waits for room, until ctx ends or the store is closed. Meanwhile the file and
// its write-ahead file stay below 1.25 times the size, if that is [MinLimit] at least:
// writes wait, and past [Options.Patience] are refused with [ErrFull]. What it
// drops, and why it can't, goes to the log of the store's [Options]; it says the same
// only once. Several processes may do it for one file.
//
// A clock that jumps ahead makes all old at once. So no more than an eighth of
// what may be dropped is dropped for its age at a time, and that there is more is said.
func (s *Store) KeepWithin(ctx context.Context, l Limits) { s.keepWithin(ctx, l, trimmed, trimShare) }

func (s *Store) keepWithin(ctx context.Context, l Limits, every time.Duration, share int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	s.quota.set(l.Size)
	defer s.quota.set(0)
	said := ""
	var dropped Retained // that the log has yet to be told of
	var told time.Time
	var aged time.Time // when more may go for its age; by the monotonic clock
	for {
		begun := time.Now()
		limits := l
		if begun.Before(aged) {
			limits.Age = 0
		}
		done, err := s.trim(ctx, limits, s.quota.most(), RetainOptions{GradualAge: true})
		s.quota.pass()
		found := done.Dropped > 0 || done.Blobs > 0
		if dropped.add(done); dropped.Dropped > 0 && (!found || time.Since(told) > tellEvery) {
			s.o.Log.Info("old events of the journal were dropped", "path", s.path, "through", dropped.Through, "events", dropped.Dropped, "kept", dropped.Kept, "blobs", dropped.Blobs)
			dropped, told = Retained{}, time.Now()
		}
		if done.Older {
			pause := min(l.Age/ageShare, time.Hour)
			aged = time.Now().Add(pause)
			s.o.Log.Warn("more of the journal is older than its limit than is dropped at once; if the clock is wrong, set it right", "path", s.path, "limit", l.Age, "through", done.Through, "more in", pause)
		}
		switch {
		case ctx.Err() != nil || s.closing.Err() != nil:
			return
		case err != nil && err.Error() != said:
			said = err.Error()
			s.o.Log.Error("old events of the journal can't be dropped", "path", s.path, "error", err)
		case err == nil:
			said = ""
		}
		rest := time.Duration(0)
		if !found {
			rest = time.Duration(share) * time.Since(begun)
		}
		if !s.pause(ctx, every, rest) {
			return
		}
	}
}

// pause waits between two trims, at least as long as rest; somebody who waits for room
// ends it sooner. It reports whether there is to be another trim.
func (s *Store) pause(ctx context.Context, every, rest time.Duration) bool {
	again := time.After(max(every, rest))
	select {
	case <-ctx.Done():
		return false
	case <-time.After(min(rest, roomTimeout/4)):
	}
	select {
	case <-ctx.Done():
		return false
	case <-again:
	case <-s.quota.ask:
	}
	return true
}
