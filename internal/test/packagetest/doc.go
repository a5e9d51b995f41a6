// Package packagetest contains only tests: they build a release like `make release`, twice, and install,
// upgrade and remove its packages in containers, one of them with a running systemd. Whether the server
// itself works is tested elsewhere; here it only has to run as its unit says.
//
// They run with the flag -packages, which `make packages-test` sets, and need a Docker engine and, if Docker
// cannot pull one, the tools to build a Debian image. Without the flag nothing is built.
package packagetest
