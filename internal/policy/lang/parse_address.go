package lang

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
	"go4.org/netipx"
)

// parsePrefix reads an address or a prefix. IPv6 may be in brackets.
func parsePrefix(text string) (netip.Prefix, error) {
	prefix, err := parseLoosePrefix(text)
	if err == nil && prefix != prefix.Masked() {
		return netip.Prefix{}, fmt.Errorf("invalid network %q: host bits are set; use %s, or the address alone",
			text, prefix.Masked())
	}
	return prefix, err
}

// parseLoosePrefix is like parsePrefix, but host bits may be set.
func parseLoosePrefix(text string) (netip.Prefix, error) {
	bare := text
	if inner, ok := strings.CutPrefix(bare, "["); ok {
		if bare, ok = strings.CutSuffix(inner, "]"); !ok {
			return netip.Prefix{}, fmt.Errorf("invalid address %q: the bracket is not closed", text)
		}
	}
	if !strings.Contains(bare, "/") {
		addr, err := parseAddr(bare)
		if err != nil {
			return netip.Prefix{}, err
		}
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(bare)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("invalid network %q: use CIDR notation such as 10.0.0.0/8 or fd00::/8", text)
	case prefix.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("%q is an IPv4-mapped IPv6 network: use IPv4", text)
	}
	return prefix, nil
}

func isAddress(text string) bool {
	_, err := parsePrefix(text)
	return err == nil
}

func parseAddr(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return netip.Addr{}, fmt.Errorf("invalid address %q", text)
	case addr.Is4In6():
		return netip.Addr{}, fmt.Errorf("%q is an IPv4-mapped IPv6 address: use %s", text, addr.Unmap())
	case addr.Zone() != "":
		return netip.Addr{}, fmt.Errorf("%q has a zone, which is meaningless to other nodes: use %s", text, addr.WithZone(""))
	}
	return addr, nil
}

// parseRange reads a range of addresses: two addresses separated by a hyphen.
func parseRange(text string) (netipx.IPRange, error) {
	first, last, _ := strings.Cut(text, "-")
	from, err := parseAddr(strings.TrimSpace(first))
	if err != nil {
		return netipx.IPRange{}, err
	}
	to, err := parseAddr(strings.TrimSpace(last))
	if err != nil {
		return netipx.IPRange{}, err
	}
	between := netipx.IPRangeFrom(from, to)
	if !between.IsValid() {
		return between, fmt.Errorf("invalid range %q: use two addresses of the same IP version, in ascending order", text)
	}
	return between, nil
}

// ipset is a named set of addresses.
type ipset struct {
	steps []setStep
	// prefixes are masked, sorted and do not overlap. They are set once the ipset is
	// resolved.
	prefixes []netip.Prefix
	resolved bool
}

// setStep is one entry of an ipset. Entries apply in order.
type setStep struct {
	remove bool
	text   string
	at     int
}

func (r *reader) readSets(v hujson.Value) {
	r.sets = map[string]*ipset{}
	var order []string
	var chain []link
	r.members(v, memberSets, func(name string, key, value hujson.Value) {
		if !setPattern.MatchString(name) {
			r.problem(key.StartOffset, "invalid ipset %q: use ipset: followed by a name, such as ipset:office", name)
			return
		}
		s := &ipset{}
		r.names(value, name, func(text string, at int) {
			step := setStep{text: text, at: at}
			if rest, ok := strings.CutPrefix(text, "remove "); ok {
				step.text, step.remove = rest, true
			} else if rest, ok := strings.CutPrefix(text, "add "); ok {
				step.text = rest
			}
			step.text = strings.TrimSpace(step.text)
			if strings.HasPrefix(step.text, prefixSet) {
				chain = append(chain, link{name, step.text, at})
			}
			s.steps = append(s.steps, step)
		})
		r.sets[name], order = s, append(order, name)
	})
	before := len(r.problems)
	r.cycles(chain, "ipsets contain each other", " contains ")
	if len(r.problems) > before {
		return
	}
	for _, name := range order {
		r.resolve(r.sets[name])
	}
}

// resolve computes the addresses of an ipset. There must be no cycles.
func (r *reader) resolve(s *ipset) {
	if s.resolved || r.setSteps > maxSetSteps {
		return
	}
	s.resolved = true
	var b netipx.IPSetBuilder
	var size int
	var removing bool
	for _, step := range s.steps {
		ranges, err := r.operand(step.text)
		if err != nil {
			r.problem(step.at, "%s", err.Error())
			continue
		}
		steps := len(ranges)
		if size += len(ranges); step.remove != removing {
			steps += size // after a switch between adding and removing, the builder processes all ranges again
		}
		if !r.buildSteps(steps, step.at) {
			return
		}
		removing = step.remove
		for _, between := range ranges {
			if removing {
				b.RemoveRange(between)
			} else {
				b.AddRange(between)
			}
		}
	}
	built, err := b.IPSet()
	if err != nil {
		return // every range was checked
	}
	if s.prefixes = built.Prefixes(); len(s.steps) > 0 {
		r.buildSteps(len(s.prefixes), s.steps[0].at)
	}
}

// buildSteps counts the cost of building ipsets. It returns false once the limit is
// exceeded.
func (r *reader) buildSteps(n, at int) bool {
	if r.setSteps > maxSetSteps {
		return false
	}
	if r.setSteps += n; r.setSteps > maxSetSteps {
		r.problem(at, "the ipsets are too large: they take more than %d steps to build", maxSetSteps)
		return false
	}
	return true
}

// operand returns the addresses that an entry of an ipset refers to.
func (r *reader) operand(text string) ([]netipx.IPRange, error) {
	var found []netip.Prefix
	other, isSet := r.sets[text]
	host, isHost := r.hosts[text]
	switch {
	case isSet:
		r.resolve(other)
		found = other.prefixes
	case isHost:
		found = host
	case strings.HasPrefix(text, prefixSet):
		return nil, r.noSet(text)
	case hasPrefix(text), !looksLikeAddress(text):
		return nil, fmt.Errorf("%q cannot be part of an ipset: use an address, a network, a range, a host or another ipset", text)
	case strings.Contains(text, "-"):
		between, err := parseRange(text)
		return []netipx.IPRange{between}, err
	default:
		prefix, err := parsePrefix(text)
		if err != nil {
			return nil, err
		}
		found = []netip.Prefix{prefix}
	}
	ranges := make([]netipx.IPRange, 0, len(found))
	for _, p := range found {
		ranges = append(ranges, netipx.RangeOfPrefix(p))
	}
	return ranges, nil
}

func (r *reader) noSet(name string) error {
	return fmt.Errorf("%s is not defined: add it to ipsets%s", name, Nearest(name, known(r.sets)))
}

func hasPrefix(text string) bool {
	return slices.ContainsFunc(prefixes(), func(p string) bool { return strings.HasPrefix(text, p) })
}

// looksLikeAddress reports whether a text is meant to be an address or a prefix. Names
// of users and hosts begin with a letter and contain neither ":" nor "/".
func looksLikeAddress(text string) bool {
	return text != "" && !strings.Contains(text, "@") &&
		(text[0] >= '0' && text[0] <= '9' || strings.ContainsAny(text, ":/["))
}
