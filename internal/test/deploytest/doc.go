// Package deploytest contains only tests: they run the deployment as operators do (images, Compose
// files, proxy and scripts) on a real Docker engine. Each test covers one rule that can only be
// observed there.
//
// The tests run with the flag -deploy, which `make deploy` sets, and need root, docker-compose and
// Debian's packages. Without the flag they start nothing. The only traffic that leaves the machine
// is the download of packages and modules while images are built.
package deploytest
