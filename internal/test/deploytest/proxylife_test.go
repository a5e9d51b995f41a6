//go:build !race

package deploytest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

func TestProxyAnswersBadGatewayWhileTheServiceIsAway(t *testing.T) {
	t.Parallel()
	for mode, url := range map[string]string{"dev": "http://mesh.example:8080/x", "prod": "https://mesh.example/x"} {
		t.Run(mode, func(t *testing.T) {
			p := startProxy(t, "", "PROXY_MODE="+mode)
			c := p.client(true)
			mustAnswer(t, c, map[string]int{url: 200})
			p.stopUpstream("fairlead")
			if a := get(t, c, url); a.Status != 502 || !strings.Contains(a.Text, "502 Bad Gateway") {
				t.Errorf("%d, %s", a.Status, a.Text)
			}
			// Restart the proxy while the server is down.
			p.docker("restart", p.Name)
			eventually(t, patience, func() error {
				a, err := fetch(t, c, http.MethodGet, url)
				if err == nil && a.Status != 502 {
					t.Errorf("%d, %s", a.Status, a.Text)
				}
				return err
			})
			p.startUpstream("fairlead", ":8080")
			eventually(t, patience, func() error {
				if a := get(t, c, url); a.Status != 200 {
					return fmt.Errorf("still %d", a.Status)
				}
				return nil
			})
		})
	}
}

func TestProxyLoadsChangedCertificatesAndKeepsConnections(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "", "PROXY_MODE=prod")
	u := p.upgrade(443, true, http.MethodPost, "/ts2021", "tailscale-control-protocol")
	p.newCertificate()
	eventually(t, patience, func() error {
		_, err := fetch(t, p.client(true), http.MethodGet, "https://mesh.example/")
		return err
	})
	p.proxyScript("reload")
	if err := u.echo("still here"); err != nil {
		t.Errorf("a reload ended a connection: %v", err)
	}
	p.proxyScript("restart")
	if err := errors.Join(u.conn.SetDeadline(time.Now().Add(patience)), u.echo("gone")); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a restart ended no connection: %v", err)
	}
}

// This is twice the number of connections that the specification promises.
func TestProxyHoldsThousandsOfStreamsOverAReload(t *testing.T) {
	t.Parallel()
	const n = 2000
	p := startProxy(t, "", "PROXY_MODE=prod")
	address, err := p.address(t.Context(), 443)
	if err != nil {
		t.Fatal(err)
	}
	config := p.trusting()
	streams := make([]*upgraded, n)
	// each calls do for every stream, 32 at a time.
	each := func(do func(i int) error) {
		t.Helper()
		var next atomic.Int64
		var all errgroup.Group
		for range 32 {
			all.Go(func() error {
				for {
					i := int(next.Add(1)) - 1
					if i >= n {
						return nil
					}
					if err := do(i); err != nil {
						return fmt.Errorf("stream %d: %w", i, err)
					}
				}
			})
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, u := range streams {
			if u != nil {
				u.conn.Close()
			}
		}
	})
	each(func(i int) error {
		conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			streams[i], err = upgrade(conn, http.MethodPost, "/ts2021", "tailscale-control-protocol")
		}
		return err
	})
	if out := p.proxyScript("connections"); !strings.Contains(out, fmt.Sprintf("port 8080: %d", n)) {
		t.Errorf("%d streams are open: %s", n, out)
	}
	p.proxyScript("reload")
	each(func(i int) error { return streams[i].echo("still here") })
}

func TestProxyGoesOnWhileItsCertificateCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"fullchain.pem", "privkey.pem"} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, "", "PROXY_MODE=prod")
			if err := os.Chmod(filepath.Join(p.TLS, name), 0); err != nil {
				t.Fatal(err)
			}
			eventually(t, patience, func() error {
				if log := p.shell("cat /var/log/nginx/error.log"); !strings.Contains(log, "cannot load certificate") {
					return errors.New("the error log does not say that a certificate cannot be loaded")
				}
				return nil
			})
			cmd := exec.CommandContext(t.Context(), "scripts/proxy.sh", "test")
			cmd.Dir, cmd.Env = root, append(environ(), "PROXY_CONTAINER="+p.Name)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "cannot load certificate") {
				t.Errorf("%v: %s", err, out)
			}
			mustAnswer(t, p.client(true), map[string]int{"https://mesh.example/": 200})
		})
	}
}

// proxyScript runs a command of scripts/proxy.sh and fails the test if it fails.
func (p *proxy) proxyScript(args ...string) string {
	p.t.Helper()
	out, err := command(p.t.Context(), root, "env", append([]string{"PROXY_CONTAINER=" + p.Name, "scripts/proxy.sh"}, args...)...)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func TestProxyRotatesItsLogsAtTenMegabytesAndKeepsThree(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "", "PROXY_MODE=dev")
	p.shell(`cd /var/log/nginx; for log in access error; do for n in 1 2 3; do echo $n >$log.log.$n; done; done
		head -c 10485760 /dev/zero >>access.log; head -c 10485760 /dev/zero >>error.log`)
	eventually(t, patience, func() error {
		get(t, p.client(false), "http://mesh.example:8080/after")
		sizes := p.shell(`cd /var/log/nginx; for log in access error; do
			[ $(stat -c %s $log.log.1) -ge 10485760 ] && [ $(stat -c %s $log.log) -lt 10485760 ] && echo $log $(cat $log.log.2 $log.log.3) || true; done; ls`)
		if diff := cmp.Diff("access 1 2\nerror 1 2\naccess.log\naccess.log.1\naccess.log.2\naccess.log.3\nerror.log\nerror.log.1\nerror.log.2\nerror.log.3", sizes); diff != "" {
			return errors.New(diff)
		}
		if log := p.shell("cat /var/log/nginx/access.log"); !strings.Contains(log, "GET /after") {
			return errors.New("the new log stays empty")
		}
		return nil
	})
}

func TestProxyLogsToFilesAndToItsOutput(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "", "PROXY_MODE=dev")
	p.stopUpstream("fairlead")
	get(t, p.client(false), "http://mesh.example:8080/marked")
	eventually(t, patience, func() error {
		output, err := command(t.Context(), root, "sh", "-c", docker+" logs "+p.Name+" 2>&1 >/dev/null; echo ---; "+docker+" logs "+p.Name+" 2>/dev/null")
		if err != nil {
			return err
		}
		stderr, stdout, _ := strings.Cut(output, "---\n")
		for what, text := range map[string]string{
			"stdout": stdout, "access.log": p.shell("cat /var/log/nginx/access.log"),
		} {
			if !strings.Contains(text, `"GET /marked HTTP/1.1" 502`) {
				return fmt.Errorf("%s has no request: %s", what, text)
			}
		}
		for what, text := range map[string]string{
			"stderr": stderr, "error.log": p.shell("cat /var/log/nginx/error.log"),
		} {
			if !strings.Contains(text, "[error]") || !strings.Contains(text, "GET /marked") {
				return fmt.Errorf("%s has no error: %s", what, text)
			}
		}
		return nil
	})
}

func TestProxyRefusesSettingsItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for setting, problem := range map[string]string{
		"PROXY_MODE=prdo": "unknown value", "PROXY_RATE_LIMIT=yes": "unknown value", "PROXY_ADMIN=1": "unknown value",
		"PROXY_API=1": "unknown value", "DOMAIN=a;b": "invalid host name",
	} {
		_, err := command(t.Context(), root, docker, "run", "--rm", "--env="+setting, images.name("proxy"))
		if err == nil || !strings.Contains(err.Error(), "proxy: "+problem+" "+setting) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}
