-- SPDX-License-Identifier: MIT
-- Each thread's calls and the time in them.
SELECT h.tid, p.pid, h.name, count(*) AS calls, sum(i.self_ns) AS busy_ns
FROM intervals i JOIN thread h USING(trace_id, thread_id)
     JOIN process p USING(trace_id, process_id)
WHERE i.trace_id = 1 GROUP BY h.thread_id ORDER BY busy_ns DESC;

-- Answer for the trace of `make_trace small`:
-- | tid  | pid  |     name      | calls | busy_ns |
-- |------|------|---------------|-------|---------|
-- | 1000 | 1000 | app           | 15    | 1049000 |
-- | 1001 | 1000 | work\x1b]0;er | 3     | 10000   |
-- | 1002 | 1002 |               | 1     | 250     |
