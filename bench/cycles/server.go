// SPDX-License-Identifier: MIT
// server: a server of Go and its clients, which check what they get, until standard input ends.

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

var over, bad int32

func wrong(format string, args ...interface{}) {
	atomic.StoreInt32(&bad, 1)
	fmt.Printf(format+"\n", args...)
}

//go:noinline
func leaf(a, b uint64) uint64 { return a*31 + b }

// down to wherever its stack has to grow next
//
//go:noinline
func deep(x int) int {
	if x == 0 {
		return 0
	}
	return deep(x-1) + 1
}

// a loop that calls nothing: it is preempted by a signal
func spin(n int) uint64 {
	s := uint64(1)
	for i := 0; i < n; i++ {
		s = s*6364136223846793005 + 1442695040888963407
		s ^= s >> 7
	}
	return s
}

func answer(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "you said %s", r.URL.Query().Get("n"))
}

func asks(url string, n int) {
	r, err := http.Get(fmt.Sprintf("%s/?n=%d", url, n))
	if err != nil {
		wrong("asks: %v", err)
		return
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || string(body) != fmt.Sprintf("you said %d", n) {
		wrong("asks: %q, %v", body, err)
	}
}

func sleeps(int) {
	start := time.Now()
	time.Sleep(20 * time.Millisecond)
	if took := time.Since(start); took < 19*time.Millisecond || took > 5*time.Second {
		wrong("sleeps: %v", took)
	}
}

func breaks(n int) {
	defer func() {
		if recover() == nil {
			wrong("breaks: no panic")
		}
	}()
	var p *int
	*p = n
}

func main() {
	var wg sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(answer))
	want, wantLeaf := spin(500000), uint64(0)
	for k := 0; k < 5000; k++ {
		wantLeaf = leaf(wantLeaf, uint64(k))
	}
	run := func(work func(int)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := 0; atomic.LoadInt32(&over) == 0; n++ {
				work(n)
			}
		}()
	}
	for i := 0; i < 3; i++ {
		run(func(n int) { asks(server.URL, n) })
		run(sleeps)
	}
	run(breaks)
	run(func(int) {
		if spin(500000) != want {
			wrong("spin")
		}
	})
	run(func(int) {
		x := uint64(0)
		for k := 0; k < 5000; k++ {
			x = leaf(x, uint64(k))
		}
		if x != wantLeaf {
			wrong("leaf")
		}
	})
	run(func(n int) {
		done := make(chan int)
		go func() { done <- deep(n % 1000) }()
		if <-done != n%1000 {
			wrong("deep")
		}
	})
	run(func(int) { runtime.GC(); time.Sleep(50 * time.Millisecond) })
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
	atomic.StoreInt32(&over, 1)
	wg.Wait()
	os.Exit(int(bad))
}
