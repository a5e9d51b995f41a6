//go:build !race

package deploytest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// TestDemo starts the demo and does what it suggests. It uses the tests' own client, because tests have no access to a
// registry.
func TestDemo(t *testing.T) {
	t.Parallel()
	console := porttest.Port(t)
	s := NewStack(t, map[string]string{"COMPOSE_FILE": "compose.yaml", "CONSOLE_PORT": console})
	client := &http.Client{Timeout: 5 * time.Second}
	start := func() {
		t.Helper()
		s.Up()
		// The console starts after the guide is printed.
		eventually(t, time.Minute, func() error {
			a, err := fetch(t, client, http.MethodGet, "http://127.0.0.1:"+console+"/admin/")
			if err == nil && a.Status != http.StatusOK {
				err = fmt.Errorf("the console answers %d", a.Status)
			}
			return err
		})
	}
	start()
	wantText(t, s.Logs("setup"), "http://localhost:"+console+"/admin/", "API key   flk_", "laptop tailscale ping website", "down --volumes")

	ping := func(name string) error {
		out, err := s.Run("docker-compose", "exec", "-T", "laptop", "tailscale", "ping", "--c=10", "--until-direct=false", name)
		if err == nil && !strings.Contains(out, "pong from "+name) {
			err = errors.New(out)
		}
		return err
	}
	if err := ping("website"); err != nil {
		t.Error(err)
	}
	if ping("database") == nil {
		t.Error("laptop reaches the database before the policy allows it")
	}
	if out, err := s.Run("sh", "-c", `sed 's,^ *// {"action",{"action",' deploy/demo/policy.hujson | docker-compose exec -T control fairlead policy set -`); err != nil {
		t.Fatal(out)
	}
	if err := ping("database"); err != nil {
		t.Error(err)
	}

	s.Compose("stop")
	start()
	if err := ping("website"); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}
