// Package oidc lets people sign in with an OpenID Connect provider: it discovers the provider, builds the URL to
// which a browser is sent, exchanges the code that comes back, and checks who the person is and whether the
// configuration allows them to sign in.
//
// It knows nothing about users, devices, cookies or pages, and keeps no state of a sign-in. No error of this
// package contains a token, a code or the client secret.
//
// A provider may be unreachable at any time, also when the server starts. Run keeps trying to reach it.
package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	coreos "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Config configures a Provider. Issuer, ClientID, RedirectURL and Log are required.
type Config struct {
	// Name is shown to people; it defaults to the host of the issuer.
	Name         string
	Issuer       string
	ClientID     string
	ClientSecret string
	RedirectURL  string
	// Scopes defaults to openid, profile and email.
	Scopes []string
	// ExtraParams are added to the URL to which browsers are sent.
	ExtraParams map[string]string
	// PKCE uses PKCE even if the provider does not announce it.
	PKCE bool
	// GroupsClaim is the claim with the person's groups: its name, or a path with dots. It defaults to groups.
	GroupsClaim string
	// GroupsMap gives groups the names that Identity.Groups has, by their names at the provider. If it is not
	// empty, Identity.Groups contains no other groups.
	GroupsMap map[string]string
	// Each list that is not empty must contain the person.
	AllowedDomains, AllowedUsers, AllowedGroups []string
	// EmailVerifiedRequired ignores e-mail addresses that the provider has not verified.
	EmailVerifiedRequired bool
	// UseExpiry sets Identity.Expiry.
	UseExpiry bool
	// Offline requests refresh tokens that outlive the person's session at the provider; see Refresh.
	Offline bool
	Log     *slog.Logger
	// Fresh is for how long Check trusts the last attempt to reach the provider; five seconds by default.
	Fresh time.Duration
	// Transport defaults to a transport of its own.
	Transport http.RoundTripper
}

const (
	requestTimeout = 10 * time.Second
	// maxAnswer limits the size of what a provider sends.
	maxAnswer = 1 << 20
	// checkEvery is how often the provider is checked while it is reachable, and retryFirst and retryLast how
	// soon while it is not.
	checkEvery = time.Minute
	retryFirst = time.Second
	retryLast  = 30 * time.Second
	// checkTimeout is how long a person waits for Check.
	checkTimeout = 3 * time.Second
	defaultFresh = 5 * time.Second
)

// ErrUnreachable is returned while the provider has not been reached since the server started.
var ErrUnreachable = errors.New("the identity provider cannot be reached")

// Provider is one OpenID Connect provider.
type Provider struct {
	config Config
	client *http.Client
	turn   chan struct{} // held by the one Check that asks the provider
	// logouts fetches the keys for logout tokens.
	logouts *http.Client

	mu    sync.Mutex
	found *discovered // guarded by mu, as is everything below; nil until the provider was reached
	err   error       // the result of the last attempt, and ErrUnreachable before the first
	at    time.Time   // of the last attempt
	told  error       // the last failure that was logged, unless the provider has recovered
}

// discovered is what the provider says about itself.
type discovered struct {
	*coreos.Provider
	oauth oauth2.Config
	pkce  bool
	iss   bool // responses name the issuer
	// offline is set if the provider knows the scope offline_access, and the server requests it.
	offline bool
	// logoutKeys verify logout tokens, which are signed with algs.
	logoutKeys coreos.KeySet
	algs       []string
}

// New returns a provider. It does not connect to it: see Run.
func New(c Config) *Provider {
	if len(c.Scopes) == 0 {
		c.Scopes = []string{coreos.ScopeOpenID, "profile", "email"}
	}
	if !slices.Contains(c.Scopes, coreos.ScopeOpenID) {
		c.Scopes = append([]string{coreos.ScopeOpenID}, c.Scopes...)
	}
	if c.GroupsClaim == "" {
		c.GroupsClaim = "groups"
	}
	if u, err := url.Parse(c.Issuer); err == nil && c.Name == "" {
		c.Name = u.Host
	}
	if c.Transport == nil {
		t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: requestTimeout}
		c.Transport = t
	}
	if c.Fresh == 0 {
		c.Fresh = defaultFresh
	}
	return &Provider{
		config: c, err: ErrUnreachable, turn: make(chan struct{}, 1),
		client:  &http.Client{Transport: bounded{c.Transport}, Timeout: requestTimeout, CheckRedirect: checkRedirect},
		logouts: &http.Client{Transport: &paced{next: bounded{c.Transport}}, Timeout: requestTimeout, CheckRedirect: checkRedirect},
	}
}

// Name returns the name that people are shown.
func (p *Provider) Name() string { return p.config.Name }

// Issuer returns the identifier of the provider.
func (p *Provider) Issuer() string { return p.config.Issuer }

// Err returns why the provider could not be reached at the last attempt, or nil.
func (p *Provider) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Check returns why the provider cannot be reached now, or nil. A person is not sent to a provider that does not
// answer. It asks the provider unless somebody did so a moment ago.
func (p *Provider) Check(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	at, err := p.at, p.err
	p.mu.Unlock()
	if time.Since(at) < p.config.Fresh {
		return err
	}
	return p.attempt(context.WithoutCancel(ctx), checkTimeout) // others need the answer too
}

// doubt makes the next Check ask the provider.
func (p *Provider) doubt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = time.Time{}
}

// Run discovers the provider, and checks regularly whether it can be reached, until ctx ends.
func (p *Provider) Run(ctx context.Context) error {
	defer p.client.CloseIdleConnections()
	retry := retryFirst
	for {
		wait := checkEvery
		if err := p.Discover(ctx); err == nil {
			retry = retryFirst
		} else {
			wait, retry = retry, min(2*retry, retryLast)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// Discover reads the provider's description. If it fails, an earlier description stays in use. Changes are logged.
func (p *Provider) Discover(ctx context.Context) error { return p.attempt(ctx, requestTimeout) }

func (p *Provider) attempt(ctx context.Context, limit time.Duration) error {
	found, err := p.discover(ctx, limit)
	if ctx.Err() != nil { // says nothing about the provider
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil && (p.told == nil || p.told.Error() != err.Error()):
		p.config.Log.Warn("identity provider unreachable", "issuer", p.config.Issuer, "error", err)
	case err == nil && p.told != nil:
		p.config.Log.Info("identity provider recovered", "issuer", p.config.Issuer)
	}
	p.told, p.at = err, time.Now()
	if p.err = err; err == nil {
		if p.found == nil || !sameEndpoints(p.found, found) { // otherwise its keys are cached already
			p.found = found
		}
	}
	return err
}

func sameEndpoints(a, b *discovered) bool {
	var keys [2]struct {
		JWKS string   `json:"jwks_uri"`
		Algs []string `json:"id_token_signing_alg_values_supported"`
	}
	if a.Claims(&keys[0]) != nil || b.Claims(&keys[1]) != nil {
		return false
	}
	return keys[0].JWKS == keys[1].JWKS && slices.Equal(keys[0].Algs, keys[1].Algs) && a.oauth.Endpoint == b.oauth.Endpoint &&
		a.UserInfoEndpoint() == b.UserInfoEndpoint() && a.pkce == b.pkce && a.iss == b.iss && a.offline == b.offline
}

func (p *Provider) discover(ctx context.Context, limit time.Duration) (*discovered, error) {
	ctx, cancel := context.WithTimeout(coreos.ClientContext(ctx, p.client), limit)
	defer cancel()
	core, err := coreos.NewProvider(ctx, p.config.Issuer)
	if err != nil {
		return nil, plain(err)
	}
	var more struct {
		PKCE []string `json:"code_challenge_methods_supported"`
		Iss  bool     `json:"authorization_response_iss_parameter_supported"`
		Auth []string `json:"token_endpoint_auth_methods_supported"`
		JWKS string   `json:"jwks_uri"`
		// Scopes is optional: providers need not list all of them.
		Scopes []string `json:"scopes_supported"`
		Algs   []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := core.Claims(&more); err != nil {
		return nil, fmt.Errorf("invalid discovery document: %w", err)
	}
	e := core.Endpoint()
	for name, address := range map[string]string{"authorization_endpoint": e.AuthURL, "token_endpoint": e.TokenURL, "jwks_uri": more.JWKS, "userinfo_endpoint": core.UserInfoEndpoint()} {
		if (address != "" || name != "userinfo_endpoint") && !p.allowed(address) {
			return nil, fmt.Errorf("invalid discovery document: %s must be a URL with https", name)
		}
	}
	// The library would try both, and send the code twice.
	e.AuthStyle = oauth2.AuthStyleInHeader
	if p.config.ClientSecret == "" || len(more.Auth) > 0 && !slices.Contains(more.Auth, "client_secret_basic") {
		e.AuthStyle = oauth2.AuthStyleInParams
	}
	scopes := p.config.Scopes
	if p.config.Offline && slices.Contains(more.Scopes, coreos.ScopeOfflineAccess) && !slices.Contains(scopes, coreos.ScopeOfflineAccess) {
		scopes = append(slices.Clone(scopes), coreos.ScopeOfflineAccess)
	}
	return &discovered{
		logoutKeys: coreos.NewRemoteKeySet(coreos.ClientContext(ctx, p.logouts), more.JWKS), algs: signatures(more.Algs),
		offline:  p.config.Offline && slices.Contains(scopes, coreos.ScopeOfflineAccess),
		Provider: core, pkce: p.config.PKCE || slices.Contains(more.PKCE, "S256"), iss: more.Iss,
		oauth: oauth2.Config{ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret, Endpoint: e, RedirectURL: p.config.RedirectURL, Scopes: scopes},
	}, nil
}

// allowed reports whether an endpoint is encrypted, or the issuer is not either, which the configuration allows
// on this machine only.
func (p *Provider) allowed(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && strings.HasPrefix(p.config.Issuer, "http://"))
}

func (p *Provider) ready() (*discovered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil {
		return nil, ErrUnreachable
	}
	return p.found, nil
}

// Flow holds the secrets of one sign-in. The browser must bring them back with the code.
type Flow struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
}

// AuthURL returns where to send the browser. With again, the provider is told to let the person sign in even if the person
// is signed in there. Whoever uses the browser can change the URL, so only Identity.AuthTime proves that the provider did so.
func (p *Provider) AuthURL(f Flow, again bool) (string, error) {
	d, err := p.ready()
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{coreos.Nonce(f.Nonce)}
	for name, text := range p.config.ExtraParams {
		options = append(options, oauth2.SetAuthURLParam(name, text))
	}
	if again {
		options = append(options, oauth2.SetAuthURLParam("prompt", withLogin(p.config.ExtraParams["prompt"])), oauth2.SetAuthURLParam("max_age", "0"))
	}
	if d.pkce {
		options = append(options, oauth2.S256ChallengeOption(f.Verifier))
	}
	return d.oauth.AuthCodeURL(f.State, options...), nil
}

// withLogin adds login to the values of the parameter prompt. The value none contradicts it.
func withLogin(prompt string) string {
	values := []string{"login"}
	for _, v := range strings.Fields(prompt) {
		if v != "login" && v != "none" {
			values = append(values, v)
		}
	}
	return strings.Join(values, " ")
}

// ErrOtherIssuer is returned for a response that another provider sent.
var ErrOtherIssuer = errors.New("the response came from another identity provider")

// CheckIssuer checks the parameter iss of a response (RFC 9207). It may be missing unless the provider
// announced it.
func (p *Provider) CheckIssuer(iss string, given bool) error {
	d, err := p.ready()
	if err != nil {
		return err
	}
	if given && iss != p.config.Issuer || !given && d.iss {
		return ErrOtherIssuer
	}
	return nil
}

// bounded limits the size of responses.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(r)
	if err == nil {
		res.Body = limited{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

type limited struct {
	io.Reader
	io.Closer
}

// checkRedirect follows few redirects, and none from https to http.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) >= 3 || r.URL.Scheme != "https" && via[0].URL.Scheme == "https" || r.Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	return nil
}

// maxError limits the length of an error, in which providers sometimes send a whole page.
const maxError = 300

// plain returns an error in one short line.
func plain(err error) error {
	if mismatch := new(coreos.IssuerMismatchError); errors.As(err, &mismatch) {
		return fmt.Errorf("the provider calls itself %q; set the issuer to exactly this", Line(mismatch.Discovered))
	}
	return errors.New(Line(err.Error()))
}

// Line returns text that somebody else wrote as one printable line of at most maxError bytes.
func Line(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	text = strings.Map(func(r rune) rune {
		if !printable(r) {
			return -1
		}
		return r
	}, text)
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "") + "…"
	}
	return text
}
