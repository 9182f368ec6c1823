package journal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// appendLine writes an event as one line of JSON, with its data byte for byte.
func appendLine(b []byte, e *Event) []byte {
	b = strconv.AppendUint(append(b, `{"seq":`...), e.Seq, 10)
	b = append(append(b, `,"prev":"`...), e.Prev.String()...)
	b = append(append(b, `","hash":"`...), e.Hash.String()...)
	b = e.Time.AppendFormat(append(b, `","time":"`...), time.RFC3339Nano)
	b = AppendString(append(b, `","kind":`...), string(e.Kind))
	if e.Run != "" {
		b = AppendString(append(b, `,"run":`...), e.Run)
	}
	if e.Branch != "" {
		b = AppendString(append(b, `,"branch":`...), e.Branch)
	}
	return append(append(append(b, `,"data":`...), e.Data...), "}\n"...)
}

// Export writes the events that a query selects as lines of JSON, one [Event]
// each, which [VerifyLines] reads. Blobs aren't among them.
func (s *Store) Export(ctx context.Context, w io.Writer, q Query) error {
	out := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	err := s.Each(ctx, q, func(e *Event) error {
		line = appendLine(line[:0], e)
		_, err := out.Write(line)
		return err
	})
	return errors.Join(err, out.Flush())
}

// maxLine bounds a line of an export.
const maxLine = 4*MaxData + 4096

// VerifyLines checks what [Store.Export] wrote, as [Store.Verify] checks a
// store; only blobs aren't there. A line must be written exactly as Export does,
// so that no other reader can see something else in it. What was exported by a
// query that leaves events out has breaks where they are. The signature of a
// checkpoint is checked with the key that it names: compare [Cut.Key] with
// [Store.Key]. The error is the report's, or that of reading.
func VerifyLines(r io.Reader, anchors ...Anchor) (Report, error) {
	w := newWalk(anchors)
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; in.Scan(); n++ {
		var e Event
		err := json.Unmarshal(in.Bytes(), &e)
		e.Time = e.Time.UTC().Truncate(time.Microsecond)
		if err == nil && !bytes.Equal(bytes.TrimSuffix(appendLine(nil, &e), []byte("\n")), in.Bytes()) {
			err = errors.New("it is not written as it was exported")
		}
		if err != nil {
			w.r.Breaks = note(w.r.Breaks, &Break{w.last.Seq + 1, fmt.Sprintf("line %d: %v", n, err)})
			continue
		}
		w.next(&e)
	}
	if err := in.Err(); err != nil {
		return w.end(), fmt.Errorf("reading line %d: %w", w.r.Events+1, err)
	}
	report := w.end()
	return report, report.Err()
}
