package caps

// Worst is the worst of several: of none, that of a tool that can't act.
func Worst(flags ...Flags) Flags {
	worst := Flags{ReadOnly: true, Idempotent: true}
	for _, f := range flags {
		worst.ReadOnly = worst.ReadOnly && f.ReadOnly
		worst.Idempotent = worst.Idempotent && f.Idempotent
		worst.Destructive = worst.Destructive || f.Destructive
		worst.OpenWorld = worst.OpenWorld || f.OpenWorld
	}
	return worst
}

// Annotations is the worst that tools with these capabilities can do by
// themselves. What the tools can do that they call is for the caller to add, by
// giving their capabilities too.
func Annotations(held []*Held) Flags {
	flags := make([]Flags, len(held))
	for i, h := range held {
		flags[i] = h.Flags()
	}
	return Worst(flags...)
}

// Flags is the worst that can be done under the capability.
func (h *Held) Flags() Flags {
	if h.Grant == nil {
		return Worst()
	}
	return worstOf(&h.Capability, h.Grant.Manifest)
}

// Flags is the worst that can be done under the grant.
func (g *Grant) Flags() Flags { return worstOf(&g.Capability, g.Manifest) }

func worstOf(c *Capability, m *Manifest) Flags {
	var flags []Flags
	for _, v := range m.Verbs {
		if c.permits(v) {
			flags = append(flags, v.Flags)
		}
	}
	return Worst(flags...)
}
