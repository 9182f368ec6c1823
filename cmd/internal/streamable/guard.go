package streamable

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// A guard refuses what a web page makes a browser send. A page can't choose the
// Host of its requests other than by a name of its own that resolves to this
// machine, and can't hide its Origin.
type guard struct {
	hosts  map[string]bool
	origin *http.CrossOriginProtection
}

func newGuard(hosts, origins []string) (guard, error) {
	g := guard{hosts: map[string]bool{"localhost": true}, origin: http.NewCrossOriginProtection()}
	for _, h := range hosts {
		name := strings.ToLower(strings.TrimSuffix(h, "."))
		if name == "" || strings.ContainsAny(name, ":/@*? ") {
			return g, fmt.Errorf("%q is not a host's name: give it alone, without port, such as pif.example.com", h)
		}
		g.hosts[name] = true
	}
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || strings.Contains(o, "*") {
			return g, fmt.Errorf("%q is not an origin: give scheme and host, such as https://app.example.com", o)
		}
		if err := g.origin.AddTrustedOrigin(o); err != nil {
			return g, err
		}
	}
	return g, nil
}

func (g *guard) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.host(r.Host) {
			http.Error(w, "this server isn't called by that name; the operator's flag is --http-host", http.StatusForbidden)
			return
		}
		if !g.from(r) {
			http.Error(w, "requests of that origin aren't taken; the operator's flag is --http-origin", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// host reports whether the server may be called by a name: one that no other
// name system can have pointed here. Addresses are.
func (g *guard) host(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return g.hosts[host]
}

// from reports whether a request may come from where it says. What net/http lets
// pass because it is only read (GET) opens streams here, so it is asked as if it
// were a POST.
func (g *guard) from(r *http.Request) bool {
	if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && origins[0] == "null" {
		return false
	}
	asked := *r
	asked.Method = http.MethodPost
	return g.origin.Check(&asked) == nil
}
