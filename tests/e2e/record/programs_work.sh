#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 1800
# programs_work.sh - python, perl, gzip, xz, sqlite, and the large ones, behave as untraced.

source "${KRON_TOP_SRC:-$(dirname "$0")/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/subjects.bash"
source "$KRON_TOP_SRC/tests/e2e/record/programs.bash"

prepare() {
	text 200000 >text
	cat >work.py <<-'END'
		import collections, concurrent.futures, ctypes, hashlib, json, os, re, signal, sqlite3, subprocess
		import sys, threading, zlib

		def fib(n):
		    return n if n < 2 else fib(n - 1) + fib(n - 2)

		print(fib(15))
		words = re.findall(r"\w+", open("text").read())
		print(collections.Counter(words).most_common(3))
		print(hashlib.sha256(zlib.compress(open("text", "rb").read())).hexdigest())
		print(json.dumps({"a": [1, 2.5, None], "b": "ü"}, sort_keys=True))
		db = sqlite3.connect(":memory:")
		db.execute("create table t(a)")
		db.executemany("insert into t values (?)", [(i,) for i in range(100)])
		print(db.execute("select sum(a) from t").fetchone())
		print(ctypes.CDLL(None).abs(-5))
		print(subprocess.run(["/bin/echo", "child"], capture_output=True).stdout)
		with concurrent.futures.ThreadPoolExecutor(8) as pool:
		    print(sum(pool.map(lambda x: x * x, range(200))))
		pid = os.fork()
		if pid == 0:
		    os._exit(5)
		print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
		signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
		signal.setitimer(signal.ITIMER_REAL, 0.01)
		signal.pause()
		try:
		    raise ValueError("x")
		except ValueError as e:
		    print(repr(e))
		print(sorted(os.listdir("/proc/self/fd"))[:3])
		sys.exit(4)
	END
	cat >multi.py <<-'END'
		import multiprocessing as m
		def f(x):
		    return x * 2
		if __name__ == "__main__":
		    for how in ("fork", "spawn"):
		        with m.get_context(how).Pool(2) as p:
		            print(how, p.map(f, range(5)))
	END
	cat >work.pl <<-'END'
		use strict; use warnings; use POSIX ();
		my %n; open my $f, "<", "text" or die; while (<$f>) { $n{$_}++ for split }
		print join(" ", map { "$_=$n{$_}" } (sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n)[0..3]), "\n";
		sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) } print fib(14), "\n";
		print join(",", map { sprintf "%02x", $_ } unpack("C*", pack("w/a", "kron"))), "\n";
		local $SIG{ALRM} = sub { print "alarm\n" }; alarm 0; kill ALRM => $$;
		print `echo child`; system("exit 3"); print $? >> 8, "\n";
		eval { die { code => 7 } }; print $@->{code}, "\n";
		if (my $pid = fork) { waitpid $pid, 0; print $? >> 8, "\n" } else { POSIX::_exit(6) }
		print "ok\n" if "aaaaab" =~ /^(a+)+b$/; warn "warned\n"; exit 2;
	END
	cat >in.sql <<-'END'
		create table t(id integer primary key, name text, n real);
		with recursive c(i) as (select 1 union all select i + 1 from c where i < 2000)
		  insert into t(name, n) select printf('name%d', i * 7919 % 1000), i / 3.0 from c;
		create index by_name on t(name);
		select name, count(*), round(sum(n), 3) from t group by name order by 2 desc, 1 limit 4;
		explain query plan select * from t where name = 'name5';
		begin; delete from t where id % 2; rollback; select count(*) from t;
		pragma integrity_check;
		select * from nothing;
	END
	cat >work.js <<-'END'
		const z = require("zlib"), c = require("crypto"), { Worker } = require("worker_threads");
		const f = n => n < 2 ? n : f(n - 1) + f(n - 2);
		console.log(f(20), z.gunzipSync(z.gzipSync("kron")).toString());
		console.log(c.createHash("sha256").update("kron").digest("hex"));
		new Worker("require('worker_threads').parentPort.postMessage(6*7)", { eval: true })
			.on("message", m => { console.log(m); setTimeout(() => process.exit(3), 5); });
	END
	cat >Hello.java <<-'END'
		public class Hello {
			static int depth(int n) { return depth(n + 1); }
			public static void main(String[] a) throws Exception {
				try { depth(0); } catch (StackOverflowError e) { System.out.println("deep"); }
				try { ((String) null).length(); } catch (NullPointerException e) { System.out.println("null"); }
				Thread t = new Thread(() -> System.out.println("thread")); t.start(); t.join();
				System.gc(); System.exit(5);
			}
		}
	END
}

suite_start
if [ -x "$PYTHON" ]; then
	both "python3" "$PYTHON" work.py
	both "python3 multiprocessing" "$PYTHON" multi.py
	both "python3 fails" "$PYTHON" -c 'import sys; sys.stdout.write("x"); 1/0'
else
	tap_skip "python3" "not installed"
fi
have perl && both "perl" perl work.pl
have gzip && both "gzip" sh -c 'gzip -9 -n -c text | tee packed | sha256sum; gzip -d <packed | cmp - text; gzip -t text'
if have xz; then
	both "xz -T2" sh -c 'xz -T2 -6 --block-size=50000 -c text | sha256sum'
	both "xz round trip" sh -c 'xz -1 -k text && xz -dc text.xz | sha256sum; xz -t text'
fi
have sqlite3 && both "sqlite3" sh -c 'sqlite3 db <in.sql; echo $?; sqlite3 db .dump | sha256sum'
have bzip2 && both "bzip2" sh -c 'bzip2 -c text | tee packed | sha256sum; bzip2 -dc packed | cmp - text'
have gawk && both "gawk" gawk '{ n[$1]++ } END { for (k in n) if (n[k] > 3) print k, n[k] }' text
have openssl && both "openssl" openssl dgst -sha3-256 text
have tar && both "tar" sh -c 'tar --sort=name --mtime=@0 --owner=0 --group=0 -cf - work.* | sha256sum'
have ssh-keygen && both "ssh-keygen" ssh-keygen -l -f /dev/null
have bc && both "bc" sh -c 'echo "scale=60; 4*a(1)" | bc -l'
have gdb && both "gdb" gdb -nx -batch -ex 'print 6*7' -ex 'info line main' /bin/true
have cmake && both "cmake" cmake -E echo hello
have node && both "node" node work.js
have node && both "node version" node -e 'console.log(6 * 7); process.exitCode = 3'
if have java; then
	if command -v javac >/dev/null; then
		prepare && javac -d "$SUITE" Hello.java && rm -f work.* ./*.py text in.sql Hello.java
		both "java" java -cp "$SUITE" Hello
	else
		both "java" java -version
	fi
fi
suite_end
