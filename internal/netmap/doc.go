// Package netmap renders a world for one viewer in the words of the clients:
// Full gives everything, Between what changed. Nothing it renders comes from
// outside the world, so a viewer that was given Full of one world and Between
// that and another holds what Full of the other gives.
//
// A viewer's peers depend on its class alone. Shared is therefore the same for
// all viewers of a class but those that changed themselves, and a peer is
// rendered once for all who see it.
//
// It is pure: it imports mesh and policy, reads no clock and keeps no state.
package netmap
