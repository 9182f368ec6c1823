package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/value"
)

// Arguments makes a record from names and values.
func Arguments(namesAndValues ...any) value.Value {
	if len(namesAndValues)%2 != 0 {
		panic("arguments are names and values in turn")
	}
	var fields []value.Field
	for i := 0; i < len(namesAndValues); i += 2 {
		name, ok := namesAndValues[i].(string)
		if !ok {
			panic(fmt.Sprintf("the name of an argument is a string, not a %T", namesAndValues[i]))
		}
		fields = append(fields, value.Field{Key: name, Value: valueOf(namesAndValues[i+1])})
	}
	return record(fields...)
}

// valueOf is a Go value as one of the language.
func valueOf(v any) value.Value {
	switch v := v.(type) {
	case nil:
		return value.Unit{}
	case value.Value:
		return v
	case string:
		return value.Str(v)
	case bool:
		return value.Bool(v)
	case int:
		return value.NewInt(int64(v))
	case int64:
		return value.NewInt(v)
	case json.Number:
		n, _ := numberOf(v)
		return n
	case []string:
		items := make([]value.Value, len(v))
		for i := range v {
			items[i] = value.Str(v[i])
		}
		return value.FromSlice(items)
	case []any:
		items := make([]value.Value, len(v))
		for i := range v {
			items[i] = valueOf(v[i])
		}
		return value.FromSlice(items)
	case map[string]any:
		var fields []value.Field
		for name, item := range v {
			fields = append(fields, value.Field{Key: name, Value: valueOf(item)})
		}
		return record(fields...)
	}
	panic(fmt.Sprintf("a %T can't be an argument", v))
}

// numberOf is a number of JSON, exactly: an integer or a decimal.
func numberOf(n json.Number) (value.Value, error) {
	text := n.String()
	if strings.ContainsAny(text, "eE") {
		return value.Unit{}, fmt.Errorf("the number %s: write it without an exponent", text)
	}
	whole, part, _ := strings.Cut(text, ".")
	i, ok := new(big.Int).SetString(whole+part, 10)
	if !ok {
		return value.Unit{}, fmt.Errorf("the number %s", text)
	}
	if part == "" {
		return value.NewBig(i), nil
	}
	d, ok := value.NewDec(i, len(part))
	if !ok {
		return value.Unit{}, fmt.Errorf("the number %s has too many digits", text)
	}
	return d, nil
}

// ParseFixtures reads fixtures from JSON, such as
//
//	{"scope": "stations/**", "inside": ["stations/rome"], "outside": ["ships/a"],
//	 "calls": [{"operation": "weather.now", "arguments": {"station": "stations/rome"}, "slow": false}]}
//
// with "options" and "files", too; see [Fixtures].
func ParseFixtures(text []byte) (Fixtures, error) {
	var in struct {
		Scope   string
		Inside  []string
		Outside []string
		Options map[string]string
		Files   map[string]string
		Calls   []struct {
			Operation string
			Arguments map[string]any
			Slow      bool
		}
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(&in); err != nil {
		return Fixtures{}, fmt.Errorf("fixtures: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Fixtures{}, errors.New("fixtures: something comes after them")
	}
	f := Fixtures{Scope: in.Scope, Inside: in.Inside, Outside: in.Outside, Options: in.Options, Files: in.Files}
	for _, c := range in.Calls {
		if err := numbers(c.Arguments); err != nil {
			return Fixtures{}, fmt.Errorf("fixtures: %s: %w", c.Operation, err)
		}
		f.Calls = append(f.Calls, Call{Operation: c.Operation, Arguments: valueOf(c.Arguments), Slow: c.Slow})
	}
	return f, nil
}

// numbers finds one that can't be meant.
func numbers(v any) error {
	switch v := v.(type) {
	case json.Number:
		_, err := numberOf(v)
		return err
	case []any:
		for _, item := range v {
			if err := numbers(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v {
			if err := numbers(item); err != nil {
				return err
			}
		}
	}
	return nil
}
