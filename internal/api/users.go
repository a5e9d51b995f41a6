package api

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// userList caches the encoded list of all users while SameIdentities holds: encoding is most of
// the work of a response.
type userList struct {
	of   *mesh.Snapshot
	body []byte
}

// users handles the operations on users.
type users struct {
	*core
	control *control.Users
	list    atomic.Pointer[userList]
}

// ListUsers implements GET /api/v1/user. If there are several filters, only the first of name,
// email and id applies.
func (s *users) ListUsers(w http.ResponseWriter, r *http.Request, p openapi.ListUsersParams) {
	part, err := pageOf(p.Limit, p.Cursor)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	a, wanted := actor(r), func(*mesh.User) bool { return true }
	switch {
	case or(p.Name) != "":
		wanted = func(u *mesh.User) bool { return mesh.FoldName(u.Name) == mesh.FoldName(*p.Name) }
	case or(p.Email) != "":
		wanted = func(u *mesh.User) bool { return u.Email == *p.Email }
	case or(p.ID) != "":
		wanted = func(u *mesh.User) bool { return u.ID.String() == *p.ID }
	case part == page{} && !a.Member:
		s.replyAllUsers(w, snap)
		return
	}
	lister[*mesh.User, mesh.UserID]{
		name: "users", id: func(u *mesh.User) mesh.UserID { return u.ID },
		encode: func(u *mesh.User) []byte { return encoded(s.shape(snap, u)) },
	}.reply(w, snap, part, where(snap.Users.All(), func(u *mesh.User) bool { return control.OwnsUser(a, u) && wanted(u) }))
}

func (s *users) replyAllUsers(w http.ResponseWriter, snap *mesh.Snapshot) {
	list := s.list.Load()
	if list == nil || !list.of.SameIdentities(snap) {
		users := make([]openapi.User, 0, snap.Users.Len())
		for u := range snap.Users.All() {
			users = append(users, s.shape(snap, u))
		}
		list = &userList{of: snap, body: encoded(openapi.UserList{Users: users})}
		s.list.Store(list)
	}
	replyEncoded(w, snap, list.body)
}

// CreateUser implements POST /api/v1/user.
func (s *users) CreateUser(w http.ResponseWriter, r *http.Request) {
	var in openapi.UserCreation
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	u, err := s.control.Create(r.Context(), actor(r), control.NewUser{
		Name: in.Name, DisplayName: or(in.DisplayName), Email: or(in.Email), PictureURL: or(in.PictureURL),
	})
	s.replyUser(w, r, u, err)
}

func (s *users) replyUser(w http.ResponseWriter, r *http.Request, u *mesh.User, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.replyUserIn(w, s.ledger.World().Snapshot, u)
}

func (s *users) replyUserIn(w http.ResponseWriter, snap *mesh.Snapshot, u *mesh.User) {
	w.Header().Set("ETag", etag(control.UserRevision(u)))
	reply(w, snap, openapi.UserResult{User: s.shape(snap, u)})
}

// ApproveUser implements POST /api/v1/user/{id}/approve.
func (s *users) ApproveUser(w http.ResponseWriter, r *http.Request, id string, p openapi.ApproveUserParams) {
	u, err := s.control.Approve(r.Context(), actor(r), id, ifRevision(p.IfMatch))
	s.replyUser(w, r, u, err)
}

// shape returns a user with their current role, which depends on the configuration.
func (s *users) shape(snap *mesh.Snapshot, u *mesh.User) openapi.User {
	shape := userShape(snap, u)
	role, group := s.control.RoleSource(u)
	shape.Role, shape.RoleGroup = unlessEmpty(string(role)), unlessEmpty(group)
	return shape
}

func (s *users) replayUser(c replayed) (any, error) {
	u, err := control.FindUser(c.snap, cmp.Or(c.receipt.Object, c.r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("ETag", etag(control.UserRevision(u)))
	return openapi.UserResult{User: s.shape(c.snap, u)}, nil
}

// currentUser returns a user for the response to a stale request.
func (s *users) currentUser(a mesh.Actor, snap *mesh.Snapshot, id string) (shape any, revision string) {
	u, err := control.OwnUser(snap, a, id)
	if err != nil {
		return nil, ""
	}
	return s.shape(snap, u), control.UserRevision(u)
}

// ShowUser implements GET /api/v1/user/{id}.
func (s *users) ShowUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef) {
	u, snap, err := s.findUser(r, id)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.replyUserIn(w, snap, u)
}

// DeleteUser implements DELETE /api/v1/user/{id}.
func (s *users) DeleteUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef, p openapi.DeleteUserParams) {
	gone, err := s.control.Delete(r.Context(), actor(r), id, ifRevision(p.IfMatch), or(p.DeleteTagged))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	reply(w, snap, openapi.UserDeletion{DeletedNodes: gone.Nodes, TaggedNodes: taggedShape(snap, r, gone.User)})
}

func (*users) replayUserDeletion(c replayed) (any, error) {
	var out openapi.UserDeletion
	var user mesh.UserID
	if n, err := fmt.Sscan(c.receipt.Answer, &out.DeletedNodes, &user); n == 0 {
		return nil, err
	}
	out.TaggedNodes = taggedShape(c.snap, c.r, user)
	return out, nil
}

// taggedShape lists the tagged nodes that users added, who may have been deleted, and that still exist. It works
// because user ids are never reused.
func taggedShape(snap *mesh.Snapshot, r *http.Request, gone ...mesh.UserID) []openapi.TaggedNode {
	out := []openapi.TaggedNode{}
	by := control.TaggedBy(snap)
	for _, user := range gone {
		for _, n := range by[user] {
			node := openapi.TaggedNode{ID: n.ID.String(), Tags: []string{}}
			if access(r).Allows(mesh.NounNodes, mesh.RoleRead) {
				node.Name, node.Tags = n.Name, n.Tags
			}
			out = append(out, node)
		}
	}
	return out
}

// SuspendUser implements POST /api/v1/user/{id}/suspend.
func (s *users) SuspendUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef, p openapi.SuspendUserParams) {
	out, err := s.control.Suspend(r.Context(), actor(r), id, ifRevision(p.IfMatch), or(p.DeleteTagged))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	w.Header().Set("ETag", etag(control.UserRevision(out.User)))
	reply(w, snap, openapi.UserSuspension{User: s.shape(snap, out.User), DeletedNodes: out.Deleted, TaggedNodes: taggedShape(snap, r, out.User.ID)})
}

func (s *users) replayUserSuspension(c replayed) (any, error) {
	u, err := control.FindUser(c.snap, cmp.Or(c.receipt.Object, c.r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	out := openapi.UserSuspension{User: s.shape(c.snap, u), TaggedNodes: taggedShape(c.snap, c.r, u.ID)}
	if out.DeletedNodes, err = strconv.Atoi(c.receipt.Answer); err != nil {
		return nil, err
	}
	c.w.Header().Set("ETag", etag(control.UserRevision(u)))
	return out, nil
}

// RestoreUser implements POST /api/v1/user/{id}/restore.
func (s *users) RestoreUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef, p openapi.RestoreUserParams) {
	u, err := s.control.Restore(r.Context(), actor(r), id, ifRevision(p.IfMatch))
	s.replyUser(w, r, u, err)
}

// RenameUser implements POST /api/v1/user/{id}/rename/{newName}.
func (s *users) RenameUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef, newName string, p openapi.RenameUserParams) {
	u, err := s.control.Rename(r.Context(), actor(r), id, newName, ifRevision(p.IfMatch))
	s.replyUser(w, r, u, err)
}

// SetUserRole implements PUT /api/v1/user/{id}/role.
func (s *users) SetUserRole(w http.ResponseWriter, r *http.Request, id openapi.UserRef, p openapi.SetUserRoleParams) {
	var in openapi.UserRoleChange
	var u *mesh.User
	err := decodeKnown(w, r, &in)
	var role mesh.Role
	if err == nil {
		role, err = assignedRole(in.Role)
	}
	if err == nil {
		u, err = s.control.SetRole(r.Context(), actor(r), id, role, ifRevision(p.IfMatch))
	}
	s.replyUser(w, r, u, err)
}

func assignedRole(text string) (mesh.Role, error) {
	if text == "default" {
		return "", nil
	}
	role, err := mesh.ParsePersonRole(text)
	if err != nil {
		return "", &badRequest{"role", err.Error() + ", or default to remove the assignment"}
	}
	return role, nil
}

// filterUser returns the user that a list is filtered by, and the snapshot to read it from. Zero
// means all users.
func (s *core) filterUser(r *http.Request, ref *string) (mesh.UserID, *mesh.Snapshot, error) {
	if or(ref) == "" {
		return 0, s.ledger.World().Snapshot, nil
	}
	u, snap, err := s.findUser(r, *ref)
	if err != nil {
		return 0, nil, err
	}
	return u.ID, snap, nil
}

func (s *core) findUser(r *http.Request, ref string) (*mesh.User, *mesh.Snapshot, error) {
	return search(r, s.ledger, func(snap *mesh.Snapshot) (*mesh.User, error) { return control.OwnUser(snap, actor(r), ref) })
}
