//go:build !race

package deploytest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// healthCheck holds the values from the specification's table of limits.
type healthCheck struct {
	Interval, Timeout, StartPeriod time.Duration
	Retries                        int
}

// testContainerValues checks in the running containers the values that the specification fixes and
// the privileges that each container must not have.
func testContainerValues(t *testing.T, s *Stack) {
	s = s.In(t)
	checks := map[string]healthCheck{
		"fairlead": {Interval: 30 * time.Second, Timeout: 10 * time.Second, StartPeriod: 10 * time.Second, Retries: 3},
		"db":       {Interval: 10 * time.Second, Timeout: 5 * time.Second, Retries: 5},
		"proxy":    {Interval: 30 * time.Second, Timeout: 5 * time.Second, StartPeriod: 10 * time.Second, Retries: 3},
	}
	commands := map[string]string{
		"fairlead": "CMD fairlead health --ready",
		"db":       "CMD pg_isready --quiet --username=fairlead --dbname=fairlead",
		"proxy":    "CMD curl -fsS -o /dev/null http://127.0.0.1:8080/ready",
	}
	users := map[string]string{"fairlead": "10001:10001", "console": "10002:10002", "proxy": "10003:10003", "certbot": "10003:10003", "db": "999:999"}
	for _, service := range s.Services() {
		c := s.Inspect(service)
		if want, fixed := checks[service]; fixed {
			got := healthCheck{c.Config.Healthcheck.Interval, c.Config.Healthcheck.Timeout, c.Config.Healthcheck.StartPeriod, c.Config.Healthcheck.Retries}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("health check of %s (-want +got):\n%s", service, diff)
			}
			if got := strings.Join(c.Config.Healthcheck.Test, " "); got != commands[service] {
				t.Errorf("health check of %s is %q, want %q", service, got, commands[service])
			}
		}
		if diff := cmp.Diff(map[string]string{"max-size": "10m", "max-file": "3"}, c.HostConfig.LogConfig.Config); diff != "" || c.HostConfig.LogConfig.Type != "json-file" {
			t.Errorf("log rotation of %s: %s (-want +got):\n%s", service, c.HostConfig.LogConfig.Type, diff)
		}
		if service == "fairlead" && c.HostConfig.Memory != 512<<20 {
			t.Errorf("memory of %s: %d bytes, want 512 MB", service, c.HostConfig.Memory)
		}
		if c.HostConfig.Memory == 0 || c.HostConfig.PidsLimit == nil || *c.HostConfig.PidsLimit <= 0 {
			t.Errorf("%s has no limit for memory or for processes", service)
		}
		if c.Config.User != users[service] {
			t.Errorf("%s runs as %q, want %q", service, c.Config.User, users[service])
		}
		if !c.HostConfig.ReadonlyRootfs || !slices.Equal(c.HostConfig.CapDrop, []string{"ALL"}) || !slices.Contains(c.HostConfig.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s may do more than it needs: read-only %t, capabilities without %q, options %q",
				service, c.HostConfig.ReadonlyRootfs, c.HostConfig.CapDrop, c.HostConfig.SecurityOpt)
		}
		if service == "db" {
			const query = "SELECT rolsuper, current_setting('server_version_num')::int / 10000 FROM pg_roles WHERE rolname = current_user"
			if got := strings.TrimSpace(s.Exec("db", "psql", "--username=fairlead", "--dbname=fairlead", "--tuples-only", "--no-align", "--command="+query)); got != "f|17" {
				t.Errorf("whether the role of the service is a superuser, and the version of PostgreSQL: %q, want f|17", got)
			}
		}
		if c.HostConfig.RestartPolicy.Name != "unless-stopped" {
			t.Errorf("%s is restarted %q", service, c.HostConfig.RestartPolicy.Name)
		}
	}
}
