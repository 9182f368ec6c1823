package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
)

// Which client it is decides whose tools a server has, and on standard input and
// output only its first message says so. That is read before anything is opened,
// and handed back to the transport as if nobody had looked at it.

// mostFirst is how much of the input is looked at, in bytes.
const mostFirst = 1 << 20

// firstFrame reads up to the end of the first line that isn't blank. input gives
// all of it again. The line is empty at the end of input; it is cut off where it
// is longer than what is looked at. ctx ends the wait.
func firstFrame(ctx context.Context, in io.Reader) (line []byte, input io.Reader, err error) {
	if f, ok := in.(*os.File); ok {
		if line, ok := firstOfFile(f); ok {
			return line, in, nil // a file is read where it was
		}
	}
	type result struct {
		read []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		read, err := readFirst(in)
		done <- result{read, err}
	}()
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case r := <-done:
		return firstLineOf(r.read), &resumed{again: r.read, err: r.err, in: in}, nil
	}
}

// firstOfFile reads the first line of a regular file without moving on in it.
func firstOfFile(f *os.File) (line []byte, ok bool) {
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	from, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, false
	}
	read, err := readFirst(io.NewSectionReader(f, from, mostFirst))
	return firstLineOf(read), err == nil || err == io.EOF
}

// readFirst reads until there is a whole line that isn't blank, or enough.
func readFirst(in io.Reader) (read []byte, err error) {
	buf := make([]byte, 64<<10)
	for len(read) < mostFirst {
		n, err := in.Read(buf)
		read = append(read, buf[:n]...)
		if err != nil {
			return read, err
		}
		if start := bytes.TrimLeft(read, " \t\r\n"); bytes.IndexByte(start, '\n') >= 0 {
			break
		}
	}
	return read, nil
}

func firstLineOf(read []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimLeft(read, " \t\r\n"), []byte{'\n'})
	return line
}

// resumed is an input of which the beginning was read.
type resumed struct {
	again []byte
	err   error // that came after it
	in    io.Reader
}

func (r *resumed) Read(p []byte) (int, error) {
	if len(r.again) > 0 {
		n := copy(p, r.again)
		r.again = r.again[n:]
		return n, nil
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.in.Read(p)
}

// Close closes the input where that can be closed.
func (r *resumed) Close() error {
	if c, ok := r.in.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// clientName is the name in a client's first message: of initialize, or in the
// newer protocol of any request. It is "" where there is none.
func clientName(line []byte) string {
	type named struct{ Name string }
	var first struct {
		Method string
		Params struct {
			ClientInfo named
			Meta       struct {
				ClientInfo named `json:"io.modelcontextprotocol/clientInfo"`
			} `json:"_meta"`
		}
	}
	if json.Unmarshal(line, &first) != nil {
		return ""
	}
	if first.Method == "initialize" && first.Params.ClientInfo.Name != "" {
		return first.Params.ClientInfo.Name
	}
	return first.Params.Meta.ClientInfo.Name
}
