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
	answerTimeout  = 10 * time.Second // for the head of an answer; the service itself waits up to 5 seconds for a revision
	// askTimeout is for what the console asks of its own accord. A probe of its
	// health allows 5 seconds.
	askTimeout = 2 * time.Second
	// judgeTimeout is for asking about a key. A page does not wait for longer.
	judgeTimeout = 4 * time.Second
	// factsAge is how old what is known of the service may be. It also bounds what
	// strangers can make the console ask.
	factsAge  = time.Second
	ownKeyAge = 30 * time.Second

	maxAnswer = 16 << 20
)

var (
	// errEnded: the service does not take this key, or no longer.
	errEnded = errors.New("the key is refused")
	// errTooLarge: the service sends more than the console passes on.
	errTooLarge = errors.New("the answer is too large")
)

// keyState is what is known of the console's own key.
type keyState int

const (
	keyUnknown keyState = iota // the service was not reached yet
	keyMissing
	keyRefused
	keyWorks
)

// facts is what the console knows of the service while nobody is logged in.
type facts struct {
	reachable                          bool
	version, productVersion, serverURL string // as last told
	ownKey                             keyState
}

// upstream is the service. Its host is fixed: nothing that a browser sends, and
// no redirect or proxy, leads elsewhere.
type upstream struct {
	base string
	key  string
	http *http.Client
	api  *apiclient.ClientWithResponses
	log  *slog.Logger

	mu     sync.Mutex
	facts  facts     // guarded by mu
	asked  time.Time // guarded by mu
	ownKey time.Time // guarded by mu; when the own key was last tried
}

func newUpstream(base, key string, log *slog.Logger) (*upstream, error) {
	transport := &http.Transport{ // no Proxy: the environment has no say
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

// limited cuts answers off, because the generated client reads them whole.
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

// forwarded tells the service for whom the console asks.
func forwarded(v visitor, requestID string) apiclient.RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		if v.addr.IsValid() {
			r.Header.Set("X-Forwarded-For", v.addr.String())
		}
		r.Header.Set("X-Request-Id", requestID)
		return nil
	}
}

// whoami asks what a key may do. Its error is errEnded when the service refuses
// the key; any other means that nobody knows.
func (u *upstream) whoami(ctx context.Context, key string, edit ...apiclient.RequestEditorFn) (*apiclient.Caller, error) {
	ctx, cancel := context.WithTimeout(ctx, judgeTimeout)
	defer cancel()
	answer, err := u.api.WhoamiWithResponse(ctx, append(edit, bearer(key))...)
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode() == http.StatusUnauthorized:
		return nil, errEnded
	case answer.JSON200 == nil:
		return nil, fmt.Errorf("the service answers %s", answer.Status())
	}
	return answer.JSON200, nil
}

// known returns what is known of the service, asking it when that is old.
func (u *upstream) known(ctx context.Context) facts {
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Since(u.asked) < factsAge {
		return u.facts
	}
	// Others wait for the same answer, so whoever asked first may not take it away.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	answer, err := u.api.VersionWithResponse(ctx, bearer(u.key))
	if err == nil && answer.StatusCode() >= http.StatusInternalServerError {
		err = fmt.Errorf("unexpected status %s", answer.Status()) // or something between us does
	}
	switch first := u.asked.IsZero(); {
	case err != nil && (first || u.facts.reachable):
		u.log.Warn("the server is unreachable; nobody can sign in until it answers", "coordinator_url", u.base, "err", err)
	case err == nil && !first && !u.facts.reachable:
		u.log.Info("the server is reachable again", "coordinator_url", u.base)
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
	u.asked = time.Now()
	return u.facts
}

// tryOwnKey must be called with mu held. It logs what changed.
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
		u.log.Warn("no api_key is set; people log in with keys of their own")
	case keyRefused:
		u.log.Warn("the service refuses api_key: Authentication failed: invalid API key; people log in with keys of their own")
	case keyUnknown, keyWorks:
		u.log.Info("the service takes api_key")
	}
}
