// SPDX-License-Identifier: MIT
/*
 * containers.cc - C++ as compilers leave it: templates, virtual calls, lambdas, destructors,
 * constructors in two versions.  callgrind knows the counts.
 */
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace zoo
{
struct Animal {
	virtual ~Animal();
	virtual int legs() const = 0;
	virtual std::string name() const
	{
		return "animal";
	}
};
Animal::~Animal()
{
}
struct Bird : virtual Animal {
	int legs() const override
	{
		return 2;
	}
	std::string name() const override
	{
		return "bird";
	}
};
struct Horse : virtual Animal {
	int legs() const override
	{
		return 4;
	}
};
struct Pegasus : Bird, Horse {
	int legs() const override
	{
		return Horse::legs();
	}
	std::string name() const override
	{
		return Bird::name() + "horse";
	}
};
} // namespace zoo

template <typename T> __attribute__((noinline)) T larger(T a, T b)
{
	return a < b ? b : a;
}
static __attribute__((noinline)) std::unique_ptr<zoo::Animal> make(int i)
{
	switch (i % 3) {
	case 0:
		return std::make_unique<zoo::Bird>();
	case 1:
		return std::make_unique<zoo::Horse>();
	default:
		return std::make_unique<zoo::Pegasus>();
	}
}
static __attribute__((noinline)) int apply(const std::function<int(int)> &f, int x)
{
	return f(x);
}

int main()
{
	std::vector<std::unique_ptr<zoo::Animal>> zoo;
	std::map<std::string, int> legs;
	std::vector<int> v;
	long sum = 0;

	for (int i = 0; i < 900; i++)
		zoo.push_back(make(i));
	for (auto &a : zoo)
		legs[a->name()] += a->legs();
	for (int i = 0; i < 3000; i++)
		v.push_back((i * 7919) % 1009);
	std::sort(v.begin(), v.end(), [](int a, int b) { return a % 100 < b % 100; });
	std::stable_sort(v.begin(), v.end(), std::greater<int>());
	for (int x : v)
		sum += larger(x, 500) + (long)larger(1.5 * x, 100.25);
	for (int i = 0; i < 100; i++)
		sum += apply([i](int x) { return x * i; }, i);
	for (auto &p : legs)
		printf("%s %d\n", p.first.c_str(), p.second);
	printf("%ld\n", sum);
}
