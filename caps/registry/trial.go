package registry

// Trying gives the tools with other code in the place of one's, as it is when a
// recorded run is done again with it: it has no authority, and the names in it
// are bound to the tools of the snapshot. The error is a [*fault.Fault], of kind
// parse_error where it is no code.
func (s *Snapshot) Trying(d Definition) (*Snapshot, *Tool, error) {
	t, err := prepare(d)
	if err != nil {
		return nil, nil, err
	}
	t.bind(s)
	return s.Putting(t), t, nil
}

// Putting gives the tools with t in the place of the one of its name.
func (s *Snapshot) Putting(t *Tool) *Snapshot {
	e := s.edit()
	e.set(t)
	return e.done()
}
