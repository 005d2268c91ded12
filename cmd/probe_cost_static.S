/* SPDX-License-Identifier: MIT */
/* probe_cost_static.S - the thunk of static programs, for probe_cost.c, beside the other one. */
#define RT_STATIC
#define kron_rt_probe kron_rt_probe_static
#define kron_rt_payload kron_rt_payload_static
#define kron_rt_probe_sparse kron_rt_probe_sparse_static
#define kron_rt_probe_timed kron_rt_probe_timed_static
#define kron_rt_wide kron_rt_wide_static
#define kron_rt_slow_constant kron_rt_slow /* of what is not measured */
#include "runtime/static/thunk_static.S"
