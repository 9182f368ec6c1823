package node

import "time"

func init() { deaf = 4 * time.Second }
