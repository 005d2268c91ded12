/* SPDX-License-Identifier: MIT */
/*
 * log.h - what the tools say about their own work, for people who look into them.
 *
 *   KRON_LOG=plan:debug,collect:info     those areas, from that level up
 *   KRON_LOG=info                        every area
 *
 * Off unless KRON_LOG asks.  Lines go to stderr in one write each; errors that users must act
 * on are not log lines but the commands' own output.
 *
 *   level   for
 *   error   kron gives something up that the user asked for
 *   warn    something is odd, and the result is still right
 *   info    a step a user would recognise: once a process, once a module
 *   debug   a step a developer would recognise: once a request, once a function
 *   trace   anything else
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_OFF, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

/* Read the setting; NULL is off.  Words that make no sense are named in one line and ignored. */
void log_init(const char *setting);
bool log_wants(const char *area, enum log_level level);
void log_line(const char *area, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The arguments are not evaluated when nobody listens. */
#define log_at(area, level, ...)                            \
	do {                                                \
		if (log_wants(area, level))                 \
			log_line(area, level, __VA_ARGS__); \
	} while (0)
#define log_error(area, ...) log_at(area, LOG_ERROR, __VA_ARGS__)
#define log_warn(area, ...) log_at(area, LOG_WARN, __VA_ARGS__)
#define log_info(area, ...) log_at(area, LOG_INFO, __VA_ARGS__)
#define log_debug(area, ...) log_at(area, LOG_DEBUG, __VA_ARGS__)
#define log_trace(area, ...) log_at(area, LOG_TRACE, __VA_ARGS__)

#endif
