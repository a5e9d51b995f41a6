// Package movetest moves a network of real clients from a real Headscale server to Fairlead and back (make move).
package movetest
