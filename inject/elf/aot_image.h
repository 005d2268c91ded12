/* SPDX-License-Identifier: MIT */
/*
 * aot_image.h - native code that belongs to a language's runtime, which reads it as data.
 *
 * Mono's ahead-of-time compiler makes ELF files of its modules' code.  The runtime finds out by the
 * bytes of calls and jumps what they lead to, and rewrites the stubs among them; a changed byte ends
 * the program ("code [0] == 0xff").  Such a file exports mono_aot_file_info; one that is linked into
 * a program has mono_aot_module_NAME_info.
 */
#ifndef INJECT_AOT_IMAGE_H
#define INJECT_AOT_IMAGE_H

#include "inject/elf/elf_image.h"

/* Nothing in it may be changed. */
bool aot_image_is(const struct elf_image *img);
#define AOT_IMAGE_WHY "holds code of Mono's ahead-of-time compiler, which its runtime reads as data"

#endif
