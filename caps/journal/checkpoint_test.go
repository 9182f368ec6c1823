package journal_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
)

// Whoever changes what is before or in a checkpoint is found, without the key.
func TestForgedCheckpoints(t *testing.T) {
	for name, c := range map[string]struct {
		edit string
		seq  uint64
	}{
		"a kept event removed":  {`DELETE FROM events WHERE seq=68`, 68},
		"a kept event edited":   {`UPDATE events SET run='x' WHERE seq=68`, 68},
		"a kept event forged":   {`UPDATE events SET run='x' WHERE seq=68`, 68},
		"an event put back":     {`INSERT INTO events SELECT 50,prev,hash,time,kind,run,branch,data FROM events WHERE seq=68`, 50},
		"more dropped":          {`DELETE FROM events WHERE seq=(SELECT seq+1 FROM events WHERE kind='checkpoint')`, 201},
		"no checkpoint":         {`DELETE FROM events WHERE kind='checkpoint'`, 18},
		"another time":          {`UPDATE events SET time=time+1 WHERE kind='checkpoint'`, 199},
		"another count":         {`UPDATE events SET data=CAST(replace(data,'"dropped":195','"dropped":194') AS BLOB) WHERE kind='checkpoint'`, 199},
		"another key":           {`UPDATE events SET data=CAST(replace(data,'"key":"','"key":"00') AS BLOB) WHERE kind='checkpoint'`, 199},
		"moved":                 {`UPDATE events SET seq=198 WHERE kind='checkpoint'`, 198},
		"an event in its place": {`UPDATE events SET kind='run.ended' WHERE kind='checkpoint'`, 18},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAged(t, 300)
			retain(t, a.Store, journal.RetainOptions{MaxAge: 100 * time.Minute, Keep: tools})
			verified(t, a.Store)
			// Whatever is changed is sealed anew: only the signature can tell.
			conn := raw(t, a.path)
			sqlExec(t, conn, c.edit)
			if name != "a kept event edited" {
				for _, e := range all(t, a.Store, journal.Query{Before: 200}) {
					sum := e.Seal()
					sqlExec(t, conn, `UPDATE events SET hash=? WHERE seq=?`, sum[:], int64(e.Seq))
				}
			}
			r, err := a.Verify(ctx)
			var b *journal.Break
			if !errors.As(err, &b) || b.Seq != c.seq {
				t.Errorf("%v in %v, expected at %d", err, r.Breaks, c.seq)
			}
			if _, err := a.Retain(ctx, journal.RetainOptions{MaxAge: time.Minute}); err == nil || !strings.Contains(err.Error(), "nothing is dropped") {
				t.Errorf("more is dropped: %v", err)
			}
		})
	}
}

// A checkpoint made with another key, or by another store with the same key,
// holds only in itself.
func TestForeignCheckpoints(t *testing.T) {
	a, b := newAged(t, 20), newAged(t, 20)
	for _, s := range []*aged{a, b} {
		retain(t, s.Store, journal.RetainOptions{MaxAge: 10 * time.Minute})
	}
	conn := raw(t, a.path)
	sqlExec(t, conn, `ATTACH DATABASE ? AS other`, b.path)
	sqlExec(t, conn, `DELETE FROM events; INSERT INTO events SELECT * FROM other.events`)
	if r, err := a.Verify(ctx); err == nil || !strings.Contains(err.Error(), "another key") || len(r.Breaks) != 1 {
		t.Errorf("events and checkpoint of another store: %v", r.Breaks)
	}
	// With its public key in the store, the file beside it still tells.
	sqlExec(t, conn, `UPDATE meta SET value=(SELECT value FROM other.meta WHERE name='key') WHERE name='key'`)
	again := openStore(t, a.path, journal.Options{})
	if r, err := again.Verify(ctx); err == nil || len(r.Damage) == 0 || len(r.Breaks) != 1 {
		t.Errorf("with the other key: %v, %+v", err, r)
	}
	if _, err := again.Retain(ctx, journal.RetainOptions{MaxAge: 1}); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("Retain signs with a key that isn't the store's: %v", err)
	}
	if err := os.Remove(a.path + ".key"); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Retain(ctx, journal.RetainOptions{MaxAge: 1}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "without its key") {
		t.Errorf("Retain without the key: %v", err)
	}
	if r, err := again.Verify(ctx); err == nil || !strings.Contains(err.Error(), "another store") {
		t.Errorf("with the other key and no file: %v", r.Breaks)
	}
}
