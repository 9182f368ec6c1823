package registry

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// behindOnce is a log in which somebody else comes first, once.
type behindOnce struct {
	Log
	was bool
}

func (b *behindOnce) AppendAll(after uint64, list []Change, read ...string) (uint64, error) {
	if !b.was {
		b.was = true
		return 0, ErrBehind
	}
	return b.Log.AppendAll(after, list, read...)
}

// TestImportJudged: every version that an import makes is judged, once, when all the
// others are there; one that is refused keeps out all.
func TestImportJudged(t *testing.T) {
	tools, err := Decode(strings.NewReader(`{"format":"mcp-pif tools 1","tools":[
		{"name":"a","code":{"code_of":"b"}},{"name":"b","code":2},{"name":"there","code":1},
		{"name":"late","capabilities":["call:*"],"code":{"lam":"n","body":{"call":{"tool":{"var":"n"},"input":2}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, &behindOnce{Log: new(memoryLog)}, nil)
	evolve(t, r, Definition{Name: "there", Code: []byte("1")})
	before := r.Snapshot()
	var judged []string
	judge := func(refused string) Check {
		judged = nil
		return func(candidate *Tool, sees *Snapshot) *fault.Fault {
			judged = append(judged, candidate.Name)
			for _, name := range []string{"a", "b", "late", "there"} {
				if _, ok := sees.Get(name); !ok {
					t.Errorf("%s doesn't see %s", candidate.Name, name)
				}
			}
			if candidate.Name == refused {
				return &fault.Fault{Kind: fault.Refused, Message: "no"}
			}
			return nil
		}
	}
	_, _, _, err = r.ImportChecked(tools, judge("b"))
	if is(errors.Unwrap(err), fault.Refused, "no") != nil || !strings.Contains(err.Error(), `tool "b"`) || r.Snapshot() != before {
		t.Errorf("%v", err)
	}
	added, _, same, err := r.ImportChecked(tools, judge(""))
	if err != nil || added != 3 || same != 1 {
		t.Errorf("%d added, %d the same: %v", added, same, err)
	}
	// It was tried twice: what calls whatever there is has to be judged anew.
	slices.Sort(judged)
	if want := []string{"a", "b", "late", "late"}; !slices.Equal(judged, want) {
		t.Errorf("judged %v, expected %v", judged, want)
	}
}
