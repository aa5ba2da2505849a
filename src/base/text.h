/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Numbers and names as people read them. Each function fills the caller's buffer, ends it with a
 * zero and returns it, so that it can stand among the arguments of a printf.
 */

#include <stddef.h>
#include <stdint.h>

/* Room for any number that these functions write. */
#define TEXT_NUMBER_MAX 32

/* 82582 -> "82,582". */
const char *text_grouped(char buffer[TEXT_NUMBER_MAX], uint64_t number);

/* 5512362 -> "5.5 MB", 512 -> "512 B": decimal units, two significant digits or more. */
const char *text_bytes(char buffer[TEXT_NUMBER_MAX], uint64_t bytes);

/* 1376366.7 -> "1.4 M", 912 -> "912": for rates; the unit follows at once ("1.4 Mpps"). */
const char *text_rate(char buffer[TEXT_NUMBER_MAX], double rate);

/*
 * A name from outside (a file's, a word of the command line) for use in one line of text: control
 * characters become '?', what does not fit is cut.
 */
const char *text_printable(char *buffer, size_t size, const char *name);

/*
 * The same of a word that is wrong, which may be so by a character that no screen shows: a no-break space from a web page
 * becomes "<U+00A0>".
 */
const char *text_visible(char *buffer, size_t size, const char *word);

/* Length of the byte order mark that a text in UTF-8 begins with; 0: it has none. */
size_t text_byte_order_mark(const char *text, size_t size);
