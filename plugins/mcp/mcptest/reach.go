package mcptest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// reach goes to a URL in one of these ways, and gives what came of it:
//
//	proxy           as the environment says
//	direct          around the proxy
//	tcp, udp, unix  by such a socket, to an address
func reach(way, at string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	switch way {
	case "proxy", "direct":
		transport := &http.Transport{DisableKeepAlives: true}
		if way == "proxy" {
			transport.Proxy = func(r *http.Request) (*url.URL, error) {
				return url.Parse(os.Getenv(strings.ToUpper(r.URL.Scheme) + "_PROXY"))
			}
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		if err != nil {
			return err.Error()
		}
		answer, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			return "failed: " + err.Error()
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return answer.Status + " " + string(body)
	default:
		c, err := (&net.Dialer{}).DialContext(ctx, way, at)
		if err != nil {
			return "failed: " + err.Error()
		}
		defer c.Close()
		if _, err := c.Write([]byte("hello")); err != nil {
			return "failed: " + err.Error()
		}
		return "sent"
	}
}
