package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// sshPolicy lets alice open shells on her own nodes: as guest without approval, as
// deploy with an approval for each session, and as any other non-root user with an
// approval that is valid for an hour.
const sshPolicy = `{"ssh": [
	{"action": "accept", "src": ["alice@"], "dst": ["alice@"], "users": ["guest"]},
	{"action": "check", "src": ["alice@"], "dst": ["alice@"], "users": ["deploy"], "checkPeriod": "always"},
	{"action": "check", "src": ["alice@"], "dst": ["alice@"], "users": ["autogroup:nonroot"], "checkPeriod": "1h"},
]}`

// target is a node that SSH sessions of another node connect to.
type target struct {
	*client
	src, dst mesh.NodeID
}

// newTarget lets two nodes of alice join under sshPolicy.
func newTarget(s *service) target {
	s.t.Helper()
	s.user("alice")
	s.commit(mesh.PolicyPut{Policy: &mesh.Policy{Version: 1, Text: sshPolicy}})
	k := withKey(s.key(control.NewPreAuthKey{User: "alice", Reusable: true}))
	from, to := s.client(), s.client()
	from.joins(k)
	to.joins(k)
	src, _ := s.ledger.World().Nodes.ByKey(from.node.Public())
	dst, _ := s.ledger.World().Nodes.ByKey(to.node.Public())
	return target{to, src.ID, dst.ID}
}

// delegate expands the URL that the server gave a client to ask, as clients do.
func (c target) delegate(action, user string) string {
	_, path, _ := strings.Cut(strings.TrimPrefix(action, "https://"), "/")
	return "/" + strings.NewReplacer(
		"$SRC_NODE_IP", "100.64.0.1", "$SRC_NODE_ID", fmt.Sprint(int64(c.src)), "$DST_NODE_IP", "100.64.0.2", "$DST_NODE_ID", fmt.Sprint(int64(c.dst)),
		"$SSH_USER", url.QueryEscape(user), "$LOCAL_USER", url.QueryEscape(user),
	).Replace(path)
}

// action asks the server for the SSH action, as a client does.
func (c *client) action(ctx context.Context, path string) (a tailcfg.SSHAction, status int, err error) {
	res, err := c.ask(ctx, "GET", path, nil)
	if err != nil {
		return a, 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return a, res.StatusCode, err
	}
	return a, res.StatusCode, json.Unmarshal(text, &a)
}

// begins makes the first request of a session.
func (c target) begins(user string) tailcfg.SSHAction {
	c.s.t.Helper()
	a, status, err := c.action(c.s.t.Context(), c.delegate(netmap.Ask("").HoldAndDelegate, user))
	if err != nil || status != http.StatusOK {
		c.s.t.Fatalf("%d %v", status, err)
	}
	return a
}

// holds starts a session that must wait for approval. The decision arrives on answer.
func (c target) holds(user string) (code string, answer <-chan tailcfg.SSHAction) {
	c.s.t.Helper()
	first := c.begins(user)
	code = control.SSHSession{Src: c.src, Dst: c.dst, User: user}.Code()
	if !strings.HasPrefix(first.HoldAndDelegate, strings.Replace(c.s.url, "http:", "https:", 1)+"/machine/") || first.Accept || first.Reject || !strings.Contains(first.Message, "fairlead ssh approve "+code) {
		c.s.t.Fatalf("%+v", first)
	}
	return code, c.follow(first, user)
}

func (c target) follow(first tailcfg.SSHAction, user string) <-chan tailcfg.SSHAction {
	held := make(chan tailcfg.SSHAction, 1)
	ctx, path := c.s.t.Context(), c.delegate(first.HoldAndDelegate, user)
	go func() {
		defer close(held)
		if a, _, err := c.action(ctx, path); err == nil {
			held <- a
		}
	}()
	return held
}

func TestCheckedSessionBeginsWhenItIsApproved(t *testing.T) {
	s, _ := open(t, options{wire: func(c *wire.Config) { c.RequestTimeout = 50 * time.Millisecond }})
	c := newTarget(s)
	code, held := c.holds("ana")
	select {
	case a := <-held:
		t.Fatalf("nobody has answered: %+v", a)
	case <-time.After(300 * time.Millisecond): // longer than the timeout of other requests
	}
	if list := s.SSH.Pending(); len(list) != 1 || list[0].Code != code {
		t.Errorf("pending: %+v", list)
	}
	if _, err := s.SSH.Approve(t.Context(), admin, code); err != nil {
		t.Fatal(err)
	}
	if a := <-held; !a.Accept || !a.AllowAgentForwarding || !a.AllowLocalPortForwarding || !a.AllowRemotePortForwarding || a.SessionDuration != 0 {
		t.Errorf("%+v", a)
	}
	if a := c.begins("ana"); !a.Accept {
		t.Errorf("the next session: %+v", a)
	}
	if lines := s.log.lines(t, "SSH session waiting for approval"); len(lines) != 1 || lines[0]["code"] != code || lines[0]["user"] != "alice" || lines[0]["ssh_user"] != "ana" {
		t.Errorf("log: %v", lines)
	}
	if lines := s.log.lines(t, "SSH session approved"); len(lines) != 1 || lines[0]["ssh_user"] != "ana" || lines[0]["node"] == lines[0]["target"] {
		t.Errorf("log: %v", lines)
	}
}

func TestCheckedSessionIsApprovedOnce(t *testing.T) {
	s, _ := open(t, options{})
	c := newTarget(s)
	code, held := c.holds("deploy")
	if _, err := s.SSH.Approve(t.Context(), admin, code); err != nil {
		t.Fatal(err)
	}
	if a := <-held; !a.Accept {
		t.Errorf("%+v", a)
	}
	if a := c.begins("deploy"); a.Accept || a.HoldAndDelegate == "" {
		t.Errorf("the next session: %+v", a)
	}
}

func TestRefusedSessionIsLogged(t *testing.T) {
	s, _ := open(t, options{})
	c := newTarget(s)
	if a := c.begins("guest"); !a.Accept {
		t.Errorf("a rule that accepts: %+v", a)
	}
	if a := c.begins("root"); !a.Reject || a.Message != "fairlead: no policy rule allows this session\r\n" {
		t.Errorf("no rule: %+v", a)
	}
	code, held := c.holds("ana")
	if _, err := s.SSH.Reject(t.Context(), admin, code, "no"); err != nil {
		t.Fatal(err)
	}
	if a := <-held; !a.Reject || a.Message != "fairlead: an administrator rejected this session\r\n" {
		t.Errorf("refused: %+v", a)
	}
	lines := s.log.lines(t, "ACL denied")
	if len(lines) != 2 {
		t.Fatalf("log: %v", lines)
	}
	for i, want := range []string{"no policy rule allows this session", "ssh, line 4: an administrator rejected this session"} {
		if l := lines[i]; l["rule"] != want || l["user"] != "alice" || l["node"] == "" || l["target"] == "" {
			t.Errorf("log: %v", l)
		}
	}
}

func TestOtherMachinesMayNotAskAboutASession(t *testing.T) {
	s, _ := open(t, options{})
	c := newTarget(s)
	path := c.delegate(netmap.Ask("").HoldAndDelegate, "ana")
	for _, other := range []struct {
		path   string
		status int
	}{
		{path, http.StatusForbidden},
		{strings.Replace(path, "/to/", "/to/9", 1), http.StatusNotFound},
	} {
		if _, status, err := s.client().action(t.Context(), other.path); status != other.status || err != nil {
			t.Errorf("%s: %d %v", other.path, status, err)
		}
	}
	for _, wrong := range []string{
		"/machine/ssh/action/x/to/1", "/machine/ssh/action/1/to/", "/machine/ssh/action/-1/to/2", "/machine/ssh/action/1/to/99999999999999999999",
		path + "&since=x", path + "&since=-1", path + "&%zz",
	} {
		if _, status, err := c.action(t.Context(), wrong); status != http.StatusBadRequest && status != http.StatusNotFound || err != nil {
			t.Errorf("%s: %d %v", wrong, status, err)
		}
	}
	if n := len(s.SSH.Waiting()); n != 0 {
		t.Errorf("%d sessions wait", n)
	}
}

func TestSessionThatWaitsOutlivesTheServer(t *testing.T) {
	path, noise := filepath.Join(t.TempDir(), "db"), key.NewMachine()
	s, stop := open(t, options{path: path, noise: noise})
	c := newTarget(s)
	first := c.begins("ana")
	held := c.follow(first, "ana")
	until(t, "it waits", func() bool { return len(s.SSH.Waiting()) == 1 })
	stop()
	if a, ok := <-held; ok {
		t.Fatalf("answered: %+v", a)
	}
	s, _ = open(t, options{path: path, noise: noise})
	c.s = s
	c.connect()
	held = c.follow(first, "ana") // clients repeat the same request
	until(t, "it waits again", func() bool { return len(s.SSH.Waiting()) == 1 })
	if _, err := s.SSH.Approve(t.Context(), admin, s.SSH.Waiting()[0].Code); err != nil {
		t.Fatal(err)
	}
	if a := <-held; !a.Accept {
		t.Errorf("%+v", a)
	}
}

func TestSessionWhoseConnectionEndsLeavesNothingBehind(t *testing.T) {
	s, stop := open(t, options{})
	c := newTarget(s)
	_, held := c.holds("ana")
	c.http.Close()
	if a, ok := <-held; ok {
		t.Errorf("answered: %+v", a)
	}
	stop() // waits for all handlers
}
