package clock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

func open(t *testing.T, timeout time.Duration) *sdk.Handle {
	t.Helper()
	h, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: "utc", Timeout: timeout})
	must.NoError(t, err)
	return h
}

// TestNow: the time lies between two looks at the clock, and both spellings agree.
func TestNow(t *testing.T) {
	h := open(t, 0)
	before := time.Now().UnixMilli()
	v, err := h.Invoke(t.Context(), "clock.now", nil)
	after := time.Now().UnixMilli()
	must.NoError(t, err)
	plugintest.Types(Plugin())(t, "clock.now", v)
	fields := v.(*value.Record).Fields
	ms, _ := fields[1].Value.(value.Int).Int64()
	if ms < before || ms > after {
		t.Errorf("%d isn't from %d to %d", ms, before, after)
	}
	told, err := time.Parse(time.RFC3339, string(fields[0].Value.(value.Str)))
	if err != nil || told.UnixMilli() != ms {
		t.Errorf("%v is %d (%v)", fields[0].Value, ms, err)
	}
}

func TestMomentsAreUTC(t *testing.T) {
	east := time.FixedZone("east", 3*3600)
	for at, want := range map[time.Time]moment{
		time.Date(2026, 1, 31, 15, 0, 0, 0, east):                  {1769860800000, "2026-01-31T12:00:00.000Z"},
		time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC): {-1, "1969-12-31T23:59:59.999Z"},
	} {
		if got := momentOf(at); got != want {
			t.Errorf("%v is %v, not %v", at, got, want)
		}
	}
}

// TestSleep: it waits as long as was asked, ends when it is told to, and begins no
// sleep that would not end in time.
func TestSleep(t *testing.T) {
	h := open(t, time.Minute)
	begun := time.Now()
	if v, err := h.Invoke(t.Context(), "clock.sleep", plugintest.Arguments("ms", 20)); err != nil || v != value.Value(value.NewInt(20)) {
		t.Errorf("%v, %v", v, err)
	}
	if took := time.Since(begun); took < 20*time.Millisecond {
		t.Errorf("20 ms were over after %s", took)
	}
	for _, ms := range []int{-1, 60_000, 1 << 60} {
		if _, err := h.Invoke(t.Context(), "clock.sleep", plugintest.Arguments("ms", ms)); failure(err).Code != "invalid" {
			t.Errorf("%d ms: %v", ms, err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	if _, err := open(t, time.Hour).Invoke(short, "clock.sleep", plugintest.Arguments("ms", 600_000)); failure(err).Code != "invalid" {
		t.Errorf("10 minutes of 4: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, end)
	if _, err := h.Invoke(ended, "clock.sleep", plugintest.Arguments("ms", 59_000)); failure(err).Code != "timeout" {
		t.Errorf("a sleep that was ended: %v", err)
	}
}

func failure(err error) sdk.Failure {
	f, _ := errors.AsType[sdk.Failure](err)
	return f
}

// TestConforms holds the plugin against the contract that all plugins keep.
func TestConforms(t *testing.T) {
	plugintest.Run(t, Plugin(), plugintest.Fixtures{
		Calls: []plugintest.Call{
			{Operation: "clock.now"},
			{Operation: "clock.sleep", Arguments: plugintest.Arguments("ms", 1)},
			{Operation: "clock.sleep", Arguments: plugintest.Arguments("ms", 60_000), Slow: true},
		},
	})
}
