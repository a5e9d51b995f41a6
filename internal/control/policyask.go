package control

import (
	"errors"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// PolicyChange is a change to preview: a new text (nil keeps the one in force), new tags,
// or both.
type PolicyChange struct {
	Text *string
	// Retag lists the nodes, by id or name, that would get Tags.
	Retag []string
	Tags  []string
	// Viewer is the person who asks, if known. The preview warns them if they would lose
	// their own access.
	Viewer string
}

// Preview returns the effect of a change, and the world it was evaluated in.
func (s *Policies) Preview(in PolicyChange) (*explain.Effect, *policy.World, error) {
	if in.Text == nil && len(in.Retag) == 0 {
		return nil, nil, refuse(Invalid, "policy", "policy or retag is required")
	}
	w := s.ledger.World()
	after, err := s.drafted(w, in.Text)
	if err == nil {
		after, err = retagged(after, in.Retag, in.Tags)
	}
	if err != nil {
		return nil, nil, err
	}
	var end *explain.End
	if in.Viewer != "" {
		e, err := explain.ParseEnd(w, in.Viewer)
		if err != nil {
			return nil, nil, errBadEnd("viewer", err)
		}
		end = &e
	}
	return explain.Preview(w, after, end), w, nil
}

// retagged returns a world in which the nodes have these tags, and the routes that the
// policy approves automatically for them.
func retagged(w *policy.World, refs, tags []string) (*policy.World, error) {
	switch {
	case len(refs) == 0:
		return w, nil
	case len(refs) > MaxBulk:
		return nil, refuse(Invalid, "retag.nodes", "at most %d nodes at once, got %d", MaxBulk, len(refs))
	}
	tags, err := checkTags("retag.tags", tags)
	if err != nil {
		return nil, err
	}
	if len(tags) == 0 {
		return nil, errLastTag()
	}
	if err := checkTagsKnown(w, "retag.tags", tags); err != nil {
		return nil, err
	}
	evs := make([]mesh.Event, 0, len(refs))
	for _, ref := range refs {
		found, err := FindNode(w.Snapshot, ref)
		if err != nil {
			return nil, err
		}
		n := *found
		setTags(&n, tags)
		keepRoutes(w, w.At, &n)
		evs = append(evs, mesh.NodePut{Node: &n})
	}
	next, _ := mesh.Apply(w.Snapshot, w.Rev+1, evs...)
	return policy.WorldOf(next, w.Doc), nil
}

// drafted returns w with another policy text, or w itself if text is nil.
func (s *core) drafted(w *policy.World, text *string) (*policy.World, error) {
	if text == nil {
		return w, nil
	}
	doc, err := s.readPolicy(w, *text)
	if err != nil {
		return nil, err
	}
	return policy.WorldOf(w.Snapshot, doc), nil
}

// PolicyQuestion asks whether one end may reach another. An empty Port means any port, an
// empty Protocol means TCP. A Draft is used instead of the policy in force.
type PolicyQuestion struct {
	From, To, Port, Protocol string
	Draft                    *string
}

// Why answers a question, and returns the world it was evaluated in. Members can ask only
// about their own nodes, and without a draft.
func (s *Policies) Why(a mesh.Actor, in PolicyQuestion) (explain.Answer, *policy.World, error) {
	if a.Member {
		return s.whyOwn(a, in)
	}
	w, err := s.drafted(s.ledger.World(), in.Draft)
	if err != nil {
		return explain.Answer{}, nil, err
	}
	q, err := in.service()
	if err != nil {
		return explain.Answer{}, nil, err
	}
	for _, end := range []struct {
		path, text string
		to         *explain.End
	}{{"from", in.From, &q.From}, {"to", in.To, &q.To}} {
		e, err := explain.ParseEnd(w, end.text)
		if err != nil {
			return explain.Answer{}, nil, errBadEnd(end.path, err)
		}
		*end.to = e
	}
	return explain.Why(w, q), w, nil
}

// service returns the question without its ends.
func (in PolicyQuestion) service() (q explain.Question, err error) {
	if in.Protocol != "" {
		number, err := lang.ParseProtocol(in.Protocol)
		if err != nil {
			return q, refuse(Invalid, "proto", "%v", err)
		}
		q.Protocol = number
	}
	if in.Port != "" {
		port, err := strconv.ParseUint(in.Port, 10, 16)
		if err != nil || port == 0 {
			return q, refuse(Invalid, "port", "invalid port %q: use a number from 1 to 65535", in.Port)
		}
		q.Port = uint16(port)
	}
	return q, nil
}

func errBadEnd(path string, err error) error {
	if errors.Is(err, explain.ErrNoSuchEnd) {
		return refuse(NotFound, path, "%v", err)
	}
	return refuse(Invalid, path, "%v", err)
}

// maxNamed is the maximum number of names per side in one question.
const maxNamed = 100

// MapAccess returns who reaches whom, and the world it was evaluated in. With a draft it
// returns what the draft would change.
func (s *Policies) MapAccess(draft *string, ask explain.MapQuestion) (*explain.AccessMap, *policy.World, error) {
	for side, names := range map[string][]string{"from": ask.From, "to": ask.To} {
		if len(names) > maxNamed {
			return nil, nil, refuse(Invalid, side, "%s has %d names; use at most %d, or a group or tag that contains them", side, len(names), maxNamed)
		}
	}
	w := s.ledger.World()
	after, err := s.drafted(w, draft)
	if err != nil {
		return nil, nil, err
	}
	m, err := explain.MapOf(w, after, ask)
	var side *explain.AxisError
	if errors.As(err, &side) {
		return nil, nil, errBadEnd(side.Side, err)
	}
	return m, w, err
}

// RunTests runs the tests of a policy text on the current network, or those of the policy
// in force if text is empty. It returns how many there are and which fail.
func (s *Policies) RunTests(text string) (tests int, failures []explain.TestFailure, err error) {
	w := s.ledger.World()
	if text != "" {
		if w, err = s.drafted(w, &text); err != nil {
			return 0, nil, err
		}
	}
	if !hasTests(w.Doc) {
		return 0, nil, nil
	}
	return len(w.Doc.Tests) + len(w.Doc.SSHTests), explain.RunTests(w), nil
}
