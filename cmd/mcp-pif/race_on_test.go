//go:build race

package main

// racing is set where the race detector is on: memory isn't what it is then.
const racing = true
