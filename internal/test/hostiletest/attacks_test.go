//go:build !race

package hostiletest

import "time"

// way is the path that an attack takes to its target.
type way string

const (
	direct  way = "direct"
	proxied way = "nginx" // nginx with the configuration from the repository
	console way = "console"
)

// attack is one row of the table of attacks.
type attack struct {
	unit     string // a key of the map that units returns
	ways     []way
	rate     int // maximum number of units per second
	conns    int // maximum number of concurrent units
	networks int // number of networks that the units come from
	// kept is the longest that the server may keep a silent connection; zero for attacks that do not wait.
	kept time.Duration
	// weight multiplies the attack's share of the time; zero means one.
	weight int
}

// attacks returns the attacks in the order in which they run.
func attacks() []attack {
	both := []way{direct, proxied}
	const (
		refused = 2 * time.Second  // immediately, plus time for a busy machine
		slow    = 35 * time.Second // the limit for a body is thirty seconds
		noise   = 35 * time.Second // long enough for two pings, or for a request, which has fifteen seconds
		header  = 13 * time.Second // the limit is ten seconds
	)
	return []attack{
		{unit: "WebSocket without subprotocol", ways: both, rate: 200, conns: 16, networks: 1, kept: refused, weight: 3},
		{unit: "WebSocket with half a frame", ways: both, rate: 200, conns: 16, networks: 1, kept: refused, weight: 3},
		{unit: "broken upgrade of every kind", ways: both, rate: 200, conns: 64, networks: 4, kept: refused, weight: 3},
		{unit: "upgrade that is never read", ways: both, rate: 200, conns: 64, networks: 4},

		{unit: "idle connection", ways: both, rate: 2500, conns: 5000, networks: 50, kept: header, weight: 3},
		{unit: "slow client on every route", ways: both, rate: 500, conns: 2000, networks: 50, kept: slow, weight: 2},
		{unit: "silent Noise stranger", ways: both, rate: 200, conns: 5000, networks: 50, kept: noise, weight: 2},
		{unit: "half request or unread answer on machine routes", ways: both, rate: 100, conns: 200, networks: 50, kept: noise},

		{unit: "handshake", ways: both, rate: 300, conns: 200, networks: 50},
		{unit: "20 joins without a key", ways: []way{direct}, rate: 50, conns: 50, networks: 50},
		{unit: "20 joins with a bad key", ways: []way{direct}, rate: 50, conns: 50, networks: 50},
		{unit: "join with a bad key over the API", ways: []way{direct}, rate: 500, conns: 200, networks: 50},
		{unit: "login that waits", ways: []way{direct}, rate: 150, conns: 1500, networks: 50, weight: 2},
		{unit: "bad API key", ways: both, rate: 1000, conns: 200, networks: 50},
		{unit: "health", ways: []way{direct}, rate: 2000, conns: 200, networks: 50},
		{unit: "oversized body or compressed bomb on every route", ways: both, rate: 100, conns: 50, networks: 50},
		{unit: "oversized body or bomb on machine routes", ways: []way{direct}, rate: 100, conns: 50, networks: 50},

		{unit: "slow client on every route", ways: []way{console}, rate: 500, conns: 500, networks: 50, kept: slow},
		{unit: "oversized body or compressed bomb on every route", ways: []way{console}, rate: 50, conns: 50, networks: 50},
		{unit: "console login", ways: []way{console}, rate: 100, conns: 100, networks: 50},
	}
}
