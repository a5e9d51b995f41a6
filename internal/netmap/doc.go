// Package netmap decides what each viewer of the map is sent, and encodes it in the
// format of Tailscale clients. Full renders the whole map of a viewer. Cache encodes full
// maps and updates, and keeps the bytes that viewers share.
//
// A viewer that has the full map of one world and is sent the Update to another ends up
// with the full map of the other. Rendering depends only on the world, so tests and
// running servers can check this.
//
// What a viewer is sent about its peers depends on its viewpoint alone (mostly its
// class). A change is therefore rendered, encoded and compressed once for all viewers
// with the same viewpoint, except for those that changed themselves.
//
// It uses neither clocks nor connections: package stream waits and writes.
package netmap
