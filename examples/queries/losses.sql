-- SPDX-License-Identifier: MIT
-- Where samples were lost, and the calls that this makes doubtful.
SELECT l.time_ns, l.tid, l.lost, i.function, i.duration_ns
FROM losses l JOIN intervals i ON i.trace_id = l.trace_id AND i.tid = l.tid AND i.spans_loss
     AND i.start_ns <= l.time_ns AND i.start_ns + i.duration_ns >= l.time_ns
WHERE l.trace_id = 1 ORDER BY l.sample_id, i.sample_id;

-- Answer for the trace of `make_trace small`:
-- | time_ns | tid  | lost | function | duration_ns |
-- |---------|------|------|----------|-------------|
-- | 10500   | 1001 | 123  | work     | 10000       |
-- | 10500   | 1001 | 123  | leaf     | 4750        |
