//go:build !race

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// The refresh tokens of dex work once. A server that is killed between the answer of dex and its commit has lost the new one:
// the person must sign in again, and is not suspended.
func TestServerKilledDuringARefreshSuspendsNobody(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*patience)
	pg := startPostgres(t)
	addr := porttest.Addr(t)
	lossy, dex := newLossyProxy(t, addr), oidctest.DexOnPostgres(pg, pg.Database(t))
	dex.Front = strings.TrimPrefix(lossy.URL, "http://")
	p := &providerTest{program: dex, addr: addr, network: startNetwork(t, meshtest.Config{Set: map[string]string{
		"oidc.issuer": dex.Issuer(addr), "oidc.client_id": oidctest.ClientID, "oidc.client_secret": oidctest.ClientSecret,
		"oidc.scope": dex.Scope, "oidc.recheck": "1s",
	}})}
	p.startProvider(ctx)
	session := p.signInToProgram(ctx, "ann")
	eventually(ctx, t, func() error { // dex has rotated the token several times
		if n, err := p.Metric(ctx, "mesh_rechecks_total"); err != nil || n < 3 {
			return fmt.Errorf("%v rechecks, %w", n, err)
		}
		return nil
	})
	if p.Says("recheck failed; the person keeps access and the server retries") > 0 || !admits(ctx, t, p.Server, session) {
		t.Fatal("dex accepted every token, but a recheck failed or the session has ended")
	}
	lossy.losing.Store(true)
	select {
	case <-lossy.lost:
	case <-ctx.Done():
		t.Fatal("no token was exchanged")
	}
	p.Kill()
	lossy.losing.Store(false)
	p.Resume()
	began := time.Now()
	eventually(ctx, t, func() error {
		if admits(ctx, t, p.Server, session) {
			return errors.New("the session is still valid")
		}
		return nil
	})
	t.Logf("the session ended %v after the start", time.Since(began).Round(time.Second))
	if text := p.CLI("users", "list"); strings.Contains(text, "suspended") || strings.Contains(text, "held") {
		t.Error(text)
	}
	if session = p.signInToProgram(ctx, "ann"); !admits(ctx, t, p.Server, session) {
		t.Error("a new session is refused")
	}
}

// lossyProxy forwards requests to a provider. While losing is true, the provider handles requests for tokens, but its answers
// are lost.
type lossyProxy struct {
	URL    string
	losing atomic.Bool
	lost   chan struct{} // receives for each lost answer, if somebody is waiting
}

func newLossyProxy(t *testing.T, addr string) *lossyProxy {
	t.Helper()
	l := &lossyProxy{lost: make(chan struct{})}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	proxy.ModifyResponse = func(r *http.Response) error {
		if !l.losing.Load() || !strings.HasSuffix(r.Request.URL.Path, "/token") {
			return nil
		}
		select {
		case l.lost <- struct{}{}:
		case <-r.Request.Context().Done():
		}
		<-r.Request.Context().Done()
		return context.Cause(r.Request.Context())
	}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	l.URL = server.URL
	return l
}
