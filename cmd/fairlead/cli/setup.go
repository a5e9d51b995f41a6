package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/deploy"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

const (
	serviceUser   = "fairlead"
	installedFile = "/usr/bin/fairlead"
	packagedUnit  = "/usr/lib/systemd/system/fairlead.service"
	ownUnit       = "/etc/systemd/system/fairlead.service"
	portDropIn    = ownUnit + ".d/port.conf"

	startLimit       = time.Minute
	certificateLimit = 150 * time.Second // longer than one attempt of the server
	setupPoll        = 200 * time.Millisecond

	firstKeyLife    = 24 * time.Hour
	firstAPIKeyLife = 90 * 24 * time.Hour
)

// installation is what the setup command was asked to do.
type installation struct {
	Domain, Email, Cert, Key, BaseDomain string
	user                                 string
}

func (t *tool) setup() *cobra.Command {
	var i installation
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Configure and start a server on this machine",
		Long: `Configure and start a server on this machine, as a systemd service with SQLite,
the embedded relay, and TLS on port 443. The certificate comes from Let's
Encrypt, unless you use --cert and --key. Run it as root, on a machine that the
domain resolves to.

In the end it prints an API key, and the command with which devices join.

From a package, it writes /etc/fairlead/config.yaml and starts the service. From
a binary, it first copies itself to /usr/bin, creates the user fairlead and
installs the service. You can run it again: it keeps an existing configuration.`,
		Example: `  sudo fairlead setup --domain mesh.example.com --email you@example.com
  sudo fairlead setup --domain mesh.example.com --cert mesh.pem --key mesh.key`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The service does not see this environment, which may name another server or configuration.
			t.Environ = nil
			if err := i.normalise(); err != nil {
				return err
			}
			if err := i.check(t); err != nil {
				return err
			}
			syscall.Umask(0o022) // the service must be able to enter directories
			if err := t.install(cmd.Context(), i); err != nil {
				return err
			}
			return t.firstAccess(cmd.Context(), i)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&i.Domain, "domain", "", "public `name` of the server, such as mesh.example.com")
	flags.StringVar(&i.Email, "email", "", "contact `address` for the certificate authority")
	flags.StringVar(&i.Cert, "cert", "", "`file` with your own certificate chain")
	flags.StringVar(&i.Key, "key", "", "`file` with its private key")
	flags.StringVar(&i.BaseDomain, "base-domain", "mesh.internal", "`domain` of the node names")
	flags.StringVar(&i.user, "user", "admin", "`name` of the first user")
	for _, name := range []string{"domain", "email", "base-domain", "user"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

// normalise checks the flags, and changes them to the form that the configuration has.
func (i *installation) normalise() error {
	switch {
	case i.Domain == "":
		return wrongUsage("missing flag: use --domain")
	case (i.Cert == "") != (i.Key == ""):
		return wrongUsage("--cert and --key must be used together")
	}
	for flag, domain := range map[string]*string{"--domain": &i.Domain, "--base-domain": &i.BaseDomain} {
		parsed, err := config.ParseDomain(*domain)
		if err != nil {
			return wrongUsage("invalid %s %q: %w", flag, *domain, err)
		}
		*domain = parsed
	}
	for _, file := range []*string{&i.Cert, &i.Key} {
		if *file == "" {
			continue
		}
		absolute, err := filepath.Abs(*file)
		if err != nil {
			return err
		}
		*file = absolute
	}
	return nil
}

// check checks that setup can run here.
func (i *installation) check(t *tool) error {
	switch {
	case t.configFile != "" || t.server != "" || t.apiKey != "":
		return wrongUsage("setup always uses %s and the local server: remove --config, --server and --api-key", config.DefaultFile)
	case os.Geteuid() != 0:
		return errors.New("permission denied: run this command as root, with sudo")
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return errors.New("systemd is not running on this machine: write a configuration, and start the server with fairlead serve")
	}
	return nil
}

// install writes what is missing, and starts the service.
func (t *tool) install(ctx context.Context, i installation) error {
	write, err := i.needsConfig(config.DefaultFile)
	if err != nil {
		return err
	}
	if _, err := os.Stat(packagedUnit); errors.Is(err, fs.ErrNotExist) {
		if err := t.installBinary(ctx); err != nil {
			return err
		}
	}
	if write {
		t.note("Writing %s", config.DefaultFile)
		// The configuration comes last: if this is interrupted, the next run writes both.
		if err := allowPort443(); err != nil {
			return err
		}
		if err := i.writeConfig(); err != nil {
			return err
		}
	} else if err := t.keepConfig(); err != nil {
		return err
	}
	t.note("Starting the server")
	for _, args := range [][]string{{"daemon-reload"}, {"enable", "--quiet", "fairlead"}, {"restart", "fairlead"}} {
		if err := runProgram(ctx, "systemctl", args...); err != nil {
			log, _ := exec.CommandContext(ctx, "journalctl", "--unit=fairlead", "--lines=10", "--no-pager", "--output=cat").Output()
			return fmt.Errorf("the server did not start: %w; the end of its log:\n%s", err, log)
		}
	}
	return t.awaitServer(ctx, i)
}

// keepConfig says what an existing configuration means for devices.
func (t *tool) keepConfig() error {
	c, err := config.Load(config.DefaultFile, nil)
	if err != nil {
		return err
	}
	t.note("Keeping %s", config.DefaultFile)
	if !c.ServesTLS() {
		t.note("Warning: with this configuration, the server listens on %s without TLS. Devices need a proxy with TLS at %s", c.ListenAddr, c.ServerURL)
	}
	return nil
}

// needsConfig reports whether the configuration is missing or still the example from the package. It returns an error if an
// existing configuration contradicts the flags.
func (i *installation) needsConfig(file string) (bool, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(text, deploy.ExampleConfig) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	c, err := config.Load(file, nil)
	if err != nil {
		return false, err
	}
	u, err := url.Parse(c.ServerURL)
	if err != nil {
		return false, err
	}
	switch {
	case !strings.EqualFold(u.Hostname(), i.Domain):
		return false, fmt.Errorf("%s is the configuration of %s: edit it, or remove it to write a new one. The data in /var/lib/fairlead is kept", file, u.Hostname())
	case i.Cert != "" && (c.TLSCertPath != i.Cert || c.TLSKeyPath != i.Key):
		return false, fmt.Errorf("%s does not use this certificate: set tls_cert_path and tls_key_path there, or remove it to write a new one", file)
	}
	return false, nil
}

// installBinary installs the running binary as a service, or replaces the one that is installed.
func (t *tool) installBinary(ctx context.Context) error {
	t.note("Installing %s and %s", installedFile, ownUnit)
	if _, err := user.Lookup(serviceUser); err != nil {
		if err := runProgram(ctx, "useradd", "--system", "--user-group", "--home-dir", "/var/lib/fairlead", "--shell", "/usr/sbin/nologin", serviceUser); err != nil {
			return err
		}
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	if own != installedFile {
		text, err := os.ReadFile("/proc/self/exe") // even if the file was replaced meanwhile
		if err != nil {
			return err
		}
		if err := replaceFile(installedFile, text, 0o755, 0); err != nil {
			return err
		}
	}
	return replaceFile(ownUnit, deploy.ServerUnit, 0o644, 0)
}

const newConfig = `# Configuration of the Fairlead server, created by fairlead setup.
# After a change: systemctl restart fairlead
server_url: https://{{.Domain}}
listen_addr: :443
{{- if .Cert}}
tls_cert_path: {{printf "%q" .Cert}}
tls_key_path: {{printf "%q" .Key}}
{{- else}}
tls_letsencrypt_hostname: {{.Domain}}
tls_letsencrypt_challenge_type: TLS-ALPN-01
{{- if .Email}}
acme_email: {{printf "%q" .Email}}
{{- end}}
{{- end}}

database:
  type: sqlite
  sqlite:
    path: /var/lib/fairlead/db.sqlite

# Names of nodes, such as laptop.{{.BaseDomain}}
dns:
  base_domain: {{.BaseDomain}}

# Clients use this relay when they cannot connect directly. It needs UDP port 3478.
derp:
  server:
    enabled: true
`

func (i *installation) render() ([]byte, error) {
	var text bytes.Buffer
	err := template.Must(template.New("").Parse(newConfig)).Execute(&text, i)
	return text.Bytes(), err
}

// writeConfig checks the configuration before it replaces a file.
func (i *installation) writeConfig() error {
	group, err := user.LookupGroup(serviceUser)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(group.Gid)
	if err != nil {
		return err
	}
	text, err := i.render()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(config.DefaultFile), 0o755); err != nil {
		return err
	}
	draft := config.DefaultFile + ".draft"
	if err := replaceFile(draft, text, 0o640, gid); err != nil {
		return err
	}
	c, err := config.Load(draft, nil)
	if err == nil {
		err = i.checkConfig(c)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return os.Rename(draft, config.DefaultFile)
}

// checkConfig is stricter than the server about the certificate, which may have expired or be for another name.
func (i *installation) checkConfig(c *config.Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	for _, w := range c.Warnings {
		if w.Key == "tls_cert_path" {
			return fmt.Errorf("%s: %s", i.Cert, w.Text)
		}
	}
	return nil
}

// allowPort443 changes the sandbox of the service, which by default has no capabilities.
func allowPort443() error {
	if err := os.MkdirAll(filepath.Dir(portDropIn), 0o755); err != nil {
		return err
	}
	const text = "# Created by fairlead setup, for port 443.\n[Service]\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n"
	return replaceFile(portDropIn, []byte(text), 0o644, 0)
}

// awaitServer waits until the server is healthy and has a certificate.
func (t *tool) awaitServer(ctx context.Context, i installation) error {
	client, err := t.connect()
	if err != nil {
		return err
	}
	begin, waiting := time.Now(), false
	tick := time.NewTicker(setupPoll)
	defer tick.Stop()
	for {
		health, err := decodeHealth(answer(client.Health(ctx)))
		pending := certificateWarning(health)
		switch took := time.Since(begin); {
		case err == nil && health.Status == apiclient.HealthStatusPass && pending == "":
			return nil
		case err == nil && strings.HasPrefix(pending, "no TLS certificate"):
			return fmt.Errorf("%s. The server is running and retries every 15 minutes; to retry now, run this command again", pending)
		case pending == "" && took > startLimit, took > certificateLimit:
			return errors.Join(fmt.Errorf("the server is not healthy after %v: see journalctl --unit=fairlead", took.Round(time.Second)), err)
		case pending != "" && !waiting:
			waiting = true
			t.note("Waiting for the certificate for %s", i.Domain)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func certificateWarning(health apiclient.Health) string {
	for _, check := range health.Checks["certificate"] {
		if check.Status != apiclient.HealthCheckStatusPass && strings.Contains(check.Output, "TLS certificate for") {
			return check.Output
		}
	}
	return ""
}

// firstAccess creates the first user, an API key and a pre-auth key, and prints them. If there are users already, it only
// prints how to create more.
func (t *tool) firstAccess(ctx context.Context, i installation) error {
	client, err := t.connect()
	if err != nil {
		return err
	}
	users, err := decode[apiclient.UserList](answer(client.ListUsers(ctx, &apiclient.ListUsersParams{})))
	if err != nil {
		return err
	}
	if len(users.Users) > 0 {
		_, err = fmt.Fprintf(t.Stdout, "Fairlead is running at https://%s\nCreate a key for the console: fairlead apikeys create --expiration 90d\nAdd a device: fairlead preauthkeys create --user %s\n", i.Domain, users.Users[0].Name)
		return err
	}
	if _, err := decode[apiclient.UserResult](answer(client.CreateUser(ctx, apiclient.UserCreation{Name: i.user}))); err != nil {
		return err
	}
	apiKey, err := decode[apiclient.APIKeyResult](answer(client.CreateAPIKey(ctx, apiclient.APIKeyCreation{
		Comment: ifSet("created by fairlead setup"), Expiration: new(t.Now().Add(firstAPIKeyLife)),
	})))
	if err != nil {
		return err
	}
	key, err := decode[apiclient.PreAuthKeyResult](answer(client.CreatePreAuthKey(ctx, apiclient.PreAuthKeyCreation{
		User: &i.user, Reusable: new(true), Expiration: new(t.Now().Add(firstKeyLife)),
	})))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.Stdout, `
Fairlead is running at https://%[1]s

API key, valid for 90 days, for the console and for remote commands:

  %[2]s

Install Tailscale on your devices, and join with this command. It works for any
number of devices for 24 hours; they belong to the user %[3]s:

  sudo tailscale up --login-server https://%[1]s --auth-key %[4]s

These keys are not shown again.
`, i.Domain, apiKey.APIKey, i.user, key.PreAuthKey.Key)
	return err
}

func runProgram(ctx context.Context, program string, args ...string) error {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// replaceFile writes a file of root and this group, and replaces the old one as a whole.
func replaceFile(path string, text []byte, mode fs.FileMode, gid int) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	_, err = f.Write(text)
	if err := errors.Join(err, f.Chown(0, gid), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
