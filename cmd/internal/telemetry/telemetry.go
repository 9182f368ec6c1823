// Package telemetry is what an operator's instruments see: counters and times of
// runs and effects for Prometheus, and traces, a span for each run and below it
// one for each effect, for a collector that speaks OTLP.
//
// It decides what may be seen: which tool and version ran, which operation was
// asked for, how it ended, how long it took. Never what went in or came out, and
// in metrics no tool's name either, since a model chooses those and each would be
// a series of its own. What happened is the journal's to say; this is about how
// the server does.
//
// [Open] makes it, [Telemetry.Run] is told of runs, [Telemetry.Handler] of
// effects, [Telemetry.Requests] of HTTP's requests. Without it nothing is measured, and it costs nothing.
package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope names what measures.
const scope = "github.com/mcp-pif/mcp-pif"

// Options is what to measure.
type Options struct {
	Version string // of the program
	// OTLP is the URL of a collector, "http://localhost:4318", or of its traces,
	// "http://localhost:4318/v1/traces"; "" sends none.
	OTLP string
	// Log hears of spans that couldn't be sent; nil: nobody does.
	Log *slog.Logger
}

// Telemetry measures. The nil one measures nothing. It is safe for concurrent use.
type Telemetry struct {
	registry *prometheus.Registry
	tracer   trace.Tracer
	close    []func(context.Context) error

	runs, steps, effects     metric.Int64Counter
	requests                 metric.Int64Counter
	running                  metric.Int64UpDownCounter
	runDuration, effDuration metric.Float64Histogram
}

// Open makes it. A collector that can't be reached is no error: its spans are
// dropped.
func Open(ctx context.Context, o Options) (*Telemetry, error) {
	t := &Telemetry{registry: prometheus.NewRegistry(), tracer: noop.NewTracerProvider().Tracer(scope)}
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(t.registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	about := resource.NewSchemaless(attribute.String("service.name", "mcp-pif"), attribute.String("service.version", o.Version))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(about))
	t.close = append(t.close, meters.Shutdown)
	if err := t.instruments(meters.Meter(scope)); err != nil {
		return nil, err
	}
	if o.OTLP != "" {
		at, err := tracesAt(o.OTLP)
		if err != nil {
			return nil, errors.Join(err, t.Close(ctx))
		}
		// The library has one place for the whole process to say what goes wrong.
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
			if o.Log != nil {
				o.Log.Warn("spans aren't sent", "error", err)
			}
		}))
		sender, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(at))
		if err != nil {
			return nil, errors.Join(err, t.Close(ctx))
		}
		tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(sender), sdktrace.WithResource(about))
		t.close = append(t.close, tracers.Shutdown)
		t.tracer = tracers.Tracer(scope, trace.WithInstrumentationVersion(o.Version))
	}
	return t, nil
}

// tracesAt is the URL that takes spans, of a collector's.
func tracesAt(collector string) (string, error) {
	u, err := url.Parse(collector)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		// The URL isn't repeated: there may be a password in it.
		return "", errors.New("that is no collector's URL: give one such as http://localhost:4318, without user or query")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// seconds is the bounds of the histograms, in seconds.
var seconds = metric.WithExplicitBucketBoundaries(0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60)

func (t *Telemetry) instruments(m metric.Meter) error {
	var errs [7]error
	t.runs, errs[0] = m.Int64Counter("pif.runs", metric.WithDescription("Runs that ended, by outcome: ok, or the kind of the failure."))
	t.steps, errs[1] = m.Int64Counter("pif.steps", metric.WithDescription("Steps that runs took."))
	t.effects, errs[2] = m.Int64Counter("pif.effects", metric.WithDescription("Effects that were performed, by operation and outcome."))
	t.running, errs[3] = m.Int64UpDownCounter("pif.runs.active", metric.WithDescription("Runs under way."))
	t.runDuration, errs[4] = m.Float64Histogram("pif.run.duration", metric.WithUnit("s"), metric.WithDescription("How long runs took."), seconds)
	t.effDuration, errs[5] = m.Float64Histogram("pif.effect.duration", metric.WithUnit("s"), metric.WithDescription("How long effects took."), seconds)
	t.requests, errs[6] = m.Int64Counter("pif.http.requests", metric.WithDescription("HTTP requests that were answered, by path, method and status."))
	return errors.Join(errs[:]...)
}

// Acts has it measured whether the server, as a node of a cluster, may perform effects.
func (t *Telemetry) Acts(can func() bool) error {
	about := prometheus.GaugeOpts{Name: "pif_cluster_can_act", Help: "1 while the node may perform effects, else 0."}
	return t.registry.Register(prometheus.NewGaugeFunc(about, func() float64 {
		if can() {
			return 1
		}
		return 0
	}))
}

// Metrics is the page that Prometheus reads.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// Close sends what is still to be sent.
func (t *Telemetry) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	var err error
	for _, f := range t.close {
		err = errors.Join(err, f(ctx))
	}
	return err
}

// Run is told that a run begins, of a tool's version or, with the name "", of
// inline code. What the run does is below the context that it gives; ended is to be
// called once.
func (t *Telemetry) Run(ctx context.Context, id, tool string, version int) (_ context.Context, ended func(steps uint64, f *fault.Fault)) {
	if t == nil {
		return ctx, func(uint64, *fault.Fault) {}
	}
	begun := time.Now()
	t.running.Add(ctx, 1)
	name := "run"
	attributes := []attribute.KeyValue{attribute.String("pif.run", id)}
	if tool != "" {
		name += " " + tool
		attributes = append(attributes, attribute.String("pif.tool", tool), attribute.Int("pif.version", version))
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(attributes...))
	return ctx, func(steps uint64, f *fault.Fault) {
		outcome := outcomeOf(f)
		t.running.Add(ctx, -1)
		t.runs.Add(ctx, 1, metric.WithAttributes(outcome))
		t.steps.Add(ctx, int64(steps))
		t.runDuration.Record(ctx, time.Since(begun).Seconds())
		span.SetAttributes(attribute.Int64("pif.steps", int64(steps)), outcome)
		end(span, f)
	}
}

// outcomeOf is how something ended: its kind has few values, its words many.
func outcomeOf(f *fault.Fault) attribute.KeyValue {
	if f == nil {
		return attribute.String("outcome", "ok")
	}
	return attribute.String("outcome", string(f.Kind))
}

func end(span trace.Span, f *fault.Fault) {
	if f != nil {
		span.SetStatus(codes.Error, string(f.Kind))
	}
	span.End()
}

// Handler measures what a handler performs.
func (t *Telemetry) Handler(h run.Handler) run.Handler {
	if t == nil || h == nil {
		return h
	}
	return measured{h, t}
}

type measured struct {
	run.Handler
	t *Telemetry
}

// Perform implements [run.Handler].
func (m measured) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	begun := time.Now()
	op := attribute.String("op", a.Operation.Name)
	ctx, span := m.t.tracer.Start(ctx, a.Operation.Name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(op))
	v, size, f := m.Handler.Perform(ctx, a)
	outcome := outcomeOf(f)
	m.t.effects.Add(ctx, 1, metric.WithAttributes(op, outcome))
	m.t.effDuration.Record(ctx, time.Since(begun).Seconds(), metric.WithAttributes(op))
	span.SetAttributes(attribute.Int64("pif.bytes", size), outcome)
	end(span, f)
	return v, size, f
}

// Requests counts what a handler answers, when it has: a stream when it ends.
func (t *Telemetry) Requests(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &statusWriter{ResponseWriter: w}
		defer func() {
			if s.status == 0 {
				s.status = http.StatusOK // net/http's, where a handler says nothing
			}
			t.requests.Add(r.Context(), 1, labels(r, s.status))
		}()
		next.ServeHTTP(s, r)
	})
}

// A statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (s *statusWriter) WriteHeader(status int) {
	if s.status == 0 && status >= 200 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// A kind is what requests are told apart by: few values, none of them a client's to
// choose.
type kind struct {
	path, method string
	status       int
}

var known sync.Map // a metric.MeasurementOption for each kind, which is costly to make

func labels(r *http.Request, status int) metric.MeasurementOption {
	k := kind{path: "other", method: "other", status: status}
	switch r.URL.Path {
	case "/", "/mcp", "/healthz", "/metrics":
		k.path = r.URL.Path
	}
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodDelete:
		k.method = r.Method
	}
	if o, ok := known.Load(k); ok {
		return o.(metric.MeasurementOption)
	}
	o := metric.WithAttributeSet(attribute.NewSet(
		attribute.String("path", k.path), attribute.String("method", k.method), attribute.Int("status", k.status)))
	known.Store(k, o)
	return o
}
