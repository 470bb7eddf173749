// Package ratelimit has the messages and the gRPC service with which Envoy asks a rate limit service.
//
// It is generated from ratelimit.proto, the part of Envoy's API that Sluice uses. Envoy's own package github.com/envoyproxy/go-control-plane
// registers hundreds of messages before main. A program that links both must set GOLANG_PROTOBUF_REGISTRATION_CONFLICT=ignore, because both
// register the same names.
package ratelimit

//go:generate ../../scripts/protoc ratelimit.proto
