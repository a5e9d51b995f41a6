// Package monitortest contains only tests: they check the rules, alerts, dashboards and the runbook, and that
// a real Prometheus finds the metrics they use in a real server. The same is tested with containers in
// deploytest.
//
// It needs promtool, prometheus and amtool, from Debian's packages prometheus and prometheus-alertmanager.
package monitortest
