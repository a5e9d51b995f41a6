// Package charttest checks the chart in ../fairlead for each set of values: every rendered
// field exists in the Kubernetes API, references between the objects are valid, and the
// server accepts its configuration. It is a separate module, so that the Kubernetes types
// do not become dependencies of the server. It needs helm and fairlead, which make chart
// builds; it does not start a cluster.
package charttest
