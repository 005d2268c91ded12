/* SPDX-License-Identifier: MIT */
/*
 * frames.h - what goes over the cable between `kron record -o tcp://...` (the sender) and `kron collect`.
 *
 *   sender                                  collector
 *     ◄──────────────────────────── CHALLENGE  version, whether a token is needed, a nonce
 *     HELLO ───────────────────────────────►   version, session, nonce, answer to the challenge, name
 *     ◄────────────────────── WELCOME | REFUSED   the other answer, its boot; what it has of each file
 *     DATA ────────────────────────────────►   file, offset, bytes
 *     ◄──────────────────────────────── ACK    how long each file is there
 *     PING ────────────────────────────────►   at any time; PONG comes at once
 *     DONE ────────────────────────────────►   all is sent; ◄── DONE: all is there
 *
 * Each is a head and `nbytes` more, little-endian.  A trace's files are appended to only, so what was sent twice is
 * there once: the collector takes what goes on where the file ends, and passes over what it has.  Files are named by
 * number.  Nothing that the other end says is believed before cable_check() has seen it.
 */
#ifndef COLLECT_CABLE_FRAMES_H
#define COLLECT_CABLE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CABLE_MAGIC 0x4c42434bu /* "KCBL" */
#define CABLE_VERSION 2u
#define CABLE_PORT "5993"

enum cable_type {
	CABLE_CHALLENGE = 1,
	CABLE_HELLO,
	CABLE_WELCOME,
	CABLE_REFUSED,
	CABLE_DATA,
	CABLE_ACK,
	CABLE_PING,
	CABLE_PONG,
	CABLE_DONE,
	CABLE_TYPES
};

struct cable_head {
	uint32_t magic;
	uint8_t type;
	uint8_t file; /* DATA: which; else 0 */
	uint16_t zero;
	uint32_t nbytes; /* that follow */
	uint32_t zero2;
	uint64_t offset; /* DATA: where in the file; else 0 */
};
_Static_assert(sizeof(struct cable_head) == 24, "head of a frame");

/* Files in the order in which they are sent: a sample comes after what it means, the session, whose last line says
 * that all is there, after all else. */
#define CABLE_FILES 15
extern const char *const cable_files[CABLE_FILES];
enum { CABLE_SAMPLES = CABLE_FILES - 2, CABLE_SESSION, CABLE_CLOCK = 0 };

#define CABLE_ID 16
#define CABLE_NONCE 32
#define CABLE_ANSWER 32
#define CABLE_NAME 64
#define CABLE_BOOT 64
#define CABLE_DATA_MAX (256u << 10)
#define CABLE_TEXT_MAX 512u

struct cable_challenge {
	uint32_t version, needs_token;
	uint8_t nonce[CABLE_NONCE];
};
struct cable_hello {
	uint32_t version, zero;
	uint8_t id[CABLE_ID]; /* random: of this recording */
	uint8_t nonce[CABLE_NONCE], answer[CABLE_ANSWER];
	char name[CABLE_NAME]; /* of the node; letters, digits and "._-", and a zero */
};
struct cable_sizes {
	uint64_t v[CABLE_FILES];
};
struct cable_welcome {
	uint8_t answer[CABLE_ANSWER];
	char boot
		[CABLE_BOOT]; /* boot ID of the collector's host: whose CLOCK_MONOTONIC is in PONG */
	struct cable_sizes has;
};
struct cable_ping {
	uint64_t number;
};
struct cable_pong {
	uint64_t number;
	uint64_t came_ns, went_ns; /* on the collector's CLOCK_MONOTONIC */
};

/* Is this the head of a frame that may come now, and no longer than it may be?  NULL, or why not. */
const char *cable_check(const struct cable_head *h);
/* A name that is a directory's and no path. */
bool cable_is_name(const char name[CABLE_NAME]);

/* ---- who has the token ---- */

struct cable_token {
	uint8_t v[4096];
	size_t n; /* 0: none */
};
struct err;
/* A file that is its owner's alone.  0 or -errno with a sentence. */
int cable_token_read(struct cable_token *t, const char *path, struct err *err);
enum cable_side { CABLE_SENDER = 1, CABLE_COLLECTOR };
/* HMAC-SHA256 over the side, both nonces and the session: the token itself never goes over the wire. */
void cable_answer(uint8_t out[CABLE_ANSWER], const struct cable_token *t, enum cable_side side,
		  const uint8_t theirs[CABLE_NONCE], const uint8_t ours[CABLE_NONCE],
		  const uint8_t id[CABLE_ID]);
bool cable_same(const uint8_t *a, const uint8_t *b, size_t n); /* in constant time */

#endif
