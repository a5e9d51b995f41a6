package wire_test

import (
	"context"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// publicURL is where browsers reach the service, whichever process serves it.
const publicURL = "http://mesh.test"

// providerOf returns a provider that has been discovered, if it is up.
func providerOf(t testing.TB, i *oidctest.Issuer, change func(*oidc.Config)) *oidc.Provider {
	t.Helper()
	c := oidc.Config{
		Issuer: i.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, RedirectURL: wire.CallbackURL(publicURL),
		EmailVerifiedRequired: true, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&c)
	}
	p := oidc.New(c)
	_ = p.Discover(t.Context()) // fails if the test wants a provider that is down
	return p
}

func withProviders(all ...*oidc.Provider) func(*wire.Config) {
	return func(c *wire.Config) { c.Providers, c.ServerURL = all, publicURL }
}

// openWith runs a server with one provider.
func openWith(t testing.TB, i *oidctest.Issuer) *service {
	t.Helper()
	s, _ := open(t, options{wire: withProviders(providerOf(t, i, nil))})
	return s
}

// ann is a person whom providers know.
func ann() map[string]any {
	return map[string]any{"sub": "ann-1", "email": "ann@example.com", "email_verified": true, "preferred_username": "ann", "name": "Ann Example"}
}

func bob() map[string]any {
	return map[string]any{"sub": "bob-1", "email": "bob@example.com", "email_verified": true, "preferred_username": "bob"}
}

// browser keeps cookies and follows redirects only if it is told to.
type browser struct {
	t    testing.TB
	s    *service
	http http.Client
}

func (s *service) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	b := &browser{t: s.t, s: s}
	b.http = http.Client{
		Jar: jar, Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if strings.HasPrefix(addr, "mesh.test:") {
				addr = strings.TrimPrefix(b.s.url, "http://")
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}},
	}
	return b
}

// answer is a response that has been read.
type answer struct {
	url, location string
	status        int
	header        http.Header
	text          string
}

func (b *browser) do(method, address string, form url.Values, header ...string) answer {
	b.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = publicURL + address
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	out := answer{url: address, status: res.StatusCode, header: res.Header, text: string(text)}
	if where, err := res.Location(); err == nil {
		out.location = where.String()
	}
	return out
}

func (b *browser) get(address string) answer {
	b.t.Helper()
	return b.do(http.MethodGet, address, nil)
}

// follow follows redirects to the end, or to a URL that contains stop.
func (b *browser) follow(address, stop string) answer {
	b.t.Helper()
	for range 10 {
		out := b.get(address)
		if out.location == "" || stop != "" && strings.Contains(out.location, stop) {
			return out
		}
		address = out.location
	}
	b.t.Fatalf("too many redirects, the last to %s", address)
	return answer{}
}

var csrfField = regexp.MustCompile(`name="csrf" value="([A-Z0-9]+)"`)

// press sends the form of a page.
func (b *browser) press(page answer, header ...string) answer {
	b.t.Helper()
	found := csrfField.FindStringSubmatch(page.text)
	if found == nil {
		b.t.Fatalf("%s: %d, without a form:\n%s", page.url, page.status, page.text)
	}
	return b.do(http.MethodPost, page.url, url.Values{"csrf": {found[1]}}, header...)
}

// signIn signs in and confirms, and returns the last page.
func (b *browser) signIn(link string) answer {
	b.t.Helper()
	out := b.press(b.follow(path(link), ""))
	if out.status != http.StatusSeeOther {
		b.t.Fatalf("confirming: %d\n%s", out.status, out.text)
	}
	return b.follow(out.location, "")
}

func path(link string) string { return "/auth/" + identity.LoginToken(link) }

func (a answer) shows(t testing.TB, status int, parts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("%.60s: status %d, want %d", a.url, a.status, status)
	}
	for _, part := range parts {
		if !strings.Contains(html.UnescapeString(a.text), part) {
			t.Errorf("%.60s lacks %q:\n%s", a.url, part, a.text)
		}
	}
}
