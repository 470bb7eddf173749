package inspect

// GatePool is appended to a pool's name if a resource of the same name is shown too. That happens when the
// configuration has the resource in mode observe, which uses another pool.
const GatePool = " (gate)"
