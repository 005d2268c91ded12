/* SPDX-License-Identifier: MIT */
/*
 * elf_core.c - see elf_core.h.
 *
 *   PT_NOTE: NT_PRPSINFO ──► pid
 *            NT_FILE ──────► address ─► file, offset ─┐
 *   PT_LOAD: address ─► bytes in the core ────────────┴─► offset in the file ─► bytes in the core
 *
 * A core is what another machine made, or a program that looks like one: each number is checked against the
 * file's size.
 */
#define _GNU_SOURCE
#include "inject/elf/elf_core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/elf/elf_data.h"

/* A core that was made to be read has no more of these. */
#define NOTES_MAX (64u << 20) /* bytes: 4 MiB of mapped files are the kernel's own limit */
#define NOTE_PARTS_MAX 16u
#define SAME_MAX 64u     /* mappings of one file that are looked at */
#define LOADS_MAX 65536u /* as many mappings as the kernel allows a process by default */
#define PARTS_MAX 1024u

static void take_pid(struct elf_core *c, const uint8_t *desc, size_t n)
{
	struct elf_prpsinfo info;

	if (n < sizeof(info))
		return;
	memcpy(&info, desc, sizeof(info));
	c->pid = info.pr_pid;
}

/* count, page size, count times start, end, offset in pages, then the names. */
static void take_maps(struct elf_core *c, const uint8_t *desc, size_t n)
{
	uint64_t head[2], entry[3];
	const char *name, *end = (const char *)desc + n;

	if (n < sizeof(head) || c->maps.n)
		return;
	memcpy(head, desc, sizeof(head));
	if (head[0] > (n - sizeof(head)) / sizeof(entry))
		return;
	name = (const char *)desc + sizeof(head) + head[0] * sizeof(entry);
	for (uint64_t i = 0; i < head[0]; i++) {
		const char *nul = memchr(name, 0, (size_t)(end - name));
		uint64_t off;

		memcpy(entry, desc + sizeof(head) + i * sizeof(entry), sizeof(entry));
		if (!nul)
			return;
		if (entry[0] < entry[1] && !__builtin_mul_overflow(entry[2], head[1], &off))
			*vec_push(&c->maps) =
				(struct elf_core_map){entry[0], entry[1], off, xstrdup(name)};
		name = nul + 1;
	}
}

static void take_notes(struct elf_core *c, Elf *elf, const GElf_Phdr *ph)
{
	Elf_Data *d = elf_getdata_rawchunk(elf, (int64_t)ph->p_offset, ph->p_filesz,
					   ph->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	size_t at = 0, next, name, desc;
	GElf_Nhdr nh;

	while (d && (next = gelf_getnote(d, at, &nh, &name, &desc))) {
		const uint8_t *bytes = (const uint8_t *)d->d_buf + desc;

		if (nh.n_namesz == 5 && !memcmp((const char *)d->d_buf + name, "CORE", 5)) {
			if (nh.n_type == NT_PRPSINFO)
				take_pid(c, bytes, nh.n_descsz);
			else if (nh.n_type == NT_FILE)
				take_maps(c, bytes, nh.n_descsz);
		}
		at = next;
	}
}

/* What is cut off at the file's end is not there. */
static void take_load(struct elf_core *c, const GElf_Phdr *ph, uint64_t size)
{
	uint64_t n = ph->p_offset < size ? size - ph->p_offset : 0;

	n = ph->p_filesz < n ? ph->p_filesz : n;
	if (ph->p_filesz && ph->p_vaddr + n >= ph->p_vaddr && c->loads.n < LOADS_MAX)
		*vec_push(&c->loads) =
			(struct elf_core_load){ph->p_vaddr, ph->p_offset, n, n < ph->p_filesz};
}

static int read_headers(struct elf_core *c, Elf *elf, uint64_t size)
{
	uint64_t left = NOTES_MAX;
	unsigned parts = 0;
	GElf_Ehdr eh;
	GElf_Phdr ph;
	size_t n;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh) || eh.e_type != ET_CORE ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_machine != EM_X86_64 ||
	    elf_getphdrnum(elf, &n))
		return -ENOEXEC;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph))
			return -ENOEXEC;
		if (ph.p_type == PT_NOTE && ph.p_filesz <= left && parts++ < NOTE_PARTS_MAX) {
			left -= ph.p_filesz;
			take_notes(c, elf, &ph);
		} else if (ph.p_type == PT_LOAD) {
			take_load(c, &ph, size);
		}
	}
	return 0;
}

int elf_core_open(struct elf_core *c, const char *path, struct err *err)
{
	struct stat st;
	Elf *elf;
	int code;

	memset(c, 0, sizeof(*c));
	c->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (c->fd < 0 || fstat(c->fd, &st)) {
		code = err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
		elf_core_close(c);
		return code;
	}
	elf_version(EV_CURRENT);
	elf = S_ISREG(st.st_mode) ? elf_begin(c->fd, ELF_C_READ, NULL) : NULL;
	code = read_headers(c, elf, (uint64_t)st.st_size);
	elf_end(elf);
	if (!code)
		return 0;
	elf_core_close(c);
	return err_set(err, -code, "%s is not a core file of an x86-64 program", path);
}

void elf_core_close(struct elf_core *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	vec_for(&c->maps, m)
		xfree(m->path);
	vec_free(&c->maps);
	vec_free(&c->loads);
}

static void find_part(const struct elf_core_map *m, const struct elf_core_load *l,
		      struct elf_core_parts *parts)
{
	const uint64_t end = l->vaddr + l->size;
	const uint64_t from = m->start > l->vaddr ? m->start : l->vaddr;
	const uint64_t to = m->end < end ? m->end : end;
	uint64_t off;

	if ((from < to || (l->is_cut && from == to)) && parts->v.n < PARTS_MAX &&
	    !__builtin_add_overflow(m->off, from - m->start, &off))
		*vec_push(&parts->v) = (struct elf_core_part){off, l->in_core + (from - l->vaddr),
							      to - from, l->is_cut && to == end};
}

bool elf_core_find(const struct elf_core *c, const char *path, struct elf_core_parts *parts)
{
	unsigned found = 0;

	for (size_t i = 0; i < c->maps.n && found < SAME_MAX; i++) {
		const struct elf_core_map *m = &c->maps.v[i];

		if (strcmp(m->path, path))
			continue;
		found++;
		for (size_t k = 0; k < c->loads.n; k++)
			find_part(m, &c->loads.v[k], parts);
	}
	return found;
}
