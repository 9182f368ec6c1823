// Package examples is programs to read.
//
// In this folder are tools, in the text form and as JSON, with what they give on an
// input. In the folder tasks are eighty tasks, each in PIF and in two other languages,
// which the playground shows. Tests run all of them, on both evaluators, and hold their
// results against what is written beside them.
package examples

import "embed"

// Tasks is the tasks, in files of the form txtar; tasks/README.md says how they are kept.
//
//go:embed tasks/*.txtar
var Tasks embed.FS
