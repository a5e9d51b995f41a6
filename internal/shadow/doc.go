// Package shadow compares the maps that two control servers send to the same device, by their effect: which peers the device
// has, under which names and addresses, which traffic it accepts, and how it resolves names. It ignores what changes by itself,
// and the order and form of rules. It is pure.
package shadow
