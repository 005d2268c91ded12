/* SPDX-License-Identifier: MIT */
/*
 * elf_image.c - opens an ELF file and checks everything that the others rely on.
 *
 *   file --mmap--> ident, header --> program headers --> segments, dynamic, notes, interpreter
 *                                \-> section headers --> sections (optional: dropped if they lie)
 *
 * What the loader needs (program headers, segments) must be right, or the file is refused with
 * a sentence.  What it does not need (sections, notes) is dropped silently when it lies.
 *
 * May not decode instructions or know about functions.
 */
#define _GNU_SOURCE
#include "inject/elf/elf_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kron/exec.h>
#include "base/vec.h"
#include "inject/elf/elf_data.h"

/* Jumps reach 2 GiB either way; kron's own code in a patched file may be as far from the rest. */
#define CODE_SPAN_MAX (4ull << 30)
#define ADDRESS_MAX (1ull << 47)
/* Tens of thousands of headers may name the same notes: keep the sum of it small. */
#define NOTES_MAX (64ull << 10)
#define NOTE_TABLES_MAX 1024u
#define DYNAMIC_MAX (1 << 16)
/* A linker makes one or two. */
#define RELA_SECTIONS_MAX 1024u

/* ---- the header ---- */

const char *elf_machine_name(unsigned int machine)
{
	switch (machine) {
	case EM_386:
		return "32-bit x86";
	case EM_ARM:
		return "32-bit Arm";
	case EM_AARCH64:
		return "AArch64";
	case EM_RISCV:
		return "RISC-V";
	case EM_PPC:
		return "32-bit PowerPC";
	case EM_PPC64:
		return "PowerPC 64";
	case EM_S390:
		return "IBM Z";
	case EM_MIPS:
		return "MIPS";
	case EM_SPARC:
	case EM_SPARCV9:
		return "SPARC";
	case EM_68K:
		return "Motorola 68000";
	case EM_PARISC:
		return "PA-RISC";
	case EM_ALPHA:
		return "Alpha";
	case EM_IA_64:
		return "Itanium";
	case EM_BPF:
		return "BPF";
	case EM_CUDA:
		return "CUDA";
	default:
		return NULL;
	}
}

static int refuse_machine(const struct elf_image *img, unsigned int machine, struct err *err)
{
	const char *name = elf_machine_name(machine);

	if (machine == EM_386)
		return err_set(err, EPROTO, "%s is a 32-bit program; kron traces x86-64 only",
			       img->path);
	if (name)
		return err_set(err, EPROTO, "%s is for %s; kron traces x86-64 only", img->path,
			       name);
	return err_set(err, EPROTO,
		       "%s is for another machine (ELF number %u); "
		       "kron traces x86-64 only",
		       img->path, machine);
}

static int refuse_class(const struct elf_image *img, struct err *err)
{
	unsigned int machine = 0;

	if (img->size >= 20) /* e_machine has the same place in both classes */
		machine = img->bytes[18] | img->bytes[19] << 8;
	if (img->bytes[EI_CLASS] != ELFCLASS32)
		return err_set(err, ENOEXEC,
			       "%s is damaged: its ELF class is neither 32 nor 64 bit", img->path);
	if (machine == EM_X86_64)
		return err_set(err, EPROTO,
			       "%s is an x32 program (64-bit code with 32-bit "
			       "pointers); kron traces x86-64 only",
			       img->path);
	if (machine && machine != EM_386)
		return refuse_machine(img, machine, err);
	return err_set(err, EPROTO, "%s is a 32-bit program; kron traces x86-64 only", img->path);
}

static int check_ident(const struct elf_image *img, struct err *err)
{
	if (img->size < 4 || memcmp(img->bytes, ELFMAG, SELFMAG)) {
		if (img->size >= 2 && !memcmp(img->bytes, "#!", 2))
			return err_set(err, ENOEXEC, "%s is a script, not an ELF file", img->path);
		return err_set(err, ENOEXEC, "%s is not an ELF file", img->path);
	}
	if (img->size < EI_NIDENT)
		return err_set(err, ENOEXEC, "%s is truncated: it ends inside its ELF header",
			       img->path);
	if (img->bytes[EI_CLASS] != ELFCLASS64)
		return refuse_class(img, err);
	if (img->bytes[EI_DATA] == ELFDATA2MSB)
		return err_set(err, EPROTO,
			       "%s is for a big-endian machine; kron traces x86-64 only",
			       img->path);
	if (img->bytes[EI_DATA] != ELFDATA2LSB)
		return err_set(err, ENOEXEC, "%s is damaged: its byte order is unknown", img->path);
	if (img->bytes[EI_VERSION] != EV_CURRENT)
		return err_set(err, ENOEXEC, "%s is damaged: its ELF version is unknown",
			       img->path);
	if (img->size < sizeof(Elf64_Ehdr))
		return err_set(err, ENOEXEC, "%s is truncated: it ends inside its ELF header",
			       img->path);
	return 0;
}

static int check_type(const struct elf_image *img, const GElf_Ehdr *eh, struct err *err)
{
	switch (eh->e_type) {
	case ET_EXEC:
	case ET_DYN:
		return 0;
	case ET_REL:
		return err_set(err, ENOEXEC, "%s is an object file that was not linked yet",
			       img->path);
	case ET_CORE:
		return err_set(err, ENOEXEC, "%s is a core dump, not a program", img->path);
	default:
		return err_set(err, ENOEXEC, "%s is damaged: its ELF type %u is unknown", img->path,
			       eh->e_type);
	}
}

/* ---- program headers ---- */

static int compare_segments(const void *a, const void *b)
{
	const struct elf_segment *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int add_segment(struct elf_image *img, const GElf_Phdr *ph, struct err *err)
{
	struct elf_segment *s = &img->segments[img->nsegments];

	if (ph->p_memsz < ph->p_filesz)
		return err_set(err, ENOEXEC,
			       "%s is damaged: a segment is larger in the file than in memory",
			       img->path);
	if (ph->p_vaddr >= ADDRESS_MAX || ph->p_memsz > ADDRESS_MAX - ph->p_vaddr)
		return err_set(err, ENOEXEC,
			       "%s is damaged: a segment lies outside the address space",
			       img->path);
	if (!elf_has(img, ph->p_offset, ph->p_filesz))
		return err_set(err, ENOEXEC,
			       "%s is truncated: a segment lies past the end of the file",
			       img->path);
	if (!ph->p_memsz)
		return 0;
	*s = (struct elf_segment){.vaddr = ph->p_vaddr,
				  .memsz = ph->p_memsz,
				  .off = ph->p_offset,
				  .filesz = ph->p_filesz,
				  .flags = ph->p_flags};
	img->nsegments++;
	return 0;
}

static int check_segments(struct elf_image *img, struct err *err)
{
	uint64_t lo = UINT64_MAX, hi = 0;

	qsort(img->segments, img->nsegments, sizeof(*img->segments), compare_segments);
	for (size_t i = 0; i < img->nsegments; i++) {
		const struct elf_segment *s = &img->segments[i];

		if (i && s[-1].vaddr + s[-1].memsz > s->vaddr)
			return err_set(err, ENOEXEC, "%s is damaged: its segments overlap",
				       img->path);
		if (!(s->flags & PF_X))
			continue;
		if (s->vaddr < lo)
			lo = s->vaddr;
		if (s->vaddr + s->memsz > hi)
			hi = s->vaddr + s->memsz;
	}
	if (hi > lo && hi - lo > CODE_SPAN_MAX)
		return err_set(err, ENOEXEC, "%s spreads its code over more than 4 GiB", img->path);
	return 0;
}

/* name and desc count from `off` in the file. */
static void take_note(struct elf_image *img, uint64_t off, const GElf_Nhdr *nh, size_t name,
		      size_t desc)
{
	const uint8_t *owner = img->bytes + off + name;

	if (nh->n_type == NT_GNU_BUILD_ID && nh->n_namesz == 4 && nh->n_descsz &&
	    !memcmp(owner, "GNU", 4) && !img->build_id_len) {
		img->build_id_len =
			nh->n_descsz < sizeof(img->build_id) ? nh->n_descsz : sizeof(img->build_id);
		memcpy(img->build_id, img->bytes + off + desc, img->build_id_len);
	}
	if (nh->n_type == NT_VERSION && nh->n_namesz > sizeof(KRON_NOTE_OWNER) &&
	    !memcmp(owner, KRON_NOTE_OWNER, sizeof(KRON_NOTE_OWNER))) {
		img->kron_note.off = off + name + sizeof(KRON_NOTE_OWNER);
		img->kron_note.size = nh->n_namesz - sizeof(KRON_NOTE_OWNER);
	}
	if (nh->n_namesz == 4 && !memcmp(owner, "Go\0", 4))
		img->is_go = true;
}

static void read_notes(struct elf_image *img, uint64_t off, uint64_t size, uint64_t align)
{
	struct elf_priv *priv = img->priv;
	size_t at = 0, name, desc;
	GElf_Nhdr nh;
	Elf_Data *d;

	if (priv->note_tables++ >= NOTE_TABLES_MAX)
		return;
	d = elf_data_notes(img, off, size < NOTES_MAX ? size : NOTES_MAX, align);
	while ((at = gelf_getnote(d, at, &nh, &name, &desc)))
		take_note(img, off, &nh, name, desc);
}

struct elf_strings elf_strings(const struct elf_image *img, uint64_t off, uint64_t size)
{
	struct elf_strings t = {0};
	const char *last;

	if (off >= img->size)
		return t;
	if (size > img->size - off)
		size = img->size - off;
	t.v = (const char *)img->bytes + off;
	last = memrchr(t.v, 0, size);
	if (last)
		t.size = last - t.v + 1;
	return t;
}

static int read_segment(struct elf_image *img, const GElf_Phdr *ph, struct err *err)
{
	struct elf_priv *priv = img->priv;

	if (ph->p_type == PT_LOAD)
		return add_segment(img, ph, err);
	if (!elf_has(img, ph->p_offset, ph->p_filesz))
		return 0;
	if (ph->p_type == PT_INTERP) {
		struct elf_strings s = elf_strings(img, ph->p_offset, ph->p_filesz);

		img->interp = s.size ? s.v : NULL;
	}
	if (ph->p_type == PT_NOTE)
		read_notes(img, ph->p_offset, ph->p_filesz, ph->p_align);
	if (ph->p_type == PT_GNU_EH_FRAME)
		priv->eh_frame_hdr = ph->p_vaddr;
	if (ph->p_type == PT_DYNAMIC) {
		priv->dynamic_off = ph->p_offset;
		priv->dynamic_size = ph->p_filesz;
	}
	return 0;
}

static int read_program_headers(struct elf_image *img, const GElf_Ehdr *eh, struct err *err)
{
	struct elf_priv *priv = img->priv;
	int rc;

	if (!eh->e_phnum)
		return err_set(err, ENOEXEC, "%s has no program headers: nothing of it is loaded",
			       img->path);
	if (eh->e_phentsize != sizeof(Elf64_Phdr) || eh->e_phnum == PN_XNUM)
		return err_set(err, ENOEXEC, "%s is damaged: its program headers have a wrong size",
			       img->path);
	if (!elf_has(img, eh->e_phoff, (uint64_t)eh->e_phnum * sizeof(Elf64_Phdr)))
		return err_set(err, ENOEXEC,
			       "%s is truncated: program headers lie past the end of the file",
			       img->path);
	img->segments = xcalloc(eh->e_phnum, sizeof(*img->segments));
	for (int i = 0; i < eh->e_phnum; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(priv->elf, i, &ph))
			return err_set(err, ENOEXEC, "%s is damaged: %s", img->path,
				       elf_errmsg(-1));
		rc = read_segment(img, &ph, err);
		if (rc)
			return rc;
	}
	if (!img->nsegments)
		return err_set(err, ENOEXEC, "%s has no segment to load", img->path);
	return check_segments(img, err);
}

/* ---- section headers ---- */

static void read_section(struct elf_image *img, struct elf_section *s, const GElf_Shdr *sh,
			 const struct elf_strings *names)
{
	s->vaddr = sh->sh_addr;
	s->size = sh->sh_size;
	s->flags = sh->sh_flags;
	s->type = sh->sh_type;
	s->link = sh->sh_link;
	s->info = sh->sh_info;
	s->entsize = sh->sh_entsize;
	s->name = elf_strings_get(names, sh->sh_name);
	if (sh->sh_type == SHT_NOBITS)
		return;
	s->off = sh->sh_offset <= img->size ? sh->sh_offset : img->size;
	if (s->size > img->size - s->off)
		s->size = img->size - s->off;
}

static struct elf_strings section_names(const struct elf_image *img)
{
	const struct elf_priv *priv = img->priv;
	GElf_Shdr sh;
	size_t i;

	if (elf_getshdrstrndx(priv->elf, &i) || !gelf_getshdr(elf_getscn(priv->elf, i), &sh) ||
	    sh.sh_type != SHT_STRTAB)
		return (struct elf_strings){0};
	return elf_strings(img, sh.sh_offset, sh.sh_size);
}

static int read_section_headers(struct elf_image *img, const GElf_Ehdr *eh, struct err *err)
{
	const struct elf_priv *priv = img->priv;
	struct elf_strings names;
	unsigned relocs = 0;
	GElf_Shdr sh;

	/* libelf has none where they would lie past the end of the file */
	if (!eh->e_shoff || eh->e_shentsize != sizeof(sh) ||
	    elf_getshdrnum(priv->elf, &img->nsections) || !img->nsections)
		return 0;
	names = section_names(img);
	img->sections = xcalloc(img->nsections, sizeof(*img->sections));
	for (size_t i = 0; i < img->nsections; i++) {
		if (!gelf_getshdr(elf_getscn(priv->elf, i), &sh))
			memset(&sh, 0, sizeof(sh));
		read_section(img, &img->sections[i], &sh, &names);
		relocs += sh.sh_type == SHT_RELA && sh.sh_flags & SHF_ALLOC;
	}
	if (relocs > RELA_SECTIONS_MAX)
		return err_set(err, ENOEXEC, "%s is damaged: it has %u sections of relocations",
			       img->path, relocs);
	for (size_t i = 0; i < img->nsections && !img->build_id_len; i++) {
		const struct elf_section *s = &img->sections[i];

		if (s->type == SHT_NOTE)
			read_notes(img, s->off, s->size, 4);
	}
	return 0;
}

/* ---- the dynamic segment ---- */

static int read_dynamic(struct elf_image *img, struct err *err)
{
	struct elf_priv *priv = img->priv;
	Elf_Data *d = elf_data(img, priv->dynamic_off, priv->dynamic_size, ELF_T_DYN);
	int n = elf_data_entries(d, sizeof(Elf64_Dyn));
	VEC(GElf_Dyn) v = {0};
	GElf_Dyn dyn;

	for (int i = 0; i < n && i < DYNAMIC_MAX && gelf_getdyn(d, i, &dyn); i++) {
		*vec_push(&v) = dyn;
		if (dyn.d_tag == DT_NULL)
			break;
	}
	priv->dynamic = v.v;
	priv->ndynamic = v.n;
	priv->rela = elf_data_dynamic(img, DT_RELA, DT_RELASZ, ELF_T_RELA);
	if (priv->ndynamic < DYNAMIC_MAX)
		return 0;
	return err_set(err, ENOEXEC, "%s is damaged: it has more than %d dynamic entries",
		       img->path, DYNAMIC_MAX - 1);
}

bool elf_dynamic(const struct elf_image *img, int64_t tag, uint64_t *value)
{
	const struct elf_priv *priv = img->priv;

	for (size_t i = 0; i < priv->ndynamic; i++) {
		if (priv->dynamic[i].d_tag == DT_NULL)
			break;
		if (priv->dynamic[i].d_tag != tag)
			continue;
		if (value)
			*value = priv->dynamic[i].d_un.d_val;
		return true;
	}
	return false;
}

const char *elf_image_soname(const struct elf_image *img)
{
	uint64_t strings, off;
	const uint8_t *p;
	size_t room;

	if (!elf_dynamic(img, DT_STRTAB, &strings) || !elf_dynamic(img, DT_SONAME, &off))
		return NULL;
	room = elf_image_room(img, strings + off);
	p = elf_image_at(img, strings + off, room);
	return p && room && *p && memchr(p, 0, room) ? (const char *)p : NULL;
}

/* ---- kind ---- */

/*
 * An interpreter does not make a program: libc.so.6 has one, so that it can print its version.
 * A library has a DT_SONAME, a position independent program DF_1_PIE (binutils since 2.26).
 */
static bool has_go_sections(const struct elf_image *img)
{
	return elf_image_section(img, ".gopclntab") || elf_image_section(img, ".go.buildinfo") ||
	       elf_image_section(img, ".data.rel.ro.gopclntab");
}

static enum elf_kind find_kind(const struct elf_image *img, const GElf_Ehdr *eh)
{
	const struct elf_priv *priv = img->priv;
	uint64_t flags_1 = 0;

	if (img->is_go && img->interp && !elf_dynamic(img, DT_NEEDED, NULL))
		return ELF_KIND_STATIC;
	if (eh->e_type == ET_EXEC)
		return img->interp ? ELF_KIND_EXEC : ELF_KIND_STATIC;
	if (!priv->ndynamic)
		return ELF_KIND_STATIC;
	elf_dynamic(img, DT_FLAGS_1, &flags_1);
	if (flags_1 & DF_1_PIE)
		return img->interp ? ELF_KIND_PIE : ELF_KIND_STATIC;
	if (img->interp && !elf_dynamic(img, DT_SONAME, NULL))
		return ELF_KIND_PIE;
	return ELF_KIND_SHARED;
}

static bool has_text_relocs(const struct elf_image *img)
{
	uint64_t flags = 0;

	elf_dynamic(img, DT_FLAGS, &flags);
	return flags & DF_TEXTREL || elf_dynamic(img, DT_TEXTREL, NULL);
}

/* ---- open and close ---- */

/* What the loader needs. */
static int read_program(struct elf_image *img, const GElf_Ehdr *eh, struct err *err)
{
	int rc = check_type(img, eh, err);

	if (!rc)
		rc = read_program_headers(img, eh, err);
	if (!rc)
		rc = read_dynamic(img, err);
	if (rc)
		return rc;
	img->entry = eh->e_entry;
	img->has_text_relocs = has_text_relocs(img);
	return 0;
}

static int read_image(struct elf_image *img, unsigned int load_flags, struct err *err)
{
	const bool is_debug = load_flags & ELF_LOAD_DEBUG;
	struct elf_priv *priv = img->priv;
	GElf_Ehdr eh;
	int rc = check_ident(img, err);

	if (!rc)
		rc = elf_data_open(img, &eh, err);
	if (!rc && eh.e_machine != EM_X86_64)
		rc = refuse_machine(img, eh.e_machine, err);
	if (!rc && !is_debug)
		rc = read_program(img, &eh, err);
	if (!rc)
		rc = read_section_headers(img, &eh, err);
	if (rc)
		return rc;
	img->is_go = img->is_go || has_go_sections(img);
	if (!is_debug)
		img->kind = find_kind(img, &eh);
	priv->type = eh.e_type;
	return 0;
}

int elf_image_load(struct elf_image **out, const void *bytes, size_t size, const char *name,
		   struct elf_priv *priv, unsigned int load_flags, struct err *err)
{
	struct elf_image *img = xcalloc(1, sizeof(*img));
	int rc;

	img->path = xstrdup(name);
	img->fd = -1;
	img->bytes = bytes;
	img->size = size;
	img->priv = xmalloc(sizeof(*priv));
	memcpy(img->priv, priv, sizeof(*priv));
	rc = read_image(img, load_flags, err);
	if (rc) {
		elf_image_close(img);
		img = NULL;
	}
	*out = img;
	return rc;
}

int elf_image_from_memory(struct elf_image **out, const void *bytes, size_t size, const char *name,
			  struct err *err)
{
	return elf_image_load(out, bytes, size, name, &(struct elf_priv){0}, 0, err);
}

static uint64_t nanoseconds(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000ull + (uint64_t)t->tv_nsec;
}

void file_identify(struct file_identity *out, const struct stat *st)
{
	*out = (struct file_identity){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = nanoseconds(&st->st_mtim),
		.ctime_ns = nanoseconds(&st->st_ctim),
	};
}

/* Takes over fd. */
static int open_fd(struct elf_image **out, int fd, const char *path, unsigned int load_flags,
		   struct err *err)
{
	struct elf_priv priv = {0};
	struct stat st;
	int rc = 0;

	*out = NULL;
	if (fstat(fd, &st))
		rc = err_set(err, errno, "cannot read %s: %s", path, strerrordesc_np(errno));
	else if (S_ISDIR(st.st_mode))
		rc = err_set(err, EISDIR, "%s is a directory", path);
	else if (!S_ISREG(st.st_mode))
		rc = err_set(err, ENOEXEC, "%s is not a regular file", path);
	else if (!st.st_size)
		rc = err_set(err, ENOEXEC, "%s is empty, not an ELF file", path);
	if (!rc)
		rc = file_bytes_open(&priv.file, fd, &st, path, err);
	if (!rc)
		rc = elf_image_load(out, priv.file.v, priv.file.size, path, &priv, load_flags, err);
	if (rc) {
		close(fd);
		return rc;
	}
	(*out)->fd = fd;
	file_identify(&(*out)->file, &st);
	return 0;
}

static int open_path(struct elf_image **out, const char *path, unsigned int load_flags,
		     struct err *err)
{
	int fd = file_open_plain(path);

	*out = NULL;
	if (fd < 0)
		return err_set(err, errno, "cannot open %s: %s", path, strerrordesc_np(errno));
	return open_fd(out, fd, path, load_flags, err);
}

int elf_image_open(struct elf_image **out, const char *path, struct err *err)
{
	return open_path(out, path, 0, err);
}

int elf_image_open_debug(struct elf_image **out, const char *path, struct err *err)
{
	return open_path(out, path, ELF_LOAD_DEBUG, err);
}

int elf_image_open_fd(struct elf_image **out, int fd, const char *path_for_messages,
		      struct err *err)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	*out = NULL;
	if (copy < 0)
		return err_set(err, errno, "cannot read %s: %s", path_for_messages,
			       strerrordesc_np(errno));
	return open_fd(out, copy, path_for_messages, 0, err);
}

int elf_image_check(const struct elf_image *img, struct err *err)
{
	const struct elf_priv *priv = img->priv;

	if (!file_bytes_are_cut(&priv->file))
		return 0;
	return err_set(err, ESTALE, "%s was cut off while it was read", img->path);
}

void elf_image_close(struct elf_image *img)
{
	struct elf_priv *priv;

	if (!img)
		return;
	priv = img->priv;
	elf_image_close(priv->debug);
	xfree(priv->debug_dir);
	elf_data_close(priv);
	file_bytes_close(&priv->file);
	if (img->fd >= 0)
		close(img->fd);
	xfree(priv->owned);
	xfree(priv);
	xfree(img->segments);
	xfree(img->sections);
	xfree(img->path);
	xfree(img);
}

/* ---- lookups ---- */

static const struct elf_segment *segment_at(const struct elf_image *img, uint64_t vaddr)
{
	size_t lo = 0, hi = img->nsegments;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct elf_segment *s = &img->segments[mid];

		if (vaddr < s->vaddr)
			hi = mid;
		else if (vaddr - s->vaddr >= s->memsz)
			lo = mid + 1;
		else
			return s;
	}
	return NULL;
}

uint64_t elf_image_room(const struct elf_image *img, uint64_t vaddr)
{
	const struct elf_segment *s = segment_at(img, vaddr);

	return s && vaddr - s->vaddr < s->filesz ? s->filesz - (vaddr - s->vaddr) : 0;
}

const uint8_t *elf_image_at(const struct elf_image *img, uint64_t vaddr, size_t n)
{
	const struct elf_segment *s = segment_at(img, vaddr);

	if (!s || vaddr - s->vaddr > s->filesz || n > s->filesz - (vaddr - s->vaddr))
		return NULL;
	return img->bytes + s->off + (vaddr - s->vaddr);
}

bool elf_image_is_exec(const struct elf_image *img, uint64_t vaddr)
{
	const struct elf_segment *s = segment_at(img, vaddr);

	return s && s->flags & PF_X;
}

const struct elf_section *elf_image_section(const struct elf_image *img, const char *name)
{
	for (size_t i = 1; i < img->nsections; i++)
		if (!strcmp(img->sections[i].name, name))
			return &img->sections[i];
	return NULL;
}

const struct elf_section *elf_image_section_at(const struct elf_image *img, uint64_t vaddr)
{
	for (size_t i = 1; i < img->nsections; i++) {
		const struct elf_section *s = &img->sections[i];

		/* .tbss has addresses that it does not occupy */
		if (!(s->flags & SHF_ALLOC) || (s->type == SHT_NOBITS && s->flags & SHF_TLS))
			continue;
		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->size)
			return s;
	}
	return NULL;
}
