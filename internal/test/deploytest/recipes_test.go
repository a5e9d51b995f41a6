//go:build !race

package deploytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// This tests other proxies with the configurations from docs/reverse-proxies.md.
func TestDocumentedProxiesPassUpgradesAndStreams(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs", "reverse-proxies.md"))
	if err != nil {
		t.Fatal(err)
	}
	image := fmt.Sprintf("fairlead-test/proxies:%d", rand.Uint32())
	build := exec.CommandContext(t.Context(), docker, "build", "--quiet", "--tag="+image, "-")
	build.Env = environ()
	build.Stdin = strings.NewReader("FROM debian:bookworm-slim\nRUN apt-get update && apt-get install -y --no-install-recommends nginx-light caddy haproxy\n")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		// The layers stay in Docker's cache.
		_, _ = command(context.WithoutCancel(t.Context()), root, docker, "image", "rm", image)
	})
	for name, start := range map[string]string{
		"nginx":     "cat /recipe/config >/etc/nginx/conf.d/mesh.conf; exec nginx -g 'daemon off;'",
		"caddyfile": `sed 's|^mesh.example {|&\n tls /etc/ssl/mesh/fullchain.pem /etc/ssl/mesh/privkey.pem|' /recipe/config >/tmp/config; exec caddy run --adapter caddyfile --config /tmp/config`,
		"haproxy":   "cd /etc/ssl/mesh; cat fullchain.pem privkey.pem >mesh.pem; exec haproxy -f /recipe/config",
	} {
		t.Run(name, func(t *testing.T) {
			p := &proxy{t: t, Name: fmt.Sprintf("fairlead-test-%d", rand.Uint32()), TLS: t.TempDir()}
			p.newCertificate()
			recipe := t.TempDir()
			p.write(filepath.Join(recipe, "config"), strings.ReplaceAll(block(t, string(text), name), "mesh.example.com", proxyHost), 0o644)
			p.docker("network", "create", p.Name)
			t.Cleanup(p.end)
			// The server and the proxy share a network namespace, so the server is at the address that
			// the recipe expects.
			p.startUpstream("fairlead", "127.0.0.1:8080", "--publish=127.0.0.1::443", "--publish=127.0.0.1::80")
			p.docker("run", "--detach", "--name="+p.Name, "--network=container:"+p.Name+"-fairlead", "--volume="+recipe+":/recipe:ro",
				"--volume="+p.TLS+":/etc/ssl/mesh", "--entrypoint=sh", image, "-c", start)
			p.published = p.Name + "-fairlead"

			c := p.client(true)
			eventually(t, patience, func() error {
				_, err := fetch(t, c, http.MethodGet, "https://mesh.example/")
				return err
			})
			gateway := p.docker("network", "inspect", "--format={{(index .IPAM.Config 0).Gateway}}", p.Name)
			a := get(t, c, "https://mesh.example/x", "X-Forwarded-For", stranger)
			if got := a.Seen.Header.Values("X-Forwarded-For"); a.Proto != "HTTP/2.0" || len(got) != 1 || got[0] != gateway || a.Seen.Host != proxyHost {
				t.Errorf("%s, behind it %q asks as %q, not %q", a.Proto, got, a.Seen.Host, gateway)
			}
			if a := get(t, c, "http://mesh.example/x"); a.Status/100 != 3 || a.Header.Get("Location") != "https://mesh.example/x" {
				t.Errorf("port 80: %d to %s", a.Status, a.Header.Get("Location"))
			}
			p.mustPassUpgrades(443, true)
			for _, http2 := range []bool{false, true} {
				p.mustStream(p.client(http2), "https://mesh.example/stream")
			}
		})
	}
}

// block returns the first code block of a language in a document.
func block(t *testing.T, text, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n```"+language+"\n")
	code, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed {
		t.Fatalf("there is no block of %s", language)
	}
	return code + "\n"
}
