package term

// Form is how a source spells its term.
type Form uint8

// The forms of sources.
const (
	// JSON is the canonical spelling; package parse reads it.
	JSON Form = iota
	// PIF is the text form; package text reads it.
	PIF
)
