/* SPDX-License-Identifier: MIT */
/*
 * emulate.h - do what an instruction does, with bus cycles for its access to the window.
 */
#ifndef LIBMK_EMULATE_H
#define LIBMK_EMULATE_H

#include <signal.h>
#include <ucontext.h>

enum emulate_result {
	EMULATE_DONE,     /* go on where *uc says */
	EMULATE_NOT_OURS, /* nothing was done: not the window, or an unknown instruction */
	EMULATE_REFUSED,  /* nothing was done: a store that the board does not take */
	EMULATE_FAULT     /* its other operand faulted: *info says how, *uc is as it was then */
};

/* For a fault at info->si_addr in the thread that *uc describes.  Async-signal-safe. */
enum emulate_result emulate(ucontext_t *uc, siginfo_t *info);

#endif
