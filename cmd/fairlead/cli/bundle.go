package cli

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

const (
	bundledAudit = 200
	bundledLog   = 1 << 20
)

// bundleOptions holds the options of debug bundle.
type bundleOptions struct {
	file, logFile string
	withPolicy    bool
}

func (t *tool) debugBundle() *cobra.Command {
	var b bundleOptions
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Collect diagnostics for support in one file",
		Long: `Collect diagnostics for support in one compressed archive: versions, health,
digests, nodes, routes, DNS settings, recent changes and profiles. Over the
local socket, it also contains the configuration, metrics and facts about this
machine.

Secrets and passwords are removed, and public keys are shortened. Names and
addresses of users and nodes are included, so review the archive before you send
it. Parts that cannot be collected are listed in README.txt. If the log in
--log-file cannot be read, the exit status is 1.`,
		Example: `  fairlead debug bundle
  fairlead debug bundle --file support.tar.gz --log-file /var/log/fairlead.log
  journalctl -u fairlead -n 5000 | fairlead debug bundle --log-file -
  fairlead debug bundle --with-policy --file - | tar tz`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			return t.bundle(ctx, client, b)
		}),
	}
	cmd.Flags().StringVar(&b.file, "file", "", "write to this `file`; - means standard output (default fairlead-<time>.tar.gz)")
	cmd.Flags().StringVar(&b.logFile, "log-file", "", "include the end of this server log `file`; - means standard input")
	cmd.Flags().BoolVar(&b.withPolicy, "with-policy", false, "include the text of the access policy")
	return cmd
}

func (t *tool) bundle(ctx context.Context, client *apiclient.Client, b bundleOptions) error {
	to, name, done := t.Stdout, "standard output", func() error { return nil }
	if width, _ := t.screen(); b.file == "-" && width > 0 {
		return wrongUsage("standard output is a terminal: redirect the output to a file or another command")
	}
	if b.file != "-" {
		name = cmp.Or(b.file, "fairlead-"+t.Now().UTC().Format("20060102T150405Z")+".tar.gz")
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%s already exists; remove it, or choose another file with --file", name)
		}
		if err != nil {
			return err
		}
		to, done = f, f.Close
	}
	compressed := gzip.NewWriter(to)
	a := &archive{tool: t, tar: tar.NewWriter(compressed), mask: t.mask()}
	noLog := t.collect(ctx, client, a, b)
	a.add("README.txt", []byte(a.readme()), nil)
	if err := errors.Join(a.failed, a.tar.Close(), compressed.Close(), done()); err != nil {
		return fmt.Errorf("%s is incomplete: %w", name, err)
	}
	missing := a.missingLines()
	for _, m := range missing {
		t.note("Missing: %s", m)
	}
	if noLog != nil {
		noLog = fmt.Errorf("the bundle does not include the log: %w; use another --log-file", noLog)
	}
	if b.file == "-" {
		return noLog
	}
	return errors.Join(t.show(bundleResult{File: name, Files: a.names, Missing: missing},
		fmt.Sprintf("Wrote %s with %s\n", name, count(len(a.names), "file"))), noLog)
}

// bundleResult is the output of debug bundle.
type bundleResult struct {
	File    string   `json:"file"`
	Files   []string `json:"files"`
	Missing []string `json:"missing"`
}

// mask returns a mask that hides the secrets known to this run, and everything that looks like one.
func (t *tool) mask() *mask {
	m := &mask{}
	m.know(t.apiKey)
	for _, entry := range t.Environ { // the configuration may be what is broken
		name, value, _ := strings.Cut(entry, "=")
		if secretVariable.MatchString(name) {
			m.know(value)
		}
	}
	if c, err := config.Load(t.configFile, t.Environ); err == nil {
		m.know(c.Secrets()...)
	}
	return m
}

// collect adds all parts to the archive. It fails if the log file that was asked for cannot be read.
func (t *tool) collect(ctx context.Context, client *apiclient.Client, a *archive, b bundleOptions) error {
	if t.overSocket() {
		c, err := config.Load(t.configFile, t.Environ)
		if err != nil {
			a.add("configuration.txt", nil, errors.New(hosts(err.Error())))
		} else {
			a.add("configuration.txt", []byte(hosts(c.Report()+"\n"+c.String())), nil)
			text, err := metrics(ctx, c.MetricsListenAddr)
			a.add("metrics.txt", text, err)
		}
		a.add("host.txt", []byte(host()), nil)
	}
	a.addJSON("version.json")(answer(client.Version(ctx)))
	health, err := decodeHealth(answer(client.Health(ctx)))
	a.addValue("health.json", health, err)
	a.addJSON("digest.json")(answer(client.DebugDigest(ctx)))
	profiles, err := decode[apiclient.Profiles](answer(client.DebugProfile(ctx)))
	a.add("goroutines.txt", []byte(profiles.Goroutines), err)
	a.add("heap.txt", []byte(profiles.Heap), err)
	t.collectNetwork(ctx, client, a)
	hooks, err := decode[apiclient.WebhookList](answer(client.ListWebhooks(ctx)))
	for i := range hooks.Webhooks {
		hooks.Webhooks[i].URL = hostOf(hooks.Webhooks[i].URL) // the rest often contains a credential
	}
	a.addValue("webhooks.json", hooks.Webhooks, err)
	a.addJSON("dns.json")(answer(client.GetDNS(ctx)))
	list, err := decode[apiclient.AuditList](answer(client.ListAudit(ctx, &apiclient.ListAuditParams{Limit: new(bundledAudit)})))
	for i := range list.Entries {
		if e := &list.Entries[i]; e.Kind == "policy" && !b.withPolicy {
			e.Before, e.After = withoutText(e.Before), withoutText(e.After)
		}
	}
	a.addValue("audit.json", list.Entries, err)
	if b.withPolicy {
		p, err := decode[apiclient.Policy](answer(client.GetPolicy(ctx)))
		a.add("policy.hujson", []byte(p.Policy), err)
	}
	if b.logFile == "" {
		return nil
	}
	text, err := t.tail(b.logFile)
	a.add("log.txt", text, err)
	return err
}

// collectNetwork adds nodes and routes, and the numbers of other objects.
func (t *tool) collectNetwork(ctx context.Context, client *apiclient.Client, a *archive) {
	counts := map[string]int{}
	nodes, err := decode[apiclient.NodeList](answer(client.ListNodes(ctx, &apiclient.ListNodesParams{})))
	a.addValue("nodes.json", nodes.Nodes, err)
	for _, n := range nodes.Nodes {
		counts["nodes"]++
		counts["nodes "+nodeState(n)]++
	}
	routes, routesErr := decode[apiclient.RouteList](answer(client.ListRoutes(ctx, &apiclient.ListRoutesParams{})))
	a.addValue("routes.json", routes.Routes, routesErr)
	for _, r := range routes.Routes {
		counts["routes"]++
		counts["routes "+routeStatus(r)]++
	}
	users, usersErr := decode[apiclient.UserList](answer(client.ListUsers(ctx, &apiclient.ListUsersParams{})))
	counts["users"] = len(users.Users)
	keys, keysErr := decode[apiclient.PreAuthKeyList](answer(client.ListPreAuthKeys(ctx, &apiclient.ListPreAuthKeysParams{})))
	counts["preAuthKeys"] = len(keys.PreAuthKeys)
	apiKeys, apiKeysErr := decode[apiclient.APIKeyList](answer(client.ListAPIKeys(ctx, &apiclient.ListAPIKeysParams{})))
	counts["apiKeys"] = len(apiKeys.APIKeys)
	a.addValue("counts.json", counts, cmp.Or(err, routesErr, usersErr, keysErr, apiKeysErr))
}

// hostOf returns only the scheme and the host of a URL.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return masked
	}
	return u.Scheme + "://" + u.Host
}

// withoutText returns a policy version without its text.
func withoutText(version any) any {
	if members, ok := version.(map[string]any); ok {
		delete(members, "policy")
	}
	return version
}

// overSocket reports whether the server is reached over this machine's local socket.
func (t *tool) overSocket() bool { return cmp.Or(t.server, t.getenv("FAIRLEAD_CLI_SERVER")) == "" }

// metrics reads the server's Prometheus metrics.
func metrics(ctx context.Context, address string) ([]byte, error) {
	if address == "" {
		return nil, errors.New("metrics_listen_addr is not set")
	}
	hostname, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(hostname); hostname == "" || ip != nil && ip.IsUnspecified() {
		address = net.JoinHostPort("localhost", port)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	return answer((&http.Client{Timeout: healthLimit}).Do(req))
}

// host describes this machine.
func host() string {
	var b strings.Builder
	fmt.Fprintf(&b, "system: %s %s, %s\n", runtime.GOOS, runtime.GOARCH, count(runtime.NumCPU(), "processor"))
	for _, file := range []string{
		"/etc/os-release", "/proc/version", "/proc/uptime", "/proc/loadavg", "/proc/meminfo", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/cpu.max",
	} {
		if text, err := os.ReadFile(file); err == nil {
			fmt.Fprintf(&b, "\n%s:\n%s", file, text)
		}
	}
	return b.String()
}

// tail returns the end of a log, starting with a whole line.
func (t *tool) tail(file string) ([]byte, error) {
	from := t.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Size() > bundledLog {
			if _, err := f.Seek(-bundledLog, io.SeekEnd); err != nil {
				return nil, err
			}
		}
		from = f
	}
	text, err := io.ReadAll(from)
	if len(text) < bundledLog {
		return text, err
	}
	_, text, _ = bytes.Cut(text[len(text)-bundledLog:], []byte("\n"))
	return text, err
}

// archive collects the parts of a bundle. A part that could not be obtained is listed as missing and does not
// affect the others.
type archive struct {
	*tool
	tar     *tar.Writer
	mask    *mask
	names   []string
	missing []absence
	failed  error // the first write error
}

// absence names parts that could not be obtained for the same reason.
type absence struct {
	names []string
	why   string
}

// miss lists a part with the others that are missing for the same reason.
func (a *archive) miss(name, why string) {
	i := slices.IndexFunc(a.missing, func(m absence) bool { return m.why == why })
	if i < 0 {
		i = len(a.missing)
		a.missing = append(a.missing, absence{why: why})
	}
	a.missing[i].names = append(a.missing[i].names, name)
}

func (a *archive) missingLines() []string {
	lines := []string{}
	for _, m := range a.missing {
		lines = append(lines, strings.Join(m.names, ", ")+": "+m.why)
	}
	return lines
}

func (a *archive) add(name string, text []byte, err error) {
	if err != nil {
		a.miss(name, a.mask.text(err.Error()))
		return
	}
	masked := a.mask.text(string(text))
	header := &tar.Header{Name: "fairlead/" + name, Mode: 0o600, Size: int64(len(masked)), ModTime: a.Now()}
	if a.failed == nil {
		a.failed = a.tar.WriteHeader(header)
	}
	if a.failed == nil {
		_, a.failed = io.WriteString(a.tar, masked)
	}
	a.names = append(a.names, name)
}

// addValue adds an API value and masks the fields that hold secrets.
func (a *archive) addValue(name string, value any, err error) {
	text := ""
	if err == nil {
		text, err = encodeJSON(value, true)
	}
	if err == nil {
		text, err = a.mask.members(text)
	}
	if name == "dns.json" || name == "audit.json" { // the audit log contains DNS settings before and after changes
		text = hosts(text)
	}
	a.add(name, []byte(text), err)
}

// addJSON adds the JSON that answer returned, whatever its structure.
func (a *archive) addJSON(name string) func(body []byte, err error) {
	return func(body []byte, err error) {
		value, err := decode[any](body, err)
		a.addValue(name, value, err)
	}
}

func (a *archive) readme() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Collected by fairlead %s (%s) at %s.\n\nSecrets are replaced by ***, and public keys are shortened.\n\n", a.Build.Version, a.Build.Commit, a.Now().UTC().Format(time.RFC3339))
	for _, name := range a.names {
		fmt.Fprintln(&b, name)
	}
	if len(a.missing) > 0 {
		b.WriteString("\nMissing:\n" + strings.Join(a.missingLines(), "\n") + "\n")
	}
	return b.String()
}
