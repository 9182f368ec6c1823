//go:build unix

package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// certificate makes a certificate for this machine, and its key, as PEM.
func certificate(t *testing.T, serial int64) (cert, key []byte, parsed *x509.Certificate) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "pif"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	must.NoError(t, err)
	if parsed, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), parsed
}

// TestHTTPCertificateRotates: after SIGHUP new connections get the certificate that the
// files have then, by links that were moved, too; streams that are open go on; files that don't belong together change nothing.
func TestHTTPCertificateRotates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pool := x509.NewCertPool()
	write := func(name string, text []byte) {
		t.Helper()
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	for serial, name := range []string{"one", "two"} {
		cert, key, parsed := certificate(t, int64(serial+1))
		write(name+".crt", cert)
		write(name+".key", key)
		pool.AddCert(parsed)
	}
	point := func(file, to string) {
		t.Helper()
		path := filepath.Join(dir, file)
		_ = os.Remove(path)
		must.NoError(t, os.Symlink(to, path))
	}
	point("tls.crt", "one.crt")
	point("tls.key", "one.key")
	s := startWeb(t, t.TempDir(), "--http-tls-cert", filepath.Join(dir, "tls.crt"), "--http-tls-key", filepath.Join(dir, "tls.key"))
	client := func() *http.Client {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	health := strings.TrimSuffix(s.url, "/mcp") + "/healthz"
	serial := func(c *http.Client) int64 {
		t.Helper()
		res, err := c.Get(health)
		must.NoError(t, err)
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return res.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	again := func(logged string) {
		t.Helper()
		before := strings.Count(s.logged(), logged)
		must.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
		s.wait(logged, func() bool { return strings.Count(s.logged(), logged) > before })
	}
	old := client()
	if n := serial(old); n != 1 {
		t.Fatalf("the first certificate is %d", n)
	}
	// A stream that is open on it.
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(listening))
	for h, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": eras[0], "Mcp-Method": "subscriptions/listen"} {
		r.Header.Set(h, v)
	}
	stream, err := old.Do(r)
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", stream, err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "subscriptions/acknowledged") {
		continue // it listens from there on
	}
	heard := make(chan bool, 1)
	go func() {
		for lines.Scan() {
			if strings.Contains(lines.Text(), "tools/list_changed") {
				heard <- true
				return
			}
		}
		heard <- false
	}()
	point("tls.crt", "two.crt")
	again("refused; what held before stays") // the key is another's
	if n := serial(client()); n != 1 {
		t.Errorf("with a key that isn't its own the certificate is %d", n)
	}
	point("tls.key", "two.key")
	again("taken=1")
	if n := serial(client()); n != 2 {
		t.Errorf("after the rotation a new connection gets the certificate %d", n)
	}
	evolve := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"evolve","arguments":{"name":"one","code":"1"},"_meta":` + meta + `}}`
	r, _ = http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(evolve))
	for h, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": eras[0], "Mcp-Method": "tools/call", "Mcp-Name": "evolve"} {
		r.Header.Set(h, v)
	}
	res, err := client().Do(r)
	must.NoError(t, err)
	b, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusOK || !strings.Contains(string(b), `"version":1`) {
		t.Fatalf("status %d: %s", res.StatusCode, b)
	}
	if !wait.For(t, heard, "a notification on the stream") {
		t.Error("the stream that was open ended")
	}
	s.stop()
}

// meta is what a request of the protocol without sessions says of its client, and
// listening one that waits for changes.
const (
	meta      = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	listening = `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"_meta":` + meta + `,"notifications":{"toolsListChanged":true}}}`
)
