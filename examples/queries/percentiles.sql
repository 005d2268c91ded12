-- SPDX-License-Identifier: MIT
-- Percentiles of what calls of a function took (:function, here `work`).
WITH d AS (SELECT duration_ns, percent_rank() OVER (ORDER BY duration_ns) AS r
           FROM intervals
           WHERE trace_id = 1 AND function = coalesce(:function, 'work') AND NOT spans_loss)
SELECT count(*) AS calls,
       max(duration_ns) FILTER (WHERE r <= 0.5) AS p50,
       max(duration_ns) FILTER (WHERE r <= 0.9) AS p90,
       max(duration_ns) FILTER (WHERE r <= 0.99) AS p99,
       max(duration_ns) AS max
FROM d;

-- Answer for the trace of `make_trace small`:
-- | calls | p50 | p90  | p99  | max  |
-- |-------|-----|------|------|------|
-- | 4     | 700 | 1000 | 1000 | 2000 |
