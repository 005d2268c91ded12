/* SPDX-License-Identifier: MIT */
/*
 * refcnt.h - memory reference counters of pages, as refcnt(5) of the Origin 2000 has them, for a process that
 * `kron pages` counts.
 *
 *	#include <refcnt.h>                     cc prog.c -lrefcnt
 *
 *	struct refcnt *r = refcnt_open(0);      the calling process
 *	sn0_refcnt_buf_t buf[16];
 *	sn0_refcnt_args_t args = {table, 16 * REFCNT_HW_PAGE, buf};
 *	refcnt_ioctl(r, PIOCGETSN0EXTREFCNTRS, &args);
 *
 * Types, fields and requests have the names of refcnt(5).  There is no file to ioctl(): the library asks the
 * recorder, over a socket, and sees nothing but its answer.  What is counted is what kron-pages(1) says, of this
 * process alone: loads and stores of its instructions, whether or not a cache had the line.
 *
 * Lengths and addresses are in bytes.  Functions that return int return 0 or more, or a negative errno value,
 * and refcnt_error() then has the sentence.  Not for signal handlers; threads may use handles of their own.
 */
#ifndef REFCNT_H
#define REFCNT_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- names of refcnt(5) ---- */

typedef uint32_t refcnt_t;
typedef int16_t cnodeid_t;

#define SN0_REFCNT_MAX_COUNTERS 64 /* nodes, or groups of 8 nodes where there are more */

/*
 * One counter a node, by cnodeid: the node that the references came from.  On a machine with several nodes a
 * thread's references since it was last looked at are those of the node where it is then: exact for a thread that
 * is bound to a node.  Each counter is added to its mirror by itself, not the whole set at once.
 */
typedef struct sn0_refcnt_set {
	refcnt_t refcnt[SN0_REFCNT_MAX_COUNTERS];
	uint64_t flags; /* reserved: 0 */
} sn0_refcnt_set_t;

/* Of one hardware page. */
typedef struct sn0_refcnt_buf {
	sn0_refcnt_set_t refcnt_set;
	uint64_t paddr;     /* physical address of the page, or REFCNT_PADDR_UNKNOWN */
	uint64_t page_size; /* that maps it; 0: nothing is mapped there, or nobody may know */
	cnodeid_t cnodeid;  /* its home node, or REFCNT_CNODE_UNKNOWN */
} sn0_refcnt_buf_t;

/* The caller's: buf has room for each hardware page that [vaddr, vaddr + len) touches. */
typedef struct sn0_refcnt_args {
	char *vaddr;
	long len;
	sn0_refcnt_buf_t *buf;
} sn0_refcnt_args_t;

/* The page is not in memory, or /proc/PID/pagemap does not tell this user (it wants CAP_SYS_ADMIN). */
#define REFCNT_PADDR_UNKNOWN UINT64_MAX
/* The page is not in memory, or move_pages(2) is not permitted. */
#define REFCNT_CNODE_UNKNOWN ((cnodeid_t)-1)
#define REFCNT_HW_PAGE 4096

/* Requests; the argument is a sn0_refcnt_args_t. */
#define PIOCGETSN0REFCNTRS 1    /* what the hardware's counters hold: refcnt_set_width() */
#define PIOCGETSN0EXTREFCNTRS 2 /* their software-extended mirrors of 32 bits */

/* ---- a process ---- */

struct refcnt;

/*
 * A process that runs and whose pages are being counted, by `kron pages` or by `kron record` with probes of
 * the kind `pages`; 0: the calling one.  NULL, and errno: ESRCH it is not traced; ENOTSUP no pages are counted,
 * or lines and not pages are, or the recorder is in
 * another pid namespace than who asks for a process by its number; ECONNREFUSED the recorder does not answer;
 * EACCES; ENOMEM.
 */
struct refcnt *refcnt_open(pid_t pid);
void refcnt_close(struct refcnt *r);

/* What went wrong last in this thread: one sentence without a full stop. */
const char *refcnt_error(void);

/* Bits of a hardware counter: 11, standard SIMMs, or 19, premium ones, which is what it is at first.  -EINVAL. */
int refcnt_set_width(struct refcnt *r, unsigned bits);

/*
 * Fills args->buf: how many elements.  A hardware counter that comes to its maximum, (1 << width) - 1, is added
 * to its mirror and is 0 again; a mirror stays at UINT32_MAX.  Until then the two together are all references.
 * -EINVAL: another request, no length, or a range that goes round; else as refcnt_open().
 */
int refcnt_ioctl(struct refcnt *r, int request, sn0_refcnt_args_t *args);

/* Reads and writes apart, 64 bits each, which no counter of refcnt(5)'s has: one element a hardware page. */
struct refcnt_use {
	uint64_t reads, writes;
};
int refcnt_uses(struct refcnt *r, const void *vaddr, long len, struct refcnt_use *out);

/*
 * A section of the address space (MigrationRefcnt of mmci(5)).  At first all of it is enabled.  From the first
 * refcnt_enable() on only sections are: their counters begin at 0 then, and all others stay 0.  This is a view of
 * this handle: kron goes on counting what it was asked for.  A section ends at refcnt_disable() with the same
 * range, which is -ENOENT if there is none; one that overlaps another is -EEXIST.
 */
int refcnt_enable(struct refcnt *r, const void *vaddr, long len);
int refcnt_disable(struct refcnt *r, const void *vaddr, long len);

/* ---- the buffer of a node ---- */

typedef struct rcb_info {
	uint64_t rcb_len;            /* of the buffer, in bytes */
	int rcb_sw_sets;             /* sets of counters in it */
	int rcb_sw_counters_per_set; /* nodes */
	int rcb_sw_counter_size;     /* sizeof(refcnt_t) */
	int rcb_base_pages;          /* of the node's memory */
	int rcb_base_page_size;
	uint64_t rcb_base_paddr; /* the lowest address that has counters */
	int rcb_cnodeid;
	int rcb_granularity;         /* REFCNT_HW_PAGE */
	unsigned rcb_hw_counter_max; /* width mask */
	int rcb_diff_threshold;      /* of `kron pages --migrate`; 0: it migrates nothing */
	int rcb_abs_threshold;       /* likewise */
	int rcb_num_slots;
} rcb_info_t;

/* Of physical memory, without gaps: here, pages that the process has used and that lie next to each other. */
typedef struct rcb_slot {
	uint64_t base, size; /* in bytes */
} rcb_slot_t;

struct refcnt_node;

/*
 * What refcnt(5) maps from the device of a node: extended counters by physical address, of the process's pages
 * that are at home on the node.  It is a copy, as things are now.  A page of the handle's that is disabled or was
 * not used has no counters.  The set of a page is after those of all slots in front of its own.
 * NULL, and errno: EPERM physical addresses are not told to this user; EINVAL no such node; else as refcnt_open().
 */
struct refcnt_node *refcnt_node_open(struct refcnt *r, int cnodeid);
void refcnt_node_close(struct refcnt_node *n);
/* RCB_INFO_GET */
void refcnt_node_info(const struct refcnt_node *n, rcb_info_t *out);
/* RCB_SLOT_GET: rcb_num_slots of them, by address. */
void refcnt_node_slots(const struct refcnt_node *n, rcb_slot_t *out);
/* rcb_len bytes, to be read; as long as the node is open. */
const refcnt_t *refcnt_node_map(const struct refcnt_node *n);

#ifdef __cplusplus
}
#endif

#endif
