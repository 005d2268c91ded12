/* SPDX-License-Identifier: MIT */
/* screen.c - see screen.h. */
#define _XOPEN_SOURCE_EXTENDED 1
#include "cmd/screen.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

#ifdef HAVE_NCURSES
#include <curses.h>

static SCREEN *screen;

bool screen_open(void)
{
	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return false;
	setlocale(LC_CTYPE, "");
	setenv("ESCDELAY", "25", 0);
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return false;
	set_term(screen);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	curs_set(0);
	return true;
}

void screen_close(void)
{
	endwin();
	delscreen(screen);
}

int screen_height(void)
{
	return LINES;
}

/* Characters, not bytes: a cut in the middle of one would show as garbage. */
static const char *skip(const char *text, int n)
{
	for (; n > 0 && *text; n--)
		for (text++; (*text & 0xc0) == 0x80; text++)
			;
	return text;
}

void screen_line(int row, const char *text, int from, enum screen_style style)
{
	static const attr_t attributes[] = {A_NORMAL, A_BOLD | A_UNDERLINE, A_REVERSE, A_DIM};
	const char *start = skip(text, from);

	attrset(attributes[style]);
	move(row, 0);
	clrtoeol();
	addnstr(start, (int)(skip(start, COLS) - start));
	if (style == SCREEN_SELECTED || style == SCREEN_TITLE)
		for (int y, x = getcurx(stdscr); x < COLS && getcury(stdscr) == row; x++) {
			y = getcury(stdscr);
			addch(' ');
			if (getcury(stdscr) != y)
				break;
		}
	attrset(A_NORMAL);
}

void screen_show(void)
{
	refresh();
}

int screen_key(int ms)
{
	int key;

	timeout(ms);
	key = getch();
	switch (key) {
	case ERR:
		return SCREEN_NONE;
	case KEY_UP:
		return SCREEN_UP;
	case KEY_DOWN:
		return SCREEN_DOWN;
	case KEY_PPAGE:
		return SCREEN_PAGE_UP;
	case KEY_NPAGE:
	case ' ':
		return SCREEN_PAGE_DOWN;
	case KEY_HOME:
		return SCREEN_HOME;
	case KEY_END:
		return SCREEN_END;
	case KEY_ENTER:
	case '\r':
	case '\n':
		return SCREEN_ENTER;
	case KEY_BACKSPACE:
	case KEY_LEFT:
	case 27:
	case 127:
	case 8:
		return SCREEN_BACK;
	case KEY_RESIZE:
		return SCREEN_RESIZE;
	default:
		return key;
	}
}

#else

bool screen_open(void)
{
	return false;
}

void screen_close(void)
{
}

int screen_height(void)
{
	return 0;
}

void screen_line(int row, const char *text, int from, enum screen_style style)
{
	(void)row;
	(void)text;
	(void)from;
	(void)style;
}

void screen_show(void)
{
}

int screen_key(int ms)
{
	(void)ms;
	return 'q';
}

#endif
