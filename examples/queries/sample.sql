-- SPDX-License-Identifier: MIT
-- One sample (:sample, here 20) with all its context: what it says, the call that it belongs to with
-- all its callers, and what came before and after it.
SELECT sample_id, type, time_ns, pid, tid, cpu, event, printf('%08x', data) AS data, function
FROM samples WHERE trace_id = 1 AND sample_id = coalesce(:sample, 20);

WITH RECURSIVE me(id) AS (
  SELECT sample_id FROM call WHERE trace_id = 1 AND sample_id = coalesce(:sample, 20)
  UNION
  SELECT sample_id FROM call WHERE trace_id = 1 AND exit_id = coalesce(:sample, 20)
), stack(id, up) AS (
  SELECT id, 0 FROM me
  UNION ALL
  SELECT (SELECT parent_id FROM call WHERE trace_id = 1 AND sample_id = id), up + 1
  FROM stack WHERE id IS NOT NULL)
SELECT up, f.name AS function, CAST(s.tick * t.tick_ns AS INT) AS start_ns,
       CAST(c.ticks * t.tick_ns AS INT) AS duration_ns, CAST(c.self * t.tick_ns AS INT) AS self_ns
FROM stack -- CROSS JOIN: in this order
     CROSS JOIN call c ON c.trace_id = 1 AND c.sample_id = id
     CROSS JOIN sample s ON s.trace_id = 1 AND s.sample_id = id
     CROSS JOIN node n ON n.trace_id = 1 AND n.node_id = c.node_id
     CROSS JOIN function f ON f.trace_id = 1 AND f.function_id = n.function_id
     CROSS JOIN trace t ON t.trace_id = 1
ORDER BY up;

SELECT sample_id, type, time_ns, tid, function
FROM samples WHERE trace_id = 1
  AND sample_id BETWEEN coalesce(:sample, 20) - 2 AND coalesce(:sample, 20) + 2
ORDER BY sample_id;

-- Answer for the trace of `make_trace small`:
-- | sample_id | type | time_ns | pid  | tid  | cpu | event |   data   | function |
-- |-----------|------|---------|------|------|-----|-------|----------|----------|
-- | 20        | exit | 5650    | 1000 | 1000 | 9   | 7     | 20000f00 | leaf     |
-- | up | function  | start_ns | duration_ns | self_ns |
-- |----|-----------|----------|-------------|---------|
-- | 0  | leaf      | 5550     | 100         | 100     |
-- | 1  | on_signal | 5500     | 500         | 400     |
-- | sample_id | type  | time_ns | tid  | function  |
-- |-----------|-------|---------|------|-----------|
-- | 18        | entry | 5500    | 1000 | on_signal |
-- | 19        | entry | 5550    | 1000 | leaf      |
-- | 20        | exit  | 5650    | 1000 | leaf      |
-- | 21        | exit  | 6000    | 1000 | on_signal |
-- | 22        | exit  | 7000    | 1000 | work      |
