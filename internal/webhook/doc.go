// Package webhook posts events to receivers: it reads the history and sends each
// event that a webhook subscribes to, signed and in order, until the receiver
// accepts it.
//
// It decides nothing about the network and stores only its position in the
// history. Run owns its goroutines: one for each enabled webhook, and one more
// while this replica delivers to it.
//
// Only one replica delivers to a webhook at a time. It holds a lease in the
// snapshot, which it renews while it has something to deliver.
package webhook
