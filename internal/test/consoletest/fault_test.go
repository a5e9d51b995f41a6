//go:build !race

package consoletest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// fault is a failure between the console and the server that affects requests with matching method,
// path and query.
type fault struct {
	Method string        `json:"method"` // any if empty
	Path   string        `json:"path"`   // a regular expression
	Query  string        `json:"query"`  // also a regular expression
	Wait   time.Duration `json:"wait"`   // delay before the request is forwarded, in nanoseconds
	Status int           `json:"status"` // sent instead of the server's response
	Refuse bool          `json:"refuse"` // closes the connection without a response
	Lose   bool          `json:"lose"`   // closes the connection instead of forwarding the server's response
	Times  int           `json:"times"`  // how many times; 0 means always
}

// faultProxy is a proxy between the console and the server that injects faults.
type faultProxy struct {
	addr string

	mu      sync.Mutex
	faults  []*fault // guarded by mu
	streams map[*http.Request]context.CancelFunc
}

func startFaultProxy(t testing.TB, server string) *faultProxy {
	t.Helper()
	upstream, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	p := &faultProxy{addr: porttest.Addr(t), streams: map[*http.Request]context.CancelFunc{}}
	pass := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // as if the server were down
	}
	serve(t, p.addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer p.enter(r, cancel)()
		// Read the whole body, since ReverseProxy aborts the server's response if it arrives while
		// the rest of the request is still being forwarded.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		f := p.matching(r)
		if f.Wait > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(f.Wait):
			}
		}
		switch {
		case f.Refuse:
			panic(http.ErrAbortHandler)
		case f.Status != 0:
			http.Error(w, "a fault of the test", f.Status)
		case f.Lose:
			pass.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
			panic(http.ErrAbortHandler)
		default:
			pass.ServeHTTP(w, r.WithContext(ctx))
		}
	}))
	return p
}

// enter tracks a request until it ends, so that cut can cancel it.
func (p *faultProxy) enter(r *http.Request, cancel context.CancelFunc) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[r] = cancel
	return func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.streams, r)
	}
}

// matching returns the first fault that matches a request, or an empty one.
func (p *faultProxy) matching(r *http.Request) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.faults {
		if cmp.Or(f.Method, r.Method) != r.Method || !regexp.MustCompile(f.Path).MatchString(r.URL.Path) ||
			!regexp.MustCompile(f.Query).MatchString(r.URL.RawQuery) {
			continue
		}
		if f.Times--; f.Times == 0 {
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
		}
		return *f
	}
	return fault{}
}

// set replaces the faults.
func (p *faultProxy) set(faults []*fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = faults
}

// cut cancels all running requests, streams in particular.
func (p *faultProxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cancel := range p.streams {
		cancel()
	}
}

// serve runs a handler on an address until the test ends.
func serve(t testing.TB, addr string, h http.Handler) {
	t.Helper()
	server := &http.Server{Addr: addr, Handler: h, ReadHeaderTimeout: patience}
	var wait sync.WaitGroup
	wait.Go(func() {
		_ = server.ListenAndServe() // returns when it is closed
	})
	t.Cleanup(func() {
		server.Close()
		wait.Wait()
	})
}
