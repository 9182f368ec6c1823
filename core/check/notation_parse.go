package check

import "errors"

// ParseType reads the notation.
func ParseType(s string) (*Type, error) { return nil, errors.New("todo") }
