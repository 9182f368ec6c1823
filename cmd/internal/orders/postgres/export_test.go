package postgres

import "time"

// What tests propose once has time on a busy machine.
func init() { connectTimeout, proposeTimeout = time.Minute, time.Minute }

// Read is what each node asks again and again.
const Read = read
