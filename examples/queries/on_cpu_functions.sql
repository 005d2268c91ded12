-- SPDX-License-Identifier: MIT
-- Total time of each function, and how much of it its threads were on a CPU.  on_cpu_ns is NULL
-- where kron record was not allowed to see context switches; intervals has it for each call.
SELECT function, calls, total_ns, on_cpu_ns, level
FROM functions WHERE trace_id = 1 ORDER BY on_cpu_ns DESC;

-- Answer for the trace of `make_trace naps`:
-- | function | calls | total_ns | on_cpu_ns | level |
-- |----------|-------|----------|-----------|-------|
-- | main     | 1     | 14000    | 6000      | 0     |
-- | nap      | 2     | 10700    | 5700      | 3     |
