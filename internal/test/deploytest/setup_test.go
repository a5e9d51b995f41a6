//go:build !race

package deploytest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// secretFiles returns the files with secrets that setup.sh writes, with their mode and owner.
func secretFiles() map[string]string {
	return map[string]string{".env": "600 0", "config.yaml": "600 10001", "console.yaml": "600 10002"}
}

// checkFails runs setup.sh --check, which must fail, and returns the problems it reports.
func checkFails(t *testing.T, s *Stack) string {
	t.Helper()
	s = s.In(t)
	out, err := s.Run("scripts/setup.sh", "--check")
	if err == nil {
		t.Fatalf("scripts/setup.sh --check found nothing:\n%s", out)
	}
	return out
}

func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

func modeAndOwner(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%o %d", info.Mode().Perm(), info.Sys().(*syscall.Stat_t).Uid)
}

// TestSetupOfDevelopment sets up one stack and runs all checks that do not modify it.
func TestSetupOfDevelopment(t *testing.T) {
	t.Parallel()
	s := NewStack(t, nil)
	_, console, _ := strings.Cut(s.Env("CONSOLE_PUBLISH"), ":")
	_, api, _ := strings.Cut(s.Env("PROXY_DEV_PUBLISH"), ":")
	first := s.Setup("--dev")
	wantText(t, first, "Fairlead is running at http://localhost:"+api+", for this machine only\n", "Console: http://localhost:"+console+"/admin/\n")
	// The keys in its output must work.
	key := regexp.MustCompile(`(?m)^  (flk_\S+)$`).FindStringSubmatch(first)
	if key == nil {
		t.Fatalf("no API key in:\n%s", first)
	}
	wantText(t, s.Exec("fairlead", "fairlead", "--server", "http://127.0.0.1:8080", "--api-key", key[1], "whoami"), "admin")
	if !regexp.MustCompile(`(?m)^  sudo tailscale up --login-server http://localhost:` + api + ` --auth-key flp_\S+$`).MatchString(first) {
		t.Errorf("no command for a device in:\n%s", first)
	}
	wantText(t, s.Exec("fairlead", "fairlead", "preauthkeys", "list", "--valid"), "admin", "yes")
	// Check immediately, before Docker knows whether the containers are healthy.
	if out, err := s.Run("scripts/setup.sh", "--check"); err != nil || strings.Contains(out, "WARN") {
		t.Errorf("right after the setup: %v\n%s", err, out)
	}
	s.WaitHealthy()
	if diff := cmp.Diff([]string{"console", "db", "fairlead", "proxy"}, sorted(s.Services())); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}

	t.Run("health", func(t *testing.T) {
		wantText(t, content(t, "http://"+s.Addr("PROXY_DEV_PUBLISH")+"/health"), `"status":"pass"`)
		wantText(t, content(t, "http://"+s.Addr("CONSOLE_PUBLISH")+"/health"), `"status":"pass"`, `"coordinator":"reachable"`)
		wantText(t, content(t, "http://"+s.Addr("CONSOLE_PUBLISH")+"/admin/"), "<title>Fairlead</title>")
		wantText(t, content(t, "http://"+s.Addr("METRICS_PUBLISH")+"/metrics"), "mesh_nodes_total 0")
	})
	t.Run("console", func(t *testing.T) { testConsole(t, s) })
	t.Run("secrets", func(t *testing.T) { testSecretFiles(t, s) })
	t.Run("configuration", func(t *testing.T) {
		s := s.In(t)
		wantText(t, s.ReadFile("config.yaml"),
			"\nserver_url: http://localhost:"+strings.TrimPrefix(s.Env("PROXY_DEV_PUBLISH"), "127.0.0.1:")+"\n",
			"\n    pass: "+s.Env("POSTGRES_PASSWORD")+" ", "\n    enabled: true\n", "\n  - "+s.Env("FRONT_SUBNET")+" ")
	})
	t.Run("containers", func(t *testing.T) { testContainerValues(t, s) })
	t.Run("exposure", func(t *testing.T) { testExposure(t, s) })
	t.Run("commands", func(t *testing.T) { testCommands(t, s) })
	t.Run("disk", func(t *testing.T) { testDisk(t, s) })
	t.Run("again", func(t *testing.T) { testSetupAgain(t, s) })
	t.Run("again after a change", func(t *testing.T) { testSetupAfterChange(t, s) })
	t.Run("another clone", func(t *testing.T) {
		other := NewStack(t, map[string]string{"COMPOSE_PROJECT_NAME": s.Project})
		out, err := other.Run("scripts/setup.sh", "--dev")
		if err == nil || !strings.Contains(out, "belong to "+s.Dir) {
			t.Errorf("a second clone takes over the containers of the first: %v\n%s", err, out)
		}
	})
}

func testSecretFiles(t *testing.T, s *Stack) {
	s = s.In(t)
	for name, want := range secretFiles() {
		if got := modeAndOwner(t, filepath.Join(s.Dir, name)); got != want {
			t.Errorf("%s has mode and owner %s, want %s", name, got, want)
		}
		for _, ignore := range []string{".gitignore", ".dockerignore"} {
			if !strings.Contains("\n"+s.ReadFile(ignore), "\n/"+name+"\n") {
				t.Errorf("%s does not name %s", ignore, name)
			}
		}
	}
	s.run(s.Dir, "git", "init", "--quiet")
	// An interrupted run leaves .new files behind.
	for name := range secretFiles() {
		s.WriteFile(name+".new", "", 0o600)
	}
	s.run(s.Dir, "git", "add", "--all")
	if got := s.run(s.Dir, "git", "ls-files", ".env", "config.yaml", "console.yaml", "*.new"); got != "" {
		t.Errorf("git takes files with secrets:\n%s", got)
	}
	if err := os.RemoveAll(filepath.Join(s.Dir, ".git")); err != nil {
		t.Fatal(err)
	}
}

// testSetupAgain checks that a second run keeps the secrets, creates no API key and restarts nothing.
func testSetupAgain(t *testing.T, s *Stack) {
	s = s.In(t)
	state := func() map[string]string {
		found := map[string]string{}
		for name := range secretFiles() {
			found[name] = s.ReadFile(name)
		}
		for _, service := range s.Services() {
			found[service] = s.run(s.Dir, docker, "inspect", "--format={{.Id}} {{.State.StartedAt}}", s.ContainerID(service))
		}
		keys := s.Exec("fairlead", "fairlead", "apikeys", "list", "--output=json")
		found["keys"] = fmt.Sprint(strings.Count(keys, `"prefix"`))
		return found
	}
	before := state()
	s.Setup()
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Errorf("changed by a second run (-before +after):\n%s", diff)
	}
}

// testSetupAfterChange checks that the next run applies configuration changes that no service has
// read yet, whether an interrupted run or the operator made them.
func testSetupAfterChange(t *testing.T, s *Stack) {
	s = s.In(t)
	started := func(service string) string {
		return s.run(s.Dir, docker, "inspect", "--format={{.State.StartedAt}}", s.ContainerID(service))
	}
	files, before := map[string]string{"fairlead": "config.yaml", "console": "console.yaml"}, map[string]string{}
	for service, file := range files {
		before[service] = started(service)
		s.WriteFile(file, s.ReadFile(file)+"# changed\n", 0o600)
	}
	s.Setup()
	for service := range files {
		if started(service) == before[service] {
			t.Errorf("%s goes on with the configuration of before", service)
		}
	}
	s.WaitHealthy()
}

func TestSetupRefusesPasswordsThatNeedQuotes(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"a: b", "~", `"quoted"`, "a$b"} {
		s := NewStack(t, map[string]string{"POSTGRES_PASSWORD": password})
		out, err := s.Run("scripts/setup.sh", "--dev")
		if err == nil || !strings.Contains(out, "POSTGRES_PASSWORD in .env contains characters other than") {
			t.Errorf("%s: %v\n%s", password, err, out)
		}
	}
}

// TestSetupResumesAfterInterruption kills setup.sh at various points and runs it again.
func TestSetupResumesAfterInterruption(t *testing.T) {
	t.Parallel()
	s := NewStack(t, nil)
	for _, line := range []string{"writing .env", "writing config.yaml", "starting the server", "creating the console's API key", "starting the other services"} {
		interruptAt(t, s, line)
	}
	s.Setup("--dev")
	s.WaitHealthy()
	if out, err := s.Run("scripts/setup.sh", "--check"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// interruptAt kills setup.sh and all its child processes as soon as it prints line.
func interruptAt(t *testing.T, s *Stack, line string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "scripts/setup.sh", "--dev")
	cmd.Dir = s.Dir
	cmd.Env = environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := ""
	for buf := make([]byte, 4096); !strings.Contains(said, line); {
		n, err := out.Read(buf)
		if said += string(buf[:n]); err != nil {
			t.Fatalf("setup.sh did not say %q: %v\n%s", line, err, said)
		}
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatalf("setup.sh ended by itself:\n%s", said)
	}
}

func TestSetupWithoutPostgres(t *testing.T) {
	t.Parallel()
	s := NewStack(t, nil)
	s.Setup("--dev", "--sqlite")
	s.WaitHealthy()
	if diff := cmp.Diff([]string{"console", "fairlead", "proxy"}, sorted(s.Services())); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
	if pass := s.Env("POSTGRES_PASSWORD"); pass != "" {
		t.Errorf("a password was made for a database that is not there")
	}
	s.Exec("fairlead", "fairlead", "users", "create", "alice")
	s.Compose("restart", "fairlead")
	eventually(t, patience, func() error {
		out, err := s.Run("docker-compose", "exec", "-T", "fairlead", "fairlead", "users", "list")
		if err == nil && !strings.Contains(out, "alice") {
			t.Fatalf("the user is lost:\n%s", out)
		}
		return err
	})
	// A restart keeps the modes of mounted files, with Debian's runc too.
	inside := filepath.Join("/proc", strings.TrimSpace(s.run(s.Dir, docker, "inspect", "--format={{.State.Pid}}", s.ContainerID("fairlead"))), "root")
	for dir, want := range map[string]string{"tmp": "777 0", "run/fairlead": "750 10001"} {
		if got := modeAndOwner(t, filepath.Join(inside, dir)); got != want {
			t.Errorf("/%s of the server has mode and owner %s, want %s", dir, got, want)
		}
	}
	if out, err := s.Run("scripts/setup.sh", "--check"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Run("upgrade", func(t *testing.T) { testUpgrade(t, s) })
}

// TestCheckNamesWhatIsWrong breaks a stack in one way after another.
func TestCheckNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := NewStack(t, nil)
	s.Setup("--dev")

	t.Run("modes and owners", func(t *testing.T) {
		s := s.In(t)
		chmod(t, s, ".env", 0o644)
		chmod(t, s, "config.yaml", 0o640)
		if err := os.Chown(filepath.Join(s.Dir, "console.yaml"), 0, 0); err != nil {
			t.Fatal(err)
		}
		_, key, _ := strings.Cut(s.ReadFile("console.yaml"), "\napi_key: ")
		key, _, _ = strings.Cut(key, "\n")
		s.Exec("fairlead", "fairlead", "apikeys", "expire", "--key", key)
		wantText(t, checkFails(t, s), "[ERROR] .env has mode 644", "chmod 600 .env", "[ERROR] config.yaml has mode and owner 640 10001", "chmod 600 config.yaml",
			"[ERROR] console.yaml has mode and owner 600 0 instead of 600 10002", "chown 10002:10002 console.yaml",
			"[ERROR] the server rejects the console's API key in console.yaml: run scripts/setup.sh")
		chmod(t, s, ".env", 0o600)
		chmod(t, s, "config.yaml", 0o600)
		s.run(s.Dir, "chown", "10002:10002", "console.yaml")
	})
	t.Run("missing file", func(t *testing.T) {
		s := s.In(t)
		s.run(s.Dir, "rm", "console.yaml")
		wantText(t, checkFails(t, s), "[ERROR] console.yaml is missing: run scripts/setup.sh")
		s.Setup()
	})
	t.Run("stopped service", func(t *testing.T) {
		s := s.In(t)
		s.Compose("stop", "console")
		eventually(t, patience, func() error { // on a busy machine, the kernel may not freeze it at once
			_, err := s.Run(docker, "pause", s.ContainerID("fairlead"))
			return err
		})
		s.run(s.Dir, docker, "restart", s.ContainerID("proxy")) // its health check waits for the server
		wantText(t, checkFails(t, s), "[ERROR] console is not running", "[ERROR] fairlead is paused", "[WARN] proxy has just started")
		s.Compose("unpause", "fairlead")
		s.Up("console")
		s.Compose("stop", "db")
		out := checkFails(t, s)
		if wantText(t, out, "[ERROR] db is not running"); strings.Contains(out, "password") {
			t.Errorf("a database that is stopped is said to refuse its password:\n%s", out)
		}
		s.Up("db")
		s.WaitHealthy("db", "fairlead")
	})
	t.Run("password", func(t *testing.T) { testPasswordMismatch(t, s) })
}

// testPasswordMismatch checks that a server with the wrong database password says so in its log,
// and that the check says what to do, whichever file is wrong.
func testPasswordMismatch(t *testing.T, s *Stack) {
	s = s.In(t)
	good, pass := s.ReadFile("config.yaml"), s.Env("POSTGRES_PASSWORD")
	s.WriteFile("config.yaml", strings.Replace(good, pass, "another", 1), 0o600)
	since := time.Now()
	s.Compose("restart", "fairlead")
	container := s.ContainerID("fairlead")
	eventually(t, patience, func() error {
		log, err := s.Run(docker, "logs", "--since", since.UTC().Format(time.RFC3339), container)
		if err == nil && !strings.Contains(log, "failed to connect to database") {
			err = fmt.Errorf("the log does not say it:\n%s", log)
		}
		return err
	})
	wantText(t, checkFails(t, s), "[ERROR] the database passwords differ")
	if out, err := s.Run("scripts/setup.sh"); err == nil {
		t.Errorf("setup.sh goes on with passwords that differ:\n%s", out)
	}

	env := s.ReadFile(".env")
	s.WriteFile(".env", strings.Replace(env, pass, "another", 1), 0o600)
	wantText(t, checkFails(t, s), "[ERROR] the database rejects the password in .env", "ALTER ROLE fairlead PASSWORD")

	s.WriteFile(".env", env, 0o600)
	s.WriteFile("config.yaml", good, 0o600)
	s.Compose("restart", "fairlead")
	// After the proxy had no server to talk to, Docker repeats its health check only after 30 seconds.
	s.WaitHealthy()
	if out, err := s.Run("scripts/setup.sh", "--check"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func chmod(t *testing.T, s *Stack, name string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(filepath.Join(s.Dir, name), mode); err != nil {
		t.Fatal(err)
	}
}
