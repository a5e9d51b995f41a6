// Package hostiletest attacks a running server and console as strangers do, while
// 300 well-behaved nodes keep working.
//
// The list of unauthenticated routes comes from the routers themselves: a new route
// without a row in rows_test.go fails a test. Every row is attacked with slow
// headers, slow bodies, slow readers, oversized bodies and decompression bombs. The
// table in attacks_test.go says how many connections an attack uses, how fast they
// come, from how many networks, and which path they take: directly, through nginx
// with the configuration in deploy/nginx, or to the console.
//
// The server, the console, nginx and the attacker are separate processes. During an
// attack, nodes are renamed through the API, and the lag is the time from the
// request until another node has the new name. Some nodes reconnect constantly, a
// new one joins, and /health is requested on new connections. For every attack:
//
//   - the lag at the 99th percentile is at most twice the lag without an attack, or
//     100 ms if that is more;
//   - a node that connects or joins is served within seconds, and no stream ends;
//   - /health answers;
//   - no silent connection is kept for longer than the table says;
//   - an administrator can sign in to the console.
//
// After the last attack, the server's memory, goroutines and open files return to
// their earlier levels.
//
// The attacker shares the machine, with a lower priority, so the reference is the
// lag in the same run. The short form attacks for about a second each; "make
// hostile" for 10 minutes in all.
//
// Measured in a short run on 2 cores that had a load average of 20 from other work,
// so all times are too long: p50/p99/max of the lag in ms, the slowest response of
// /health in ms, and the server's peak memory so far. The intended flood rates were
// not reached; the log of a run says how many units there were.
//
//	no attack                                          30/96/171    125   71 MB
//	16 WebSockets without subprotocol, direct          25/70/114     84   73 MB
//	16 WebSockets without subprotocol, nginx           26/175/196   125   76 MB
//	16 WebSockets with half a frame, direct            32/100/106    67   78 MB
//	16 WebSockets with half a frame, nginx             27/181/235   178   77 MB
//	broken upgrades of every kind, direct              26/162/170    70   78 MB
//	upgrades that are never read, direct               28/115/117   110   79 MB
//	4,786 idle connections, direct                     59/228/230    99  111 MB
//	5,000 idle connections, nginx                      45/270/373   179  120 MB
//	slow clients on every route, nginx                 59/266/271   157  141 MB
//	silent Noise strangers, direct                     113/288/313  186  115 MB
//	half requests on machine routes, direct            48/191/195   105  107 MB
//	handshakes, direct                                 57/199/208   100  118 MB
//	joins without a key                                26/117/123    37  129 MB
//	joins with a bad key                               35/120/127    62  130 MB
//	logins that wait                                   68/161/175   169  115 MB
//	bad API keys, direct                               33/160/164   115  116 MB
//	requests of /health                                44/152/163    74  117 MB
//	oversized bodies and bombs on every route, direct  33/222/231   221  118 MB
//	console logins                                     32/86/88      61  118 MB
//
// When the server still waited for clients during the handshake, the first attack
// locked out every connecting node for as long as it lasted. Memory in use was
// 16 MB before the attacks and 19 MB after them.
package hostiletest
