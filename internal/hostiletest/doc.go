// Package hostiletest attacks a running server and console as strangers do, while
// 300 well-behaved nodes keep working.
//
// The routes that need no credentials come from the routers themselves: a new
// route without a row in rows_test.go fails a test. Rows are attacked all: with
// slow headers, slow bodies, slow readers, oversized bodies and compressed bombs.
// The table in attacks_test.go says how many connections an attack has, how fast
// they come, from how many networks, and by which way: directly, through nginx with
// the configuration in deploy/nginx, or at the console.
//
// The server, the console, nginx and the attacker are processes of their own. While
// an attack runs, nodes are renamed by the API, and the lag is the time from the
// request until another node has the new name. Some nodes reconnect all the time, a
// new one joins, and /health is asked on new connections. For every attack:
//
//   - the lag at the 99th percentile is at most twice the lag without an attack, or
//     100 ms if that is more;
//   - a node that connects or joins is served within seconds, and no stream ends;
//   - /health answers;
//   - no silent connection is kept for longer than the table says;
//   - an administrator can sign in to the console.
//
// After the last attack, memory, goroutines and files of the server return to what
// they were.
//
// The attacker shares the machine, with a lower priority, so the reference is the
// lag in the same run. The short form attacks for about a second each; "make
// hostile" for 10 minutes in all.
package hostiletest
