package cli

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

// signInServer is a server whose sign-in page sends the browser back at once.
type signInServer struct {
	canned
	url       string
	challenge string
	providers []openapi.SignInProvider
}

func (s *signInServer) ShowSignIn(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.SignIn{URL: s.url + "/oidc/session", Providers: s.providers})
}

func (s *signInServer) CreateSession(w http.ResponseWriter, r *http.Request) {
	var in openapi.SessionExchange
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		panic(err)
	}
	sum := sha256.Sum256([]byte(in.Verifier))
	if in.Code != "the-code" || base64.RawURLEncoding.EncodeToString(sum[:]) != s.challenge || len(in.Verifier) < 43 {
		http.Error(w, `{"detail": "the code is invalid"}`, http.StatusBadRequest)
		return
	}
	s.canned.CreateSession(w, r)
}

// startSignIn returns a server and a function that sets up a person who uses it.
func startSignIn(t *testing.T) (*signInServer, *requestLog, func(*Env)) {
	t.Helper()
	s, log := &signInServer{providers: []openapi.SignInProvider{{ID: "0", Name: "id.example.com"}}}, &requestLog{}
	server := httptest.NewServer(log.wrap(openapi.Handler(s)))
	t.Cleanup(server.Close)
	s.url = server.URL
	home := t.TempDir()
	return s, log, func(env *Env) {
		env.Environ = append(env.Environ, "HOME="+home)
		env.Browse = func(ctx context.Context, link string) error {
			u, err := url.Parse(link)
			if err != nil || !strings.HasPrefix(link, s.url+"/oidc/session?") {
				return fmt.Errorf("%s: %w", link, err)
			}
			q := u.Query()
			s.challenge = q.Get("code_challenge")
			back := q.Get("return_url")
			for _, bad := range []string{back, back + "?code=x&state=x", back + "?state=" + q.Get("state"), strings.TrimSuffix(back, "callback") + "x?code=x&state=" + q.Get("state")} {
				visit(ctx, t, bad, "", http.StatusBadRequest)
			}
			visit(ctx, t, back+"?code=x&state="+q.Get("state"), "rebound.example", http.StatusBadRequest)
			visit(ctx, t, back+"?code=the-code&state="+q.Get("state"), "", http.StatusOK)
			return nil
		}
	}
}

// visit is what a browser does with a link.
func visit(ctx context.Context, t *testing.T, link, host string, want int) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode != want || strings.Contains(string(text), "the-code") {
		t.Errorf("%s: %d %s", link, res.StatusCode, text)
	}
}

func TestLoginStoresASession(t *testing.T) {
	s, log, person := startSignIn(t)
	noSocket := filepath.Join(t.TempDir(), "none")
	r := fairlead(t, noSocket, []string{"login", "--server", s.url + "/"}, person)
	if want := "Signed in to " + s.url + " as alice. The session expires at 2026-03-02T09:30:00Z\n"; r.status != 0 || r.stdout.String() != want {
		t.Fatalf("status %d: %s\n%s", r.status, &r.stdout, &r.stderr)
	}
	if strings.Contains(r.stdout.String()+r.stderr.String(), "the-secret") {
		t.Error("the token was printed")
	}
	var env Env
	person(&env)
	file := filepath.Join(strings.TrimPrefix(env.Environ[0], "HOME="), ".config", "fairlead", "sessions.json")
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if dir, err := os.ReadDir(filepath.Dir(file)); err != nil || len(dir) != 1 {
		t.Errorf("files %v, %v", dir, err)
	}
	// Later commands use the session, unless a key or a local server is there.
	fairlead(t, noSocket, []string{"whoami"}, person)
	fairlead(t, noSocket, []string{"whoami", "--server", s.url}, person)
	fairlead(t, noSocket, []string{"whoami", "--server", s.url, "--api-key", "flk_flag"}, person)
	socket, local := listen(t, cannedServer())
	fairlead(t, socket, []string{"whoami"}, person)
	var sent []string
	for _, req := range log.requests() {
		if req.Path == "/api/v1/whoami" {
			sent = append(sent, req.Authorization)
		}
	}
	const session = "Bearer fls_7Qd0XhVb2mTa_the-secret"
	if want := []string{session, session, "Bearer flk_flag"}; !slices.Equal(sent, want) || len(local.requests()) != 1 {
		t.Errorf("sent %v, and %v to the socket", sent, local.requests())
	}
	if r := fairlead(t, noSocket, []string{"logout"}, person); r.status != 0 || r.stdout.String() != "Signed out of "+s.url+"\n" {
		t.Errorf("%s%s", &r.stdout, &r.stderr)
	}
	last := log.requests()[len(log.requests())-1]
	if last.Method != "DELETE" || last.Path != "/api/v1/my/session/current" || last.Authorization != session {
		t.Errorf("signed out with %v", last)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "fls_") {
		t.Errorf("%s, %v", text, err)
	}
	if r := fairlead(t, noSocket, []string{"logout", "--server", s.url}, person); r.status != 1 || !strings.Contains(r.stderr.String(), "you are not signed in to "+s.url) {
		t.Errorf("%d: %s", r.status, &r.stderr)
	}
}

// Otherwise, the first session stays valid although nobody can use it, and people see sessions that they do not know.
func TestSecondLoginEndsTheFirstSession(t *testing.T) {
	s, log, person := startSignIn(t)
	noSocket := filepath.Join(t.TempDir(), "none")
	login := []string{"login", "--server", s.url}
	fairlead(t, noSocket, login, person)
	var env Env
	person(&env)
	file := filepath.Join(strings.TrimPrefix(env.Environ[0], "HOME="), ".config", "fairlead", "sessions.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "the-secret", "the-first", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := fairlead(t, noSocket, login, person); r.status != 0 || strings.Contains(r.stderr.String(), "revoke") {
		t.Errorf("%d: %s", r.status, &r.stderr)
	}
	last := log.requests()[len(log.requests())-1]
	if last.Method != "DELETE" || last.Path != "/api/v1/my/session/current" || last.Authorization != "Bearer fls_7Qd0XhVb2mTa_the-first" {
		t.Errorf("the last request is %v", last)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "the-secret") || strings.Contains(string(text), "the-first") {
		t.Errorf("stored %s, %v", text, err)
	}
}

func TestLoginSaysWhatIsMissing(t *testing.T) {
	s, _, person := startSignIn(t)
	s.providers = []openapi.SignInProvider{}
	for args, want := range map[string]string{
		"login":                       "--server is required",
		"login --server mesh":         "invalid server URL",
		"login --server " + s.url:     "it has no identity provider",
		"logout":                      "--server is required",
		"login --server https://a@b/": "must not contain a user name",
	} {
		if r := fairlead(t, "/nowhere", strings.Fields(args), person); r.status == 0 || !strings.Contains(r.stderr.String(), want) {
			t.Errorf("%s: %d %s", args, r.status, &r.stderr)
		}
	}
}

func TestNobodySignsInForTooLong(t *testing.T) {
	s, _, person := startSignIn(t)
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	env := Env{Stdout: &out, Stderr: &out, Now: time.Now}
	person(&env)
	env.Browse = func(context.Context, string) error { cancel(); return nil }
	if status := Execute(ctx, New(env), []string{"login", "--server", s.url}); status != 1 || !strings.Contains(out.String(), "run fairlead login again") {
		t.Errorf("%d: %s", status, &out)
	}
}

func TestLoginOnAnotherDevice(t *testing.T) {
	s, log, person := startSignIn(t)
	r := fairlead(t, "/nowhere", []string{"login", "--device", "--server", s.url}, person)
	if r.status != 0 || !strings.Contains(r.stdout.String(), "as alice") || !strings.Contains(r.stderr.String(), "https://mesh.example.com/oidc/device/the-device") || !strings.Contains(r.stderr.String(), "shows this code: 7K3M-9QXD") {
		t.Fatalf("status %d: %s\n%s", r.status, &r.stdout, &r.stderr)
	}
	var started openapi.DeviceSignInRequest
	var polled openapi.DeviceSignInPoll
	requests := log.requests()
	if len(requests) != 2 || json.Unmarshal([]byte(requests[0].Body), &started) != nil || json.Unmarshal([]byte(requests[1].Body), &polled) != nil {
		t.Fatalf("%v", requests)
	}
	if polled.DeviceCode != "the-device" || started.Challenge != challengeOf(polled.Verifier) || requests[1].Authorization != "" {
		t.Errorf("%v", requests)
	}
	fairlead(t, "/nowhere", []string{"whoami"}, person)
	if last := log.requests()[2]; last.Authorization != "Bearer fls_7Qd0XhVb2mTa_the-secret" {
		t.Errorf("%v", last)
	}
}
