package journal

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// RetainOptions says what [Store.Retain] may drop.
type RetainOptions struct {
	// MaxBytes is how large events and blobs together may be; the oldest are
	// dropped until the rest fits. 0: any size. What stays although it is old
	// counts, too. It is about what is in the file, which is somewhat larger.
	MaxBytes int64
	// MaxAge is how old events may be; 0: any age.
	MaxAge time.Duration
	// Keep selects events that stay although they are old, besides those of
	// tools and of runs that may go on. nil: none. It is asked again each time.
	Keep func(*Event) bool
	// Unused is how long a blob stays that no event refers to, where another process
	// put it, or may have put it again; 30 s. It must be longer than it takes to append
	// the event after [Store.PutBlob]. Of what this process put it is known.
	Unused time.Duration
	// GradualAge drops no more than an eighth of what may be dropped because it is old.
	GradualAge bool
	// enough is how large the file may stay with free pages in it; 0: it has none then.
	enough int64
	// DryRun drops nothing, and tells what would be.
	DryRun bool
}

// Retained is what [Store.Retain] has done.
type Retained struct {
	Through uint64 `json:"through"` // number of the last event dropped; 0: none
	Dropped uint64 `json:"dropped"` // events
	Bytes   int64  `json:"bytes"`   // about what those took, without blobs
	Kept    uint64 `json:"kept"`    // events before Through that are still there
	Blobs   int    `json:"blobs"`   // removed
	// Older is set where more is too old than was dropped, with GradualAge.
	Older bool `json:"older,omitempty"`
}

// maxDropped is how many events are dropped at once: writers wait for it. Tests
// change it.
var maxDropped uint64 = 5000

// errMoved says that another process has dropped events at the same time.
var errMoved = errors.New("another process has dropped events at the same time; try again")

// Retain drops the oldest events, those that [RetainOptions] doesn't want, and
// puts a checkpoint in their place, signed with the key beside the store, so
// that the chain of the rest can still be checked: see [Cut]. The newest event is
// never dropped.
//
// Runs that have no end on record stay: tasks of the last day, plans that can still be done, and
// plans begun in the last day; the newest, up to a quarter of MaxBytes.
//
// What changed tools stays, whatever its age: their history. Where that takes
// more than half of MaxBytes, only what the tools there are need stays of what is
// old: their newest versions, those that a run needs which is kept, and the
// versions these are bound to; of a retired tool, that it was retired.
//
// Every event is checked first, and one that isn't what was
// recorded stops it: what is evidence isn't dropped. It takes no more of the
// writers' time than some thousand events take; it may be stopped in between by
// ctx, and is whole then, too.
func (s *Store) Retain(ctx context.Context, o RetainOptions) (Retained, error) {
	var done Retained
	var key ed25519.PrivateKey
	if !o.DryRun {
		if s.writer == nil {
			return done, &problem{s.path, ErrReadOnly, "it was opened to be read only", nil}
		}
		var err error
		if key, err = signingKey(s.path); err != nil {
			return done, fmt.Errorf("the store %s: without its key no events can be dropped: %w", s.path, err)
		}
		if !key.Public().(ed25519.PublicKey).Equal(s.public) {
			return done, &problem{s.path, ErrDamaged, "the key beside it is another store's; restore " + s.path + ".key", nil}
		}
	}
	s.flush()
	c, err := s.scope(ctx, o)
	if err != nil {
		return done, err
	}
	done.Older = c.older
	most, bytes := maxDropped, int64(math.MaxInt64)
	if o.DryRun {
		most = math.MaxUint64
	} else if limit := s.quota.get(); limit > 0 {
		bytes = limit / small / 2 // what is overwritten is in the write-ahead file, with the indexes
	}
	for moved := 0; ; {
		p, err := s.plan(ctx, &c, most, bytes)
		if err != nil {
			return done, err
		}
		if p.drop > 0 && !o.DryRun {
			err = s.cut(ctx, p, key)
			if errors.Is(err, errMoved) && moved < 10 {
				moved++
				continue
			}
			if err != nil {
				return done, err
			}
		}
		if p.drop > 0 {
			done.Through, done.Kept = p.through.Seq, uint64(len(p.kept)/keptSize)
			done.Dropped += p.drop
			done.Bytes += p.bytes
		}
		if !p.more {
			break
		}
	}
	if !o.DryRun {
		if done.Blobs, _, err = s.sweep(ctx, o); err == nil {
			err = s.vacuum(ctx, o.enough)
		}
	}
	return done, err
}

// A plan is what one step drops.
type plan struct {
	old     *Event // the checkpoint there is; Seq 0: none
	gone    uint64 // how many events were dropped before
	through Event  // Seq and Hash of the last event to be dropped
	drop    uint64 // how many events
	bytes   int64  // that those take
	kept    []byte // the list of those before it that stay
	more    bool   // there is more to drop
}

// errEnough ends a scan.
var errEnough = errors.New("that is enough")

// plan decides what the next step drops, most events of so many bytes or few more, and
// checks it.
func (s *Store) plan(ctx context.Context, c *scope, most uint64, bytes int64) (p plan, err error) {
	w := newWalk(nil)
	w.store, w.key = s.id, s.public
	var kept []byte // all to keep so far, also behind the last to drop
	err = s.reader(ctx, func(conn *sql.Conn) error {
		// Another process may drop events: the checkpoint and what is around it
		// are read from one state.
		if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
			return err
		}
		defer func() { _ = rollback(conn) }()
		if p.old, err = first(conn, Checkpoint); err != nil {
			return err
		}
		return s.scan(ctx, conn, Query{}, 0, func(e *Event) error {
			if e.Seq > p.old.Seq && !c.takes(e) {
				return errEnough
			}
			if (p.drop >= most || p.bytes >= bytes) && e.Seq > p.old.Seq {
				p.more = true
				return errEnough
			}
			w.next(e)
			switch {
			case p.old.Seq > 0 && e.Seq == p.old.Seq:
				// What was gone stays gone, whatever is dropped besides.
				p.through, p.kept = Event{Seq: e.Seq, Hash: e.Prev}, kept[:len(kept):len(kept)]
				p.gone = w.r.Cut.Dropped
			case c.keep(e):
				kept = appendKept(kept, e)
			default:
				p.drop++
				p.bytes += e.weight()
				p.through, p.kept = Event{Seq: e.Seq, Hash: e.Hash}, kept[:len(kept):len(kept)]
			}
			return nil
		})
	})
	if err != nil && !errors.Is(err, errEnough) {
		return p, err
	}
	if breaks := append(w.r.Breaks, w.maybe...); len(breaks) > 0 {
		return p, fmt.Errorf("the store %s: nothing is dropped, since the journal doesn't hold; run `mcp-pif journal verify`: %w", s.path, &breaks[0])
	}
	return p, nil
}

// first returns the first event of a kind; Seq 0: there is none.
func first(db querier, k Kind) (*Event, error) {
	return oneEvent(db, `SELECT `+columns+` FROM events WHERE kind = ? AND `+indexedKinds+` ORDER BY seq LIMIT 1`, string(k))
}

// cut carries out a plan, unless another process was faster.
func (s *Store) cut(ctx context.Context, p plan, key ed25519.PrivateKey) error {
	c := Cut{To: p.through.Seq, Dropped: p.gone + p.drop, Hash: p.through.Hash, Store: s.id, Key: hex.EncodeToString(s.public)}
	if p.old.Seq > 0 {
		c.Previous = &p.old.Hash
	}
	blobs := map[Hash][]byte{}
	if len(p.kept) > 0 {
		c.Kept = &Reference{int64(len(p.kept)), sha256.Sum256(p.kept)}
		blobs[c.Kept.SHA256] = p.kept
	}
	e := &Event{Seq: c.To, Prev: c.Hash, Time: s.o.Now().UTC().Truncate(time.Microsecond), Kind: Checkpoint}
	if err := c.sign(e, key); err != nil {
		return err
	}
	e.Hash = e.Seal()
	return s.writer.use(ctx, func(conn *sql.Conn) error {
		if err := s.writer.synchronous(true); err != nil {
			return err
		}
		if s.quota.get() > 0 {
			if err := s.writer.empty(); err != nil {
				return err
			}
		}
		// What is dropped is overwritten, not only no longer named.
		if _, err := conn.ExecContext(bg, `PRAGMA secure_delete=on`); err != nil {
			return err
		}
		err := transaction(conn, func() error { return s.replace(conn, p, e, blobs) })
		_, err2 := conn.ExecContext(bg, `PRAGMA secure_delete=off`)
		s.writer.tidy()
		return errors.Join(err, err2)
	})
}

// replace puts the checkpoint e in the place of what a plan drops.
func (s *Store) replace(conn *sql.Conn, p plan, e *Event, blobs map[Hash][]byte) error {
	now, err := first(conn, Checkpoint)
	if err != nil {
		return err
	}
	if now.Seq != p.old.Seq || now.Hash != p.old.Hash {
		return errMoved
	}
	for hash, data := range blobs {
		used, err := s.putBlob(conn, hash, data)
		if err != nil {
			return err
		}
		s.writer.flight.wrote(hash, used)
	}
	remove := func(after, before uint64) error {
		if before-after < 2 {
			return nil
		}
		_, err := conn.ExecContext(bg, `DELETE FROM events WHERE seq > ? AND seq < ?`, int64(after), int64(before))
		return err
	}
	after := uint64(0)
	for list := p.kept; len(list) >= keptSize; list = list[keptSize:] {
		seq := binary.BigEndian.Uint64(list)
		if err := remove(after, seq); err != nil {
			return err
		}
		after = seq
	}
	if err := remove(after, p.through.Seq+1); err != nil {
		return err
	}
	return s.writer.session.insert(e)
}

// A loose blob is one that no event refers to.
type loose struct{ used, size int64 } // the time of its last use, as it is in the file

// loose returns those that there are.
func (s *Store) loose(ctx context.Context) (map[Hash]loose, error) {
	unused := map[Hash]loose{}
	err := each(s.readers, `SELECT hash, used, size FROM blobs`, func(scan func(...any) error) error {
		var name []byte
		var l loose
		err := scan(&name, &l.used, &l.size)
		if len(name) == len(Hash{}) {
			unused[Hash(name)] = l
		}
		return err
	})
	if err == nil && len(unused) > 0 {
		err = s.Each(ctx, Query{}, func(e *Event) error {
			for h := range references(e.Data) {
				delete(unused, h)
			}
			return nil
		})
	}
	return unused, explain(s.path, err)
}

// maxCutOff is how long a node of a cluster may be cut off between a blob and its event.
const maxCutOff = 24 * time.Hour

// sweep removes loose blobs that no event will refer to, and tells how many bytes those
// have that stay.
func (s *Store) sweep(ctx context.Context, o RetainOptions) (n int, left int64, err error) {
	o.Unused = cmp.Or(o.Unused, 30*time.Second)
	// An event may come between the look and the removal.
	turn := func(do func()) error {
		return s.writer.use(bg, func(*sql.Conn) error { do(); return nil })
	}
	if err := turn(s.writer.flight.watch); err != nil {
		return 0, 0, err
	}
	defer func() { _ = turn(s.writer.flight.unwatch) }() // a closed store has no more to note
	unused, err := s.loose(ctx)
	if err != nil {
		return 0, 0, err
	}
	for h, l := range unused {
		err := s.writer.use(ctx, func(conn *sql.Conn) error {
			used, now := usedAt(l.used), s.o.Now()
			if s.writer.follower != nil && now.Sub(time.UnixMicro(used)).Abs() < maxCutOff || !s.writer.flight.over(h, used, now, o.Unused) {
				left += l.size
				return nil
			}
			// Put again since, it has been used since.
			r, err := conn.ExecContext(bg, `DELETE FROM blobs WHERE hash = ? AND used = ?`, h[:], l.used)
			if err == nil {
				var gone int64
				gone, err = r.RowsAffected()
				n += int(gone)
				delete(s.writer.flight.put, h)
				s.writer.tidy()
			}
			return err
		})
		if err != nil {
			return n, left, err
		}
	}
	return n, left, nil
}

// A Reference names a blob: {"bytes":N,"sha256":"HASH"}.
type Reference struct {
	Bytes  int64 `json:"bytes"`
	SHA256 Hash  `json:"sha256"`
}

// A Cut is what a checkpoint event says: what is no longer there. The event
// stands in the place of the last event that was dropped: it has that one's
// number, and its hash as Prev, which is also the Prev of the next event, so
// that the chain goes on.
type Cut struct {
	// To is the number of the last event dropped, and of the checkpoint.
	To uint64 `json:"to"`
	// Dropped is how many of the events up to To are gone.
	Dropped uint64 `json:"dropped"`
	// Hash is that of event To.
	Hash Hash `json:"hash"`
	// Kept names the events before To that are still there, by a blob with
	// number and hash of each, 40 bytes, in order; nil: none.
	Kept *Reference `json:"kept,omitempty"`
	// Previous is the hash of the checkpoint that this one replaced.
	Previous *Hash `json:"previous,omitempty"`
	// Store is the store's identity.
	Store string `json:"store"`
	// Key is the public key that the signature is by, in hexadecimal.
	Key string `json:"key"`
}

// signature is how the data of a checkpoint ends: with the signature of what is
// before, and of the event's number and time.
const signature = `,"signature":"`

// ReadCut reads the data of a checkpoint and checks that it is signed, by the
// key it names; whether that is the right key is for the caller to know.
func ReadCut(e *Event) (*Cut, error) {
	body, tail, ok := bytes.Cut(e.Data, []byte(signature))
	text, closed := bytes.CutSuffix(tail, []byte(`"}`))
	if e.Kind != Checkpoint || !ok || !closed {
		return nil, errors.New("it is not a signed checkpoint")
	}
	sig, err := hex.DecodeString(string(text))
	if err != nil {
		return nil, fmt.Errorf("its signature: %w", err)
	}
	c := new(Cut)
	dec := json.NewDecoder(bytes.NewReader(append(bytes.Clone(body), '}')))
	dec.DisallowUnknownFields()
	if err := dec.Decode(c); err != nil {
		return nil, fmt.Errorf("it is not a checkpoint of this format: %w", err)
	}
	key, err := hex.DecodeString(c.Key)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("its key is invalid")
	}
	if !ed25519.Verify(key, toSign(e, body), sig) {
		return nil, errors.New("its signature is not by the key it names")
	}
	if c.To != e.Seq || c.Hash != e.Prev {
		return nil, errors.New("it stands in the place of another event than it says")
	}
	return c, nil
}

// sign gives e the data of a checkpoint.
func (c *Cut) sign(e *Event, key ed25519.PrivateKey) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	body := b[:len(b)-1]
	sig := ed25519.Sign(key, toSign(e, body))
	e.Data = fmt.Appendf(bytes.Clone(body), `%s%x"}`, signature, sig)
	return nil
}

func toSign(e *Event, body []byte) []byte {
	b := []byte("mcp-pif journal checkpoint 1\n")
	b = binary.BigEndian.AppendUint64(b, e.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time.UnixMicro()))
	return append(b, body...)
}

// keptSize is what one event takes in the list of those kept.
const keptSize = 8 + len(Hash{})

// appendKept adds an event to the list of those kept.
func appendKept(b []byte, e *Event) []byte {
	return append(binary.BigEndian.AppendUint64(b, e.Seq), e.Hash[:]...)
}

func readKept(list []byte) map[uint64]Hash {
	kept := map[uint64]Hash{}
	for ; len(list) >= keptSize; list = list[keptSize:] {
		kept[binary.BigEndian.Uint64(list)] = Hash(list[8:keptSize])
	}
	return kept
}

// KeptBefore gives, where the checkpoint comes after an event, its number, and by number the hashes of the events before it
// that are still there; else 0. The error is a [Break] where their list isn't what was recorded.
func (s *Store) KeptBefore(seq uint64) (to uint64, kept map[uint64]Hash, err error) {
	e, err := first(s.readers, Checkpoint)
	if err != nil || e.Seq <= seq {
		return 0, nil, explain(s.path, err)
	}
	c, err := ReadCut(e)
	if err == nil && c.Key != hex.EncodeToString(s.public) {
		err = errors.New("it is signed by another key than this store's")
	}
	var list []byte
	if err == nil && c.Kept != nil {
		if list, err = s.Blob(c.Kept.SHA256); err == nil && sha256.Sum256(list) != c.Kept.SHA256 {
			err = errors.New("its list of what was kept isn't what was recorded")
		}
	}
	if err != nil {
		err = &Break{e.Seq, err.Error()}
	}
	return e.Seq, readKept(list), err
}
