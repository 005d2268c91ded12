// SPDX-License-Identifier: MIT
// go_life: goroutines on stacks that grow, garbage, panics; hit() is called 8800 times.

package main

import (
	"fmt"
	"runtime"
	"sync"
)

//go:noinline
func hit(x int) int { return x*3 + 1 }

// down to wherever its stack has to grow next
//
//go:noinline
func deep(x int) int {
	if x == 0 {
		return hit(0)
	}
	return deep(x-1) + 1
}

type box struct {
	next *box
	b    [40]byte
}

//go:noinline
func waste(n int) *box {
	var p *box
	for i := 0; i < n; i++ {
		p = &box{next: p}
		if i%100 == 0 {
			p = nil
		}
	}
	return p
}

//go:noinline
func breaks(a []int, i int) int { return a[i] }

func saves(i int) (s string) {
	defer func() { s = fmt.Sprint(recover()) }()
	return fmt.Sprint(breaks(nil, i))
}

func main() {
	var wg sync.WaitGroup
	var sum [8]int
	for k := range sum {
		wg.Add(1)
		go func(k int) {
			defer wg.Done()
			for i := 0; i < 1000; i++ {
				sum[k] += hit(i)
			}
			for i := 0; i < 100; i++ {
				done := make(chan int)
				go func() { done <- deep(i) }()
				sum[k] += <-done
			}
			waste(10000)
			saves(k)
		}(k)
	}
	wg.Wait()
	runtime.GC()
	fmt.Println(sum, saves(5))
}
