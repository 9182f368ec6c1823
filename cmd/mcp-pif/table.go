package main

import (
	"io"
	"os"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// stateColors are the colours of words that say how something is, on a terminal.
var stateColors = map[string]lipgloss.Style{}

func init() {
	for color, words := range map[string]string{
		"2": "✓ ready ok on answers identical yes",
		"1": "✗ blocked fails failed denied refused different broken no missing changed",
		"3": "asking waits incomplete running impossible",
		"8": "retired - off",
	} {
		for _, word := range strings.Fields(words) {
			stateColors[word] = lipgloss.NewStyle().Foreground(lipgloss.Color(color))
		}
	}
}

// colored are the headers of columns whose words have colours.
var colored = map[string]bool{"STATE": true, "RESULT": true, "EFFECTS": true}

// printTable prints rows in columns below headers. On a terminal the headers are
// bold, states have colours unless NO_COLOR is set, and what is too long is wrapped
// within its column.
func printTable(out io.Writer, headers []string, rows [][]string) {
	for _, row := range rows {
		for i := range row {
			row[i] = printable(row[i])
		}
	}
	t := table.New().Headers(headers...).Rows(rows...).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).BorderHeader(false).
		StyleFunc(func(row, column int) lipgloss.Style {
			style := lipgloss.NewStyle()
			if row == table.HeaderRow {
				style = style.Bold(true)
			} else if colored[headers[column]] {
				word, _, _ := strings.Cut(rows[row][column], " ")
				style = stateColors[word]
			}
			if column < len(headers)-1 {
				style = style.PaddingRight(2)
			}
			return style
		})
	text := t.String()
	if width := terminalWidth(out); width > 0 && lipgloss.Width(text) > width {
		text = t.Width(width).String()
	}
	printStyled(out, text)
}

// printStyled prints lines with the styles that whoever reads them can show.
func printStyled(out io.Writer, text string) {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	_, _ = lipgloss.Fprintln(behind(out).(io.Writer), strings.Join(lines, "\n"))
}

// terminalWidth returns how many columns a terminal has; 0 of what is none.
func terminalWidth(out io.Writer) int {
	f, ok := behind(out).(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// jsonFlag adds the flag that has a command print JSON.
func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON")
}
