//go:build !linux

package logstore

var preciseAfterFunc = afterFunc
