package ui

func showAuthority(q *request) (view, error) { return view{}, missing("not yet") }
