package bff

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

const (
	connectTimeout = 3 * time.Second
	answerTimeout  = 15 * time.Second // for the header of a response; the server waits up to 5 seconds for a revision and 10 for the receiver of a webhook
	// askTimeout is for requests that the console makes on its own behalf. Health probes allow 5 seconds.
	askTimeout = 2 * time.Second
	// keyCheckTimeout is for checking a key. Pages do not wait longer.
	keyCheckTimeout = 4 * time.Second
	// factsAge is how long facts about the server are cached. It also limits how many requests strangers can
	// cause.
	factsAge  = time.Second
	ownKeyAge = 30 * time.Second
	// signInAge is how long it is cached how people can sign in. That changes with the first passkey, and when the server
	// restarts.
	signInAge = 5 * time.Second
	// maxProviders is how many of them the login page shows.
	maxProviders = 10

	maxAnswer = 16 << 20
)

var (
	// errEnded means that the server does not accept the key, or no longer does.
	errEnded = errors.New("the server rejects the key")
	// errTooLarge means that a response is larger than the console forwards.
	errTooLarge = errors.New("the response is too large")
	// errNoSession means that a session of a person does not exist, or does not exist any more.
	errNoSession = errors.New("unknown session")
)

// keyState is the state of the console's own key.
type keyState int

const (
	keyUnknown keyState = iota // the server was not reached yet
	keyMissing
	keyRefused
	keyWorks
)

// facts is what the console knows about the server without a signed-in person.
type facts struct {
	reachable                          bool
	version, productVersion, serverURL string // as last reported
	ownKey                             keyState
	signIn                             apiclient.SignIn // how people can sign in without an API key
}

// upstream is the Fairlead server. Its host is fixed: nothing that a browser sends, and no redirect or proxy,
// can send requests elsewhere.
type upstream struct {
	base string
	key  string
	http *http.Client
	api  *apiclient.ClientWithResponses
	log  *slog.Logger

	mu     sync.Mutex
	facts  facts     // guarded by mu
	asked  time.Time // guarded by mu
	ownKey time.Time // guarded by mu; when the console's own key was last tried
	signIn time.Time // guarded by mu; when the server was last asked for its identity providers
}

func newUpstream(base, key string, log *slog.Logger) (*upstream, error) {
	transport := &http.Transport{ // no Proxy: the environment is ignored
		DialContext:           (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout:   connectTimeout,
		ResponseHeaderTimeout: answerTimeout,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   16,
		DisableCompression:    true,
	}
	u := &upstream{base: base, key: key, log: log, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	var err error
	u.api, err = apiclient.NewClientWithResponses(base, apiclient.WithHTTPClient(limited{u.http}))
	return u, err
}

// limited limits the size of responses, because the generated client reads them into memory.
type limited struct{ client *http.Client }

func (l limited) Do(r *http.Request) (*http.Response, error) {
	resp, err := l.client.Do(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

func bearer(key string) apiclient.RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		return nil
	}
}

// forwarded sets the headers that tell the server on whose behalf the console sends a request.
func forwarded(v visitor, requestID string) apiclient.RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		if v.addr.IsValid() {
			r.Header.Set("X-Forwarded-For", v.addr.String())
		}
		r.Header.Set("X-Request-Id", requestID)
		return nil
	}
}

// whoami asks the server what a key may do. Its error is errEnded if the server refuses the key; any other
// error means that it could not be determined.
func (u *upstream) whoami(ctx context.Context, key string, edit ...apiclient.RequestEditorFn) (*apiclient.Caller, error) {
	ctx, cancel := context.WithTimeout(ctx, keyCheckTimeout)
	defer cancel()
	answer, err := u.api.WhoamiWithResponse(ctx, append(edit, bearer(key))...)
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode() == http.StatusUnauthorized:
		return nil, errEnded
	case answer.JSON200 == nil:
		return nil, fmt.Errorf("unexpected status %s", answer.Status())
	}
	return answer.JSON200, nil
}

// known returns the cached facts about the server, and refreshes them if they are old.
func (u *upstream) known(ctx context.Context) facts {
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Since(u.asked) < factsAge {
		return u.facts
	}
	// Others wait for the same response, so it must not be cancelled with the first request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	answer, err := u.api.VersionWithResponse(ctx, bearer(u.key))
	if err == nil && answer.StatusCode() >= http.StatusInternalServerError {
		err = fmt.Errorf("unexpected status %s", answer.Status()) // the server failed, or a proxy in between
	}
	switch first := u.asked.IsZero(); {
	case err != nil && (first || u.facts.reachable):
		u.log.Warn("server unreachable; nobody can sign in until it is back", "coordinator_url", u.base, "err", err)
	case err == nil && !first && !u.facts.reachable:
		u.log.Info("server reachable again", "coordinator_url", u.base)
	}
	if u.facts.reachable = err == nil; err != nil {
		u.asked = time.Now()
		return u.facts
	}
	if v := answer.JSON200; v != nil {
		u.facts.version, u.facts.productVersion, u.facts.serverURL = v.Version, v.ProductVersion, v.ServerURL
	}
	if time.Since(u.ownKey) >= ownKeyAge {
		u.tryOwnKey(ctx)
	}
	if time.Since(u.signIn) >= signInAge {
		u.askSignIn(ctx)
	}
	u.asked = time.Now()
	return u.facts
}

// askSignIn asks the server how people can sign in. It must be called with mu held.
func (u *upstream) askSignIn(ctx context.Context) {
	answer, err := u.api.ShowSignInWithResponse(ctx)
	if err != nil || answer.StatusCode() >= http.StatusInternalServerError {
		return
	}
	u.facts.signIn = apiclient.SignIn{} // an earlier version of the server has no such operation
	if answer.JSON200 != nil {
		u.facts.signIn = *answer.JSON200
		u.facts.signIn.Providers = u.facts.signIn.Providers[:min(len(u.facts.signIn.Providers), maxProviders)]
	}
	u.signIn = time.Now()
}

// exchange returns the session token for a one-time code. Its error is errBadCode if the server refuses the code.
func (u *upstream) exchange(ctx context.Context, in apiclient.SessionExchange, edit apiclient.RequestEditorFn) (token string, err error) {
	ctx, cancel := context.WithTimeout(ctx, keyCheckTimeout)
	defer cancel()
	answer, err := u.api.CreateSessionWithResponse(ctx, in, edit)
	switch {
	case err != nil:
		return "", err
	case answer.JSON200 != nil:
		return answer.JSON200.Token, nil
	case answer.StatusCode() >= http.StatusInternalServerError || answer.StatusCode() == http.StatusTooManyRequests:
		return "", fmt.Errorf("unexpected status %s", answer.Status())
	}
	return "", errBadCode
}

// sessions returns the sessions of the person with this token. Its error is errEnded if the token is refused.
func (u *upstream) sessions(ctx context.Context, token string, edit apiclient.RequestEditorFn) ([]apiclient.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, keyCheckTimeout)
	defer cancel()
	limit := maxOwnSessions
	answer, err := u.api.ListMySessionsWithResponse(ctx, &apiclient.ListMySessionsParams{Limit: &limit}, edit, bearer(token))
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode() == http.StatusUnauthorized:
		return nil, errEnded
	case answer.JSON200 == nil:
		return nil, fmt.Errorf("unexpected status %s", answer.Status())
	}
	return answer.JSON200.Sessions, nil
}

// revoke ends a session of a person at the server: the one with this id, or currentSession.
func (u *upstream) revoke(ctx context.Context, token, id string, edit apiclient.RequestEditorFn) error {
	// The browser may disconnect as soon as it has sent the form.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	answer, err := u.api.RevokeMySessionWithResponse(ctx, id, edit, bearer(token))
	if err == nil && answer.StatusCode() == http.StatusNotFound {
		return errNoSession
	}
	if err == nil && answer.StatusCode() != http.StatusOK && answer.StatusCode() != http.StatusUnauthorized { // 401: it has already ended
		err = fmt.Errorf("unexpected status %s", answer.Status())
	}
	return err
}

// tryOwnKey checks the console's own key and logs a change of its state. It must be called with mu held.
func (u *upstream) tryOwnKey(ctx context.Context) {
	before := u.facts.ownKey
	if u.key == "" {
		u.facts.ownKey = keyMissing
	} else if _, err := u.whoami(ctx, u.key); errors.Is(err, errEnded) {
		u.facts.ownKey = keyRefused
	} else if err == nil {
		u.facts.ownKey = keyWorks
	} else {
		return
	}
	u.ownKey = time.Now()
	if before == u.facts.ownKey {
		return
	}
	switch u.facts.ownKey {
	case keyMissing:
		u.log.Warn("no api_key is set; people can still sign in with their own keys")
	case keyRefused:
		u.log.Warn("the server rejects api_key: Authentication failed: invalid API key; people can still sign in with their own keys")
	case keyUnknown, keyWorks:
		u.log.Info("the server accepts api_key")
	}
}
