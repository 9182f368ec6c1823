// Package caps is what a tool may do: capabilities and their text form, what
// the operator granted, what was declared, and the decision with its reason.
//
// Design: ../shared/design/capabilities.md.
package caps
