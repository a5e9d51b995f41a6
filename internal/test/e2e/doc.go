// Package e2e holds tests alone: the fairlead binary and unmodified Tailscale
// clients, as their users meet them. Each test states one rule that can only be
// seen with real clients. What a virtual node can show is tested in meshtest,
// faster and at scale.
//
// The clients are the oldest and the newest supported ones; the flag -clients
// names others. Nothing leaves the machine.
package e2e
