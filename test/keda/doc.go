// Package keda drives the scaler with KEDA's own client, as it does in a cluster. It is a module of its own
// because that client brings all of KEDA's scalers with it, which take many minutes to compile.
package keda
