//go:build !race

package consoletest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

const (
	patience  = time.Minute
	pollEvery = 50 * time.Millisecond
	atOnce    = 40 // concurrent requests to the server
)

// stage is a server with its mesh.
type stage struct {
	*meshtest.Server
	t        testing.TB
	crowd    *meshtest.Crowd
	devices  []*device
	database database
	admin    string // API key
}

// newStage starts a server, on PostgreSQL if pg is not nil, and creates a company with count
// devices. Zero is for a server that nobody has used yet. host is the host name in
// its URL, if it is not empty, and set is further configuration.
func newStage(t testing.TB, fairlead string, pg *pgtest.Server, count int, host string, set map[string]string) *stage {
	t.Helper()
	dir := t.TempDir()
	s := &stage{t: t, devices: devices(count)}
	config := meshtest.Config{Binary: fairlead, Relay: true, Host: host, Set: map[string]string{
		"log.level": "info", "derp.paths": filepath.Join(dir, "relays.json"), "derp.server.region_name": "Headquarters", "dns.base_domain": "mesh.example.net",
		"webhooks.allow_local": "true", // receivers of the tests are on this machine
	}}
	maps.Copy(config.Set, set)
	if pg != nil {
		config.Postgres, config.Database = pg, pg.Database(t)
		s.database = database{"pgx", pg.URL(config.Database)}
	} else {
		config.Set["database.sqlite.path"] = filepath.Join(dir, "mesh.sqlite")
		s.database = database{"sqlite", config.Set["database.sqlite.path"]}
	}
	regions := map[int]*tailcfg.DERPRegion{}
	for _, r := range relays() {
		regions[r.RegionID] = r
	}
	text, err := json.Marshal(tailcfg.DERPMap{Regions: regions})
	if err == nil {
		err = os.WriteFile(config.Set["derp.paths"], text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Server = meshtest.Start(t, config)
	s.crowd = meshtest.NewCrowd(t, s.URL)
	s.crowd.Blind = count > 20 // decoding maps is cheap for a few nodes
	s.admin = s.CLI("apikeys", "create", "--expiration", "365d")
	if count > 0 {
		s.populate()
	}
	return s
}

// call sends a request with an administrator's API key and returns the response.
func (s *stage) call(method, path string, body any) json.RawMessage {
	s.t.Helper()
	answer, err := s.try(method, path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

func (s *stage) try(method, path string, body any) (json.RawMessage, error) {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, &text)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.admin)
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= http.StatusBadRequest {
		err = errors.New(res.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", method, path, err, answer)
	}
	return answer, nil
}

type object map[string]any

// populate creates the company: its people, keys and devices in a plausible order, then their
// history, and then connects everyone.
func (s *stage) populate() {
	s.t.Helper()
	texts, reasons := policies()
	for i, name := range people() {
		s.call("POST", "/api/v1/user", object{"name": name, "displayName": strings.ToUpper(name[:1]) + name[1:], "email": name + "@example.com"})
		if i == 2 {
			s.savePolicy(texts[0], reasons[0])
		}
	}
	keys := &joinKeys{stage: s, known: map[string]string{}}
	for i := range texts {
		from, to := i*len(s.devices)/len(texts), (i+1)*len(s.devices)/len(texts)
		s.join(s.devices[from:to], keys)
		s.decide(s.devices[from:to])
		s.savePolicy(texts[i], reasons[i])
	}
	s.makeKeys()
	s.Stop()
	s.database.givePast(s.t, s.devices)
	s.Resume()
	s.connect()
}

func (s *stage) savePolicy(text, reason string) {
	s.t.Helper()
	s.call("PUT", "/api/v1/policy", object{"policy": text, "reason": reason})
}

// joinKeys holds one pre-auth key for each kind of device.
type joinKeys struct {
	stage *stage
	known map[string]string
}

func (k *joinKeys) of(d *device) string {
	name := fmt.Sprint(d.user, d.tags, d.ephemeral)
	if k.known[name] == "" {
		request := object{"user": d.user, "aclTags": d.tags, "reusable": true, "ephemeral": d.ephemeral, "expiration": time.Now().Add(20 * day)}
		var answer struct{ PreAuthKey struct{ Key string } }
		if err := json.Unmarshal(k.stage.call("POST", "/api/v1/preauthkey", request), &answer); err != nil {
			k.stage.t.Fatal(err)
		}
		k.known[name] = answer.PreAuthKey.Key
	}
	return k.known[name]
}

// join registers devices and records their IDs. Each device reports once, so that the server knows the
// measurements even of those that stay away.
func (s *stage) join(list []*device, keys *joinKeys) {
	s.t.Helper()
	for _, d := range list {
		keys.of(d)
	}
	s.each(list, func(d *device) error {
		d.node = s.crowd.Node(d.name)
		d.node.Host = func(h *tailcfg.Hostinfo) { *h = d.host }
		if err := d.node.Register(s.t.Context(), keys.known[fmt.Sprint(d.user, d.tags, d.ephemeral)]); err != nil {
			return err
		}
		err := d.node.Report(s.t.Context(), d.endpoints...)
		d.node.Disconnect()
		return err
	})
	var answer struct{ Nodes []struct{ ID, Name string } }
	if err := json.Unmarshal(s.call("GET", "/api/v1/node", nil), &answer); err != nil {
		s.t.Fatal(err)
	}
	ids := map[string]string{}
	for _, n := range answer.Nodes {
		ids[n.Name] = n.ID
	}
	for _, d := range list {
		if d.id = ids[d.name]; d.id == "" {
			s.t.Fatalf("the list of nodes lacks %s", d.name)
		}
	}
}

// each calls f for each device, several at a time.
func (s *stage) each(list []*device, f func(*device) error) {
	s.t.Helper()
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, d := range list {
		slots <- struct{}{}
		wait.Go(func() {
			if err := f(d); err != nil {
				s.t.Errorf("%s: %v", d.name, err)
			}
			<-slots
		})
	}
	wait.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// decide makes the decisions of an administrator about new devices.
func (s *stage) decide(list []*device) {
	s.t.Helper()
	renamed := 0
	for _, d := range list {
		if d.approved {
			s.call("POST", "/api/v1/node/"+d.id+"/approve_routes", object{"routes": d.routes})
		}
		if d.expired && renamed < 5 {
			s.call("POST", "/api/v1/node/"+d.id+"/expire", object{})
		}
		if d.user != "" && renamed < 2 {
			renamed++
			s.call("POST", "/api/v1/node/"+d.id+"/rename/"+d.name+"-old", nil)
			s.call("POST", "/api/v1/node/"+d.id+"/rename/"+d.name, nil)
		}
	}
}

// makeKeys creates API keys, and pre-auth keys that no node uses.
func (s *stage) makeKeys() {
	s.t.Helper()
	for _, request := range []object{
		{"user": "ana", "description": "New laptop"},
		{"user": "kira", "expiration": time.Now().Add(day)},
		{"aclTags": []string{"tag:web", "tag:prod"}, "description": "Web servers in Frankfurt", "expiration": time.Now().Add(7 * day)},
		{"aclTags": []string{"tag:ci"}, "description": "CI runners", "reusable": true, "ephemeral": true, "expiration": time.Now().Add(300 * day)},
		{"user": "omar", "reusable": true, "expiration": time.Now().Add(2 * time.Second)},
	} {
		s.call("POST", "/api/v1/preauthkey", request)
	}
	s.CLI("apikeys", "create", "--role", "operator", "--scope", "nodes,routes", "--expiration", "6d", "--comment", "Router provisioning")
	s.CLI("apikeys", "create", "--role", "read", "--scope", "history:read", "--expiration", "90d", "--comment", "Audit export")
	s.CLI("apikeys", "create", "--expiration", "30d", "--comment", "Terraform")
}

// connect connects all devices that are not away.
func (s *stage) connect() {
	for _, d := range s.devices {
		if !d.away {
			d.node.Connect()
		}
	}
}

// online returns how many devices should be online, counting those that flap.
func (s *stage) online() (count int) {
	for _, d := range s.devices {
		if !d.away {
			count++
		}
	}
	return count
}

// live makes some devices connect and disconnect, and two others wait for approval, until the context ends.
func (s *stage) live(ctx context.Context) {
	var wait sync.WaitGroup
	defer wait.Wait()
	for _, name := range []string{"rosa-new-laptop", "unknown-phone"} {
		wait.Go(func() {
			n := s.crowd.Node(name)
			if err := n.Knock(ctx); ctx.Err() == nil && err == nil {
				n.Connect()
			}
		})
	}
	var flapping []*device
	for _, d := range s.devices {
		if d.flaps {
			flapping = append(flapping, d)
		}
	}
	for i := 0; len(flapping) > 0; i++ {
		d := flapping[i/2%len(flapping)]
		if i%2 == 0 {
			d.node.Disconnect()
		} else {
			d.node.Connect()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(15 * time.Second):
		}
	}
	<-ctx.Done()
}

// console is a running console.
type console struct {
	URL string // with a trailing slash
	log waittest.Transcript
}

// startConsole starts a console for a server, on a loopback port.
func startConsole(t testing.TB, binary, coordinator, addr string) *console {
	t.Helper()
	c := &console{URL: "http://" + addr + "/admin/"}
	cmd := exec.CommandContext(context.Background(), binary, "--config", "/dev/null")
	cmd.Env = []string{
		"FAIRLEAD_CONSOLE_COORDINATOR_URL=" + coordinator, "FAIRLEAD_CONSOLE_LISTEN_ADDR=" + addr,
		"FAIRLEAD_CONSOLE_COOKIE_SECRET=k3J9x0QmZt7Lw2Rv8NcYb5Ha1Ds6Fg4e",
	}
	cmd.Stdout, cmd.Stderr = &c.log, &c.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have exited on its own
		if err := cmd.Wait(); err != nil {
			t.Errorf("the console ended with %v:\n%s", err, c.log.String())
		}
	})
	waittest.Eventually(t, patience, pollEvery, func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/health", nil)
		if err != nil {
			return err
		}
		res, err := new(http.Client).Do(req)
		if err != nil {
			return fmt.Errorf("%w: %s", err, c.log.String())
		}
		return res.Body.Close()
	})
	return c
}

// build builds the two binaries into dir.
func build(t testing.TB, dir string) (fairlead, console string) {
	t.Helper()
	fairlead, err := meshtest.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	console = filepath.Join(dir, "fairlead-console")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", console, "github.com/fairlead-mesh/fairlead/cmd/fairlead-console")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the console: %v\n%s", err, out)
	}
	return fairlead, console
}
