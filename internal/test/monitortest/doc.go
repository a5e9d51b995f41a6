// Package monitortest holds tests alone: rules, alerts, dashboards and runbook
// are what they promise, and a real Prometheus finds in a real service what
// they ask for. The same in containers is tested in deploytest.
//
// It needs promtool, prometheus and amtool, from Debian's packages prometheus
// and prometheus-alertmanager.
package monitortest
