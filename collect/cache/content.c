/* SPDX-License-Identifier: MIT */
/* content.c - see content.h.  Beside collect/cable/ the only file that knows libnettle. */
#include "collect/cache/content.h"

#include <string.h>

#include <nettle/sha2.h>

#include "base/jobs.h"
#include "base/vec.h"

#define LEAF (1u << 20)

enum { IS_LEAF = 0, IS_ROOT = 1, IS_JOINT = 2 };

static void begin(struct sha256_ctx *ctx, uint8_t kind)
{
	sha256_init(ctx);
	sha256_update(ctx, 1, &kind);
}

static void end(struct sha256_ctx *ctx, struct content *out)
{
	sha256_digest(ctx, CONTENT_LEN, out->v);
}

#define LEAF_SUM SHA256_DIGEST_SIZE

struct hashing {
	const uint8_t *bytes;
	size_t n;
	uint8_t *leaves; /* LEAF_SUM bytes each */
};

static void hash_leaf(size_t i, void *ctx)
{
	struct hashing *h = ctx;
	size_t at = i * LEAF;
	struct sha256_ctx sha;

	begin(&sha, IS_LEAF);
	sha256_update(&sha, h->n - at < LEAF ? h->n - at : LEAF, h->bytes + at);
	sha256_digest(&sha, LEAF_SUM, h->leaves + i * LEAF_SUM);
}

void content_of(struct content *out, const void *bytes, size_t n)
{
	size_t leaves = (n + LEAF - 1) / LEAF;
	struct hashing h = {bytes, n, xmalloc(leaves * LEAF_SUM + 1)};
	uint64_t length = n; /* little endian: x86-64 alone is meant */
	struct sha256_ctx sha;

	jobs_run(leaves, hash_leaf, &h);
	begin(&sha, IS_ROOT);
	sha256_update(&sha, sizeof(length), (const uint8_t *)&length);
	sha256_update(&sha, leaves * LEAF_SUM, h.leaves);
	end(&sha, out);
	xfree(h.leaves);
}

void content_join(struct content *out, const struct content *parts, size_t n)
{
	struct sha256_ctx sha;

	begin(&sha, IS_JOINT);
	for (size_t i = 0; i < n; i++)
		sha256_update(&sha, CONTENT_LEN, parts[i].v);
	end(&sha, out);
}

bool content_is(const struct content *a, const struct content *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* ---- text ---- */

static const char digits[] = "0123456789abcdef";

void content_write(char out[CONTENT_TEXT], const struct content *c)
{
	for (unsigned i = 0; i < CONTENT_LEN; i++) {
		out[2 * i] = digits[c->v[i] >> 4];
		out[2 * i + 1] = digits[c->v[i] & 15];
	}
	out[2 * CONTENT_LEN] = 0;
}

static int digit_of(char c)
{
	const char *p = c ? strchr(digits, c) : NULL;

	return p ? (int)(p - digits) : -1;
}

bool content_read(struct content *out, const char *text)
{
	for (unsigned i = 0; i < CONTENT_LEN; i++) {
		int hi = digit_of(text[2 * i]), lo = hi < 0 ? -1 : digit_of(text[2 * i + 1]);

		if (lo < 0)
			return false;
		out->v[i] = (uint8_t)(hi << 4 | lo);
	}
	return !text[2 * CONTENT_LEN];
}
