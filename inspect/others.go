package inspect

// GatePool follows the name of a pool that is shown beside a resource of the same name: the configuration has that in the mode observe, which
// uses another pool.
const GatePool = " (gate)"
