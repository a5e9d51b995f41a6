package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

var versionPattern = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func parseText(s string) (string, error) {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("must be a single line without control characters")
	}
	return s, nil
}

func parseSocketPath(s string) (string, error) {
	if !strings.HasPrefix(s, "/") || len(s) > 107 {
		return "", errors.New("must be an absolute path of at most 107 bytes, the limit of the operating system")
	}
	return parseText(s)
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, wrongType("must be true or false")
}

func parseWhole(least, most int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if errors.Is(err, strconv.ErrSyntax) {
			return 0, wrongType("must be a whole number")
		}
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("must be from %d to %d", least, most)
		}
		return n, nil
	}
}

func parseLimited(least, most time.Duration) func(string) (time.Duration, error) {
	return func(s string) (time.Duration, error) {
		d, err := ParseDuration(s)
		switch {
		case err != nil:
			return 0, wrongType("must be a duration such as 30s, 24h, 90d, 2w or 1y")
		case d < least:
			return 0, fmt.Errorf("must be at least %s", least)
		case most > 0 && d > most:
			return 0, fmt.Errorf("must be at most %s", most)
		}
		return d, nil
	}
}

func parseWord(words []string) func(string) (string, error) {
	return func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", errors.New("must be " + choice(words))
		}
		return s, nil
	}
}

// choice joins words as in prose: a, b or c.
func choice(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// parseDatabaseType also accepts sqlite3, as Headscale does.
func parseDatabaseType(s string) (string, error) {
	if s == "sqlite3" {
		return "sqlite", nil
	}
	return parseWord([]string{"sqlite", "postgres"})(s)
}

// parseSSLMode accepts libpq's modes, and true and false for two of them.
func parseSSLMode(words []string) func(string) (string, error) {
	return func(s string) (string, error) {
		switch s {
		case "true":
			return "require", nil
		case "false":
			return "disable", nil
		}
		return parseWord(words)(s)
	}
}

func parseHostPort(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || strings.ContainsAny(host, " /") {
		return "", errors.New("must be host:port, such as 0.0.0.0:8080 or [::]:8080")
	}
	return s, nil
}

// ParseDomain returns a domain in the form that the configuration has.
func ParseDomain(s string) (string, error) { return mesh.ParseDomain(s) }

// parseHTTPListener also accepts Headscale's default, ":http".
func parseHTTPListener(s string) (string, error) {
	if host, ok := strings.CutSuffix(s, ":http"); ok {
		s = host + ":80"
	}
	return parseHostPort(s)
}

// parsePostgresHost accepts a host with or without a port. It never quotes an invalid value, because a
// connection string put here by mistake contains the password.
func parsePostgresHost(s string) (string, error) {
	host := s
	if h, port, err := net.SplitHostPort(s); err == nil && !strings.Contains(s, "/") {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return "", unquotable("the port after the host name must be a number from 1 to 65535; user and password have their own keys")
		}
		host = h
	}
	_, err := netip.ParseAddr(host)
	if host == "" || err != nil && strings.ContainsAny(host, ": '\\@=[]") {
		return "", unquotable("must be a host name or an address, each with or without a port (db1:5433), or a socket directory; user and password have their own keys")
	}
	return parseText(s)
}

func parseURL(schemes ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		if strings.Contains(s, "@") {
			return "", unquotable("must not contain a user name or password")
		}
		u, err := url.Parse(s)
		if err != nil || !slices.Contains(schemes, u.Scheme) || u.Hostname() == "" {
			return "", fmt.Errorf("must be an absolute URL that begins with %s://", strings.Join(schemes, ":// or "))
		}
		return s, nil
	}
}

// parseServerURL rejects a path, because clients use fixed paths below the host whatever path they are given.
func parseServerURL(s string) (string, error) {
	if _, err := parseURL("http", "https")(s); err != nil {
		return "", err
	}
	u, err := url.Parse(s)
	if err != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("must be scheme and host only, such as https://mesh.example.com")
	}
	return u.Scheme + "://" + u.Host, nil
}

// replicaNamePattern matches what is readable in a table and fits into a heartbeat.
var replicaNamePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func parseReplicaName(s string) (string, error) {
	if !replicaNamePattern.MatchString(s) {
		return "", errors.New("must start with a letter or digit, and have at most 63 letters, digits, dots, hyphens and underscores")
	}
	return s, nil
}

// parseMeshPrefix accepts a range inside the one that clients accept.
func parseMeshPrefix(outer netip.Prefix) func(string) (netip.Prefix, error) {
	return func(s string) (netip.Prefix, error) {
		p, err := netip.ParsePrefix(s)
		switch {
		case err != nil:
			return p, fmt.Errorf("must be an address range such as %s", outer)
		case p.Bits() < outer.Bits() || !outer.Contains(p.Addr()):
			return p, fmt.Errorf("must be inside %s, because clients drop all other addresses", outer)
		case p != p.Masked():
			return p, fmt.Errorf("host bits are set: use %s", p.Masked())
		case p.Addr().BitLen()-p.Bits() < 2:
			return p, errors.New("is too small for node addresses")
		}
		return p, nil
	}
}

func parseProxy(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, errors.New("must be an address or a range, such as 127.0.0.1 or 10.0.0.0/8")
	}
	return p.Masked(), nil
}

// parseServerAddress parses an address at which clients reach the server.
func parseServerAddress(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
		return netip.Addr{}, errors.New("must be an IP address at which clients reach the server, such as 203.0.113.10")
	}
	return a.Unmap(), nil
}

func parseAddr(family func(netip.Addr) bool, takes string) func(string) (netip.Addr, error) {
	return func(s string) (netip.Addr, error) {
		a, err := netip.ParseAddr(s)
		if err != nil || !family(a) || a.Zone() != "" {
			return netip.Addr{}, errors.New("must be " + takes)
		}
		return a, nil
	}
}

// parseBaseDomain leaves room for a node's label, because a name has at most 253 bytes.
func parseBaseDomain(s string) (string, error) {
	if len(s) > 253-64 {
		return "", errors.New("must be at most 189 bytes, to leave room for node names")
	}
	return mesh.ParseDomain(s)
}

func parseNameserver(s string) (string, error) {
	parsed, err := mesh.ParseNameserver(s)
	if errors.Is(err, mesh.ErrPassword) {
		err = unquotable(err.Error())
	}
	return parsed, err
}

func parseVersion(s string) (string, error) {
	if !versionPattern.MatchString(s) {
		return "", errors.New("must be a version such as 0.28.0")
	}
	return s, nil
}
