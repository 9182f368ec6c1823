//go:build race

package journal_test

// slow is set where SQLite is some twenty times slower: counts are smaller.
const slow = true
