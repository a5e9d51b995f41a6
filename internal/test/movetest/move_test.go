//go:build !race

package movetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/ipn/ipnstate"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

var fairlead string // the binary under test

func TestMain(m *testing.M) {
	os.Exit(mainStatus(m))
}

func mainStatus(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fairlead-bin-")
	if err == nil {
		defer os.RemoveAll(dir)
		fairlead, err = meshtest.Build(context.Background(), dir)
	}
	if err == nil {
		err = clienttest.SealProcess()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// seen is what a client shows of the network: itself and its peers.
type seen struct {
	State string
	Nodes []string // stable ID, name and addresses, sorted
}

func look(ctx context.Context, d *clienttest.Daemon) (seen, error) {
	status, err := d.Status(ctx)
	if err != nil {
		return seen{}, err
	}
	s := seen{State: status.BackendState}
	add := func(n *ipnstate.PeerStatus) {
		s.Nodes = append(s.Nodes, fmt.Sprintf("%s %s %v", n.ID, n.DNSName, n.TailscaleIPs))
	}
	add(status.Self)
	for _, p := range status.Peer {
		add(p)
	}
	slices.Sort(s.Nodes)
	return s, nil
}

// settled waits until a client runs and sees this many nodes, including itself.
func settled(t *testing.T, d *clienttest.Daemon, nodes int) (s seen) {
	t.Helper()
	eventually(t, func() (err error) {
		if s, err = look(t.Context(), d); err == nil && (s.State != "Running" || len(s.Nodes) != nodes) {
			err = fmt.Errorf("%+v, want %d nodes", s, nodes)
		}
		return err
	})
	return s
}

type node struct {
	ID          string   `json:"id"`
	GivenName   string   `json:"givenName"`
	IPAddresses []string `json:"ipAddresses"`
	NodeKey     string   `json:"nodeKey"`
	MachineKey  string   `json:"machineKey"`
	Online      bool     `json:"online"`
}

// nodes lists the nodes of a server, with an API key of Headscale.
func nodes(t *testing.T, url, apiKey string) (list []node, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/node", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s %w", res.Status, text, err)
	}
	var body struct{ Nodes []node }
	err = json.Unmarshal(text, &body)
	slices.SortFunc(body.Nodes, func(a, b node) int { return strings.Compare(a.ID, b.ID) })
	return body.Nodes, err
}

// online waits until all nodes are online at a server.
func online(t *testing.T, url, apiKey string, want int) (list []node) {
	t.Helper()
	eventually(t, func() (err error) {
		list, err = nodes(t, url, apiKey)
		switch {
		case err != nil:
		case len(list) != want:
			err = fmt.Errorf("%d nodes, want %d", len(list), want)
		case slices.ContainsFunc(list, func(n node) bool { return !n.Online }):
			err = fmt.Errorf("not all nodes are online: %+v", list)
		}
		return err
	})
	return list
}

func ping(t *testing.T, from *clienttest.Daemon, to string) {
	t.Helper()
	eventually(t, func() error {
		out, text, code := from.CLI(t.Context(), "ping", "--c=1", "--timeout=10s", "--until-direct=false", to)
		if code != 0 {
			return errors.New(out + text)
		}
		return nil
	})
}

// Clients that joined Headscale continue with Fairlead without a new sign-in, and can go back.
func TestClientsMoveAndReturnWithoutSigningIn(t *testing.T) {
	headscale := headscaleBinary(t)
	oldDir, newDir := t.TempDir(), t.TempDir()
	port := freePort(t)
	ports := [3]int{freePort(t), freePort(t), freePort(t)}
	url, addr := fmt.Sprintf("http://127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", port)
	oldConfig := write(t, filepath.Join(oldDir, "config.yaml"), headscaleConfig(oldDir, port, ports))
	newConfig := write(t, filepath.Join(newDir, "config.yaml"), fairleadConfig(newDir, port, ports))
	from := &server{t: t, addr: addr, args: []string{headscale, "serve", "-c", oldConfig}}
	from.start()
	hs := func(args ...string) string {
		return output(t, headscale, append([]string{"-c", oldConfig}, args...)...)
	}
	eventually(t, func() error { _, err := os.Stat(filepath.Join(oldDir, "headscale.sock")); return err })
	hs("users", "create", "ann")
	reusable, tagged := hs("preauthkeys", "create", "-u", "1", "--reusable", "-e", "24h"), hs("preauthkeys", "create", "--tags", "tag:web", "-e", "24h")
	apiKey := hs("apikeys", "create")

	laptop, web := clienttest.Start(t, clienttest.Options{}), clienttest.Start(t, clienttest.Options{})
	for name, c := range map[string]struct {
		d   *clienttest.Daemon
		key string
	}{"laptop": {laptop, reusable}, "web": {web, tagged}} {
		if err := c.d.Up(t.Context(), url, c.key, "--hostname="+name); err != nil {
			t.Fatal(err)
		}
	}
	before := settled(t, laptop, 2)
	listed := online(t, url, apiKey, 2)

	apply := func() string {
		return output(t, fairlead, "import", "headscale", "--config", newConfig, "--from", oldConfig, "--apply")
	}
	if got := apply(); !strings.Contains(got, "1 user, 2 nodes, 2 pre-auth keys, 1 API key") {
		t.Errorf("the first import:\n%s", got)
	}
	from.stop()
	apply()
	to := &server{t: t, addr: addr, args: []string{fairlead, "serve", "--config", newConfig}}
	to.start()

	if diff := cmp.Diff(listed, online(t, url, apiKey, 2)); diff != "" {
		t.Errorf("nodes with the old API key (-Headscale +Fairlead):\n%s", diff)
	}
	if diff := cmp.Diff(before, settled(t, laptop, 2)); diff != "" {
		t.Errorf("what the laptop sees (-Headscale +Fairlead):\n%s", diff)
	}
	ping(t, laptop, "web")
	ping(t, web, "laptop")

	phone := clienttest.Start(t, clienttest.Options{})
	if err := phone.Up(t.Context(), url, reusable, "--hostname=phone"); err != nil {
		t.Fatalf("the old pre-auth key: %v", err)
	}
	settled(t, phone, 3)
	if err := phone.Stop(); err != nil {
		t.Error(err)
	}

	to.stop()
	from.start()
	if diff := cmp.Diff(listed, online(t, url, apiKey, 2)); diff != "" {
		t.Errorf("nodes after the way back (-before +after):\n%s", diff)
	}
	eventually(t, func() error {
		got, err := look(t.Context(), laptop)
		if diff := cmp.Diff(before, got); err == nil && diff != "" {
			err = fmt.Errorf("what the laptop sees (-before +after):\n%s", diff)
		}
		return err
	})
	ping(t, laptop, "web")
}
