package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// proposalFormat is the first byte of a proposal. A node that doesn't know it stops.
const proposalFormat = 1

// How large a part of what is proposed at once may be: an order takes 1 MiB.
const (
	maxWhole = 900 << 10
	maxPiece = 512 << 10
)

// A boot is one opening of a profile's file by a node, which numbers what it proposes.
type boot [16]byte

// A point is how far a node has applied the order: the place, a digest of all proposals
// up to it, of every profile, and the newest event of this one.
type point struct {
	place  uint64
	digest Hash
	seq    uint64
	hash   Hash
	sum    Hash // of the proposal at the place, where a batch ended; what others had has none
}

// A proposal is what a node puts into the order. Its content may be in several, since
// an order takes only so much at once.
type proposal struct {
	profile string
	node    string
	boot    boot
	n       uint64 // from 1, without gaps
	// base is the newest event of the file before it came into the cluster.
	base Hash
	// at is what the proposer had applied, which all others hold against their own.
	at point
	// piece is the index of this piece of the content, of so many.
	piece, pieces uint64
	content       []byte
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBytes(b, s []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }

func (p *proposal) encode() []byte {
	b := make([]byte, 0, 256+len(p.content))
	b = appendText(appendText(append(b, proposalFormat), p.profile), p.node)
	b = binary.AppendUvarint(append(b, p.boot[:]...), p.n)
	b = binary.AppendUvarint(append(b, p.base[:]...), p.at.place)
	b = binary.AppendUvarint(append(b, p.at.digest[:]...), p.at.seq)
	b = binary.AppendUvarint(append(b, p.at.hash[:]...), p.piece)
	return append(binary.AppendUvarint(b, p.pieces), p.content...)
}

// errNewer says that a proposal is of a later version of this program.
var errNewer = errors.New("another node is of a newer version of mcp-pif: update this one, too")

// decodeProposal reads what encode wrote. The content is a part of b.
func decodeProposal(b []byte) (p proposal, err error) {
	if len(b) > 0 && b[0] != proposalFormat {
		return p, fmt.Errorf("a proposal has the format %d, this mcp-pif knows %d: %w", b[0], proposalFormat, errNewer)
	}
	r := reading{rest: b}
	r.byte()
	p.profile, p.node = r.text(), r.text()
	r.fixed(p.boot[:])
	p.n = r.number()
	r.fixed(p.base[:])
	p.at.place = r.number()
	r.fixed(p.at.digest[:])
	p.at.seq = r.number()
	r.fixed(p.at.hash[:])
	p.piece, p.pieces = r.number(), r.number()
	p.content = r.rest
	if r.failed || p.pieces == 0 || p.piece >= p.pieces {
		return p, errGarbled
	}
	return p, nil
}

var errGarbled = errors.New("a proposal in the order can't be read")

// What is in a content.
const (
	anEvent = 'e'
	aWhole  = 'w'
	aBlob   = 'b'
)

// encodeEntries writes a content.
func encodeEntries(batch []*entry) []byte {
	var b []byte
	for _, x := range batch {
		switch {
		case x.flush || x.barrier:
		case x.blob != nil:
			b = appendBytes(append(b, aBlob), x.blob)
		case x.all == nil:
			b = x.appendCondition(append(b, anEvent))
			b = appendText(appendText(appendText(b, string(x.e.Kind)), x.e.Run), x.e.Branch)
			b = appendBytes(b, x.e.Data)
		default:
			b = binary.AppendUvarint(x.appendCondition(append(b, aWhole)), uint64(len(x.all)))
			for i := range x.all {
				p := &x.all[i]
				b = appendBytes(appendText(b, string(p.Kind)), p.Data)
				b = binary.AppendUvarint(b, uint64(len(p.Refs)))
				for _, r := range p.Refs {
					b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.At)), uint64(r.Part))
				}
			}
		}
	}
	return b
}

// appendCondition writes the time of an entry and its condition: 0 for none, else one more
// than the number after which no change may be.
func (x *entry) appendCondition(b []byte) []byte {
	b = binary.AppendVarint(b, x.e.Time.UnixMicro())
	if !x.change {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, min(x.after, math.MaxUint64-1)+1)
	b = binary.AppendUvarint(b, uint64(len(x.tools)))
	for _, name := range x.tools {
		b = appendText(b, name)
	}
	return b
}

// decodeEntries reads a content.
func decodeEntries(b []byte) (batch []*entry, err error) {
	r := reading{rest: b}
	for len(r.rest) > 0 && !r.failed {
		x := &entry{}
		switch what := r.byte(); what {
		case aBlob:
			x.blob = r.bytes()
		case anEvent:
			r.condition(x)
			x.e.Kind, x.e.Run, x.e.Branch = Kind(r.text()), r.text(), r.text()
			x.e.Data = r.bytes()
		case aWhole:
			r.condition(x)
			x.all = make([]Part, r.count())
			for i := range x.all {
				p := &x.all[i]
				p.Kind, p.Data = Kind(r.text()), r.bytes()
				p.Refs = make([]Ref, r.count())
				for j := range p.Refs {
					p.Refs[j] = Ref{At: int(r.number()), Part: int(r.number())}
				}
				if p.checkRefs(len(x.all)) != nil {
					return nil, errGarbled
				}
			}
		default:
			return nil, fmt.Errorf("a proposal has a part %q: %w", what, errNewer)
		}
		batch = append(batch, x)
	}
	if r.failed {
		return nil, errGarbled
	}
	return batch, nil
}

// A reading is of bytes from the front; failed where they aren't what was expected.
type reading struct {
	rest   []byte
	failed bool
}

func (r *reading) take(n uint64) []byte {
	if r.failed || n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reading) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reading) number() uint64 {
	n, k := binary.Uvarint(r.rest)
	if k <= 0 {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[k:]
	return n
}

// count is a number of things that take at least a byte each.
func (r *reading) count() int {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return 0
	}
	return int(n)
}

func (r *reading) fixed(to []byte) { copy(to, r.take(uint64(len(to)))) }
func (r *reading) bytes() []byte   { return append([]byte{}, r.take(r.number())...) }
func (r *reading) text() string    { return string(r.take(r.number())) }
func (r *reading) micro() time.Time {
	n, k := binary.Varint(r.rest)
	if k <= 0 {
		r.failed, r.rest = true, nil
		return time.Time{}
	}
	r.rest = r.rest[k:]
	return time.UnixMicro(n).UTC()
}

func (r *reading) condition(x *entry) {
	x.e.Time = r.micro()
	if x.after = r.number(); x.after == 0 {
		return
	}
	x.change = true
	x.after--
	x.tools = make([]string, r.count())
	for i := range x.tools {
		x.tools[i] = r.text()
	}
}
