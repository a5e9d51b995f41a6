package control

import (
	"context"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// ClockRepair describes the effects of setting the time of a mesh back. Its lists
// contain objects by kind and name.
type ClockRepair struct {
	Was, Now mesh.Time // date of the newest change, before and after
	// Valid lists nodes, keys, sessions and invitations that had expired only because of the wrong clock and are
	// valid again.
	Valid []string
	// Revoked lists those that were expired by hand while the clock was ahead. They stay
	// expired.
	Revoked []string
	// Late lists those that were created, or joined again, while the clock was ahead. They
	// expire later than intended.
	Late []string
	// Lost lists nodes that were deleted and policy versions that were reverted because the
	// clock was ahead.
	Lost []string
	// Changes is how many audit entries are dated after Now. They stay.
	Changes int
}

// RepairClock sets the time of the mesh back to the database's clock after changes were
// made while a clock was ahead. Before it commits it calls agree, which may refuse.
func RepairClock(ctx context.Context, l *ledger.Ledger, h history.Reader, a mesh.Actor, agree func(ClockRepair) error) (ClockRepair, error) {
	var plan ClockRepair
	w, now := l.World(), l.Status().DatabaseTime()
	if e := l.Status().Clocks(); e != nil && e.Ahead != 0 {
		return plan, e // a person has to decide which of the two is right
	}
	if w.At <= now.Add(ledger.ClockSlack) {
		return plan, refuse(Conflict, "", "nothing to repair: the newest change is dated %s, and the clock says %s",
			w.At.Time().Format(time.RFC3339), now.Time().Format(time.RFC3339))
	}
	r, err := readFuture(ctx, h, now)
	if err != nil {
		return plan, err
	}
	_, plan = r.repair(w.Snapshot, now)
	if err := agree(plan); err != nil {
		return plan, err
	}
	_, err = l.CommitBack(ctx, a, func(now *policy.World, at mesh.Time) (evs []mesh.Event, err error) {
		if now.Rev != w.Rev {
			return nil, refuse(Conflict, "", "the database changed from revision %d to %d in the meantime: try again", w.Rev, now.Rev)
		}
		evs, plan = r.repair(now.Snapshot, at)
		return evs, nil
	})
	return plan, err
}

// future holds what the audit log contains about changes dated after now.
type future struct {
	touched map[string]map[mesh.Time]bool // by object: when it was changed
	lost    []string
	changes int
}

func readFuture(ctx context.Context, h history.Reader, now mesh.Time) (future, error) {
	const page = 1000
	f := future{touched: map[string]map[mesh.Time]bool{}}
	for q := (history.AuditQuery{From: now + 1, Newest: true, Limit: page}); ; {
		rows, err := h.Audit(ctx, q)
		if err != nil {
			return f, err
		}
		for _, row := range rows {
			object := row.Kind + " " + row.Object
			if f.touched[object] == nil {
				f.touched[object] = map[mesh.Time]bool{}
			}
			f.touched[object][row.At] = true
			if row.Actor.Kind == mesh.ActorServer && (row.Verb == "deleted" || row.Kind == "policy") {
				f.lost = append(f.lost, object)
			}
			f.changes++
			q.Before = row.Position
		}
		if len(rows) < page {
			return f, nil
		}
	}
}

// repair moves future dates back to now.
func (f future) repair(s *mesh.Snapshot, now mesh.Time) ([]mesh.Event, ClockRepair) {
	plan := ClockRepair{Was: s.At, Now: now, Lost: f.lost, Changes: f.changes}
	evs := []mesh.Event{mesh.ClockSet{Was: s.At}}
	evs = append(evs, f.repairNodes(s, now, &plan)...)
	evs = append(evs, f.repairKeys(s, now, &plan)...)
	evs = append(evs, repairPeople(s, now, &plan)...)
	return append(evs, repairOthers(s, now)...), plan
}

// expiry classifies the expiry of an object and returns the corrected one.
func (p *ClockRepair) expiry(name string, expiry mesh.Time, touched map[mesh.Time]bool, created bool) mesh.Time {
	switch {
	case expiry <= p.Now:
	case touched[expiry]: // expiring an object sets its expiry to the time of that change
		p.Revoked = append(p.Revoked, name)
		return p.Now
	case expiry <= p.Was:
		p.Valid = append(p.Valid, name)
	case created:
		p.Late = append(p.Late, name)
	}
	return expiry
}

func (f future) repairNodes(s *mesh.Snapshot, now mesh.Time, plan *ClockRepair) (evs []mesh.Event) {
	for n := range s.Nodes.All() {
		changed := *n
		changed.Expiry = plan.expiry("node "+n.Name, n.Expiry, f.touched["node "+n.ID.String()], n.UpdatedAt > now)
		changed.KeyExpired = n.KeyExpired && changed.Expired(now)
		changed.CreatedAt, changed.UpdatedAt = min(n.CreatedAt, now), min(n.UpdatedAt, now)
		if changed.Expiry != n.Expiry || changed.KeyExpired != n.KeyExpired || changed.CreatedAt != n.CreatedAt || changed.UpdatedAt != n.UpdatedAt {
			evs = append(evs, mesh.NodePut{Node: &changed})
		}
		switch p := n.Presence; {
		case p.LastSeen <= now:
		case p.Online:
			evs = append(evs, mesh.Online{ID: n.ID, Replica: p.Replica, Conn: p.Conn, At: now})
		default:
			evs = append(evs, mesh.Offline{ID: n.ID, At: now})
		}
		if facts, ok := s.Facts.Get(n.ID); ok && facts.At > now {
			seen := *facts
			seen.At = now
			evs = append(evs, mesh.NodeFacts{Facts: &seen})
		}
	}
	return evs
}

func (f future) repairKeys(s *mesh.Snapshot, now mesh.Time, plan *ClockRepair) (evs []mesh.Event) {
	for k := range s.APIKeys.All() {
		changed := *k
		changed.Expiry = plan.expiry("API key "+k.Prefix, k.Expiry, f.touched["apikey "+k.ID.String()], k.CreatedAt > now)
		changed.CreatedAt = min(k.CreatedAt, now)
		if changed.Expiry != k.Expiry || changed.CreatedAt != k.CreatedAt {
			evs = append(evs, mesh.APIKeyPut{Key: &changed})
		}
		if use := k.LastUse; use.At > now {
			use.At = now
			evs = append(evs, mesh.APIKeyUsed{ID: k.ID, Use: use})
		}
	}
	for v := range s.Sessions.All() {
		changed := *v
		changed.Expiry = plan.expiry("session "+v.ID.String(), v.Expiry, nil, v.CreatedAt > now)
		changed.CreatedAt = min(v.CreatedAt, now)
		if changed != *v {
			evs = append(evs, mesh.SessionPut{Session: &changed})
		}
		if use := v.LastUse; use.At > now {
			use.At = now
			evs = append(evs, mesh.SessionUsed{ID: v.ID, Use: use})
		}
	}
	for k := range s.PreAuthKeys.All() {
		changed := *k
		changed.Expiry = plan.expiry("pre-auth key "+k.Prefix, k.Expiry, f.touched["preauthkey "+k.ID.String()], k.CreatedAt > now)
		changed.CreatedAt = min(k.CreatedAt, now)
		if changed.Expiry != k.Expiry || changed.CreatedAt != k.CreatedAt {
			evs = append(evs, mesh.PreAuthKeyPut{Key: &changed})
		}
		if use := k.LastUse; use.At > now {
			use.At = now
			evs = append(evs, mesh.PreAuthKeyUsed{ID: k.ID, Use: use})
		}
	}
	return evs
}

// repairPeople corrects when people and groups were created, users were suspended and
// passkeys were used. The nodes of a suspended user follow the user.
func repairPeople(s *mesh.Snapshot, now mesh.Time, plan *ClockRepair) (evs []mesh.Event) {
	for u := range s.Users.All() {
		if max(u.CreatedAt, u.SuspendedAt) > now {
			changed := *u
			changed.CreatedAt, changed.SuspendedAt = min(u.CreatedAt, now), min(u.SuspendedAt, now)
			evs = append(evs, mesh.UserPut{User: &changed})
		}
	}
	for g := range s.Groups.All() {
		if g.CreatedAt > now {
			changed := *g
			changed.CreatedAt = now
			evs = append(evs, mesh.GroupPut{Group: &changed})
		}
	}
	for k := range s.Passkeys.All() {
		if max(k.CreatedAt, k.LastUse) > now {
			changed := *k
			changed.CreatedAt, changed.LastUse = min(k.CreatedAt, now), min(k.LastUse, now)
			evs = append(evs, mesh.PasskeyPut{Passkey: &changed})
		}
	}
	for v := range s.Invitations.All() {
		changed := *v
		changed.Expiry = plan.expiry("invitation "+v.Prefix, v.Expiry, nil, v.CreatedAt > now)
		changed.CreatedAt = min(v.CreatedAt, now)
		if changed != *v {
			evs = append(evs, mesh.InvitationPut{Invitation: &changed})
		}
	}
	return evs
}

// repairOthers removes approvals that would last too long, shortens receipts and webhook
// leases, and shifts the period in which the policy must be confirmed.
func repairOthers(s *mesh.Snapshot, now mesh.Time) (evs []mesh.Event) {
	for l := range s.Logins.All() {
		if l.Until > now.Add(answerLifetime) {
			evs = append(evs, mesh.LoginGone{ID: l.ID})
		}
	}
	for g := range s.SSHGrants.All() {
		if g.GrantedAt > now {
			evs = append(evs, mesh.SSHGrantGone{ID: g.ID})
		}
	}
	for m := range s.Receipts.All() {
		if end := now.Add(mesh.ReceiptLifetime); m.Until > end {
			kept := *m
			kept.Until = end
			evs = append(evs, mesh.ReceiptPut{Receipt: &kept})
		}
	}
	for w := range s.Webhooks.All() {
		if p := w.Progress; max(p.Until, p.LastSuccess, p.LastFailure) > now {
			p.Until, p.LastSuccess, p.LastFailure = min(p.Until, now), min(p.LastSuccess, now), min(p.LastFailure, now)
			evs = append(evs, mesh.WebhookMoved{ID: w.ID, Progress: p})
		}
	}
	if p, ok := s.Policy(); ok && p.SavedAt > now {
		kept := *p
		kept.SavedAt = now
		if p.ConfirmBy != 0 {
			kept.ConfirmBy = now.Add(p.ConfirmBy.Sub(p.SavedAt))
		}
		evs = append(evs, mesh.PolicyPut{Policy: &kept})
	}
	return evs
}
