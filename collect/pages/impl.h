/* SPDX-License-Identifier: MIT */
/*
 * impl.h - the parts of collect/pages.
 *
 *   pages.c   counts that are added up, questions of librefcnt
 *   maps.c    what processes have mapped
 *   looks.c   what is new in chunks since the last look; nodes; migration
 *   functions.c   by function
 */
#ifndef COLLECT_PAGES_IMPL_H
#define COLLECT_PAGES_IMPL_H

#include <pthread.h>

#include "collect/kernel/nodes.h"
#include "collect/pages/pages.h"
#include "trace/index.h"

/* Sums are made when there are so many new ones. */
#define MERGE_AT (1u << 18)

/* What of a chunk's records is in the sums already. */
struct pages_seen {
	uint64_t seq; /* of the chunk that it was */
	int node;     /* where its thread was then */
	struct {
		uint64_t reads, writes;
	} v[KRON_PAGES_IN_CHUNK];
};

/* A process that can be asked. */
struct pages_process {
	uint32_t uid;
	pid_t pid;
};

/*
 * Of what is noted of mappings.  One process has 65,530 at a time, as the kernel comes; who changes them all the time makes neither
 * kron slow nor its memory full.
 */
#define PAGES_MAPS_OF_ONE (1u << 18)
#define PAGES_MAPS_BYTES (512u << 20)
struct pages_maps {
	VEC(struct pages_note {
		uint32_t ticket; /* whose it is while it has no uid */
		uint32_t before; /* one more than that of the same key before it; 0: none */
	})
	v;                      /* by index in out.maps */
	struct index keys;      /* owner, start and name, as one number */
	VEC(uint32_t) last;     /* by index of that: as `before` */
	struct index owners;    /* uid, or ticket and a bit */
	VEC(uint32_t) of_owner; /* by index of that: how many */
	VEC(uint32_t) vdsos;    /* of out.maps */
	uint64_t bytes, unnoted;
};

struct pages {
	struct pages_setup setup;
	struct nodes nodes;
	struct kron_watch *watch;
	bool watch_is_full; /* of `lock` */
	struct trace_pages out;
	size_t merged; /* of out.v, at the beginning: sorted, each page of a thread once */
	size_t functions_merged; /* likewise of out.functions */
	pthread_mutex_t
		held; /* of out.v, out.functions, and of chunks that are taken: drain and control threads */
	pthread_mutex_t lock; /* of out.maps, maps and watch: server and drain threads */
	struct pages_maps maps;

	uint64_t start_ns, next_ns, every_ns; /* of looks; every_ns 0: there are none */
	VEC(struct pages_seen *) seen;        /* by number of the chunk */
	VEC(struct trace_page) step;          /* what is new since the last look; no threads */
	VEC(struct trace_page) since;    /* migration: by node, since the page came to its home */
	VEC(struct pages_process) lives; /* at this look */
};

/* Sorts, and adds what is alike: how many are left. */
size_t pages_add_up(struct trace_page *v, size_t n);
/* Mappings that were noted by this ticket are this process's. */
void pages_name_owner(struct pages *p, uint32_t ticket, uint32_t uid);
/* Those of processes that have counted nothing are dropped: no page is theirs. */
void pages_maps_end(struct pages *p);
void pages_maps_free(struct pages_maps *m);
void pages_add(struct pages *p, const struct trace_page *page);
/* What a record has that is new, if it is a function's. */
void pages_add_function(struct pages *p, const struct kron_chunk *c, uint32_t i,
			const struct trace_page *page);
void pages_merge_functions(struct pages *p);
/* NULL: nothing of it is. */
const struct pages_seen *pages_seen_at(const struct pages *p, uint32_t chunk,
				       const struct kron_chunk *c);
/* What has come since; address, reads and writes.  False: nothing. */
bool pages_read_new(const struct pages_seen *seen, const struct kron_chunk *c, uint32_t i,
		    struct trace_page *out);

#endif
