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

	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// fault is what goes wrong between the console and the server, with requests
// whose method, path and query match.
type fault struct {
	Method string        `json:"method"` // any unless told
	Path   string        `json:"path"`   // a regular expression
	Query  string        `json:"query"`  // another
	Wait   time.Duration `json:"wait"`   // before the request goes on, in nanoseconds
	Status int           `json:"status"` // answered instead of the server
	Refuse bool          `json:"refuse"` // closes the connection without an answer
	Lose   bool          `json:"lose"`   // closes the connection instead of handing on the server's answer
	Times  int           `json:"times"`  // how often; always unless told
}

// faultProxy stands between the console and the server.
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
	p := &faultProxy{addr: meshtest.FreeAddr(t), streams: map[*http.Request]context.CancelFunc{}}
	pass := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // as if the server were not there
	}
	serve(t, p.addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer p.enter(r, cancel)()
		// Whole, since ReverseProxy ends the server's answer when it comes while the end of the request is still
		// being handed on.
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

// enter remembers a request until it ends, so that it can be cut.
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

// matching is the first fault for a request, or none.
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

// set puts faults in the place of those before.
func (p *faultProxy) set(faults []*fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = faults
}

// cut ends every request that runs, streams above all.
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
		_ = server.ListenAndServe() // ends when it is closed
	})
	t.Cleanup(func() {
		server.Close()
		wait.Wait()
	})
}
