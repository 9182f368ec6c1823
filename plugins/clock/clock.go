// Package clock is the plugin of the kind clock: what time it is, and waiting. It
// exports [Plugin].
//
// Programs of PIF have no clock: what they get of one is an outcome in the
// journal, so that a replay sees the same time and doesn't wait. A capability's
// scope is a name of the operator's, such as clock:utc; it means nothing, and
// keeps limits apart. The time is the machine's, in whole milliseconds; it may go
// back when the machine's is set.
//
// A sleep is part of its call: one that the capability's timeout, or what is left
// of the run's time, has no room for is refused at once.
package clock

import (
	"context"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// Plugin returns the plugin of the kind clock.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Kind:    "clock",
		Version: "1.0.0",
		Doc:     "tells the time, and waits",
		Scope:   sdk.Exact,
		Open:    func(_ context.Context, c sdk.Capability) (any, error) { return limit(c.Timeout), nil },
		Operations: []sdk.Operation{
			// A second time tells another time.
			sdk.Op("now", "tells what time it is, in UTC", sdk.Flags{ReadOnly: true}, now),
			sdk.Op("sleep", "waits so many milliseconds, and gives that number", sdk.Flags{ReadOnly: true}, sleep),
		},
	}
}

// A limit is how long a call may take; 0: the host knows.
type limit time.Duration

type moment struct {
	UnixMS  int64  `pif:"unix_ms" doc:"milliseconds since 1970"`
	RFC3339 string `pif:"rfc3339" doc:"like 2026-01-31T12:00:00.000Z"`
}

// layout has milliseconds always, so that texts sort as times do.
const layout = "2006-01-02T15:04:05.000Z"

func now(context.Context, limit, struct{}) (moment, error) { return momentOf(time.Now()), nil }

func momentOf(t time.Time) moment {
	return moment{t.UnixMilli(), time.UnixMilli(t.UnixMilli()).UTC().Format(layout)}
}

type sleepArgs struct {
	MS int64 `pif:"ms,main" doc:"milliseconds, no more than a call may take"`
}

func sleep(ctx context.Context, most limit, a sleepArgs) (waited int64, err error) {
	if a.MS < 0 {
		return 0, sdk.Fail("invalid", "ms must not be negative, got %d", a.MS)
	}
	if most > 0 && a.MS >= time.Duration(most).Milliseconds() {
		return 0, sdk.Fail("invalid", "%d ms are longer than a call may take, which is %d ms", a.MS, time.Duration(most).Milliseconds()).
			WithHint("Sleep for less; several sleeps follow each other.")
	}
	begun := time.Now()
	if end, ok := ctx.Deadline(); ok && a.MS >= end.Sub(begun).Milliseconds() {
		return 0, sdk.Fail("invalid", "there is no room for %d ms: this call has %d ms left", a.MS, max(0, end.Sub(begun).Milliseconds())).
			WithHint("Sleep for less, or in another run.")
	}
	select {
	case <-time.After(time.Duration(a.MS) * time.Millisecond):
		return a.MS, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
