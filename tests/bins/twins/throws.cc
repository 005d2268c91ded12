// SPDX-License-Identifier: MIT
// throws.cc - C++ for tests/e2e/patch/twins.py: exceptions (landing pads in cold parts), templates,
// virtual functions, static constructors, thunks of multiple inheritance, lambdas.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{
struct counter {
	int n = 0;
	~counter()
	{
		total += n;
	}
	static int total;
};
int counter::total;

struct shape {
	virtual ~shape() = default;
	virtual int area() const = 0;
};
struct named {
	virtual ~named() = default;
	virtual std::string name() const
	{
		return "named";
	}
};
template <int N> struct square : shape, named {
	int area() const override
	{
		return N * N;
	}
	std::string name() const override
	{
		return "square" + std::to_string(N);
	}
};

__attribute__((noinline)) int may_throw(int n)
{
	counter c;
	c.n = n;
	if (n % 17 == 16)
		throw std::runtime_error("seventeen");
	if (n % 13 == 12)
		throw n;
	return n;
}

__attribute__((noinline)) int catches(int n)
{
	std::vector<std::string> names;
	try {
		names.push_back("n" + std::to_string(n));
		return may_throw(n) + static_cast<int>(names.size());
	} catch (const std::runtime_error &e) {
		names.push_back(e.what());
		return static_cast<int>(names.back().size());
	} catch (int i) {
		return -i;
	}
}

__attribute__((noinline)) int passes_on(int n)
{
	std::string s(static_cast<size_t>(n % 40), 'x');
	auto p = std::make_unique<counter>();
	p->n = catches(n);
	return p->n + static_cast<int>(s.size());
}

template <typename T> __attribute__((noinline)) T sum_of(const std::vector<T> &v)
{
	T s{};
	for (const T &x : v)
		s = s + x;
	return s;
}

std::map<std::string, int> registry = {{"a", 1}, {"b", 2}};

__attribute__((noinline)) int look_up(const std::string &key)
{
	auto it = registry.find(key);
	if (it == registry.end())
		throw std::out_of_range("no " + key);
	return it->second;
}
} // namespace

int main()
{
	std::vector<std::unique_ptr<shape>> shapes;
	int total = 0;

	shapes.push_back(std::make_unique<square<2>>());
	shapes.push_back(std::make_unique<square<3>>());
	for (const auto &s : shapes) {
		total += s->area();
		total += static_cast<int>(dynamic_cast<const named &>(*s).name().size());
	}
	for (int i = 0; i < 500; i++)
		total += passes_on(i);
	total += sum_of(std::vector<int>{1, 2, 3});
	total += static_cast<int>(sum_of(std::vector<double>{1, 2.5}));
	total += static_cast<int>(sum_of(std::vector<std::string>{"x", "y"}).size());
	try {
		total += look_up("a") + look_up("nothing");
	} catch (const std::exception &e) {
		total++;
	}
	std::vector<int> v{3, 1, 2};
	std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; });
	std::printf("%d\n", total != 0 && v[0] == 3 && counter::total != 0);
}
