package prim_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

func recordWith(key string, v value.Value) value.Value {
	return &value.Record{Fields: []value.Field{{Key: key, Value: v}}}
}

// TestTimesAsGo holds the rows of dates against Go's package time on generated ones.
func TestTimesAsGo(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 26))
	text := func(name string, args ...value.Value) string {
		v, f := call(t, name, args...)
		if f != nil {
			t.Fatalf("%s of %v: %v", name, args, f)
		}
		return string(v.(value.Str))
	}
	any := func() time.Time {
		at := time.Unix(r.Int64N(253402300799+62135596800)-62135596800, 0).UTC()
		if r.IntN(4) > 0 {
			at = at.In(time.FixedZone("", 60*(r.IntN(28*60)-14*60)))
		}
		if r.IntN(3) == 0 {
			at = at.Add(time.Duration(r.IntN(1_000_000_000)))
		}
		return at
	}
	for range 30_000 {
		at := any()
		if at.Year() < 2 || at.Year() > 9997 {
			continue
		}
		s := at.Format(time.RFC3339Nano)
		if got := text("weekday", value.Str(s)); got != at.Weekday().String() {
			t.Fatalf("%s is a %s, want %s", s, got, at.Weekday())
		}
		parts, f := call(t, "parse_time", value.Str(s))
		must.NoFault(t, f)
		if got := text("format_time", parts); got != s {
			t.Fatalf("%s comes back as %s", s, got)
		}
		layouts := [][2]string{
			{"YYYY-MM-DD HH:mm:ss", "2006-01-02 15:04:05"}, {"HH:MM:SS DD.MM.YYYY", "15:04:05 02.01.2006"}, {"M/D/YYYY h:MM A", "1/2/2006 3:04 PM"}, {"YYYYMMDDHHMMSS", "20060102150405"}, {"%d/%m/%y %H.%M", "02/01/06 15.04"}, {"dddd, D MMMM YYYY", "Monday, 2 January 2006"},
			{"ddd MMM DD hh:mm A ZZ", "Mon Jan 02 03:04 PM -0700"}, {"h:mm a SSS", "3:04 pm 000"}, {"YYYYMMDDTHHmmssZ", "20060102T150405Z07:00"}, {"yyyy-MM-dd'T'HH:mm", "2006-01-02T15:04"},
		}
		l := layouts[r.IntN(len(layouts))]
		want := at.Format(l[1])
		if strings.HasSuffix(l[0], "SSS") {
			want = at.Format("3:04 pm ") + at.Format(".000")[1:]
		}
		if got := text("format_time", value.Str(s), value.Str(l[0])); got != want {
			t.Fatalf("%s as %s is %q, want %q", s, l[0], got, want)
		}
		if got := text("format_time", value.Str(s), value.Str("YYYY-MM-DDTHH:mmZ"), value.Str("+05:30")); got != at.In(time.FixedZone("", 330*60)).Format("2006-01-02T15:04Z07:00") {
			t.Fatalf("%s at +05:30 is %s", s, got)
		}
		if back, f := call(t, "parse_time", value.Str(at.Format("Monday, 2 January 2006 15:04:05 -0700")), value.Str("dddd, D MMMM YYYY HH:mm:ss ZZ")); f != nil || text("format_time", back) != at.Truncate(time.Second).Format(time.RFC3339) {
			t.Fatalf("%s by a layout: %v %v", s, back, f)
		}
		days, seconds := r.IntN(2000)-1000, r.Int64N(1<<32)-1<<31
		later := &value.Record{Fields: []value.Field{{Key: "days", Value: value.NewInt(int64(days))}, {Key: "seconds", Value: value.NewInt(seconds)}}}
		sum := at.Add(time.Duration(days)*24*time.Hour + time.Duration(seconds)*time.Second)
		if sum.Year() < 2 || sum.Year() > 9997 {
			continue
		}
		moved := text("add_time", value.Str(s), later)
		if back, err := time.Parse(time.RFC3339Nano, moved); err != nil || !back.Equal(sum) {
			t.Fatalf("%s and %d days and %d s is %s, want %s", s, days, seconds, moved, sum)
		}
		d, f := call(t, "diff_time", value.Str(moved), value.Str(s))
		if n, ok := d.(value.Int).Int64(); f != nil || !ok || n != int64(days)*86400+seconds {
			t.Fatalf("%s - %s is %v, %v", moved, s, d, f)
		}
		// A date of the first 28 days has its day in each month.
		if months := r.IntN(2000) - 1000; at.Day() <= 28 {
			if sum := at.AddDate(0, months, 0); sum.Year() > 1 && sum.Year() < 9998 {
				moved := text("add_time", value.Str(s), recordWith("months", value.NewInt(int64(months))))
				if back, err := time.Parse(time.RFC3339Nano, moved); err != nil || !back.Equal(sum) {
					t.Fatalf("%s and %d months is %s, want %s", s, months, moved, sum)
				}
				d, f := call(t, "diff_time", value.Str(moved), value.Str(s), value.Str("months"))
				if n, ok := d.(value.Int).Int64(); f != nil || !ok || n != int64(months) {
					t.Fatalf("%s - %s is %v months, %v", moved, s, d, f)
				}
			}
		}
	}
}

// TestTimes: what is written by habit, and how it is refused.
func TestTimes(t *testing.T) {
	for _, c := range []struct {
		row  string
		args []value.Value
		want string
	}{
		{"add_time", []value.Value{value.Str("2024-01-31"), recordWith("month", value.NewInt(1))}, "2024-02-29"},
		{"add_time", []value.Value{value.Str("2024-02-29"), recordWith("years", value.NewInt(1))}, "2025-02-28"},
		{"add_time", []value.Value{value.Str("2026-11-22"), recordWith("hours", value.NewInt(5))}, "2026-11-22T05:00:00Z"},
		{"add_time", []value.Value{value.Str("2026-11-22 10:00"), recordWith("minutes", value.NewInt(-1))}, "2026-11-22 09:59"},
		{"add_time", []value.Value{value.Str("2026-11-22T10:00"), recordWith("days", value.NewInt(1))}, "2026-11-23T10:00"},
		{"add_time", []value.Value{value.Str("2026-11-22T10:00"), value.NewInt(30)}, "2026-11-22T10:00:30"},
		{"add_time", []value.Value{value.Str("2026-11-22 10:00"), value.NewInt(30)}, "2026-11-22 10:00:30"},
		{"add_time", []value.Value{value.Str("2026-11-22T10:00:00.50Z"), recordWith("days", value.NewInt(1))}, "2026-11-23T10:00:00.50Z"},
		{"add_time", []value.Value{value.Str("9999-12-31"), recordWith("days", value.NewInt(1))}, "out_of_range years 0 to 9999"},
		{"add_time", []value.Value{value.Str("2026-11-22"), recordWith("dayz", value.NewInt(1))}, "out_of_range days"},
		{"add_time", []value.Value{value.Str("2026-11-22"), recordWith("days", value.Str("1"))}, "out_of_range days"},
		{"weekday", []value.Value{value.Str("22.11.2026")}, `parse_error "DD.MM.YYYY"`},
		{"weekday", []value.Value{value.Str("11/22/2026 10:30")}, `parse_error "DD/MM/YYYY HH:mm"`},
		{"weekday", []value.Value{value.Str("2026-02-29")}, "parse_error February 2026 has the days 1 to 28"},
		{"weekday", []value.Value{value.Str("2026-13-01")}, "parse_error the month is from 1 to 12"},
		{"weekday", []value.Value{value.Str(strings.Repeat("2", 1<<20))}, "parse_error too long"},
		{"weekday", []value.Value{recordWith("year", value.NewInt(2026))}, "out_of_range no month"},
		{"format_time", []value.Value{value.Str("2026-11-22"), value.Str("yyyy-mm-dd")}, "out_of_range MM the month"},
		{"format_time", []value.Value{value.Str("2026-11-22"), value.Str("mm/DD")}, "out_of_range MM the month"},
		{"format_time", []value.Value{value.Str("2026-11-22T09:30:07Z"), value.Str("mm")}, "30"},
		{"format_time", []value.Value{value.Str("2026-11-22T09:30:07Z"), value.Str("mm:ss")}, "30:07"},
		{"format_time", []value.Value{value.Str("2026-11-22T09:30:07.123456789Z"), value.Str("ss.SS SSSS SSSSSSSS S")}, "07.12 1234 12345678 1"},
		{"parse_time", []value.Value{value.Str("2026-11-22 09:30:07.25"), value.Str("YYYY-MM-DD HH:mm:ss.SS")}, `{"day":22,"hour":9,"minute":30,"month":11,"offset":0,"second":7.25,"year":2026}`},
		{"format_time", []value.Value{value.Str("2026-11-22T09:30:07Z"), value.Str("mm [min]")}, "30 min"},
		{"format_time", []value.Value{value.Str("2026-11-22"), value.Str("2006-01-02")}, "out_of_range no part of a time"},
		{"format_time", []value.Value{value.Str("2026-11-22"), value.Str("DD at HH")}, "out_of_range in brackets"},
		{"format_time", []value.Value{value.Str("2026-11-22"), value.Str("%Y week %V")}, "out_of_range %V"},
		{"format_time", []value.Value{value.Str("2026-11-22"), value.Str("%d de %B")}, "22 de November"},
		{"format_time", []value.Value{value.Str("2026-11-22"), value.Str("HH:mm"), value.Str("Europe/Berlin")}, "out_of_range time zones"},
		{"diff_time", []value.Value{value.Str("2026-11-22"), value.Str("2026-11-21T23:59:59.75Z")}, "0.25"},
		{"diff_time", []value.Value{value.Str("2026-11-22"), value.Str("2026-11-25"), value.Str("day")}, "-3"},
		{"parse_time", []value.Value{value.Str("3/4/26 9:05 pm"), value.Str("D/M/YY h:mm A")}, `{"day":3,"hour":21,"minute":5,"month":4,"offset":0,"second":0,"year":2026}`},
		{"parse_time", []value.Value{value.Str("2026-04-03 12:05 AM"), value.Str("YYYY-MM-DD hh:mm A")}, `{"day":3,"hour":0,"minute":5,"month":4,"offset":0,"second":0,"year":2026}`},
		{"parse_time", []value.Value{value.Str("2026-04-03 12:05 PM"), value.Str("YYYY-MM-DD hh:mm A")}, `{"day":3,"hour":12,"minute":5,"month":4,"offset":0,"second":0,"year":2026}`},
		{"parse_time", []value.Value{value.Str("2026-04-03 13:05 PM"), value.Str("YYYY-MM-DD HH:mm A")}, `{"day":3,"hour":13,"minute":5,"month":4,"offset":0,"second":0,"year":2026}`},
		{"parse_time", []value.Value{value.Str("2026-04-03 13:05 AM"), value.Str("YYYY-MM-DD hh:mm A")}, "parse_error an hour of AM is from 0 to 12, not 13"},
		{"parse_time", []value.Value{value.Str("2026-04-03 99:05 AM"), value.Str("YYYY-MM-DD HH:mm A")}, "parse_error not 99"},
		{"parse_time", []value.Value{value.Str("2026-04-03 25:05 PM"), value.Str("YYYY-MM-DD hh:mm A")}, "parse_error the hour is from 0 to 23, not 25"},
		{"parse_time", []value.Value{value.Str("x"), value.Str("HH:mm")}, "parse_error expected HH of the layout"},
		{"parse_time", []value.Value{value.Str("10:00"), value.Str("HH:mm")}, "out_of_range no year"},
	} {
		v, f := call(t, c.row, c.args...)
		if f != nil {
			kind, part, _ := strings.Cut(c.want, " ")
			if f.Kind != fault.Kind(kind) || !strings.Contains(f.Message+" "+f.Expected+" "+f.Hint, part) || f.Hint == "" {
				t.Errorf("%s%v: %s %s (%s; %s), want %s", c.row, c.args, f.Kind, f.Message, f.Expected, f.Hint, c.want)
			}
			continue
		}
		if shown, _ := call(t, "to_text", v); shown != value.Str(c.want) {
			t.Errorf("%s%v is %s, want %s", c.row, c.args, shown, c.want)
		}
	}
}
