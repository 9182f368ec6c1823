package cli

import (
	"io"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/spf13/cobra"
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

// PrintTable prints rows in columns below headers. On a terminal the headers are
// bold, states have colours unless NO_COLOR is set, and what is too long is wrapped
// within its column.
func PrintTable(out io.Writer, headers []string, rows [][]string) {
	for _, row := range rows {
		for i := range row {
			row[i] = Printable(row[i])
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
	if width := TerminalWidth(out); width > 0 && lipgloss.Width(text) > width {
		text = t.Width(width).String()
	}
	PrintStyled(out, text)
}

// PrintStyled prints lines with the styles that whoever reads them can show.
func PrintStyled(out io.Writer, text string) {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	_, _ = lipgloss.Fprintln(Underlying(out).(io.Writer), strings.Join(lines, "\n"))
}

// JSONFlag adds the flag that has a command print JSON.
func JSONFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON")
}
