package journal

import (
	"context"
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
	s.flush()
	o := RetainOptions{DryRun: dry}
	var pages, free, size int64
	var oldest int64 // microseconds
	err := s.readers.QueryRowContext(ctx, `SELECT
		(SELECT page_count FROM pragma_page_count), (SELECT freelist_count FROM pragma_freelist_count), (SELECT page_size FROM pragma_page_size),
		coalesce((SELECT time FROM events WHERE seq > (SELECT coalesce(max(seq), 0) FROM events WHERE kind = 'checkpoint' AND `+indexedKinds+`)
			AND kind NOT IN ('tool.evolved','tool.retired','tool.rolled_back') ORDER BY seq LIMIT 1), 1 << 62)`).Scan(&pages, &free, &size, &oldest)
	if err != nil {
		return Retained{}, explain(s.path, err)
	}
	if used := (pages - free) * size; l.Size > 0 && used > l.Size {
		content, _, err := s.content(ctx)
		if err != nil {
			return Retained{}, err
		}
		// Retain counts what is in the pages, which are never all full.
		o.MaxBytes = max(1, int64(float64(l.Size-l.Size/sizeSlack)*min(1, float64(content)/float64(used))))
	}
	if l.Age > 0 && s.o.Now().Sub(time.UnixMicro(oldest)) > l.Age+min(l.Age/ageSlack, time.Hour) {
		o.MaxAge = l.Age
	}
	if o.MaxBytes == 0 && o.MaxAge == 0 {
		return Retained{}, nil
	}
	return s.Retain(ctx, o)
}

// trimmed is how often KeepWithin looks. Where it found nothing to drop it may take
// one part in trimShare of the time: what can't be brought within its limits isn't
// read again and again.
const (
	trimmed   = 2 * time.Second
	trimShare = 50
)

// KeepWithin trims the store to limits now, and then every two seconds until ctx
// ends or the store is closed. What it drops, and why it can't, goes to the log of
// the store's [Options]; it says the same only once. Several processes may do it
// for one file.
func (s *Store) KeepWithin(ctx context.Context, l Limits) { s.keepWithin(ctx, l, trimmed, trimShare) }

func (s *Store) keepWithin(ctx context.Context, l Limits, every time.Duration, share int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	said := ""
	for {
		begun := time.Now()
		done, err := s.Trim(ctx, l, false)
		if done.Dropped > 0 {
			s.o.Log.Info("old events of the journal were dropped", "path", s.path, "through", done.Through, "events", done.Dropped, "kept", done.Kept, "blobs", done.Blobs)
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
		wait := every
		if done.Dropped == 0 {
			wait = max(wait, time.Duration(share)*time.Since(begun))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}
