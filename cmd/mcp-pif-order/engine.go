package main

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// An engine is one of the servers that keep the order, in this process. Nothing but this
// process is its client; the others are its routes.
type engine struct {
	server *server.Server
	key    string
}

// engineOptions of one server.
type engineOptions struct {
	name    string      // its own among the servers
	dir     string      // its files
	listen  string      // where the other servers reach it; "" if it is alone
	peers   []string    // where it reaches the others
	routes  *tls.Config // between the servers
	cluster string
	anew    bool // without what it has of the order: the others have all
}

// startEngine starts a server that syncs each append to disk before it counts.
func startEngine(o engineOptions, log *slog.Logger) (*engine, error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, err
	}
	// Beside the messages of a stream the server notes how far they go, and takes those that
	// its files lack, as after a power failure, for deleted. Without the note it asks the others.
	if o.listen != "" {
		drop := "index.db"
		if o.anew {
			drop = "*"
		}
		files, err := filepath.Glob(filepath.Join(o.dir, "jetstream", "*", "*", "streams", o.cluster, "msgs", drop))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				return nil, err
			}
		}
	}
	// Routing waits for a port for clients, so there is one on loopback, with a key that
	// only this process knows.
	key := rand.Text()
	options := &server.Options{
		ServerName: o.name, Host: "127.0.0.1", Port: server.RANDOM_PORT, Username: "order", Password: key, NoSigs: true, NoLog: false,
		JetStream: true, StoreDir: filepath.Join(o.dir, "jetstream"), JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 40,
		SyncAlways: true, SyncInterval: time.Minute,
		MaxPayload: 4 << 20, WriteDeadline: 5 * time.Second, PingInterval: 2 * time.Second, MaxPingsOut: 2,
	}
	if o.listen != "" {
		host, port, err := net.SplitHostPort(o.listen)
		if err != nil {
			return nil, err
		}
		number, err := net.LookupPort("tcp", port)
		if err != nil {
			return nil, err
		}
		options.Cluster = server.ClusterOpts{Name: o.cluster, Host: host, Port: number, PoolSize: -1, ConnectRetries: 1 << 30, NoAdvertise: true}
		if o.routes != nil {
			options.Cluster.TLSConfig, options.Cluster.TLSTimeout = o.routes, 5
		}
		for _, p := range o.peers {
			options.Routes = append(options.Routes, &url.URL{Scheme: "nats", Host: p})
		}
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, err
	}
	says := &natsLog{log: log}
	s.SetLoggerV2(says, false, false, false)
	s.Start()
	ready := false
	for begun := time.Now(); !ready && says.fatal.Load() == nil && time.Since(begun) < 20*time.Second; {
		ready = s.ReadyForConnections(100 * time.Millisecond) // the port for routes is opened after Start
	}
	if why := says.fatal.Load(); why != nil {
		s.Shutdown()
		if o.listen != "" && strings.HasPrefix(*why, "Can't start JetStream") { // it reads the files
			return nil, fmt.Errorf("%s; if a file in %s is damaged, and the other processes serve the order, move that folder away: this process takes all from them", *why, o.dir)
		}
		return nil, errors.New(*why)
	}
	if !ready {
		s.Shutdown()
		return nil, errors.New("the server doesn't start within 20 s")
	}
	return &engine{s, key}, nil
}

// connect returns a connection within the process.
func (e *engine) connect() (*nats.Conn, error) {
	return nats.Connect("", nats.InProcessServer(e.server), nats.UserInfo("order", e.key), nats.NoEcho(), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
}

// has reports whether this server's copy of a stream has a place, and what it lacks before its
// end, from a place on or from where it begins if that is earlier.
func (e *engine) has(stream string, first, place uint64) (there bool, lacks uint64) {
	z, err := e.server.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return false, 0
	}
	for _, account := range z.AccountDetails {
		for _, x := range account.Streams {
			if x.Name == stream && x.State.LastSeq >= place {
				return true, x.State.LastSeq - min(first, x.State.FirstSeq) + 1 - x.State.Msgs
			}
		}
	}
	return false, 0
}

func (e *engine) stop() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// A natsLog has the server's warnings in the log of this process.
type natsLog struct {
	log   *slog.Logger
	fatal atomic.Pointer[string] // why it can't start
}

func (l *natsLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *natsLog) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l *natsLog) Fatalf(format string, v ...any) {
	why := fmt.Sprintf(format, v...)
	l.fatal.Store(&why)
	l.log.Error(why)
}
func (l *natsLog) Errorf(format string, v ...any) { l.log.Error(fmt.Sprintf(format, v...)) }
func (l *natsLog) Debugf(format string, v ...any) {}
func (l *natsLog) Tracef(format string, v ...any) {}
