package main

import (
	"fmt"
	"io"
	"os"
)

// The colours of the repl, as parameters of the terminal's escape sequence.
const (
	red   = "31"
	cyan  = "36"
	faint = "2"
)

// paint prints lines in a colour on a terminal whose user wants colours, and as they
// are elsewhere. See https://no-color.org.
func paint(out io.Writer, colour, text string) {
	text = printableLines(text)
	if terminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		out, text = behind(out).(io.Writer), "\x1b["+colour+"m"+text+"\x1b[0m"
	}
	fmt.Fprintln(out, text)
}
