/* SPDX-License-Identifier: MIT */
/* screen.h - a full-screen terminal: lines and keys.  The only file that uses ncurses. */
#ifndef CMD_SCREEN_H
#define CMD_SCREEN_H

#include <stdbool.h>

enum screen_key { /* others are the characters themselves */
		  SCREEN_NONE = -1,
		  SCREEN_UP = 1000,
		  SCREEN_DOWN,
		  SCREEN_PAGE_UP,
		  SCREEN_PAGE_DOWN,
		  SCREEN_HOME,
		  SCREEN_END,
		  SCREEN_ENTER,
		  SCREEN_BACK, /* escape, backspace, left */
		  SCREEN_RESIZE
};
enum screen_style { SCREEN_PLAIN, SCREEN_TITLE, SCREEN_SELECTED, SCREEN_FAINT };

/* false: kron was built without ncurses, or this is not a terminal that it knows. */
bool screen_open(void);
void screen_close(void);
int screen_height(void);
/* The whole line; what is too long is cut, and what text has left of `from` too. */
void screen_line(int row, const char *text, int from, enum screen_style style);
void screen_show(void);
/* Waits up to ms, -1: for ever. */
int screen_key(int ms);

#endif
