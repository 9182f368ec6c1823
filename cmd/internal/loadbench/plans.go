package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
)

// plans has runs planned that would write much, and notes how many plans there were.
func plans(ctx context.Context, s *server) error {
	code := `k => let s = fold(p => fst(p) ++ fst(p), "0123456789abcdef", range(0, 10)) in map(i => !fs.write({path: k ++ to_text(i), content: s}), range(0, 200))`
	for i := range 2 {
		if err := s.make(ctx, fmt.Sprint("p", i), object{"name": "many", "code": code, "capabilities": []string{"fs:./data"}}); err != nil {
			return err
		}
	}
	var made, refused atomic.Int64
	each(60, func(i int) {
		for ctx.Err() == nil {
			answer, err := s.call(ctx, fmt.Sprint("p", i%2), "run", object{"tool": "many", "input": "k", "plan": true})
			switch {
			case err == nil && !strings.Contains(answer, `"isError":true`):
				made.Add(1)
			case ctx.Err() == nil:
				refused.Add(1)
			}
		}
	})
	s.say("%d plans, %d refused", made.Load(), refused.Load())
	return nil
}
