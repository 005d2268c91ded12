#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# timeout: 2400
# `make deb`: packages without errors, which fresh Debian 12 and 13 take and record with.  The host's
# release has the packages that are built here; for the other one they are built there, from the
# source package: that takes as long as all the rest, so it is done every third day.  With KRON_DEB_CHECK=1 it is
# done, and the unit tests run there, too: before a release.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

setup_file() {
	host=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	case $host in
	bookworm | trixie) ;;
	*) why_not="the packages are for Debian 12 and 13" ;;
	esac
	command -v dh >/dev/null || why_not="debhelper is not installed"
	[ -n "${why_not-}" ] || packages=$(cd "$KRON_TOP_BUILD" && missing_packages)
	[ -z "${packages-}" ] || why_not="not installed: $packages"
	export host why_not
	[ -z "${why_not-}" ] || return 0
	# KRON_TOP_BUILD has perhaps packages of its user's in deb/
	touch "$BATS_FILE_TMPDIR/before"
	# they are built for a few minutes of use, and unpacked once
	mkdir -p "$BATS_FILE_TMPDIR/config/dpkg"
	echo 'source-option = -z1' >"$BATS_FILE_TMPDIR/config/dpkg/buildpackage.conf"
	XDG_CONFIG_HOME=$BATS_FILE_TMPDIR/config DEB_CFLAGS_APPEND='-O1 -g0' DEB_CXXFLAGS_APPEND='-O1 -g0' DPKG_DEB_COMPRESSOR_LEVEL=0 make -s -C "$KRON_TOP_BUILD" deb debdir="$BATS_FILE_TMPDIR/$host" >"$BATS_FILE_TMPDIR/log" 2>&1 ||
		{ tail -n 50 "$BATS_FILE_TMPDIR/log"; false; }
	debs=$BATS_FILE_TMPDIR/$host
	export debs
}

missing_packages() { # that debian/control wants
	cd "$KRON_TOP_SRC" && DEB_BUILD_PROFILES=nocheck dpkg-checkbuilddeps 2>&1 | sed 's/.*: //'
}

setup() {
	[ -z "$why_not" ] || skip "$why_not"
	test_setup
}

teardown() {
	[ -z "${T-}" ] || test_teardown
}

# fresh SUITE DIR: a root there, or skip
fresh() {
	local mirror
	[ "$(id -u)" = 0 ] || skip "only root can make a root file system"
	need debootstrap
	unshare --mount --pid --fork true || skip "no namespaces here"
	mirror=$("$KRON_TOP_SRC/scripts/debian-root" mirror)
	/usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "$mirror/dists/$1/Release" \
		"$T/Release" >mirror.log 2>&1 || skip "$mirror has no $1, or is not reachable"
	[ -e "/usr/share/debootstrap/scripts/$1" ] || skip "this debootstrap does not know $1"
	"$KRON_TOP_SRC/scripts/debian-root" make "$1" "$2" >root.log 2>&1 || { tail root.log; false; }
}

inside() { # DIR COMMAND...
	"$KRON_TOP_SRC/scripts/debian-root" run "$@"
}

someone() { # DIR COMMAND...: an ordinary user
	local root=$1
	shift
	inside "$root" setpriv --reuid 65534 --regid 65534 --clear-groups \
		env HOME=/tmp/home sh -c 'cd /tmp/home && exec "$@"' sh "$@"
}

# build SUITE ROOT: the source package's packages, and test programs, in a copy of ROOT; to $T/debs
build() {
	cp -a "$2" build
	tar -C build/tmp -xf "$debs"/kron_*.tar.xz
	inside "$PWD/build" sh -ec '
		cd /tmp/kron*/
		apt-get update -q
		export DEB_BUILD_PROFILES="$1" DPKG_DEB_COMPRESSOR_LEVEL=0
		apt-get build-dep -q -y --no-install-recommends "$PWD"
		DEB_BUILD_OPTIONS="parallel=$(nproc) noautodbgsym $1" dpkg-buildpackage -us -uc -b
		mkdir /tmp/debs
		mv ../*.deb /tmp/debs/
	' sh "$([ -n "${KRON_DEB_CHECK-}" ] || echo nocheck)" >build.log 2>&1 || { tail -n 50 build.log; false; }
	mv build/tmp/debs debs
	programs "$2" "$PWD/build" "$PWD/debs"
	rm -rf build
}

# programs ROOT BUILDER DEBS: compile what is recorded in ROOT, where BUILDER has a compiler
programs() {
	local root=$1 builder=$2
	mkdir -p "$root/tmp/home" "$builder/tmp/dev"
	for deb in "$3"/libmk*_*.deb; do
		case $deb in
		*-dbgsym_*) ;;
		*) dpkg -x "$deb" "$builder/tmp/dev" ;;
		esac
	done
	cp "$KRON_TOP_SRC/tests/bins/counted.c" "$builder/tmp/dev/"
	cat >"$builder/tmp/dev/prog.c" <<-'EOF'
	#include <mk.h>

	int main(void)
	{
		MK_DEFAULT_MAP();
		mk_ts1 = 10;
		puts("at work");
		mk_ts1 = 20;
	}
	EOF
	cat >"$builder/tmp/dev/make" <<-'EOF'
	set -e
	cd "$1"
	PKG_CONFIG_SYSROOT_DIR=$1
	PKG_CONFIG_LIBDIR=$(echo "$1"/usr/lib/*/pkgconfig)
	export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR
	gcc -O2 -g -pthread -o counted counted.c
	gcc -o prog prog.c $(pkg-config --cflags --libs libmk)
	gcc -o prog-static prog.c $(pkg-config --cflags libmk) usr/lib/*/libmk.a -pthread
	EOF
	if [ "$builder" = "$T/host" ]; then
		sh "$builder/tmp/dev/make" "$builder/tmp/dev"
	else
		inside "$builder" sh /tmp/dev/make /tmp/dev
	fi
	cp "$builder"/tmp/dev/{counted,prog,prog-static} "$root/tmp/home/"
	chown -R 65534:65534 "$root/tmp/home"
}

install_in() { # ROOT DEBS
	local deb
	for deb in "$2"/*.deb; do
		case $deb in
		*-dbgsym_*) ;;
		*) cp "$deb" "$1/tmp/" ;;
		esac
	done
	inside "$1" sh -ec 'apt-get update -q
		apt-get install -q -y --no-install-recommends /tmp/*.deb
		dpkg --audit; dpkg --verify kron libmk0 libmk-dev librefcnt0 librefcnt-dev' >install.log 2>&1 ||
		{ tail -n 30 install.log; false; }
}

# same WHO ROOT OPTIONS COMMAND...: like the untraced run, with samples, none of them lost
same() {
	local who=$1 root=$2 want=0 got=0 said
	local -a options
	read -ra options <<<"$3"
	shift 3
	$who "$root" "$@" >want.out 2>want.err || want=$?
	$who "$root" kron record "${options[@]}" -- "$@" >got.out 2>got.err || got=$?
	said=$(grep '^kron: ' got.err) || { echo "kron said nothing: $*"; cat got.err; return 1; }
	sed -i '/^kron: .* samples, /d' got.err
	[ "$want" = "$got" ] || { echo "status $got instead of $want: $*"; return 1; }
	cmp want.out got.out || { echo "$*"; return 1; }
	diff want.err got.err || { echo "$*"; return 1; }
	[[ $said == "kron: "[1-9]*" samples, 0 lost"* ]] || { echo "$*: $said"; return 1; }
}

records() { # ROOT WHO...: programs, as root and as somebody, like untraced
	local root=$1 who n
	shift
	for who; do
		same $who "$root" "-o /tmp/$who.1" sort -r /etc/passwd
		same $who "$root" "-o /tmp/$who.2 -L *" perl -e 'print join(",", sort { $b <=> $a } 1 .. 500), "\n"; exit 3'
		same $who "$root" "-o /tmp/$who.3 -L *" bash -c 'for i in {1..5}; do echo $(cat /etc/os-release | gzip -9 | gzip -d | wc -c); done; ls /nowhere'
		same $who "$root" "-o /tmp/$who.4" dpkg-query -W
		same $who "$root" "-o /tmp/$who.5 -P malloc" sort /etc/passwd
		same $who "$root" "-o /tmp/$who.6 --bus exact -F main" perl -e 'print 7 * 6'
		# the program itself counts its calls
		n=$($who "$root" kron record -q -F work -o /tmp/$who.7 -- /tmp/home/counted)
		[ "$n" -gt 100000 ]
		[ "$($who "$root" kron report --json /tmp/$who.7 | json \
			'sum(f["calls"] for f in d if f["function"] == "work")')" = "$n" ]
		# patched on disk
		$who "$root" kron patch -o /tmp/$who.sort /usr/bin/sort
		same $who "$root" "-o /tmp/$who.8" /tmp/$who.sort -r /etc/passwd
		# the board, from programs that were linked with the package
		for n in prog prog-static; do
			$who "$root" sh -ec "export KRON_BOARD=b$$; kron board create b$$ >&2
				/tmp/home/$n >&2; mk_rdsample -f - | mk_expand -h -
				kron board rm b$$" >samples
			[ "$(awk '{ print $4 }' samples | tail -n 2 | xargs)" = "000000000000000a 0000000000000014" ]
		done
	done
	# names in a report are of the root's own C library
	inside "$root" kron report /tmp/someone.2 >report
	grep -q '\[libc.so.6\]$' report
	grep -q ' perl_run \[perl\]$' report
}

removed() { # ROOT: nothing of ours stays
	inside "$1" apt-get purge -q -y kron libmk0 libmk-dev librefcnt0 librefcnt-dev >purge.log 2>&1
	[ -z "$(cd "$1" && find etc usr var ! -path 'var/log/*' ! -path 'var/lib/apt/*' ! -path 'var/cache/*' \
		\( -name '*kron*' -o -name 'libmk*' -o -name 'mk.h' -o -name '*refcnt*' \) | tee /dev/stderr)" ]
}

release() { # SUITE
	[ "$1" = "$host" ] || [ -n "${KRON_DEB_CHECK-}" ] || [ $(($(date +%-j) % 3)) = 0 ] ||
		skip "it is built there every third day, and with KRON_DEB_CHECK=1"
	fresh "$1" "$T/root"
	if [ "$1" = "$host" ]; then
		programs "$T/root" "$T/host" "$debs"
		install_in "$T/root" "$debs"
		records "$T/root" inside someone
	else
		build "$1" "$T/root"
		install_in "$T/root" "$T/debs"
		records "$T/root" someone
	fi
	removed "$T/root"
}

@test "make deb leaves packages, and the tree as it was" {
	for p in kron libmk0 libmk-dev librefcnt0 librefcnt-dev; do
		[ -e "$(echo "$debs/${p}_"*_amd64.deb)" ]
	done
	[ -z "$(find "$debs" -mindepth 1 -type d)" ]
	[ -z "$(find "$KRON_TOP_SRC" -path "$KRON_TOP_SRC/debian*" -newer "$BATS_FILE_TMPDIR/before")" ]
	[ -z "$(find "$KRON_TOP_BUILD" -maxdepth 1 -name 'kron*-[0-9]*' -newer "$BATS_FILE_TMPDIR/before")" ]
	# the source is ours, without what a build makes
	tar -tf "$debs"/kron_*.tar.xz >list
	grep -q '/debian/rules$' list
	[ -z "$(grep -E '\.(o|a|so|deb)$' list)" ]
}

@test "lintian finds no error" {
	need lintian
	run env TMPDIR="$T" lintian --allow-root --fail-on error --display-level '>=warning' "$debs"/kron_*.changes
	echo "$output"
	[ "$status" = 0 ]
}

@test "the packages hold all that make install installs, each once" {
	for p in kron libmk0 libmk-dev librefcnt0 librefcnt-dev; do
		mkdir $p
		dpkg -x "$debs/${p}_"*_amd64.deb $p
		(cd $p && find . ! -type d ! -path './usr/share/doc/*' ! -path './usr/share/lintian/*' |
			sed 's/\.gz$//; s|zsh/vendor-completions|zsh/site-functions|; s|/lib/x86_64-linux-gnu/|/lib/|') >>packed
	done
	make -s -C "$KRON_TOP_BUILD" install DESTDIR="$T/dest" >install.log 2>&1
	prefix=$(sed -n 's/^prefix = //p' "$KRON_TOP_BUILD/Makefile")
	(cd "$T/dest$prefix" && find . ! -type d) | sed 's|^\.|./usr|' | sort >installed
	sort packed | diff installed -
	# a page and completion for each program
	for p in kron/usr/bin/*; do
		p=${p##*/}
		[ -e kron/usr/share/man/man1/$p.1.gz ]
		[ -e kron/usr/share/bash-completion/completions/$p ]
		[ -e kron/usr/share/fish/vendor_completions.d/$p.fish ]
		head -n 1 kron/usr/share/zsh/vendor-completions/_kron | grep -qw -- "$p"
	done
}

@test "the runtime is as free of others with a packager's flags" {
	dpkg -x "$debs"/kron_*_amd64.deb kron
	rt=$(echo kron/usr/lib/*/kron/libkron-rt.so)
	[ -z "$(readelf -dW "$rt" | grep NEEDED)" ]
	# stripped, without a stack protector
	[ -z "$(readelf -SW "$rt" | grep -F .symtab)" ]
	[ -z "$(objdump -d "$rt" | grep -F '%fs:0x28')" ]
	# what is for people is hardened
	readelf -dW kron/usr/bin/mk_rpt | grep -q BIND_NOW
	readelf -sW kron/usr/bin/mk_rpt | grep -q __stack_chk_fail
}

@test "a fresh Debian 12 takes the packages and records with them" {
	release bookworm
}

@test "a fresh Debian 13 takes the packages and records with them" {
	release trixie
}
