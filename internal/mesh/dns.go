package mesh

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

var domainPattern = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ParseDomain returns a domain in the form that is stored: lower case, without a
// trailing dot.
func ParseDomain(text string) (string, error) {
	d := strings.ToLower(strings.TrimSuffix(text, "."))
	if len(d) > 253 || !domainPattern.MatchString(d) {
		return "", errors.New("must be a domain such as mesh.example.com (for international names, use the xn-- form)")
	}
	return d, nil
}

// ErrPassword means that a URL contains credentials, which must not be stored or shown.
var ErrPassword = errors.New("must not contain a user name or password")

// ParseNameserver returns a nameserver in the form that is stored.
func ParseNameserver(text string) (string, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return a.String(), nil
	}
	if strings.Contains(text, "@") {
		return "", ErrPassword
	}
	if u, err := url.Parse(text); err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return "", errors.New("must be an IP address or an https:// URL")
	}
	return text, nil
}
