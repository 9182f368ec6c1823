package sdk

import (
	"context"
	"fmt"
)

type progressKey struct{}

// Progress tells whoever waits how a request is getting on, in a short sentence.
// It costs nothing where nobody listens, and never waits.
func Progress(ctx context.Context, format string, args ...any) {
	if hear, ok := ctx.Value(progressKey{}).(func(string)); ok {
		hear(fmt.Sprintf(format, args...))
	}
}

// WithProgress returns a context whose requests tell hear how they get on, one
// call at a time for each request. It is for tests that use [Direct].
func WithProgress(ctx context.Context, hear func(message string)) context.Context {
	return context.WithValue(ctx, progressKey{}, hear)
}

type keyKey struct{}

// Key is the same for two requests only if they are the same act, for plugins
// that can tell a repetition; empty where the host gives none.
func Key(ctx context.Context) string {
	key, _ := ctx.Value(keyKey{}).(string)
	return key
}

type hopsKey struct{}

// Hops is how many servers of mcp-pif a request came through before it reached this host's,
// for plugins that pass it on to others; 0: it came from a client of its own.
func Hops(ctx context.Context) int {
	n, _ := ctx.Value(hopsKey{}).(int)
	return n
}

// WithKey returns a context whose requests have a key. It is for tests that use
// [Direct].
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyKey{}, key)
}
