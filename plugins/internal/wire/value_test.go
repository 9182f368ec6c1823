package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

const plenty = 1 << 30

// code reads a term for tests.
func code(t interface{ Fatal(...any) }, src string) *value.Code {
	parsed, f := parse.Code([]byte(src), parse.Options{})
	if f != nil {
		t.Fatal(f)
	}
	return &value.Code{Term: parsed.Term, Source: parsed.Source}
}

// show writes a value so that two that differ in anything read differently.
func show(v value.Value) string {
	var b strings.Builder
	showTo(&b, v)
	return b.String()
}

func showTo(b *strings.Builder, v value.Value) {
	switch v := v.(type) {
	case value.Int:
		if _, small := v.Int64(); small {
			b.WriteString("i")
		} else {
			b.WriteString("I")
		}
		b.WriteString(v.String())
	case value.Dec:
		b.WriteString("d" + v.String())
		b.WriteString("e" + value.NewInt(int64(v.Scale())).String())
	case value.Bool:
		if v {
			b.WriteString("true")
		} else {
			b.WriteString("false")
		}
	case value.Str:
		b.Write(text.AppendString(nil, string(v)))
	case value.Unit:
		b.WriteString("null")
	case *value.Code:
		b.WriteString("'")
		b.Write(text.Canonical(v.Term))
	case *value.Pair:
		b.WriteString("(")
		showTo(b, v.First)
		b.WriteString(";")
		showTo(b, v.Second)
		b.WriteString(")")
	case *value.Record:
		b.WriteString("{")
		for _, f := range v.Fields {
			b.Write(text.AppendString(nil, f.Key))
			b.WriteString(":")
			showTo(b, f.Value)
			b.WriteString(";")
		}
		b.WriteString("}")
	default:
		items, ok := value.Slice(v)
		if !ok {
			b.WriteString("?")
			return
		}
		b.WriteString("[")
		for _, item := range items {
			showTo(b, item)
			b.WriteString(";")
		}
		b.WriteString("]")
	}
}

// values draws values of all kinds.
func values() *rapid.Generator[value.Value] {
	var deep func(levels int) *rapid.Generator[value.Value]
	integers := rapid.Custom(func(t *rapid.T) *big.Int {
		n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "magnitude"))
		if rapid.Bool().Draw(t, "negative") {
			n.Neg(n)
		}
		return n
	})
	deep = func(levels int) *rapid.Generator[value.Value] {
		return rapid.Custom(func(t *rapid.T) value.Value {
			most := 10
			if levels == 0 {
				most = 6
			}
			switch rapid.IntRange(0, most).Draw(t, "kind") {
			case 0:
				return value.NewInt(rapid.Int64().Draw(t, "int"))
			case 1:
				return value.NewBig(integers.Draw(t, "big"))
			case 2:
				d, _ := value.NewDec(integers.Draw(t, "unscaled"), rapid.IntRange(0, value.MaxDigits).Draw(t, "scale"))
				return d
			case 3:
				return value.Bool(rapid.Bool().Draw(t, "bool"))
			case 4:
				return value.Str(rapid.String().Draw(t, "text"))
			case 5:
				return value.Unit{}
			case 6:
				return code(t, rapid.SampledFrom([]string{
					`{"lam":"x","body":{"mul":[{"var":"x"},2]}}`, `[1,"é",null,{"dec":"1.50"}]`, `{"quote":{"nil":true}}`, `{"fs.read":"a"}`,
				}).Draw(t, "code"))
			case 7:
				return &value.Pair{First: deep(levels-1).Draw(t, "first"), Second: deep(levels-1).Draw(t, "second")}
			case 8:
				keys := rapid.SliceOfNDistinct(rapid.String(), 0, 4, rapid.ID[string]).Draw(t, "keys")
				slices.Sort(keys)
				r := &value.Record{}
				for _, key := range keys {
					r.Fields = append(r.Fields, value.Field{Key: key, Value: deep(levels-1).Draw(t, "value")})
				}
				return r
			}
			return value.FromSlice(rapid.SliceOfN(deep(levels-1), 0, 5).Draw(t, "items"))
		})
	}
	return deep(4)
}

func TestValueComesBackExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values().Draw(t, "value")
		b, err := EncodeValue(v, plenty)
		must.NoError(t, err)
		back, err := DecodeValue(b)
		must.NoError(t, err)
		if show(back) != show(v) {
			t.Fatalf("%s came back as %s", show(v), show(back))
		}
	})
}

// What is written by hand is what protobuf's own code writes for the contract.
func TestValueIsTheMessageOfTheContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := EncodeValue(values().Draw(t, "value"), plenty)
		must.NoError(t, err)
		m := &pluginv1.Value{}
		must.NoError(t, proto.Unmarshal(b, m))
		if len(m.ProtoReflect().GetUnknown()) > 0 || m.Kind == nil {
			t.Fatalf("%x is read as %v", b, m)
		}
		again, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		must.NoError(t, err)
		if !bytes.Equal(again, b) {
			t.Fatalf("%x, protobuf writes %x", b, again)
		}
	})
}

func TestValueCrossesAtItsLimits(t *testing.T) {
	nested := func(levels int) value.Value {
		var v value.Value = value.Unit{}
		for range levels {
			v = &value.Record{Fields: []value.Field{{Key: "k", Value: v}}}
		}
		return v
	}
	list := func(n int) value.Value { return value.FromSlice(slices.Repeat([]value.Value{value.Bool(true)}, n)) }
	shared := func(levels int) value.Value {
		var v value.Value = value.Unit{}
		for range levels {
			v = &value.Pair{First: v, Second: v}
		}
		return v
	}
	for _, c := range []struct {
		name string
		v    value.Value
		want error
	}{
		{"as deep as may be", nested(MaxDepth), nil},
		{"too deep", nested(MaxDepth + 1), ErrTooDeep},
		{"as many as may be", list(MaxNodes - 1), nil},
		{"too many", list(MaxNodes), ErrTooMany},
		{"parts shared 2^60 times", shared(60), ErrTooMany},
		{"nothing", nil, errMissing},
		{"half a list", &value.Cons{Head: value.Unit{}}, errMissing},
		{"a list that ends in a text", &value.Cons{Head: value.Unit{}, Tail: value.Str("a")}, errMissing},
		{"a text that is no UTF-8", value.Str("\xff"), errText},
		{"a key that is no UTF-8", &value.Record{Fields: []value.Field{{Key: "\xff", Value: value.Unit{}}}}, errText},
		{"a key twice", &value.Record{Fields: []value.Field{{Key: "a", Value: value.Unit{}}, {Key: "a", Value: value.Unit{}}}}, errTwice},
		{"half a pair", &value.Pair{First: value.Unit{}}, errMissing},
		{"a function", &value.Pair{First: value.Unit{}, Second: &value.Closure{}}, ErrFunction},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := EncodeValue(c.v, plenty)
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if err != nil {
				return
			}
			back, err := DecodeValue(b)
			if err != nil || show(back) != show(c.v) {
				t.Fatalf("it didn't come back: %v", err)
			}
			if err := proto.Unmarshal(b, &pluginv1.Value{}); err != nil {
				t.Fatalf("protobuf doesn't read it: %v", err)
			}
		})
	}
	if _, err := EncodeValue(value.Str("12345"), 6); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("7 bytes in 6: %v", err)
	}
	if _, err := EncodeValue(value.Str("12345"), 7); err != nil {
		t.Fatalf("7 bytes in 7: %v", err)
	}
}

func TestValueHostileBytesAreRefused(t *testing.T) {
	field := func(number protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
	}
	varint := func(number protowire.Number, n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), n)
	}
	unit := field(kindUnit, nil)
	deep := func(levels int) []byte {
		b := unit
		for range levels {
			b = field(kindList, field(listItems, b))
		}
		return b
	}
	digits := slices.Repeat([]byte{0xff}, 1<<20)
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, ErrMalformed},
		{"only what is unknown", field(99, []byte("x")), ErrMalformed},
		{"two kinds", slices.Concat(unit, varint(kindBoolean, 1)), ErrMalformed},
		{"a kind twice", slices.Concat(unit, unit), ErrMalformed},
		{"an integer as bytes", field(kindInteger, []byte{1}), ErrMalformed},
		{"a text as a number", varint(kindText, 1), ErrMalformed},
		{"text that isn't UTF-8", field(kindText, []byte{0xff}), ErrMalformed},
		{"a key that isn't UTF-8", field(kindRecord, field(recordFields, slices.Concat(field(fieldKey, []byte{0xc0}), field(fieldValue, unit)))), ErrMalformed},
		{"a field without a value", field(kindRecord, field(recordFields, field(fieldKey, []byte("k")))), ErrMalformed},
		{"a key twice", field(kindRecord, slices.Repeat(field(recordFields, field(fieldValue, unit)), 2)), ErrMalformed},
		{"half a pair", field(kindPair, field(pairFirst, unit)), ErrMalformed},
		{"three parts of a pair", field(kindPair, slices.Concat(field(pairFirst, unit), field(pairSecond, unit), field(pairFirst, unit))), ErrMalformed},
		{"an item without a kind", field(kindList, field(listItems, nil)), ErrMalformed},
		{"a length past the end", []byte{kindText<<3 | 2, 0xff, 0xff, 0xff, 0x7f}, ErrMalformed},
		{"a group", []byte{11<<3 | 3, 11<<3 | 4}, ErrMalformed},
		{"a field number of 0", []byte{0, 0}, ErrMalformed},
		{"a huge scale", field(kindDecimal, varint(decimalFrac, 1<<40)), ErrMalformed},
		{"a decimal of a million digits", field(kindDecimal, field(decimalUnscaled, field(bigMagnitude, digits))), ErrMalformed},
		{"code that is none", field(kindCode, []byte(`{"lam":1}`)), ErrMalformed},
		{"too much code", field(kindCode, bytes.Repeat([]byte{' '}, MaxCode+1)), ErrTooLarge},
		{"too deep", deep(MaxDepth + 1), ErrTooDeep},
		{"far too deep", deep(20_000), ErrTooDeep},
		{"too many", field(kindList, bytes.Repeat(field(listItems, unit), MaxNodes)), ErrTooMany},
	} {
		t.Run(c.name, func(t *testing.T) {
			if v, err := DecodeValue(c.b); !errors.Is(err, c.want) {
				t.Fatalf("gave %T, %v; want %v", v, err, c.want)
			}
		})
	}
}

func TestValueToleratesWhatIsHarmless(t *testing.T) {
	entry := func(key string, n int64) *pluginv1.Field {
		return &pluginv1.Field{Key: key, Value: &pluginv1.Value{Kind: &pluginv1.Value_Integer{Integer: n}}}
	}
	for _, c := range []struct {
		name, want string
		m          *pluginv1.Value
		more       []byte
	}{
		{"an unsorted record", `{"a":i1;"b":i2;}`, &pluginv1.Value{Kind: &pluginv1.Value_Record{Record: &pluginv1.Record{Fields: []*pluginv1.Field{entry("b", 2), entry("a", 1)}}}}, nil},
		{"a small integer among the big", "i7", &pluginv1.Value{Kind: &pluginv1.Value_Big{Big: &pluginv1.Big{Magnitude: []byte{0, 0, 7}}}}, nil},
		{"a negative nothing", "i0", &pluginv1.Value{Kind: &pluginv1.Value_Big{Big: &pluginv1.Big{Negative: true}}}, nil},
		{"an unknown field", "true", &pluginv1.Value{Kind: &pluginv1.Value_Boolean{Boolean: true}}, protowire.AppendFixed64(protowire.AppendTag(nil, 100, protowire.Fixed64Type), 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := proto.Marshal(c.m)
			must.NoError(t, err)
			v, err := DecodeValue(append(b, c.more...))
			must.NoError(t, err)
			if show(v) != c.want {
				t.Fatalf("%s, want %s", show(v), c.want)
			}
		})
	}
}

// FuzzValue holds decoding to its word for any bytes: an error, or a value that
// crosses again and comes back the same.
func FuzzValue(f *testing.F) {
	for _, v := range []value.Value{
		value.Unit{}, value.NewInt(-5), value.NewBig(new(big.Int).Lsh(big.NewInt(1), 100)), value.Str("é"), value.Nil{},
		value.FromSlice([]value.Value{value.Bool(true), &value.Pair{First: value.Unit{}, Second: value.Str("")}}),
		&value.Record{Fields: []value.Field{{Key: "a", Value: value.Nil{}}, {Key: "b", Value: value.Unit{}}}},
		code(f, `{"lam":"x","body":{"var":"x"}}`),
	} {
		b, err := EncodeValue(v, plenty)
		must.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		given := slices.Clone(b)
		v, err := DecodeValue(b)
		// As messages they may be anything; reading them must not panic.
		_ = (&Request{}).read(string(b))
		_ = (&Response{}).read(string(b))
		_ = (&Event{}).read(string(b))
		if !bytes.Equal(b, given) {
			t.Fatal("decoding changed the bytes")
		}
		if err != nil {
			return
		}
		again, err := EncodeValue(v, plenty)
		if err != nil {
			t.Fatalf("it doesn't cross again: %v", err)
		}
		back, err := DecodeValue(again)
		must.NoError(t, err)
		if show(back) != show(v) {
			t.Fatalf("%s came back as %s", show(v), show(back))
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	v := sample()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := EncodeValue(v, plenty); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	encoded, err := EncodeValue(sample(), plenty)
	must.NoError(b, err)
	b.SetBytes(int64(len(encoded)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeValue(encoded); err != nil {
			b.Fatal(err)
		}
	}
}

// sample is a list of a thousand records.
func sample() value.Value {
	row := &value.Record{Fields: []value.Field{
		{Key: "kind", Value: value.Str("file")}, {Key: "path", Value: value.Str("a/b/c.txt")}, {Key: "size", Value: value.NewInt(12345)},
	}}
	return value.FromSlice(slices.Repeat([]value.Value{row}, 1000))
}

// What a plugin asks of the system comes across, and only in words that a person
// can read as what they are.
func TestPrivileges(t *testing.T) {
	m := right()
	m.Privileges = []string{"network", "processes", "files:/etc/ssl/certs", "state"}
	back, err := FromManifest(ToManifest(m))
	must.NoError(t, err)
	if strings.Join(back.Privileges, " ") != "network processes files:/etc/ssl/certs state" || !SameManifest(m, back) {
		t.Errorf("%v", back.Privileges)
	}
	back.Privileges = back.Privileges[:2]
	if SameManifest(m, back) {
		t.Error("a privilege less is the same manifest")
	}
	for _, bad := range []string{"root", "", "Network", "files:", "files:/", "files:etc", "files:/etc/../root", "files:/etc/", "files:/a\x1bb", "files:/a\u202eb", "files:/" + strings.Repeat("x", 2000)} {
		m.Privileges = []string{bad}
		if CheckManifest(m) == nil {
			t.Errorf("%.40q was taken", bad)
		}
	}
	for _, p := range []string{PrivilegeVariable, PrivilegeCommand} {
		m.Algebra = caps.Exact
		if m.Privileges = []string{p}; CheckManifest(m) != nil {
			t.Errorf("the %s that an exact scope names was refused", p)
		}
		m.Algebra = caps.Segments
		if CheckManifest(m) == nil {
			t.Errorf("the %s that a pattern names was taken", p)
		}
	}
	m.Privileges = []string{"network", "network"}
	if CheckManifest(m) == nil {
		t.Error("one twice was taken")
	}
}

func TestFaultKinds(t *testing.T) {
	plugin := func(code string) error {
		return PluginFailure{&pluginv1.Failure{Code: code, Message: "m"}}
	}
	// The words of gRPC name sockets.
	transport := func(c codes.Code) error {
		return status.Error(c, "dial unix /run/secret/plugin.sock: it went wrong")
	}
	for _, c := range []struct {
		name         string
		err          error
		once, repeat fault.Kind // not repeatable, repeatable
	}{
		{"not found", plugin("not_found"), fault.EffectFailed, fault.EffectFailed},
		{"denied", plugin("denied"), fault.Denied, fault.Denied},
		{"conflict", plugin("conflict"), fault.Conflict, fault.Conflict},
		{"timeout", plugin("timeout"), fault.OutcomeUnknown, fault.EffectFailed},
		{"a word of the plugin's own", plugin("internal"), fault.EffectFailed, fault.EffectFailed},
		{"unavailable", transport(codes.Unavailable), fault.OutcomeUnknown, fault.EffectFailed},
		{"exhausted", transport(codes.ResourceExhausted), fault.OutcomeUnknown, fault.EffectFailed},
		{"unimplemented", transport(codes.Unimplemented), fault.EffectFailed, fault.EffectFailed},
		{"internal", transport(codes.Internal), fault.OutcomeUnknown, fault.EffectFailed},
		{"deadline", transport(codes.DeadlineExceeded), fault.OutcomeUnknown, fault.EffectFailed},
		{"cancelled", context.Canceled, fault.OutcomeUnknown, fault.EffectFailed},
		{"stopped", ErrStopped, fault.OutcomeUnknown, fault.EffectFailed},
		{"a broken answer", fmt.Errorf("x: %w", ErrMalformed), fault.OutcomeUnknown, fault.EffectFailed},
		{"too large", ErrTooLarge, fault.OutcomeUnknown, fault.EffectFailed},
		{"not sent", NotSent{"no plugin"}, fault.EffectFailed, fault.EffectFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			for repeatable, want := range map[bool]fault.Kind{false: c.once, true: c.repeat} {
				f := Fault(c.err, Attempt{Operation: "fs.read", Repeatable: repeatable, Most: 10})
				if f.Kind != want {
					t.Errorf("repeatable %v: %s, want %s", repeatable, f.Kind, want)
				}
				if !strings.HasPrefix(f.Message, "fs.read: ") || strings.Contains(f.Error(), "/run") {
					t.Errorf("message %q", f.Error())
				}
			}
		})
	}
}

func TestFaultTextsOfPluginsAreBounded(t *testing.T) {
	f := Fault(PluginFailure{&pluginv1.Failure{
		Code: "not_found", Message: "no\n\x1b[31m \u202e/home/someone/x\xff" + strings.Repeat("y", 1<<20), Hint: "h\ni",
	}}, Attempt{Operation: "fs.read", Clean: func(s string) string { return strings.ReplaceAll(s, "/home/someone", "docs") }})
	if len(f.Message) > 1100 || strings.ContainsAny(f.Message, "\n\x1b\u202e") || !utf8.ValidString(f.Message) || !strings.Contains(f.Message, "docs/x") {
		t.Fatalf("message of %d bytes: %.100q", len(f.Message), f.Message)
	}
	if f.Hint != "h i" {
		t.Fatalf("hint %q", f.Hint)
	}
}
