//go:build linux || darwin
package fleet_test
import _ "github.com/sluicehq/sluice/store/filestore"
const fileDir = "/tmp/fdir/x"
