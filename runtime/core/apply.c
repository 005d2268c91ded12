/* SPDX-License-Identifier: MIT */
/*
 * apply.c - applies the collector's commands: maps trampolines, writes patches.
 *
 * All the thinking was done by the planner.  Here a group (a module) is applied whole or not
 * at all:
 *
 *   1. check   every command lies inside the file, every page is there, every old byte is
 *              the expected one: nothing was changed yet
 *   2. map     trampoline blocks, read and execute, not writable any more, and tables, to be read
 *              only; over the block that a file from `kron patch` brought along, its text is
 *              patched already
 *   3. patch   text to RW, bytes, text to R-X.  Never writable and executable at once: while
 *              the text is writable nobody executes there, because this runs before the
 *              program's first instruction, or before the module's.  Where that is forbidden,
 *              through /proc/self/mem
 *   on a failure in 2 or 3: old bytes back, blocks unmapped, the next group
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "runtime/core/rt.h"
#include "runtime/faults/faults.h"
#include "runtime/faults/unwind.h"
#include "runtime/sys/memory.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define PAGE 4096ul
#define ADDRESS_END 0x0000800000000000ul

struct group {
	const uint8_t *file;
	uint64_t size;
	int fd;
	const struct kron_command *cmd;
	uint32_t ncmd;
	bool changes; /* KRON_REPLY_CHANGE */
	const struct rt_answer *answer;
};

struct failure {
	uint32_t code; /* enum kron_result_code */
	uint64_t detail;
};

static bool fail(struct failure *f, uint32_t code, long detail)
{
	f->code = code;
	f->detail = (uint64_t)(detail < 0 ? -detail : detail);
	return false;
}

/* ---- 1. check ---- */

static bool is_page_range(uint64_t addr, uint64_t len)
{
	return addr % PAGE == 0 && len % PAGE == 0 && len != 0 && addr != 0 && len < ADDRESS_END &&
	       addr < ADDRESS_END - len;
}

static bool is_inside_file(const struct group *g, uint64_t off, uint64_t len)
{
	return off <= g->size && len <= g->size - off;
}

static const struct kron_patch *patches_of(const struct group *g, const struct kron_command *c)
{
	return (const struct kron_patch *)(g->file + c->file_off);
}

static bool is_well_formed(const struct group *g, const struct kron_command *c)
{
	const struct kron_patch *p;
	uint32_t i;

	if (!is_page_range(c->addr, c->len))
		return false;
	if (c->kind == KRON_CMD_UNMAP || c->kind == KRON_CMD_COPIES || c->kind == KRON_CMD_RETIRE)
		return true;
	if (c->kind == KRON_CMD_MAP || c->kind == KRON_CMD_REPLACE || c->kind == KRON_CMD_TABLE ||
	    c->kind == KRON_CMD_RELEASE)
		return c->file_off % PAGE == 0 && is_inside_file(g, c->file_off, c->len);
	if (c->kind != KRON_CMD_PATCH || c->file_off % 8 ||
	    !is_inside_file(g, c->file_off, (uint64_t)c->count * sizeof(*p)))
		return false;
	p = patches_of(g, c);
	for (i = 0; i < c->count; i++) {
		if (p[i].old_len > KRON_PATCH_OLD_MAX || p[i].new_len > KRON_PATCH_NEW_MAX ||
		    p[i].new_len > p[i].old_len || (uint64_t)p[i].off + p[i].old_len > c->len)
			return false;
	}
	return true;
}

/* Pages that are not mapped would fault under our hands. */
static bool is_mapped(uint64_t addr, uint64_t len)
{
	uint8_t resident[512];
	uint64_t step = sizeof(resident) * PAGE;

	while (len) {
		uint64_t n = len < step ? len : step;

		if (sys3(__NR_mincore, (long)addr, (long)n, (long)resident) != 0)
			return false;
		addr += n;
		len -= n;
	}
	return true;
}

static bool has_kind(const struct group *g, uint32_t kind)
{
	for (uint32_t i = 0; i < g->ncmd; i++)
		if (g->cmd[i].kind == kind)
			return true;
	return false;
}

/* What gives all back may find that the windows of functions that sleep are back. */
static bool has_old_bytes(const struct group *g, const struct kron_command *c, uint64_t *where)
{
	const struct kron_patch *p = patches_of(g, c);
	const uint8_t *text = (const uint8_t *)c->addr;
	const bool releases = has_kind(g, KRON_CMD_RELEASE);
	uint32_t i;

	for (i = 0; i < c->count; i++) {
		size_t at = mini_mismatch(text + p[i].off, p[i].old_bytes, p[i].old_len);

		if (at < p[i].old_len && releases &&
		    mini_mismatch(text + p[i].off, p[i].new_bytes, p[i].new_len) == p[i].new_len)
			continue;
		if (at < p[i].old_len) {
			*where = p[i].off + at;
			return false;
		}
	}
	return true;
}

/* A block from the file that the live one was made for: text jumps into it already. */
static bool is_same_block(const struct group *g, const struct kron_command *c)
{
	const uint8_t *old = (const uint8_t *)c->addr;

	return is_mapped(c->addr, c->len) &&
	       mini_mismatch(old + KRON_BLOCK_ID, g->file + c->file_off + KRON_BLOCK_ID,
			     KRON_BLOCK_ID_LEN) == KRON_BLOCK_ID_LEN;
}

/* Bytes of a window that another block has displaced are never executed, though they may be there. */
static bool has_own_windows(const struct group *g, const struct kron_command *c, uint64_t *where)
{
	const struct kron_patch *p = patches_of(g, c);

	for (uint32_t i = 0; i < c->count; i++)
		for (uint32_t k = 0; k < p[i].old_len; k++)
			if (rt_is_displaced(c->addr + p[i].off + k)) {
				*where = p[i].off + k;
				return false;
			}
	return true;
}

static bool is_goroutine_inside(const struct rt_answer *a, uint64_t addr, uint32_t len)
{
	for (uint32_t i = 0; i < a->ngoroutines; i++)
		if (a->goroutines[i] > addr && a->goroutines[i] - addr < len)
			return true;
	return false;
}

static bool meets_goroutine(const struct group *g, const struct kron_command *c)
{
	const struct kron_patch *p = patches_of(g, c);

	for (uint32_t i = 0; i < c->count; i++)
		if (is_goroutine_inside(g->answer, c->addr + p[i].off, p[i].old_len))
			return true;
	return false;
}

/* The table of blocks has no place for it, and who stands in its windows could not be moved. */
static bool has_room(const struct group *g)
{
	return !g->changes || !has_kind(g, KRON_CMD_MAP) || rt_unwind_has_room();
}

static bool group_check(const struct group *g, struct failure *f)
{
	const bool shares = g->changes && !has_kind(g, KRON_CMD_RETIRE);
	uint64_t where = 0;
	uint32_t i;

	if (!has_room(g))
		return fail(f, KRON_RESULT_MAP_FAILED, ENOSPC);
	for (i = 0; i < g->ncmd; i++) {
		const struct kron_command *c = &g->cmd[i];

		if (!is_well_formed(g, c))
			return fail(f, KRON_RESULT_MAP_FAILED, EINVAL);
		if ((c->kind == KRON_CMD_REPLACE || c->kind == KRON_CMD_RELEASE) &&
		    !is_same_block(g, c))
			return fail(f, KRON_RESULT_OLD_BYTES, KRON_BLOCK_ID);
		if (c->kind != KRON_CMD_PATCH)
			continue;
		if (!is_mapped(c->addr, c->len))
			return fail(f, KRON_RESULT_PROTECT_FAILED, ENOMEM);
		if (shares && !(c->flags & KRON_CMD_OWN) && !has_own_windows(g, c, &where))
			return fail(f, KRON_RESULT_SHARED, (long)(c->addr + where));
		if (!has_old_bytes(g, c, &where))
			return fail(f, KRON_RESULT_OLD_BYTES, (long)where);
		if (shares && meets_goroutine(g, c))
			return fail(f, KRON_RESULT_BUSY, 0);
	}
	return true;
}

/* ---- 2. and 3. ---- */

static long map_there(const struct group *g, const struct kron_command *c, int prot)
{
	long at = sys_mmap((void *)c->addr, c->len, prot, MAP_PRIVATE | MAP_FIXED_NOREPLACE, g->fd,
			   c->file_off);

	if (sys_failed(at))
		return at;
	if ((uint64_t)at != c->addr) {
		/* A kernel before 4.17 takes the address for a wish. */
		sys_munmap((void *)at, c->len);
		return -EEXIST;
	}
	rt_unlock(c->addr, c->len);
	return 0;
}

/*
 * One byte is written to it, its own value: a mapping of a file goes into a core dump only when
 * something in it was changed, and a debugger needs the tables to get through the stubs.
 */
static long block_map(const struct group *g, const struct kron_command *c)
{
	volatile uint8_t *at = (volatile uint8_t *)c->addr;
	long ret = map_there(g, c, PROT_READ | PROT_WRITE);
	uint8_t first;

	if (ret)
		return ret;
	first = *at;
	*at = first;
	ret = sys_mprotect((void *)c->addr, c->len, PROT_READ | PROT_EXEC);
	if (ret) { /* what was writable may not become executable here: then without the byte */
		sys_munmap((void *)c->addr, c->len);
		ret = map_there(g, c, PROT_READ | PROT_EXEC);
	}
	if (!ret)
		rt_unwind_add(c->addr, c->len);
	return ret;
}

static long block_unmap(const struct kron_command *c)
{
	rt_unwind_remove(c->addr);
	return sys_munmap((void *)c->addr, c->len);
}

/*
 * The last step of its group, because it cannot be undone: the file's block is not at hand any
 * more.  Mapped elsewhere first, so that all that can fail has failed before the old one goes;
 * moving it over is one system call.
 */
static long block_replace(const struct group *g, const struct kron_command *c)
{
	long at = sys_mmap(NULL, c->len, PROT_READ | PROT_EXEC, MAP_PRIVATE, g->fd, c->file_off);
	long ret;

	if (sys_failed(at))
		return at;
	ret = sys5(__NR_mremap, at, (long)c->len, (long)c->len, MREMAP_MAYMOVE | MREMAP_FIXED,
		   (long)c->addr);
	if (!sys_failed(ret)) {
		rt_unlock(c->addr, c->len);
		if (c->kind == KRON_CMD_REPLACE)
			rt_unwind_add(c->addr, c->len);
		else
			rt_unwind_release(c->addr);
		return 0;
	}
	sys_munmap((void *)at, c->len);
	return ret;
}

static void patches_write(const struct group *g, const struct kron_command *c, bool new_bytes)
{
	const struct kron_patch *p = patches_of(g, c);
	uint8_t *text = (uint8_t *)c->addr;
	uint32_t i;

	for (i = 0; i < c->count; i++)
		mini_copy_few(text + p[i].off, new_bytes ? p[i].new_bytes : p[i].old_bytes,
			      p[i].new_len);
}

/*
 * Where text may not become writable and executable again (rt_text_trial()): past its rights, which stay as
 * they are.  All of them, or as many as were written are taken back.
 */
static long patches_force(const struct group *g, const struct kron_command *c, bool new_bytes)
{
	const struct kron_patch *p = patches_of(g, c);
	long fd = sys4(__NR_openat, AT_FDCWD, (long)"/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
	long ret = sys_failed(fd) ? fd : 0;
	uint32_t i = 0;

	for (; i < c->count && !sys_failed(ret); i++)
		ret = sys4(__NR_pwrite64, fd, (long)(new_bytes ? p[i].new_bytes : p[i].old_bytes),
			   p[i].new_len, (long)(c->addr + p[i].off));
	for (i -= sys_failed(ret) && i; sys_failed(ret) && new_bytes && i > 0; i--)
		sys4(__NR_pwrite64, fd, (long)p[i - 1].old_bytes, p[i - 1].new_len,
		     (long)(c->addr + p[i - 1].off));
	if (!sys_failed(fd))
		sys_close((int)fd);
	return sys_failed(ret) ? ret : 0;
}

struct pages {
	void *at;
	uint64_t len;
};

static struct pages pages_of(const struct kron_command *c)
{
	return (struct pages){(void *)c->addr, c->len};
}

/* Those that patches are in, without the rest of the mappings. */
static struct pages pages_patched(const struct group *g, const struct kron_command *c)
{
	const struct kron_patch *p = patches_of(g, c);
	uint64_t lo = c->len, hi = 0;
	uint32_t i;

	for (i = 0; i < c->count; i++) {
		if (p[i].off < lo)
			lo = p[i].off;
		if (p[i].off + (uint64_t)p[i].old_len > hi)
			hi = p[i].off + (uint64_t)p[i].old_len;
	}
	lo &= -PAGE;
	return (struct pages){(void *)(c->addr + lo), ((hi + PAGE - 1) & -PAGE) - lo};
}

static long pages_open(struct pages p)
{
	long ret = sys_mprotect(p.at, p.len, PROT_READ | PROT_WRITE);

	if (ret) /* It may have changed the first pages before it met the one that it could not. */
		sys_mprotect(p.at, p.len, PROT_READ | PROT_EXEC);
	return ret;
}

static long pages_close(struct pages p)
{
	return sys_mprotect(p.at, p.len, PROT_READ | PROT_EXEC);
}

/* Whole mappings if that can be had; they count as memory that may be written to, as a whole. */
static long text_open(const struct group *g, const struct kron_command *c, struct pages *p)
{
	*p = pages_of(c);
	if (pages_open(*p) == 0)
		return 0;
	*p = pages_patched(g, c);
	return pages_open(*p);
}

/* Each page would be a fault; a wish. */
static void get_pages(uint64_t from, uint64_t to)
{
	if (to > from)
		sys_madvise((void *)from, to - from, MADV_POPULATE_WRITE);
}

/* Those that patches_write() will write to, and no others: the program's memory is what it would be. */
static void get_patched_pages(const struct group *g, const struct kron_command *c)
{
	const struct kron_patch *p = patches_of(g, c);
	uint64_t from = 0, to = 0;

	for (uint32_t i = 0; i < c->count; i++) {
		uint64_t lo = (c->addr + p[i].off) & -PAGE;
		uint64_t hi = (c->addr + p[i].off + p[i].new_len + PAGE - 1) & -PAGE;

		if (!p[i].new_len)
			continue;
		if (lo < from || lo > to) {
			get_pages(from, to);
			from = lo;
			to = hi;
		} else if (hi > to) {
			to = hi;
		}
	}
	get_pages(from, to);
}

static long text_patch(const struct group *g, const struct kron_command *c)
{
	struct pages p;
	long ret;

	if (rt_text_trial())
		return patches_force(g, c, true);
	ret = text_open(g, c, &p);
	if (ret)
		return ret;
	get_patched_pages(g, c);
	patches_write(g, c, true);
	ret = pages_close(p);
	if (ret) {
		patches_write(g, c, false);
		pages_close(p);
	}
	return ret;
}

static void command_undo(const struct group *g, const struct kron_command *c)
{
	struct pages p;

	if (c->kind == KRON_CMD_MAP) {
		block_unmap(c);
	} else if (c->kind == KRON_CMD_TABLE) {
		sys_munmap((void *)c->addr, c->len);
	} else if (c->kind == KRON_CMD_PATCH && rt_text_trial()) {
		patches_force(g, c, false);
	} else if (c->kind == KRON_CMD_PATCH && text_open(g, c, &p) == 0) {
		patches_write(g, c, false);
		pages_close(p);
	}
}

static long command_do(const struct group *g, const struct kron_command *c)
{
	if (c->kind == KRON_CMD_MAP)
		return block_map(g, c);
	if (c->kind == KRON_CMD_PATCH)
		return text_patch(g, c);
	if (c->kind == KRON_CMD_REPLACE || c->kind == KRON_CMD_RELEASE)
		return block_replace(g, c);
	if (c->kind == KRON_CMD_TABLE)
		return map_there(g, c, PROT_READ);
	if (c->kind == KRON_CMD_COPIES)
		return rt_copies_watch(c->addr, c->len);
	if (c->kind == KRON_CMD_RETIRE) {
		rt_unwind_release(c->addr);
		return 0;
	}
	return block_unmap(c);
}

/* Blocks before patches, whatever their order in the file: a patch jumps into a block. */
static bool group_do(const struct group *g, struct failure *f)
{
	static const uint32_t order[] = {KRON_CMD_UNMAP,  KRON_CMD_MAP,     KRON_CMD_TABLE,
					 KRON_CMD_PATCH,  KRON_CMD_REPLACE, KRON_CMD_RELEASE,
					 KRON_CMD_COPIES, KRON_CMD_RETIRE};
	uint32_t pass, i;
	long ret = 0;

	for (pass = 0; pass < sizeof(order) / sizeof(order[0]); pass++) {
		for (i = 0; i < g->ncmd; i++) {
			if (g->cmd[i].kind != order[pass])
				continue;
			ret = command_do(g, &g->cmd[i]);
			if (ret)
				goto undo;
		}
	}
	return true;
undo:
	fail(f, order[pass] == KRON_CMD_PATCH ? KRON_RESULT_PROTECT_FAILED : KRON_RESULT_MAP_FAILED,
	     ret);
	for (;;) {
		while (i-- > 0) {
			if (g->cmd[i].kind == order[pass])
				command_undo(g, &g->cmd[i]);
		}
		if (pass-- == 0)
			return false;
		i = g->ncmd;
	}
}

static uint32_t group_flags(const struct group *g)
{
	uint32_t flags = 0;
	uint32_t i;

	for (i = 0; i < g->ncmd; i++)
		flags |= g->cmd[i].flags;
	return flags;
}

/* ---- the file ---- */

static const struct kron_command *file_commands(const uint8_t *file, uint64_t size, uint32_t n)
{
	const struct kron_commands *head = (const struct kron_commands *)file;

	if (size < sizeof(*head) || head->magic != KRON_WIRE_MAGIC || head->ncommands != n ||
	    (size - sizeof(*head)) / sizeof(struct kron_command) < n)
		return NULL;
	return (const struct kron_command *)(head + 1);
}

/* A gap was taken meanwhile, or a goroutine stands in a window. */
static bool may_pass(const struct failure *f)
{
	return f->code == KRON_RESULT_BUSY ||
	       (f->code == KRON_RESULT_MAP_FAILED && f->detail == EEXIST);
}

static void tell_refused(const struct rt_answer *a, const struct failure *f, uint32_t group)
{
	const struct kron_result res = {.magic = KRON_WIRE_MAGIC,
					.kind = KRON_RESULT_GROUP,
					.code = f->code,
					.detail = f->detail,
					.group = group};

	rt_log("group refused, code", f->code);
	rt_tell(a, &res);
}

static uint32_t groups_apply(struct group *g, const struct rt_answer *a, struct kron_result *res)
{
	const uint32_t ncommands = a->reply.ncommands;
	const struct kron_command *end = g->cmd + ncommands;
	uint32_t flags = 0;

	while (g->cmd < end) {
		struct failure f = {.code = KRON_RESULT_OK, .detail = 0};

		g->ncmd = 1;
		while (g->cmd + g->ncmd < end && g->cmd[g->ncmd].group == g->cmd->group)
			g->ncmd++;
		if (group_check(g, &f) && group_do(g, &f)) {
			res->groups_applied++;
			flags |= group_flags(g);
		} else {
			tell_refused(a, &f, g->cmd->group);
			res->groups_refused++;
			if (may_pass(&f))
				res->flags |= KRON_RESULT_AGAIN;
		}
		g->cmd += g->ncmd;
	}
	return flags;
}

static uint32_t apply_nothing(struct kron_result *res, uint64_t problem)
{
	res->code = KRON_RESULT_MAP_FAILED;
	res->detail = problem;
	return 0;
}

uint32_t rt_apply(const struct rt_answer *a, int fd, struct kron_result *res)
{
	const uint64_t size = a->reply.commands_size;
	struct group g = {
		.size = size, .fd = fd, .changes = a->reply.flags & KRON_REPLY_CHANGE, .answer = a};
	struct stat st;
	uint32_t flags = 0;
	long at;

	if (fd < 0) /* the process had no room for it */
		return apply_nothing(res, EMFILE);
	if (size == 0 || sys2(__NR_fstat, fd, (long)&st) != 0 || st.st_size < 0 ||
	    (uint64_t)st.st_size < size)
		return apply_nothing(res, EINVAL);
	/* not populated: most of it are blocks, which nobody reads here */
	at = sys_mmap((void *)((RT_FILE_END - size) & -PAGE), size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (sys_failed(at))
		return apply_nothing(res, (uint64_t)-at);
	g.file = (const uint8_t *)at;
	g.cmd = file_commands(g.file, size, a->reply.ncommands);
	flags = g.cmd ? groups_apply(&g, a, res) : apply_nothing(res, EINVAL);
	sys_munmap(g.file, size);
	return flags;
}
