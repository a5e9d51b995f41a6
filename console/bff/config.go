package bff

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"

	"go.yaml.in/yaml/v3"
)

// cookieSecretLength is the length of an AES-256 key.
const cookieSecretLength = 32

// Config is what the console's file says.
type Config struct {
	CoordinatorURL string `yaml:"coordinator_url"` // internal address of the service's API
	APIKey         string `yaml:"api_key"`         // optional: people log in with keys of their own
	CookieSecret   string `yaml:"cookie_secret"`
	LogLevel       string `yaml:"log_level"`
	ListenAddr     string `yaml:"listen_addr"`
	Server         struct {
		CookieSecret string `yaml:"cookie_secret"`
	} `yaml:"server"`
}

// LoadConfig reads a file and fills in defaults. Its error names every problem.
func LoadConfig(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("failed to read configuration: %w", err)
	}
	var c Config
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return Config{}, fmt.Errorf("failed to parse configuration: %s: %w", path, err)
	}
	if err := c.settle(); err != nil {
		return Config{}, fmt.Errorf("failed to parse configuration: %s:\n%w", path, err)
	}
	return c, nil
}

func (c *Config) settle() error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf("  "+format, args...)) }

	if u, err := url.Parse(c.CoordinatorURL); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		problem("coordinator_url: must be the URL of the service, such as http://fairlead:8080")
	}
	if nested := c.Server.CookieSecret; c.CookieSecret == "" {
		c.CookieSecret = nested
	} else if nested != "" && nested != c.CookieSecret {
		problem("cookie_secret: differs from server.cookie_secret; keep one of them")
	}
	if len(c.CookieSecret) != cookieSecretLength {
		problem("cookie_secret: must have exactly %d characters, has %d", cookieSecretLength, len(c.CookieSecret))
	}
	if c.LogLevel == "" {
		c.LogLevel = "info"
	}
	if _, known := c.Level(); !known {
		problem("log_level: must be info, debug or warn, got %q", c.LogLevel)
	}
	if c.ListenAddr == "" {
		c.ListenAddr = "0.0.0.0:3000"
	}
	return errors.Join(problems...)
}

// Level is the log level of a configuration, and whether it is one.
func (c *Config) Level() (slog.Level, bool) {
	level, known := map[string]slog.Level{"info": slog.LevelInfo, "debug": slog.LevelDebug, "warn": slog.LevelWarn}[c.LogLevel]
	return level, known
}
