/* SPDX-License-Identifier: MIT */
/*
 * assemble.h - builds small programs at test time and says where their labels are.
 *
 * The labels are the truth that a test compares with, and they come from the assembler: the
 * program is built with them, their addresses are noted, and a copy without the labels that
 * begin with L_ or .L is what the code under test gets to see.
 */
#ifndef TESTS_UNIT_ASSEMBLE_H
#define TESTS_UNIT_ASSEMBLE_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/elf/elf_image.h"
#include "inject/elf/elf_symbols.h"

struct assembled {
	char folder[64];
	struct elf_image *labelled, *img;
};

static inline int run_command(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline int run_command(const char *fmt, ...)
{
	char command[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return system(command);
}

static inline bool is_installed(const char *program)
{
	return !run_command("command -v %s >/dev/null", program);
}

static inline const char *compiler(void)
{
	const char *cc = getenv("CC");

	return cc && *cc ? cc : "cc";
}

static inline void make_folder(struct assembled *a)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(a->folder, sizeof(a->folder), "%s/kron-unit-XXXXXX",
		 tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	if (!mkdtemp(a->folder))
		abort();
}

/* Open FOLDER/labelled, and FOLDER/plain, which is the same without L_ and .L labels. */
static inline bool open_both(struct assembled *a)
{
	char path[96];
	struct err err;

	if (run_command("cd %s && objcopy -w -N 'L_*' -N '.L*' labelled plain", a->folder))
		return false;
	snprintf(path, sizeof(path), "%s/labelled", a->folder);
	if (elf_image_open(&a->labelled, path, &err))
		return false;
	snprintf(path, sizeof(path), "%s/plain", a->folder);
	return !elf_image_open(&a->img, path, &err);
}

/* Link the assembly source with these compiler options. */
static inline bool assemble(struct assembled *a, const char *source, const char *options)
{
	char path[96];
	FILE *f;

	make_folder(a);
	snprintf(path, sizeof(path), "%s/source.s", a->folder);
	f = fopen(path, "w");
	if (!f || fputs(source, f) < 0 || fclose(f))
		return false;
	if (run_command("cd %s && %s -nostdlib -Wl,--build-id=none -Wl,-z,noexecstack %s "
			"-o labelled source.s",
			a->folder, compiler(), options))
		return false;
	return open_both(a);
}

static inline uint64_t label(const struct assembled *a, const char *name)
{
	struct elf_symbol sym;

	if (!elf_symbols_lookup(a->labelled, name, &sym)) {
		fprintf(stderr, "no label %s\n", name);
		abort();
	}
	return sym.value;
}

static inline void assembled_close(struct assembled *a)
{
	elf_image_close(a->labelled);
	elf_image_close(a->img);
	run_command("rm -rf %s", a->folder);
}

#endif
