package bff

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	cookieSecretLength = 32
	// fewestCharacters is the minimum number of distinct characters in a cookie secret. Only about one in a
	// million random secrets has fewer.
	fewestCharacters = 6
	maxConfigFile    = 64 << 10
	privateMode      = fs.FileMode(0o640)

	variablePrefix = "FAIRLEAD_CONSOLE_"
	configVariable = variablePrefix + "CONFIG"
	fileSuffix     = "_FILE"

	trustedProxies = "trusted_proxies"

	howToMakeSecret = "create one with: openssl rand -hex 16"
)

// serviceLink matches the variables that Kubernetes sets in every pod for a service called fairlead-console.
var serviceLink = regexp.MustCompile(`^FAIRLEAD_CONSOLE_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)$`)

// Config is the configuration of the console, from its file and its environment.
type Config struct {
	CoordinatorURL string // internal URL of the server's API, without a trailing slash
	APIKey         string // optional: people sign in with API keys of their own
	CookieSecret   string
	LogLevel       slog.Level
	ListenAddr     string
	TrustedProxies []netip.Prefix // whose X-Forwarded-* headers are accepted
	StateDir       string         // optional: where sign-outs survive a restart

	// Warnings are for the log. None of them keeps the console from starting.
	Warnings []string
}

// LoadConfig reads a file and the environment, which takes precedence, and fills in defaults. Its error lists
// every problem and where it is. A missing file is allowed if the environment sets something.
func LoadConfig(path string, environ []string) (Config, error) {
	l := loader{path: path, values: map[string]value{}}
	l.readEnvironment(environ)
	if err := l.readFile(); err != nil && (len(l.values) == 0 || !errors.Is(err, fs.ErrNotExist)) {
		return Config{}, fmt.Errorf("failed to read configuration: %w", err)
	}
	c := l.settle()
	if len(l.problems) > 0 {
		slices.Sort(l.problems)
		return Config{}, fmt.Errorf("failed to parse configuration\n%s", strings.Join(l.problems, "\n"))
	}
	return c, nil
}

// value is the value of a key, and where it was set.
type value struct{ text, at string }

type loader struct {
	path     string
	values   map[string]value // by key; those of the environment are added first
	problems []string
	warnings []string
}

func configKeys() []string {
	return []string{"api_key", "coordinator_url", "cookie_secret", "listen_addr", "log_level", "server.cookie_secret", "state_dir", trustedProxies}
}

func (l *loader) problem(at, format string, args ...any) {
	l.problems = append(l.problems, "  "+at+": "+fmt.Sprintf(format, args...))
}

func (l *loader) readEnvironment(environ []string) {
	keys := map[string]string{}
	for _, key := range configKeys() {
		keys[variablePrefix+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))] = key
	}
	for _, e := range environ {
		name, text, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, variablePrefix) || name == configVariable || serviceLink.MatchString(name) || text == "" {
			continue
		}
		direct, isFile := strings.CutSuffix(name, fileSuffix)
		key, known := keys[direct]
		if !known {
			l.problem(name, "unknown variable; use one of %s, optionally with the suffix %s", strings.Join(sortedKeys(keys), ", "), fileSuffix)
			continue
		}
		if _, twice := l.values[key]; twice {
			l.problem(name, "%s is also set; remove one of them", strings.TrimSuffix(direct, fileSuffix))
			continue
		}
		if isFile {
			content, err := readLimited(text)
			if err != nil {
				l.problem(name, "cannot read the value of %s: %v", key, err)
				continue
			}
			text = strings.TrimRight(string(content), "\r\n")
		}
		l.values[key] = value{text, name}
	}
}

func (l *loader) readFile() error {
	text, err := readLimited(l.path)
	if err != nil {
		return err
	}
	if info, err := os.Stat(l.path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&^privateMode != 0 {
		l.warnings = append(l.warnings, fmt.Sprintf("%s contains secrets but has mode %04o; run: chmod 600 %s", l.path, info.Mode().Perm(), l.path))
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		l.problem(l.path, "%v", err)
		return nil
	}
	if len(document.Content) > 0 {
		l.readMapping(document.Content[0], "")
	}
	return nil
}

// readMapping sets the keys of a YAML mapping that the environment does not set.
func (l *loader) readMapping(node *yaml.Node, prefix string) {
	if node.Kind != yaml.MappingNode {
		if node.Tag != "!!null" {
			l.problem(l.place(node), "yaml: unmarshal errors: must be a mapping of keys to values")
		}
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, content := node.Content[i], node.Content[i+1]
		key := prefix + name.Value
		switch {
		case seen[key]:
			l.problem(l.place(name), "duplicate key %s", key)
		case key == "server":
			l.readMapping(content, "server.")
		case !slices.Contains(configKeys(), key):
			l.problem(l.place(name), "unknown key %s; use one of %s", key, strings.Join(configKeys(), ", "))
		case key == trustedProxies && content.Kind == yaml.SequenceNode:
			l.setFromFile(key, joined(content), content)
		case content.Kind != yaml.ScalarNode:
			l.problem(l.place(content), "yaml: unmarshal errors: %s must be a single value", key)
		default:
			if content.Tag != "!!null" {
				l.setFromFile(key, content.Value, content)
			}
		}
		seen[key] = true
	}
}

// setFromFile sets a value unless the environment has one.
func (l *loader) setFromFile(key, text string, node *yaml.Node) {
	if _, set := l.values[key]; !set {
		l.values[key] = value{text, l.place(node)}
	}
}

// joined formats a list as in the environment: comma-separated.
func joined(list *yaml.Node) string {
	texts := make([]string, 0, len(list.Content))
	for _, item := range list.Content {
		texts = append(texts, item.Value)
	}
	return strings.Join(texts, ",")
}

func (l *loader) place(node *yaml.Node) string { return fmt.Sprintf("%s:%d", l.path, node.Line) }

// at returns where a key was set, or the file if it is missing.
func (l *loader) at(key string) string {
	if v, ok := l.values[key]; ok {
		return v.at
	}
	return l.path
}

func (l *loader) settle() Config {
	c := Config{ListenAddr: "0.0.0.0:3000", Warnings: l.warnings, APIKey: strings.TrimSpace(l.values["api_key"].text)}
	c.CoordinatorURL = l.coordinatorURL()
	if v := l.values["state_dir"]; v.text != "" {
		if c.StateDir = v.text; !filepath.IsAbs(v.text) {
			l.problem(v.at, "state_dir: must be an absolute path, got %q", v.text)
		}
	}
	c.CookieSecret = l.cookieSecret()
	c.TrustedProxies = l.trustedProxies()
	if v, ok := l.values["log_level"]; ok {
		level, known := map[string]slog.Level{"info": slog.LevelInfo, "debug": slog.LevelDebug, "warn": slog.LevelWarn}[v.text]
		if c.LogLevel = level; !known {
			l.problem(v.at, "log_level: must be info, debug or warn, got %q", v.text)
		}
	}
	if v, ok := l.values["listen_addr"]; ok {
		if _, _, err := net.SplitHostPort(v.text); err != nil {
			l.problem(v.at, "listen_addr: must be an address and a port, such as 0.0.0.0:3000: %v", err)
		}
		c.ListenAddr = v.text
	}
	if c.APIKey != "" && !apiKeyForm.MatchString(c.APIKey) {
		c.Warnings = append(c.Warnings, "api_key does not look like an API key (flk_…); create one with: fairlead apikeys create --role read --expiration 999d")
	}
	return c
}

func (l *loader) coordinatorURL() string {
	text := l.values["coordinator_url"].text
	u, err := url.Parse(text)
	wrong := ""
	switch {
	case text == "":
		wrong = "is missing"
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		wrong = "is not an absolute URL"
	case u.User != nil:
		wrong = "must not contain a user name or password"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		wrong = "must not contain ? or #"
	}
	if wrong != "" { // the text may hold a password, so it is not shown
		l.problem(l.at("coordinator_url"), "coordinator_url: %s; set it to the internal URL of the server, such as http://fairlead:8080", wrong)
	}
	return strings.TrimRight(text, "/")
}

// trustedProxies returns the trusted proxies. The default is loopback, from which no stranger can connect.
func (l *loader) trustedProxies() []netip.Prefix {
	v, set := l.values[trustedProxies]
	if !set {
		v.text = "127.0.0.0/8,::1"
	}
	var proxies []netip.Prefix
	for text := range strings.SplitSeq(v.text, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		proxy, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); addrErr == nil && addr.Zone() == "" {
			proxy, err = addr.Unmap().Prefix(addr.Unmap().BitLen())
		}
		if err != nil {
			l.problem(v.at, "trusted_proxies: %q must be an address or a range, such as 127.0.0.1 or 10.0.0.0/8", text)
			continue
		}
		proxies = append(proxies, proxy.Masked())
	}
	return proxies
}

func (l *loader) cookieSecret() string {
	key := "cookie_secret"
	v, nested := l.values[key], l.values["server.cookie_secret"]
	fromEnvironment := func(v value) bool { return strings.HasPrefix(v.at, variablePrefix) }
	switch {
	case v.text == "", fromEnvironment(nested) && !fromEnvironment(v):
		if nested.text != "" {
			v, key = nested, "server.cookie_secret"
		}
	case fromEnvironment(v) && !fromEnvironment(nested):
	case nested.text != "" && nested.text != v.text:
		l.problem(nested.at, "server.cookie_secret: differs from cookie_secret; keep one of them")
	}
	characters := map[rune]bool{}
	for _, c := range v.text {
		characters[c] = true
	}
	if n := utf8.RuneCountInString(v.text); n != cookieSecretLength {
		l.problem(l.at(key), "cookie_secret: must have exactly %d characters, has %d; %s", cookieSecretLength, n, howToMakeSecret)
	} else if len(characters) < fewestCharacters {
		l.problem(l.at(key), "cookie_secret: too easy to guess; %s", howToMakeSecret)
	}
	return v.text
}
