// Package oidctest provides OpenID Connect providers for tests: Issuer, which signs people in without asking and can also
// misbehave, and Programs that others wrote, because a provider of our own would share our misunderstandings.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The client that every Issuer knows.
const (
	ClientID     = "mesh"
	ClientSecret = "client-secret-of-the-test"
)

// Behaviour is how an Issuer behaves. The zero value is a provider without UserInfo, PKCE and iss.
type Behaviour struct {
	// Claims are added to the ID token, and UserInfo is what UserInfo answers.
	Claims, UserInfo map[string]any
	Lifetime         time.Duration // of ID tokens; an hour by default
	PKCE             bool          // announce and require PKCE
	AnnounceIss      bool          // announce that responses contain iss
	Iss              string        // the iss of responses, if any
	Error            url.Values    // answer with this error instead of a code
	TokenError       string        // answer the code with this error
	Down             bool          // answer everything with 503
	// SignedIn is when the person signed in. The zero time, and a request to sign in again, mean now. As with real
	// providers, only ID tokens for requests with max_age contain it.
	SignedIn time.Time

	Offline      bool   // announce offline_access, and issue refresh tokens
	Scope        string // the granted scopes, if they are not those requested
	Rotate       bool   // refresh tokens work once
	RefreshError string // answer refresh tokens with this error, and RefreshStatus, which is 400 by default
	// RefreshStatus without RefreshError answers refresh tokens without a body.
	RefreshStatus int
	RefreshErrors int  // answer only so many refresh tokens with the error; 0 means all
	RefreshLost   bool // use up refresh tokens, and close the connection
}

// Issuer is a provider.
type Issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey

	mu        sync.Mutex
	behaviour Behaviour             // guarded by mu, as is everything below
	codes     map[string]url.Values // the requests for which codes were issued
	exchanged []string              // the codes that were sent to the token endpoint
	issued    []string              // every code and token
	refresh   map[string]bool       // the refresh tokens that are valid
	refreshed []string              // the refresh tokens that were sent to the token endpoint
	keys      int                   // how often the keys were fetched
}

// Start starts a provider.
func Start(t testing.TB, b Behaviour) *Issuer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{key: k, behaviour: b, codes: map[string]url.Values{}, refresh: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /jwks", i.jwks)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("GET /userinfo", i.userInfo)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.now().Down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

// Behave changes the behaviour.
func (i *Issuer) Behave(change func(*Behaviour)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(&i.behaviour)
}

// Exchanged returns the codes that were sent to the token endpoint.
func (i *Issuer) Exchanged() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string(nil), i.exchanged...)
}

// Refreshed returns the refresh tokens that were sent to the token endpoint.
func (i *Issuer) Refreshed() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string(nil), i.refreshed...)
}

// Secrets returns every code, token and secret that must not be logged.
func (i *Issuer) Secrets() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string{ClientSecret}, i.issued...)
}

// KeysFetched returns how often the keys were fetched.
func (i *Issuer) KeysFetched() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys
}

func (i *Issuer) now() Behaviour {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.behaviour
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	b := i.now()
	document := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/jwks",
		"id_token_signing_alg_values_supported": []string{"ES256"}, "authorization_response_iss_parameter_supported": b.AnnounceIss,
	}
	if b.UserInfo != nil {
		document["userinfo_endpoint"] = i.URL + "/userinfo"
	}
	if b.Offline {
		document["scopes_supported"] = []string{"openid", "offline_access"}
	}
	if b.PKCE {
		document["code_challenge_methods_supported"] = []string{"S256"}
	}
	answer(w, http.StatusOK, document)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (i *Issuer) jwks(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	i.keys++
	i.mu.Unlock()
	point, err := i.key.PublicKey.Bytes() // 4, x and y
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, http.StatusOK, map[string]any{"keys": []map[string]string{{
		"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "1", "x": encode(point[1:33]), "y": encode(point[33:]),
	}}})
}

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q, b := r.URL.Query(), i.now()
	back := url.Values{"state": {q.Get("state")}}
	if b.Iss != "" {
		back.Set("iss", b.Iss)
	}
	if b.Error != nil {
		maps.Copy(back, b.Error)
	} else {
		code := rand.Text()
		i.mu.Lock()
		i.codes[code] = q
		i.issued = append(i.issued, code)
		i.mu.Unlock()
		back.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	b := i.now()
	if r.PostFormValue("grant_type") == "refresh_token" {
		i.renew(w, r, b)
		return
	}
	code := r.PostFormValue("code")
	i.mu.Lock()
	asked, known := i.codes[code]
	delete(i.codes, code)
	i.exchanged = append(i.exchanged, code)
	i.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case b.TokenError != "":
		answer(w, http.StatusBadRequest, map[string]string{"error": b.TokenError, "error_description": "as the test wants it"})
	case id != ClientID || secret != ClientSecret:
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
	case !known, asked.Get("redirect_uri") != r.PostFormValue("redirect_uri"), b.PKCE && asked.Get("code_challenge") != encode(sum[:]):
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "the code is not valid"})
	default:
		i.grant(w, b, asked, "")
	}
}

// renew answers a refresh token.
func (i *Issuer) renew(w http.ResponseWriter, r *http.Request, b Behaviour) {
	text := r.PostFormValue("refresh_token")
	i.mu.Lock()
	known := i.refresh[text]
	i.refreshed = append(i.refreshed, text)
	fail := b.RefreshError != "" || b.RefreshStatus != 0
	if fail && b.RefreshErrors > 0 {
		if i.behaviour.RefreshErrors--; i.behaviour.RefreshErrors == 0 {
			i.behaviour.RefreshError, i.behaviour.RefreshStatus = "", 0
		}
	}
	if known && b.Rotate && !fail {
		delete(i.refresh, text)
	}
	i.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	status := b.RefreshStatus
	if status == 0 {
		status = http.StatusBadRequest
	}
	switch {
	case b.RefreshLost:
		panic(http.ErrAbortHandler)
	case fail && b.RefreshError == "":
		w.WriteHeader(status)
	case fail:
		answer(w, status, map[string]string{"error": b.RefreshError, "error_description": "as the test wants it"})
	case id != ClientID || secret != ClientSecret:
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
	case !known:
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
	default:
		if b.Rotate {
			text = ""
		}
		i.grant(w, b, nil, text)
	}
}

// authTime returns when the person signed in.
func (b Behaviour) authTime(asked url.Values) time.Time {
	if b.SignedIn.IsZero() || asked.Get("max_age") == "0" || slices.Contains(strings.Fields(asked.Get("prompt")), "login") {
		return time.Now()
	}
	return b.SignedIn
}

// grant answers with tokens. A refresh token that is given stays in use.
func (i *Issuer) grant(w http.ResponseWriter, b Behaviour, asked url.Values, refresh string) {
	lifetime := b.Lifetime
	if lifetime == 0 {
		lifetime = time.Hour
	}
	claims := map[string]any{"iss": i.URL, "aud": ClientID, "sub": "1", "iat": time.Now().Unix(), "exp": time.Now().Add(lifetime).Unix()}
	if nonce := asked.Get("nonce"); nonce != "" {
		claims["nonce"] = nonce
	}
	if asked.Has("max_age") {
		claims["auth_time"] = b.authTime(asked).Unix()
	}
	maps.Copy(claims, b.Claims)
	access, signed := rand.Text(), i.Sign(claims)
	out := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 60, "id_token": signed}
	i.mu.Lock()
	i.issued = append(i.issued, access, signed)
	if b.Offline {
		if refresh == "" {
			refresh = rand.Text()
			i.issued = append(i.issued, refresh)
		}
		i.refresh[refresh], out["refresh_token"] = true, refresh
	}
	i.mu.Unlock()
	if b.Scope != "" {
		out["scope"] = b.Scope
	}
	answer(w, http.StatusOK, out)
}

func (i *Issuer) userInfo(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		http.Error(w, "no token", http.StatusUnauthorized)
		return
	}
	info := i.now().UserInfo
	if info == nil {
		http.Error(w, "not available any more", http.StatusNotFound)
		return
	}
	answer(w, http.StatusOK, info)
}

// Sign returns the claims as a JWT.
func (i *Issuer) Sign(claims map[string]any) string {
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err) // a test gave something that is not JSON
	}
	text := encode([]byte(`{"alg":"ES256","kid":"1","typ":"JWT"}`)) + "." + encode(body)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		panic(err) // never fails
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return text + "." + encode(signature)
}
