/* SPDX-License-Identifier: MIT */
/* node.h - which node of a parallel machine this is: 10 bits of every source address. */
#ifndef BUS_NODE_H
#define BUS_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include <kron/board.h>

#define NODE_MAX (UINT32_MAX >> KRON_SOURCE_TID_BITS) /* 1023 */
#define NODE_DEFAULT (-1) /* where a node is asked for: node_default() */

struct node {
	uint32_t n;
	const char *from; /* whose number it is; NULL: nobody's, so it is 0 */
	/* A variable that came before has a number that is none of a node. */
	const char *unfit, *unfit_value;
};

/*
 * The first of these that says a number from 0 to NODE_MAX: the rank in an MPI job
 * (OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK), SLURM_NODEID, the host's name (node_of_host()).
 * What it points to is the environment's.
 */
void node_default(struct node *out);

/*
 * "node017", "compute-3.cluster.org": the one number of its first part, at the end of that.  A name with
 * several numbers, or in hexadecimal as containers have it, says none.
 */
bool node_of_host(const char *name, uint32_t *n);

#endif
