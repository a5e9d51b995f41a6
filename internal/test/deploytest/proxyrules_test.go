//go:build !race

package deploytest

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

// believing configures the proxy to trust X-Forwarded-For, as it does behind another proxy, so that
// tests can choose their client address.
const believing = "set_real_ip_from 0.0.0.0/0;\nreal_ip_header X-Forwarded-For;\n"

const (
	stranger   = "203.0.113.9"
	fromTheLAN = "10.0.0.1"
)

func TestProxyInDevelopmentForwardsPlainHTTP(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "", "PROXY_MODE=dev")
	c := p.client(false)
	for url, want := range map[string]string{
		"http://mesh.example:8080/":           ":8080",
		"http://mesh.example:8080/health":     ":8080",
		"http://mesh.example:8080/api/v1/x?y": ":8080",
		"http://mesh.example:3001/admin/":     ":3000",
		"http://mesh.example:3001/health":     ":3000",
	} {
		if a := get(t, c, url); a.Status != 200 || a.Seen.By != want {
			t.Errorf("%s: %d by %s", url, a.Status, a.Seen.By)
		}
	}
	mustAnswer(t, c, map[string]int{
		"http://mesh.example:8080/robots.txt": 200,
		"http://mesh.example:8080/admin/":     404,
		"http://mesh.example:3001/admin":      404,
		"http://mesh.example:3001/":           404,
	})
	for _, url := range []string{"http://mesh.example:80/", "https://mesh.example:443/"} {
		if a, err := fetch(t, c, http.MethodGet, url); err == nil {
			t.Errorf("%s answers %d in development", url, a.Status)
		}
	}
}

func TestProxyInProductionSpeaksTLS13Only(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "", "PROXY_MODE=prod")
	for _, port := range []int{443, 3001} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			conn, err := p.dial(t.Context(), port)
			if err != nil {
				t.Fatal(err)
			}
			config := p.trusting()
			config.MaxVersion, config.NextProtos = version, []string{"h2", "http/1.1"}
			secure := tls.Client(conn, config)
			err = secure.HandshakeContext(t.Context())
			if (err == nil) != (version == tls.VersionTLS13) {
				t.Errorf("port %d, %s: %v", port, tls.VersionName(version), err)
			}
			if got := secure.ConnectionState().NegotiatedProtocol; err == nil && got != "h2" {
				t.Errorf("port %d agrees on %q", port, got)
			}
			secure.Close()
		}
	}
	if a := get(t, p.client(true), "https://mesh.example:443/x"); a.Proto != "HTTP/2.0" || a.Seen.By != ":8080" || a.Seen.Header.Get("X-Forwarded-Proto") != "https" {
		t.Errorf("got %+v", a)
	}
	mustAnswer(t, p.client(false), map[string]int{"http://mesh.example:8080/health": 200, "http://mesh.example:8080/ready": 200, "http://mesh.example:8080/": 404})
}

func TestProxyOnPort80AnswersChallengesAndRedirectsTheRest(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "", "PROXY_MODE=prod", "DOMAIN=mesh.example")
	c := p.client(false)
	if a := get(t, c, "http://evil.example/foo"); a.Header.Get("Location") != "https://mesh.example/foo" {
		t.Errorf("another Host: redirected to %q", a.Header.Get("Location"))
	}
	for request, want := range map[string]string{
		"GET /":                  "https://mesh.example/",
		"GET /a/b?c=d%20e":       "https://mesh.example/a/b?c=d%20e",
		"GET /generate_204":      "https://mesh.example/generate_204",
		"GET /replica":           "https://mesh.example/replica",
		"POST /ts2021":           "https://mesh.example/ts2021",
		"GET /robots.txt":        "https://mesh.example/robots.txt",
		"GET /admin/":            "https://mesh.example/admin/",
		"GET /.well-known/other": "https://mesh.example/.well-known/other",
	} {
		method, path, _ := strings.Cut(request, " ")
		a, err := fetch(t, c, method, "http://mesh.example"+path)
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != 301 || a.Header.Get("Location") != want {
			t.Errorf("%s: %d to %s, want %s", request, a.Status, a.Header.Get("Location"), want)
		}
	}
	const challenge = "http://mesh.example/.well-known/acme-challenge/token"
	if a := get(t, c, challenge); a.Status != 404 {
		t.Errorf("a challenge that is not there: %d", a.Status)
	}
	dir := filepath.Join(p.Challenges, ".well-known", "acme-challenge")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p.write(filepath.Join(dir, "token"), "proof", 0o644)
	if a := get(t, c, challenge); a.Status != 200 || a.Text != "proof" {
		t.Errorf("a challenge: %d, %q", a.Status, a.Text)
	}
}

// securityHeaders are the headers that the specification requires.
var securityHeaders = map[string][]string{
	"Strict-Transport-Security": {"max-age=63072000"},
	"X-Frame-Options":           {"DENY"},
	"X-Content-Type-Options":    {"nosniff"},
	"X-Xss-Protection":          {"1; mode=block"},
}

// mustBeSecure checks that each security header is present exactly once, with its value.
func mustBeSecure(t *testing.T, what string, h http.Header) {
	t.Helper()
	got := map[string][]string{}
	for name := range securityHeaders {
		got[name] = h.Values(name)
	}
	if diff := cmp.Diff(securityHeaders, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestProxySetsSecurityHeadersOnceOnEveryAnswer(t *testing.T) {
	t.Parallel()
	p := startProxy(t, believing, "PROXY_MODE=prod", "PROXY_RATE_LIMIT=strict", "PROXY_ADMIN=on")
	check := func(c *http.Client, method, url string, status int, headers ...string) {
		t.Helper()
		a, err := fetch(t, c, method, url, headers...)
		if err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("%s %s %s: %d", a.Proto, method, url, a.Status)
		if a.Status != status {
			t.Errorf("%s, want %d", what, status)
		}
		mustBeSecure(t, what, a.Header)
	}
	for i, c := range []*http.Client{p.client(false), p.client(true)} {
		for url, status := range map[string]int{
			"https://mesh.example/":                  200,
			"https://mesh.example/robots.txt":        200,
			"https://mesh.example/redirect":          301,
			"https://mesh.example/missing":           404,
			"https://mesh.example/admin":             404,
			"https://mesh.example/admin/":            200,
			"https://mesh.example:3001/admin/":       200,
			"https://mesh.example:3001/admin":        404,
			"https://mesh.example:3001/health":       200,
			"https://mesh.example:3001/anything/new": 404,
		} {
			check(c, http.MethodGet, url, status, "X-Forwarded-For", fromTheLAN)
		}
		check(c, http.MethodGet, "https://mesh.example/admin/", 403, "X-Forwarded-For", stranger)
		check(c, http.MethodTrace, "https://mesh.example/", 405)
		client := fmt.Sprintf("198.51.100.%d", i)
		ask(t, c, 20, "https://mesh.example/auth/", client)
		check(c, http.MethodGet, "https://mesh.example/auth/", 429, "X-Forwarded-For", client)
	}
	mustBeSecure(t, "an upgrade", p.upgrade(443, true, http.MethodPost, "/ts2021", "tailscale-control-protocol").Header)
	for what, request := range map[string]string{
		"a host that is none":    "GET / HTTP/1.1\r\nHost: not a host\r\n\r\n",
		"no HTTP":                "nonsense\r\n\r\n",
		"a body too long":        "POST / HTTP/1.1\r\nHost: mesh.example\r\nContent-Length: 100000000\r\n\r\n",
		"a path too long":        "GET /" + strings.Repeat("x", 40_000) + " HTTP/1.1\r\nHost: mesh.example\r\n\r\n",
		"plain HTTP on port 443": "GET / HTTP/1.1\r\nHost: mesh.example\r\n\r\n",
	} {
		status, header := p.raw(what != "plain HTTP on port 443", request)
		if status < 400 {
			t.Errorf("%s: %d", what, status)
		}
		mustBeSecure(t, what, header)
	}
	p.stopUpstream("fairlead")
	p.stopUpstream("console")
	for _, c := range []*http.Client{p.client(false), p.client(true)} {
		check(c, http.MethodGet, "https://mesh.example/", 502)
		check(c, http.MethodGet, "https://mesh.example/admin/", 502, "X-Forwarded-For", fromTheLAN)
		check(c, http.MethodGet, "https://mesh.example:3001/admin/", 502)
	}
}

// raw sends bytes to port 443 and returns the response.
func (p *proxy) raw(secure bool, request string) (status int, header http.Header) {
	p.t.Helper()
	conn, err := p.dial(p.t.Context(), 443)
	if err != nil {
		p.t.Fatal(err)
	}
	if secure {
		conn = tls.Client(conn, p.trusting())
	}
	defer conn.Close()
	// The proxy may respond and close before it has read a request that is too long.
	if _, err := fmt.Fprint(conn, request); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		p.t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode, res.Header
}

func TestProxyTellsRobotsToStayAway(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "", "PROXY_MODE=prod")
	a := get(t, p.client(true), "https://mesh.example/robots.txt")
	if a.Text != "User-agent: *\nDisallow: /\n" || a.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("%s: %q", a.Header.Get("Content-Type"), a.Text)
	}
}

func TestProxyServesTheConsoleOnItsPortOnly(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "", "PROXY_MODE=prod")
	c := p.client(true)
	mustAnswer(t, c, map[string]int{
		"https://mesh.example:3001/admin/":       200,
		"https://mesh.example:3001/admin/nodes":  200,
		"https://mesh.example:3001/health":       200,
		"https://mesh.example:3001/admin":        404,
		"https://mesh.example:3001/":             404,
		"https://mesh.example:3001/api/v1/node":  404,
		"https://mesh.example:3001/administrate": 404,
		"https://mesh.example/admin":             404,
		"https://mesh.example/admin/":            404,
		"https://mesh.example/admin/nodes":       404,
		"https://mesh.example/%61dmin/":          404,
		"https://mesh.example//admin/":           404,
	})
	for url, want := range map[string]string{"https://mesh.example:3001/health": ":3000", "https://mesh.example:3001/admin/x": ":3000", "https://mesh.example/health": ":8080"} {
		if a := get(t, c, url); a.Seen.By != want {
			t.Errorf("%s is answered by %s", url, a.Seen.By)
		}
	}
}

func TestProxyProtectsAdminPaths(t *testing.T) {
	t.Parallel()
	p := startProxy(t, believing, "PROXY_MODE=prod", "PROXY_ADMIN=on", "PROXY_API=on")
	c := p.client(true)
	for client, allowed := range map[string]bool{
		"127.0.0.1": true, "::1": true, "10.1.2.3": true, "172.16.0.1": true, "172.31.255.254": true, "192.168.1.1": true,
		"fc00::1": true, "fd7a:115c:a1e0::1": true, "100.64.0.1": true, "100.127.255.254": true,
		stranger: false, "172.32.0.1": false, "100.63.255.255": false, "100.128.0.1": false, "11.0.0.1": false, "2001:db8::1": false, "fe80::1": false,
	} {
		want := map[string]int{
			"https://mesh.example/admin": 404, "https://mesh.example/admin/": 200, "https://mesh.example/admin/nodes": 200,
			"https://mesh.example/api/v1/admin": 404, "https://mesh.example/api/v1/admin/x": 404,
			"https://mesh.example/api/v1/node": 200, "https://mesh.example//%61pi/v1/node": 200,
		}
		if !allowed {
			for url := range want {
				want[url] = 403
			}
			want["https://mesh.example/x/%2e/../admin/"] = 400
			want["https://mesh.example/./admin/"] = 403
		}
		for _, path := range []string{"/key", "/apis", "/health"} {
			want["https://mesh.example"+path] = 200
		}
		mustAnswer(t, c, want, "X-Forwarded-For", client)
	}
	// Docker's gateway has a private address, but traffic from any client may come through it.
	mustAnswer(t, c, map[string]int{"https://mesh.example/admin/": 403, "https://mesh.example/api/v1/admin": 403})
	if a := get(t, c, "https://mesh.example/admin/", "X-Forwarded-For", fromTheLAN); a.Seen.By != ":3000" {
		t.Errorf("/admin/ is answered by %s", a.Seen.By)
	}
}

// The operator's list replaces the default list. By default it does not restrict the API.
func TestProxyTakesTheOperatorsNetworks(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "admin-networks.list")
	if err := os.WriteFile(list, []byte("allow "+stranger+";\ndeny all;\n"), 0o644); err != nil { //nolint:gosec // the proxy is another user
		t.Fatal(err)
	}
	p := startProxy(t, believing, "PROXY_MODE=dev", "PROXY_ADMIN=on", "--volume="+list+":/etc/nginx/local/admin-networks.list:ro")
	c := p.client(false)
	mustAnswer(t, c, map[string]int{"http://mesh.example:8080/admin/": 200, "http://mesh.example:8080/api/v1/node": 200}, "X-Forwarded-For", stranger)
	mustAnswer(t, c, map[string]int{"http://mesh.example:8080/admin/": 403, "http://mesh.example:8080/api/v1/node": 200}, "X-Forwarded-For", fromTheLAN)
}

// Of a client's concurrent requests, the burst plus one passes, plus as many as the rate allows in
// the time they took.
func TestProxyLimitsRates(t *testing.T) {
	p := startProxy(t, believing, "PROXY_MODE=prod", "PROXY_RATE_LIMIT=strict")
	c := p.client(true)
	get(t, c, "https://mesh.example/health") // open the connection in advance
	if passed, refused, took := ask(t, c, 40, "https://mesh.example/api/v1/node", "10.0.0.1"); passed < 21 || passed > 22+int(10*took.Seconds()) || passed+refused != 40 {
		t.Errorf("in %v %d of 40 passed and %d were refused", took, passed, refused)
	}
	if passed, refused, took := ask(t, c, 40, "https://mesh.example/auth/x", stranger); passed < 11 || passed > 12+int(took/(2*time.Second)) || passed+refused != 40 {
		t.Errorf("in %v %d of 40 requests to /auth passed, and %d were refused", took, passed, refused)
	}
	if a := get(t, c, "https://mesh.example/auth", "X-Forwarded-For", "10.9.9.9"); a.Status != 200 {
		t.Errorf("the limit of one client is that of another: %d", a.Status)
	}
	for _, path := range []string{"/ts2021", "/health", "/key", "/apis", "/authority", "/"} {
		if passed, _, _ := ask(t, c, 60, "https://mesh.example"+path, stranger); passed != 60 {
			t.Errorf("%s: %d of 60 passed", path, passed)
		}
	}
}

// By default no single client can starve the others, and nothing that the product itself does
// reaches a limit.
func TestProxyLimitsClientsByDefault(t *testing.T) {
	t.Parallel()
	p := startProxy(t, believing, "PROXY_MODE=prod")
	c := p.client(true)
	const site = "https://mesh.example"
	mustAnswer(t, c, map[string]int{site + "/health": 200, site + ":3001/health": 200}) // open the connections in advance
	for _, flood := range []struct {
		url         string
		n, at, perS int
	}{
		{site + "/api/v1/node", 1500, 1001, 200}, {site + "/auth/token", 300, 101, 10}, {site + "/register/token", 300, 101, 10}, {site + ":3001/admin/x", 2500, 2001, 200},
	} {
		client := fmt.Sprintf("203.0.113.%d", len(flood.url)) // a client address for each URL length, because the pages share a limit
		passed, refused, took := ask(t, c, flood.n, flood.url, client)
		if most := flood.at + flood.perS*int(took/time.Second+1); passed < flood.at || passed > most || passed+refused != flood.n {
			t.Errorf("%s: of %d in %v %d passed, want %d to %d, and %d were refused", flood.url, flood.n, took, passed, flood.at, most, refused)
		}
		if a := get(t, c, flood.url, "X-Forwarded-For", "198.51.100.7"); a.Status != 200 {
			t.Errorf("%s: another client gets %d", flood.url, a.Status)
		}
	}
	for url, n := range map[string]int{
		site + "/key":            3000, // many devices behind one address reconnect
		site + "/health":         1000, // monitoring
		site + "/auth/other":     60,   // 60 people behind one address poll for five seconds
		site + ":3001/admin/app": 300,  // five people load the console
	} {
		if passed, _, _ := ask(t, c, n, url, "192.0.2.1"); passed != n {
			t.Errorf("%s: %d of %d passed", url, passed, n)
		}
	}
	// All addresses of one /64 count as one client.
	refused := map[bool]int{}
	for i := range 400 {
		for _, one := range []bool{true, false} {
			client := fmt.Sprintf("2001:db8:0:1::%x", i+1)
			if !one {
				client = fmt.Sprintf("2001:db8:1:%x::1", i)
			}
			if a := get(t, c, site+"/auth/x", "X-Forwarded-For", client); a.Status == 429 {
				refused[one]++
			}
		}
	}
	if refused[true] == 0 || refused[false] != 0 {
		t.Errorf("of one network %d requests are refused, of many %d", refused[true], refused[false])
	}
}

// The test uses the real configuration file, but replaces its limit, which is too large for a test.
func TestProxyLimitsTheConnectionsOfAClient(t *testing.T) {
	t.Parallel()
	const line, most = "limit_conn fairlead_connections 12000;", 20
	text, err := os.ReadFile(filepath.Join(root, "deploy", "nginx", "limit-clients.conf"))
	if err != nil || strings.Count(string(text), line) != 1 {
		t.Fatalf("there is no %q: %v", line, err)
	}
	file := filepath.Join(t.TempDir(), "limit-clients.conf")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), line, fmt.Sprintf("limit_conn fairlead_connections %d;", most), 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, believing, "PROXY_MODE=prod", "--volume="+file+":/etc/nginx/limit-clients.conf:ro")
	for range most {
		p.upgrade(443, true, http.MethodPost, "/ts2021", "tailscale-control-protocol")
	}
	c := p.client(true)
	mustAnswer(t, c, map[string]int{"https://mesh.example/key": 429, "https://mesh.example/health": 200, "https://mesh.example:3001/admin/": 429})
	mustAnswer(t, c, map[string]int{"https://mesh.example/key": 200}, "X-Forwarded-For", stranger)
}

// TestProxyLetsSlowClientsGo checks that the proxy disconnects clients that do not send a complete
// request header within ten seconds.
func TestProxyLetsSlowClientsGo(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "", "PROXY_MODE=prod")
	for what, begin := range map[string]func(net.Conn) (net.Conn, error){
		"no TLS handshake": func(c net.Conn) (net.Conn, error) { return c, nil },
		"half a head": func(c net.Conn) (net.Conn, error) {
			secure := tls.Client(c, p.trusting())
			_, err := fmt.Fprint(secure, "GET / HTTP/1.1\r\nHost: mesh.example\r\n")
			return secure, err
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			conn, err := p.dial(t.Context(), 443)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if conn, err = begin(conn); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("it is still there after 30 seconds")
			}
		})
	}
}

// nginx would resolve ".." in a path, and so apply the limits and protection of a different path
// from the one the server handles.
func TestProxyRefusesPathsThatClimb(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "", "PROXY_MODE=prod")
	const site = "https://mesh.example"
	for _, c := range []*http.Client{p.client(false), p.client(true)} {
		mustAnswer(t, c, map[string]int{
			site + "/api/v1/node/..%2f..%2f..%2fx":   400,
			site + "/%61pi/v1/node/%2E./%2e%2E%2Fx":  400,
			site + "/auth/..":                        400,
			site + "/auth/..?x":                      400,
			site + "/api/v1/node/a..b":               200,
			site + "/api/v1/node/...":                200,
			site + "/api/v1/node?path=/a/../b":       200,
			site + "/api/v1/node/10.0.0.0%2F8":       200,
			"https://mesh.example:3001/admin/..%2fx": 404,
		})
	}
}

func TestProxyLimitsNothingWhenOff(t *testing.T) {
	p := startProxy(t, "", "PROXY_MODE=prod", "PROXY_RATE_LIMIT=off")
	for _, path := range []string{"/api/v1/node", "/auth/x"} {
		if passed, _, _ := ask(t, p.client(true), 400, "https://mesh.example"+path, stranger); passed != 400 {
			t.Errorf("%s: %d of 400 passed", path, passed)
		}
	}
}

// ask sends n requests of one client as fast as a few connections allow.
func ask(t *testing.T, c *http.Client, n int, url, client string) (passed, refused int, took time.Duration) {
	t.Helper()
	var all errgroup.Group
	all.SetLimit(40)
	var mu sync.Mutex
	began := time.Now()
	for range n {
		all.Go(func() error {
			a, err := fetch(t, c, http.MethodGet, url, "X-Forwarded-For", client)
			mu.Lock()
			defer mu.Unlock()
			switch a.Status {
			case http.StatusOK:
				passed++
			case http.StatusTooManyRequests:
				refused++
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	return passed, refused, time.Since(began)
}

func TestProxyTellsWhoAsks(t *testing.T) {
	t.Parallel()
	for name, rig := range map[string]struct{ local, want string }{
		"what a client says of itself is not passed on": {"", "gateway"},
		"what a trusted proxy in front says is":         {believing, stranger},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, rig.local, "PROXY_MODE=prod")
			want := rig.want
			if want == "gateway" {
				want = p.docker("network", "inspect", "--format={{(index .IPAM.Config 0).Gateway}}", p.Name)
			}
			a := get(t, p.client(true), "https://mesh.example/x", "X-Forwarded-For", stranger, "X-Real-IP", stranger,
				"Forwarded", "for="+stranger, "X-Forwarded-Proto", "gopher", "X-Forwarded-Host", "other.example")
			got := http.Header{}
			for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "X-Forwarded-Proto", "X-Forwarded-Host"} {
				if values := a.Seen.Header.Values(name); values != nil {
					got[name] = values
				}
			}
			if diff := cmp.Diff(http.Header{
				"X-Forwarded-For": {want}, "X-Real-Ip": {want}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {proxyHost},
			}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if a.Seen.Host != proxyHost {
				t.Errorf("the host is %q", a.Seen.Host)
			}
		})
	}
}

func TestProxyPassesUpgradesAndStreams(t *testing.T) {
	t.Parallel()
	for mode, port := range map[string]int{"dev": 8080, "prod": 443} {
		t.Run(mode, func(t *testing.T) {
			p := startProxy(t, "", "PROXY_MODE="+mode)
			p.mustPassUpgrades(port, mode == "prod")
			url := fmt.Sprintf("http://%s:%d/stream", proxyHost, port)
			if mode == "prod" {
				url = strings.Replace(url, "http:", "https:", 1)
			}
			for _, http2 := range []bool{false, true} {
				p.mustStream(p.client(http2), url)
			}
		})
	}
}

// mustStream checks that a message arrives while the response is still open.
func (p *proxy) mustStream(c *http.Client, url string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || line != "first\n" {
		p.t.Errorf("%s by %s: %q, %v", url, res.Proto, line, err)
	}
}
