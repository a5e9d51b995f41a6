// Package charttest proves of the chart in ../fairlead, for each set of values, that
// Kubernetes knows every field of what it renders, that the parts find each other, and
// that the service accepts its configuration. It is a module of its own so that the
// types of Kubernetes do not become dependencies of the service. It needs helm and
// fairlead, which make chart builds; it does not start a cluster.
package charttest
