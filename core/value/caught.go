package value

import "github.com/mcp-pif/mcp-pif/core/fault"

// Caught is what a fault becomes where a program tries: the record
// {"error":{"at","kind","message"}}, with "value" beside them where the
// program raised one.
func Caught(f *fault.Fault) Value {
	fields := []Field{
		{"at", Str(f.At)},
		{"kind", Str(f.Kind)},
		{"message", Str(f.Message)},
	}
	if v, ok := f.Raised.(Value); ok {
		fields = append(fields, Field{"value", v})
	}
	return &Record{Fields: []Field{{"error", &Record{Fields: fields}}}}
}
