# SPDX-License-Identifier: MIT

# KRON_PROBE(NAME, HEADERS, LIBRARY, FUNCTION)
# Sets have_NAME, and NAME_LIBS for the Makefile.  By header and library, not by pkg-config:
# Zydis has no .pc file in Debian 12, nor has libiberty.
AC_DEFUN([KRON_PROBE], [
	have_$1=yes
	AC_CHECK_HEADERS([$2], [], [have_$1=no],
		[m4_foreach_w([kron_header], [$2], [@%:@if defined __has_include
@%:@if __has_include(<kron_header>)
@%:@include <kron_header>
@%:@endif
@%:@endif
])])
	AC_CHECK_LIB([$3], [$4], [$1_LIBS=-l$3], [have_$1=no])
	AC_SUBST([$1_LIBS])
])

# KRON_NEED(NAME, HEADERS, LIBRARY, FUNCTION, DEBIAN-PACKAGE): stop without it
AC_DEFUN([KRON_NEED], [
	KRON_PROBE([$1], [$2], [$3], [$4])
	AS_IF([test "x$have_$1" != xyes],
		[AC_MSG_ERROR([lib$3 is missing; on Debian: apt-get install $5])])
])

# KRON_NEED_OR_NOT(...): the same, but only tests need it
AC_DEFUN([KRON_NEED_OR_NOT], [
	KRON_PROBE([$1], [$2], [$3], [$4])
	AS_IF([test "x$have_$1" != xyes],
		[AC_MSG_WARN([lib$3 is missing, unit tests are left out; on Debian: apt-get install $5])])
])
