// Package deploytest holds tests alone: the deployment as its operators meet it,
// images, Compose files, proxy and scripts, started by a real Docker engine. Each
// test states one rule that can only be seen there.
//
// They run with the flag -deploy, as `make deploy` gives it, and need root,
// docker-compose and Debian's packages; without it nothing is started. Nothing
// leaves the machine but requests for packages and modules while images are built.
package deploytest
