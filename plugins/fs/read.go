package fs

import (
	"context"
	"encoding/base64"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

type readArgs struct {
	Path     string `pif:"path,main,designates" doc:"the file, relative to the capability's root"`
	Encoding string `pif:"encoding,optional,enum=utf8|base64" doc:"how its bytes become a string; utf8 if left out"`
	From     int64  `pif:"from,optional" doc:"the byte to begin at; 0 if left out; beyond the end there is nothing"`
	Length   *int64 `pif:"length" doc:"how many bytes at most; to the end if left out"`
}

// openFile is a regular file that may be acted on, and what is known of it.
type openFile struct {
	*os.File
	info
}

func read(ctx context.Context, s *scope, a readArgs) (string, error) {
	return at(ctx, s, "read", a.Path, true, func(c *call, p *place) (string, error) {
		switch {
		case a.From < 0:
			return "", sdk.Fail("invalid", "from is %d: it counts from the file's beginning", a.From)
		case a.Length != nil && *a.Length < 0:
			return "", sdk.Fail("invalid", "length is %d", *a.Length)
		}
		f, err := c.open(p, reading)
		if err != nil {
			return "", err
		}
		defer f.Close()
		r := reader{file: f, path: a.Path, ctx: ctx, limit: sdk.MaxOutcome(ctx, c.max), from: a.From, length: math.MaxInt64}
		if a.Length != nil {
			r.length = *a.Length
		}
		if a.Encoding == "base64" {
			r.limit = r.limit / 4 * 3 // the limit is on what is given
			content, err := r.bytes()
			return base64.StdEncoding.EncodeToString([]byte(content)), err
		}
		return r.text()
	})
}

// A reader reads a part of a file.
type reader struct {
	file         *openFile
	path         string
	ctx          context.Context
	limit        int64
	from, length int64
}

// whole reports whether all of the file is wanted.
func (r *reader) whole() bool { return r.from == 0 && r.length == math.MaxInt64 }

// bytes gives the part as it is.
func (r *reader) bytes() (string, error) {
	if left := min(r.file.size-r.from, r.length); left > r.limit {
		return "", r.tooLarge(left)
	}
	content, err := r.at(r.from, min(r.length, r.limit+1))
	if err == nil && int64(len(content)) > r.limit {
		err = r.tooLarge(int64(len(content))) // it grew, or doesn't tell its size
	}
	if err != nil {
		return "", err
	}
	return content, nil
}

// buffers is what files are read through on the way to a string.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// at reads up to n bytes.
func (r *reader) at(from, n int64) (string, error) {
	if from > math.MaxInt64-n {
		return "", nil
	}
	var b strings.Builder
	if expect := min(r.file.size-from, n); expect > 0 {
		b.Grow(int(expect))
	}
	buf := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buf)
	for int64(b.Len()) < n {
		if err := r.ctx.Err(); err != nil {
			return "", because(r.path, err)
		}
		got, err := r.file.ReadAt(buf[:min(int64(len(buf)), n-int64(b.Len()))], from+int64(b.Len()))
		b.Write(buf[:got])
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", because(r.path, err)
		}
	}
	return b.String(), nil
}

// text gives the characters whose first byte is in the part.
func (r *reader) text() (string, error) {
	if r.whole() {
		content, err := r.bytes()
		if err == nil && !utf8.ValidString(content) {
			err = r.notText()
		}
		if err != nil {
			return "", err
		}
		return content, nil
	}
	if left := min(r.file.size-r.from, r.length); left > r.limit {
		return "", r.tooLarge(left)
	}
	// Three bytes more on both sides show what the ends of the part cut.
	const around = utf8.UTFMax - 1
	before := min(r.from, around)
	length := min(r.length, r.limit+1)
	window, err := r.at(r.from-before, before+length+around)
	if err != nil || int64(len(window)) <= before {
		return "", err
	}
	begin, ok := border(window, int(before))
	if !ok {
		return "", r.notText()
	}
	end, ok := border(window, min(int(before+length), len(window)))
	if !ok || !utf8.ValidString(window[begin:max(begin, end)]) {
		return "", r.notText()
	}
	content := window[begin:max(begin, end)]
	if int64(len(content)) > r.limit {
		return "", r.tooLarge(int64(len(content)))
	}
	return content, nil
}

// border moves a place in a text to the end of the character that it cuts. It
// is false where what is there is no character.
func border(s string, at int) (int, bool) {
	if at == 0 || at == len(s) || utf8.RuneStart(s[at]) {
		return at, true
	}
	for start := at - 1; start >= 0 && start > at-utf8.UTFMax; start-- {
		if utf8.RuneStart(s[start]) {
			_, n := utf8.DecodeRuneInString(s[start:])
			return start + n, start+n > at
		}
	}
	return at, false
}

func (r *reader) notText() error {
	return sdk.Fail("invalid", "%s isn't UTF-8 text", quote(r.path)).WithHint("Read it with the encoding base64.")
}

func (r *reader) tooLarge(n int64) error {
	sdk.NeedsOutcome(r.ctx, n/3*4) // as base64 at most
	what := "%s has %d bytes; at most %d are read at once"
	if !r.whole() {
		what = "the part of %s that was asked for has %d bytes; at most %d are read at once"
	}
	return sdk.Fail("too_large", what, quote(r.path), n, r.limit).
		WithHint("Read parts of it with from and length.")
}

type statArgs struct {
	Path string `pif:"path,main,designates" doc:"what to look at, relative to the capability's root"`
}

type status struct {
	Kind     string `pif:"kind" doc:"file, directory, link or other"`
	Size     int64  `pif:"size" doc:"bytes of a file, else 0"`
	Modified string `pif:"modified" doc:"UTC, like 2026-01-31T12:00:00Z"`
}

func stat(ctx context.Context, s *scope, a statArgs) (status, error) {
	return at(ctx, s, "stat", a.Path, false, func(c *call, p *place) (status, error) {
		i, err := c.lstat(p)
		if err != nil {
			return status{}, err
		}
		return status{i.kind(), i.length(), i.modified.UTC().Format(time.RFC3339)}, nil
	})
}
