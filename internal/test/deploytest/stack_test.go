//go:build !race

package deploytest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// patience is the timeout for operations that take seconds unless the machine is busy.
const (
	patience  = 3 * time.Minute
	pollEvery = 300 * time.Millisecond
)

// Stack is one deployment in its own directory: a copy of the repository, an .env with free ports
// and the images under test, and its own Compose project. It is removed when the test ends.
type Stack struct {
	t       *testing.T
	Dir     string
	Project string
	env     map[string]string
}

// NewStack copies the repository and writes an .env that scripts/setup.sh completes; env adds to it
// and overrides it. Nothing is started yet.
func NewStack(t *testing.T, env map[string]string) *Stack {
	t.Helper()
	s := &Stack{t: t, Dir: t.TempDir(), Project: fmt.Sprintf("fairlead-test-%d", rand.Uint32())}
	s.run(root, "sh", "-c", `git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh | tar --null -T - -cf - | tar -xf - -C "$0"`, s.Dir)
	s.env = map[string]string{
		"COMPOSE_PROJECT_NAME": s.Project,
		"IMAGE_TAG":            images.tag,
		"POSTGRES_IMAGE":       "fairlead-test/postgres",
		// Outside the ranges from which Docker allocates networks.
		"FRONT_SUBNET":        fmt.Sprintf("10.%d.%d.0/24", 212+rand.IntN(40), rand.IntN(256)),
		"PROXY_HTTP_PUBLISH":  porttest.Port(t),
		"PROXY_HTTPS_PUBLISH": porttest.Port(t),
		"RELAY_PUBLISH":       "0.0.0.0:" + porttest.Port(t), // IPv4 only, as in the default
	}
	for _, name := range []string{"PROXY_DEV", "CONSOLE", "METRICS", "PROMETHEUS", "ALERTMANAGER", "GRAFANA"} {
		s.env[name+"_PUBLISH"] = "127.0.0.1:" + porttest.Port(t)
	}
	maps.Copy(s.env, env)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		fmt.Fprintf(&text, "%s=%s\n", name, s.env[name])
	}
	s.WriteFile(".env", text.String(), 0o600)
	t.Cleanup(s.end)
	return s
}

// In returns the same stack for a subtest, so that a failure fails the subtest.
func (s *Stack) In(t *testing.T) *Stack {
	in := *s
	in.t = t
	return &in
}

// end logs what happened if the test failed, and removes the stack.
func (s *Stack) end() {
	if s.Env("COMPOSE_FILE") == "" {
		return // never set up
	}
	if s.t.Failed() {
		s.t.Logf("containers:\n%s\nlogs:\n%s", s.try("ps"), s.try("logs", "--no-color", "--tail=20"))
	}
	s.Down()
}

// Setup runs scripts/setup.sh and fails the test if it fails.
func (s *Stack) Setup(args ...string) string {
	s.t.Helper()
	return s.run(s.Dir, "scripts/setup.sh", args...)
}

// Compose runs docker-compose in the stack's directory and returns its stdout.
func (s *Stack) Compose(args ...string) string {
	s.t.Helper()
	return s.run(s.Dir, "docker-compose", args...)
}

// Up starts the services, by default all.
func (s *Stack) Up(services ...string) {
	s.t.Helper()
	s.Compose(append([]string{"up", "-d"}, services...)...)
}

// Down removes containers, networks and volumes.
func (s *Stack) Down() {
	s.t.Helper()
	s.try("down", "--volumes", "--remove-orphans", "--timeout=10")
}

// Exec runs a command in the container of a service.
func (s *Stack) Exec(service string, command ...string) string {
	s.t.Helper()
	return s.run(s.Dir, docker, append([]string{"exec", s.ContainerID(service)}, command...)...)
}

// Logs returns the output of a service's containers.
func (s *Stack) Logs(service string) string {
	s.t.Helper()
	return s.Compose("logs", "--no-color", service)
}

// Env returns a setting from .env as setup.sh left it.
func (s *Stack) Env(name string) string {
	text, err := os.ReadFile(filepath.Join(s.Dir, ".env"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return value
		}
	}
	return ""
}

// setEnv changes a setting in .env.
func (s *Stack) setEnv(name, value string) {
	s.t.Helper()
	s.WriteFile(".env", strings.Replace(s.ReadFile(".env"), name+"="+s.Env(name)+"\n", name+"="+value+"\n", 1), 0o600)
}

// Addr returns the address at which a published port is reachable from this machine, for example
// Addr("PROXY_DEV_PUBLISH").
func (s *Stack) Addr(setting string) string {
	publish := s.Env(setting)
	if !strings.Contains(publish, ":") {
		publish = "127.0.0.1:" + publish
	}
	return publish
}

// ReadFile returns a file from the stack's directory.
func (s *Stack) ReadFile(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// WriteFile overwrites a file in the stack's directory and keeps its owner.
func (s *Stack) WriteFile(name, text string, mode os.FileMode) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

// Services returns the names of the services that have a container. Compose itself would also list
// services of disabled profiles.
func (s *Stack) Services() []string {
	s.t.Helper()
	return strings.Fields(s.run(s.Dir, docker, "ps", "--all", "--filter=label=com.docker.compose.project="+s.Project,
		`--format={{.Label "com.docker.compose.service"}}`))
}

// Container is the result of `docker inspect` for a service's container.
type Container struct {
	Config struct {
		User        string
		Image       string
		Labels      map[string]string
		Healthcheck *struct {
			Test                           []string
			Interval, Timeout, StartPeriod time.Duration
			Retries                        int
		}
	}
	HostConfig struct {
		Memory         int64
		PidsLimit      *int64
		ReadonlyRootfs bool
		CapDrop        []string
		SecurityOpt    []string
		RestartPolicy  struct{ Name string }
		LogConfig      struct {
			Type   string
			Config map[string]string
		}
		PortBindings map[string][]struct{ HostIP, HostPort string }
	}
	NetworkSettings struct {
		Networks map[string]struct{ IPAddress string }
	}
}

// Inspect inspects the container of a service.
func (s *Stack) Inspect(service string) Container {
	s.t.Helper()
	var found []Container
	if err := json.Unmarshal([]byte(s.run(s.Dir, docker, "inspect", s.ContainerID(service))), &found); err != nil {
		s.t.Fatal(err)
	}
	return found[0]
}

// ContainerID returns the container ID of a service. It asks Docker, which responds ten times faster than
// docker-compose.
func (s *Stack) ContainerID(service string) string {
	s.t.Helper()
	id := strings.TrimSpace(s.run(s.Dir, docker, "ps", "--all", "--quiet", "--no-trunc", "--filter=label=com.docker.compose.project="+s.Project,
		"--filter=label=com.docker.compose.service="+service, "--filter=label=com.docker.compose.oneoff=False"))
	if id == "" {
		s.t.Fatalf("%s has no container", service)
	}
	return id
}

// WaitHealthy waits until Docker reports the services, by default all, as healthy. A service
// without a health check only has to run.
func (s *Stack) WaitHealthy(services ...string) {
	s.t.Helper()
	if len(services) == 0 {
		services = s.Services()
	}
	for _, service := range services {
		id := s.ContainerID(service)
		eventually(s.t, patience, func() error {
			state := s.run(s.Dir, docker, "inspect", "--format={{.State.Status}}{{with .State.Health}} {{.Status}}{{end}}", id)
			if state = strings.TrimSpace(state); state != "running" && state != "running healthy" {
				return fmt.Errorf("%s is %s", service, state)
			}
			return nil
		})
	}
}

// Run runs a command in the stack's directory and returns its combined stdout and stderr.
func (s *Stack) Run(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(s.t.Context(), name, args...)
	cmd.Dir = s.Dir
	cmd.Env = environ()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// try runs docker-compose and only logs a failure. It also works after the test has ended.
func (s *Stack) try(args ...string) string {
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), "docker-compose", args...)
	cmd.Dir = s.Dir
	cmd.Env = environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Logf("docker-compose %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (s *Stack) run(dir, name string, args ...string) string {
	s.t.Helper()
	out, err := command(s.t.Context(), dir, name, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// command runs a program and returns its stdout; the error includes its stderr.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = environ()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.Bytes(), problems.Bytes())
	}
	return out.String(), nil
}

// content returns the body of a response, which must have status 200.
func content(t *testing.T, url string) string {
	t.Helper()
	status, body := send(t, http.MethodGet, url, "", nil)
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d\n%s", url, status, body)
	}
	return body
}

// send sends a request with an optional JSON body and an optional API key.
func send(t *testing.T, method, url, key string, body any) (status int, answer string) {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	got, err := new(http.Client).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	read, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(read)
}

// environ returns the environment without the variables that would select another stack.
func environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "COMPOSE_") })
	return append(env, "DOCKER_BUILDKIT=1")
}

// eventually polls until try succeeds.
func eventually(t *testing.T, limit time.Duration, try func() error) {
	t.Helper()
	waittest.Eventually(t, limit, pollEvery, try)
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
