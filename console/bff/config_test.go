package bff

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func configFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "console.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestConfigurationIsReadWithItsDefaults(t *testing.T) {
	want := Config{CoordinatorURL: "http://fairlead:8080", CookieSecret: cookieSecret, ListenAddr: "0.0.0.0:3000", LogLevel: slog.LevelInfo, TrustedProxies: loopback()}
	changed := want
	changed.APIKey, changed.LogLevel, changed.ListenAddr = "flk_7Qd0XhVb2mTa_m3vYk9c0TzR1qJ5uWx8LbN2sD6hGfPaE", slog.LevelDebug, "127.0.0.1:99"
	changed.StateDir = "/var/lib/x"
	for text, want := range map[string]Config{
		"coordinator_url: http://fairlead:8080/\ncookie_secret: " + cookieSecret:                                                                                                     want,
		"coordinator_url: http://fairlead:8080\nserver: {cookie_secret: " + cookieSecret + "}":                                                                                       want,
		"coordinator_url: http://fairlead:8080\ncookie_secret: " + cookieSecret + "\nserver: {cookie_secret: " + cookieSecret + "}":                                                  want,
		"coordinator_url: http://fairlead:8080\napi_key:\nlog_level: info\ncookie_secret: " + cookieSecret:                                                                           want,
		"coordinator_url: http://fairlead:8080\ncookie_secret: " + cookieSecret + "\nlisten_addr: 127.0.0.1:99\nlog_level: debug\nstate_dir: /var/lib/x\napi_key: " + changed.APIKey: changed,
	} {
		got, err := LoadConfig(configFile(t, text), nil)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); err != nil || diff != "" {
			t.Errorf("%s\n%v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestConfigurationNamesEveryProblemAndItsLine(t *testing.T) {
	const good = "coordinator_url: http://f\ncookie_secret: " + cookieSecret + "\n"
	for text, want := range map[string][]string{
		"": {"console.yaml: coordinator_url: is missing", "console.yaml: cookie_secret: must have exactly 32 characters, has 0; create one with: openssl rand -hex 16"},
		"coordinator_url: fairlead\ncookie_secret: short\nlog_level: trace\n": {
			":1: coordinator_url: is not an absolute URL", ":2: cookie_secret: must have exactly 32 characters, has 5", `:3: log_level: must be info, debug or warn, got "trace"`,
		},
		"cookie_secret: " + strings.Repeat("xy", 16):               {":1: cookie_secret: too easy to guess; create one with: openssl rand -hex 16"},
		"cookie_secret: " + cookieSecret + "é":                     {"has 33"},
		good + "server: {cookie_secret: x}":                        {":3: server.cookie_secret: differs from cookie_secret"},
		good + "apikey: flk_x":                                     {":3: unknown key apikey; use one of api_key, coordinator_url"},
		good + "server:\n  port: 1":                                {":4: unknown key server.port"},
		good + "log_level: [info]":                                 {":3: yaml: unmarshal errors: log_level must be a single value"},
		good + "log_level: info\nlog_level: debug":                 {":4", "log_level"},
		good + "trusted_proxies: [10.0.0.0/8, nginx]":              {`:3: trusted_proxies: "nginx" must be an address or a range, such as 127.0.0.1 or 10.0.0.0/8`},
		good + "state_dir: here":                                   {`:3: state_dir: must be an absolute path, got "here"`},
		good + "listen_addr: '3000'":                               {":3: listen_addr: must be an address and a port"},
		"- a":                                                      {":1: yaml: unmarshal errors"},
		"coordinator_url: [\n":                                     {"yaml: line"},
		"coordinator_url: http://me:hunter2@f":                     {":1: coordinator_url: must not contain a user name or password"},
		"coordinator_url: http://f/?a=b":                           {"coordinator_url: must not contain ? or #"},
		"coordinator_url: http://f/#":                              {"coordinator_url: must not contain ? or #"},
		"coordinator_url: ftp://f\ncookie_secret: " + cookieSecret: {"coordinator_url: is not an absolute URL"},
	} {
		_, err := LoadConfig(configFile(t, text), nil)
		if err == nil {
			t.Errorf("%s\nis accepted", text)
			continue
		}
		wantText(t, err.Error(), append(want, "failed to parse configuration\n")...)
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), cookieSecret) {
			t.Errorf("a secret is shown: %v", err)
		}
	}
}

func TestTrustedProxiesAreAListOrSeparatedByCommas(t *testing.T) {
	const good = "coordinator_url: http://f\ncookie_secret: " + cookieSecret + "\n"
	const name = "FAIRLEAD_CONSOLE_TRUSTED_PROXIES="
	for _, c := range []struct {
		text string
		env  []string
		want string
	}{
		{"", nil, "[127.0.0.0/8 ::1/128]"},
		{"trusted_proxies: []", nil, "[]"},
		{"trusted_proxies: [10.1.2.3/8, '2001:db8::1', '::ffff:192.0.2.1']", nil, "[10.0.0.0/8 2001:db8::1/128 192.0.2.1/32]"},
		{"trusted_proxies: 10.1.2.3", nil, "[10.1.2.3/32]"},
		{"trusted_proxies: [10.1.2.3]", []string{name + "192.0.2.0/24, fd00::/8"}, "[192.0.2.0/24 fd00::/8]"},
	} {
		got, err := LoadConfig(configFile(t, good+c.text), c.env)
		if text := fmt.Sprint(got.TrustedProxies); err != nil || text != c.want {
			t.Errorf("%q %v: %v, %s, want %s", c.text, c.env, err, text, c.want)
		}
	}
}

func TestTheEnvironmentWinsOverTheFile(t *testing.T) {
	const prefix = "FAIRLEAD_CONSOLE_"
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(cookieSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := []string{prefix + "COORDINATOR_URL=http://env:8080", prefix + "COOKIE_SECRET_FILE=" + secret, prefix + "LOG_LEVEL=warn"}
	noise := []string{
		"FAIRLEAD_DATABASE_TYPE=sqlite", prefix + "CONFIG=x", prefix + "API_KEY=", prefix + "SERVICE_HOST=10.0.0.1", prefix + "PORT=tcp://10.0.0.1:3000",
		prefix + "PORT_3000_TCP_ADDR=10.0.0.1",
	}
	want := Config{CoordinatorURL: "http://env:8080", CookieSecret: cookieSecret, ListenAddr: "0.0.0.0:3000", LogLevel: slog.LevelWarn, TrustedProxies: loopback()}
	for _, file := range []string{configFile(t, "coordinator_url: http://file\ncookie_secret: short"), configFile(t, "server: {cookie_secret: short}"), filepath.Join(t.TempDir(), "missing")} {
		got, err := LoadConfig(file, append(noise, full...))
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", file, err, diff)
		}
	}
	for _, bad := range []string{prefix + "COOKIE_SECRT=x", prefix + "COOKIE_SECRET=x", prefix + "API_KEY_FILE=/nowhere"} {
		_, err := LoadConfig(configFile(t, ""), append([]string{bad}, full...))
		name, _, _ := strings.Cut(bad, "=")
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "missing"), noise); err == nil || !strings.Contains(err.Error(), "failed to read configuration") {
		t.Errorf("without a file and without variables: %v", err)
	}
}

func TestAFileThatOthersCanReadIsWarnedOf(t *testing.T) {
	file := configFile(t, "coordinator_url: http://f\ncookie_secret: "+cookieSecret+"\napi_key: nonsense")
	for mode, want := range map[os.FileMode]int{0o600: 1, 0o640: 1, 0o644: 2, 0o660: 2} { // one warning is always about api_key
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		c, err := LoadConfig(file, nil)
		if err != nil || len(c.Warnings) != want {
			t.Errorf("%o: %v, %v", mode, err, c.Warnings)
		}
		if strings.Contains(strings.Join(c.Warnings, ""), "nonsense") {
			t.Error("the key is shown")
		}
	}
}

func TestTheLogHoldsNoSecrets(t *testing.T) {
	config := Config{APIKey: "an odd key", CookieSecret: cookieSecret}
	var log waittest.Transcript
	l := NewLogger(&log, config)
	other := "flk_7Qd0XhVb2mTa_m3vYk9c0TzR1qJ5uWx8LbN2sD6hGfPaE"
	l.Info("message "+other, "text", "Bearer "+other, "err", os.ErrInvalid, "any", []string{other, config.APIKey, cookieSecret}) //nolint:sloglint // the message is what is tested
	l.With("with", "flp_7Qd0XhVb2mTa_secret-part").WithGroup("g").Info("in a group", "key", config.APIKey)
	for _, secret := range []string{"m3vYk9c0", "an odd key", cookieSecret, "secret-part"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%s is in the log:\n%s", secret, log.String())
		}
	}
	wantText(t, log.String(), "flk_7Qd0XhVb2mTa_***", "flp_7Qd0XhVb2mTa_***", "invalid argument")
}
