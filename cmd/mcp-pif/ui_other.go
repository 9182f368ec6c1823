//go:build !unix

package main

// ignoreBackgroundReads does nothing: there is no background.
func ignoreBackgroundReads() {}
