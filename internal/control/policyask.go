package control

import (
	"errors"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// PreviewPolicy says what a text would change if it were the policy, and in which
// world. The viewer is who asks, if that is known: they are warned when they lose
// their own way in.
func (s *Service) PreviewPolicy(text, viewer string) (*policy.Effect, *policy.World, error) {
	doc, err := ReadPolicy(text)
	if err != nil {
		return nil, nil, err
	}
	w := s.ledger.World()
	var end *policy.End
	if viewer != "" {
		e, err := w.ParseEnd(viewer)
		if err != nil {
			return nil, nil, noEnd("viewer", err)
		}
		end = &e
	}
	return policy.Preview(w, policy.WorldOf(w.Snapshot, doc), end), w, nil
}

// drafted is a world seen through a text; as it is without one.
func drafted(w *policy.World, text *string) (*policy.World, error) {
	if text == nil {
		return w, nil
	}
	doc, err := ReadPolicy(*text)
	if err != nil {
		return nil, err
	}
	return policy.WorldOf(w.Snapshot, doc), nil
}

// PolicyQuestion asks whether one end may reach another. Port and Protocol may be
// empty: any port, and TCP. A Draft counts instead of the policy in force.
type PolicyQuestion struct {
	From, To, Port, Protocol string
	Draft                    *string
}

// WhyPolicy answers a question, and says in which world.
func (s *Service) WhyPolicy(in PolicyQuestion) (policy.Answer, *policy.World, error) {
	w, err := drafted(s.ledger.World(), in.Draft)
	if err != nil {
		return policy.Answer{}, nil, err
	}
	var q policy.Question
	for _, end := range []struct {
		path, text string
		to         *policy.End
	}{{"from", in.From, &q.From}, {"to", in.To, &q.To}} {
		e, err := w.ParseEnd(end.text)
		if err != nil {
			return policy.Answer{}, nil, noEnd(end.path, err)
		}
		*end.to = e
	}
	if in.Protocol != "" {
		number, err := policy.ParseProtocol(in.Protocol)
		if err != nil {
			return policy.Answer{}, nil, refuse(Invalid, "proto", "%v", err)
		}
		q.Protocol = number
	}
	if in.Port != "" {
		port, err := strconv.ParseUint(in.Port, 10, 16)
		if err != nil || port == 0 {
			return policy.Answer{}, nil, refuse(Invalid, "port", "%q is not a port: write a number from 1 to 65535", in.Port)
		}
		q.Port = uint16(port)
	}
	return w.Why(q), w, nil
}

func noEnd(path string, err error) error {
	if errors.Is(err, policy.ErrNoSuchEnd) {
		return refuse(NotFound, path, "%v", err)
	}
	return refuse(Invalid, path, "%v", err)
}

// maxNamed is of how many by name somebody may ask at once.
const maxNamed = 100

// MapAccess says who reaches whom, and in which world. With a draft it says what
// that would change.
func (s *Service) MapAccess(draft *string, ask policy.MapQuestion) (*policy.AccessMap, *policy.World, error) {
	for side, names := range map[string][]string{"from": ask.From, "to": ask.To} {
		if len(names) > maxNamed {
			return nil, nil, refuse(Invalid, side, "%s names %d; name at most %d, or a group or a tag that has them", side, len(names), maxNamed)
		}
	}
	w := s.ledger.World()
	after, err := drafted(w, draft)
	if err != nil {
		return nil, nil, err
	}
	m, err := policy.MapOf(w, after, ask)
	var side *policy.AxisError
	if errors.As(err, &side) {
		return nil, nil, noEnd(side.Side, err)
	}
	return m, w, err
}

// RunPolicyTests runs the tests of a text on the network as it is, of the policy
// in force without one, and returns how many there are and which fail.
func (s *Service) RunPolicyTests(text string) (tests int, failures []policy.TestFailure, err error) {
	w := s.ledger.World()
	if text != "" {
		doc, err := ReadPolicy(text)
		if err != nil {
			return 0, nil, err
		}
		w = policy.WorldOf(w.Snapshot, doc)
	}
	if !hasTests(w.Doc) {
		return 0, nil, nil
	}
	return len(w.Doc.Tests()) + len(w.Doc.SSHTests()), w.RunTests(), nil
}
