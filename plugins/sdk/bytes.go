package sdk

import (
	"errors"
	"fmt"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// Encode writes a value as bytes, for plugins that keep values: exactly, and two
// values that are the same to the last digit as the same bytes. It is the
// message Value of the contract. A value of more than most bytes, or one that
// holds a function, is a [Failure].
func Encode(v value.Value, most int) ([]byte, error) {
	b, err := wire.EncodeValue(v, most)
	switch {
	case errors.Is(err, wire.ErrTooLarge):
		return nil, Fail("too_large", "the value has more than the %d bytes that are allowed", most)
	case err != nil:
		return nil, Fail("invalid", "the value can't be kept: %s", err)
	}
	return b, nil
}

// Decode reads what [Encode] wrote.
func Decode(b []byte) (value.Value, error) {
	v, err := wire.DecodeValue(b)
	if err != nil {
		return nil, fmt.Errorf("these bytes are no value: %w", err)
	}
	return v, nil
}
