package journal

import (
	"database/sql"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// What fails is the answer of who waited for it, also behind what is written at
// once; for who came meanwhile it is tried anew. A flush waits for nothing that
// fails, and doesn't make it look as if it worked again.
func TestWhoComesWhileItFails(t *testing.T) {
	w := newWriter(bg, "j.db", Options{}.orDefault(), nil, nil, newQuota())
	push := func() *entry {
		x := &entry{stage: Written, done: make(chan outcome, 1)}
		must.NoError(t, w.push(x))
		return x
	}
	answered := func(what string, x *entry, want error) {
		t.Helper()
		select {
		case got := <-x.done:
			if got.err != want || want == nil {
				t.Errorf("%s was told %v", what, got.err)
			}
		default:
			if want != nil {
				t.Errorf("%s waits on", what)
			}
		}
	}
	first := push()
	for range maxBatchEvents {
		must.NoError(t, w.push(&entry{stage: Noted}))
	}
	behind := push()
	batch, _ := w.take()
	later, flush := push(), &entry{flush: true, done: make(chan outcome, 1)}
	must.NoError(t, w.push(flush))
	failure := errors.New("locked")
	if kept, _ := w.settle(batch, failure); kept != maxBatchEvents-1 || len(w.queue) != maxBatchEvents+1 {
		t.Errorf("%d are tried again, %d wait", kept, len(w.queue))
	}
	answered("the first", first, failure)
	answered("who waited behind it", behind, failure)
	answered("who flushed", flush, failure)
	answered("who came later", later, nil)
	if err := w.push(flush); err != failure {
		t.Errorf("a flush while it fails: %v", err)
	}
	batch, _ = w.take()
	w.settle(batch, failure)
	answered("who came later, when it fails again,", later, failure)
	if w.held != int64(maxBatchEvents)*overhead {
		t.Errorf("%d bytes are held", w.held)
	}
}

// TestFlightWhileSweeping: a blob whose event comes after a sweep has looked stays.
func TestFlightWhileSweeping(t *testing.T) {
	var f flight
	now := time.Unix(1000, 0)
	h := Hash{1}
	f.begin(h, now.UnixMicro(), now)
	f.watch()
	f.watch() // another sweep
	if f.over(h, now.UnixMicro(), now, time.Second) {
		t.Error("its event is to come")
	}
	f.end([]byte(`{"value_blob":{"bytes":1,"sha256":"` + hex.EncodeToString(h[:]) + `"}}`))
	f.unwatch()
	if f.over(h, now.UnixMicro(), now, time.Second) {
		t.Error("its event came after the look")
	}
	f.unwatch()
	if !f.over(h, now.UnixMicro(), now, time.Second) {
		t.Error("no event refers to it any more, and it stays")
	}
}

// TestWriterHolds writes much at once: a server has such a connection for each principal, so it keeps none of it.
func TestWriterHolds(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "pif.db"), Options{})
	must.NoError(t, err)
	defer s.Close()
	must.Succeed(t)(s.Append(Synced, ServerStarted, "r", "", []byte(`{"x":"`+strings.Repeat("x", 1<<20)+`"}`)))
	err = s.writer.use(t.Context(), func(conn *sql.Conn) error {
		return conn.Raw(func(c any) error {
			for op, most := range map[sqlite.DBStatusOp]int{sqlite.DBStatusCacheUsed: 32 << 10, sqlite.DBStatusStmtUsed: 32 << 10, sqlite.DBStatusLookasideHit: 0} {
				if n, high, err := c.(sqlite.DBStatus).Status(op, false); err != nil || max(n, high) > most {
					t.Errorf("status %d: %d, %v; want at most %d", op, max(n, high), err, most)
				}
			}
			return nil
		})
	})
	must.NoError(t, err)
}
