-- SPDX-License-Identifier: MIT
-- The functions that took most time themselves, as `kron report -s self` shows them.
SELECT function, calls, total_ns, self_ns, min_ns, avg_ns, max_ns
FROM functions WHERE trace_id = 1 ORDER BY self_ns DESC LIMIT 5;

-- Answer for the trace of `make_trace small`:
-- |                        function                         | calls | total_ns | self_ns | min_ns  | avg_ns  | max_ns  |
-- |---------------------------------------------------------|-------|----------|---------|---------|---------|---------|
-- | main                                                    | 1     | 1049000  | 993500  | 1049000 | 1049000 | 1049000 |
-- | parse                                                   | 3     | 51500    | 50500   | 500     | 17166   | 50000   |
-- | work                                                    | 5     | 13000    | 7650    | 400     | 1025    | 2000    |
-- | leaf                                                    | 5     | 5300     | 5300    | 100     | 137     | 250     |
-- | std::vector<int, std::allocator<int>>::push_back(int&&) | 1     | 900      | 900     | 900     | 900     | 900     |
