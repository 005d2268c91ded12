-- SPDX-License-Identifier: MIT
-- The longest single calls that ended with an exit, with when and where they began.
SELECT function, duration_ns, start_ns, pid, tid, cpu, sample_id
FROM intervals WHERE trace_id = 1 AND "end" = 'exit' AND NOT spans_loss
ORDER BY duration_ns DESC, sample_id LIMIT 4;

-- Answer for the trace of `make_trace small`:
-- | function | duration_ns | start_ns | pid  | tid  | cpu | sample_id |
-- |----------|-------------|----------|------|------|-----|-----------|
-- | work     | 2000        | 5000     | 1000 | 1000 | 9   | 16        |
-- | work     | 1000        | 2500     | 1000 | 1000 | 1   | 7         |
-- | work     | 700         | 2550     | 1000 | 1000 | 1   | 8         |
-- | parse    | 500         | 1500     | 1000 | 1000 | 1   | 3         |
