package control

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// NodeRevision returns a revision of what people and the policy decided about a node. It
// changes with every decision, but not with what the device does or reports.
func NodeRevision(n *mesh.Node) string {
	decided := decidedFields(*n)
	if n.Renamed {
		decided["Name"] = n.Name
	}
	var routes []map[string]any
	for _, r := range n.AllRoutes {
		if route := decidedFields(r); len(route) > 0 {
			route["ID"] = r.ID
			routes = append(routes, route)
		}
	}
	decided["Routes"] = routes
	return contentRevision(decided)
}

// decidedFields returns the non-zero fields of a struct that have the tag decided, by name.
// Leaving out zero fields keeps revisions stable when a later release adds a field.
func decidedFields(noun any) map[string]any {
	v, decided := reflect.ValueOf(noun), map[string]any{}
	for f := range v.Type().Fields() {
		if _, ok := f.Tag.Lookup("decided"); ok && !v.FieldByIndex(f.Index).IsZero() {
			decided[f.Name] = v.FieldByIndex(f.Index).Interface()
		}
	}
	return decided
}

// UserRevision returns a revision of a user. It changes whenever the user changes, but
// not with the number of nodes.
func UserRevision(u *mesh.User) string { return contentRevision(u) }

// contentRevision returns a hash of content. It needs no column in the database, and is the
// same on every replica. The drawback: content that is changed back gets its earlier
// revision, so a request based on that revision is not considered stale.
func contentRevision(content any) string {
	data, err := json.Marshal(content)
	if err != nil {
		panic(err) // our own types can always be encoded
	}
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%x", sum[:8])
}

// nodeAt finds the node that the caller wants to change. If ifRevision is given, the node must have this
// NodeRevision.
func nodeAt(s *mesh.Snapshot, a mesh.Actor, ref, ifRevision string) (*mesh.Node, error) {
	n, err := OwnNode(s, a, ref)
	if err == nil {
		err = checkNodeRevision(n, ifRevision)
	}
	return n, err
}

func checkNodeRevision(n *mesh.Node, ifRevision string) error {
	if ifRevision == "" || ifRevision == NodeRevision(n) {
		return nil
	}
	return &Refusal{Reason: Stale, Path: "node", Object: n.ID.String(), Text: fmt.Sprintf("node %s has changed in the meantime; review it and try again", n.Name)}
}

// routeAt finds the route to change. If ifRevision is given, the route's node must have
// this NodeRevision.
func routeAt(s *mesh.Snapshot, id mesh.RouteID, ifRevision string) (NodeRoute, error) {
	r, err := FindRoute(s, id)
	if err == nil {
		err = checkNodeRevision(r.Node, ifRevision)
	}
	return r, err
}

// userAt finds the user to change. If ifRevision is given, the user must have this
// UserRevision.
func userAt(s *mesh.Snapshot, ref, ifRevision string) (*mesh.User, error) {
	u, err := FindUser(s, ref)
	if err == nil && ifRevision != "" && ifRevision != UserRevision(u) {
		err = &Refusal{Reason: Stale, Path: "user", Object: u.ID.String(), Text: fmt.Sprintf("user %s has changed in the meantime; review it and try again", u.Name)}
	}
	return u, err
}
