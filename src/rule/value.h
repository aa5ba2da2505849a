/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Values: from text, into and out of the bytes of a field, and back to text. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "rule/grammar.h"

#define RULE_VALUE_BYTES 512
/* Room for the text of any value that rule_value_print() writes. */
#define RULE_VALUE_TEXT (2 * RULE_VALUE_BYTES + 1)

struct rule_value {
	uint64_t number;
	unsigned
		n_bytes; /* of MAC and IPv6 addresses, RULE_NAME, RULE_INLINE, RULE_HEX and RULE_STRING */
	uint8_t bytes[RULE_VALUE_BYTES];
	const char *refused; /* of a word that no rule can have */
};

/*
 * Reads the text of one value. As a mask, a number may have more ones above than its field has bits.
 * Returns 0, or -EINVAL with what is needed instead.
 */
int rule_value_read(struct rule_value *value, const struct rule_field *field, bool mask,
	const char *text, struct error *error);

/* Is this a name that RULE_NAME takes? 0 or -EINVAL with a line. */
int rule_name_check(const char *text, struct error *error);

/* What a value of the field looks like, as in "an IPv4 address". */
const char *rule_value_what(const struct rule_field *field);

/* Bits of a number's field. */
unsigned rule_field_bits(const struct rule_field *field);
/* Does a pointer stand in the struct instead of the value? */
bool rule_field_points(const struct rule_field *field);
/* Is the field a number, and not an array of bytes? */
bool rule_field_is_number(const struct rule_field *field);

/* Into and out of a struct; not for fields that point. */
void rule_field_store(const struct rule_field *field, void *object, const struct rule_value *value);
void rule_field_load(const struct rule_field *field, const void *object, struct rule_value *value);
/* All ones. */
void rule_field_fill(const struct rule_field *field, void *object);
bool rule_field_is_full(const struct rule_field *field, const void *object);
bool rule_field_is_zero(const struct rule_field *field, const void *object);

/* Behind a pointer: how many bytes, -1 where the struct does not say. */
int rule_field_length(const struct rule_field *field, const void *object);
void rule_field_set_length(const struct rule_field *field, void *object, uint64_t length);
const void *rule_field_pointer(const struct rule_field *field, const void *object);
void rule_field_set_pointer(const struct rule_field *field, void *object, const void *pointer);

/* Writes the text that rule_value_read() reads as the same value, as a mask in hexadecimal. */
void rule_value_print(char text[RULE_VALUE_TEXT], const struct rule_field *field, bool mask,
	const struct rule_value *value);
