/* SPDX-License-Identifier: MIT */
/* frames.c - see frames.h. */
#define _GNU_SOURCE
#include "collect/cable/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/hmac.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

const char *const cable_files[CABLE_FILES] = {
	"clock",  "modules", "functions", "jumps",    "events", "refusals", "imports", "changes",
	"sleeps", "monitor", "tasks",     "switches", "pages",  "samples",  "session",
};

/* How long the rest of a frame may be: at least and at most. */
static const struct {
	uint32_t least, most;
} lengths[CABLE_TYPES] = {
	[CABLE_CHALLENGE] = {sizeof(struct cable_challenge), sizeof(struct cable_challenge)},
	[CABLE_HELLO] = {sizeof(struct cable_hello), sizeof(struct cable_hello)},
	[CABLE_WELCOME] = {sizeof(struct cable_welcome), sizeof(struct cable_welcome)},
	[CABLE_REFUSED] = {1, CABLE_TEXT_MAX},
	[CABLE_DATA] = {1, CABLE_DATA_MAX},
	[CABLE_ACK] = {sizeof(struct cable_sizes), sizeof(struct cable_sizes)},
	[CABLE_PING] = {sizeof(struct cable_ping), sizeof(struct cable_ping)},
	[CABLE_PONG] = {sizeof(struct cable_pong), sizeof(struct cable_pong)},
	[CABLE_DONE] = {sizeof(struct cable_sizes), sizeof(struct cable_sizes)},
};

const char *cable_check(const struct cable_head *h)
{
	if (h->magic != CABLE_MAGIC)
		return "what came is not kron's protocol";
	if (!h->type || h->type >= CABLE_TYPES)
		return "a frame of a type that does not exist";
	if (h->nbytes < lengths[h->type].least || h->nbytes > lengths[h->type].most)
		return "a frame's length is not what its type has";
	if (h->zero || h->zero2 || (h->type != CABLE_DATA && (h->file || h->offset)))
		return "a frame says what its type does not have";
	if (h->type == CABLE_DATA &&
	    (h->file >= CABLE_FILES || h->offset > (uint64_t)INT64_MAX - CABLE_DATA_MAX))
		return "a frame is of a file, or of a place in it, that does not exist";
	return NULL;
}

bool cable_is_name(const char name[CABLE_NAME])
{
	size_t n = strnlen(name, CABLE_NAME);

	if (!n || n == CABLE_NAME || name[0] == '.' || (n >= 4 && !strcmp(name + n - 4, ".old")))
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
	       n;
}

/* ---- the token ---- */

#define TOKEN_LEAST 16

static int check_token_file(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s is not a file", path);
	if (st.st_mode & 077)
		return err_set(err, EACCES,
			       "others may read the token in %s: `chmod 600` makes it yours alone",
			       path);
	return 0;
}

int cable_token_read(struct cable_token *t, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), ret;
	ssize_t n = 0;

	t->n = 0;
	if (fd < 0)
		return err_set(err, errno, "cannot open the token file %s: %s", path,
			       strerror(errno));
	ret = check_token_file(fd, path, err);
	if (!ret) {
		n = read(fd, t->v, sizeof(t->v));
		while (n > 0 && (t->v[n - 1] == '\n' || t->v[n - 1] == '\r'))
			n--;
		if (n < TOKEN_LEAST)
			ret = err_set(err, EINVAL,
				      "the token in %s is shorter than %d bytes: `head -c 32 "
				      "/dev/urandom | base64` makes one",
				      path, TOKEN_LEAST);
	}
	close(fd);
	if (!ret)
		t->n = (size_t)n;
	return ret;
}

void cable_answer(uint8_t out[CABLE_ANSWER], const struct cable_token *t, enum cable_side side,
		  const uint8_t theirs[CABLE_NONCE], const uint8_t ours[CABLE_NONCE],
		  const uint8_t id[CABLE_ID])
{
	static const char prefix[] = "kron cable 1";
	uint8_t which = (uint8_t)side;
	struct hmac_sha256_ctx ctx;

	hmac_sha256_set_key(&ctx, t->n, t->v);
	hmac_sha256_update(&ctx, sizeof(prefix), (const uint8_t *)prefix);
	hmac_sha256_update(&ctx, 1, &which);
	hmac_sha256_update(&ctx, CABLE_NONCE, theirs);
	hmac_sha256_update(&ctx, CABLE_NONCE, ours);
	hmac_sha256_update(&ctx, CABLE_ID, id);
	hmac_sha256_digest(&ctx, CABLE_ANSWER, out);
}

bool cable_same(const uint8_t *a, const uint8_t *b, size_t n)
{
	uint8_t differ = 0;

	for (size_t i = 0; i < n; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}
