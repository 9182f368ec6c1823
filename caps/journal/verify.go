package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
)

// An Anchor is an event's number and hash, as they once were,
// written down where whoever can write the store can't.
type Anchor struct {
	Seq  uint64 `json:"seq"`
	Hash Hash   `json:"hash"`
}

// A Report is what a check of a journal found.
type Report struct {
	Events uint64 `json:"events"` // read
	Last   uint64 `json:"last"`   // number of the newest
	Head   Hash   `json:"head"`   // its hash
	// Cut is what a checkpoint says that is gone; nil: nothing is.
	Cut *Cut `json:"cut,omitempty"`
	// Breaks are the places where the chain doesn't hold, the first hundred, in order.
	Breaks []Break `json:"breaks,omitempty"`
	// Damage is what else contradicts itself: pages, indexes, blobs.
	Damage []string `json:"damage,omitempty"`
	// Blobs is how many were compared with their hash, Absent how many hashes
	// are referred to of which only the hash was recorded.
	Blobs  int `json:"blobs"`
	Absent int `json:"absent"`
	// Noted is the event that was noted as the newest, in another folder, and is
	// there; nil: none was.
	Noted *Anchor `json:"noted,omitempty"`
	// Lost is when the store was found once not to have what was noted, and what that
	// was; "": never.
	Lost string `json:"lost,omitempty"`
	// Unproved is what this check can't know, in sentences.
	Unproved []string `json:"unproved"`
}

// Err returns nil where nothing was found: else the first [*Break], or an error that
// is [ErrDamaged].
func (r *Report) Err() error {
	if len(r.Breaks) > 0 {
		return &r.Breaks[0]
	}
	if len(r.Damage) > 0 {
		return fmt.Errorf("%w: %s", ErrDamaged, r.Damage[0])
	}
	return nil
}

// maxBreaks bounds what a report lists.
const maxBreaks = 100

// A walk checks events in order, and goes on after a break.
type walk struct {
	r       Report
	anchors map[uint64]Hash
	store   string            // "": any
	key     ed25519.PublicKey // nil: the one that the checkpoint names

	last Event
	// Before a checkpoint there may be gaps: whether events are missing, or
	// were dropped, is clear when it comes, with the list of those kept.
	maybe []Break
	kept  hash.Hash
	n     int64
	// wrong is set where the events kept aren't those of the checkpoint.
	wrong bool
}

func newWalk(anchors []Anchor) *walk {
	w := &walk{kept: sha256.New(), anchors: map[uint64]Hash{}}
	for _, a := range anchors {
		w.anchors[a.Seq] = a.Hash
	}
	return w
}

func note(list []Break, b *Break) []Break {
	if b != nil && len(list) < maxBreaks {
		list = append(list, *b)
	}
	return list
}

func (w *walk) next(e *Event) {
	w.r.Events++
	w.r.Breaks = note(w.r.Breaks, checkSeal(e))
	if known, ok := w.anchors[e.Seq]; ok {
		is := e.Hash
		if e.Kind == Checkpoint && w.r.Cut == nil {
			is = e.Prev
		}
		if is != known {
			w.r.Breaks = note(w.r.Breaks, &Break{e.Seq, "it is not the event that was written down as an anchor"})
		}
		delete(w.anchors, e.Seq)
	}
	switch {
	case w.r.Cut != nil:
		w.r.Breaks = note(w.r.Breaks, follows(e, &w.last))
	case e.Kind == Checkpoint:
		w.checkpoint(e)
		w.last = Event{Seq: e.Seq, Hash: e.Prev}
		return
	default:
		w.maybe = note(w.maybe, follows(e, &w.last))
		w.kept.Write(appendKept(nil, e))
		w.n++
	}
	w.last = Event{Seq: e.Seq, Hash: e.Hash}
}

// checkpoint decides what is missing before it.
func (w *walk) checkpoint(e *Event) {
	c, err := ReadCut(e)
	switch {
	case err != nil:
		w.r.Breaks = note(w.r.Breaks, &Break{e.Seq, err.Error()})
		c = &Cut{To: e.Seq}
	case w.key != nil && c.Key != hex.EncodeToString(w.key):
		w.r.Breaks = note(w.r.Breaks, &Break{e.Seq, "it is signed by another key than this store's"})
	case w.store != "" && c.Store != w.store:
		w.r.Breaks = note(w.r.Breaks, &Break{e.Seq, "it is a checkpoint of another store"})
	}
	w.r.Cut = c
	n, sum := int64(0), Hash(sha256.Sum256(nil))
	if c.Kept != nil {
		n, sum = c.Kept.Bytes/int64(keptSize), c.Kept.SHA256
	}
	if w.wrong = w.n != n || Hash(w.kept.Sum(nil)) != sum; w.wrong {
		w.r.Breaks = note(w.r.Breaks, &Break{e.Seq, fmt.Sprintf("the %d events before it are not the %d it says were kept", w.n, n)})
	}
	w.maybe = nil
}

// end gives the report.
func (w *walk) end() Report {
	r := w.r
	r.Last, r.Head = w.last.Seq, w.last.Hash
	r.Breaks = append(r.Breaks, w.maybe...)
	proved := uint64(0)
	for seq := range w.anchors {
		switch {
		case seq > r.Last:
			r.Breaks = append(r.Breaks, Break{seq, fmt.Sprintf("it was written down as an anchor, but the journal ends at event %d: the end was cut off", r.Last)})
		case r.Cut != nil && seq < r.Cut.To:
			r.Unproved = append(r.Unproved, fmt.Sprintf("whether event %d was the one written down as an anchor: it was dropped", seq))
		default:
			r.Breaks = append(r.Breaks, Break{seq, "it was written down as an anchor, but it is missing"})
		}
		proved = max(proved, seq)
	}
	slices.SortStableFunc(r.Breaks, func(a, b Break) int { return cmp.Compare(a.Seq, b.Seq) })
	r.Breaks = r.Breaks[:min(len(r.Breaks), maxBreaks)]
	r.Unproved = append(r.Unproved,
		"truncation at the end, or replacement of the whole journal: give the number and hash of an event that you wrote down elsewhere, --anchor SEQ:HASH")
	if r.Cut != nil {
		r.Unproved = append(r.Unproved, fmt.Sprintf(
			"what the %d dropped events were: they were checked when they were dropped, by whoever had the key %s", r.Cut.Dropped, r.Cut.Key))
	}
	return r
}

// Verify reads all that is there and checks that it is what was recorded: the
// file's pages and indexes, the chain, a checkpoint's signature and the events
// kept from before it, the blobs. The report says where it doesn't hold and what
// can't be proved; the error is its [Report.Err], or that of ctx.
//
// Without an anchor a chain only proves that it is consistent: whoever can write
// the file can cut it off at the end or write it anew. With one, it is proved
// that up to it nothing was changed.
func (s *Store) Verify(ctx context.Context, anchors ...Anchor) (Report, error) {
	s.flush()
	w := newWalk(anchors)
	w.store, w.key = s.id, s.public
	var damage []string
	if key, err := signingKey(s.path); err == nil {
		// The file beside is harder to change unseen than a row.
		w.key = key.Public().(ed25519.PublicKey)
		if !w.key.Equal(s.public) {
			damage = append(damage, "the key in the store is not the one in the file beside it, "+s.path+".key")
		}
	}
	find := func(format string, args ...any) {
		if len(damage) < maxBreaks {
			damage = append(damage, fmt.Sprintf(format, args...))
		}
	}
	refers := map[Hash]bool{}
	keeps := map[Hash]uint64{} // the first event that says so
	blobs := 0
	err := s.reader(ctx, func(conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil { // one state for all of it
			return err
		}
		defer func() { _ = rollback(conn) }()
		if _, err := s.recognize(conn); err != nil {
			find("%v", err)
		}
		err := s.scan(ctx, conn, Query{}, 0, func(e *Event) error {
			w.next(e)
			for h := range references(e.Data) {
				refers[h] = true
			}
			for _, h := range kept(e.Data) {
				keeps[h] = cmp.Or(keeps[h], e.Seq)
			}
			return nil
		})
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			find("nothing can be read after event %d: %v", w.last.Seq, err)
		}
		var below int
		if err := conn.QueryRowContext(ctx, `SELECT count(*) FROM events WHERE seq < 1`).Scan(&below); err == nil && below > 0 {
			find("%d events have numbers below 1, where none was recorded", below)
		}
		if w.wrong {
			w.locate(ctx, s, conn)
		}
		err = eachBlob(ctx, conn, func(name []byte, data []byte) {
			sum := sha256.Sum256(data)
			if !bytes.Equal(sum[:], name) {
				find("the bytes with the hash %x are not what was recorded", name)
			}
			blobs++
			delete(refers, sum)
			delete(keeps, sum)
		})
		if err == nil {
			for _, h := range slices.SortedFunc(maps.Keys(keeps), func(a, b Hash) int { return cmp.Compare(keeps[a], keeps[b]) }) {
				find("event %d: the bytes with the hash %s, which it says are kept, are missing", keeps[h], h)
			}
		}
		if err != nil && ctx.Err() == nil {
			find("not all bytes kept by hash can be read: %v", err)
		}
		err = each(conn, fmt.Sprintf(`PRAGMA integrity_check(%d)`, 20), func(scan func(...any) error) error {
			var text string
			err := scan(&text)
			if err == nil && text != "ok" {
				find("the file: %s", text)
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			find("the file: %v", err)
		}
		return ctx.Err()
	})
	if ctx.Err() != nil {
		return Report{}, ctx.Err()
	}
	if err != nil {
		find("it can't be read: %v", err)
	}
	r := w.end()
	r.Damage, r.Blobs, r.Absent = damage, blobs, len(refers)
	s.verifyNote(&r)
	return r, r.Err()
}

// locate finds which of the events kept are not those of the checkpoint.
func (w *walk) locate(ctx context.Context, s *Store, conn *sql.Conn) {
	if w.r.Cut.Kept == nil {
		return
	}
	sum := w.r.Cut.Kept.SHA256
	var list []byte
	err := conn.QueryRowContext(ctx, `SELECT bytes FROM blobs WHERE hash = ?`, sum[:]).Scan(&list)
	if err != nil || sha256.Sum256(list) != sum {
		return // that is reported as damage
	}
	want := readKept(list)
	err = s.scan(ctx, conn, Query{Before: w.r.Cut.To}, 0, func(e *Event) error {
		if is, ok := want[e.Seq]; !ok {
			w.r.Breaks = note(w.r.Breaks, &Break{e.Seq, "it was not there when the events around it were dropped"})
		} else if is != e.Hash {
			w.r.Breaks = note(w.r.Breaks, &Break{e.Seq, "it is not the event that was kept when others were dropped"})
		}
		delete(want, e.Seq)
		return nil
	})
	if err != nil {
		return
	}
	for seq := range want {
		w.r.Breaks = note(w.r.Breaks, &Break{seq, "it was kept when others were dropped, and is missing"})
	}
}

// eachBlob calls fn for every blob, holding one at a time.
func eachBlob(ctx context.Context, conn *sql.Conn, fn func(hash, data []byte)) error {
	rows, err := conn.QueryContext(ctx, `SELECT hash, bytes FROM blobs`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, data sql.RawBytes
		if err := rows.Scan(&name, &data); err != nil {
			return err
		}
		fn(name, data)
	}
	return errors.Join(rows.Err(), ctx.Err())
}

// appendLine writes an event as one line of JSON, with its data byte for byte.
func appendLine(b []byte, e *Event) []byte {
	b = strconv.AppendUint(append(b, `{"seq":`...), e.Seq, 10)
	b = append(append(b, `,"prev":"`...), e.Prev.String()...)
	b = append(append(b, `","hash":"`...), e.Hash.String()...)
	b = e.Time.AppendFormat(append(b, `","time":"`...), time.RFC3339Nano)
	b = AppendString(append(b, `","kind":`...), string(e.Kind))
	if e.Run != "" {
		b = AppendString(append(b, `,"run":`...), e.Run)
	}
	if e.Branch != "" {
		b = AppendString(append(b, `,"branch":`...), e.Branch)
	}
	return append(append(append(b, `,"data":`...), e.Data...), "}\n"...)
}

// Export writes the events that a query selects as lines of JSON, one [Event]
// each, which [VerifyLines] reads. Blobs aren't among them.
func (s *Store) Export(ctx context.Context, w io.Writer, q Query) error {
	out := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	err := s.Each(ctx, q, func(e *Event) error {
		line = appendLine(line[:0], e)
		_, err := out.Write(line)
		return err
	})
	return errors.Join(err, out.Flush())
}

// maxLine bounds a line of an export.
const maxLine = 4*MaxData + 4096

// VerifyLines checks what [Store.Export] wrote, as [Store.Verify] checks a
// store; only blobs aren't there. A line must be written exactly as Export does,
// so that no other reader can see something else in it. What was exported by a
// query that leaves events out has breaks where they are. The signature of a
// checkpoint is checked with the key that it names: compare [Cut.Key] with
// the store's own. The error is the report's, or that of reading.
func VerifyLines(r io.Reader, anchors ...Anchor) (Report, error) {
	w := newWalk(anchors)
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; in.Scan(); n++ {
		var e Event
		err := json.Unmarshal(in.Bytes(), &e)
		e.Time = e.Time.UTC().Truncate(time.Microsecond)
		if err == nil && !bytes.Equal(bytes.TrimSuffix(appendLine(nil, &e), []byte("\n")), in.Bytes()) {
			err = errors.New("it is not written as it was exported")
		}
		if err != nil {
			w.r.Breaks = note(w.r.Breaks, &Break{w.last.Seq + 1, fmt.Sprintf("line %d: %v", n, err)})
			continue
		}
		w.next(&e)
	}
	if err := in.Err(); err != nil {
		return w.end(), fmt.Errorf("reading line %d: %w", w.r.Events+1, err)
	}
	report := w.end()
	return report, report.Err()
}
