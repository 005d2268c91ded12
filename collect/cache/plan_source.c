/* SPDX-License-Identifier: MIT */
/*
 * plan_source.c - see plan_source.h.
 *
 * Whose word is taken that a file is unchanged?  Its identity's, if (is_settled)
 *
 *   - it belongs to root or to us, and nobody else may write to it;
 *   - its filesystem is one of those that keep their times themselves.  On FUSE and network
 *     filesystems whoever serves them says what he likes; on images (squashfs, erofs, ISO 9660) all
 *     times are often the same; tmpfs does not notice writes to shared mappings;
 *   - the mount is one of our own mount namespace and honours set-user-ID bits.  What users may
 *     mount themselves does not: it can be made to look like anything, and its device number is
 *     another mount's tomorrow.  An owner "root" that the kernel would start programs for is
 *     root;
 *   - the last change is more than AGE ago.  Then no later one can have the same ctime, which
 *     has the grain of a tick; and pages that somebody writes to through a shared mapping have
 *     been written back meanwhile, after which the next store to them shows, too.
 *
 * A ctime without a fraction of a second was made up, by whoever made the image of a disk, and the next
 * image may have another file with the same one.  So there the mount belongs to the identity,
 * by a number that is given once in a boot (Linux 6.8); without that number it is not settled.
 *
 * All of it is asked when the sum is about to be kept, of the descriptor that the bytes came by.
 * Later the identity alone is looked up: a file that was settled and has changed hands since has
 * another ctime.  Whoever can give a file of his the identity of another one (a device number that
 * was used before) gets the other one's plan for his own file, and harms nobody else.
 */
#define _GNU_SOURCE
#include "collect/cache/plan_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/boot.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "inject/elf/elf_symbols.h"

#define SECOND 1000000000ll
/* Dirty pages are written back after 30 s, when the kernel looks, which it does every 5. */
#define AGE (60 * SECOND)

static int64_t age = AGE;

void plan_source_set_age(int64_t ns)
{
	age = ns ? ns : AGE;
}

/* ---- is the identity as good as the bytes? ---- */

/* Of the line of a mount in mountinfo: "36 35 98:0 /root /mnt options [tags] - type source options". */
static bool is_trusted_mount(const char *line)
{
	static const char *const types[] = {"ext2", "ext3", "ext4",     "xfs",    "btrfs",
					    "f2fs", "zfs",  "bcachefs", "overlay"};
	char options[256], type[32] = "";
	const char *rest = strstr(line, " - ");

	if (!rest || sscanf(rest, " - %31s", type) != 1 ||
	    sscanf(line, "%*s %*s %*s %*s %*s %255s", options) != 1)
		return false;
	for (char *save, *word = strtok_r(options, ",", &save); word;
	     word = strtok_r(NULL, ",", &save))
		if (!strcmp(word, "nosuid"))
			return false;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

/* The number of the mount that fd was opened by, -1: nobody says. */
static long mount_of(int fd)
{
	char path[40], line[128];
	long id = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "mnt_id: %ld", &id) == 1)
			break;
	if (f)
		fclose(f);
	return id;
}

static bool is_on_trusted_mount(int fd)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	long wanted = mount_of(fd), id;
	char *line = NULL;
	size_t size = 0;
	bool trusted = false;

	while (f && wanted >= 0 && getline(&line, &size, f) > 0)
		if (sscanf(line, "%ld ", &id) == 1 && id == wanted)
			trusted = is_trusted_mount(line);
	if (f)
		fclose(f);
	free(line);
	return trusted;
}

/* The file is what it was, and was for long before that moment; and will show when it is not. */
static bool is_settled(int fd, const struct file_identity *was, int64_t before)
{
	struct file_identity now;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return false;
	file_identify(&now, &st);
	return !memcmp(&now, was, sizeof(now)) && (!st.st_uid || st.st_uid == geteuid()) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH)) && before - (int64_t)now.ctime_ns > age &&
	       is_on_trusted_mount(fd);
}

/* ---- the name of the text ---- */

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif

/* What stands for a file in the name. */
struct place {
	struct file_identity file;
	uint64_t mount; /* with boot_id: if the times alone are not enough */
	char boot_id[BOOT_ID_LEN + 4];
};

/* By descriptor and "", or by path.  False: it cannot be told from another one. */
static bool place_of(struct place *p, const struct file_identity *f, int fd, const char *path)
{
	struct statx st;

	memset(p, 0, sizeof(*p));
	p->file = *f;
	if (f->ctime_ns % SECOND)
		return true;
	if (!boot_id()[0] || statx(fd, path, AT_EMPTY_PATH, STATX_MNT_ID_UNIQUE, &st) ||
	    !(st.stx_mask & STATX_MNT_ID_UNIQUE))
		return false;
	memcpy(p->boot_id, boot_id(), BOOT_ID_LEN);
	p->mount = st.stx_mnt_id;
	return true;
}

/* Of the file, and of all that stands where its debug file would be. */
static void name_text(struct plan_source *s, const struct elf_debug_paths *paths)
{
	struct place places[1 + sizeof(paths->v) / sizeof(*paths->v)];
	struct file_identity f;
	struct content all;
	struct stat st;
	size_t n = 0;

	s->is_told = place_of(&places[n++], &s->img->file, s->img->fd, "");
	for (size_t i = 0; i < paths->n; i++) {
		if (stat(paths->v[i], &st))
			continue;
		file_identify(&f, &st);
		s->is_told &= place_of(&places[n++], &f, AT_FDCWD, paths->v[i]);
	}
	content_of(&all, places, n * sizeof(*places));
	strcpy(s->name, CACHE_TEXT);
	content_write(s->name + strlen(CACHE_TEXT), &all);
}

/* ---- the sum ---- */

static void sum(struct content *out, const struct elf_image *img)
{
	const struct elf_image *debug = elf_debug_file(img, NULL);
	struct content parts[2];
	size_t n = 0;

	content_of(&parts[n++], img->bytes, img->size);
	if (debug)
		content_of(&parts[n++], debug->bytes, debug->size);
	content_join(out, parts, n);
}

/* Whatever stands at the path: the text is found by it, be it the debug file or not. */
static bool is_path_settled(const char *path, int64_t before)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct file_identity f;
	struct stat st;
	bool settled;

	if (fd < 0)
		return errno == ENOENT;
	settled = !fstat(fd, &st);
	if (settled) {
		file_identify(&f, &st);
		settled = is_settled(fd, &f, before);
	}
	close(fd);
	return settled;
}

static bool are_settled(const struct plan_source *s, const struct elf_debug_paths *paths,
			int64_t before)
{
	const struct elf_image *debug = elf_debug_file(s->img, NULL);
	bool settled = is_settled(s->img->fd, &s->img->file, before) &&
		       (!debug || is_settled(debug->fd, &debug->file, before));

	for (size_t i = 0; i < paths->n && settled; i++)
		settled = is_path_settled(paths->v[i], before);
	return settled;
}

void plan_source_sum(struct plan_source *s, int dir)
{
	int64_t before = (int64_t)clock_ns(CLOCK_REALTIME);
	struct elf_debug_paths paths;
	struct content was = s->content;
	char text[CONTENT_TEXT], name[sizeof(s->name)];

	sum(&s->content, s->img);
	if (s->is_known && !content_is(&was, &s->content))
		log_warn("cache", "%s is not what %s says", s->img->path, s->name);
	memcpy(name, s->name, sizeof(name));
	elf_debug_paths(&paths, s->img, NULL);
	s->is_settled = are_settled(s, &paths, before);
	name_text(s, &paths); /* once more: none of them came, went or changed meanwhile */
	elf_debug_paths_free(&paths);
	s->is_known = false;
	content_write(text, &s->content);
	if (s->is_settled && s->is_told && !strcmp(name, s->name))
		cache_dir_put_text(dir, s->name, text);
}

void plan_source_find(struct plan_source *s, const struct elf_image *img, int dir)
{
	struct elf_debug_paths paths;
	char text[CONTENT_TEXT];

	*s = (struct plan_source){.img = img};
	elf_debug_paths(&paths, img, NULL);
	name_text(s, &paths);
	elf_debug_paths_free(&paths);
	s->is_known = s->is_told && cache_dir_get_text(dir, s->name, text, sizeof(text)) &&
		      content_read(&s->content, text);
	if (!s->is_known)
		plan_source_sum(s, dir);
}

bool plan_source_stayed(const struct plan_source *s)
{
	const struct elf_image *debug = elf_debug_file(s->img, NULL);
	struct content now;

	if (s->is_settled && is_settled(s->img->fd, &s->img->file, INT64_MAX) &&
	    (!debug || is_settled(debug->fd, &debug->file, INT64_MAX)))
		return true;
	sum(&now, s->img);
	return content_is(&now, &s->content);
}
