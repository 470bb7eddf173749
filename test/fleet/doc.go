// Package fleet holds tests of a whole fleet on one Redis: many processes with many goroutines each that share one
// pool, and whether what they are granted could have been decided one after the other.
package fleet
