package registry

// Provable is [Registry.Proof] of a version that is not on record: whether the
// certificate that would be put there is accepted.
func (t *Tool) Provable() Proof {
	f := t.facts()
	return t.prove(&f)
}
