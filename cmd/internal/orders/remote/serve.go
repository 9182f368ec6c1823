// Package remote speaks the contract of proto/mcppif/order/v1: it serves an order to the
// nodes of a cluster, and is a node's access to an order that a process elsewhere serves.
//
// A node gives all processes that serve the same order, and uses one of them at a time:
// the next one when it doesn't answer a proposal, or when its stream says nothing for some
// seconds. A process says something only while its engine does, so that one that is cut
// off from the others isn't waited for.
//
// Who may come is decided by mutual TLS, or by the permissions of a unix socket's folder.
package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	orderv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/order/v1"
)

const (
	maxMessage = order.MaxProposal + 64<<10
	// aliveInterval is how often a stream says that its engine answers.
	aliveInterval = time.Second
	// silence is how long a stream may say nothing.
	silence = 3 * time.Second
	// proposeTimeout is how long a process may not answer. With the nine seconds that JetStream
	// takes to elect a leader, and the pauses between tries, it is less than 15 s.
	proposeTimeout = 3 * time.Second
	// trimTimeout is how long a process may take to trim, which isn't left for it.
	trimTimeout = 10 * time.Second
)

// Alive is what an order may have that can tell whether its engine answers now and this
// process sees what the others do.
type Alive interface {
	Alive(ctx context.Context) error
}

// codesOf is what an order's errors are on the wire, and back.
var codesOf = map[codes.Code]error{
	codes.InvalidArgument:    order.ErrTooLarge,
	codes.OutOfRange:         order.ErrTrimmed,
	codes.DataLoss:           order.ErrEnds,
	codes.FailedPrecondition: order.ErrOther,
}

// toStatus returns an error as a status.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	for code, known := range codesOf {
		if errors.Is(err, known) {
			return status.Error(code, err.Error())
		}
	}
	return status.Error(codes.Unavailable, err.Error())
}

// fromStatus returns what toStatus was given.
func fromStatus(err error) error {
	s, ok := status.FromError(err)
	if !ok || err == nil {
		return err
	}
	if known, ok := codesOf[s.Code()]; ok {
		if s.Message() == known.Error() {
			return known
		}
		return fmt.Errorf("%w (%s)", known, s.Message())
	}
	return errors.New(s.Message())
}

// Listen listens at "unix:PATH", whose folder must be this user's alone, or at a TCP
// address, which needs TLS beyond loopback.
func Listen(address string, secure bool) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		info, err := os.Stat(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		if info.Mode().Perm()&0o077 != 0 {
			return nil, fmt.Errorf("others may enter the folder of the socket %s: chmod 700 it", path)
		}
		// One that was left by a process that was killed.
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return nil, fmt.Errorf("a process listens at %s", path)
		} else if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		return net.Listen("unix", path)
	}
	if !secure && !loopback(address) {
		return nil, fmt.Errorf("%s is more than loopback and needs mutual TLS (--tls-cert, --tls-key, --tls-ca)", address)
	}
	return net.Listen("tcp", address)
}

// loopback reports whether an address is a number of this machine's own.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// Serve serves an order until ctx ends. The configuration, if there is one, must ask
// for clients' certificates.
func Serve(ctx context.Context, l net.Listener, o order.Order, config *tls.Config) error {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(4096),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 5 * time.Second, Timeout: 5 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
	if config != nil {
		if config.ClientAuth != tls.RequireAndVerifyClientCert {
			return errors.New("clients' certificates aren't asked for")
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	s := grpc.NewServer(options...)
	orderv1.RegisterOrderServer(s, &service{order: o})
	stop := context.AfterFunc(ctx, s.Stop)
	defer stop()
	err := s.Serve(l)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// A service serves an order.
type service struct {
	orderv1.UnimplementedOrderServer
	order order.Order
}

// meant returns an error if a request means another order.
func (s *service) meant(ctx context.Context, identity string) error {
	if identity == "" {
		return nil
	}
	is, err := s.order.Identity(ctx)
	if err == nil && is != identity {
		err = order.ErrOther
	}
	return toStatus(err)
}

func (s *service) Identity(ctx context.Context, _ *orderv1.IdentityRequest) (*orderv1.IdentityResponse, error) {
	identity, err := s.order.Identity(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	return &orderv1.IdentityResponse{Identity: identity}, nil
}

func (s *service) Propose(ctx context.Context, r *orderv1.ProposeRequest) (*orderv1.ProposeResponse, error) {
	if err := s.meant(ctx, r.GetIdentity()); err != nil {
		return nil, err
	}
	if err := s.order.Propose(ctx, r.GetProposal()); err != nil {
		return nil, toStatus(err)
	}
	return &orderv1.ProposeResponse{}, nil
}

func (s *service) Trim(ctx context.Context, r *orderv1.TrimRequest) (*orderv1.TrimResponse, error) {
	if err := s.meant(ctx, r.GetIdentity()); err != nil {
		return nil, err
	}
	if err := s.order.Trim(ctx, r.GetBefore()); err != nil {
		return nil, toStatus(err)
	}
	return &orderv1.TrimResponse{}, nil
}

// Follow sends what there is, and each second that the engine answers.
func (s *service) Follow(r *orderv1.FollowRequest, stream grpc.ServerStreamingServer[orderv1.FollowResponse]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	if err := s.meant(ctx, r.GetIdentity()); err != nil {
		return err
	}
	places := make(chan *orderv1.Place)
	ended := make(chan error, 1)
	go func() {
		ended <- s.order.Follow(ctx, r.GetFrom(), func(place uint64, p []byte) error {
			select {
			case places <- &orderv1.Place{Place: place, Proposal: p}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	tick := time.NewTicker(aliveInterval)
	defer tick.Stop()
	alive := make(chan struct{}, 1)
	ask := func() {
		a, ok := s.order.(Alive)
		limit, done := context.WithTimeout(ctx, silence/2)
		defer done()
		if !ok || a.Alive(limit) == nil {
			select {
			case alive <- struct{}{}:
			default:
			}
		}
	}
	go ask()
	for {
		var answer orderv1.FollowResponse
		select {
		case p := <-places:
			answer.Places = append(answer.Places, p)
		more:
			for size := len(p.Proposal); size < order.MaxProposal/4 && len(answer.Places) < 256; {
				select {
				case p := <-places:
					// A large one may follow a quarter of a MiB.
					answer.Places = append(answer.Places, p)
					size += len(p.Proposal)
				default:
					break more
				}
			}
		case <-alive:
		case <-tick.C:
			go ask()
			continue
		case err := <-ended:
			return toStatus(err)
		}
		if err := stream.Send(&answer); err != nil {
			return err
		}
	}
}
