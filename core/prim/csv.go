package prim

import (
	csvreader "encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/long"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// csv is the rows of comma-separated values (RFC 4180).
var csv = []Row{
	{
		Name: "parse_csv", Group: "formats", Shape: Array, Min: 1, Params: []Param{{"s", KindString}, {"separator", KindString}}, Result: KindList,
		Doc: "reads comma-separated values as a list of records of strings by the names in the first line; another separator can be given.",
		Examples: []Example{
			{Code: `{"parse_csv":["name,qty\nnut,3\n\"bolt, long\",4\n"]}`, Want: `[{"name":"nut","qty":"3"},{"name":"bolt, long","qty":"4"}]`, Steps: 2},
			{Code: `{"parse_csv":["a,b\r\n1,\"x\r\ny\"\r\n"]}`, Want: `[{"a":"1","b":"x\r\ny"}]`},
			{Code: `{"parse_csv":["a;b\n1;2",";"]}`, Want: `[{"a":"1","b":"2"}]`},
			{Code: `{"get":[{"try":{"parse_csv":["a,b\n1\n"]}},"ok","no CSV"]}`, Want: `"no CSV"`},
			{Code: `{"parse_csv":[["a,b"]]}`, Fault: fault.TypeError},
		},
		Gives: listOf(&Type{Kinds: KindRecord, Rest: typeString}),
		Grows: &Growth{Items: Bound{some(1, bytesOf(0)), some(1)}, Bytes: Bound{some(1, bytesOf(0))}},
		Also:  []string{"csv.reader", "csv.dictreader", "csv.parse", "papa.parse", "csv", "read_csv", "csv_parse", "from_csv", "csv_reader", "dictreader", "parse_tsv", "read_tsv"},
		Cost:  func(args []value.Value) uint64 { return stringCost(args) + ItemsCost(csvCells(args)) },
		Size:  func(args []value.Value) int64 { return int64(len(args[0].(value.Str))) + 64*int64(csvCells(args)) },
		Walk:  parseCSV,
	},
	{
		Name: "to_csv", Group: "formats", Shape: Array, Min: 1, Params: []Param{{"records", KindList}, {"columns", KindList}}, Result: KindString,
		Doc: "writes a list of records as comma-separated values under a line of their keys, or of columns (a list of keys) in their order if it is given; null and what a record doesn't have are empty.",
		Examples: []Example{
			{Code: `{"to_csv":[[{"record":{"qty":3,"name":"nut"}},{"record":{"qty":4,"name":"bolt, long"}}]]}`, Want: `"name,qty\nnut,3\n\"bolt, long\",4\n"`},
			{Code: `{"to_csv":[[{"record":{"qty":3,"name":"nut"}}],["qty","name"]]}`, Want: `"qty,name\n3,nut\n"`},
			{Code: `{"parse_csv":[{"to_csv":[[{"record":{"a":""}},{"record":{"a":"x"}}]]}]}`, Want: `[{"a":""},{"a":"x"}]`},
			{Code: `{"to_csv":[[["a","b"]]]}`, Fault: fault.TypeError},
		},
		Items: []Kinds{KindRecord, KindString},
		Also:  []string{"csv.writer", "csv.dictwriter", "csv.stringify", "papa.unparse", "csv_stringify", "write_csv", "csv_write", "format_csv", "csv_writer", "to_tsv"},
		Walk:  toCSV,
	},
}

// csvCells bounds the cells and lines of a text.
func csvCells(args []value.Value) int {
	s, sep := string(args[0].(value.Str)), ","
	if len(args) > 1 && args[1].(value.Str) != "" {
		sep = string(args[1].(value.Str))
	}
	return 1 + strings.Count(s, sep) + 2*strings.Count(s, "\n")
}

// A watchedReader tells of what is read.
type watchedReader struct {
	io.Reader
	m *Meter
}

func (r watchedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.m.look(n / bytesPerPart * 4)
	return n, err
}

// keepCRLF returns s with one more \r in each line end within quotes, which the reader
// takes away.
func keepCRLF(s string, m *Meter) string {
	if !strings.Contains(s, "\r\n") || !strings.Contains(s, `"`) {
		return s
	}
	var b strings.Builder
	quoted := false
	for line := range strings.SplitAfterSeq(s, "\r\n") {
		m.look(1 + len(line)/bytesPerPart)
		quoted = quoted != (strings.Count(line, `"`)%2 == 1)
		if text, ends := strings.CutSuffix(line, "\r\n"); quoted && ends {
			b.WriteString(text + "\r\r\n")
		} else {
			b.WriteString(line)
		}
	}
	return b.String()
}

func parseCSV(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
	s := keepCRLF(strings.TrimPrefix(string(args[0].(value.Str)), "\ufeff"), m)
	r := csvreader.NewReader(watchedReader{strings.NewReader(s), m})
	if len(args) > 1 {
		sep := string(args[1].(value.Str))
		c, n := utf8.DecodeRuneInString(sep)
		if n == 0 || n < len(sep) || c == '"' || c == '\r' || c == '\n' {
			return nil, outOfRange("parse_csv: the separator is one character, not "+quoted(sep), "one character, neither a quote nor a line end", quoted(sep), `Write it as in {"parse_csv":[S,";"]}.`)
		}
		r.Comma = c
	}
	names, err := r.Read()
	if err == io.EOF {
		return value.Nil{}, nil
	}
	if err != nil {
		return nil, badCSV(err)
	}
	order := make([]int, len(names))
	for i := range names {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		m.look(1)
		return strings.Compare(names[a], names[b])
	})
	for k := 1; k < len(order); k++ {
		if names[order[k]] == names[order[k-1]] {
			return nil, badCSV(fmt.Errorf("the first line has the name %s twice", quoted(names[order[k]])))
		}
	}
	var all []value.Value
	for {
		line, err := r.Read()
		if err == io.EOF {
			return value.FromSlice(all), nil
		}
		if err != nil {
			f := badCSV(err)
			if errors.Is(err, csvreader.ErrFieldCount) {
				at, _ := r.FieldPos(0)
				f.Got = fmt.Sprintf("%d values and %d names", len(line), len(names))
				f.Message = fmt.Sprintf("parse_csv: line %d has %d values, and the first line has %d names", at, len(line), len(names))
				f.Hint = `Quote a value that has a comma in it, "a, b"; take lines of different lengths apart by {"map":[{"lam":"l","body":{"split":[{"var":"l"},","]}},{"lines":S}]}.`
			}
			return nil, f
		}
		m.look(len(line))
		fields := make([]value.Field, len(line))
		for k, i := range order {
			fields[k] = value.Field{Key: names[i], Value: value.Str(line[i])}
		}
		all = append(all, &value.Record{Fields: fields})
	}
}

// badCSV returns the fault of what encoding/csv doesn't read.
func badCSV(err error) *fault.Fault {
	f := &fault.Fault{
		Kind: fault.ParseError, Message: "parse_csv: " + err.Error(), Expected: "lines with as many values as the first has names", Got: err.Error(),
		Hint: `Quote a value that has a comma, a quote or a line end in it, "a ""b"", c"; name another separator as in {"parse_csv":[S,";"]}.`,
	}
	if bad, ok := errors.AsType[*csvreader.ParseError](err); ok {
		f.Message = fmt.Sprintf("parse_csv: at line %d, column %d: %s", bad.Line, bad.Column, bad.Err)
		f.Got = bad.Err.Error()
	}
	return f
}

func toCSV(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
	w := csvWriter{m: m, out: textBuffer{hold: m.Hold}}
	var columns []string
	if len(args) > 1 {
		for column := range items(args[1]) {
			name, ok := value.Force(column).(value.Str)
			if !ok {
				return nil, badItem("to_csv", len(columns), "a string where it names the columns", column)
			}
			columns = append(columns, string(name))
			if !m.Spend(1) {
				return nil, OutOfFuel(m.Left)
			}
		}
	} else {
		seen := map[string]bool{}
		i := 0
		for item := range items(args[0]) {
			r, ok := value.Force(item).(*value.Record)
			if !ok {
				return nil, notRecord(i, item)
			}
			i++
			if !m.Spend(CSVRecordCost(len(r.Fields))) {
				return nil, OutOfFuel(m.Left)
			}
			for _, f := range r.Fields {
				if !seen[f.Key] {
					if f := m.hold(64); f != nil {
						return nil, f
					}
					seen[f.Key], columns = true, append(columns, f.Key)
				}
			}
		}
		slices.SortFunc(columns, func(a, b string) int {
			m.look(1 + min(len(a), len(b))/bytesPerPart)
			return strings.Compare(a, b)
		})
	}
	w.lone = len(columns) == 1
	for k, name := range columns {
		w.cell(k, name)
	}
	w.text("\n")
	i := 0
	for item := range items(args[0]) {
		r, ok := value.Force(item).(*value.Record)
		if !ok {
			return nil, notRecord(i, item)
		}
		for k, name := range columns {
			if at, has := find(r, name); has {
				w.value(k, name, i, value.Force(r.Fields[at].Value))
			} else {
				w.cell(k, "")
			}
			if w.fault != nil {
				return nil, w.fault
			}
		}
		i++
		w.text("\n")
	}
	if w.fault != nil {
		return nil, w.fault
	}
	s, f := w.out.text()
	return value.Str(s), f
}

func notRecord(i int, item value.Value) *fault.Fault {
	f := badItem("to_csv", i, "a record", item)
	f.Hint = `Write it as in {"to_csv":[[{"record":{"name":"nut","qty":3}}],["name","qty"]]}.`
	return f
}

// A csvWriter writes lines; after a fault nothing.
type csvWriter struct {
	m     *Meter
	out   textBuffer
	fault *fault.Fault
	spare uint64 // bytes that weren't charged yet
	lone  bool   // there is one column, so that an empty value needs quotes
}

// CSVCost returns what writing so many bytes by so many writes takes.
func CSVCost(bytes, writes int) uint64 { return uint64(bytes+32*writes) / (8 * perStep) }

// CSVRecordCost returns what finding the keys of a record takes.
func CSVRecordCost(fields int) uint64 { return uint64(1 + fields/4) }

func (w *csvWriter) text(s string) {
	if w.fault != nil {
		return
	}
	w.spare += uint64(len(s)) + 32
	if n := w.spare / (8 * perStep); n > 0 {
		if w.spare %= 8 * perStep; !w.m.Spend(n) {
			w.fault = OutOfFuel(w.m.Left)
			return
		}
	}
	if w.fault = w.m.room(int64(w.out.n + len(s))); w.fault == nil {
		w.fault = w.out.write(s)
	}
}

// cell writes value k of a line.
func (w *csvWriter) cell(k int, s string) {
	if k > 0 {
		w.text(",")
	}
	if !(w.lone && s == "") && !strings.ContainsAny(s, ",\"\r\n") && !strings.HasPrefix(s, " ") && !strings.HasPrefix(s, "\t") && !strings.HasPrefix(s, "\ufeff") {
		w.text(s)
		return
	}
	w.text(`"`)
	for s != "" && w.fault == nil {
		n := min(len(s), searchPiece)
		w.text(strings.ReplaceAll(s[:n], `"`, `""`))
		s = s[n:]
	}
	w.text(`"`)
}

// value writes value k of line i, which is that of the column name.
func (w *csvWriter) value(k int, name string, i int, v value.Value) {
	switch v := v.(type) {
	case value.Str:
		w.cell(k, string(v))
	case value.Unit:
		w.cell(k, "")
	case value.Bool:
		w.cell(k, fmt.Sprint(bool(v)))
	case value.Dec:
		w.cell(k, v.String())
	case value.Int:
		if !w.m.Spend(DigitsCost(20 * v.Words())) {
			w.fault = OutOfFuel(w.m.Left)
			return
		}
		w.cell(k, long.Text(v.Big(), w.m.looks()))
	default:
		w.fault = badItem("to_csv", i, "a record of strings, numbers, truth values and null", v)
		w.fault.Message = fmt.Sprintf("to_csv: %s of record %d is %s", quoted(name), i, Describe(v))
		w.fault.Hint = `Make a string of the value first: {"to_text":V}, or {"join":[V," "]} of a list of strings.`
	}
}
