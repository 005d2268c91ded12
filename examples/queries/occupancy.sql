-- SPDX-License-Identifier: MIT
-- How long each CPU was seen to run the traced threads, of the time from the first sample to the
-- last.  A thread is taken to be on a CPU from the first to the last of its samples there that no
-- other thread's sample interrupts.
SELECT cpu, busy_ns, percent, stays, threads, samples
FROM cpu_occupancy WHERE trace_id = 1 ORDER BY cpu;

-- Answer for the trace of `make_trace small`:
-- | cpu | busy_ns | percent | stays | threads | samples |
-- |-----|---------|---------|-------|---------|---------|
-- | 0   | 6000    | 0.6     | 2     | 2       | 10      |
-- | 1   | 3100    | 0.31    | 1     | 1       | 14      |
-- | 5   | 4500    | 0.45    | 1     | 1       | 4       |
-- | 9   | 995500  | 99.65   | 1     | 1       | 15      |
