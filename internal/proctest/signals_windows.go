package proctest

import "os"

var inherited []os.Signal
