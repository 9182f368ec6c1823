package proc

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRing: whatever is added, what is given from a place on is what was added there,
// but for what is said to be lost; and no more is kept than there is room for, and
// some.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := ring{most: rapid.IntRange(1, 64).Draw(t, "most")}
		var all []byte
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 200), 1, 30).Draw(t, "adds") {
			part := make([]byte, n)
			for i := range part {
				part[i] = byte(len(all) + i)
			}
			all = append(all, part...)
			r.add(part)
			if r.end() != int64(len(all)) || r.end()-r.begin() != int64(min(r.most, len(all))) || len(r.data) > r.most+r.most/4 {
				t.Fatalf("it keeps %d to %d of %d in %d bytes", r.begin(), r.end(), len(all), len(r.data))
			}
			at := rapid.Int64Range(-1, r.end()+1).Draw(t, "at")
			got, lost := r.from(at)
			from := min(max(at, 0), r.end())
			if lost != max(0, r.begin()-from) || string(got) != string(all[from+lost:]) {
				t.Fatalf("from %d it gives %v, %d lost", at, got, lost)
			}
		}
	})
}
