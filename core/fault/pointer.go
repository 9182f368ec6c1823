package fault

import (
	"strconv"
	"strings"
)

// Pointer is a JSON Pointer (RFC 6901) into the JSON form of a term or an
// input. The empty Pointer is the whole document.
type Pointer string

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// Key returns the pointer to member name of the object p points to.
func (p Pointer) Key(name string) Pointer {
	return p + "/" + Pointer(escaper.Replace(name))
}

// Index returns the pointer to element i of the array p points to.
func (p Pointer) Index(i int) Pointer {
	return p + "/" + Pointer(strconv.Itoa(i))
}
