/* SPDX-License-Identifier: MIT */
/*
 * calc.c - a program with an ordinary mix of calls, whose counts gcov and callgrind know: a
 * recursive-descent parser, a hash table, a heap sort, a tree, function pointers, switches.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- expressions ---- */

static const char *at;
static long expression(void);

static void skip_blanks(void)
{
	while (isspace((unsigned char)*at))
		at++;
}
static long number(void)
{
	long n = 0;

	for (skip_blanks(); isdigit((unsigned char)*at); at++)
		n = n * 10 + (*at - '0');
	return n;
}
static long factor(void)
{
	long v;

	skip_blanks();
	switch (*at) {
	case '(':
		at++;
		v = expression();
		at++;
		return v;
	case '-':
		at++;
		return -factor();
	case '!':
		at++;
		return !factor();
	default:
		return number();
	}
}
static long divide(long a, long b)
{
	return b ? a / b : 0;
}
static long term(void)
{
	long v = factor();

	for (;;) {
		skip_blanks();
		if (*at == '*')
			at++, v *= factor();
		else if (*at == '/')
			at++, v = divide(v, factor());
		else
			return v;
	}
}
static long expression(void)
{
	long v = term();

	for (;;) {
		skip_blanks();
		if (*at == '+')
			at++, v += term();
		else if (*at == '-')
			at++, v -= term();
		else
			return v;
	}
}

/* ---- hash table ---- */

#define BUCKETS 64
struct entry {
	struct entry *next;
	long value;
	char key[16];
};
static struct entry *table[BUCKETS];

static unsigned hash(const char *s)
{
	unsigned h = 5381;

	while (*s)
		h = h * 33 + (unsigned char)*s++;
	return h;
}
static int same(const char *a, const char *b)
{
	return !strcmp(a, b);
}
static struct entry *find(const char *key)
{
	struct entry *e = table[hash(key) % BUCKETS];

	while (e && !same(e->key, key))
		e = e->next;
	return e;
}
static struct entry *insert(const char *key, long value)
{
	struct entry *e = find(key), **bucket = &table[hash(key) % BUCKETS];

	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e)
			abort();
		snprintf(e->key, sizeof(e->key), "%s", key);
		e->next = *bucket;
		*bucket = e;
	}
	e->value = value;
	return e;
}

/* ---- heap sort ---- */

static void swap(long *a, long *b)
{
	long t = *a;

	*a = *b;
	*b = t;
}
static int less(const long *v, size_t a, size_t b)
{
	return v[a] < v[b];
}
static void sift(long *v, size_t i, size_t n)
{
	size_t child;

	while ((child = 2 * i + 1) < n) {
		if (child + 1 < n && less(v, child, child + 1))
			child++;
		if (!less(v, i, child))
			return;
		swap(&v[i], &v[child]);
		i = child;
	}
}
static void heap_sort(long *v, size_t n)
{
	for (size_t i = n / 2; i-- > 0;)
		sift(v, i, n);
	while (n-- > 1) {
		swap(&v[0], &v[n]);
		sift(v, 0, n);
	}
}

/* ---- tree ---- */

struct node {
	struct node *left, *right;
	long key;
};
static struct node *add(struct node *t, long key)
{
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			abort();
		t->key = key;
	} else if (key < t->key) {
		t->left = add(t->left, key);
	} else if (key > t->key) {
		t->right = add(t->right, key);
	}
	return t;
}
static int depth(const struct node *t)
{
	int l, r;

	if (!t)
		return 0;
	l = depth(t->left);
	r = depth(t->right);
	return 1 + (l > r ? l : r);
}
static void each(const struct node *t, void (*fn)(long, long *), long *sum)
{
	if (!t)
		return;
	each(t->left, fn, sum);
	fn(t->key, sum);
	each(t->right, fn, sum);
}
static void add_key(long key, long *sum)
{
	*sum += key;
}
static void mix_key(long key, long *sum)
{
	*sum = (*sum * 31 + key) % 1000003;
}
static void drop(struct node *t)
{
	if (t) {
		drop(t->left);
		drop(t->right);
		free(t);
	}
}

/* ---- the work ---- */

static unsigned long seed = 12345;
static long next_random(void)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (long)(seed >> 40);
}
static int ackermann(int m, int n)
{
	if (m == 0)
		return n + 1;
	if (n == 0)
		return ackermann(m - 1, 1);
	return ackermann(m - 1, ackermann(m, n - 1));
}

int main(void)
{
	static const char *const texts[] = {"1+2*3", "(4-5)*(6+7)/2", "-(-8)+!0*9", "10/(5-5)"};
	static long v[2000];
	long total = 0, sum = 0, mixed = 0;
	struct node *tree = NULL;
	int d;

	for (int i = 0; i < 400; i++) {
		at = texts[i % 4];
		total += expression();
	}
	for (int i = 0; i < 1500; i++) {
		char key[16];

		snprintf(key, sizeof(key), "k%d", i % 300);
		insert(key, i);
		total += find(key)->value;
	}
	for (size_t i = 0; i < 2000; i++)
		v[i] = next_random();
	heap_sort(v, 2000);
	for (size_t i = 1; i < 2000; i++)
		if (v[i - 1] > v[i])
			return 1;
	for (int i = 0; i < 1000; i++)
		tree = add(tree, next_random() % 5000);
	d = depth(tree);
	each(tree, add_key, &sum);
	each(tree, mix_key, &mixed);
	drop(tree);
	printf("%ld %d %ld %ld %d\n", total, d, sum, mixed, ackermann(2, 40));
	return 0;
}
