package mesh

// leavers are the users who lose what belongs to them.
type leavers struct {
	gone map[UserID]bool
	// Sessions of a user also end when the user gets another account. The user's API keys then
	// end too, unless there was no earlier account.
	changed, replaced map[UserID]bool
}

// remove adds a user who was deleted.
func (l *leavers) remove(id UserID) { mark(&l.gone, id) }

// put adds a user who got another account.
func (l *leavers) put(before *Snapshot, u *User) {
	delete(l.gone, u.ID)
	old, ok := before.Users.Get(u.ID)
	if !ok || old.Provider == u.Provider && old.ProviderID == u.ProviderID {
		return
	}
	mark(&l.changed, u.ID)
	if old.ProviderID != "" {
		mark(&l.replaced, u.ID)
	}
}

func mark(users *map[UserID]bool, id UserID) {
	if *users == nil {
		*users = map[UserID]bool{}
	}
	(*users)[id] = true
}

// settle returns the events that remove what belongs to the leavers after evs. Sessions and
// keys that evs create belong to the new account.
func (l *leavers) settle(before *Snapshot, evs []Event) (settled []Event) {
	if len(l.gone)+len(l.changed) == 0 {
		return nil
	}
	d := before.Edit()
	d.Apply(before.Rev+1, evs...)
	after := d.Snapshot()
	if len(l.gone) > 0 {
		settled = l.settleGone(after)
	}
	for s := range after.Sessions.All() {
		if _, old := before.Sessions.Get(s.ID); l.gone[s.User] || old && l.changed[s.User] {
			settled = append(settled, SessionGone{ID: s.ID})
		}
	}
	for k := range after.APIKeys.All() {
		if _, old := before.APIKeys.Get(k.ID); l.gone[k.User] || old && l.replaced[k.User] {
			settled = append(settled, APIKeyGone{ID: k.ID})
		}
	}
	for r := range after.Rechecks.All() {
		if _, old := before.Rechecks.Get(r.ID); l.gone[r.ID] || old && l.changed[r.ID] {
			settled = append(settled, RecheckGone{ID: r.ID})
		}
	}
	return settled
}

// settleGone returns the events that remove what only deleted users lose.
func (l *leavers) settleGone(after *Snapshot) (evs []Event) {
	for n := range after.Nodes.All() {
		if l.gone[n.Owner] {
			evs = append(evs, NodeGone{ID: n.ID})
		}
	}
	for k := range after.PreAuthKeys.All() {
		if l.gone[k.User] {
			evs = append(evs, PreAuthKeyGone{ID: k.ID})
		}
	}
	for v := range after.Logins.All() {
		if l.gone[v.User] {
			evs = append(evs, LoginGone{ID: v.ID})
		}
	}
	for r := range after.Reservations.All() {
		if l.gone[r.User] {
			evs = append(evs, ReservationGone{ID: r.ID})
		}
	}
	for k := range after.Passkeys.All() {
		if l.gone[k.User] {
			evs = append(evs, PasskeyGone{ID: k.ID})
		}
	}
	for i := range after.Invitations.All() {
		if l.gone[i.User] {
			evs = append(evs, InvitationGone{ID: i.ID})
		}
	}
	return evs
}
