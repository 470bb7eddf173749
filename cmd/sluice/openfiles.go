package main

import "fmt"

// Open files of a process on a file store: for each resource its state, its journal, and what it says of itself to
// others; and those of the process.
const (
	filesPerResource = 4
	filesBesides     = 32
)

// tooFewFiles adds to the failure of a gate that did not open, because the process may open too few files, how many it
// needs.
func tooFewFiles(err error, resources int) error {
	f := asFailure(err)
	may := openFiles()
	if may == 0 {
		return err
	}
	need := resources*filesPerResource + filesBesides
	f.hint = fmt.Sprintf("this process may open %d files; %d resources on a file store need %d, and serve 2 more for each request in progress: raise the limit with ulimit -n %d",
		may, resources, need, max(1024, 2*need))
	return f
}
