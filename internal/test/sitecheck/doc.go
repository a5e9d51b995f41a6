// Package sitecheck contains only tests: they read the built documentation site and check that every link
// leads to a page and a heading that exist, that pages load nothing from other hosts, and that every document
// is part of the site. Links between the Markdown files are checked by doccheck.
//
// They run with the flag -site, which `make site-check` sets.
package sitecheck
