-- SPDX-License-Identifier: MIT
-- How long each thread ran, waited, and was kept from running, between its first sample and its
-- last.  on_cpu_ns is NULL where kron record was not allowed to see context switches.
SELECT pid, tid, name, wall_ns, on_cpu_ns, waiting_ns, preempted_ns, waits, preemptions
FROM thread_times WHERE trace_id = 1 ORDER BY on_cpu_ns DESC;

-- Answer for the trace of `make_trace naps`:
-- | pid  | tid  |  name  | wall_ns | on_cpu_ns | waiting_ns | preempted_ns | waits | preemptions |
-- |------|------|--------|---------|-----------|------------|--------------|-------|-------------|
-- | 1000 | 1000 | naps   | 14500   | 6500      | 5000       | 3000         | 1     | 1           |
-- | 1000 | 1001 | second | 4400    | 4400      | 0          | 0            | 0     | 0           |
