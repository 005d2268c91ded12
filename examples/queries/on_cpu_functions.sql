-- SPDX-License-Identifier: MIT
-- Total time of each function, and how much of it its threads were on a CPU: what its calls and
-- the stretches off the CPU have in common is taken away.
SELECT f.function, f.calls, f.total_ns, f.total_ns - coalesce(sum(
         min(i.start_ns + i.duration_ns, o.start_ns + o.duration_ns) - max(i.start_ns, o.start_ns)), 0)
       AS on_cpu_ns, f.level
FROM functions f JOIN intervals i USING(trace_id, function_id)
  LEFT JOIN off_cpu o ON o.trace_id = i.trace_id AND o.thread_id = i.thread_id
    AND o.start_ns < i.start_ns + i.duration_ns AND o.start_ns + o.duration_ns > i.start_ns
WHERE f.trace_id = 1 AND NOT i.recursive
GROUP BY f.function_id ORDER BY on_cpu_ns DESC;

-- Answer for the trace of `make_trace naps`:
-- | function | calls | total_ns | on_cpu_ns | level |
-- |----------|-------|----------|-----------|-------|
-- | main     | 1     | 14000    | 6000      | 0     |
-- | nap      | 2     | 10700    | 5700      | 3     |
