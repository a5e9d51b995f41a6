//go:build !race

package deploytest

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// proxyHost is the proxy's public name.
const proxyHost = "mesh.example"

// proxy is the proxy container with stand-ins for server and console behind it.
type proxy struct {
	t          *testing.T
	Name       string // name of the container and of its network
	TLS        string // directory of the certificate
	Challenges string // directory of ACME challenges

	published string // name of the container that publishes the ports
}

// startProxy runs the image as the Compose files do, with additional settings. local is the text of
// a file in /etc/nginx/local. A setting is an environment variable or a Docker option.
func startProxy(t *testing.T, local string, settings ...string) *proxy {
	t.Helper()
	p := &proxy{t: t, Name: fmt.Sprintf("fairlead-test-%d", rand.Uint32()), TLS: t.TempDir(), Challenges: t.TempDir()}
	p.published = p.Name
	if err := os.Chown(p.TLS, proxyUser, proxyUser); err != nil {
		t.Fatal(err)
	}
	p.newCertificate()
	p.docker("network", "create", p.Name)
	t.Cleanup(p.end)
	p.startUpstream("fairlead", ":8080")
	p.startUpstream("console", ":3000")
	args := []string{
		"run", "--detach", "--name=" + p.Name, "--network=" + p.Name, "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges:true",
		"--tmpfs=/run/nginx:uid=10003,gid=10003,mode=0755", "--volume=" + p.Name + ":/var/log/nginx", "--volume=" + p.TLS + ":/etc/nginx/tls:ro",
		"--volume=" + p.Challenges + ":/var/www/challenges:ro",
	}
	if local != "" {
		file := filepath.Join(t.TempDir(), "local.conf")
		p.write(file, local, 0o644)
		args = append(args, "--volume="+file+":/etc/nginx/local/local.conf:ro")
	}
	for _, s := range settings {
		if !strings.HasPrefix(s, "--") {
			s = "--env=" + s
		}
		args = append(args, s)
	}
	for _, port := range []string{"80", "443", "3001", "8080"} {
		args = append(args, "--publish=127.0.0.1::"+port)
	}
	p.docker(append(args, images.name("proxy"))...)
	p.waitUntilItAnswers()
	return p
}

func (p *proxy) waitUntilItAnswers() {
	p.t.Helper()
	eventually(p.t, patience, func() error {
		_, err := command(p.t.Context(), root, docker, "exec", p.Name, "curl", "-fsS", "http://127.0.0.1:8080/health")
		return err
	})
}

// startUpstream starts a stand-in behind the proxy, under the name of a Compose service.
func (p *proxy) startUpstream(name, listen string, options ...string) {
	p.t.Helper()
	program, err := filepath.Abs(filepath.Join(root, "dist", "upstream"))
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := command(p.t.Context(), ".", "go", "build", "-o", program, "./upstream"); err != nil {
		p.t.Fatal(err)
	}
	args := append([]string{
		"run", "--detach", "--name=" + p.Name + "-" + name, "--network=" + p.Name, "--network-alias=" + name,
		"--volume=" + program + ":/upstream:ro", "--entrypoint=/upstream",
	}, options...)
	p.docker(append(args, images.name("proxy"), listen)...)
}

func (p *proxy) stopUpstream(name string) {
	p.t.Helper()
	p.docker("rm", "--force", p.Name+"-"+name)
}

// end removes everything, even if only part of it was started.
func (p *proxy) end() {
	ctx := context.WithoutCancel(p.t.Context())
	if p.t.Failed() {
		log, err := command(ctx, root, "sh", "-c", docker+" logs --tail 30 "+p.Name+" 2>&1")
		p.t.Logf("the proxy wrote: %s (%v)", log, err)
	}
	for _, args := range [][]string{
		{"rm", "--force", "--volumes", p.Name, p.Name + "-fairlead", p.Name + "-console"},
		{"volume", "rm", p.Name},
		{"network", "rm", p.Name},
	} {
		_, _ = command(ctx, root, docker, args...)
	}
}

func (p *proxy) docker(args ...string) string {
	p.t.Helper()
	out, err := command(p.t.Context(), root, docker, args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// shell runs a command in the container.
func (p *proxy) shell(line string) string {
	p.t.Helper()
	return p.docker("exec", p.Name, "sh", "-c", line)
}

// newCertificate replaces the certificate.
func (p *proxy) newCertificate() {
	p.t.Helper()
	own := newAuthority(p.t).issue(p.t, proxyHost, "")
	for name, text := range map[string]string{"privkey.pem": string(own.key), "fullchain.pem": string(own.chain)} {
		name = filepath.Join(p.TLS, name)
		p.write(name+".new", text, 0o600)
		if err := errors.Join(os.Chown(name+".new", proxyUser, proxyUser), os.Rename(name+".new", name)); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *proxy) write(name, text string, mode os.FileMode) {
	p.t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
}

// address returns where a port of the container is published. It changes when the container restarts.
func (p *proxy) address(ctx context.Context, port int) (string, error) {
	out, err := command(ctx, root, docker, "port", p.published, strconv.Itoa(port)+"/tcp")
	return strings.TrimSpace(out), err
}

// dial opens a connection to a port of the container.
func (p *proxy) dial(ctx context.Context, port int) (net.Conn, error) {
	address, err := p.address(ctx, port)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// trusting returns a TLS configuration that trusts the current certificate.
func (p *proxy) trusting() *tls.Config {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.TLS, "fullchain.pem"))
	if err != nil {
		p.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{ServerName: proxyHost, RootCAs: pool}
}

// client returns an HTTP client that follows no redirects. If http2 is set, it speaks HTTP/2 where TLS offers
// it, otherwise HTTP/1.1.
func (p *proxy) client(http2 bool) *http.Client {
	p.t.Helper()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			n, err := strconv.Atoi(port)
			if err != nil {
				return nil, err
			}
			return p.dial(ctx, n)
		},
		TLSClientConfig: p.trusting(), ForceAttemptHTTP2: http2,
	}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// answer is a response together with the request as the upstream received it.
type answer struct {
	Status int
	Header http.Header
	Proto  string
	Text   string
	Seen   struct {
		By, Method, Host, Path string
		Header                 http.Header
		Body                   int64
	}
}

// fetch requests a URL; headers are pairs of names and values.
func fetch(t *testing.T, c *http.Client, method, url string, headers ...string) (answer, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	res, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{Status: res.StatusCode, Header: res.Header, Proto: res.Proto, Text: string(text)}
	// Only responses from the stand-ins have this format.
	_ = json.Unmarshal(text, &a.Seen)
	return a, nil
}

// get is fetch that fails the test if there is no response.
func get(t *testing.T, c *http.Client, url string, headers ...string) answer {
	t.Helper()
	a, err := fetch(t, c, http.MethodGet, url, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// mustAnswer checks the status codes of URLs.
func mustAnswer(t *testing.T, c *http.Client, want map[string]int, headers ...string) {
	t.Helper()
	for _, url := range slices.Sorted(maps.Keys(want)) {
		if a := get(t, c, url, headers...); a.Status != want[url] {
			t.Errorf("%s %v: %d, want %d", url, headers, a.Status, want[url])
		}
	}
}

// upgraded is a connection after an HTTP upgrade.
type upgraded struct {
	conn   net.Conn
	reader *bufio.Reader
	Header http.Header
}

// upgrade requests a protocol upgrade on a port, with TLS if the port uses it.
func (p *proxy) upgrade(port int, secure bool, method, path, protocol string) *upgraded {
	p.t.Helper()
	conn, err := p.dial(p.t.Context(), port)
	if err != nil {
		p.t.Fatal(err)
	}
	if secure {
		conn = tls.Client(conn, p.trusting())
	}
	p.t.Cleanup(func() { conn.Close() })
	u, err := upgrade(conn, method, path, protocol)
	if err != nil {
		p.t.Fatal(err)
	}
	return u
}

// upgrade requests a protocol upgrade on an open connection.
func upgrade(conn net.Conn, method, path, protocol string) (*upgraded, error) {
	request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nUpgrade: %s\r\nConnection: upgrade\r\n", method, path, proxyHost, protocol)
	if protocol == "websocket" {
		request += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	}
	if _, err := fmt.Fprint(conn, request+"\r\n"); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		return nil, err
	}
	res.Body.Close() // there is no body: the new protocol follows
	if res.StatusCode != http.StatusSwitchingProtocols || !strings.EqualFold(res.Header.Get("Upgrade"), protocol) {
		return nil, fmt.Errorf("%s is answered with %s, Upgrade: %s", protocol, res.Status, res.Header.Get("Upgrade"))
	}
	return &upgraded{conn, reader, res.Header}, nil
}

// mustPassUpgrades checks that upgrades to all protocols that clients use pass through a port.
func (p *proxy) mustPassUpgrades(port int, secure bool) {
	p.t.Helper()
	for _, request := range []struct{ method, path, protocol string }{
		{http.MethodPost, "/ts2021", "tailscale-control-protocol"},
		{http.MethodGet, "/derp", "DERP"},
		{http.MethodGet, "/derp", "websocket"},
		{http.MethodGet, "/ts2021", "websocket"},
	} {
		u := p.upgrade(port, secure, request.method, request.path, request.protocol)
		for _, line := range []string{"first", strings.Repeat("long", 50_000), "last"} {
			if err := u.echo(line); err != nil {
				p.t.Errorf("%+v: %v", request, err)
			}
		}
	}
}

// echo sends a line and returns an error if it does not come back.
func (u *upgraded) echo(line string) error {
	if _, err := fmt.Fprintln(u.conn, line); err != nil {
		return err
	}
	got, err := u.reader.ReadString('\n')
	if err == nil && got != line+"\n" {
		err = fmt.Errorf("%q came back as %q", line, got)
	}
	return err
}
