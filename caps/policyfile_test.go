package caps_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
)

func TestParsePolicyPrincipals(t *testing.T) {
	p, err := caps.ParsePolicy([]byte(`{"deny":["call:x"],"principals":{"ann":{"grant":["fs:./a"],"ask":["fs:./b"],"deny":["fs:./a/b"]},"jwt:o'hara":{}}}`))
	if err != nil || len(p.Principals) != 2 || p.Principals["ann"].Grant[0] != "fs:./a" || p.Principals["ann"].Ask[0] != "fs:./b" || p.Principals["ann"].Deny[0] != "fs:./a/b" || len(p.Grant) != 0 || p.Deny[0] != "call:x" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{
		`{"principals":null}`, `{"principals":[]}`, `{"principals":{"ann":null}}`, `{"principals":{"ann":[]}}`, `{"principals":{"":{}}}`, `{"principals":{"a\u0000":{}}}`,
		`{"principals":{"ann":{"grants":[]}}}`, `{"principals":{"ann":{"principals":{}}}}`, `{"principals":{"ann":{},"ann":{}}}`, `{"principals":{"ann":{},"Ann":{}}}`,
		`{"principals":{"ann":{"deny":null}}}`, `{"principals":{"ann":{"deny":[],"deny":["fs:./a"]}}}`, `{"principals":{"ann":{"secrets":{"a":1}}}}`, `{"principals":{"\ud800":{}}}`,
	} {
		if p, err := caps.ParsePolicy([]byte(bad)); err == nil {
			t.Errorf("%s was taken: %+v", bad, p)
		}
	}
}
