// Command wasm is the evaluator as a module of WebAssembly: what the playground computes with.
//
// A page writes a request, JSON, into the bytes that Reserve gives, and calls Answer, which
// says how many bytes there are where Result points to. It needs nothing of its host but
// the clock and chance that Go's runtime asks for.
//
// All of it is for GOOS=wasip1; elsewhere the command does nothing.
package main

func main() {}
