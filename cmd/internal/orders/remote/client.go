package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	orderv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/order/v1"
)

// A client is a node's access to an order that processes elsewhere serve.
type client struct {
	targets []target
	log     *slog.Logger
	life    context.Context
	end     context.CancelCauseFunc

	mu       sync.Mutex
	at       int           // the target in use
	moved    chan struct{} // closed when another one comes into use
	identity string        // once seen
}

type target struct {
	address string
	conn    io.Closer
	service orderv1.OrderClient
}

// Open gives access to the order that some processes serve, each at "unix:PATH" or at
// "HOST:PORT"; all serve the same one. They need not run yet. Without a configuration
// for TLS a TCP address must be loopback's.
func Open(addresses []string, config *tls.Config, log *slog.Logger) (order.Order, error) {
	if len(addresses) == 0 {
		return nil, errors.New("no process that serves the order is named")
	}
	c := newClient(log)
	for _, address := range addresses {
		name, unix := address, strings.HasPrefix(address, "unix:")
		credential := insecure.NewCredentials()
		switch {
		case unix:
		case config != nil:
			credential, name = credentials.NewTLS(config), "passthrough:///"+address
		case loopback(address):
			name = "passthrough:///" + address
		default:
			return nil, fmt.Errorf("%s is more than loopback and needs mutual TLS", address)
		}
		conn, err := grpc.NewClient(name, grpc.WithTransportCredentials(credential), grpc.WithNoProxy(),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(4*maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: silence, PermitWithoutStream: true}),
			grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 2 * time.Second, Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, MaxDelay: time.Second}}))
		if err != nil {
			return nil, err
		}
		c.targets = append(c.targets, target{address, conn, orderv1.NewOrderClient(conn)})
	}
	return order.Share(c), nil
}

func newClient(log *slog.Logger) *client {
	c := &client{log: cmp.Or(log, slog.New(slog.DiscardHandler)), moved: make(chan struct{})}
	c.life, c.end = context.WithCancelCause(context.Background())
	return c
}

// OpenTarget opens what one text says: order://HOST:PORT,…?cert=FILE&key=FILE&ca=FILE of
// processes elsewhere, or "unix:PATH" and loopback's HOST:PORT, with commas between them.
func OpenTarget(text string, log *slog.Logger) (order.Order, error) {
	list, files, _ := strings.Cut(strings.TrimPrefix(text, "order://"), "?")
	q, err := url.ParseQuery(files)
	if err != nil {
		return nil, err
	}
	config, err := LoadTLS(q.Get("cert"), q.Get("key"), q.Get("ca"))
	if err != nil {
		return nil, err
	}
	addresses := strings.Split(list, ",")
	for _, a := range addresses {
		if _, _, err := net.SplitHostPort(a); err != nil && !strings.HasPrefix(a, "unix:/") {
			return nil, fmt.Errorf("no order is at %q: it is postgres://…, or the address of an mcp-pif-order, unix:/PATH or HOST:PORT", text)
		}
	}
	return Open(addresses, config, log)
}

// Reach reports why no process listens at any address of a target; nil: one does. It waits three seconds for one that was
// started a moment ago.
func Reach(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var dialer net.Dialer
	for {
		list, _, _ := strings.Cut(strings.TrimPrefix(target, "order://"), "?")
		var err error
		for address := range strings.SplitSeq(list, ",") {
			network := "tcp"
			if path, isPath := strings.CutPrefix(address, "unix:"); isPath {
				network, address = "unix", path
			}
			conn, wrong := dialer.DialContext(ctx, network, address)
			if wrong == nil {
				return conn.Close()
			}
			if err = wrong; errors.As(wrong, new(*net.OpError)) {
				err = errors.Unwrap(wrong)
			}
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// LoadTLS returns mutual TLS by files in PEM: a certificate, its key, and the authority whose
// certificates are taken; nil where none are given.
func LoadTLS(cert, key, ca string) (*tls.Config, error) {
	if cert == "" && key == "" && ca == "" {
		return nil, nil
	}
	if cert == "" || key == "" || ca == "" {
		return nil, errors.New("the files of certificate, key and authority go together")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", ca)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, RootCAs: pool,
	}, nil
}

// now returns the target in use, and what is closed when another one is.
func (c *client) now() (int, orderv1.OrderClient, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at, c.targets[c.at].service, c.moved
}

// leave has the next target used in place of one, if it still is in use.
func (c *client) leave(at int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != at || len(c.targets) == 1 {
		return
	}
	c.at = (at + 1) % len(c.targets)
	close(c.moved)
	c.moved = make(chan struct{})
	c.log.Warn("the order is sought at another process", "left", c.targets[at].address, "now", c.targets[c.at].address, "error", err)
}

// final reports whether an error is an answer, which another process would give too.
func final(err error) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(codesOf)), func(known error) bool { return errors.Is(err, known) })
}

// call calls one target, and has another one used if it doesn't answer.
func (c *client) call(ctx context.Context, what func(context.Context, orderv1.OrderClient) error) error {
	at, err := c.ask(ctx, proposeTimeout, what)
	if err != nil && c.life.Err() == nil && ctx.Err() == nil && !final(err) {
		c.leave(at, err)
	}
	return err
}

// ask calls the target in use with a limit.
func (c *client) ask(ctx context.Context, limit time.Duration, what func(context.Context, orderv1.OrderClient) error) (at int, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	at, service, _ := c.now()
	if err = fromStatus(what(limited, service)); err != nil && c.life.Err() != nil {
		err = order.ErrClosed
	} else if err != nil {
		err = cmp.Or(ctx.Err(), err)
	}
	return at, err
}

func (c *client) Propose(ctx context.Context, p []byte) error {
	if len(p) > order.MaxProposal {
		return order.ErrTooLarge
	}
	identity, err := c.known(ctx)
	if err != nil {
		return err
	}
	// gRPC may still send the request when the call has ended: it gets its own bytes.
	request := &orderv1.ProposeRequest{Proposal: append([]byte{}, p...), Identity: identity}
	return c.call(ctx, func(ctx context.Context, s orderv1.OrderClient) error {
		_, err := s.Propose(ctx, request)
		return err
	})
}

// known returns the identity that was seen first.
func (c *client) known(ctx context.Context) (string, error) {
	c.mu.Lock()
	identity := c.identity
	c.mu.Unlock()
	if identity != "" {
		return identity, nil
	}
	return c.Identity(ctx)
}

func (c *client) Identity(ctx context.Context) (identity string, err error) {
	err = c.call(ctx, func(ctx context.Context, s orderv1.OrderClient) error {
		answer, err := s.Identity(ctx, &orderv1.IdentityRequest{})
		identity = answer.GetIdentity()
		return err
	})
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identity = cmp.Or(c.identity, identity)
	if c.identity != identity {
		return "", order.ErrOther
	}
	return identity, nil
}

func (c *client) Trim(ctx context.Context, before uint64) error {
	identity, err := c.known(ctx)
	if err != nil {
		return err
	}
	_, err = c.ask(ctx, trimTimeout, func(ctx context.Context, s orderv1.OrderClient) error {
		_, err := s.Trim(ctx, &orderv1.TrimRequest{Before: before, Identity: identity})
		return err
	})
	return err
}

// Follow follows at one target after the other.
func (c *client) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	for seen := (order.Seen{}); ; {
		at, service, moved := c.now()
		progress, stop, err := c.follow(ctx, service, moved, seen.From(from), &seen, fn)
		switch {
		case c.life.Err() != nil:
			return order.ErrClosed
		case stop:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if !progress {
			c.leave(at, err)
		}
		select {
		case <-ctx.Done():
		case <-c.life.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// follow follows at one target until it fails, says nothing, or another one is in use.
func (c *client) follow(ctx context.Context, service orderv1.OrderClient, moved <-chan struct{}, from uint64, seen *order.Seen, fn func(uint64, []byte) error) (progress, stop bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	identity, err := c.known(ctx)
	if err != nil {
		return false, final(err), err
	}
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-moved:
			cancel()
		case <-over:
		}
	}()
	stream, err := service.Follow(ctx, &orderv1.FollowRequest{From: from, Identity: identity})
	for err == nil {
		var answer *orderv1.FollowResponse
		if answer, err = stream.Recv(); err != nil {
			break
		}
		progress = true
		quiet.Stop()
		for _, x := range answer.GetPlaces() {
			if x.GetPlace() < from {
				return progress, true, fmt.Errorf("%w: place %d comes after place %d", order.ErrEnds, x.GetPlace(), from-1)
			}
			from = x.GetPlace() + 1
			p := x.GetProposal()
			if p == nil {
				p = []byte{}
			}
			isNew, err := seen.Check(x.GetPlace(), p)
			if err == nil && isNew {
				err = fn(x.GetPlace(), p)
			}
			if err != nil {
				return progress, true, err
			}
		}
		quiet.Reset(silence)
	}
	err = fromStatus(err)
	return progress && ctx.Err() == nil, final(err), err
}

func (c *client) Close() error {
	c.end(order.ErrClosed)
	for _, t := range c.targets {
		t.conn.Close()
	}
	return nil
}
