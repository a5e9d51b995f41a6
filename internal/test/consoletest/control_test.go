//go:build !race

package consoletest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// rig is the HTTP server on loopback through which browser tests create stages and control
// everything that happens on them outside the browser.
type rig struct {
	URL string

	t                 testing.TB
	fairlead, console string // binaries
	pg                *pgtest.Server
	greeter           string // port through which real clients are reached
	seclusion         *seclusion

	mu     sync.Mutex
	scenes map[string]*scene // guarded by mu
}

// scene is a stage with a console behind nginx, and real clients.
type scene struct {
	*stage
	scope   *scope
	console *console
	nginx   *meshtest.Nginx
	front   string // URL of nginx's console port
	idp     *idp   // nil without an identity provider
	faults  *faultProxy

	mu      sync.Mutex
	clients map[string]*clienttest.Daemon // guarded by mu
}

const greeting = "welcome"

func startRig(t testing.TB, fairlead, console string, pg *pgtest.Server) *rig {
	t.Helper()
	addr := porttest.Addr(t)
	r := &rig{URL: "http://" + addr, t: t, fairlead: fairlead, console: console, pg: pg, seclusion: newSeclusion(t), scenes: map[string]*scene{}}
	r.greet()
	t.Cleanup(func() {
		for _, s := range r.scenes {
			s.scope.end()
		}
	})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /stage", r.open)
	mux.HandleFunc("DELETE /stage/{stage}", r.close)
	for path, f := range map[string]func(s *scene, ctx context.Context, body io.Reader) (any, error){
		"cli": (*scene).runCLI, "faults": (*scene).setFaults, "cut": (*scene).cutStreams, "server": (*scene).switchServer,
		"device": (*scene).switchDevice, "knock": (*scene).knock, "session": (*scene).session, "join": (*scene).joinClient, "client": (*scene).runClient, "reach": r.reach, "logs": (*scene).logs,
		"provider": (*scene).switchProvider, "login": (*scene).login,
	} {
		mux.HandleFunc("POST /stage/{stage}/"+path, r.on(f))
	}
	serve(t, addr, mux)
	return r
}

// greet serves a greeting on a port of this machine. A client without a network device forwards
// accepted connections to that port.
func (r *rig) greet() {
	r.t.Helper()
	l, err := new(net.ListenConfig).Listen(r.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.greeter = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, greeting) // the other side notices if it is missing
			conn.Close()
		}
	})
	r.t.Cleanup(func() {
		l.Close()
		wait.Wait()
	})
}

// answer writes the response to a request as JSON.
func answer(w http.ResponseWriter, value any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the other side notices if it is cut off
}

// open creates a stage.
func (r *rig) open(w http.ResponseWriter, req *http.Request) {
	var wish struct {
		Nodes    int               `json:"nodes"`
		TLS      bool              `json:"tls"`
		Provider bool              `json:"provider"` // an identity provider
		Host     string            `json:"host"`     // host name in the server's URL
		Set      map[string]string `json:"set"`      // further configuration of the server
	}
	if err := json.NewDecoder(req.Body).Decode(&wish); err != nil {
		answer(w, nil, err)
		return
	}
	part := &scope{TB: r.t}
	s := &scene{scope: part, clients: map[string]*clienttest.Daemon{}}
	err := part.try(func() error {
		if wish.Provider {
			s.idp = newIDP(part)
		}
		addr := porttest.Addr(part)
		set := map[string]string{}
		maps.Copy(set, s.idp.settings(addr))
		maps.Copy(set, wish.Set)
		if wish.Host != "" {
			set["oidc.console_urls"] = "http://" + addr + "/admin/"
		}
		s.stage = newStage(part, r.fairlead, r.pg, wish.Nodes, wish.Host, set)
		if wish.Host != "" {
			r.seclusion.bring(part, "http://"+s.Addr)
		}
		s.idp.start(part, r, s.stage)
		s.faults = startFaultProxy(part, s.URL)
		s.console = startConsole(part, r.console, "http://"+s.faults.addr, addr)
		s.nginx = meshtest.StartNginx(part, meshtest.NginxConfig{
			Deploy: filepath.Join("..", "..", "..", "deploy", "nginx"), Server: s.Addr, Console: addr, TLS: wish.TLS,
		})
		s.front = "http://" + s.nginx.Console
		if wish.TLS {
			s.front = "https://" + s.nginx.Console
		}
		r.seclusion.bring(part, s.front)
		r.seclusion.bring(part, s.console.URL)
		return nil
	})
	if err != nil {
		part.end()
		answer(w, nil, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := strconv.Itoa(len(r.scenes) + 1)
	r.scenes[id] = s
	online := 0
	for _, d := range s.devices {
		if !d.away {
			online++
		}
	}
	answer(w, object{
		"id": id, "console": s.front, "direct": s.console.URL, "server": s.URL, "admin": s.admin, "port": r.greeter, "online": online, "issuer": s.idp.issuer(),
	}, nil)
}

// close ends a stage.
func (r *rig) close(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	s := r.scenes[req.PathValue("stage")]
	r.mu.Unlock()
	if s != nil {
		for line := range strings.Lines(s.console.log.String() + s.nginx.Log()) {
			if strings.Contains(line, "level=WARN") || strings.Contains(line, "[error]") {
				r.t.Logf("stage %s: %s", req.PathValue("stage"), line) // shown when a test fails
			}
		}
		s.scope.end()
	}
	answer(w, object{}, nil)
}

// on returns a handler that runs f on the stage of the request.
func (r *rig) on(f func(*scene, context.Context, io.Reader) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		s := r.scenes[req.PathValue("stage")]
		r.mu.Unlock()
		var value any
		err := errors.New("there is no such stage")
		if s != nil {
			err = s.scope.try(func() (err error) {
				value, err = f(s, req.Context(), req.Body)
				return err
			})
		}
		answer(w, value, err)
	}
}

func (s *scene) runCLI(ctx context.Context, body io.Reader) (any, error) {
	var args []string
	if err := json.NewDecoder(body).Decode(&args); err != nil {
		return nil, err
	}
	return s.TryCLI(ctx, args...)
}

func (s *scene) setFaults(_ context.Context, body io.Reader) (any, error) {
	var faults []*fault
	if err := json.NewDecoder(body).Decode(&faults); err != nil {
		return nil, err
	}
	s.faults.set(faults)
	return object{}, nil
}

func (s *scene) cutStreams(context.Context, io.Reader) (any, error) {
	s.faults.cut()
	return object{}, nil
}

// switchServer stops or restarts the server.
func (s *scene) switchServer(_ context.Context, body io.Reader) (any, error) {
	var on bool
	if err := json.NewDecoder(body).Decode(&on); err != nil {
		return nil, err
	}
	if on {
		s.Resume()
	} else {
		s.Stop()
	}
	return object{}, nil
}

// switchDevice connects or disconnects a virtual device.
func (s *scene) switchDevice(_ context.Context, body io.Reader) (any, error) {
	var wish struct {
		Name   string `json:"name"`
		Online bool   `json:"online"`
	}
	if err := json.NewDecoder(body).Decode(&wish); err != nil {
		return nil, err
	}
	d, err := s.virtual(wish.Name)
	if err != nil {
		return nil, err
	}
	if wish.Online {
		d.node.Connect()
	} else {
		d.node.Disconnect()
	}
	return object{}, nil
}

func (s *scene) virtual(name string) (*device, error) {
	for _, d := range s.devices {
		if d.name == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("there is no device %q", name)
}

// session opens an SSH session from one virtual device to another and waits until it is approved or rejected.
func (s *scene) session(ctx context.Context, body io.Reader) (any, error) {
	var wish struct{ From, To, User string }
	if err := json.NewDecoder(body).Decode(&wish); err != nil {
		return nil, err
	}
	from, err := s.virtual(wish.From)
	if err != nil {
		return nil, err
	}
	to, err := s.virtual(wish.To)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	begins, err := to.node.Session(ctx, from.node.ID(), wish.User)
	return object{"begins": begins}, err
}

// knock makes a virtual device ask to join, until it is approved or the stage ends.
func (s *scene) knock(_ context.Context, body io.Reader) (any, error) {
	var name string
	if err := json.NewDecoder(body).Decode(&name); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	s.scope.Cleanup(func() {
		stop()
		wait.Wait()
	})
	wait.Go(func() {
		if n := s.crowd.Node(name); n.Knock(ctx) == nil {
			n.Connect()
		}
	})
	return object{}, nil
}

// joinClient starts a real client, if it does not run yet, and joins it with a key.
func (s *scene) joinClient(ctx context.Context, body io.Reader) (any, error) {
	var wish struct {
		Name string   `json:"name"`
		Key  string   `json:"key"`
		Args []string `json:"args"`
	}
	if err := json.NewDecoder(body).Decode(&wish); err != nil {
		return nil, err
	}
	s.mu.Lock()
	d := s.clients[wish.Name]
	if d == nil {
		d = clienttest.Start(s.scope, clienttest.Options{})
		s.clients[wish.Name] = d
	}
	s.mu.Unlock()
	if err := d.Up(ctx, s.URL, wish.Key, append([]string{"--hostname=" + wish.Name}, wish.Args...)...); err != nil {
		return nil, err
	}
	return d.IPs(ctx)
}

func (s *scene) client(name string) (*clienttest.Daemon, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.clients[name]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("there is no client %q", name)
}

// runClient runs a command of the Tailscale CLI on a client.
func (s *scene) runClient(ctx context.Context, body io.Reader) (any, error) {
	var wish struct {
		Name string   `json:"name"`
		Args []string `json:"args"`
	}
	if err := json.NewDecoder(body).Decode(&wish); err != nil {
		return nil, err
	}
	d, err := s.client(wish.Name)
	if err != nil {
		return nil, err
	}
	stdout, stderr, code := d.CLI(ctx, wish.Args...)
	return object{"stdout": stdout, "stderr": stderr, "code": code}, nil
}

// reach reports whether one client reaches another over a new connection.
func (r *rig) reach(s *scene, ctx context.Context, body io.Reader) (any, error) {
	var wish struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	if err := json.NewDecoder(body).Decode(&wish); err != nil {
		return nil, err
	}
	from, err := s.client(wish.From)
	if err != nil {
		return nil, err
	}
	to, err := s.client(wish.To)
	if err != nil {
		return nil, err
	}
	ips, err := to.IPs(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	conn, err := from.Dial(ctx, net.JoinHostPort(ips[0].String(), r.greeter))
	if err != nil {
		return object{"reached": false, "why": err.Error()}, nil
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(3 * time.Second)); err != nil {
		return nil, err
	}
	word, err := io.ReadAll(conn)
	return object{"reached": string(word) == greeting, "why": fmt.Sprint(err)}, nil
}

// logs returns the logs of all processes.
func (s *scene) logs(context.Context, io.Reader) (any, error) {
	return object{"server": s.Log(), "console": s.console.log.String(), "nginx": s.nginx.Log()}, nil
}
