package control

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// The source of a policy's text.
const (
	policyFromAPI  = "api"
	policyFromFile = "file"
)

const (
	// minConfirm leaves a person enough time to test a policy. maxConfirm makes sure that
	// an unconfirmed policy blocks others from saving for at most a day.
	minConfirm = 10 * time.Second
	maxConfirm = 24 * time.Hour
)

// PolicyDraft is a policy to be saved.
type PolicyDraft struct {
	Text   string
	Reason string
	// IfVersion is the version that the draft is based on, zero if there was none. If it is
	// nil, the draft replaces any version.
	IfVersion *mesh.PolicyVersion
	// ConfirmWithin is how long the draft stays in force without confirmation; zero means
	// forever.
	ConfirmWithin time.Duration
}

// BadPolicy is the error for a text that cannot be saved. One of its lists is not empty.
type BadPolicy struct {
	Problems lang.Problems         // why the text cannot be parsed
	Failures []explain.TestFailure // the tests that fail, if it can be parsed
}

// Error includes only the first problems, to fit into a log line.
func (b *BadPolicy) Error() string {
	const shown = 3
	var texts []string
	for _, p := range b.Problems {
		texts = append(texts, p.String())
	}
	for _, f := range b.Failures {
		texts = append(texts, f.Text)
	}
	if more := len(texts) - shown; more > 0 {
		texts = append(texts[:shown], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// Policies implements the use cases for the access policy and its versions.
type Policies struct {
	*core
	file *PolicyFile
}

// IsFile reports whether the policy comes from a file, so that none can be saved.
func (s *Policies) IsFile() bool { return s.file.path != "" }

// Check refuses a text that could not be saved.
func (s *Policies) Check(text string) (*lang.Doc, error) { return s.checkPolicy(text) }

// checkPolicy refuses a text that could not be saved: one that cannot be parsed, or that fails
// its own tests on the current network.
func (s *core) checkPolicy(text string) (*lang.Doc, error) {
	doc, err := s.readPolicy(s.ledger.World(), text)
	if err != nil {
		return nil, err
	}
	if problems := doc.CheckApprovers(s.ledger.World().Reserved); len(problems) > 0 {
		return nil, &BadPolicy{Problems: problems}
	}
	if !hasTests(doc) {
		return doc, nil
	}
	if failures := explain.RunTests(policy.WorldOf(s.ledger.World().Snapshot, doc)); len(failures) > 0 {
		return nil, &BadPolicy{Failures: failures}
	}
	return doc, nil
}

// readPolicy parses a policy, and checks that its groups are defined, once.
func (s *core) readPolicy(w *policy.World, text string) (*lang.Doc, error) {
	doc, err := ReadPolicy(text)
	if err != nil {
		return nil, err
	}
	if problems := doc.CheckGroups(w.Snapshot, s.providerGroups); len(problems) > 0 {
		return nil, &BadPolicy{Problems: problems}
	}
	return doc, nil
}

// ReadPolicy parses a policy. It refuses bytes that not every database can store.
func ReadPolicy(text string) (*lang.Doc, error) {
	switch {
	case !utf8.ValidString(text):
		return nil, refuse(Invalid, "policy", "the policy is not valid UTF-8")
	case strings.ContainsRune(text, 0):
		return nil, refuse(Invalid, "policy", "the policy contains a NUL character")
	}
	doc, problems := lang.Parse([]byte(text))
	if len(problems) > 0 {
		return nil, &BadPolicy{Problems: problems}
	}
	return doc, nil
}

// hasTests reports whether a policy has tests. Most have none, so no world needs to be built
// for them.
func hasTests(doc *lang.Doc) bool { return doc != nil && len(doc.Tests)+len(doc.SSHTests) > 0 }

// Save makes a text the policy. A text that is already in force changes nothing. An empty
// text means no policy: everyone may reach everyone.
func (s *Policies) Save(ctx context.Context, a mesh.Actor, in PolicyDraft) (*mesh.Policy, error) {
	if err := s.mayEdit(in); err != nil {
		return nil, err
	}
	if in.Text == "" {
		return s.put(ctx, a, in, nil)
	}
	doc, err := s.checkPolicy(in.Text)
	if err != nil {
		return nil, err
	}
	return s.put(ctx, a, in, doc)
}

// mayEdit checks everything but the text.
func (s *Policies) mayEdit(in PolicyDraft) error {
	if s.IsFile() {
		// Tools compare the text after the colon.
		return refuse(Invalid, "policy", "the policy is stored in the file %s: update is disabled for modes other than 'database'; edit the file", s.file.path)
	}
	if in.ConfirmWithin != 0 && (in.ConfirmWithin < minConfirm || in.ConfirmWithin > maxConfirm) {
		return refuse(Invalid, "confirmWithin", "confirmWithin must be from 10s to 24h")
	}
	return checkText("reason", in.Reason, maxReason)
}

// put saves a draft that was checked. doc is nil if the text is empty.
func (s *Policies) put(ctx context.Context, a mesh.Actor, in PolicyDraft, doc *lang.Doc) (*mesh.Policy, error) {
	a.Reason = cmp.Or(a.Reason, in.Reason)
	type result struct {
		policy *mesh.Policy
		saved  bool
	}
	out, err := commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (result, []mesh.Event, error) {
		p, evs, err := decidePolicy(w, now, a.String(), in, doc)
		return result{p, len(evs) > 0}, evs, err
	})
	if err != nil {
		return nil, err
	}
	switch {
	case out.saved && out.policy.Text == "":
		s.policyLog(a, out.policy).Warn("policy removed: all nodes can reach each other")
	case out.saved:
		s.policyLog(a, out.policy).Info("policy saved")
	}
	return out.policy, nil
}

func decidePolicy(w *policy.World, now mesh.Time, author string, in PolicyDraft, doc *lang.Doc) (*mesh.Policy, []mesh.Event, error) {
	current, ok := w.Policy()
	if !ok {
		current = &mesh.Policy{Source: policyFromAPI}
	}
	switch {
	case in.IfVersion != nil && *in.IfVersion != current.Version:
		return nil, nil, refuse(Stale, "policy", "the policy is now at version %v, not %v; review the changes and save again", current.Version, *in.IfVersion)
	case current.ConfirmBy != 0:
		return nil, nil, refuse(Conflict, "policy", "policy version %v by %s is waiting for confirmation until %s; keep it with fairlead policy confirm, or undo it with fairlead policy revert",
			current.Version, current.Author, current.ConfirmBy.Time().Format(time.RFC3339))
	case in.Text == current.Text && len(w.Problems) == 0:
		return current, nil, nil
	}
	p := &mesh.Policy{
		Version: w.Counters.NextPolicy(), Text: in.Text, Source: policyFromAPI, Author: author, Reason: in.Reason, SavedAt: now,
	}
	if in.ConfirmWithin > 0 {
		p.ConfirmBy, p.RevertTo = now.Add(in.ConfirmWithin), current.Version
	}
	return p, activate(w, now, p, doc), nil
}

// activate returns the events that put a version into force. In the same commit, rather than
// with the next report of each device, it approves waiting routes and withdraws approvals that
// only a version on trial had given.
func activate(w *policy.World, now mesh.Time, p *mesh.Policy, doc *lang.Doc) []mesh.Event {
	return append([]mesh.Event{mesh.PolicyPut{Policy: p}}, reapprove(w, now, p, doc)...)
}

// policyLog returns a logger for changes of the policy. The ledger logs what is in force.
func (s *core) policyLog(a mesh.Actor, p *mesh.Policy) *slog.Logger {
	log := s.logFor(a).With("version", p.Version)
	if p.Reason != "" {
		log = log.With("reason", p.Reason)
	}
	if p.ConfirmBy != 0 {
		log = log.With("confirm_by", p.ConfirmBy.Time(), "revert_to", p.RevertTo)
	}
	return log
}

// Rollback saves the text of an earlier version as a new one.
func (s *Policies) Rollback(ctx context.Context, a mesh.Actor, v mesh.PolicyVersion, in PolicyDraft) (*mesh.Policy, error) {
	old, err := s.Version(ctx, v)
	if err != nil {
		return nil, err
	}
	in.Text, in.Reason = old.Text, cmp.Or(in.Reason, fmt.Sprintf("rolled back to version %v", v))
	return s.Save(ctx, a, in)
}

// Confirm keeps a version that would otherwise be reverted automatically. Anyone but its
// author must name the version.
func (s *Policies) Confirm(ctx context.Context, a mesh.Actor, version *mesh.PolicyVersion) (*mesh.Policy, error) {
	p, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.Policy, []mesh.Event, error) {
		pending, err := pendingPolicy(w)
		if err == nil {
			err = checkPendingVersion(pending, a, version)
		}
		if err != nil {
			return nil, nil, err
		}
		if pending.ConfirmBy.Reached(now) {
			return nil, nil, refuse(Conflict, "", "policy version %v was not confirmed by %s and is being reverted; save it again",
				pending.Version, pending.ConfirmBy.Time().Format(time.RFC3339))
		}
		kept := *pending
		kept.ConfirmBy, kept.RevertTo = 0, 0
		return &kept, []mesh.Event{mesh.PolicyPut{Policy: &kept}}, nil
	})
	if err != nil {
		return nil, err
	}
	s.policyLog(a, p).Info("policy confirmed")
	return p, nil
}

func pendingPolicy(w *policy.World) (*mesh.Policy, error) {
	p, ok := w.Policy()
	if !ok || p.ConfirmBy == 0 {
		return nil, refuse(Conflict, "", "no policy version is waiting for confirmation: it was already confirmed or reverted; see fairlead policy history")
	}
	return p, nil
}

// checkPendingVersion refuses to confirm or revert a version that somebody else saved after the
// intended one was reverted.
func checkPendingVersion(pending *mesh.Policy, a mesh.Actor, version *mesh.PolicyVersion) error {
	switch {
	case version != nil && *version != pending.Version:
		return refuse(Stale, "policy", "policy version %v is not waiting for confirmation; version %v by %s is", *version, pending.Version, pending.Author)
	case version == nil && pending.Author != a.String():
		return refuse(Conflict, "policy", "policy version %v is waiting for confirmation and was saved by %s; to confirm or revert it, specify the version: fairlead policy confirm %v, or fairlead policy revert %v",
			pending.Version, pending.Author, pending.Version, pending.Version)
	}
	return nil
}

// Revert undoes the version that waits for confirmation. Anyone but its author must name
// the version.
func (s *Policies) Revert(ctx context.Context, a mesh.Actor, version *mesh.PolicyVersion) (*mesh.Policy, error) {
	if err := s.ledger.Sync(ctx); err != nil {
		return nil, err
	}
	pending, err := pendingPolicy(s.ledger.World())
	if err == nil {
		err = checkPendingVersion(pending, a, version)
	}
	if err != nil {
		return nil, err
	}
	p, err := s.revertTrial(ctx, a, pending, fmt.Sprintf("version %v reverted before it was confirmed", pending.Version), 0)
	if err == nil && p == nil {
		return nil, refuse(Conflict, "", "policy version %v was confirmed or reverted in the meantime; see fairlead policy history", pending.Version)
	}
	return p, err
}

// revertTrial restores what was in force before an unconfirmed version, if that version is
// still in force and, if a time is given, due at that time. It returns nil if there is
// nothing to do.
func (s *core) revertTrial(ctx context.Context, a mesh.Actor, pending *mesh.Policy, reason string, due mesh.Time) (p *mesh.Policy, err error) {
	text, doc, err := s.textBefore(ctx, pending)
	if err != nil {
		return nil, err
	}
	a.Reason = cmp.Or(a.Reason, reason)
	p, err = commitRoutes(ctx, s, a, func(w *policy.World, now mesh.Time) (*mesh.Policy, []mesh.Event, error) {
		current, err := pendingPolicy(w)
		if err != nil || current.Version != pending.Version || due != 0 && !due.Reached(now) {
			return nil, nil, nil //nolint:nilerr // it was confirmed or replaced
		}
		p := &mesh.Policy{
			Version: w.Counters.NextPolicy(), Text: text, Source: policyFromAPI, Author: a.String(), Reason: reason, SavedAt: now,
		}
		return p, activate(w, now, p, doc), nil
	})
	if err != nil || p == nil {
		return nil, err
	}
	s.policyLog(a, p).Info("policy reverted")
	return p, nil
}

// textBefore returns what was in force before a version: the newest text that can be
// parsed. An empty string means that there was no policy.
func (s *core) textBefore(ctx context.Context, pending *mesh.Policy) (string, *lang.Doc, error) {
	for v := pending.RevertTo; v > 0; v-- {
		old, err := s.history.Policy(ctx, v)
		if err != nil {
			return "", nil, err
		}
		if old.Text == "" {
			return "", nil, nil
		}
		if doc, problems := lang.Parse([]byte(old.Text)); len(problems) == 0 {
			return old.Text, doc, nil
		}
	}
	if pending.RevertTo > 0 {
		return denyAllPolicy, nil, nil // treated as if no stored version can be parsed
	}
	return "", nil, nil
}

// denyAllPolicy is used if no stored policy can be parsed, because allowing everything would be
// unsafe.
const denyAllPolicy = `{"acls": []}`
