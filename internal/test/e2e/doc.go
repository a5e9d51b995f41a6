// Package e2e contains only tests: they run the fairlead binary and unmodified Tailscale clients as
// users do. Each test covers one rule that can only be observed with real clients. Whatever a
// virtual node can show is tested in meshtest, faster and at scale.
//
// The clients are the oldest and the newest supported versions; the flag -clients selects others.
// Nothing leaves the machine.
package e2e
