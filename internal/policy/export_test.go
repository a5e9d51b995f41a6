package policy

// Groups are the groups with their members, for tests.
func (d *Doc) Groups() map[string][]string { return d.groups }

// TagOwners are the tags with their owners, for tests.
func (d *Doc) TagOwners() map[string][]string { return d.owners }
