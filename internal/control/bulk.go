package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// MaxBulk is the maximum number of objects in one call.
const MaxBulk = 1000

// BulkResult is the result for one of many objects.
type BulkResult struct {
	ID      int64
	Refused *Refusal // nil if the change was made
}

// decideOne decides on one object. A Refusal affects only that object.
type decideOne func(id int64) ([]mesh.Event, error)

// changeMany decides on each object separately and commits all changes together, so that a
// retry never sees a partial result. The cost is that other commits wait while up to
// MaxBulk objects are processed.
func (s *core) changeMany(ctx context.Context, a mesh.Actor, ids []int64, begin func(*policy.World, mesh.Time) (decideOne, error)) ([]BulkResult, error) {
	if len(ids) == 0 || len(ids) > MaxBulk {
		return nil, refuse(Invalid, "ids", "ids must list 1 to %d objects", MaxBulk)
	}
	return commitRoutes(ctx, s, a, func(w *policy.World, now mesh.Time) (results bulkResults, evs []mesh.Event, err error) {
		decide, err := begin(w, now)
		if err != nil {
			return nil, nil, err
		}
		decided := map[int64]*Refusal{}
		for _, id := range ids {
			refused, again := decided[id]
			if !again {
				more, err := decide(id)
				if refused, err = asRefusal(err); err != nil {
					return nil, nil, err
				}
				evs, decided[id] = append(evs, more...), refused
			}
			results = append(results, BulkResult{id, refused})
		}
		return results, evs, nil
	})
}

// asRefusal distinguishes refusals of one object from errors that abort the call. A missing
// permission aborts the call.
func asRefusal(err error) (*Refusal, error) {
	if r, ok := err.(*Refusal); ok && r.Reason != Forbidden { //nolint:errorlint // what wraps one is a fault
		return r, nil
	}
	return nil, err
}

// Why one of many objects was refused, as stored in a receipt.
const (
	refusedAbsent    = "absent"
	refusedLastTag   = "lastTag"
	refusedManyTags  = "manyTags"
	refusedLastAdmin = "lastAdmin"
)

const tagsMember = "tags"

type bulkResults []BulkResult

// Answer encodes the results for a receipt, in a form that stays short for a thousand
// objects: "7 8:absent 9" says that 7 and 9 were changed and 8 does not exist.
func (results bulkResults) Answer() string {
	words := make([]string, len(results))
	for i, r := range results {
		if words[i] = strconv.FormatInt(r.ID, 10); r.Refused != nil {
			words[i] += ":" + refusalWord(r.Refused)
		}
	}
	return strings.Join(words, " ")
}

func refusalWord(r *Refusal) string {
	switch {
	case r.Reason == NotFound:
		return refusedAbsent
	case r.Text == errLastTag().Error():
		return refusedLastTag
	case r.Text == errLastAdmin().Error():
		return refusedLastAdmin
	default:
		return refusedManyTags
	}
}

// ResultsFromReceipt decodes the results of an earlier call from its receipt. absent
// returns the refusal for an object that did not exist.
func ResultsFromReceipt(answer string, absent func(ref string) error) (results []BulkResult, err error) {
	for word := range strings.FieldsSeq(answer) {
		id, why, refused := strings.Cut(word, ":")
		var r BulkResult
		if r.ID, err = strconv.ParseInt(id, 10, 64); err != nil {
			return nil, err
		}
		if refused {
			if r.Refused, err = asRefusal(rememberedRefusal(why, id, absent)); err != nil {
				return nil, err
			}
		}
		results = append(results, r)
	}
	return results, nil
}

func rememberedRefusal(word, id string, absent func(ref string) error) error {
	switch word {
	case refusedAbsent:
		return absent(id)
	case refusedLastTag:
		return errLastTag()
	case refusedManyTags:
		return errManyTags(tagsMember)
	case refusedLastAdmin:
		return errLastAdmin()
	}
	return fmt.Errorf("unknown error code %q in the stored result of an idempotent request", word)
}

// doneOf counts the objects that were changed.
func doneOf(results []BulkResult) (n int) {
	for _, r := range results {
		if r.Refused == nil {
			n++
		}
	}
	return n
}

// The bulk actions.
const (
	BulkExpire        = "expire"
	BulkDelete        = "delete"
	BulkAddTags       = "addTags"
	BulkRemoveTags    = "removeTags"
	BulkSetTags       = "setTags"
	BulkApproveRoutes = "approveRoutes"
	BulkApprove       = "approve"
	BulkWithdraw      = "withdrawApproval"
)

// NodesChange is a change to many nodes. Tags is used by the actions that change tags,
// Expiration by BulkExpire.
type NodesChange struct {
	Action     string
	Tags       []string
	Expiration Expiration
}

func (c *NodesChange) check() (err error) {
	if c.Action != BulkExpire && c.Expiration != (Expiration{}) {
		return refuse(Invalid, "action", `expiry and disableExpiry are valid only with "action": "expire"`)
	}
	if err := c.Expiration.check(); err != nil {
		return err
	}
	switch c.Action {
	case BulkAddTags, BulkRemoveTags, BulkSetTags:
		if c.Tags, err = checkTags("tags", c.Tags); err == nil && len(c.Tags) == 0 {
			err = refuse(Invalid, "tags", "specify at least one tag")
		}
		return err
	case BulkExpire, BulkDelete, BulkApproveRoutes, BulkApprove, BulkWithdraw:
		if len(c.Tags) > 0 {
			return refuse(Invalid, "tags", "tags are valid only with the actions addTags, removeTags and setTags")
		}
		return nil
	}
	return refuse(Invalid, "action", "action must be expire, delete, addTags, removeTags, setTags, approveRoutes, approve or withdrawApproval")
}

// ChangeMany applies the same change to many nodes.
func (s *Nodes) ChangeMany(ctx context.Context, a mesh.Actor, ids []int64, c NodesChange) ([]BulkResult, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if a.Member && c.Action != BulkExpire && c.Action != BulkDelete {
		return nil, refuse(Forbidden, "", "members can only expire and delete their devices")
	}
	results, err := s.changeMany(ctx, a, ids, func(w *policy.World, now mesh.Time) (decideOne, error) {
		if c.Action == BulkAddTags || c.Action == BulkSetTags {
			if err := checkTagsKnown(w, "tags", c.Tags); err != nil {
				return nil, err
			}
		}
		last := w.Counters.Route
		return func(id int64) ([]mesh.Event, error) {
			n, err := OwnNode(w.Snapshot, a, strconv.FormatInt(id, 10))
			if err != nil {
				return nil, err
			}
			return c.decide(w, now, a, n, &last)
		}, nil
	})
	if err != nil {
		return nil, err
	}
	s.logFor(a).Info("nodes changed", "action", c.Action, "tags", c.Tags, "done", doneOf(results), "asked", len(ids))
	return results, nil
}

// decide changes one node. Its new routes get the ids after last.
func (c *NodesChange) decide(w *policy.World, now mesh.Time, a mesh.Actor, before *mesh.Node, last *mesh.RouteID) ([]mesh.Event, error) {
	n := *before
	changed := false
	switch c.Action {
	case BulkDelete:
		return []mesh.Event{mesh.NodeGone{ID: n.ID}}, nil
	case BulkExpire:
		changed = c.Expiration.decide(&n, now)
		if err := mayExtend(a, before, &n); err != nil {
			return nil, err
		}
	case BulkApprove, BulkWithdraw:
		n.NeedsApproval = c.Action == BulkWithdraw
		changed = n.NeedsApproval != before.NeedsApproval
	case BulkApproveRoutes:
		n.AllRoutes = slices.Clone(n.AllRoutes)
		for i := range n.AllRoutes {
			if r := &n.AllRoutes[i]; slices.Contains(n.RoutableIPs, r.Prefix) && !forbidden(w)(r.Prefix) {
				decide(r, true, now)
			}
		}
		changed = !slices.Equal(n.AllRoutes, before.AllRoutes)
	default:
		tags, err := c.tagsOf(before)
		if err != nil {
			return nil, err
		}
		changed = setTags(&n, tags)
	}
	changed = n.KeepRoutes(*last, now, autoApproval(w, &n)) || changed
	if !changed {
		return nil, nil
	}
	for _, r := range n.AllRoutes {
		*last = max(*last, r.ID)
	}
	n.UpdatedAt = now
	return []mesh.Event{mesh.NodePut{Node: &n}}, nil
}

// tagsOf returns the tags that a node has after the change.
func (c *NodesChange) tagsOf(n *mesh.Node) ([]string, error) {
	var tags []string
	switch c.Action {
	case BulkAddTags:
		tags = slices.Concat(n.Tags, c.Tags)
	case BulkRemoveTags:
		tags = slices.DeleteFunc(slices.Clone(n.Tags), func(tag string) bool { return slices.Contains(c.Tags, tag) })
		if len(tags) == 0 && n.Tagged() {
			return nil, errLastTag()
		}
	default:
		tags = c.Tags
	}
	return checkTags(tagsMember, tags)
}

// ChangeMany expires or deletes many pre-auth keys.
func (s *PreAuthKeys) ChangeMany(ctx context.Context, a mesh.Actor, ids []int64, action string) ([]BulkResult, error) {
	if action != BulkExpire && action != BulkDelete {
		return nil, refuse(Invalid, "action", "action must be expire or delete")
	}
	results, err := s.changeMany(ctx, a, ids, func(w *policy.World, now mesh.Time) (decideOne, error) {
		return func(id int64) ([]mesh.Event, error) {
			k, err := findPreAuthKey(w, a, strconv.FormatInt(id, 10), "")
			switch {
			case err != nil:
				return nil, err
			case action == BulkDelete:
				return []mesh.Event{mesh.PreAuthKeyGone{ID: k.ID}}, nil
			case k.Expiry.Reached(now):
				return nil, nil
			}
			ended := *k
			ended.Expiry = now
			return []mesh.Event{mesh.PreAuthKeyPut{Key: &ended}}, nil
		}, nil
	})
	if err != nil {
		return nil, err
	}
	s.logFor(a).Info("pre-auth keys changed", "action", action, "done", doneOf(results), "asked", len(ids))
	return results, nil
}

// DeleteMany deletes users, each with their nodes and pre-auth keys and, if tagged is set,
// with the tagged nodes that they added.
func (s *Users) DeleteMany(ctx context.Context, a mesh.Actor, ids []int64, tagged bool) ([]BulkResult, error) {
	trial, err := s.previousPolicy(ctx)
	if err != nil {
		return nil, err
	}
	results, err := s.changeMany(ctx, a, ids, func(w *policy.World, _ mesh.Time) (decideOne, error) {
		var brought map[mesh.UserID][]*mesh.Node
		if tagged {
			brought = TaggedBy(w.Snapshot)
		}
		var gone []mesh.UserID
		return func(id int64) ([]mesh.Event, error) {
			u, err := FindUser(w.Snapshot, strconv.FormatInt(id, 10))
			if err != nil {
				return nil, err
			}
			if err := cmp.Or(s.mayDeleteUser(w, a, u, brought[u.ID]), trial.mayChangeNames(s.core, w, a, u, nil), s.keepAdmin(w, a, append(gone, u.ID)...)); err != nil {
				return nil, err
			}
			gone = append(gone, u.ID)
			return deleteWithNodes(u, brought[u.ID]), nil
		}, nil
	})
	if err != nil {
		return nil, err
	}
	s.logFor(a).Info("users deleted", "done", doneOf(results), "asked", len(ids))
	return results, nil
}
