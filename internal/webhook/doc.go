// Package webhook tells receivers elsewhere what happens: it reads the history,
// and posts each event that a webhook asks for, signed, in the order in which
// they happened, until the receiver has taken it.
//
// It decides nothing about the network and keeps nothing but a place in the
// history. It imports control, ledger, policy and mesh. Run owns its goroutines:
// one for each webhook that is enabled, and one more while this replica speaks to
// the receiver.
//
// Words it defines:
//
//   - A round is a time in which this replica alone speaks to one receiver. A
//     lease in the snapshot makes it alone; the round renews it.
package webhook
