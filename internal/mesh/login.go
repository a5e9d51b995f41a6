package mesh

import (
	"tailscale.com/types/key"
)

// Login is the decision on a device that asked to join without a pre-auth key, by an
// administrator or by a person who signed in. It is kept until the device receives it, or
// until Until.
type Login struct {
	ID         LoginID           `json:"id"`
	MachineKey key.MachinePublic `json:"machineKey"`
	NodeKey    key.NodePublic    `json:"nodeKey"`
	User       UserID            `json:"user,omitempty" column:"user_id"`
	// Rejected is the reason for a rejection; empty if the device was approved.
	Rejected string `json:"rejected,omitempty"`
	// Method is how the device was approved; empty means RegisterApproved.
	Method RegisterMethod `json:"method,omitempty"`
	// Expiry is when the node expires, regardless of the server's default; zero applies the
	// default.
	Expiry Time `json:"expiry,omitempty"`
	Until  Time `json:"until"`
}

// LoginPut adds or replaces the decision on a waiting device.
type LoginPut struct {
	Login *Login `json:"login"`
}

// Kind names the event in the log.
func (LoginPut) Kind() Kind          { return KindLoginPut }
func (e LoginPut) valid() bool       { return e.Login != nil && valid(e.Login.ID) }
func (e LoginPut) count(c *Counters) { c.Login = max(c.Login, e.Login.ID) }
func (e LoginPut) apply(d *Draft) {
	keep(d.e, &d.s.Logins.Table, &d.s.Logins.byNodeKey, e.Login.ID, e.Login, loginNodeKey)
}

// LoginGone removes a decision that the device has received or that has expired.
type LoginGone struct {
	ID LoginID `json:"id"`
}

// Kind names the event in the log.
func (LoginGone) Kind() Kind    { return KindLoginGone }
func (e LoginGone) valid() bool { return valid(e.ID) }
func (e LoginGone) apply(d *Draft) {
	keep(d.e, &d.s.Logins.Table, &d.s.Logins.byNodeKey, e.ID, nil, loginNodeKey)
}

func loginNodeKey(l *Login) key.NodePublic { return l.NodeKey }

// Logins holds all decisions that devices have not received yet.
type Logins struct {
	Table[LoginID, Login]
	byNodeKey index[key.NodePublic, LoginID]
}

// ByNodeKey returns the decision on the device that asked with this node key.
func (s *Logins) ByNodeKey(k key.NodePublic) (*Login, bool) {
	return s.lookup(s.byNodeKey.at(k))
}
