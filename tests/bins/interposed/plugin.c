/* SPDX-License-Identifier: MIT */
/* plugin.c - what caller.cc opens with dlopen(): calls the callee from a module of its own. */
long add(long);
long chosen(long);

long plugin(int n);
long plugin(int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++)
		sum += add(i) + chosen(i);
	return sum;
}

/* the address as this module sees it */
void *plugin_add(void);
void *plugin_add(void)
{
	return (void *)add;
}
