package conform

import (
	"context"
	"fmt"
	"math/big"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// wrong is values that aren't of a type.
func wrong(p *caps.Param) []value.Value {
	if len(p.Enum) > 0 {
		return []value.Value{value.Str("no-such-word"), value.NewInt(5)}
	}
	switch p.Type {
	case "string":
		return []value.Value{value.NewInt(5), value.FromSlice([]value.Value{value.Str("a")}), &value.Record{}}
	case "int":
		return []value.Value{value.Str("5"), value.Bool(true)}
	case "bool":
		return []value.Value{value.Str("true"), value.NewInt(1)}
	case "list":
		return []value.Value{value.Str("a"), record(value.Field{Key: "a", Value: value.NewInt(1)})}
	case "record":
		return []value.Value{value.Str("a"), value.FromSlice([]value.Value{value.NewInt(1)})}
	}
	return nil
}

// checkArguments gives arguments that the manifest doesn't allow.
func checkArguments(ctx context.Context, t *trial) {
	h := t.handle(ctx)
	tried := 0
	refused := func(operation string, args value.Value, format string, more ...any) {
		tried++
		if a := t.call(ctx, h, operation, args); !a.refused() {
			t.fail("%s answered with %s", fmt.Sprintf(format, more...), a)
		}
	}
	for i := range t.manifest.Operations {
		o := &t.manifest.Operations[i]
		right := t.world.arguments(o, 0, false)
		for j := range o.Params {
			p := &o.Params[j]
			for _, v := range wrong(p) {
				refused(o.Name, with(right, p.Name, v), "%s with %s of the type %s", o.Name, p.Name, v.Type())
			}
			if !p.Optional {
				refused(o.Name, with(right, p.Name, nil), "%s without %s", o.Name, p.Name)
			}
		}
		refused(o.Name, with(right, "no_such_argument", value.NewInt(1)), "%s with an argument that it doesn't have", o.Name)
		refused(o.Name, value.Str("no record"), "%s with a string for all arguments", o.Name)
	}
	for _, name := range []string{"", t.manifest.Kind, t.manifest.Kind + ".no_such_operation", "other." + strings.TrimPrefix(t.manifest.Operations[0].Name, t.manifest.Kind+".")} {
		refused(name, &value.Record{}, "the operation %q, which it doesn't have,", name)
	}
	t.note("%d tried", tried)
}

// checkHandles uses handles that were given back, and some that never were.
func checkHandles(ctx context.Context, t *trial) {
	one := t.handle(ctx)
	two := t.handle(ctx)
	o := &t.manifest.Operations[0]
	args := t.world.arguments(o, 0, false)
	unknown := func(h uint64) bool {
		a := t.call(ctx, h, o.Name, args)
		return a.value != nil || a.failure == nil && !a.refused()
	}
	for _, h := range []uint64{0, one + two + 1, 1<<63 + 7} {
		if h != one && h != two && unknown(h) {
			t.fail("it takes the handle %d, which it never gave", h)
		}
	}
	limited, cancel := context.WithTimeout(ctx, t.o.Patience)
	defer cancel()
	for range 2 {
		if _, err := t.peer.Close(limited, &pluginv1.CloseRequest{Handle: one}); err != nil {
			t.fail("closing a handle: %v", err)
		}
	}
	if unknown(one) {
		t.fail("it takes a handle that was closed")
	}
	if a := t.call(ctx, two, o.Name, args); a.err != nil {
		t.fail("after another handle was closed one that is open answers with %s", a)
	}
}

// checkUnknownFields says what a later host might.
func checkUnknownFields(ctx context.Context, t *trial) {
	extra := func(m proto.Message) {
		b := protowire.AppendTag(nil, 1000, protowire.BytesType)
		b = protowire.AppendString(b, "of a later version")
		b = protowire.AppendTag(b, 1001, protowire.VarintType)
		m.ProtoReflect().SetUnknown(protowire.AppendVarint(b, 1<<40))
	}
	open := t.world.request("", nil)
	extra(open)
	extra(open.Capability)
	h, err := t.open(ctx, open)
	if err != nil {
		t.stop("a capability with an unknown field can't be opened: %v", err)
	}
	for i := range t.manifest.Operations {
		o := &t.manifest.Operations[i]
		a := t.call(ctx, h, o.Name, t.world.arguments(o, 0, false), func(r *pluginv1.InvokeRequest) {
			extra(r)
			// A value's message, too, may have fields beside its kind.
			r.Arguments = protowire.AppendString(protowire.AppendTag(r.Arguments, 1000, protowire.BytesType), "later")
		})
		if a.err != nil {
			t.fail("%s with unknown fields answered with %s", o.Name, a)
		}
	}
}

// checkHostile gives what nobody means.
func checkHostile(ctx context.Context, t *trial) {
	h := t.handle(ctx)
	deep := value.Value(value.Nil{})
	for range wire.MaxDepth - 10 {
		deep = value.FromSlice([]value.Value{deep})
	}
	huge := value.NewBig(new(big.Int).Lsh(big.NewInt(1), 300_000))
	hostile := map[string]value.Value{
		"a NUL": value.Str("a\x00b"), "escapes of a terminal": value.Str("\x1b]0;x\x07\x1b[2J"), "a mark of direction": value.Str("a\u202eb"),
		"1 MiB of text": value.Str(strings.Repeat("x", 1<<20)), "a deep list": deep, "an integer of 300000 bits": huge,
		"a smallest integer": value.NewInt(-1 << 63), "format verbs": value.Str("%s%n%!d(MISSING)"), "a pair": &value.Pair{First: value.Unit{}, Second: deep},
		"a record with odd keys": record(value.Field{Key: "", Value: value.Unit{}}, value.Field{Key: "__proto__", Value: value.Unit{}}),
	}
	answered := func(what string, a answer) bool {
		if a.value != nil || a.refused() {
			return true
		}
		if status.Code(a.err) == codes.Unavailable {
			if why, gone := t.peer.ending(t.o.Grace); gone {
				t.fail("%s ended the process: %s", what, why)
				return false
			}
		}
		t.fail("%s was answered with %s", what, a)
		return true
	}
	for i := range t.manifest.Operations {
		o := &t.manifest.Operations[i]
		right := t.world.arguments(o, 0, false)
		for _, p := range o.Params {
			for what, v := range hostile {
				if !answered(o.Name+" with "+what+" as "+p.Name, t.call(ctx, h, o.Name, with(right, p.Name, v))) {
					return
				}
			}
		}
	}
	// Bytes that are no value: the plugin's own decoder meets them.
	tag := func(n protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), b)
	}
	endless := []byte{}
	for range 20_000 {
		endless = tag(7, tag(1, endless))
	}
	twice := tag(1, append(tag(1, []byte("a")), tag(2, []byte{0x32, 0})...))
	for what, b := range map[string][]byte{
		"no bytes": nil, "bytes that aren't protobuf": []byte("\xff\xff\xff\xff\xff"), "a value that is cut short": {0x4a, 0x7f, 0x0a},
		"lists nested 20000 deep": endless, "text that isn't UTF-8": tag(5, []byte("\xff\xfe")), "a record with a key twice": tag(9, append(twice, twice...)),
		"a value of two kinds": append(tag(5, []byte("a")), 0x08, 0x02), "a decimal without digits": tag(3, []byte{0x10, 0xff, 0xff, 0xff, 0xff, 0x0f}),
	} {
		a := t.invoke(ctx, &pluginv1.InvokeRequest{Handle: h, Operation: t.manifest.Operations[0].Name, Arguments: b})
		if !answered(what, a) {
			return
		}
		if a.value != nil && what != "no bytes" {
			t.fail("%s gave a value", what)
		}
	}
	if _, err := describe(ctx, t, t.peer); err != nil {
		t.fail("after hostile arguments it doesn't describe itself: %v", err)
	}
}

// checkSizes passes the limits on messages and on outcomes.
func checkSizes(ctx context.Context, t *trial) {
	h := t.handle(ctx)
	limited := 0
	for _, r := range t.requests(func(o *caps.Operation) bool { v, _ := t.manifest.Verb(o.Verb); return v.ReadOnly || v.Idempotent }) {
		whole := t.call(ctx, h, r.operation.Name, r.args)
		if whole.value == nil || whole.size < 3 {
			continue
		}
		limited++
		bound := int64(whole.size / 2)
		cut := t.call(ctx, h, r.operation.Name, r.args, func(q *pluginv1.InvokeRequest) { q.MaxOutcomeBytes = bound })
		switch {
		case cut.value != nil && int64(cut.size) > bound:
			t.fail("%s gave %d bytes where %d were allowed", r.operation.Name, cut.size, bound)
		case cut.value == nil && cut.failure == nil:
			t.fail("%s answered with %s where its outcome is too large", r.operation.Name, cut)
		}
	}
	o := &t.manifest.Operations[0]
	args := with(t.world.arguments(o, 0, false), "no_such_argument", value.Str(strings.Repeat("x", most+1<<20)))
	if a := t.call(ctx, h, o.Name, args); !a.refused() {
		t.fail("a message of %d bytes, where it was told at most %d, was answered with %s", most+1<<20, most, a)
	}
	if a := t.call(ctx, h, o.Name, t.world.arguments(o, 0, false)); a.err != nil {
		t.fail("after a message that was too large %s answers with %s", o.Name, a)
	}
	t.note("%d outcomes bounded", limited)
}
