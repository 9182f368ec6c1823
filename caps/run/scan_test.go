package run

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzScan: where an event is read by hand it is read as package json does.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"tool":"t","version":1,"hash":"abc","declared":[],"capabilities":["fs:/x,ro","k:é"],"source":"{\"add\":[1,2]}\n","description":"x => \"y\"\t\\"}`,
		`{"tool":"t","version":2,"hash":"","from":1,"declared":["a"],"capabilities":[],"bound":[{"tool":"b","version":1,"hash":"x","event":7}],"source":"1","form":"text","description":"","as":"prompt","examples":[{"input":1,"output":2}],"input_schema":{"type":"object","a":["}"]},"facts":{"semantics":1,"normal":"ab","certificate":{"a":[1,"]}"]},"input":{"type":"object"},"output":true}}`,
		`{"tool":"t","tool":"u"}`, `{"Tool":"t"}`, `{"tool" : "t"}`, `{"tool":"\u00e9"}`, `{"tool":"\ud83d\ude00"}`, `{"tool":null,"version":null}`,
		`{"version":1.5}`, `{"version":-3}`, `{"version":1e2}`, `{"declared":null}`, `{"declared":[ "a"]}`, `{"declared":["a" ,"b"]}`, `{"declared":[1]}`,
		`{}`, `[]`, `1`, `"x"`, ` {}`, `{"tool":"a"} `, `{"tool":"a","x":1}`, `{"tool":`, "{\"tool\":\"\xff\"}", `{"facts":1 }`, `{"facts":{"semantics":1,"semantics":2}}`,
		`{"facts":null}`, `{"facts":{"certificate":null}}`, `{"version":1	,"tool":"a"}`, `{"facts":{"a":1 }}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var by, want evolved
		if !by.read(b) {
			return
		}
		if err := json.Unmarshal(b, &want); err != nil || !reflect.DeepEqual(by, want) {
			t.Errorf("%s: %v\n%+v\n%+v", b, err, by, want)
		}
		var have, know facts
		if len(by.Facts) > 0 && have.read(by.Facts) {
			if err := json.Unmarshal(by.Facts, &know); err != nil || !reflect.DeepEqual(have, know) {
				t.Errorf("%s: %v\n%+v\n%+v", by.Facts, err, have, know)
			}
		}
	})
}

// TestScanned: what is written is read by hand.
func TestScanned(t *testing.T) {
	for _, s := range []string{
		`{"tool":"t","version":1,"hash":"abc","declared":[],"capabilities":["fs:/x,ro","k:é"],"source":"{\"add\":[1,2]}\n","description":"x => \"y\"\t\\"}`,
		`{"tool":"t","version":3,"hash":"abc"}`,
	} {
		var d evolved
		if !d.read([]byte(s)) {
			t.Errorf("%s isn't", s)
		}
	}
	var f facts
	if !f.read([]byte(`{"semantics":1,"normal":"ab","certificate":{"a":[1,"]}"]},"input":{"type":"object"},"output":true}`)) {
		t.Error("facts aren't")
	}
}
