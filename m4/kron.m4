# SPDX-License-Identifier: MIT

# KRON_HEADERS(NAME, HEADERS): have_NAME becomes no unless each can be included after those
# before it
AC_DEFUN([KRON_HEADERS], [
	AC_CHECK_HEADERS([$2], [], [have_$1=no],
		[m4_foreach_w([kron_header], [$2], [@%:@if defined __has_include
@%:@if __has_include(<kron_header>)
@%:@include <kron_header>
@%:@endif
@%:@endif
])])
])

# KRON_PKG(NAME, PC-MODULE, HEADERS): sets have_NAME, NAME_CFLAGS and NAME_LIBS by pkg-config
AC_DEFUN([KRON_PKG], [
	have_$1=yes
	PKG_CHECK_MODULES([$1], [$2], [], [have_$1=no])
	kron_saved_CPPFLAGS=$CPPFLAGS
	CPPFLAGS="$CPPFLAGS $$1_CFLAGS"
	AS_IF([test "x$have_$1" = xyes], [KRON_HEADERS([$1], [$3])])
	CPPFLAGS=$kron_saved_CPPFLAGS
])

# KRON_LIB(NAME, LIBRARY, FUNCTION, HEADERS): the same for a library without a .pc file
AC_DEFUN([KRON_LIB], [
	have_$1=yes
	KRON_HEADERS([$1], [$4])
	AC_CHECK_LIB([$2], [$3], [$1_LIBS=-l$2], [have_$1=no])
	AC_SUBST([$1_LIBS])
])

# KRON_NEED(NAME, WHAT, DEBIAN-PACKAGE): stop when it is missing
AC_DEFUN([KRON_NEED], [
	AS_IF([test "x$have_$1" != xyes],
		[AC_MSG_ERROR([$2 is missing; on Debian: apt-get install $3])])
])

# KRON_STATIC(NAME, LIBRARIES, HEADER, STATEMENT)
# Take the library's archive where there is one and kron can be linked at a fixed address: sets
# NAME_LIBS and KRON_LDFLAGS.  Otherwise the shared library stays.
AC_DEFUN([KRON_STATIC], [
AC_MSG_CHECKING([whether $2 can be linked statically])
kron_saved_LIBS=$LIBS
kron_saved_LDFLAGS=$LDFLAGS
LIBS="-Wl,-Bstatic $2 -Wl,-Bdynamic -lm"
LDFLAGS="$LDFLAGS -no-pie"
AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <$3>]], [[$4]])],
	[AC_MSG_RESULT([yes])
	$1_LIBS=$LIBS
	KRON_LDFLAGS=-no-pie],
	[AC_MSG_RESULT([no])])
LIBS=$kron_saved_LIBS
LDFLAGS=$kron_saved_LDFLAGS
AC_SUBST([$1_LIBS])
AC_SUBST([KRON_LDFLAGS])
])

# KRON_WISH(NAME, WHAT, DEBIAN-PACKAGE, CONSEQUENCE): without it something is left out; else
# HAVE_NAME is defined
AC_DEFUN([KRON_WISH], [
	AS_IF([test "x$have_$1" = xyes],
		[AC_DEFINE([HAVE_$1], [1], [Define to 1 if $2 can be linked with.])],
		[$1_LIBS=
		AC_MSG_WARN([$2 is missing, so $4; on Debian: apt-get install $3])])
])
