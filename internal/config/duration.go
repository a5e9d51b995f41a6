package config

import (
	"errors"
	"math"
	"strings"
	"time"
)

// ParseDuration parses a duration with Go's units (ns, us, ms, s, m, h) and with d, w and y, alone or
// combined: 90d, 1d12h, 1.5h. A day is 24 hours, a week 7 days, a year 365 days, regardless of the calendar.
// A bare 0 is accepted. Signs and durations over about 292 years are not. Errors do not quote s; the caller
// does.
func ParseDuration(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	if strings.HasPrefix(s, "-") {
		return 0, errors.New("must not be negative")
	}
	if s == "" {
		return 0, errDuration
	}
	var total time.Duration
	for rest := s; rest != ""; {
		number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789."))]
		rest = rest[len(number):]
		unit := rest
		if i := strings.IndexAny(rest, "0123456789."); i >= 0 {
			unit = rest[:i]
		}
		rest = rest[len(unit):]

		hours := map[string]time.Duration{"d": 24, "w": 7 * 24, "y": 365 * 24}[unit]
		if hours != 0 {
			unit = "h"
		} else {
			hours = 1
		}
		part, err := time.ParseDuration(number + unit)
		if err != nil || part < 0 || number == "" {
			return 0, errDuration
		}
		if part > math.MaxInt64/hours || part*hours > math.MaxInt64-total {
			return 0, errors.New("must be at most 292 years")
		}
		total += part * hours
	}
	return total, nil
}

var errDuration = errors.New("use a number and a unit, such as 30s, 24h, 90d, 2w or 1y")
