//go:build !race

package journal_test

const slow = false
