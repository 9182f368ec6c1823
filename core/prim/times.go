package prim

import (
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

const kindTime = KindString | KindRecord

var timeParams = []Param{{"t", kindTime}, {"layout", KindString}, {"offset", KindString}}

// timeFields is what the record of a time has.
var timeFields = []Field{
	{Key: "day", Type: typeInt}, {Key: "hour", Type: typeInt}, {Key: "minute", Type: typeInt}, {Key: "month", Type: typeInt},
	{Key: "offset", Type: typeInt}, {Key: "second", Type: typeNumber}, {Key: "year", Type: typeInt},
}

var timeGrowth = &Growth{Items: Bound{some(7)}, Bytes: Bound{some(64)}, Value: Bound{some(maxYear)}, Words: Bound{some(1)}}

// dates is the rows of dates and times, by integer arithmetic alone: nothing here knows what time
// it is, or where. They take a date or a time as RFC 3339 text, or in the parts that
// parse_time gives.
var dates = []Row{
	{
		Name: "parse_time", Group: "dates", Shape: Array, Min: 1, Params: []Param{{"s", KindString}, {"layout", KindString}}, Result: KindRecord,
		Doc: "gives the year, month, day, hour, minute, second and offset (in minutes) of a date or time: RFC 3339 text as 2026-11-22 or 2026-11-22T09:30:00+01:00, or text in a layout as of format_time; the hour is that of the text's offset, and format_time(t, \"HH\", \"UTC\") gives UTC's.",
		Examples: []Example{
			{Code: `{"parse_time":["2026-11-22T09:30:00+01:00"]}`, Want: `{"day":22,"hour":9,"minute":30,"month":11,"offset":60,"second":0,"year":2026}`, Steps: 2},
			{Code: `{"get":[{"parse_time":["22.11.2026","DD.MM.YYYY"]},"month"]}`, Want: `11`},
			{Code: `{"get":[{"try":{"parse_time":["2026-02-30"]}},"ok","no date"]}`, Want: `"no date"`},
			{Code: `{"parse_time":[20261122]}`, Fault: fault.TypeError},
		},
		Gives: &Type{Kinds: KindRecord, Fields: timeFields},
		Grows: timeGrowth,
		Also:  []string{"date.parse", "datetime.strptime", "datetime.fromisoformat", "time.parse", "time.strptime", "date.fromisoformat", "strptime", "parse_date", "parsedate", "date_parse", "to_date", "todate", "from_iso", "fromisoformat", "parse_datetime", "time_parse", "date", "datetime", "new_date", "mktime", "to_time"},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			if len(args) == 1 {
				t, f := momentOf("parse_time", args[0])
				return t.parts(), f
			}
			parts, f := readLayout("parse_time", string(args[1].(value.Str)))
			if f != nil {
				return nil, f
			}
			s := string(args[0].(value.Str))
			if len(s) > maxTimeText {
				return nil, badTime("parse_time", s, "it is too long")
			}
			t, f := parseLayout("parse_time", s, parts)
			return t.parts(), f
		},
	},
	{
		Name: "format_time", Group: "dates", Shape: Array, Min: 1, Params: timeParams, Result: KindString,
		Doc: "writes a date or time as RFC 3339 text, or in a layout of YYYY MM DD HH mm ss, MMMM and dddd (names), hh and A (12 hours), SSS, Z, with text of letters in [brackets]; at an offset as \"Z\" or \"+02:00\" if one is given.",
		Examples: []Example{
			{Code: `{"format_time":["2026-11-22","DD.MM.YYYY"]}`, Want: `"22.11.2026"`, Steps: 3},
			{Code: `{"format_time":["2026-11-22T09:30:00Z","dddd, D MMMM [at] h:mm A"]}`, Want: `"Sunday, 22 November at 9:30 AM"`},
			{Code: `{"format_time":["2026-11-22T23:30:00Z","YYYY-MM-DDTHH:mmZ","+02:00"]}`, Want: `"2026-11-23T01:30+02:00"`},
			{Code: `{"format_time":[{"record":{"year":2026,"month":11,"day":22}}]}`, Want: `"2026-11-22T00:00:00Z"`},
			{Code: `{"format_time":["2026-11-22","now"]}`, Fault: fault.OutOfRange},
		},
		Grows: &Growth{Bytes: Bound{some(64), some(6, bytesOf(1))}},
		Also:  []string{"time.strftime", "datetime.strftime", "date.strftime", "strftime", "format_date", "date_format", "dateformat", "formatdate", "to_iso", "isoformat", "toisostring", "time_format", "to_timezone", "tolocaledatestring", "to_utc"},
		Size: func(args []value.Value) int64 {
			if len(args) == 1 {
				return 64
			}
			return 64 + 6*int64(min(len(args[1].(value.Str)), maxTimeText))
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			t, f := momentOf("format_time", args[0])
			if f != nil || len(args) == 1 {
				return value.Str(t.String()), f
			}
			parts, f := readLayout("format_time", string(args[1].(value.Str)))
			if f != nil {
				return nil, f
			}
			if len(args) > 2 {
				if t, f = shiftZone(t, string(args[2].(value.Str))); f != nil {
					return nil, f
				}
			}
			return value.Str(t.format(parts)), nil
		},
	},
	{
		Name: "add_time", Group: "dates", Shape: Array, Params: []Param{{"t", kindTime}, {"amount", KindRecord | KindNumber}}, Result: kindTime,
		Doc: "gives the date or time so much later, of the kind that t is: amount is a record of years, months, weeks, days, hours, minutes and seconds, negative for earlier, or a number of seconds; where a month is too short its last day counts.",
		Examples: []Example{
			{Code: `{"add_time":["2026-11-22",{"record":{"days":10}}]}`, Want: `"2026-12-02"`, Steps: 4},
			{Code: `{"add_time":["2026-01-31T12:00:00Z",{"record":{"months":1,"hours":-13}}]}`, Want: `"2026-02-27T23:00:00Z"`},
			{Code: `{"add_time":["1970-01-01T00:00:00Z",1795339800]}`, Want: `"2026-11-22T09:30:00Z"`},
			{Code: `{"add_time":["2026-11-22",{"record":{"fortnights":1}}]}`, Fault: fault.OutOfRange},
		},
		Gives: &Type{Kinds: kindTime, Fields: timeFields},
		Grows: timeGrowth,
		Also:  []string{"datetime.timedelta", "datetime.fromtimestamp", "add_days", "add_months", "add_years", "add_hours", "date_add", "dateadd", "timedelta", "adddays", "addmonths", "add_date", "from_unix", "from_timestamp", "fromtimestamp", "add_duration", "plus_days", "sub_time", "relativedelta"},
		Size:  func([]value.Value) int64 { return 512 },
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			t, f := momentOf("add_time", args[0])
			if f == nil {
				t, f = t.add(args[1])
			}
			if _, isRecord := args[0].(*value.Record); isRecord {
				return t.parts(), f
			}
			return value.Str(t.String()), f
		},
	},
	{
		Name: "diff_time", Group: "dates", Shape: Array, Min: 2, Result: KindNumber,
		Params: []Param{{"a", kindTime}, {"b", kindTime}, {"unit", KindString}},
		Doc:    "gives a - b in seconds, or as whole seconds, minutes, hours, days, weeks, months or years if a unit is given: more than 0 if a is later.",
		Examples: []Example{
			{Code: `{"diff_time":["2026-11-22T10:00:00Z","2026-11-22T09:30:00Z"]}`, Want: `1800`, Steps: 3},
			{Code: `{"diff_time":["2026-12-25","2026-11-22","days"]}`, Want: `33`},
			{Code: `{"diff_time":["2026-11-21","1990-11-22","years"]}`, Want: `35`},
			{Code: `{"diff_time":["2026-12-25","2026-11-22","fortnights"]}`, Fault: fault.OutOfRange},
		},
		Grows: &Growth{Value: Bound{some(2 * maxYear * 366 * secondsPerDay)}, Words: Bound{some(2)}},
		Also:  []string{"date_diff", "datediff", "diff_days", "days_between", "time_diff", "diff_date", "sub_dates", "timestampdiff", "to_unix", "to_timestamp", "unix", "timestamp", "seconds_between", "sub_times", "diffdays", "unix_time"},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			a, f := momentOf("diff_time", args[0])
			if f != nil {
				return nil, f
			}
			b, f := momentOf("diff_time", args[1])
			if f != nil {
				return nil, f
			}
			if len(args) == 2 {
				seconds, nanos := a.unix()-b.unix(), a.nanos-b.nanos
				if nanos < 0 {
					seconds, nanos = seconds-1, nanos+nanosPerSec
				}
				return withFraction(seconds, nanos), nil
			}
			return diffUnits(a, b, string(args[2].(value.Str)))
		},
	},
	{
		Name: "weekday", Group: "dates", Shape: Unary, Params: []Param{{"t", kindTime}}, Result: KindString,
		Doc: "gives the name of a date's day: Sunday, Monday and so on.",
		Examples: []Example{
			{Code: `{"weekday":"2026-11-22"}`, Want: `"Sunday"`, Steps: 2},
			{Code: `{"weekday":{"record":{"year":2000,"month":1,"day":1}}}`, Want: `"Saturday"`},
			{Code: `{"weekday":20261122}`, Fault: fault.TypeError},
		},
		Grows: &Growth{Bytes: Bound{some(9)}},
		Also:  []string{"day_of_week", "dayofweek", "week_day", "isoweekday", "getday", "dayname", "day_name"},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			t, f := momentOf("weekday", args[0])
			if f != nil {
				return nil, f
			}
			return value.Str(t.weekday()), nil
		},
	},
}

// parts returns the record of a moment.
func (t moment) parts() value.Value {
	number := func(key string, n int64) value.Field { return value.Field{Key: key, Value: value.NewInt(n)} }
	return &value.Record{Fields: []value.Field{
		number("day", t.day), number("hour", t.hour), number("minute", t.minute), number("month", t.month), number("offset", t.offset),
		{Key: "second", Value: withFraction(t.second, t.nanos)}, number("year", t.year),
	}}
}

// shiftZone returns the same moment at another offset.
func shiftZone(t moment, s string) (moment, *fault.Fault) {
	r := scanner{s}
	if strings.EqualFold(s, "utc") || strings.EqualFold(s, "gmt") {
		r.s = "Z"
	}
	offset, ok := r.zone()
	if !ok || r.s != "" || offset < -maxOffset || offset > maxOffset {
		return t, outOfRange("format_time: "+quoted(s)+" is no offset", `"Z" or an offset as "+02:00"`, quoted(s),
			`Give an offset from UTC, {"format_time":[T,"HH:mm","+02:00"]}; the rules of time zones aren't known here.`)
	}
	u := t
	u.offset, u.form.clock, u.form.zone, u.form.seconds = offset, true, true, true
	u = u.at(t.unix(), t.nanos)
	if u.year < 0 || u.year > maxYear {
		return u, beyond("format_time")
	}
	return u, nil
}

func beyond(row string) *fault.Fault {
	return outOfRange(row+": the result is not in the years 0 to 9999", "a time of the years 0 to 9999", "another year", `Add less: {"add_time":["2026-11-22",{"record":{"days":1}}]}.`)
}

// units is what amounts are given in, and the seconds of each; months have none.
var units = []struct {
	name    string
	seconds int64
	months  int64
}{
	{"years", 0, 12}, {"months", 0, 1}, {"weeks", 7 * secondsPerDay, 0}, {"days", secondsPerDay, 0},
	{"hours", 3600, 0}, {"minutes", 60, 0}, {"seconds", 1, 0},
}

// unitOf returns the unit of a name, with or without its s.
func unitOf(row, name string) (int, *fault.Fault) {
	var names []string
	for i, u := range units {
		if name == u.name || name+"s" == u.name {
			return i, nil
		}
		names = append(names, u.name)
	}
	f := outOfRange(fmt.Sprintf("%s: %s is no unit of time", row, quoted(name)), strings.Join(names, ", "), quoted(name),
		`Write it as in {"add_time":["2026-11-22",{"record":{"days":10,"hours":-2}}]} or {"diff_time":[A,B,"days"]}.`)
	if f.Near = Closest(name, names); f.Near != "" {
		f.Hint = "Did you mean " + f.Near + "? " + f.Hint
	}
	return 0, f
}

// add returns the moment so much later.
func (t moment) add(amount value.Value) (moment, *fault.Fault) {
	var months, seconds, nanos int64
	date := t.form == form{}
	fields := []value.Field{{Key: "seconds", Value: amount}}
	if r, ok := amount.(*value.Record); ok {
		fields = r.Fields
	}
	if len(fields) > 2*len(units) {
		fields = fields[:2*len(units)+1] // one of them is no unit
	}
	for _, field := range fields {
		i, f := unitOf("add_time", field.Key)
		if f != nil {
			return t, f
		}
		n, rest, ok := wholeAndNanos(value.Force(field.Value))
		if u := units[i]; !ok || rest != 0 && u.seconds != 1 {
			return t, outOfRange(fmt.Sprintf("add_time: %s is %s", field.Key, Describe(field.Value)), "an integer, for seconds perhaps a decimal of at most 9 digits", Describe(field.Value),
				`Give whole numbers, {"add_time":["2026-11-22",{"record":{"days":1,"hours":12}}]}.`)
		} else {
			months += n * u.months
			seconds += n * u.seconds
			nanos += rest
			t.form.clock = t.form.clock || u.seconds%secondsPerDay != 0
		}
	}
	if date && t.form.clock {
		t.form.zone, t.form.seconds = true, true
	}
	return t.later(months, seconds, nanos)
}

// later adds months first, then the rest.
func (t moment) later(months, seconds, nanos int64) (moment, *fault.Fault) {
	if months != 0 {
		n := t.year*12 + t.month - 1 + months
		if t.year, t.month = floorDiv(n, 12), n-floorDiv(n, 12)*12+1; t.year < 0 || t.year > maxYear {
			return t, beyond("add_time")
		}
		t.day = min(t.day, daysInMonth(t.year, t.month))
	}
	nanos += t.nanos
	seconds += t.unix() + nanos/nanosPerSec
	t = t.at(seconds, nanos%nanosPerSec)
	if t.year < 0 || t.year > maxYear {
		return t, beyond("add_time")
	}
	return t, nil
}

// diffUnits returns a - b in whole units, of which the rest is left out.
func diffUnits(a, b moment, unit string) (value.Value, *fault.Fault) {
	i, f := unitOf("diff_time", unit)
	if f != nil {
		return nil, f
	}
	sign := int64(1)
	if before(a, b) {
		a, b, sign = b, a, -1
	}
	u := units[i]
	if u.months == 0 {
		seconds := a.unix() - b.unix()
		if a.nanos < b.nanos {
			seconds--
		}
		return value.NewInt(sign * (seconds / u.seconds)), nil
	}
	// In months the days count where b is.
	later := b.at(a.unix(), a.nanos)
	n := (later.year-b.year)*12 + later.month - b.month
	if n > 0 {
		if reached, f := b.later(n, 0, 0); f != nil || before(a, reached) {
			n--
		}
	}
	return value.NewInt(sign * (n / u.months)), nil
}

func before(a, b moment) bool {
	x, y := a.unix(), b.unix()
	return x < y || x == y && a.nanos < b.nanos
}
