package ui

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// policy is what a page may load and do: its own style, script, image and stream, forms to
// itself; and no text ever becomes markup, by whatever script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// headers are on every answer.
var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Cache-Control":                "no-store",
}

const (
	// keyLife is how long a key opens the door.
	keyLife = time.Minute
	// maxKeys and maxSessions are how many keys wait, and how many browsers are in, at most;
	// the oldest go.
	maxKeys, maxSessions = 8, 32
)

// A door lets in the browsers of whoever can read this process's terminal: a key is good
// once and for a minute, and is answered by a cookie that lives as long as the process.
type door struct {
	host   string // as browsers send it, with the port
	cookie string // its name, which no other start has
	secret [32]byte
	now    func() time.Time

	mu       sync.Mutex
	keys     []key
	sessions []string
}

type key struct {
	text string
	made time.Time
}

// newDoor makes the door of a page. name is the host without the port; the empty one is a
// name that only this start has: cookies don't know ports, and other programs on this
// machine are other sites that way.
func newDoor(name string, port int, now func() time.Time) *door {
	mark := random(4)
	if name == "" {
		name = "pif-" + mark + ".localhost"
	}
	d := &door{host: net.JoinHostPort(name, fmt.Sprint(port)), cookie: "pif-" + mark, now: now}
	rand.Read(d.secret[:])
	return d
}

func random(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// link makes a key and gives the address that it opens.
func (d *door) link() string {
	k := key{random(16), d.now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys = append(d.keys, k)
	d.keys = d.keys[max(0, len(d.keys)-maxKeys):]
	return "http://" + d.host + "/enter?key=" + k.text
}

// use takes a key away, and reports whether it was good.
func (d *door) use(text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, k := range d.keys {
		if hmac.Equal([]byte(k.text), []byte(text)) {
			d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
			age := d.now().Sub(k.made)
			return age >= 0 && age < keyLife
		}
	}
	return false
}

// admit begins a session and gives its cookie.
func (d *door) admit() *http.Cookie {
	id := random(16)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions = append(d.sessions, id)
	d.sessions = d.sessions[max(0, len(d.sessions)-maxSessions):]
	return &http.Cookie{Name: d.cookie, Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// session is the session of a request; "" if it has none.
func (d *door) session(r *http.Request) string {
	c, err := r.Cookie(d.cookie)
	if err != nil {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range d.sessions {
		if hmac.Equal([]byte(id), []byte(c.Value)) {
			return id
		}
	}
	return ""
}

// token is what a form of a session carries, so that no other page can send it.
func (d *door) token(session string) string {
	h := hmac.New(sha256.New, d.secret[:])
	h.Write([]byte(session))
	return hex.EncodeToString(h.Sum(nil))
}

// guard answers what isn't from a page of ours, in a browser that came in, with a refusal.
func (d *door) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		refuse := func(status int, why string) { http.Error(w, why, status) }
		site := r.Header.Get("Sec-Fetch-Site")
		switch {
		case r.Host != d.host:
			refuse(http.StatusMisdirectedRequest, "This is not the address of the page.")
		case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
			refuse(http.StatusMethodNotAllowed, "The page has no such method.")
		case r.Header.Get("Origin") != "" && r.Header.Get("Origin") != "http://"+d.host:
			refuse(http.StatusForbidden, "Another site's page asked for this.")
		// Whoever has the key may come from anywhere: a terminal in a browser, a file.
		case r.URL.Path == "/enter" && r.Method == http.MethodGet:
			d.enter(w, r)
		case site != "" && site != "same-origin" && site != "none":
			refuse(http.StatusForbidden, "Another site's page asked for this.")
		case d.session(r) == "":
			refuse(http.StatusForbidden, "Open the link that 'mcp-pif ui' printed. It is good once and for a minute: press Enter in that terminal for another.")
		case r.Method == http.MethodPost && !d.sameForm(r):
			refuse(http.StatusForbidden, "The form is not of this session: load the page again.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// sameForm reports whether a form was made for the session that sends it.
func (d *door) sameForm(r *http.Request) bool {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return false
	}
	r.Body = http.MaxBytesReader(nil, r.Body, 64<<10)
	return r.ParseForm() == nil && hmac.Equal([]byte(r.PostForm.Get("token")), []byte(d.token(d.session(r))))
}

// enter takes a key for a session. A redirect would still be part of what another site's
// link began, and get no strict cookie: the browser goes on from a page of ours.
func (d *door) enter(w http.ResponseWriter, r *http.Request) {
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" && mode != "navigate" || !d.use(r.URL.Query().Get("key")) {
		http.Error(w, "This link was used before, or is older than a minute. Press Enter in the terminal of 'mcp-pif ui' for another.", http.StatusForbidden)
		return
	}
	http.SetCookie(w, d.admit())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, `<!doctype html><html lang="en"><meta charset="utf-8"><title>mcp-pif</title><meta http-equiv="refresh" content="0;url=/"><p><a href="/">Go on to the page</a></p></html>`)
}
