package lang

import (
	"fmt"
	"math/bits"
	"net/netip"
	"strings"

	"github.com/tailscale/hujson"
)

// kinds is a set of kinds of target.
type kinds uint

// The kinds of target that each place accepts.
const (
	asPerson kinds = 1<<User | 1<<Group | 1<<Member | 1<<Admin
	asNode         = asPerson | 1<<Tag | 1<<Tagged

	asSource      = asNode | 1<<Any | 1<<Addresses | 1<<DangerAll
	asDestination = asNode | 1<<Any | 1<<Addresses | 1<<Self | 1<<Internet
	asShellSource = asNode | 1<<Any
	asShell       = asNode | 1<<Any | 1<<Addresses | 1<<Self
	asHolder      = asNode | 1<<Any | 1<<Addresses // of attributes
	asTestSource  = asNode | 1<<Any | 1<<Addresses
)

func (ks kinds) has(k Kind) bool { return ks&(1<<k) != 0 }

// String lists the kinds for a message.
func (ks kinds) String() string {
	forms := []string{
		Any: "*", User: "users", Group: "groups", Tag: "tags", Member: "autogroup:member", Tagged: "autogroup:tagged",
		Self: "autogroup:self", Internet: "autogroup:internet", DangerAll: "autogroup:danger-all", Addresses: "addresses",
		Admin: ownedByAdmins,
	}
	var names []string
	for ; ks != 0; ks &= ks - 1 {
		names = append(names, forms[bits.TrailingZeros(uint(ks))])
	}
	return strings.Join(names, ", ")
}

// targetsOf reads a list of targets.
func (r *reader) targetsOf(v hujson.Value, what string, allowed kinds) (targets []Target) {
	r.names(v, what, func(text string, at int) {
		if t, ok := r.target(text, at, what, allowed); ok {
			targets = append(targets, t)
		}
	})
	return targets
}

// target reads one target and checks that its kind is allowed there.
func (r *reader) target(text string, at int, what string, allowed kinds) (Target, bool) {
	if r.targets++; r.targets > maxTargets {
		if r.targets == maxTargets+1 {
			r.problem(at, "the policy has more than %d sources and destinations", maxTargets)
		}
		return Target{}, false
	}
	t, err := r.name(text)
	switch _, defined := r.doc.Groups[text]; {
	case err != nil:
		r.problem(at, "%s", err.Error())
		return Target{}, false
	case t.Kind == Group && !defined && !r.provided(text, at):
		return Target{}, false
	case !allowed.has(t.Kind):
		r.problem(at, "%s cannot be used in %s, which accepts %s", text, what, allowed)
		return Target{}, false
	}
	if t.Kind == Admin {
		r.usesAdmins(at)
	}
	t.Line = r.line(at)
	return t, true
}

// name returns the target that a text refers to.
func (r *reader) name(text string) (Target, error) {
	host, isHost := r.hosts[text]
	switch {
	case text == "*":
		return Target{Kind: Any, Name: text}, nil
	case strings.HasPrefix(text, PrefixGroup):
		return Target{Kind: Group, Name: text}, nil
	case strings.HasPrefix(text, PrefixTag):
		return r.tag(text)
	case strings.HasPrefix(text, prefixAutogroup):
		return autogroup(text)
	case strings.HasPrefix(text, prefixSet):
		if s, ok := r.sets[text]; ok {
			return Target{Kind: Addresses, Name: text, Prefixes: s.prefixes}, nil
		}
		return Target{}, r.noSet(text)
	case strings.HasPrefix(text, prefixService):
		return Target{}, fmt.Errorf("%s is not supported: this server does not offer Tailscale Services", text)
	case isHost:
		return Target{Kind: Addresses, Name: text, Prefixes: host}, nil
	case looksLikeAddress(text):
		prefix, err := parsePrefix(text)
		if kind, _, ok := strings.Cut(text, ":"); err != nil && ok {
			err = fmt.Errorf("%w%s", err, Nearest(kind+":", prefixes()))
		}
		return Target{Kind: Addresses, Name: text, Prefixes: []netip.Prefix{prefix}}, err
	case !userPattern.MatchString(text):
		return Target{}, fmt.Errorf("invalid name %q: use a user, group:, tag:, autogroup:, a host or an address", text)
	}
	return Target{Kind: User, Name: r.user(text)}, nil
}

func (r *reader) tag(text string) (Target, error) {
	if err := CheckTag(text); err != nil {
		return Target{}, err
	}
	if _, ok := r.doc.TagOwners[text]; !ok {
		return Target{}, fmt.Errorf("%s is not defined: add it to tagOwners%s", text, Nearest(text, known(r.doc.TagOwners)))
	}
	return Target{Kind: Tag, Name: text}, nil
}

func autogroup(text string) (Target, error) {
	switch text {
	case ownedByAll:
		return Target{Kind: Member, Name: text}, nil
	case ownedByAdmins:
		return Target{Kind: Admin, Name: text}, nil
	case "autogroup:tagged":
		return Target{Kind: Tagged, Name: text}, nil
	case "autogroup:self":
		return Target{Kind: Self, Name: text}, nil
	case "autogroup:internet":
		return Target{Kind: Internet, Name: text}, nil
	case "autogroup:danger-all":
		return Target{Kind: DangerAll, Name: text}, nil
	case NonRoot:
		return Target{}, fmt.Errorf("%s can be used only in the users of an ssh rule", text)
	case "autogroup:billing-admin", "autogroup:auditor", "autogroup:shared":
		return Target{}, fmt.Errorf("%s is not supported: use a group: of these users", text)
	case "autogroup:owner", "autogroup:it-admin", "autogroup:network-admin":
		return Target{}, fmt.Errorf("%s is not supported: use %s, or a group: of these users", text, ownedByAdmins)
	}
	return Target{}, fmt.Errorf("unknown %s%s", text, Nearest(text, []string{
		ownedByAll, ownedByAdmins, "autogroup:tagged", "autogroup:self", "autogroup:internet", "autogroup:danger-all", NonRoot,
	}))
}
