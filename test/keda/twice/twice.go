// Package twice lets a program register the messages of KEDA's protocol twice: KEDA's client and Sluice's server each have code for them. Go
// initializes packages in the order of their paths, as far as their imports allow, so this one is early enough.
package twice

import "os"

func init() {
	if err := os.Setenv("GOLANG_PROTOBUF_REGISTRATION_CONFLICT", "ignore"); err != nil {
		panic(err)
	}
}
