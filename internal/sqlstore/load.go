package sqlstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// loader reads one table into a draft. At fifty thousand rows what counts is
// how much is allocated for each: all rows go through the same variables, and
// text that is parsed never becomes a string. A loader serves one Load.
type loader struct {
	table string
	query string
	row   []any             // where a row is scanned to, its id first
	put   func(*mesh.Draft) // copies what was scanned
}

func (l loader) read(d *mesh.Draft, rows rowsReader) error {
	for rows.Next() {
		if err := rows.Scan(l.row...); err != nil {
			return fmt.Errorf("loading %s: %w", l.table, err)
		}
		if id := *l.row[0].(*int64); id <= 0 || id > mesh.MaxID {
			return fmt.Errorf("loading %s: no row can have the id %d; restore a backup", l.table, id)
		}
		l.put(d)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("loading %s: %w", l.table, err)
	}
	return nil
}

// loaders are in the order in which the tables are read: nodes and keys before
// what completes them. Each mirrors a case of add: same columns, same order. Ids and
// times are scanned as plain integers, which spares the drivers reflection.
func (s *schema) loaders() []loader {
	return []loader{
		s.loadUsers(), s.loadNodes(), s.loadNet(), s.loadPreAuth(), s.loadAPI(), s.loadLogins(), s.loadSettings(), s.loadPolicy(), s.loadSSHGrants(), s.loadWebhooks(), s.loadProgress(),
		s.loadFacts(), s.loadPreAuthUses(), s.loadAPIUses(), s.loadReceipts(),
	}
}

func (s *schema) loadUsers() loader {
	var u mesh.User
	row := []any{(*int64)(&u.ID), &u.Name, &u.DisplayName, &u.Email, &u.Provider, &u.ProviderID, &u.ProfilePicURL, (*int64)(&u.CreatedAt)}
	return loader{"users", s.users.selectAll(), row, func(d *mesh.Draft) {
		user := u
		d.Apply(0, mesh.UserPut{User: &user})
	}}
}

func (s *schema) loadNodes() loader {
	var n mesh.Node
	var renamed, ephemeral, capVersion, lapsed, unwell int64
	routes := parsed(func(text []byte) error {
		if n.AllRoutes = nil; len(text) == 0 {
			return nil
		}
		return json.Unmarshal(text, &n.AllRoutes)
	})
	row := []any{
		(*int64)(&n.ID), (*int64)(&n.Owner), (*int64)(&n.CreatedBy), parsed(n.MachineKey.UnmarshalText), parsed(n.NodeKey.UnmarshalText),
		&n.Hostname, &n.Name, &renamed, parsed(n.IPv4.UnmarshalText), parsed(n.IPv6.UnmarshalText), list(&n.Tags, asIs),
		(*string)(&n.Method), (*int64)(&n.PreAuthKey), &ephemeral, &n.OS, &n.Arch, &n.ClientVersion, &capVersion, &n.Host, list(&n.RoutableIPs, netip.ParsePrefix),
		list(&n.Routes, netip.ParsePrefix), routes, list(&n.Primary, netip.ParsePrefix), &unwell, (*int64)(&n.Expiry), &lapsed, (*int64)(&n.CreatedAt), (*int64)(&n.UpdatedAt),
	}
	return loader{"nodes", s.nodes.selectAll(), row, func(d *mesh.Draft) {
		node := n
		node.Renamed, node.Ephemeral, node.CapVersion, node.Lapsed = renamed != 0, ephemeral != 0, int(capVersion), lapsed != 0
		node.Unwell = unwell != 0
		d.LoadNode(&node)
	}}
}

func (s *schema) loadNet() loader {
	var id mesh.NodeID
	var net mesh.Net
	var p mesh.Presence
	var relay, online int64
	disco := parsed(func(text []byte) error {
		if net.DiscoKey = (key.DiscoPublic{}); len(text) == 0 {
			return nil
		}
		return net.DiscoKey.UnmarshalText(text)
	})
	row := []any{
		(*int64)(&id), list(&net.Endpoints, netip.ParseAddrPort), disco, &relay,
		&online, &p.Replica, &p.Conn, (*int64)(&p.LastSeen),
	}
	query := "SELECT " + s.net.names() + ", " + strings.TrimPrefix(s.presence.names(), "id, ") + " FROM node_net"
	return loader{"node_net", query, row, func(d *mesh.Draft) {
		net.HomeRelay, p.Online = int(relay), online != 0
		d.LoadNet(id, net, p)
	}}
}

func (s *schema) loadPreAuth() loader {
	var k mesh.PreAuthKey
	var hash []byte
	var reusable, ephemeral, used int64
	row := []any{
		(*int64)(&k.ID), &k.Prefix, &hash, (*int64)(&k.User), &reusable, &ephemeral, list(&k.Tags, asIs), &used,
		(*int64)(&k.Expiry), (*int64)(&k.CreatedAt),
	}
	return loader{"preauth_keys", s.preAuth.selectAll(), row, func(d *mesh.Draft) {
		key := k
		copy(key.Hash[:], hash)
		key.Reusable, key.Ephemeral, key.Used = reusable != 0, ephemeral != 0, used != 0
		d.Apply(0, mesh.PreAuthKeyPut{Key: &key})
	}}
}

func (s *schema) loadAPI() loader {
	var k mesh.APIKey
	var hash []byte
	row := []any{(*int64)(&k.ID), &k.Prefix, &hash, (*string)(&k.Role), list(&k.Scopes, asIs), &k.Comment, (*int64)(&k.Expiry), (*int64)(&k.CreatedAt)}
	return loader{"api_keys", s.api.selectAll(), row, func(d *mesh.Draft) {
		key := k
		copy(key.Hash[:], hash)
		d.Apply(0, mesh.APIKeyPut{Key: &key})
	}}
}

func (s *schema) loadLogins() loader {
	var l mesh.Login
	row := []any{
		(*int64)(&l.ID), parsed(l.MachineKey.UnmarshalText), parsed(l.NodeKey.UnmarshalText), (*int64)(&l.User), &l.Rejected, (*int64)(&l.Until),
	}
	return loader{"logins", s.logins.selectAll(), row, func(d *mesh.Draft) {
		login := l
		d.Apply(0, mesh.LoginPut{Login: &login})
	}}
}

func (s *schema) loadSettings() loader {
	var v mesh.Setting
	var pinned int64
	row := []any{(*int64)(&v.ID), &v.Key, &v.Value, &v.Source, &pinned, (*int64)(&v.UpdatedAt)}
	return loader{"settings", s.settings.selectAll(), row, func(d *mesh.Draft) {
		setting := v
		setting.Pinned = pinned != 0
		d.Apply(0, mesh.SettingPut{Setting: &setting})
	}}
}

// loadPolicy reads the newest version alone.
func (s *schema) loadPolicy() loader {
	var p mesh.Policy
	return loader{"policies", s.policies.selectAll() + " ORDER BY id DESC LIMIT 1", policyRow(&p), func(d *mesh.Draft) {
		policy := p
		d.Apply(0, mesh.PolicyPut{Policy: &policy})
	}}
}

func (s *schema) loadSSHGrants() loader {
	var g mesh.SSHGrant
	var rejected int64
	row := []any{
		(*int64)(&g.ID), (*int64)(&g.Src), (*int64)(&g.Dst), &g.User, &rejected, &g.By, (*int64)(&g.Until), (*int64)(&g.GrantedAt),
	}
	return loader{"ssh_grants", s.sshGrants.selectAll(), row, func(d *mesh.Draft) {
		grant := g
		grant.Rejected = rejected != 0
		d.Apply(0, mesh.SSHGrantPut{Grant: &grant})
	}}
}

func (s *schema) loadWebhooks() loader {
	var w mesh.Webhook
	var disabled int64
	row := []any{
		(*int64)(&w.ID), &w.URL, &w.Description, list(&w.Events, asIs), &disabled, &w.Salt, (*int64)(&w.CreatedAt), (*int64)(&w.UpdatedAt),
	}
	return loader{"webhooks", s.webhooks.selectAll(), row, func(d *mesh.Draft) {
		hook := w
		hook.Disabled = disabled != 0
		d.Apply(0, mesh.WebhookPut{Webhook: &hook})
	}}
}

func (s *schema) loadProgress() loader {
	var id, index, failures int64
	var p mesh.WebhookProgress
	row := []any{
		&id, (*int64)(&p.Rev), &index, &p.Replica, (*int64)(&p.Until), &failures, (*int64)(&p.LastSuccess), (*int64)(&p.LastFailure), &p.LastAnswer,
	}
	return loader{"webhook_progress", s.progress.selectAll(), row, func(d *mesh.Draft) {
		progress := p
		progress.Index, progress.Failures = int(index), int(failures)
		d.Apply(0, mesh.WebhookMoved{ID: mesh.WebhookID(id), Progress: progress})
	}}
}

func (s *schema) loadFacts() loader {
	var id int64
	var f mesh.Facts
	facts := parsed(func(text []byte) error {
		f = mesh.Facts{}
		return json.Unmarshal(text, &f)
	})
	return loader{"node_facts", s.facts.selectAll(), []any{&id, facts}, func(d *mesh.Draft) {
		facts := f
		d.Apply(0, mesh.NodeFacts{Facts: &facts})
	}}
}

func (s *schema) loadPreAuthUses() loader {
	var e mesh.PreAuthKeyUsed
	row := []any{(*int64)(&e.ID), (*int64)(&e.Use.At), &e.Use.From, &e.Use.Count}
	return loader{"preauth_key_uses", s.preAuthUses.selectAll(), row, func(d *mesh.Draft) { d.Apply(0, e) }}
}

func (s *schema) loadAPIUses() loader {
	var e mesh.APIKeyUsed
	row := []any{(*int64)(&e.ID), (*int64)(&e.Use.At), &e.Use.From}
	return loader{"api_key_uses", s.apiUses.selectAll(), row, func(d *mesh.Draft) { d.Apply(0, e) }}
}

func (s *schema) loadReceipts() loader {
	var m mesh.Receipt
	var key, request []byte
	row := []any{(*int64)(&m.ID), &m.Owner, &key, &request, (*int64)(&m.Rev), &m.Object, &m.Answer, (*int64)(&m.Until)}
	return loader{"receipts", s.receipts.selectAll(), row, func(d *mesh.Draft) {
		receipt := m
		copy(receipt.Key[:], key)
		copy(receipt.Request[:], request)
		d.Apply(0, mesh.Remembered{Receipt: &receipt})
	}}
}

// policyRow is where a row of policies is scanned to.
func policyRow(p *mesh.Policy) []any {
	return []any{
		(*int64)(&p.Version), &p.Text, &p.Source, &p.Author, &p.Reason, (*int64)(&p.SavedAt), (*int64)(&p.ConfirmBy), (*int64)(&p.RevertTo),
	}
}

func (in *insert) selectAll() string { return "SELECT " + in.names() + " FROM " + in.table }

// textParser takes a text column from either driver.
type textParser struct{ parse func([]byte) error }

func parsed(parse func([]byte) error) *textParser { return &textParser{parse} }

// ScanBytes implements pgtype.BytesScanner.
func (p *textParser) ScanBytes(text []byte) error { return p.parse(text) }

// Scan implements sql.Scanner.
func (p *textParser) Scan(value any) error {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("found %T where text belongs", value)
	}
	return p.parse([]byte(text))
}

// list parses what join and joinText wrote.
func list[T any](into *[]T, parse func(string) (T, error)) *textParser {
	return parsed(func(text []byte) error {
		*into = nil
		if len(text) == 0 {
			return nil
		}
		*into = make([]T, 0, 1+bytes.Count(text, []byte(",")))
		for part := range strings.SplitSeq(string(text), ",") {
			v, err := parse(part)
			if err != nil {
				return err
			}
			*into = append(*into, v)
		}
		return nil
	})
}

func asIs(s string) (string, error) { return s, nil }
