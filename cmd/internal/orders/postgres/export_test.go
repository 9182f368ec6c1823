package postgres

import "time"

// What tests propose once has time on a busy machine.
func init() { connectTimeout, proposeTimeout = time.Minute, time.Minute }
