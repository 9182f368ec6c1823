package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
)

// MaxBlob is how large a blob may be.
const MaxBlob = 256 << 20

// PutBlob keeps bytes that are too large for an event, once however often they
// are put, and gives their hash. They are committed when it returns, so an event
// that refers to them, by {"bytes":N,"sha256":"HASH"} anywhere in its data, is
// never there without them; a Synced event syncs them, too. What no event refers
// to is removed by [Store.Retain], and what an event referred to goes with the last that did.
//
// While [Store.KeepWithin] holds the store within a limit, it waits for room, some
// seconds; more than a quarter of the limit is refused.
//
// They are kept as they are, not compressed.
func (s *Store) PutBlob(ctx context.Context, data []byte) (Hash, error) {
	hash := Hash(sha256.Sum256(data))
	if s.writer == nil && s.o.Through == nil {
		return hash, &problem{s.path, ErrReadOnly, "it was opened to be read only", nil}
	}
	if len(data) > MaxBlob {
		return hash, fmt.Errorf("%d bytes can't be recorded, the most is %d", len(data), MaxBlob)
	}
	n := int64(len(data))
	if s.writer == nil || s.writer.follower != nil {
		if data == nil {
			data = []byte{}
		}
		_, err := s.append(&entry{stage: Written, blob: data, size: n})
		return hash, err
	}
	waits := false
	defer func() {
		if waits {
			s.quota.leave()
		}
	}()
	waiting := func() {
		waits = true
		s.quota.enter()
	}
	return hash, s.writer.waitFor(ctx, n, waiting, func() error {
		return s.writer.use(ctx, func(conn *sql.Conn) error {
			if err := s.writer.fits(n); err != nil {
				return err
			}
			used, err := s.putBlob(conn, hash, data)
			if err == nil {
				s.writer.flight.begin(hash, used, s.o.Now())
				s.writer.tidy()
			}
			return err
		})
	})
}

// putBlob gives the time of the last use that it wrote.
func (s *Store) putBlob(conn *sql.Conn, hash Hash, data []byte) (used int64, err error) {
	if data == nil {
		data = []byte{} // nil is NULL
	}
	// The time of the last use tells other processes that an event will refer to it. It
	// is written each time, which takes one page, since the row stays as large.
	used = s.o.Now().UnixMicro()
	_, err = conn.ExecContext(bg, `INSERT INTO blobs VALUES(?,?,?,?) ON CONFLICT(hash) DO UPDATE SET used = excluded.used`, hash[:], len(data), used, data)
	return used, err
}

// Blob gives what was put under a hash. The error is [fs.ErrNotExist] where
// nothing is, and [ErrDamaged] where something else is.
func (s *Store) Blob(hash Hash) (data []byte, err error) {
	err = s.readers.QueryRowContext(bg, `SELECT bytes FROM blobs WHERE hash = ?`, hash[:]).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, &problem{s.path, fs.ErrNotExist, "there are no bytes with the hash " + hash.String(), nil}
	}
	if err != nil {
		return nil, explain(s.path, err)
	}
	if sha256.Sum256(data) != hash {
		return nil, &problem{s.path, ErrDamaged, "the bytes with the hash " + hash.String() + " are not what was recorded", nil}
	}
	return data, nil
}

// references gives the hashes that an event's data refers to.
func references(data []byte) iter.Seq[Hash] {
	mark := []byte(`"sha256":"`)
	return func(yield func(Hash) bool) {
		for {
			_, rest, found := bytes.Cut(data, mark)
			if !found {
				return
			}
			data = rest
			var h Hash
			if n := 2 * len(h); len(rest) > n && rest[n] == '"' && h.UnmarshalText(rest[:n]) == nil && !yield(h) {
				return
			}
		}
	}
}

// kept gives the hashes of the bytes that an event's data says are kept: those of
// its own members whose names end in _blob. Other hashes may be hashes only, and
// what is nested deeper may be a program's value that looks like one.
func kept(data []byte) (hashes []Hash) {
	if !bytes.Contains(data, []byte(`_blob":{`)) {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return nil
	}
	for name, value := range members {
		var ref Reference
		if strings.HasSuffix(name, "_blob") && json.Unmarshal(value, &ref) == nil {
			hashes = append(hashes, ref.SHA256)
		}
	}
	return hashes
}
