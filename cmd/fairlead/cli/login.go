package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

const (
	// loginLimit is how long a person may take to sign in.
	loginLimit    = 10 * time.Minute
	loopbackPath  = "/callback"
	loopbackLimit = 10 * time.Second
	// maxLoopbackHeader limits the requests to the loopback address, because other programs may send some.
	maxLoopbackHeader = 16 << 10
)

func (t *tool) login() *cobra.Command {
	var noBrowser, device bool
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Sign in to a server with your identity provider",
		Long: `Sign in to a server with its identity provider, instead of using an API key.

The command opens a browser on this computer. On a computer without one, use
--device: it prints a URL and a code. Open the URL on any device, sign in, check
that the page shows the same code, and confirm.

After you have confirmed, the command stores a session in
~/.config/fairlead/sessions.json, which only you can read. Later commands use
the session with --server, and without it on machines that run no server of
their own. The session has your role on the server, and expires after the time
that the server sets (oidc.session_expiry).`,
		Example: `  fairlead login --server https://mesh.example.com
  fairlead login --server https://mesh.example.com --no-browser
  fairlead login --server https://mesh.example.com --device
  fairlead whoami
  fairlead logout`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := t.loginServer()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), loginLimit)
			defer cancel()
			if device {
				return t.signInElsewhere(ctx, server)
			}
			return t.signIn(ctx, server, noBrowser)
		},
	}
	cmd.Flags().BoolVar(&device, "device", false, "sign in with a browser on another device")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "print the URL without opening a browser")
	return cmd
}

// loginServer returns the server to sign in to.
func (t *tool) loginServer() (string, error) {
	c, err := t.readCredentials()
	if err != nil {
		return "", err
	}
	server := cmp.Or(t.server, t.getenv("FAIRLEAD_CLI_SERVER"), c.Server)
	if server == "" {
		return "", wrongUsage("--server is required: set it to the URL of the server, such as https://mesh.example.com")
	}
	return serverName(server), nil
}

// signIn signs in with a browser on this computer and stores the session.
func (t *tool) signIn(ctx context.Context, server string, noBrowser bool) error {
	client, err := t.anonymous(server)
	if err != nil {
		return err
	}
	at, err := decode[apiclient.SignIn](answer(client.ShowSignIn(ctx)))
	if err != nil {
		return err
	}
	if len(at.Providers) == 0 {
		return fmt.Errorf("nobody can sign in to %s: it has no identity provider. Use an API key (FAIRLEAD_CLI_API_KEY), or set oidc.issuer in its configuration", server)
	}
	verifier := rand.Text() + rand.Text()
	l, err := t.awaitBrowser(ctx, at.URL, verifier, noBrowser)
	if err != nil {
		return err
	}
	result, err := decode[apiclient.SessionResult](answer(client.CreateSession(ctx, apiclient.SessionExchange{Code: l.code, Verifier: verifier, ReturnURL: l.returnURL})))
	if err != nil {
		return err
	}
	return t.keepSession(ctx, server, result)
}

// signInElsewhere signs in with a browser on another device and stores the session.
func (t *tool) signInElsewhere(ctx context.Context, server string) error {
	client, err := t.anonymous(server)
	if err != nil {
		return err
	}
	verifier, host := rand.Text()+rand.Text(), hostname()
	started, err := decode[apiclient.DeviceSignIn](answer(client.StartDeviceSignIn(ctx, apiclient.DeviceSignInRequest{Challenge: challengeOf(verifier), Description: &host})))
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Stderr, "To sign in, open this URL on any device:\n\n%s\n\nConfirm only if the page shows this code: %s\n", started.URL, started.UserCode)
	pause := time.NewTicker(max(1, time.Duration(started.Interval)) * time.Second)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return errLoginLate()
		}
		out, err := decode[apiclient.DeviceSignInResult](answer(client.PollDeviceSignIn(ctx, apiclient.DeviceSignInPoll{DeviceCode: started.DeviceCode, Verifier: verifier})))
		temporary := brokenError{}
		switch {
		case ctx.Err() != nil:
			return errLoginLate()
		case errors.As(err, &temporary): // another replica may respond
		case err != nil:
			return err
		case !out.Pending && out.Session != nil:
			return t.keepSession(ctx, server, apiclient.SessionResult{Token: out.Token, Session: *out.Session})
		}
	}
}

func errLoginLate() error {
	return errors.New("nobody signed in within 10 minutes; run fairlead login again")
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// hostname tells the sessions of a person apart. It may be empty.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// anonymous returns a client that sends no key.
func (t *tool) anonymous(server string) (*apiclient.Client, error) {
	if err := checkServer(server); err != nil {
		return nil, err
	}
	return apiclient.NewClient(server, apiclient.WithHTTPClient(overNetwork(server)))
}

// keepSession stores a new session, and ends the one that it replaces: nobody could use or revoke that from here any more.
func (t *tool) keepSession(ctx context.Context, server string, result apiclient.SessionResult) error {
	c, err := t.readCredentials()
	if err != nil {
		return err
	}
	if c.Sessions == nil {
		c.Sessions = map[string]credential{}
	}
	c.Server = server
	before := c.Sessions[server]
	c.Sessions[server] = credential{Token: result.Token, User: result.Session.User.Name, Expiration: result.Session.Expiration}
	if err := t.writeCredentials(c); err != nil {
		return err
	}
	if before.Token != "" && before.Token != result.Token {
		if err := t.revoke(ctx, server, before.Token); err != nil {
			fmt.Fprintf(t.Stderr, "The previous session could not be revoked: %v. Revoke it with: fairlead sessions list --mine\n", err)
		}
	}
	return t.show(result.Session, fmt.Sprintf("Signed in to %s as %s. The session expires at %s\n", server, result.Session.User.Name, timeText(result.Session.Expiration)))
}

// landing is what the browser brings.
type landing struct{ code, returnURL string }

// awaitBrowser sends a browser to the server and waits until it comes back with a code.
func (t *tool) awaitBrowser(ctx context.Context, start, verifier string, noBrowser bool) (landing, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return landing{}, fmt.Errorf("cannot listen on 127.0.0.1 for the browser: %w", err)
	}
	host, state := listener.Addr().String(), rand.Text()
	back := "http://" + host + loopbackPath
	link, err := loginLink(start, back, state, verifier)
	if err != nil {
		_ = listener.Close()
		return landing{}, err
	}
	codes := make(chan string, 1)
	srv := &http.Server{
		Handler: loopbackHandler(host, state, codes), ReadTimeout: loopbackLimit, WriteTimeout: loopbackLimit, MaxHeaderBytes: maxLoopbackHeader,
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(listener) }) // until Shutdown
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), loopbackLimit)
		defer cancel()
		_ = srv.Shutdown(stop) // lets the browser read the last page
		serving.Wait()
	}()
	if noBrowser || t.Browse == nil || t.Browse(ctx, link) != nil {
		fmt.Fprintf(t.Stderr, "To sign in, open this URL in a browser on this computer:\n\n%s\n\n", link)
	} else {
		fmt.Fprintf(t.Stderr, "Sign in with the browser that has just opened. If none has, open this URL on this computer:\n\n%s\n\n", link)
	}
	select {
	case code := <-codes:
		return landing{code, back}, nil
	case <-ctx.Done():
		return landing{}, errLoginLate()
	}
}

func loginLink(start, back, state, verifier string) (string, error) {
	u, err := url.Parse(start)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", errors.New("the server did not say where to sign in; check server_url in its configuration")
	}
	u.RawQuery = url.Values{
		"return_url": {back}, "state": {state}, "code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"},
		"description": {hostname()},
	}.Encode()
	return u.String(), nil
}

// loopbackHandler accepts the browser that comes back from the sign-in. Other pages and programs can send requests
// too, but do not know the state. The name of the host must be the address, so that no page of another site can read
// the response.
func loopbackHandler(host, state string, codes chan<- string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		q := r.URL.Query()
		known := subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) == 1
		if r.Method != http.MethodGet || r.URL.Path != loopbackPath || r.Host != host || !known || q.Get("code") == "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "<!doctype html><title>Fairlead</title><p>This sign-in was not started by the command line that is waiting. Run <code>fairlead login</code> again.</p>\n")
			return
		}
		_, _ = io.WriteString(w, "<!doctype html><title>Fairlead</title><p>You can close this page and return to the command line.</p>\n")
		select {
		case codes <- q.Get("code"):
		default: // reloaded
		}
	})
}

// OpenBrowser opens a URL in the browser of the person, if there is a desktop.
func OpenBrowser(ctx context.Context, link string) error {
	name, args := "xdg-open", []string{link}
	switch {
	case runtime.GOOS == "darwin":
		name = "open"
	case runtime.GOOS == "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", link}
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return errors.New("there is no desktop")
	}
	return exec.CommandContext(context.WithoutCancel(ctx), name, args...).Start() // the browser stays open
}

func (t *tool) logout() *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Sign out of a server",
		Long: `Sign out of a server: revoke the session of fairlead login and delete it from
this computer. Without --server, sign out of the server of the last login.`,
		Example: `  fairlead logout
  fairlead logout --server https://mesh.example.com`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := t.loginServer()
			if err != nil {
				return err
			}
			c, err := t.readCredentials()
			if err != nil {
				return err
			}
			kept, ok := c.Sessions[server]
			if !ok {
				return fmt.Errorf("you are not signed in to %s", server)
			}
			if err := t.revoke(cmd.Context(), server, kept.Token); err != nil {
				return fmt.Errorf("%w. The session is still valid; try again, or delete it from %s and let an administrator revoke it", err, t.credentialsFile())
			}
			if delete(c.Sessions, server); c.Server == server {
				c.Server = ""
			}
			if err := t.writeCredentials(c); err != nil {
				return err
			}
			return t.show(apiclient.Empty{}, fmt.Sprintf("Signed out of %s\n", server))
		},
	}
}

// revoke ends a session that was stored.
func (t *tool) revoke(ctx context.Context, server, token string) error {
	kept := tool{Env: t.Env, server: server, apiKey: token}
	client, err := kept.dial()
	if err != nil {
		return err
	}
	resp, err := client.RevokeMySession(ctx, "current")
	if err == nil && resp.StatusCode == http.StatusUnauthorized { // it has ended already
		_ = resp.Body.Close()
		return nil
	}
	_, err = answer(resp, err)
	return err
}
