# SPDX-License-Identifier: MIT
# python3: -m test of libpython3.11-testsuite, a module at a time

prepare() {
	/usr/bin/python3.11 -c 'import test.test_int'
}

setup() {
	program python3.11 /usr/bin/python3.11
}

tests() { # without what needs a screen, the net, an installation, or hours
	(cd /usr/lib/python3.11/test && ls -d test_*) | grep -v "txt$" | sed 's/\.py$//' | grep -vxE \
		'test_(tools|idle|tk|ttk.*|tcl|turtle|winreg|winsound|ossaudiodev|nntplib|urllib2net|urllibnet|zipfile64|bigmem|gdb|venv|ensurepip|distutils|peg_generator|lib2to3|curses|kqueue|msilib|startfile|wmi|smtpnet|clinic|c_analyzer|freeze|check_c_globals|embed|minidom_files)'
}

run() {
	local py=/usr/bin/python3.11
	[ -e "$bin/python3.11" ] && py=$bin/python3.11
	probed "$py" -m test -v "$1"
}

summary() {
	echo "$(grep -cE '\.\.\. ok$|^ok$' "$1") ok, $(grep -oE '^(FAILED|OK)( \(.*\))?$|SKIP|run=[0-9]+|Ran [0-9]+ tests?' "$1" | sort | uniq -c | tr -s ' \n' ' ')"
}
