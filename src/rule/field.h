/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* How the rows of the table are written (items.c, actions.c, forms.c). `s` is a struct, `m` its member. */

#include "rule/grammar.h"

#define SIZE_OF(s, m) sizeof(((s *)0)->m)
#define COUNT_OF(array) ((uint8_t)(sizeof(array) / sizeof((array)[0])))
/* Where bit-fields begin that follow a member: at its end, whatever the alignment of their type. */
#define BITS_AFTER(s, m) (offsetof(s, m) + SIZE_OF(s, m))

#define FIELD(a_name, a_kind, s, m, a_what)                                             \
	.name = (a_name), .what = (a_what), .kind = (a_kind), .offset = offsetof(s, m), \
	.width = SIZE_OF(s, m)

/* A number in the host's order. */
#define HOST(a_name, s, m, a_what) {FIELD(a_name, RULE_NUMBER, s, m, a_what)}
/* A number in the place of a pointer, whose upper half stays zero. */
#define IN_POINTER_OF(a_name, s, m, a_what)                                                \
	.name = (a_name), .what = (a_what), .kind = RULE_NUMBER, .offset = offsetof(s, m), \
	.width = sizeof(uint32_t)
#define IN_POINTER(a_name, s, m, a_what) {IN_POINTER_OF(a_name, s, m, a_what)}
/* A number in the network's order, and some of its bits. */
#define NET(a_name, s, m, a_what) {FIELD(a_name, RULE_NUMBER, s, m, a_what), .big_endian = true}
#define NET_HEX(a_name, s, m, a_what) \
	{FIELD(a_name, RULE_NUMBER, s, m, a_what), .big_endian = true, .flags = RULE_IN_HEX}
#define NET_BITS(a_name, s, m, a_shift, a_bits, a_what)                                    \
	{FIELD(a_name, RULE_NUMBER, s, m, a_what), .big_endian = true, .shift = (a_shift), \
		.bits = (a_bits)}
/* Bits of the host's word at an offset, where C's bit-fields leave no name. */
#define BITS(a_name, a_kind, a_offset, a_width, a_shift, a_bits, a_what) \
	{.name = (a_name),                                               \
		.what = (a_what),                                        \
		.kind = (a_kind),                                        \
		.offset = (a_offset),                                    \
		.width = (a_width),                                      \
		.shift = (a_shift),                                      \
		.bits = (a_bits)}
#define MAC(a_name, s, m, a_what) {FIELD(a_name, RULE_MAC, s, m, a_what)}
#define IPV4(a_name, s, m, a_what) {FIELD(a_name, RULE_IPV4, s, m, a_what), .big_endian = true}
#define IPV6(a_name, s, m, a_what) {FIELD(a_name, RULE_IPV6, s, m, a_what)}
#define SET_NAME(a_name, s, m, a_what) \
	{FIELD(a_name, RULE_NAME, s, m, a_what), .flags = RULE_IS_ONLY}
#define WORD(a_name, s, m, a_words, a_what) \
	{FIELD(a_name, RULE_WORD, s, m, a_what), .words = (a_words)}

/* Fields of what is refused lie in memory of their own, 16 bytes each. */
#define LATER(n, a_name, a_kind, a_what)              \
	{.name = (a_name),                            \
		.what = (a_what),                     \
		.kind = (a_kind),                     \
		.offset = 16 * (n),                   \
		.width = (a_kind) == RULE_MAC	 ? 6  \
			 : (a_kind) == RULE_IPV6 ? 16 \
						 : 8}
#define LATER_WORD(n, a_name, a_words, a_what) \
	{.name = (a_name),                     \
		.what = (a_what),              \
		.kind = RULE_WORD,             \
		.offset = 16 * (n),            \
		.width = 8,                    \
		.words = (a_words)}
