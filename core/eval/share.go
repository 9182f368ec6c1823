package eval

import (
	"maps"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A Share is what of the pool the runs of one principal hold together. A principal may use all that
// nobody else needs. Where the pool is short, the newest run gives way of the principal that is
// furthest above what is its own: its part of the pool, or what one run may have
// if that is more. The zero value is ready.
type Share struct {
	Owner string // the principal, for its own eyes; "": there is one alone

	held int64
	kept int64               // by its keepers
	runs map[*Stake]struct{} // that hold something
}

// A Stake is what one run holds of the pool. A machine without one holds what nobody can
// ask back, and asks nothing back from others.
type Stake struct {
	Share *Share
	Most  int64 // bytes that one run may have
	// GiveWay ends the run, which then gives back what it holds; it must not wait for that. It is
	// called once at most; own says that it is for another run of the same principal.
	GiveWay func(own bool)
	// Wait waits until the channel is closed, as long as it is worth it, and reports
	// whether it was; the run has no need of a processor meanwhile.
	Wait func(<-chan struct{}) bool

	held   int64
	number uint64 // in the order in which runs began to hold something
	told   bool   // to give way
	own    bool   // where there was no room: its principal has as much as it may have
}

// newcomer is what the first run of a principal may have, and all such together, beyond the
// pool's limit: parts of that limit.
const (
	newcomer  = 128
	newcomers = 16
)

// Draw has a run draw on the pool for somebody. It is called before the first Run.
func (m *Machine) Draw(s *Stake) { m.stake = s }

// Overloaded returns the fault of a run that there was no room for. It names the run's own principal where that one's
// runs hold the room, and no other.
func (s *Stake) Overloaded() *fault.Fault { return pool.overloaded(s) }

func (p *slabPool) overloaded(s *Stake) *fault.Fault {
	p.Lock()
	defer p.Unlock()
	switch {
	case s == nil:
	case s.own && s.Share.Owner != "":
		return prim.Overloaded("your own runs, those of " + s.Share.Owner + ", hold")
	case s.own:
		return prim.Overloaded("your own runs hold")
	case slices.ContainsFunc(p.shares(), func(share *Share) bool { return share != s.Share }):
		return prim.Overloaded("runs of another principal hold")
	}
	return prim.Overloaded(prim.NoRoom)
}

// Lend counts bytes more of a run that aren't a machine's, or fewer; false: there is no room for them.
func Lend(s *Stake, bytes int64) bool { return pool.lend(s, bytes) }

// admit makes room for bytes more of a run, and counts them; false: there is none. The caller
// holds the lock, which is let go while others give way.
func (p *slabPool) admit(s *Stake, bytes int64) bool {
	// A collection holds two spaces at once; the sixteenth more is for the
	// stack, and the rounding of sizes, beside two spaces of half the limit.
	most := p.limit + p.limit/16
	for p.held+bytes+p.promised(s) > most {
		if s == nil || s.told {
			return false
		}
		if s.Share.held == s.held && s.held+bytes <= p.limit/newcomer && p.held+bytes <= most+p.limit/newcomers {
			break
		}
		leaving := int64(0)
		for _, share := range p.shares() {
			for r := range share.runs {
				if r.told {
					leaving += r.held
				}
			}
		}
		if p.held-leaving+bytes+p.promised(s) > most {
			victim := p.furthest(s, bytes)
			if s.own = victim != nil && victim.Share == s.Share; victim == nil || victim == s {
				return false
			}
			victim.told = true
			victim.GiveWay(s.own)
		}
		if p.freed == nil {
			p.freed = make(chan struct{})
		}
		freed := p.freed
		if p.waiting == nil {
			p.waiting = map[*Stake]int64{}
		}
		p.waiting[s] = bytes
		p.Unlock()
		ok := s.Wait(freed)
		p.Lock()
		if delete(p.waiting, s); !ok {
			return false
		}
	}
	p.count(s, bytes)
	return true
}

// promised returns how many bytes others wait for whose principals hold less: what gives
// way for them isn't for this one. The caller holds the lock.
func (p *slabPool) promised(s *Stake) (bytes int64) {
	if s == nil {
		return 0
	}
	for w, n := range p.waiting {
		if w.Share != s.Share && w.Share.held < s.Share.held {
			bytes += n
		}
	}
	return bytes
}

// shares returns those of the principals that hold something. The caller holds the
// lock.
func (p *slabPool) shares() []*Share { return slices.Collect(maps.Keys(p.active)) }

// furthest returns the run that gives way so that another may have bytes more; it may be
// that one itself, and nil: nobody has more than is its own. The caller holds the lock.
func (p *slabPool) furthest(asks *Stake, bytes int64) *Stake {
	principals := int64(len(p.active))
	if _, ok := p.active[asks.Share]; !ok {
		principals++
	}
	own := max(p.limit/principals, asks.Most)
	var victim *Stake
	most := int64(0)
	consider := func(share *Share, above int64, runs map[*Stake]struct{}) {
		if above <= most {
			return
		}
		var newest *Stake
		for r := range runs {
			if !r.told && (newest == nil || r.number > newest.number) {
				newest = r
			}
		}
		if share == asks.Share && asks.held == 0 {
			newest = asks
		}
		if newest != nil {
			victim, most = newest, above
		}
	}
	for share := range p.active {
		above := share.held - own
		for r := range share.runs {
			if r.told {
				above -= r.held
			}
		}
		if share == asks.Share {
			above += bytes
		}
		consider(share, above, share.runs)
	}
	return victim
}

// count counts bytes that a run takes, or gives back where they are negative. The caller
// holds the lock.
func (p *slabPool) count(s *Stake, bytes int64) {
	p.held += bytes
	if s != nil {
		if s.held == 0 && bytes > 0 {
			p.number++
			s.number = p.number
			if s.Share.runs == nil {
				s.Share.runs = map[*Stake]struct{}{}
			}
			s.Share.runs[s] = struct{}{}
			if p.active == nil {
				p.active = map[*Share]struct{}{}
			}
			p.active[s.Share] = struct{}{}
		}
		s.held += bytes
		s.Share.held += bytes
		if s.held == 0 {
			delete(s.Share.runs, s)
		}
		if len(s.Share.runs) == 0 {
			delete(p.active, s.Share)
		}
	}
	if bytes < 0 && p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
}
