// Package hostiletest attacks a running server and console as strangers do, while 300 well-behaved
// nodes keep working.
//
// The list of unauthenticated routes comes from the routers themselves: a new route without a row
// in rows_test.go fails a test. Every row is attacked with slow headers, slow bodies, slow
// readers, oversized bodies and decompression bombs. The table in attacks_test.go says how many
// connections an attack uses, how fast they come, from how many networks, and which path they
// take: directly, through nginx with the configuration in deploy/nginx, or to the console.
//
// The server, the console, nginx and the attacker are separate processes. During an attack, nodes
// are renamed through the API, and the lag is the time from the request until another node has the
// new name. Some nodes reconnect constantly, a new one joins, and /health is requested on new
// connections. For every attack:
//
//   - the lag at the 99th percentile is at most twice the lag without an attack, or
//     100 ms if that is more;
//   - a node that connects or joins is served within seconds, and no stream ends;
//   - /health responds;
//   - no silent connection is kept for longer than the table says;
//   - an administrator can sign in to the console.
//
// After the last attack, the server's memory, goroutines and open files return to their earlier
// levels.
//
// The attacker shares the machine, with a lower priority, so the reference is the lag in the same
// run. In a short run each attack takes about a second; "make hostile" runs for 10 minutes in all.
//
// Measured in a short run on 2 cores without other work: p50/p99/max of the lag in ms, the slowest
// response of /health in ms, and the server's peak memory so far.
//
//	no attack                                          17/53/61     39   71 MB
//	16 WebSockets without subprotocol, direct          18/63/69     41   73 MB
//	16 WebSockets without subprotocol, nginx           20/55/68     53   73 MB
//	16 WebSockets with half a frame, direct            18/87/97     87   74 MB
//	16 WebSockets with half a frame, nginx             20/72/79     53   75 MB
//	broken upgrades of every kind, direct              19/67/80     65   76 MB
//	upgrades that are never read, direct               21/93/95     50   76 MB
//	5,000 idle connections, direct                     24/95/115    67  117 MB
//	5,000 idle connections, nginx                      20/57/84     51  138 MB
//	500 slow clients a second on every route, direct   23/101/124  110  174 MB
//	200 silent Noise strangers a second, direct        19/74/85     55  176 MB
//	half requests on machine routes, direct            14/51/53     19  176 MB
//	300 handshakes a second, direct                    16/74/79     67  176 MB
//	20 joins without a key, 50 times a second          15/70/75     66  176 MB
//	20 joins with a bad key, 50 times a second         18/59/65     56  176 MB
//	150 logins a second that wait                      18/73/94     39  176 MB
//	1,000 bad API keys a second, direct                15/27/29     16  176 MB
//	2,000 requests of /health a second                 23/69/69     61  176 MB
//	oversized bodies and bombs on every route, direct  16/65/67     52  176 MB
//	console logins                                     21/56/63     24  176 MB
//
// When the server still waited for clients during the handshake, the first attack locked out every
// connecting node for as long as it lasted. Memory in use was 16 MB before the attacks, 30 MB
// right after them and 23 MB two and a half minutes later.
package hostiletest
