package bff

import (
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
)

var (
	// apiKeyForm matches text in the format of an API key.
	apiKeyForm = regexp.MustCompile(`^flk_[A-Za-z0-9]{12}_[A-Za-z0-9_-]{20,200}$`)
	// secretPart matches any key with its secret part within a text.
	secretPart = regexp.MustCompile(`(fl[ikps]_[A-Za-z0-9]{1,12}|hskey-[a-z]+-[A-Za-z0-9_-]{12})[_-][A-Za-z0-9_-]+`)
)

// NewLogger returns a logger that redacts secrets: those in the configuration by their value, and other
// people's keys by their format.
func NewLogger(w io.Writer, config Config) *slog.Logger {
	clean := redactor(config)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: config.LogLevel,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Value.Kind() {
			case slog.KindString:
				a.Value = slog.StringValue(clean(a.Value.String()))
			case slog.KindAny:
				if text := fmt.Sprint(a.Value.Any()); clean(text) != text {
					a.Value = slog.StringValue(clean(text))
				}
			default: // numbers and times
			}
			return a
		},
	}))
}

// redactor returns a function that removes secrets from a text.
func redactor(config Config) func(string) string {
	var pairs []string
	for _, secret := range []string{config.APIKey, config.CookieSecret} {
		if secret != "" {
			pairs = append(pairs, secret, mask(secret))
		}
	}
	values := strings.NewReplacer(pairs...)
	return func(text string) string {
		return secretPart.ReplaceAllString(values.Replace(text), "${1}_***")
	}
}

// mask returns a key as lists show it, without its secret, and hides any other secret completely.
func mask(secret string) string {
	if masked := secretPart.ReplaceAllString(secret, "${1}_***"); masked != secret {
		return masked
	}
	return "***"
}
