//go:build !race

package consoletest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// idp is the identity provider of a stage. Everyone signs in with their name and any password.
type idp struct {
	program oidctest.Program
	addr    string

	callback string
	scope    testing.TB
	stop     func()
}

func newIDP(t testing.TB) *idp {
	return &idp{program: oidctest.OIDCProvider(), addr: porttest.Addr(t), scope: t}
}

func (i *idp) issuer() string {
	if i == nil {
		return ""
	}
	return i.program.Issuer(i.addr)
}

// settings returns the configuration of a server that uses the provider, also for people who sign in to the console at an
// address.
func (i *idp) settings(console string) map[string]string {
	if i == nil {
		return nil
	}
	return map[string]string{
		"oidc.issuer": i.issuer(), "oidc.client_id": oidctest.ClientID, "oidc.client_secret": oidctest.ClientSecret, "oidc.name": "Example ID",
		"oidc.scope": i.program.Scope, "oidc.allowed_domains": "example.com", "oidc.console_urls": "http://" + console + "/admin/",
	}
}

// start starts the provider of a server, and makes both reachable for browsers.
func (i *idp) start(t testing.TB, r *rig, s *stage) {
	if i == nil {
		return
	}
	i.callback = s.URL + "/oidc/callback"
	i.run()
	waittest.Eventually(t, patience, pollEvery, func() error {
		text, err := s.try("GET", "/health", nil)
		if err == nil && strings.Contains(string(text), "identity provider") {
			err = fmt.Errorf("%s", text)
		}
		return err
	})
	r.seclusion.bring(t, s.URL)
	r.seclusion.bring(t, i.issuer())
}

func (i *idp) run() {
	i.stop = i.program.Start(context.Background(), i.scope, i.addr, i.callback)
}

// switchProvider stops or restarts the provider.
func (s *scene) switchProvider(_ context.Context, body io.Reader) (any, error) {
	var on bool
	if err := json.NewDecoder(body).Decode(&on); err != nil {
		return nil, err
	}
	if s.idp.stop(); on {
		s.idp.run()
	}
	return object{}, nil
}

// login makes a virtual device ask to join, and returns its login link. The device connects as soon as it is approved.
func (s *scene) login(ctx context.Context, body io.Reader) (any, error) {
	var name string
	if err := json.NewDecoder(body).Decode(&name); err != nil {
		return nil, err
	}
	n := s.crowd.Node(name)
	link, err := n.Ask(ctx)
	if err != nil {
		return nil, err
	}
	waiting, stop := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	s.scope.Cleanup(func() {
		stop()
		wait.Wait()
	})
	wait.Go(func() {
		if n.Follow(waiting, link) == nil {
			n.Connect()
		}
	})
	return link, nil
}
