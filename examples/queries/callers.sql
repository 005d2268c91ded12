-- SPDX-License-Identifier: MIT
-- Who calls a function (:function, here `leaf`), how often and for how long.
SELECT coalesce(p.function, '(nobody seen)') AS caller, sum(n.calls) AS calls,
       sum(n.total_ns) AS total_ns
FROM call_tree n LEFT JOIN call_tree p ON p.trace_id = n.trace_id AND p.node_id = n.parent_id
WHERE n.trace_id = 1 AND n.function = coalesce(:function, 'leaf')
GROUP BY p.function_id ORDER BY total_ns DESC, caller;

-- Answer for the trace of `make_trace small`:
-- |    caller     | calls | total_ns |
-- |---------------|-------|----------|
-- | work          | 2     | 4850     |
-- | (nobody seen) | 1     | 250      |
-- | on_signal     | 1     | 100      |
-- | parse         | 1     | 100      |
