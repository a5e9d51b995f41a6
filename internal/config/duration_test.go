package config

import (
	"strings"
	"testing"
	"time"
)

func TestParseDurationTakesDaysWeeksAndYears(t *testing.T) {
	const day = 24 * time.Hour
	for in, want := range map[string]time.Duration{
		"0":         0,
		"0s":        0,
		"0d":        0,
		"30s":       30 * time.Second,
		"1h30m":     90 * time.Minute,
		"1.5h":      90 * time.Minute,
		"100ms":     100 * time.Millisecond,
		"5µs":       5 * time.Microsecond,
		"1d":        day,
		"0.5d":      12 * time.Hour,
		"1d12h":     36 * time.Hour,
		"12h1d":     36 * time.Hour,
		"1w":        7 * day,
		"2w3d":      17 * day,
		"1y":        365 * day,
		"1y2w3d4h":  382*day + 4*time.Hour,
		"999d":      999 * day,
		"292y":      292 * 365 * day,
		"1d1d":      2 * day,
		"00000001d": day,
	} {
		got, err := ParseDuration(in)
		if err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
}

func TestParseDurationRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "use a number and a unit",
		" ":                    "use a number and a unit",
		"d":                    "use a number and a unit",
		"10":                   "use a number and a unit",
		"1d12":                 "use a number and a unit",
		"1 d":                  "use a number and a unit",
		"1D":                   "use a number and a unit",
		"1mo":                  "use a number and a unit",
		".d":                   "use a number and a unit",
		"1..5d":                "use a number and a unit",
		"+1d":                  "use a number and a unit",
		"1d-12h":               "use a number and a unit",
		"never":                "use a number and a unit",
		"-1d":                  "must not be negative",
		"293y":                 "must be at most 292 years",
		"292y365d":             "must be at most 292 years",
		"106751d24h":           "must be at most 292 years",
		"2562047h9000000000ms": "must be at most 292 years",
	} {
		got, err := ParseDuration(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseDuration(%q) = %v, %v; want an error with %q", in, got, err, want)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"1d12h", "292y", "-1s", "1.d", "9223372036854775807ns", "0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseDuration(s)
		if err == nil && got < 0 {
			t.Fatalf("ParseDuration(%q) = %v, negative", s, got)
		}
		if want, goErr := time.ParseDuration(s); goErr == nil && want >= 0 && s[0] != '+' && s[0] != '-' && (err != nil || got != want) {
			t.Fatalf("ParseDuration(%q) = %v, %v; Go reads %v", s, got, err, want)
		}
	})
}
