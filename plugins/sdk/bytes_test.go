package sdk

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/value"
)

// Values that a plugin keeps as bytes come back as they were; what no value is, or
// too large, is a failure.
func TestEncodeAndDecode(t *testing.T) {
	half, _ := value.ParseDec("1.50")
	v := &value.Record{Fields: []value.Field{
		{Key: "big", Value: value.NewBig(new(big.Int).Lsh(big.NewInt(1), 200))}, {Key: "dec", Value: half},
		{Key: "pair", Value: &value.Pair{First: value.Unit{}, Second: value.FromSlice([]value.Value{value.Str("é")})}},
	}}
	b, err := Encode(v, 1000)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Encode(back, len(b)); err != nil || string(again) != string(b) {
		t.Errorf("%v came back as %v (%v)", v, back, err)
	}
	for code, refused := range map[string]value.Value{"too_large": value.Str(strings.Repeat("x", 1000)), "invalid": &value.Closure{}} {
		_, err := Encode(refused, 1000)
		if f, ok := errors.AsType[Failure](err); !ok || f.Code != code {
			t.Errorf("%s: %v", code, err)
		}
	}
	for _, bad := range [][]byte{b[:len(b)-1], []byte("\xff\xff"), nil} {
		if v, err := Decode(bad); err == nil {
			t.Errorf("%q is %v", bad, v)
		}
	}
}
