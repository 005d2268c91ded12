-- SPDX-License-Identifier: MIT
-- When threads moved to another CPU, and inside which call.
SELECT m.time_ns, m.tid, m.from_cpu, m.to_cpu,
       (SELECT function FROM intervals i
        WHERE i.trace_id = m.trace_id AND i.tid = m.tid AND i.start_ns <= m.time_ns
          AND i.start_ns + i.duration_ns >= m.time_ns
        ORDER BY i.depth DESC, i.sample_id DESC LIMIT 1) AS inside
FROM migrations m WHERE m.trace_id = 1 ORDER BY m.sample_id;

-- Answer for the trace of `make_trace small`:
-- | time_ns | tid  | from_cpu | to_cpu |                         inside                          |
-- |---------|------|----------|--------|---------------------------------------------------------|
-- | 4500    | 1000 | 1        | 9      | std::vector<int, std::allocator<int>>::push_back(int&&) |
-- | 15500   | 1001 | 0        | 5      | leaf                                                    |
