package mesh

// Group is a group of users that an identity provider has pushed. Its members have its Name
// in User.Groups.
type Group struct {
	ID GroupID `json:"id"`
	// Name is the name in the policy, without "group:". DisplayName is how the provider spells it.
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	// ExternalID identifies the group at the provider.
	ExternalID string   `json:"externalId,omitempty"`
	Members    []Member `json:"members,omitempty"` // sorted; users among them may have been deleted
	CreatedAt  Time     `json:"createdAt"`
}

// Member is a member of a Group.
type Member struct {
	User UserID `json:"user"`
}

// GroupPut adds or replaces a group.
type GroupPut struct {
	Group *Group `json:"group"`
}

// Kind names the event in the log.
func (GroupPut) Kind() Kind          { return KindGroupPut }
func (e GroupPut) valid() bool       { return e.Group != nil && valid(e.Group.ID) }
func (e GroupPut) count(c *Counters) { c.Group = max(c.Group, e.Group.ID) }
func (e GroupPut) apply(d *Draft)    { d.s.Groups.put(d.e, e.Group.ID, e.Group) }

// GroupGone removes a group.
type GroupGone struct {
	ID GroupID `json:"id"`
}

// Kind names the event in the log.
func (GroupGone) Kind() Kind       { return KindGroupGone }
func (e GroupGone) valid() bool    { return valid(e.ID) }
func (e GroupGone) apply(d *Draft) { d.s.Groups.put(d.e, e.ID, nil) }
