// Package packagetest holds tests alone: it builds a release as `make release`
// does, twice, and installs, upgrades and removes its packages in containers, one
// of them with a running systemd. Whether the service itself works is tested
// elsewhere; here it is enough that it runs as its unit says.
//
// They run with the flag -packages, as `make packages-test` gives it, and need a
// Docker engine and, where Docker cannot pull one, what makes a Debian image;
// without it nothing is built.
package packagetest
