-- SPDX-License-Identifier: MIT
-- The call tree down to a depth (:depth, here 2), indented, heaviest first.
WITH RECURSIVE tree(node_id, depth, function, calls, total_ns, self_ns) AS (
  SELECT node_id, depth, function, calls, total_ns, self_ns
  FROM call_tree WHERE trace_id = 1 AND parent_id IS NULL
  UNION ALL
  SELECT n.node_id, n.depth, n.function, n.calls, n.total_ns, n.self_ns
  FROM tree t CROSS JOIN call_tree n ON n.trace_id = 1 AND n.parent_id = t.node_id
  WHERE n.depth <= coalesce(:depth, 2)
  ORDER BY 2 DESC, 5 DESC) -- deeper rows first: depth first
SELECT printf('%*s', 2 * depth, '') || function AS way, calls, total_ns, self_ns FROM tree;

-- Answer for the trace of `make_trace small`:
-- |                             way                             | calls | total_ns | self_ns |
-- |-------------------------------------------------------------|-------|----------|---------|
-- | main                                                        | 1     | 1049000  | 993500  |
-- |   parse                                                     | 3     | 51500    | 50500   |
-- |     std::vector<int, std::allocator<int>>::push_back(int&&) | 1     | 900      | 900     |
-- |     leaf                                                    | 1     | 100      | 100     |
-- |   work                                                      | 2     | 3000     | 1800    |
-- |     work                                                    | 1     | 700      | 300     |
-- |   evil\x1b[31m\x0a\x09"\name\xff\xc2\x9b                    | 1     | 500      | 400     |
-- |     libevil.so.1+0x11c0                                     | 1     | 100      | 100     |
-- |   event 9422                                                | 1     | 500      | 500     |
-- | work                                                        | 1     | 10000    | 5150    |
-- |   leaf                                                      | 2     | 4850     | 4850    |
-- | on_signal                                                   | 1     | 500      | 400     |
-- |   leaf                                                      | 1     | 100      | 100     |
-- | leaf                                                        | 1     | 250      | 250     |
