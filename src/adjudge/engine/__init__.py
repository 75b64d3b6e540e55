"""Where the work runs: partitions, serial or in a process pool, and the recomputation of a run."""
