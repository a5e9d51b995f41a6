//go:build !race

package meshtest

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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// balancerFile is a configuration in deploy/balancer.
type balancerFile struct {
	name, file string
	listen     string   // the beginning of the line with the port for devices
	others     []string // the same for other ports
	start      func(t *testing.T, addr, path string)
}

var balancerFiles = []balancerFile{
	{
		name: "HAProxy", file: "haproxy.cfg", listen: "bind :443 ", others: []string{"bind :80\n"},
		start: func(t *testing.T, addr, path string) { startProxy(t, addr, "haproxy", "-db", "-f", path) },
	},
	{
		name: "nginx", file: "nginx.conf", listen: "listen 443 ", others: []string{"listen 80;"},
		start: func(t *testing.T, addr, path string) {
			startProxy(t, addr, "nginx", "-e", "stderr", "-p", filepath.Dir(path), "-c", path, "-g", "daemon off; pid nginx.pid;")
		},
	},
}

// run starts a balancer with its file from the repository. Only addresses and the place of the certificate are changed.
func (f balancerFile) run(t *testing.T, addr string, backends ...string) {
	t.Helper()
	dir := t.TempDir()
	WriteCertificate(t, dir)
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "balancer", f.file))
	if err != nil {
		t.Fatal(err)
	}
	chain, err := os.ReadFile(filepath.Join(dir, "fullchain.pem"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "privkey.pem"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(listen, addr string) string {
		verb, port, _ := strings.Cut(listen, " ")
		return verb + " " + addr + strings.TrimLeft(port, ":0123456789")
	}
	changes := []string{"/etc/ssl/mesh", dir, f.listen, at(f.listen, addr)}
	for _, other := range f.others {
		changes = append(changes, other, at(other, porttest.Addr(t)))
	}
	for i, backend := range backends {
		changes = append(changes, fmt.Sprintf("10.0.0.1%d:8080", i+1), backend)
	}
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(string(text), changes[i]) {
			t.Fatalf("%s does not contain %q", f.file, changes[i])
		}
	}
	path := filepath.Join(dir, f.file)
	for name, content := range map[string]string{path: strings.NewReplacer(changes...).Replace(string(text)), filepath.Join(dir, "mesh.pem"): string(chain) + string(key)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.start(t, addr, path)
}

// With a plain list of replicas, 300 streams ended as 2, 298 and 0 after a rolling restart.
func TestBalancersSpreadNodesOverThreeReplicas(t *testing.T) {
	t.Parallel()
	// With fewer nodes, replicas do not find it worth moving any.
	const nodes = 132
	for _, file := range balancerFiles {
		t.Run(file.name, func(t *testing.T) {
			t.Parallel()
			addr := porttest.Addr(t)
			config := Config{Binary: fairlead, Postgres: pg, Database: pg.Database(t), URL: "https://" + addr, NoiseKey: filepath.Join(t.TempDir(), "noise.key"), Set: map[string]string{"trusted_proxies": loopback}}
			var servers []*Server
			var backends []string
			for range 3 {
				s := Start(t, config)
				servers, backends = append(servers, s), append(backends, s.Addr)
			}
			file.run(t, addr, backends...)
			servers[0].CLI("users", "create", "alice")
			all := join(t, NewCrowd(t, config.URL), servers[0].PreAuthKey("alice", "--reusable"), nodes)
			mustBeEven(t, nodes, servers...)
			reads := readThrough(t, config.URL)

			began := time.Now()
			servers[0].Kill()
			mustBeEven(t, nodes, servers[1:]...)
			t.Logf("all nodes have a stream %v after a replica was killed", time.Since(began).Round(10*time.Millisecond))
			servers[0].Resume()
			began = time.Now()
			mustBeEven(t, nodes, servers...)
			t.Logf("the nodes are spread evenly %v after it returned", time.Since(began).Round(100*time.Millisecond))

			before := ends(all)
			began = time.Now()
			if out := servers[1].CLI("drain"); !strings.Contains(out, "You can stop it now") {
				t.Errorf("drain prints %q", out)
			}
			took := time.Since(began).Round(100 * time.Millisecond)
			t.Logf("a replica is drained after %v", took)
			if took < 4900*time.Millisecond {
				t.Error("the balancer disconnected the nodes before the replica did")
			}
			mustBeEven(t, nodes, servers[0], servers[2])
			if moved := ends(all) - before; moved > nodes/2 {
				t.Errorf("streams ended %d times to drain a third of %d nodes: the balancer sent them back, or cut them off", moved, nodes)
			}
			servers[1].Stop()
			if failed := reads(); failed != nil {
				t.Errorf("requests that only read failed while replicas failed: %v", failed)
			}
			t.Logf("nobody was shown offline for longer than %v", watch(t, 0, absence, all))
			mustFlow(t, all[:10], 1)
			if file.name == "HAProxy" { // nginx cannot detect it
				began = time.Now()
				servers[2].Signal(syscall.SIGSTOP)
				mustHold(t, patience, nodes, servers[0])
				t.Logf("all nodes have a stream %v after a replica froze", time.Since(began).Round(10*time.Millisecond))
				servers[2].Signal(syscall.SIGCONT)
			}
			mustAgree(t, servers[0], servers[2])
		})
	}
}

// mustBeEven waits until servers hold all streams, each about the same number.
func mustBeEven(t *testing.T, nodes int, servers ...*Server) {
	t.Helper()
	eventually(t, patience, func() error {
		var held []float64
		sum, share := 0.0, float64(nodes)/float64(len(servers))
		uneven := false
		for _, s := range servers {
			n, err := s.Metric(t.Context(), "mesh_streams_open")
			if err != nil {
				return err
			}
			held, sum, uneven = append(held, n), sum+n, uneven || n < share*0.8 || n > share*1.2
		}
		if uneven || sum != float64(nodes) {
			return fmt.Errorf("the replicas hold %v of %d streams", held, nodes)
		}
		return nil
	})
}

// ends returns how many streams have ended.
func ends(nodes []*Node) (sum int) {
	for _, n := range nodes {
		sum += len(n.Ends())
	}
	return sum
}

// readThrough reads through a balancer until the function that it returns is called, which returns the first error.
func readThrough(t *testing.T, url string) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var failed error
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(), DisableKeepAlives: true}, Timeout: requestLimit}
	wait.Go(func() {
		for i := 0; ctx.Err() == nil && failed == nil; i++ {
			if _, err := fetch(ctx, client, http.MethodGet, url+"/version", ""); err != nil && ctx.Err() == nil {
				failed = fmt.Errorf("request %d: %w", i, err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	stop = sync.OnceValue(func() error {
		cancel()
		wait.Wait()
		return failed
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// A request that may have changed something must not reach two replicas.
func TestBalancersRepeatOnlyRequestsThatChangeNothing(t *testing.T) {
	t.Parallel()
	for _, file := range balancerFiles {
		t.Run(file.name, func(t *testing.T) {
			t.Parallel()
			var count atomic.Int32
			var backends []string
			for range 3 {
				backends = append(backends, dying(t, &count))
			}
			addr := porttest.Addr(t)
			file.run(t, addr, backends...)
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(), DisableKeepAlives: true}, Timeout: requestLimit}
			attempts := func(method, path string) int {
				count.Store(0)
				if _, err := fetch(t.Context(), client, method, "https://"+addr+path, ""); err == nil {
					t.Errorf("%s %s succeeds", method, path)
				}
				return int(count.Load())
			}
			if got := attempts(http.MethodGet, "/api/v1/node"); got < 2 {
				t.Errorf("a GET was attempted %d times", got)
			}
			for _, method := range []string{http.MethodPost, http.MethodPatch} {
				if got := attempts(method, "/api/v1/user"); got != 1 {
					t.Errorf("a %s was attempted %d times", method, got)
				}
			}
		})
	}
}

// dying serves health checks. It closes the connection of any other request once it has read it, as a process that is killed
// does, and counts them.
func dying(t *testing.T, count *atomic.Int32) (addr string) {
	t.Helper()
	l := listen(t)
	server := &http.Server{ReadHeaderTimeout: requestLimit, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ready" {
			return
		}
		count.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})}
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		wait.Wait()
	})
	return l.Addr().(*net.TCPAddr).String()
}

// Devices on different relays cannot reach each other, so all must use the same one at any time.
func TestBalancerKeepsAllDevicesOnOneRelay(t *testing.T) {
	t.Parallel()
	var backends []string
	var relays []*relayBackend
	for range 3 {
		r := &relayBackend{addr: porttest.Addr(t)}
		r.start(t)
		t.Cleanup(r.stop)
		backends, relays = append(backends, r.addr), append(relays, r)
	}
	addr := porttest.Addr(t)
	balancerFiles[0].run(t, addr, backends...)
	connect := func() (net.Conn, string) {
		t.Helper()
		conn, err := (&tls.Dialer{Config: trusting()}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(requestLimit)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /derp HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: DERP\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return conn, res.Header.Get("Relay")
	}
	eventually(t, patience, func() error { // HAProxy has checked all of them
		if _, at := connect(); at != relays[0].addr {
			return fmt.Errorf("a device is at %s", at)
		}
		return nil
	})
	relays[0].stop()
	var early net.Conn
	eventually(t, patience, func() error {
		conn, at := connect()
		if at != relays[1].addr {
			return fmt.Errorf("a device is at %q while the first relay is down", at)
		}
		early = conn
		return nil
	})
	relays[0].start(t)
	if n, err := early.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a device stays at the second relay: %d bytes, %v", n, err)
	}
	if _, at := connect(); at != relays[0].addr {
		t.Errorf("a device is at %q after the first relay has returned", at)
	}
}

// relayBackend accepts upgrades and keeps the connections open.
type relayBackend struct {
	addr   string
	server *http.Server
	wait   sync.WaitGroup
	held   chan net.Conn
}

func (r *relayBackend) start(t *testing.T) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	r.held = make(chan net.Conn, 1000)
	r.server = &http.Server{ReadHeaderTimeout: requestLimit, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/ready" {
			return
		}
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		r.held <- conn
		_, _ = fmt.Fprintf(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: DERP\r\nRelay: %s\r\n\r\n", r.addr)
		_ = buf.Flush()
	})}
	r.wait.Go(func() { _ = r.server.Serve(l) })
}

func (r *relayBackend) stop() {
	_ = r.server.Close()
	r.wait.Wait()
	for len(r.held) > 0 {
		_ = (<-r.held).Close()
	}
}
