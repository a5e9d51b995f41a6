package main_test

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// slowRequest is a request that is only half sent, so that the server waits for the rest.
type slowRequest struct {
	net.Conn
	rest string
}

// beginUser sends the first half of a request that creates a user.
func beginUser(t *testing.T, p *process, key, name string) *slowRequest {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.api)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	body := fmt.Sprintf(`{"name": %q}`, name)
	if _, err := fmt.Fprintf(conn, "POST /api/v1/user HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
		key, len(body)); err != nil {
		t.Fatal(err)
	}
	// The handler has asked for the body, so it is running.
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("got %q (%v)", line, err)
	}
	return &slowRequest{conn, body}
}

// finish sends the second half and returns the status of the response.
func (r *slowRequest) finish(t *testing.T) int {
	t.Helper()
	if _, err := io.WriteString(r, r.rest); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(r), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func TestStopFinishesWhatWasBegun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s settings) {
		p := serve(t, s)
		key := newKey(t, s)
		request := beginUser(t, p, key, "alice")
		p.signal(t, syscall.SIGTERM)
		public := p.client(key)
		eventually(t, func() error {
			for _, path := range []string{"/health", "/ready"} {
				status, body, err := public.do("GET", path, "")
				if want := `"service":[{"output":"the server is shutting down","status":"fail"}]},"status":"fail"}`; err != nil || status != 503 || !strings.HasSuffix(body, want) {
					return fmt.Errorf("%s while stopping: %d %s (%w)", path, status, body, err)
				}
			}
			return nil
		})
		public.must(t, 200, "POST", "/api/v1/user", `{"name": "bob"}`) // as from a load balancer that has not noticed the shutdown yet
		eventually(t, func() error {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.api)
			if err == nil {
				conn.Close()
				return errors.New("it still listens")
			}
			return nil
		})
		if status := request.finish(t); status != 200 {
			t.Errorf("the request that was under way: status %d", status)
		}
		if status := p.status(t, patience); status != 0 {
			t.Errorf("exit status %d", status)
		}
		if _, err := os.Stat(s["unix_socket"]); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left behind (%v)", err)
		}
		says(t, serve(t, s).client("").must(t, 200, "GET", "/api/v1/user", ""), `"alice"`, `"bob"`)
	})
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	p := serve(t, s)
	beginUser(t, p, newKey(t, s), "alice")
	for _, message := range []string{"fairlead is ready", "shutting down"} {
		eventually(t, func() error {
			if !strings.Contains(p.log.String(), message) {
				return errors.New(p.log.String())
			}
			return nil
		})
		p.signal(t, syscall.SIGTERM)
	}
	if status := p.status(t, 2*time.Second); status == 0 {
		t.Error("exit status 0")
	}
}

func TestKilledServiceLosesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s settings) {
		p := serve(t, s)
		client := p.client(newKey(t, s))
		var wg sync.WaitGroup
		acknowledged := make([][]string, 8)
		for i := range acknowledged {
			wg.Go(func() {
				for {
					name := "u" + strings.ToLower(rand.Text())
					if status, _, err := client.do("POST", "/api/v1/user", fmt.Sprintf(`{"name": %q}`, name)); err != nil || status != 200 {
						return
					}
					acknowledged[i] = append(acknowledged[i], name)
				}
			})
		}
		<-time.After(time.Second)
		p.kill(t)
		wg.Wait()
		if _, err := os.Stat(s["unix_socket"]); err != nil {
			t.Errorf("a killed service cannot have removed its socket: %v", err)
		}
		users, sum := serve(t, s).client("").must(t, 200, "GET", "/api/v1/user", ""), 0
		for _, names := range acknowledged {
			for _, name := range names {
				sum++
				if !strings.Contains(users, `"`+name+`"`) {
					t.Errorf("user %s was acknowledged and is lost", name)
				}
			}
		}
		if sum == 0 {
			t.Error("nothing was acknowledged")
		}
	})
}

func TestSocketIsForOwnerAndGroup(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	serve(t, s)
	info, err := os.Stat(s["unix_socket"])
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != os.ModeSocket|0o770 {
		t.Errorf("mode %v, want a socket with 0770", info.Mode())
	}
	if os.Getuid() != 0 {
		t.Skip("the rest needs root: it becomes another user")
	}
	p := start(t, s, func(cmd *exec.Cmd) { cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody} }, "users", "list")
	if status := p.status(t, patience); status != 1 {
		t.Errorf("another user: exit status %d, want 1", status)
	}
	says(t, p.log.String(), "cannot use the socket "+s["unix_socket"], "permission denied", "run this command as root or as the user that runs the server")
}

func TestSystemdIsTold(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	path := filepath.Join(filepath.Dir(s["unix_socket"]), "notify")
	systemd, err := new(net.ListenConfig).ListenPacket(t.Context(), "unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { systemd.Close() })
	told := func(want string) {
		t.Helper()
		if err := systemd.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		message := make([]byte, 100)
		n, _, err := systemd.ReadFrom(message)
		if err != nil || string(message[:n]) != want {
			t.Fatalf("systemd was told %q (%v), want %q", message[:n], err, want)
		}
	}
	p := start(t, s, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+path) }, "serve")
	told("READY=1")
	mustCommand(t, s, "health") // ready means that the server responds
	p.signal(t, syscall.SIGTERM)
	told("STOPPING=1")
	if status := p.status(t, patience); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
