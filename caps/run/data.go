package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// How the data of a run's events is written; record.go reads it.

// appendTool writes the members that name a tool's version.
func appendTool(b []byte, t *registry.Tool) []byte {
	b = journal.AppendString(append(b, `"tool":`...), t.Name)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(t.Version), 10)
	return journal.AppendString(append(b, `,"hash":`...), t.Hash)
}

// whole is how many bytes of code, input, arguments or outcome are recorded as
// they are; of more there is a digest, and a blob.
const whole = 256 << 10

// appendText writes what was given as text: as a string, since it may be
// anything, or as its digest.
func (b *Broker) appendText(data, text []byte) []byte {
	if len(text) <= whole && utf8.Valid(text) {
		return journal.AppendString(data, string(text))
	}
	sum, _ := b.keep(text)
	return appendHashed(data, int64(len(text)), sum)
}

// appendKept is appendText for what has to be read back: a journal that keeps no large texts beside its events has it whole.
func (b *Broker) appendKept(data, text []byte) ([]byte, error) {
	_, keeps := b.journal.(blobStore)
	switch {
	case utf8.Valid(text) && (!keeps || len(text) <= whole):
		return journal.AppendString(data, string(text)), nil
	case !keeps:
		return nil, errNotKept
	}
	sum, kept := b.keep(text)
	if !kept {
		return nil, errNotKept
	}
	return appendHashed(data, int64(len(text)), sum), nil
}

// A blobStore is a journal that keeps large texts.
type blobStore interface {
	PutBlob(context.Context, []byte) (journal.Hash, error)
}

// errNotKept is why what has to be read back isn't recorded.
var errNotKept = errors.New("the journal can't keep a text of that size")

// appendPart writes a text that is part of another one on record: where it is
// large its digest will do.
func appendPart(data, text []byte) []byte {
	if len(text) <= whole && utf8.Valid(text) {
		return journal.AppendString(data, string(text))
	}
	return appendDigest(data, text)
}

// appendValue writes a member with a value, or, where that is large, a member of
// the name with _blob behind it and its digest: a digest in the value's own
// place could be a value. It fails past most bytes.
func (b *Broker) appendValue(data []byte, name string, v value.Value, most int64) ([]byte, error) {
	before := len(data)
	data = append(append(append(data, `,"`...), name...), `":`...)
	start := len(data)
	data, err := journal.AppendValue(data, v, most)
	if err != nil || len(data)-start <= whole {
		return data, err
	}
	return b.appendBlob(data[:before:before], name, data[start:]), nil
}

// appendBlob writes the member in place of one that is large. Where the journal
// didn't take it, the name has _hash behind it: nobody looks for the bytes.
func (b *Broker) appendBlob(data []byte, name string, text []byte) []byte {
	ending := `_blob":`
	sum, ok := b.keep(text)
	if !ok {
		ending = `_hash":`
	}
	return appendHashed(append(append(append(data, `,"`...), name...), ending...), int64(len(text)), sum)
}

// keep has a journal that can keep what is too large for an event, and reports whether
// it has it; one in memory isn't asked.
func (b *Broker) keep(text []byte) (journal.Hash, bool) {
	store, ok := b.journal.(blobStore)
	if !ok {
		return sha256.Sum256(text), true
	}
	sum, err := store.PutBlob(context.Background(), text)
	if err != nil {
		b.log.Error("the journal took only the hash of a large text", "bytes", len(text), "error", err)
	}
	return sum, err == nil
}

// appendDigest writes size and hash.
func appendDigest(b, text []byte) []byte {
	return appendHashed(b, int64(len(text)), sha256.Sum256(text))
}

func appendHashed(b []byte, size int64, sum journal.Hash) []byte {
	b = strconv.AppendInt(append(b, `{"bytes":`...), size, 10)
	return append(appendHash(append(b, `,"sha256":`...), sum), '}')
}

func appendHash(b []byte, h journal.Hash) []byte {
	return append(hex.AppendEncode(append(b, '"'), h[:]), '"')
}

// appendFault writes all of a fault that a program or its caller can see, as
// [fault.Fault] has it in JSON, with the value that was raised as "raised".
func (b *Broker) appendFault(data []byte, f *fault.Fault) []byte {
	start := len(data)
	data = appendFault(data, f)
	if v, ok := f.Raised.(value.Value); ok {
		before := len(data) - 1
		if raised, err := journal.AppendValue(append(data[:before], `,"raised":`...), v, journal.MaxBlob); err == nil {
			data = append(raised, '}')
		} else {
			data = append(data[:before], '}')
		}
	}
	if len(data)-start <= whole {
		return data
	}
	// What a reader of events wants, and the rest for a replay.
	short := fault.Fault{Kind: f.Kind, Message: display.Prefix(f.Message, 1000)}
	text := data[start:]
	data = appendFault(data[:start:start], &short)
	return append(b.appendBlob(data[:len(data)-1], "whole", text), '}')
}

// appendFault writes a fault, without what was raised.
func appendFault(b []byte, f *fault.Fault) []byte {
	return append(b, bytes.ReplaceAll(pifjson.MustEncode(f), []byte(`,"at":""`), nil)...)
}

// spelled is the fault with words that are recorded as they are: what isn't
// UTF-8 would come back from the record as something else.
func spelled(f *fault.Fault) *fault.Fault {
	if utf8.ValidString(f.Message) && utf8.ValidString(f.Hint) {
		return f
	}
	g := *f
	g.Message, g.Hint = strings.ToValidUTF8(f.Message, "\uFFFD"), strings.ToValidUTF8(f.Hint, "\uFFFD")
	return &g
}
