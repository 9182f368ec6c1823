package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"
	"time"
)

// An event is one of a stream of server-sent events (WHATWG HTML, section 9.2).
type event struct {
	id    string
	retry time.Duration
	name  string
	data  []byte
}

// maxField is the bytes of a field that isn't data.
const maxField = 1 << 10

// readEvent reads the next event of at most so many bytes; errTooLarge if it has more.
func readEvent(r *bufio.Reader, most int64) (e event, err error) {
	size := int64(0)
	for {
		var line []byte
		for isWhole := false; !isWhole; {
			part, err := r.ReadSlice('\n')
			if isWhole = err == nil; err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return e, err
			}
			if size += int64(len(part)); size > most+maxField {
				return e, errTooLarge
			}
			line = append(line, part...)
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if e.data != nil || e.id != "" || e.retry != 0 {
				e.data = bytes.TrimSuffix(e.data, []byte("\n"))
				return e, nil
			}
			size = 0
			continue
		}
		name, text, _ := bytes.Cut(line, []byte(":"))
		text = bytes.TrimPrefix(text, []byte(" "))
		if string(name) == "data" {
			e.data = append(append(e.data, text...), '\n')
			continue
		}
		if len(text) > maxField {
			return e, errTooLarge
		}
		switch string(name) {
		case "event":
			e.name = string(text)
		case "id":
			e.id = string(text)
		case "retry":
			if n, err := strconv.ParseUint(string(text), 10, 31); err == nil {
				e.retry = time.Duration(n) * time.Millisecond
			}
		}
	}
}
