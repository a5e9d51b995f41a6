package mesh

import "crypto/sha256"

// Policy is one version of the access policy.
type Policy struct {
	Version PolicyVersion `json:"version" column:"id"`
	// Text is empty if no policy is set: everyone may reach everyone.
	Text   string `json:"text,omitempty"`
	Source string `json:"source"` // api or file
	// Author is the actor who saved it, in the form shown to people.
	Author  string `json:"author,omitempty"`
	Reason  string `json:"reason,omitempty"`
	SavedAt Time   `json:"savedAt"`
	// ConfirmBy is the time by which this version must be confirmed, or else the policy
	// reverts to RevertTo; zero if no confirmation is needed.
	ConfirmBy Time `json:"confirmBy,omitempty"`
	// RevertTo is zero when there was no policy before.
	RevertTo PolicyVersion `json:"revertTo,omitempty"`
}

// PolicyPut adds a version of the policy, or confirms the current one.
type PolicyPut struct {
	Policy *Policy `json:"policy"`
}

// Kind names the event in the log.
func (PolicyPut) Kind() Kind          { return KindPolicyPut }
func (e PolicyPut) valid() bool       { return e.Policy != nil && valid(e.Policy.Version) }
func (e PolicyPut) count(c *Counters) { c.Policy = max(c.Policy, e.Policy.Version) }

// apply keeps the newest version. An event about an older version only changes what is
// stored.
func (e PolicyPut) apply(d *Draft) {
	p := e.Policy
	old, ok := d.s.Policy()
	if ok && p.Version < old.Version {
		return
	}
	if !ok || p.Version != old.Version || p.Text != old.Text {
		d.s.PolicyRev = d.s.Rev
	}
	d.s.policy, d.s.policySum = p, sha256.Sum256(fields(nil).all(p))
}

// Policy returns the newest version of the policy.
func (s *Snapshot) Policy() (*Policy, bool) { return found(s.policy) }
