package parse

import "github.com/mcp-pif/mcp-pif/core/prim"

// keys knows the operation keys of the table.
var keys = newKeyTable()

// A keyTable finds a name's row without allocation: open addressing over the
// few dozen names of the table.
type keyTable struct {
	slots [1024]struct {
		name string
		key  uint32
	}
}

// The value of a key that is not 0 is its row's id plus 1.
func newKeyTable() *keyTable {
	t := new(keyTable)
	if len(prim.Table) > len(t.slots)/2 {
		panic("parse: the key table is too small")
	}
	for i := range prim.Table {
		if r := &prim.Table[i]; r.Operation() {
			h := hash(r.Name)
			for t.slots[h].key != 0 {
				h = (h + 1) % uint32(len(t.slots))
			}
			t.slots[h].name, t.slots[h].key = r.Name, uint32(i)+1
		}
	}
	return t
}

func hash(s string) uint32 {
	n := len(s)
	h := uint32(n)*0x9e3779b1 ^ uint32(s[0])*0x85ebca6b ^ uint32(s[n-1])*0xc2b2ae35 ^ uint32(s[n/2])*0x27d4eb2f
	return (h ^ h>>15) % 1024
}

func (t *keyTable) find(s string) uint32 {
	if len(s) == 0 {
		return 0
	}
	for h := hash(s); ; h = (h + 1) % 1024 {
		e := &t.slots[h]
		if e.key == 0 || e.name == s {
			return e.key
		}
	}
}
