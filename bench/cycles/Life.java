// SPDX-License-Identifier: MIT
// Life: threads of Java that check what they get, until standard input ends.

import java.io.InputStream;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;

public class Life {
	static volatile boolean over;
	static volatile boolean bad;
	static final List<Thread> threads = new ArrayList<>();

	interface Work {
		void once() throws Exception;
	}

	static void need(boolean condition, String text) {
		if (!condition)
			throw new IllegalStateException(text);
	}

	static void start(String name, Work work) {
		Thread t = new Thread(() -> {
			try {
				while (!over)
					work.once();
			} catch (Throwable e) {
				bad = true;
				System.out.println(name + ": " + e);
			}
		});
		threads.add(t);
		t.start();
	}

	static void sleeps() throws Exception {
		final long start = System.nanoTime();
		Thread.sleep(20);
		final long took = (System.nanoTime() - start) / 1000000;
		need(took >= 19 && took < 5000, took + " ms instead of 20");
	}

	static int fib(int n) {
		return n < 2 ? n : fib(n - 1) + fib(n - 2);
	}

	static void computes() {
		final HashMap<Integer, String> m = new HashMap<>();
		for (int i = 0; i < 2000; i++)
			m.put(i, "n" + i);
		for (int i = 0; i < 2000; i++)
			need(m.get(i).equals("n" + i), "another value");
		need(fib(20) == 6765, "a wrong number");
	}

	static void breaks() {
		try {
			Object o = System.nanoTime() == 0 ? "" : null;
			o.hashCode(); // by way of SIGSEGV once it is compiled
		} catch (NullPointerException e) {
			return;
		}
		need(false, "nothing was thrown");
	}

	static void talks(int port) throws Exception {
		try (Socket s = new Socket("127.0.0.1", port)) {
			for (int i = 0; i < 100; i++) {
				s.getOutputStream().write(i);
				need(s.getInputStream().read() == (i ^ 85), "another answer");
			}
		}
		Thread.sleep(5);
	}

	static void echo(ServerSocket server) throws Exception {
		for (;;)
			try (Socket s = server.accept()) {
				InputStream in = s.getInputStream();
				OutputStream out = s.getOutputStream();
				for (int b; (b = in.read()) >= 0;)
					out.write(b ^ 85);
			}
	}

	public static void main(String[] argv) throws Exception {
		final ServerSocket server = new ServerSocket(0, 50, java.net.InetAddress.getByName("127.0.0.1"));
		final SynchronousQueue<Integer> q = new SynchronousQueue<>();
		Thread t = new Thread(() -> {
			try {
				echo(server);
			} catch (Exception e) {
				System.out.println("echo: " + e);
			}
		});
		t.setDaemon(true);
		t.start();
		start("sleeps", Life::sleeps);
		start("computes", Life::computes);
		start("breaks", Life::breaks);
		start("talks", () -> talks(server.getLocalPort()));
		start("gives", () -> q.offer(42, 50, TimeUnit.MILLISECONDS));
		start("takes", () -> {
			Integer n = q.poll(50, TimeUnit.MILLISECONDS);
			need(n == null || n == 42, "another number");
			Thread.sleep(1);
		});
		start("collects", () -> {
			System.gc();
			Thread.sleep(300);
		});
		System.out.println("ready");
		System.in.read();
		over = true;
		for (Thread w : threads)
			w.join();
		System.exit(bad ? 1 : 0);
	}
}
