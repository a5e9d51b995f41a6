package config

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// A value reads one YAML node into a field of a Config and formats the field.
type value struct {
	takes      string // completes "must be …"
	structured bool   // the environment variable holds YAML
	read       func(n *yaml.Node, fail failFunc)
	show       func() any
}

// failFunc reports an error about n, which is below the key at the given suffix, such as [2], or is the key's
// value itself if the suffix is empty.
type failFunc func(n *yaml.Node, suffix string, err error)

// wrongType is an error about the type of a value rather than its content.
type wrongType string

func (e wrongType) Error() string { return string(e) }

// unquotable is an error about a text that must not be quoted.
type unquotable string

func (e unquotable) Error() string { return string(e) }

// scalar returns a single-line value. The errors of parse complete "must …".
func scalar[T any](dst *T, takes string, parse func(string) (T, error)) value {
	return value{
		takes: takes,
		show:  func() any { return *dst },
		read: func(n *yaml.Node, fail failFunc) {
			if v, ok := parsed(n, "", takes, parse, fail); ok {
				*dst = v
			}
		},
	}
}

// list returns a value that is a YAML list, or one string with comma-separated elements.
func list[T any](dst *[]T, takes string, parse func(string) (T, error)) value {
	return value{
		takes: "a list of " + takes,
		show:  func() any { return *dst },
		read:  func(n *yaml.Node, fail failFunc) { *dst = elements(n, "", takes, parse, fail) },
	}
}

func elements[T any](n *yaml.Node, suffix, takes string, parse func(string) (T, error), fail failFunc) []T {
	var nodes []*yaml.Node
	switch n.Kind {
	case yaml.SequenceNode:
		nodes = n.Content
	case yaml.ScalarNode:
		for text := range strings.SplitSeq(n.Value, ",") {
			if text = strings.TrimSpace(text); text != "" {
				nodes = append(nodes, &yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: n.Line})
			}
		}
	default:
		fail(n, suffix, wrongType("must be a list of "+takes+", got "+kindOf(n)))
	}
	var out []T
	for i, e := range nodes {
		if v, ok := parsed(e, fmt.Sprintf("%s[%d]", suffix, i), takes, parse, fail); ok {
			out = append(out, v)
		}
	}
	return out
}

func parsed[T any](n *yaml.Node, suffix, takes string, parse func(string) (T, error), fail failFunc) (T, bool) {
	if n.Kind != yaml.ScalarNode {
		fail(n, suffix, wrongType("must be "+takes+", got "+kindOf(n)))
		return *new(T), false
	}
	v, err := parse(n.Value)
	switch {
	case err == nil:
		return v, true
	case errors.As(err, new(unquotable)):
		fail(n, suffix, err)
	case errors.As(err, new(wrongType)):
		fail(n, suffix, wrongType(fmt.Sprintf("%v, got %.100q", err, n.Value)))
	default:
		fail(n, suffix, fmt.Errorf("%w, got %.100q", err, n.Value))
	}
	return v, false
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (aliases are not supported; quote a value that begins with *)"
	default:
		return "text"
	}
}

// pairs yields the names and values of a mapping.
func pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(name, v *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

func text(dst *string) value     { return scalar(dst, "text", parseText) }
func filePath(dst *string) value { return scalar(dst, "a file path", parseText) }
func boolean(dst *bool) value    { return scalar(dst, "true or false", parseBool) }
func hostPort(dst *string) value { return scalar(dst, "host:port", parseHostPort) }

// secret accepts any text, so that no error message needs to quote it.
func secret(dst *Secret) value {
	return scalar(dst, "text", func(s string) (Secret, error) { return Secret(s), nil })
}

func whole(dst *int, least, most int) value {
	return scalar(dst, fmt.Sprintf("a whole number from %d to %d", least, most), parseWhole(least, most))
}

func seconds(dst *time.Duration, least, most int) value {
	v := scalar(dst, fmt.Sprintf("a whole number of seconds from %d to %d", least, most), func(s string) (time.Duration, error) {
		n, err := parseWhole(least, most)(s)
		return time.Duration(n) * time.Second, err
	})
	v.show = func() any { return int(dst.Seconds()) }
	return v
}

// duration returns a value that is a duration from least to most. If most is 0, there is no upper limit.
func duration(dst *time.Duration, least, most time.Duration) value {
	v := scalar(dst, "a duration", parseLimited(least, most))
	v.show = func() any { return dst.String() }
	return v
}

func oneOf(dst *string, words ...string) value {
	return scalar(dst, choice(words), parseWord(words))
}

func sslMode(dst *string) value {
	words := []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}
	return scalar(dst, choice(words), parseSSLMode(words))
}

func level(dst *slog.Level) value {
	words := []string{"trace", "debug", "info", "warn", "error"}
	levels := []slog.Level{LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	v := scalar(dst, choice(words), func(s string) (slog.Level, error) {
		_, err := parseWord(words)(s)
		return levels[max(0, slices.Index(words, s))], err
	})
	v.show = func() any { return words[max(0, slices.Index(levels, *dst))] }
	return v
}

// perDomain returns a value that is a section, which maps domains to lists of nameservers.
func perDomain(dst *map[string][]string) value {
	const takes = "a section of domains, each with a list of nameservers"
	read := func(n *yaml.Node, fail failFunc) {
		if n.Kind != yaml.MappingNode {
			fail(n, "", wrongType("must be "+takes+", got "+kindOf(n)))
			return
		}
		servers := map[string][]string{}
		for name, v := range pairs(n) {
			d, ok := parsed(name, "", "a domain", mesh.ParseDomain, fail)
			if _, twice := servers[d]; ok && twice {
				fail(name, "."+d, errors.New("is listed twice; remove one"))
			}
			servers[d] = elements(v, "."+name.Value, "IP addresses or https URLs", parseNameserver, fail)
		}
		if *dst = servers; len(servers) == 0 {
			*dst = nil
		}
	}
	return value{takes: takes, structured: true, read: read, show: func() any { return *dst }}
}

// records returns a value that is a list of sections, each with a name, a type and an address.
func records(dst *[]Record) value {
	const takes = "a list of {name, type, value}"
	read := func(n *yaml.Node, fail failFunc) {
		*dst = nil
		if n.Kind != yaml.SequenceNode {
			fail(n, "", wrongType("must be "+takes+", got "+kindOf(n)))
			return
		}
		for i, e := range n.Content {
			*dst = append(*dst, readRecord(e, fmt.Sprintf("[%d]", i), fail))
		}
	}
	return value{takes: takes, structured: true, read: read, show: func() any { return *dst }}
}

func readRecord(n *yaml.Node, suffix string, fail failFunc) (r Record) {
	if n.Kind != yaml.MappingNode {
		fail(n, suffix, wrongType("must be {name, type, value}, got "+kindOf(n)))
		return r
	}
	fields := map[string]*yaml.Node{}
	for name, v := range pairs(n) {
		if _, twice := fields[name.Value]; twice || !slices.Contains([]string{"name", "type", "value"}, name.Value) {
			fail(name, suffix, fmt.Errorf("must have name, type and value once each, got %.100q", name.Value))
			return r
		}
		fields[name.Value] = v
	}
	if len(fields) < 3 {
		fail(n, suffix, errors.New("must have name, type and value"))
		return r
	}
	r.Name, _ = parsed(fields["name"], suffix+".name", "a domain", mesh.ParseDomain, fail)
	r.Type, _ = parsed(fields["type"], suffix+".type", "A or AAAA", parseWord([]string{"A", "AAAA"}), fail)
	family := map[string]func(netip.Addr) bool{"A": netip.Addr.Is4, "AAAA": netip.Addr.Is6}[r.Type]
	if family != nil {
		r.Value, _ = parsed(fields["value"], suffix+".value", "an address", parseAddr(family, "an address that matches the type"), fail)
	}
	return r
}
