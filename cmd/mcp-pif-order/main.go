// Command mcp-pif-order keeps the order of a cluster of mcp-pif servers in NATS JetStream,
// for those who have no PostgreSQL: each process has one of the servers in it and serves
// the contract of proto/mcppif/order/v1 to the nodes of the cluster.
//
//	mcp-pif-order --name o1 --dir DIR --listen unix:DIR/order.sock
//	mcp-pif-order --name o1 --dir DIR --listen HOST:PORT --route HOST:PORT --peers HOST:PORT,HOST:PORT
//	mcp-pif-order --nats nats://HOST:PORT --listen HOST:PORT
//
// The first is an order on one machine, the second one of three processes that keep it
// three times and go on without one of them, the third serves the order from a NATS
// that exists. Each append is on the disks of a majority before it is acknowledged. It is
// a module of its own, so that neither the engine nor its clients are in mcp-pif.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/remote"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "mcp-pif-order:", err)
		os.Exit(1)
	}
}

// errAnew is why a process begins anew, without what it has of the order.
var errAnew = errors.New("this process's copy of the order lacks places")

func run(ctx context.Context, args []string, stderr *os.File) error {
	err := keep(ctx, args, stderr, false)
	for errors.Is(err, errAnew) {
		err = keep(ctx, args, stderr, true)
	}
	return err
}

// keep keeps the order until ctx ends.
func keep(ctx context.Context, args []string, stderr *os.File, anew bool) error {
	flags := flag.NewFlagSet("mcp-pif-order", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var (
		name    = flags.String("name", "", "the `NAME` of this process among those that keep the order; each is used for one folder only, ever")
		dir     = flags.String("dir", "", "the `FOLDER` of the order's files")
		listen  = flags.String("listen", "", "where nodes reach it: unix:`PATH` or HOST:PORT")
		route   = flags.String("route", "", "the `HOST:PORT` where the other processes reach it")
		peers   = flags.String("peers", "", "the `HOST:PORT,…` of the other processes, two or four of them")
		natsURL = flags.String("nats", "", "the `URL` of a NATS with JetStream that exists, in place of --name, --dir, --route and --peers")
		creds   = flags.String("nats-creds", "", "the `FILE` with credentials for it")
		stream  = flags.String("stream", "mcp-pif", "the `NAME` of the order's stream")
		copies  = flags.Int("replicas", 0, "how many servers keep the order (default: all processes; 3 with --nats)")
		cert    = flags.String("tls-cert", "", "the `FILE` of this process's certificate, for nodes and processes alike")
		key     = flags.String("tls-key", "", "the `FILE` of its key")
		ca      = flags.String("tls-ca", "", "the `FILE` of the authority whose certificates are taken")
		wait    = flags.Duration("wait", 2*time.Minute, "how long to wait for the other processes at the start")
		verbose = flags.Bool("v", false, "log more")
	)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	secure, err := remote.LoadTLS(*cert, *key, *ca)
	switch {
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *listen == "":
		return errors.New("--listen is missing: where nodes reach this process")
	case *natsURL == "" && (*name == "" || *dir == ""):
		return errors.New("--name and --dir are missing, or --nats for a server that exists")
	case *natsURL != "" && (*name != "" || *dir != "" || *route != "" || *peers != ""):
		return errors.New("--nats is in place of --name, --dir, --route and --peers")
	case (*route == "") != (*peers == ""):
		return errors.New("--route and --peers go together")
	}
	others := strings.FieldsFunc(*peers, func(r rune) bool { return r == ',' })
	if len(others)%2 != 0 || len(others) > 4 {
		return fmt.Errorf("%d peers: an order is kept by 1, 3 or 5 processes, so of 0, 2 or 4 peers", len(others))
	}
	if *route != "" && secure == nil {
		for _, address := range append(others, *route) {
			if host, _, err := net.SplitHostPort(address); err != nil || !net.ParseIP(host).IsLoopback() {
				return fmt.Errorf("%s is more than loopback and needs mutual TLS (--tls-cert, --tls-key, --tls-ca)", address)
			}
		}
	}

	var conn *nats.Conn
	var e *engine
	if *natsURL != "" {
		options := []nats.Option{nats.Name("mcp-pif-order"), nats.NoEcho(), nats.MaxReconnects(-1), nats.ReconnectWait(200 * time.Millisecond), nats.PingInterval(2 * time.Second), nats.Timeout(5 * time.Second)}
		if *creds != "" {
			options = append(options, nats.UserCredentials(*creds))
		}
		if conn, err = nats.Connect(*natsURL, options...); err != nil {
			return err
		}
		if conn.MaxPayload() < 1<<20 {
			return errors.New("the server's max_payload is below 1 MiB")
		}
		*copies = cmp.Or(*copies, 3)
	} else {
		// A folder belongs to one name: a server that comes back under another one, or with
		// other files under its name, would count as one that has acknowledged what it hasn't.
		if err := claim(*dir, *name); err != nil {
			return err
		}
		e, err = startEngine(engineOptions{name: *name, dir: *dir, listen: *route, peers: others, routes: secure, cluster: *stream, anew: anew}, log)
		if err != nil {
			return err
		}
		defer e.stop()
		if conn, err = e.connect(); err != nil {
			return err
		}
		*copies = cmp.Or(*copies, len(others)+1)
	}
	defer conn.Close()
	l, err := remote.Listen(*listen, secure != nil)
	if err != nil {
		return err
	}
	defer l.Close()
	r, err := openRecord(*dir)
	if err != nil {
		return err
	}
	starting, done := context.WithTimeout(ctx, *wait)
	s, err := openStream(starting, conn, *stream, *copies, r, log)
	done()
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer s.Close()
	log.Info("serving the order", "identity", s.identity, "listen", *listen, "replicas", *copies)
	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if e != nil && s.isLost() == nil {
		go func() {
			if s.complete(e) {
				stop(errAnew)
			}
		}()
	}
	if strings.HasPrefix(*listen, "unix:") {
		secure = nil
	}
	if err := remote.Serve(serving, l, s, secure); err != nil {
		return err
	}
	if err := context.Cause(serving); errors.Is(err, errAnew) {
		return err
	}
	return nil
}

// claim writes the name into the folder, or finds it there.
func claim(dir, name string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, "name")
	was, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return statefile.Replace(path, []byte(name), 0o600)
	}
	if err == nil && string(was) != name {
		return fmt.Errorf("the folder belongs to %q, and can't be %q's", was, name)
	}
	return err
}
