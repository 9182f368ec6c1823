package main

import (
	"errors"
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps/journal"
)

// A keeping says where tools are kept, in words.
type keeping struct {
	where    string // for the operator
	fleeting string // why they don't last though nobody asked for that; for the model
}

// keepFor is [authority.keep] for a client, in its profile where the flags say
// nothing else. Where a profile can't be made and nobody asked for one, tools are
// kept in memory, with a warning; but what is there and can't be understood, or is
// in use by another, ends the start: going on would look as if all were lost.
func (a *authority) keepFor(client string) (keeping, error) {
	path, err := a.options.path(client)
	if err == nil {
		if err = a.keep(path); err == nil {
			if path == "" {
				return keeping{where: inMemory}, nil
			}
			return keeping{where: path}, nil
		}
	}
	if a.options.given() || a.journal != nil || errors.Is(err, journal.ErrFormat) || errors.Is(err, journal.ErrDamaged) || errors.Is(err, journal.ErrLocked) {
		return keeping{}, err
	}
	why := "the server has no place to keep it"
	if errors.Is(err, journal.ErrFull) {
		why = "the server's disk is full"
	}
	a.log.Warn("nothing that is made now will last: tools and the record are kept in memory. Correct this, or say --store memory if it is meant", "error", err)
	if err := a.keep(""); err != nil {
		return keeping{}, fmt.Errorf("keeping tools in memory: %w", err)
	}
	return keeping{where: inMemory, fleeting: why}, nil
}
