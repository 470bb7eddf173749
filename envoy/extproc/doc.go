// Package extproc has the messages and the gRPC service with which Envoy lets a server process requests and responses.
//
// It is generated from extproc.proto, the part of Envoy's API that Sluice uses; package ratelimit says why there is not more.
package extproc

//go:generate ../../scripts/protoc extproc.proto
