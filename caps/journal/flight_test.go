package journal

import (
	"encoding/hex"
	"testing"
	"time"
)

// TestFlightWhileSweeping: a blob whose event comes after a sweep has looked stays.
func TestFlightWhileSweeping(t *testing.T) {
	var f flight
	now := time.Unix(1000, 0)
	h := Hash{1}
	f.begin(h, now.UnixMicro(), now)
	f.watch()
	f.watch() // another sweep
	if f.over(h, now.UnixMicro(), now, time.Second) {
		t.Error("its event is to come")
	}
	f.end([]byte(`{"value_blob":{"bytes":1,"sha256":"` + hex.EncodeToString(h[:]) + `"}}`))
	f.unwatch()
	if f.over(h, now.UnixMicro(), now, time.Second) {
		t.Error("its event came after the look")
	}
	f.unwatch()
	if !f.over(h, now.UnixMicro(), now, time.Second) {
		t.Error("no event refers to it any more, and it stays")
	}
}
