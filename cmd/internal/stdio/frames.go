package stdio

import (
	"bytes"
	"io"
	"slices"
)

// chunkSize is how much is read at once: what a pipe holds on Linux.
const chunkSize = 64 << 10

// headSize and tailSize are what is kept of an oversized line to find its id.
const (
	headSize = 64 << 10
	tailSize = 1 << 10
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// frames cuts a stream into lines. A goroutine reads ahead, because a read of
// standard input can't be interrupted and so mustn't be what the session waits
// in; it hands over chunks rather than lines, so that many short lines cost one
// wake-up. Two chunks go round.
//
// All but the reading goroutine belongs to the caller of next.
type frames struct {
	limit   int
	stopped <-chan struct{}
	filled  chan chunk
	empty   chan []byte

	lent    []byte // the chunk that rest is a part of
	rest    []byte // of the chunk, not cut yet
	partial []byte // of a line that began in an earlier chunk
	long    *long  // set while skipping a line over the limit
	started bool   // past where a byte order mark may be
	err     error  // why there are no more chunks
}

type chunk struct {
	data []byte
	err  error
}

// A long is a line over the limit.
type long struct {
	head, tail []byte
	size       int64
}

// A frame is a line without its newline. If owned, nothing will overwrite it;
// otherwise it is valid until the next call of next.
type frame struct {
	line  []byte
	owned bool
	long  *long // instead of line
}

func newFrames(in io.Reader, limit int, stopped <-chan struct{}) *frames {
	f := &frames{
		limit:   limit,
		stopped: stopped,
		filled:  make(chan chunk),
		empty:   make(chan []byte, 2),
	}
	f.empty <- make([]byte, chunkSize)
	f.empty <- make([]byte, chunkSize)
	go f.read(in)
	return f
}

// read fills chunks until In ends or the session does. If In can't be closed,
// the goroutine may outlive the session by one read.
func (f *frames) read(in io.Reader) {
	idle := 0
	for {
		var buf []byte
		select {
		case buf = <-f.empty:
		case <-f.stopped:
			return
		}
		n, err := in.Read(buf)
		if n == 0 && err == nil {
			if idle++; idle == 100 {
				err = io.ErrNoProgress
			}
		} else {
			idle = 0
		}
		select {
		case f.filled <- chunk{buf[:n], err}:
		case <-f.stopped:
			return
		}
		if err != nil {
			return
		}
	}
}

// next returns the next line that isn't empty. At the end of input it returns
// first what came after the last newline, then the reader's error, io.EOF if
// the end is a regular one. When the session is stopped it returns errStopped.
func (f *frames) next() (frame, error) {
	for {
		if len(f.rest) == 0 {
			if f.err != nil {
				if last := f.cut(nil); last.long != nil || !blank(last.line) {
					return last, nil
				}
				return frame{}, f.err
			}
			if err := f.fill(); err != nil {
				return frame{}, err
			}
			continue
		}
		if !f.started && !f.skipMark() {
			continue
		}
		end := bytes.IndexByte(f.rest, '\n')
		if end < 0 {
			f.keep(f.rest)
			f.rest = nil
			continue
		}
		piece := f.rest[:end]
		f.rest = f.rest[end+1:]
		if got := f.cut(piece); got.long != nil || !blank(got.line) {
			return got, nil
		}
	}
}

// fill replaces the chunk, which has been cut up.
func (f *frames) fill() error {
	if f.lent != nil {
		f.empty <- f.lent
		f.lent = nil
	}
	select {
	case c := <-f.filled:
		f.lent, f.rest, f.err = c.data[:cap(c.data)], c.data, c.err
		return nil
	case <-f.stopped:
		return errStopped
	}
}

// skipMark drops a byte order mark. It returns false if it must see more, or if
// nothing is left. What has come so far of a mark waits in partial.
func (f *frames) skipMark() bool {
	f.partial = append(f.partial, f.rest[0])
	switch n := len(f.partial); {
	case !bytes.HasPrefix(byteOrderMark, f.partial):
		// No mark: the byte stays in rest, what preceded it in partial.
		if f.partial = f.partial[:n-1]; n == 1 {
			f.partial = nil
		}
		f.started = true
		return true
	case n == len(byteOrderMark):
		f.partial = nil
		f.started = true
	}
	f.rest = f.rest[1:]
	return false
}

// keep stores a piece of a line whose end hasn't been seen.
func (f *frames) keep(piece []byte) {
	if size := len(f.partial) + len(piece); f.long == nil && size <= f.limit {
		if size > cap(f.partial) {
			// Doubling: append's gentler growth would copy a long line five times.
			f.partial = slices.Grow(f.partial, min(max(size, 2*cap(f.partial)), f.limit)-len(f.partial))
		}
		f.partial = append(f.partial, piece...)
		return
	}
	if f.long == nil {
		f.long = &long{size: int64(len(f.partial))}
		f.long.keep(f.partial)
		f.partial = nil
	}
	f.long.size += int64(len(piece))
	f.long.keep(piece)
}

// keep updates the head and the tail by a piece of the line.
func (l *long) keep(piece []byte) {
	if n := headSize - len(l.head); n > 0 {
		l.head = append(l.head, piece[:min(n, len(piece))]...)
	}
	if len(piece) > tailSize {
		piece = piece[len(piece)-tailSize:]
	}
	if n := len(l.tail) + len(piece) - tailSize; n > 0 {
		l.tail = l.tail[:copy(l.tail, l.tail[n:])]
	}
	l.tail = append(l.tail, piece...)
}

// cut ends a line with its last piece.
func (f *frames) cut(piece []byte) frame {
	if f.long == nil && f.partial == nil && len(piece) <= f.limit {
		return frame{line: piece}
	}
	f.keep(piece)
	got := frame{line: f.partial, owned: true, long: f.long}
	f.partial, f.long = nil, nil
	return got
}

func blank(line []byte) bool {
	return len(bytes.Trim(line, " \t\r")) == 0
}
