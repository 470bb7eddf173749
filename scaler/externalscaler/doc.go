// Package externalscaler has the messages and the gRPC service with which KEDA asks an external scaler.
//
// It is generated from KEDA's own externalscaler.proto. KEDA's module has the same package, but it brings all of KEDA's dependencies with it.
// A program that links both must set GOLANG_PROTOBUF_REGISTRATION_CONFLICT=ignore, because both register the same names.
package externalscaler

//go:generate ../../scripts/protoc externalscaler.proto
