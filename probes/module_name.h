/* SPDX-License-Identifier: MIT */
/*
 * module_name.h - by which names people mean a module.
 *
 *   /usr/lib/libz.so.1.2.13   its path
 *   libz.so.1.2.13            the path's last part
 *   libz.so.1                 its DT_SONAME: what others are linked with, what ldd says, and what is often
 *                             a link to the file only
 */
#ifndef PROBES_MODULE_NAME_H
#define PROBES_MODULE_NAME_H

#include <stddef.h>

#include "base/str.h"

struct module_name {
	const char *path;
	const char *soname; /* NULL: it has none, or nobody has looked */
};

#define MODULE_NAMES 3u
/* All of them; returns how many. */
static inline unsigned module_name_forms(const struct module_name *m, const char *out[MODULE_NAMES])
{
	out[0] = m->path;
	out[1] = str_base_name(m->path);
	out[2] = m->soname;
	return m->soname ? 3 : 2;
}

#endif
