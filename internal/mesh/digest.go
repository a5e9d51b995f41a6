package mesh

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"net/netip"
)

// DigestForm is raised whenever Digest is made from something else.
const DigestForm = 3

// Digest is equal for equal snapshots and, but for luck, only for those. The
// digest of a page is kept with the page, so asking again costs what changed.
func (s *Snapshot) Digest() string {
	h := sha256.New()
	w := fields(nil).int(int64(s.Rev)).int(int64(s.Counters.User)).int(int64(s.Counters.Node)).
		int(int64(s.Counters.PreAuth)).int(int64(s.Counters.API)).int(int64(s.Counters.Login)).int(int64(s.Counters.Setting)).
		int(int64(s.Counters.Policy)).int(int64(s.Counters.SSHGrant)).int(int64(s.Counters.Route)).
		int(int64(s.Counters.Webhook)).int(int64(s.Counters.DeadLetter)).int(int64(s.Counters.Receipt)).addr(s.Counters.V4).addr(s.Counters.V6)
	h.Write(w)
	digestTable(h, &s.users, (*User).fields)
	digestTable(h, &s.nodes, (*Node).fields)
	digestTable(h, &s.preAuth, (*PreAuthKey).fields)
	digestTable(h, &s.api, (*APIKey).fields)
	digestTable(h, &s.logins, (*Login).fields)
	digestTable(h, &s.settings, (*Setting).fields)
	digestTable(h, &s.sshGrants, (*SSHGrant).fields)
	digestTable(h, &s.webhooks, (*Webhook).fields)
	digestTable(h, &s.facts, (*Facts).fields)
	digestTable(h, &s.receipts, (*Receipt).fields)
	h.Write(s.policySum[:])
	return hex.EncodeToString(h.Sum(nil))
}

func digestTable[V any](h hash.Hash, t *table[V], enc func(*V, fields) fields) {
	h.Write(fields(nil).int(int64(t.count)))
	var buf fields
	for p := range t.pages() {
		sum := p.sum.Load()
		if sum == nil {
			buf = buf[:0]
			for _, v := range p.vals {
				if v != nil {
					buf = enc(v, buf)
				}
			}
			fresh := sha256.Sum256(buf)
			sum = &fresh
			p.sum.Store(sum)
		}
		h.Write(sum[:])
	}
}

// fields is a byte form in which no two different values look alike.
type fields []byte

func (f fields) int(n int64) fields { return binary.AppendVarint(f, n) }

func (f fields) str(s string) fields {
	return append(binary.AppendUvarint(f, uint64(len(s))), s...)
}

func (f fields) bool(b bool) fields {
	if b {
		return append(f, 1)
	}
	return append(f, 0)
}

func (f fields) maybe(b *bool) fields {
	if b == nil {
		return append(f, 2)
	}
	return f.bool(*b)
}

func (f fields) raw(b []byte) fields { return append(binary.AppendUvarint(f, uint64(len(b))), b...) }

func (f fields) addr(a netip.Addr) fields {
	b, _ := a.MarshalBinary() // cannot fail
	return f.raw(b)
}

func (f fields) prefix(p netip.Prefix) fields { return f.str(p.String()) }

func list[E any](f fields, es []E, put func(fields, E) fields) fields {
	f = f.int(int64(len(es)))
	for _, e := range es {
		f = put(f, e)
	}
	return f
}

func (u *User) fields(f fields) fields {
	return f.int(int64(u.ID)).str(u.Name).str(u.DisplayName).str(u.Email).str(u.Provider).
		str(u.ProviderID).str(u.ProfilePicURL).int(int64(u.CreatedAt))
}

func (n *Node) fields(f fields) fields {
	machine, _ := n.MachineKey.MarshalText() // cannot fail
	f = f.int(int64(n.ID)).int(int64(n.Owner)).int(int64(n.CreatedBy)).
		raw(machine).raw(n.NodeKey.AppendTo(nil)).str(n.Hostname).str(n.Name).bool(n.Renamed).addr(n.IPv4).addr(n.IPv6)
	f = list(f, n.Tags, fields.str)
	f = f.str(string(n.Method)).int(int64(n.PreAuthKey)).bool(n.Ephemeral).
		str(n.OS).str(n.Arch).str(n.ClientVersion).int(int64(n.CapVersion)).str(n.Host)
	f = list(f, n.RoutableIPs, fields.prefix)
	f = list(f, n.Routes, fields.prefix)
	f = list(f, n.AllRoutes, func(f fields, r Route) fields {
		return f.int(int64(r.ID)).prefix(r.Prefix).bool(r.Enabled).bool(r.Decided).int(int64(r.ApprovedBy)).int(int64(r.Preference)).int(int64(r.CreatedAt)).int(int64(r.UpdatedAt))
	})
	f = list(f, n.Primary, fields.prefix).bool(n.Unwell)
	f = f.int(int64(n.Expiry)).bool(n.Lapsed).int(int64(n.CreatedAt)).int(int64(n.UpdatedAt))
	f = list(f, n.Net.Endpoints, func(f fields, a netip.AddrPort) fields { return f.str(a.String()) })
	return f.raw(n.Net.DiscoKey.AppendTo(nil)).int(int64(n.Net.HomeRelay)).bool(n.Presence.Online).
		str(n.Presence.Replica).int(n.Presence.Conn).int(int64(n.Presence.LastSeen))
}

func (k *PreAuthKey) fields(f fields) fields {
	f = f.int(int64(k.ID)).str(k.Prefix).raw(k.Hash[:]).int(int64(k.User)).bool(k.Reusable).bool(k.Ephemeral)
	f = list(f, k.Tags, fields.str).bool(k.Used).int(int64(k.Expiry)).int(int64(k.CreatedAt))
	return k.LastUse.fields(f)
}

func (k *APIKey) fields(f fields) fields {
	f = f.int(int64(k.ID)).str(k.Prefix).raw(k.Hash[:]).str(string(k.Role)).str(k.Comment)
	f = list(f, k.Scopes, fields.str).int(int64(k.Expiry)).int(int64(k.CreatedAt))
	return k.LastUse.fields(f)
}

func (u KeyUse) fields(f fields) fields { return f.int(int64(u.At)).str(u.From).int(u.Count) }

func (v *Facts) fields(f fields) fields {
	f = f.int(int64(v.Node)).int(int64(v.At)).maybe(v.UDP).maybe(v.IPv6).maybe(v.Varies).bool(v.PortMapped)
	f = list(f, v.PortMapping, fields.str)
	f = list(f, v.Latencies, func(f fields, l Latency) fields { return f.int(int64(l.Region)).int(l.Micros) })
	return list(f, v.Warnings, func(f fields, w Warning) fields { return f.str(w.Source).str(w.Text).int(int64(w.Since)) })
}

func (l *Login) fields(f fields) fields {
	machine, _ := l.MachineKey.MarshalText() // cannot fail
	return f.int(int64(l.ID)).raw(machine).raw(l.NodeKey.AppendTo(nil)).int(int64(l.User)).str(l.Rejected).int(int64(l.Until))
}

func (s *Setting) fields(f fields) fields {
	return f.int(int64(s.ID)).str(s.Key).str(s.Value).str(s.Source).bool(s.Pinned).int(int64(s.UpdatedAt))
}

func (p *Policy) fields(f fields) fields {
	return f.int(int64(p.Version)).str(p.Text).str(p.Source).str(p.Author).str(p.Reason).
		int(int64(p.SavedAt)).int(int64(p.ConfirmBy)).int(int64(p.RevertTo))
}

func (g *SSHGrant) fields(f fields) fields {
	return f.int(int64(g.ID)).int(int64(g.Src)).int(int64(g.Dst)).str(g.User).bool(g.Rejected).str(g.By).
		int(int64(g.Until)).int(int64(g.GrantedAt))
}
