package remote_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/journal/order/ordertest"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/remote"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// serve serves an order until the test ends.
func serve(t *testing.T, address string, o order.Order, config *tls.Config) string {
	t.Helper()
	l, err := remote.Listen(address, config != nil)
	must.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- remote.Serve(ctx, l, o, config) }()
	t.Cleanup(func() {
		cancel()
		if err := wait.For(t, ended, "the service ends"); err != nil {
			t.Error(err)
		}
	})
	if strings.HasPrefix(address, "unix:") {
		return address
	}
	return l.Addr().String()
}

func open(t *testing.T, config *tls.Config, addresses ...string) order.Order {
	t.Helper()
	o, err := remote.Open(addresses, config, nil)
	must.NoError(t, err)
	return o
}

// folder returns one that only this user enters, with a path short enough for a socket.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "o")
	must.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// An order holds the contract over a socket, and over mutual TLS.
func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		m := order.NewMemory(order.MemoryOptions{})
		one := serve(t, "unix:"+filepath.Join(folder(t), "s"), m.Open(), nil)
		two := serve(t, "unix:"+filepath.Join(folder(t), "s"), m.Open(), nil)
		var n atomic.Int64
		ordertest.Run(t, func() order.Order {
			if n.Add(1)%2 == 0 {
				return open(t, nil, one, two)
			}
			return open(t, nil, two)
		})
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		ours, theirs := authority(t), authority(t)
		m := order.NewMemory(order.MemoryOptions{})
		address := serve(t, "127.0.0.1:0", m.Open(), ours)
		ordertest.Run(t, func() order.Order { return open(t, ours, address) })
		m = order.NewMemory(order.MemoryOptions{})
		address = serve(t, "127.0.0.1:0", m.Open(), ours)
		for what, config := range map[string]*tls.Config{
			"another authority's": theirs, "none": {RootCAs: ours.RootCAs},
		} {
			o := open(t, config, address)
			// The server ends the connection with an alert, which the end itself may overtake.
			if err := o.Propose(t.Context(), []byte("x")); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a client with a certificate of this kind: %s: %v", what, err)
			}
			o.Close()
		}
		mark := []byte("the last")
		must.NoError(t, m.Open().Propose(t.Context(), mark))
		places, err := ordertest.Until(t.Context(), m.Open(), 1, mark)
		must.NoError(t, err)
		for _, x := range places {
			if string(x.P) == "x" {
				t.Error("what a client proposed that may not is in the order")
			}
		}
	})
}

// authority returns the configuration of a process with a certificate of a new authority.
func authority(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "node"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	must.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool, RootCAs: pool,
	}
}

// A stuck order answers nothing while it is stuck, and doesn't show what it has.
type stuck struct {
	order.Order
	is      atomic.Bool
	follows atomic.Int64
}

func (s *stuck) Alive(context.Context) error {
	if s.is.Load() {
		return errors.New("no leader")
	}
	return nil
}

func (s *stuck) Propose(ctx context.Context, p []byte) error {
	if s.is.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Order.Propose(ctx, p)
}

func (s *stuck) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	s.follows.Add(1)
	return s.Order.Follow(ctx, from, func(place uint64, p []byte) error {
		if s.is.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		return fn(place, p)
	})
}

// Who follows at a process whose engine is cut off goes to another one by itself, though the
// process and its connection live; and a node begins before any process is there.
func TestFailover(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	first := &stuck{Order: m.Open()}
	later := "unix:" + filepath.Join(folder(t), "s")
	o := open(t, nil, serve(t, "unix:"+filepath.Join(folder(t), "s"), first, nil), later)
	defer o.Close()
	other := m.Open()
	seen := make(chan string, 10)
	go o.Follow(t.Context(), 1, func(_ uint64, p []byte) error {
		seen <- string(p)
		return nil
	})
	must.NoError(t, other.Propose(t.Context(), []byte("before")))
	if p := wait.For(t, seen, "the first process shows a proposal"); p != "before" {
		t.Fatal(p)
	}
	first.is.Store(true)
	serve(t, later, m.Open(), nil)
	must.NoError(t, other.Propose(t.Context(), []byte("after")))
	if p := wait.For(t, seen, "the other process shows the next"); p != "after" {
		t.Fatal(p)
	}
	must.Succeed(t)(ordertest.Propose(t.Context(), o, []byte("mine")))
	if p := wait.For(t, seen, "one's own"); p != "mine" {
		t.Fatal(p)
	}
}

// Who goes on at a process that has something else at the last place seen is told, though it
// is the same order and longer.
func TestPlaceGivenAgain(t *testing.T) {
	t.Parallel()
	one, two := order.NewMemory(order.MemoryOptions{Identity: "same"}), order.NewMemory(order.MemoryOptions{Identity: "same"})
	first := &stuck{Order: one.Open()}
	later := "unix:" + filepath.Join(folder(t), "s")
	o := open(t, nil, serve(t, "unix:"+filepath.Join(folder(t), "s"), first, nil), later)
	defer o.Close()
	for i, m := range []*order.Memory{one, two, two} {
		must.NoError(t, m.Open().Propose(t.Context(), fmt.Append(nil, i)))
	}
	seen, ended := make(chan bool, 10), make(chan error, 1)
	go func() {
		ended <- o.Follow(t.Context(), 1, func(uint64, []byte) error {
			first.is.Store(true)
			seen <- true
			return nil
		})
	}()
	wait.For(t, seen, "the first process shows a place")
	serve(t, later, two.Open(), nil)
	if err := wait.For(t, ended, "the end of Follow"); !errors.Is(err, order.ErrEnds) {
		t.Error(err)
	}
}

// Another order under an address that was used is refused, and so is what isn't safe.
func TestRefused(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	o := open(t, nil, serve(t, "unix:"+filepath.Join(folder(t), "s"), m.Open(), nil))
	defer o.Close()
	must.Succeed(t)(ordertest.Propose(t.Context(), o, []byte("x")))
	m.Replace()
	if _, err := ordertest.Propose(t.Context(), o, []byte("x")); !errors.Is(err, order.ErrOther) {
		t.Errorf("Propose to another order: %v", err)
	}
	if err := o.Follow(t.Context(), 1, nil); !errors.Is(err, order.ErrOther) {
		t.Errorf("Follow of another order: %v", err)
	}
	for _, addresses := range [][]string{nil, {"10.0.0.1:1"}, {"example.com:1"}} {
		if _, err := remote.Open(addresses, nil, nil); err == nil {
			t.Errorf("%v without TLS: no error", addresses)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer l.Close()
	if err := remote.Serve(t.Context(), l, m.Open(), &tls.Config{}); err == nil {
		t.Error("TLS without clients' certificates is served")
	}
	dir := folder(t)
	path := "unix:" + filepath.Join(dir, "s")
	serve(t, path, m.Open(), nil)
	if _, err := remote.Listen(path, false); err == nil {
		t.Error("a socket that is in use is taken over")
	}
	must.NoError(t, os.Chmod(dir, 0o755))
	for _, address := range []string{path, "0.0.0.0:0", "localhost:0"} {
		if _, err := remote.Listen(address, false); err == nil {
			t.Errorf("%s: no error", address)
		}
	}
}
