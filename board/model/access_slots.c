/* SPDX-License-Identifier: MIT */
/*
 * access_slots.c - who owns which slot; slots of the dead and of frames that were jumped out of.
 *
 *                 claim                       publish: owner word, then swap of `active`
 *   published ───────────────► owned by T ──────────────────────────────────► published
 *   and replaced   by CAS          │                                           and active
 *       ▲                          │ T is dead, or T finds its mark gone           │
 *       └──────────────────────────┴───────────────────────────────────────────────┘
 *                                                        the next publisher replaces it
 *
 * 1. Only the owner writes a slot but for its owner word.
 * 2. An owner word "published, generation g" is stored before the swap that may make the slot
 *    active as g.  From then on nobody writes the slot, the late owner included: if it loses the
 *    swap it has to claim the slot again like anybody else.
 * 3. A slot with "published, g" can be claimed when the active generation is g or later and the
 *    slot is not the active one: its turn is over, or it was lost.  Generations never repeat,
 *    so a compare-and-swap on the word cannot be fooled.
 * 4. So no word says "free", nothing has to be freed, and a kill leaves at worst an owned slot.
 *
 * Owned slots come back, when all others are taken:
 *   - The thread is gone.  A zombie counts as gone: it has no memory, which process_vm_readv()
 *     tells where kill() does not.  Thread ids mean something only in one pid namespace, that
 *     of the board's maker; threads elsewhere own slots namelessly and judge nobody.
 *   - The thread is we, and left the cycle by siglongjmp.  While a frame is alive the mark on its
 *     stack stands; frames that are gone are overwritten, sooner or later.  A mark that is not
 *     there proves that the frame is gone, on whatever stack it was.  (Only the thread itself
 *     may judge so: of another thread's word and mark, one could be older than the other.)
 *
 * fork() in a signal handler that interrupted a cycle makes two who believe that they own the
 * slot.  The child finds that it is another process before it publishes, and starts again.  Until
 * then, some 50 ns, it writes to its parent's slot: harmless while the parent waits in the
 * handler; should both go on at once, those writes could come after the parent has published.
 * So could the parent's own, between that look and its store, where the child has published the slot
 * and a third one has taken it since.  Nothing here can prevent that but a locked store in each cycle, and it
 * needs a handler that forks and whose child returns.
 */
#include "board/model/access_layout.h"
#include "board/model/access_sys.h"

#include <asm/stat.h>

#define AT_FDCWD_ (-100)
#define ESRCH_ 3
#define EFAULT_ 14
#define NAP_NS 100000u
#define NAPS_MAX 20000u /* two seconds and more */

/* ---- who we are ---- */

struct self {
	uint32_t tid;
	uint32_t epoch;
	uint32_t space; /* pid namespace */
};
static struct self nobody; /* where no thread data is ours: the kernel is asked each time */

#ifdef RT_STATIC
static bool remembers_threads(const struct board *b)
{
	(void)b;
	return false;
}

static struct self *self_of(const struct board *b)
{
	(void)b;
	return &nobody;
}
#else
/* initial-exec: no allocation at the first access from a library that was loaded late. */
static __thread struct self own __attribute__((tls_model("initial-exec")));

static bool remembers_threads(const struct board *b)
{
	return !__atomic_load_n(&b->strange, __ATOMIC_RELAXED);
}

static struct self *self_of(const struct board *b)
{
	return remembers_threads(b) ? &own : &nobody;
}
#endif

uint32_t access_namespace(void)
{
	struct stat st;
	long code = sys6(__NR_newfstatat, AT_FDCWD_, (long)"/proc/self/ns/pid", (long)&st, 0, 0, 0);

	return code < 0 ? 0 : (uint32_t)st.st_ino;
}

/* A word that is zero in a process that has just been forked; NULL: nobody remembers. */
static uint32_t *process_epoch;

static uint32_t current_epoch(void)
{
	return process_epoch ? __atomic_load_n(process_epoch, __ATOMIC_RELAXED) : 0;
}

/* A number that no thread of the parent remembers; in two new threads at once, one wins. */
static uint32_t new_epoch(void)
{
	uint32_t mine = (uint32_t)access_tsc() | 1;
	uint32_t epoch = 0;

	if (__atomic_compare_exchange_n(process_epoch, &epoch, mine, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		epoch = mine;
	return epoch;
}

static void find_self(const struct board *b, struct access_hold *h)
{
	struct self *self = self_of(b);
	uint32_t tid;

	h->tid = 0;
	if (b->quiet)
		return;
	tid = access_sys_tid();
	if (process_epoch && !h->epoch)
		h->epoch = new_epoch();
	if ((remembers_threads(b) ? tid != self->tid : !self->space) || h->epoch != self->epoch) {
		self->tid = 0; /* a handler that comes between sees a thread without a number */
		self->epoch = h->epoch;
		self->space = access_namespace();
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		self->tid = tid;
	}
	h->tid = tid;
}

void access_hold_init(const struct board *b, struct access_hold *h)
{
	const struct self *self = self_of(b);

	h->owner = 0;
	h->slot = 0;
	h->mark.value = 0;
	h->epoch = current_epoch();
	if (remembers_threads(b) && h->epoch && h->epoch == self->epoch)
		h->tid = self->tid;
	else
		find_self(b, h);
	if (self->space != b->model->home || !self->space || h->tid > ACCESS_OWNER_TID)
		h->tid = 0;
}

/* Somebody forked inside our cycle, and this is the child. */
static bool is_another_process(const struct access_hold *h)
{
	return current_epoch() != h->epoch;
}

/* ---- claim ---- */

static uint64_t owner_word(const struct access_hold *h)
{
	uint64_t mark = (uint64_t)(uintptr_t)&h->mark;

	if (mark >= ACCESS_ADDRESS_MAX)
		mark = 0;
	return ACCESS_OWNED | (mark >> 6) << ACCESS_OWNER_MARK_SHIFT | h->tid;
}

static bool is_free(uint64_t owner, unsigned slot, uint64_t active)
{
	return !(owner & ACCESS_OWNED) && owner <= access_generation(active) &&
	       slot != access_slot_number(active);
}

static bool take(const struct board *b, struct access_hold *h, unsigned slot, uint64_t owner)
{
	uint64_t word = owner_word(h);

	h->mark.value = ACCESS_MARK(slot, h->tid);
	/* Acquire: the last owner's writes are over.  Pairs with the release in
	 * access_publish() and access_release(). */
	if (!__atomic_compare_exchange_n(&access_slot(b, slot)->owner, &owner, word, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	h->slot = slot;
	h->owner = word;
	return true;
}

static bool take_free(const struct board *b, struct access_hold *h, uint64_t active)
{
	/* The one that the active state has replaced is in our cache, if we did that. */
	unsigned first = ACCESS_READ(&access_slot(b, access_slot_number(active))->prev);
	unsigned i;

	for (i = 0; i < ACCESS_SLOTS; i++) {
		unsigned slot = (first + i) % ACCESS_SLOTS;
		uint64_t owner = __atomic_load_n(&access_slot(b, slot)->owner, __ATOMIC_RELAXED);

		if (is_free(owner, slot, active) && take(b, h, slot, owner))
			return true;
	}
	return false;
}

/* ---- slots that nobody will give back ---- */

static bool is_mark_gone(unsigned slot, uint64_t owner, uint32_t tid)
{
	uint64_t address = (owner & ~ACCESS_OWNED) >> ACCESS_OWNER_MARK_SHIFT << 6;
	uint64_t value = 0;
	long code;

	if (!address)
		return false;
	code = access_sys_peek(tid, address, &value);
	return code == -EFAULT_ || (code == 8 && value != ACCESS_MARK(slot, tid));
}

static bool is_thread_gone(uint32_t tid)
{
	uint64_t value;

	return access_sys_peek(tid, 0, &value) == -ESRCH_ || access_sys_exists(tid) == -ESRCH_;
}

bool access_can_reclaim(const struct access_hold *h, unsigned number, uint64_t owner)
{
	uint32_t tid = owner & ACCESS_OWNER_TID;

	if (!(owner & ACCESS_OWNED) || !tid)
		return false;
	return tid == h->tid ? is_mark_gone(number, owner, tid) : is_thread_gone(tid);
}

/* One for us; the others are made free for everybody. */
static bool reclaim(const struct board *b, struct access_hold *h)
{
	unsigned slot;

	if (b->quiet || !h->tid)
		return false;
	for (slot = 0; slot < ACCESS_SLOTS; slot++) {
		uint64_t *word = &access_slot(b, slot)->owner;
		uint64_t owner = __atomic_load_n(word, __ATOMIC_ACQUIRE);

		if (!access_can_reclaim(h, slot, owner))
			continue;
		if (!h->owner)
			take(b, h, slot, owner);
		else
			__atomic_compare_exchange_n(word, &owner, 0, false, __ATOMIC_ACQ_REL,
						    __ATOMIC_RELAXED);
	}
	return h->owner != 0;
}

static void nap(const struct board *b)
{
	unsigned i;

	if (!b->quiet)
		access_sys_sleep(NAP_NS);
	else
		for (i = 0; i < 1000; i++)
			__builtin_ia32_pause();
}

bool access_claim(const struct board *b, struct access_hold *h, uint64_t active)
{
	unsigned naps;

	if (take_free(b, h, active))
		return true;
	for (naps = 0; naps < NAPS_MAX; naps++) {
		if (reclaim(b, h))
			return true;
		active = access_active(b);
		if (!access_active_is_sane(active))
			return false;
		if (take_free(b, h, active))
			return true;
		nap(b);
	}
	return false;
}

/* ---- the ways out ---- */

void access_release(const struct board *b, struct access_hold *h)
{
	uint64_t owner = h->owner;

	h->owner = 0;
	/* Not a plain store: after a fork inside the cycle two of us come by here. */
	if (owner)
		__atomic_compare_exchange_n(&access_slot(b, h->slot)->owner, &owner, 0, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

bool access_publish(const struct board *b, struct access_hold *h, uint64_t active)
{
	uint64_t *word = &access_slot(b, h->slot)->owner;
	uint64_t generation = access_generation(active) + 1;
	uint64_t next = generation << ACCESS_SLOT_BITS | h->slot;

	if (is_another_process(h)) {
		access_hold_init(b, h);
		return false;
	}
	__atomic_store_n(word, generation, __ATOMIC_RELEASE);
	/* Pairs with access_active(). */
	if (__atomic_compare_exchange_n(&b->model->active, &active, next, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED)) {
		h->owner = 0;
		return true;
	}
	h->owner = 0;
	/* A handler forked before the store, and the child was faster: our slot is the board's state by now. */
	if (access_slot_number(access_active(b)) != h->slot)
		take(b, h, h->slot, generation);
	return false;
}

/* ---- memory that a forked child finds zeroed ---- */

#define PAGE 4096
#define PROT_READ_WRITE 3
#define MAP_PRIVATE_ANONYMOUS 0x22
#define MADV_WIPEONFORK_ 18

int board_remember_threads(uint32_t *wiped)
{
	long page, code;

	if (wiped || process_epoch) {
		process_epoch = process_epoch ? process_epoch : wiped;
		return 0;
	}
	page = sys6(__NR_mmap, 0, PAGE, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0);
	if (page < 0 && page > -PAGE)
		return (int)page;
	code = sys6(__NR_madvise, page, PAGE, MADV_WIPEONFORK_, 0, 0, 0);
	if (code < 0) {
		sys6(__NR_munmap, page, PAGE, 0, 0, 0, 0);
		return (int)code;
	}
	process_epoch = (uint32_t *)page;
	return 0;
}
