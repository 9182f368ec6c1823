package caps

import (
	"sync"
	"time"
)

// A Ledger counts what one run has used of each limit, by the identity of the
// grant, so that a limit is the same limit whichever tool it is reached
// through. It is safe for concurrent use.
type Ledger struct {
	mu   sync.Mutex
	used map[string]*usage
}

// usage is what was used. Bytes that are reserved count as used; open is the
// requests they are reserved for.
type usage struct{ calls, bytes, open int64 }

// crowd is among how many what is left is divided while others are under way
// and nobody said how many there will be.
const crowd = 64

// NewLedger makes the ledger of a run.
func NewLedger() *Ledger { return &Ledger{used: map[string]*usage{}} }

// An account is one limit that a request is debited to.
type account struct {
	key   string
	limit Limits
	// says names the limit in a denial.
	says string
}

// debit charges a call and reserves up to most bytes in every account, or in
// none. among is as in [Request.Among]. It gives
// what was reserved, or the account that is used up, with the limit's name.
func (l *Ledger) debit(accounts []account, most int64, among int) (reserved int64, short *account, limit string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range accounts {
		a := &accounts[i]
		u := l.of(a.key)
		if a.limit.Calls > 0 && u.calls >= a.limit.Calls {
			return 0, a, "calls"
		}
		if a.limit.Bytes > 0 {
			left := a.limit.Bytes - u.bytes
			if left <= 0 {
				return 0, a, "bytes"
			}
			share := int64(among)
			if share < 1 && u.open > 0 {
				share = crowd
			}
			most = min(most, max(1, left/max(1, share)))
		}
	}
	for _, a := range accounts {
		u := l.of(a.key)
		u.calls++
		u.bytes += most
		u.open++
	}
	return most, nil, ""
}

// settle gives back what was reserved and not used.
func (l *Ledger) settle(accounts []account, reserved, used int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range accounts {
		u := l.of(a.key)
		u.bytes += used - reserved
		u.open--
	}
}

// undo takes a debit back: the request wasn't permitted after all.
func (l *Ledger) undo(accounts []account, reserved int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range accounts {
		u := l.of(a.key)
		u.calls--
		u.bytes -= reserved
		u.open--
	}
}

func (l *Ledger) of(key string) *usage {
	u, ok := l.used[key]
	if !ok {
		u = &usage{}
		l.used[key] = u
	}
	return u
}

// A bucket holds tokens: it is full at first and fills at its rate.
type bucket struct {
	rate   Rate
	tokens float64
	last   time.Time
}

// take takes a token, or says how long it is until there is one.
func (b *bucket) take(now time.Time) (wait time.Duration) {
	if passed := now.Sub(b.last); passed > 0 {
		b.tokens = min(float64(b.rate.Calls), b.tokens+float64(passed)*float64(b.rate.Calls)/float64(b.rate.Per))
		b.last = now
	}
	if b.tokens < 1 {
		return time.Duration((1 - b.tokens) * float64(b.rate.Per) / float64(b.rate.Calls))
	}
	b.tokens--
	return 0
}

// A rates is the buckets of one grant, which all that it was lent to take from.
type rates struct {
	mu      sync.Mutex
	buckets map[string]*bucket
}

// takeRate takes a token from the bucket of each account of a grant that has a
// rate, or from none.
func (g *Grant) takeRate(accounts []account, now time.Time) (wait time.Duration, short *account) {
	g.rates.mu.Lock()
	defer g.rates.mu.Unlock()
	taken := make([]*bucket, 0, len(accounts))
	for i := range accounts {
		a := &accounts[i]
		if a.limit.Rate.Per == 0 {
			continue
		}
		b := g.rates.bucket(a, now)
		if wait := b.take(now); wait > 0 {
			for _, b := range taken {
				b.tokens++
			}
			return wait, a
		}
		taken = append(taken, b)
	}
	return 0, nil
}

// mostBuckets bounds the buckets of one grant; full ones can be forgotten.
const mostBuckets = 10_000

func (r *rates) bucket(a *account, now time.Time) *bucket {
	key := a.key + "\x00" + a.limit.Rate.String()
	if b, ok := r.buckets[key]; ok {
		return b
	}
	if r.buckets == nil {
		r.buckets = map[string]*bucket{}
	}
	if len(r.buckets) >= mostBuckets {
		for key, b := range r.buckets {
			if now.Sub(b.last) >= b.rate.Per {
				delete(r.buckets, key)
			}
		}
	}
	b := &bucket{rate: a.limit.Rate, tokens: float64(a.limit.Rate.Calls), last: now}
	r.buckets[key] = b
	return b
}
