package caps

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// optionRO narrows to the verbs that only read.
const optionRO = "ro"

// optionShared says under which name each node of a cluster has the same folder.
const optionShared = "shared"

// hostOptions is those that capabilities of every kind may carry.
var hostOptions = []string{optionRO, optionShared, "calls", "bytes", "max", "rate", "timeout", "until"}

// callOptions is those of [CallKind].
var callOptions = []string{"until"}

func isHostOption(name string) bool { return slices.Contains(hostOptions, name) }

// option reads one OPTION[=VALUE] into c.
func (p parser) option(c *Capability, name, value string, valued bool) error {
	if !isHostOption(name) {
		return p.ownOption(c, name, value, valued)
	}
	if p.strict && p.manifest.Kind == CallKind && !slices.Contains(callOptions, name) {
		return fmt.Errorf("a call has no option %s", name)
	}
	if name == optionRO {
		if valued {
			return errors.New("ro stands alone")
		}
		setOption(c, name, "")
		return nil
	}
	if value == "" {
		return fmt.Errorf("the value of %s is missing", name)
	}
	var err error
	switch name {
	case optionShared:
		switch {
		case p.strict && p.manifest.Algebra != Path:
			err = errors.New("only a folder is shared by the nodes of a cluster")
		case !isName(value):
			err = fmt.Errorf("%s is not a name: write letters, digits, _ and -", quoted(value))
		case c.Name != "" && c.Name != value:
			err = fmt.Errorf("the folder has the name %s already", c.Name)
		}
		setOption(c, name, value)
	case "calls":
		c.Limits.Calls, err = parseCount(value)
	case "bytes":
		c.Limits.Bytes, err = parseSize(value)
	case "max":
		c.Limits.Max, err = parseSize(value)
	case "rate":
		c.Limits.Rate, err = parseRate(value)
	case "timeout":
		c.Limits.Timeout, err = parseDuration(value)
	case "until":
		c.Until, err = parseUntil(value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// ownOption reads an option of the kind's manifest.
func (p parser) ownOption(c *Capability, name, value string, valued bool) error {
	if !p.strict {
		if !isWord(name) || valued && !isOptionValue(value) {
			return fmt.Errorf("unknown option %s", quoted(name))
		}
		setOption(c, name, value)
		return nil
	}
	values, ok := p.manifest.Options[name]
	switch {
	case !ok:
		known := slices.Concat(hostOptions, slices.Sorted(maps.Keys(p.manifest.Options)))
		return fmt.Errorf("the kind %s has no option %s%s", p.manifest.Kind, quoted(name), closest(name, known))
	case len(values) == 0 && valued:
		return fmt.Errorf("%s stands alone", name)
	case len(values) > 0 && !slices.Contains(values, value):
		return fmt.Errorf("%s is one of %s", name, strings.Join(values, ", "))
	}
	setOption(c, name, value)
	return nil
}

func setOption(c *Capability, name, value string) {
	if c.Options == nil {
		c.Options = map[string]string{}
	}
	c.Options[name] = value
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || s[0] == '+' {
		return 0, fmt.Errorf("%s is not a number from 1", quoted(s))
	}
	return n, nil
}

// units is those of sizes, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// parseSize reads a number of bytes: 10MiB, 512KiB, 100B or 100.
func parseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "KMGiB")
	n, err := parseCount(digits)
	if digits == "" || err != nil {
		return 0, fmt.Errorf("%s is not a size: write 10MiB, 64KiB or 100B", quoted(s))
	}
	unit := s[len(digits):]
	if unit == "" {
		return n, nil
	}
	for _, u := range units {
		if u.name == unit {
			if n > (1<<63-1)/u.bytes {
				return 0, fmt.Errorf("%s is too large", quoted(s))
			}
			return n * u.bytes, nil
		}
	}
	return 0, fmt.Errorf("%s is not a unit: write B, KiB, MiB or GiB", quoted(unit))
}

func formatSize(n int64) string {
	for _, u := range units {
		if n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

var periods = []struct {
	name string
	per  time.Duration
}{{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}}

// parseRate reads 5/s, 100/m or 1000/h.
func parseRate(s string) (Rate, error) {
	count, period, _ := strings.Cut(s, "/")
	if n, err := parseCount(count); err == nil && n <= 1<<31 {
		for _, p := range periods {
			if p.name == period {
				return Rate{Calls: n, Per: p.per}, nil
			}
		}
	}
	return Rate{}, fmt.Errorf("%s is not a rate: write 5/s, 100/m or 1000/h", quoted(s))
}

// String is the rate as texts have it.
func (r Rate) String() string {
	for _, p := range periods {
		if p.per == r.Per {
			return strconv.FormatInt(r.Calls, 10) + "/" + p.name
		}
	}
	return fmt.Sprintf("%d/%v", r.Calls, r.Per)
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d%time.Millisecond != 0 {
		return 0, fmt.Errorf("%s is not a duration in whole milliseconds: write 500ms, 10s or 2m", quoted(s))
	}
	return d, nil
}

// formatDuration leaves out units of nothing: 2m, not 2m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func parseUntil(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is not a time: write 2027-01-01T00:00:00Z", quoted(s))
	}
	t = t.UTC()
	if y := t.Year(); y < 1970 || y > 9999 {
		return time.Time{}, errors.New("the year must be from 1970 to 9999")
	}
	return t, nil
}

// narrower gives the smaller of two limits, 0 being none.
func narrower[N int64 | time.Duration](a, b N) N {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}

// and is what holds where both limits do. Of two rates the slower one is shown;
// each grant counts its own.
func (l Limits) and(m Limits) Limits {
	return Limits{
		Calls:   narrower(l.Calls, m.Calls),
		Bytes:   narrower(l.Bytes, m.Bytes),
		Max:     narrower(l.Max, m.Max),
		Rate:    l.Rate.and(m.Rate),
		Timeout: narrower(l.Timeout, m.Timeout),
	}
}

func (r Rate) and(q Rate) Rate {
	switch {
	case r.Per == 0:
		return q
	case q.Per == 0:
		return r
	case float64(q.Calls)/float64(q.Per) < float64(r.Calls)/float64(r.Per):
		return q
	}
	return r
}
