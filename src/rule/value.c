/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"

#define WORD_MAX 64
#define MAX_WORDS 64

unsigned rule_field_bits(const struct rule_field *field)
{
	return field->bits ? field->bits : 8u * field->width;
}

bool rule_field_points(const struct rule_field *field)
{
	return field->kind == RULE_HEX || field->kind == RULE_STRING;
}

bool rule_field_is_number(const struct rule_field *field)
{
	return field->kind != RULE_MAC && field->kind != RULE_IPV6 && field->kind != RULE_INLINE &&
	       field->kind != RULE_NAME && !rule_field_points(field);
}

/* A mask may have any bits of the field, whatever its values are limited to. */
static uint64_t largest(const struct rule_field *field, bool mask)
{
	unsigned bits = rule_field_bits(field);

	if (field->max && !rule_field_points(field) && !mask)
		return field->max;
	return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

const char *rule_value_what(const struct rule_field *field)
{
	switch (field->kind) {
	case RULE_NUMBER:
	case RULE_SIGNED:
	case RULE_TYPES:
	case RULE_QUEUES:
		return "a number";
	case RULE_BOOLEAN:
		return "yes or no";
	case RULE_MAC:
		return "a MAC address, as in 02:00:00:00:00:01,";
	case RULE_IPV4:
		return "an IPv4 address";
	case RULE_IPV6:
		return "an IPv6 address";
	case RULE_ADDRESS:
		return "an IP address";
	case RULE_NAME:
		return "a name of letters, digits and . _ -";
	case RULE_INLINE:
	case RULE_HEX:
		return "an even number of hexadecimal digits";
	case RULE_PATH:
	case RULE_STRING:
	case RULE_WORD:
	case RULE_WORDS:
	case RULE_VARIANT:
	case RULE_FLAG:
	case RULE_EMPTY:
		break;
	}
	return "a word";
}

/* `text` is one of the words, or an error says which there are. */
static int read_word(struct rule_value *value, const struct rule_word *words, const char *text,
	struct error *error)
{
	const struct rule_word *word = rule_word_find(words, text);
	const char *known[MAX_WORDS];
	char printable[WORD_MAX], list[200] = "";
	unsigned n = 0;

	if (word) {
		value->number = word->value;
		value->refused = word->refused;
		return 0;
	}
	for (; words->name && n < MAX_WORDS; words++)
		if (!words->refused)
			known[n++] = words->name;
	const char *near = suggest(text, known, n);

	for (unsigned i = 0; i < n && n <= 10; i++) {
		size_t at = strlen(list);

		snprintf(list + at, sizeof(list) - at, "%s%s",
			i == 0	    ? ""
			: i + 1 < n ? ", "
				    : " or ",
			known[i]);
	}
	return error_set(error, -EINVAL, "%s: %s is needed here%s%s%s",
		text_visible(printable, sizeof(printable), text), n <= 10 ? list : "a known word",
		near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int needed(const struct rule_field *field, const char *text, struct error *error)
{
	char printable[WORD_MAX];

	return error_set(error, -EINVAL, "%s: %s is needed%s%s",
		text_visible(printable, sizeof(printable), text), rule_value_what(field),
		field->name && field->name[0] ? " for " : "", field->name ? field->name : "");
}

/* As strtoull() with base 0 reads it, which takes octal numbers too; but no sign and no blank. */
static bool read_unsigned(const char *text, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*number = strtoull(text, &end, 0);
	return errno == 0 && *end == '\0';
}

static int read_number(struct rule_value *value, const struct rule_field *field, bool mask,
	const char *text, struct error *error)
{
	uint64_t most = largest(field, mask);
	char printable[WORD_MAX], number[TEXT_NUMBER_MAX];

	if (!read_unsigned(text, &value->number))
		return needed(field, text, error);
	/* all ones, of a wider field than this */
	if (mask && value->number > most && (value->number & (value->number + 1)) == 0)
		value->number = most;
	if (value->number <= most)
		return 0;
	return error_set(error, -EINVAL, "%s: a number up to %s is needed for %s",
		text_visible(printable, sizeof(printable), text), text_grouped(number, most),
		field->name);
}

/* Words with commas between them, whose values are bits. */
static int read_words(struct rule_value *value, const struct rule_field *field, const char *text,
	struct error *error)
{
	uint64_t bits = 0;
	char word[WORD_MAX];

	for (const char *at = text;; at++) {
		const size_t length = strcspn(at, ",");

		snprintf(word, sizeof(word), "%.*s", (int)length, at);
		int ret = read_word(value, field->words, word, error);

		if (ret < 0)
			return ret;
		bits |= value->number;
		at += length;
		if (*at == '\0')
			break;
	}
	value->number = bits;
	return 0;
}

static int read_signed(struct rule_value *value, const struct rule_field *field, const char *text,
	struct error *error)
{
	bool minus = text[0] == '-';
	uint64_t number;

	if (!read_unsigned(text + minus, &number) || number > (uint64_t)INT32_MAX + minus) {
		/* a mask of all ones */
		if (minus || !read_unsigned(text, &number) || number > UINT32_MAX)
			return needed(field, text, error);
	}
	value->number = (uint32_t)(minus ? 0 - number : number);
	return 0;
}

/* Six groups of one or two digits, or three of up to four, by colons. */
static bool read_mac(const char *text, uint8_t bytes[6])
{
	unsigned long group[6];
	unsigned n = 0;

	for (;; n++) {
		char *end;

		if (n == 6 || !isxdigit((unsigned char)text[0]))
			return false;
		group[n] = strtoul(text, &end, 16);
		if (end - text > 4)
			return false;
		text = end + 1;
		if (*end == '\0')
			break;
		if (*end != ':')
			return false;
	}
	n++;
	for (unsigned i = 0; i < n; i++) {
		if (n == 6 && group[i] <= UINT8_MAX) {
			bytes[i] = (uint8_t)group[i];
		} else if (n == 3) {
			bytes[2 * i] = (uint8_t)(group[i] >> 8);
			bytes[2 * i + 1] = (uint8_t)group[i];
		} else {
			return false;
		}
	}
	return n == 6 || n == 3;
}

static unsigned digit(char c)
{
	return (unsigned)(isdigit((unsigned char)c) ? c - '0' : tolower(c) - 'a' + 10);
}

static int read_hex(struct rule_value *value, const struct rule_field *field, const char *text,
	struct error *error)
{
	const char *from = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
	size_t digits = strlen(from), most = field->kind == RULE_INLINE ? field->width : field->max;
	char printable[WORD_MAX];

	if (digits == 0 || digits % 2 != 0 || strspn(from, "0123456789abcdefABCDEF") != digits)
		return needed(field, text, error);
	if (most == 0 || most > RULE_VALUE_BYTES)
		most = RULE_VALUE_BYTES;
	if (digits / 2 > most)
		return error_set(error, -EINVAL, "%s: at most %zu bytes are possible for %s",
			text_visible(printable, sizeof(printable), text), most, field->name);
	value->n_bytes = (unsigned)(digits / 2);
	for (unsigned i = 0; i < value->n_bytes; i++)
		value->bytes[i] = (uint8_t)(digit(from[2 * i]) << 4 | digit(from[2 * i + 1]));
	return 0;
}

static int read_string(struct rule_value *value, const struct rule_field *field, const char *text,
	struct error *error)
{
	size_t length = strlen(text);
	char printable[WORD_MAX];

	if (length > field->max)
		return error_set(error, -EINVAL, "%s: at most %u bytes are possible for %s",
			text_visible(printable, sizeof(printable), text), field->max, field->name);
	value->n_bytes = (unsigned)length;
	memcpy(value->bytes, text, length);
	return 0;
}

int rule_name_check(const char *text, struct error *error)
{
	char printable[WORD_MAX];
	const size_t length = strlen(text);

	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)text[i]) && strchr("._-", text[i]) == NULL)
			return error_set(error, -EINVAL,
				"%s: a name of letters, digits and . _ - is needed",
				text_visible(printable, sizeof(printable), text));
	if (length == 0 || length >= RULE_NAME_MAX)
		return error_set(error, -EINVAL, "%s: a name has 1 to %d characters",
			text_visible(printable, sizeof(printable), text), RULE_NAME_MAX - 1);
	return 0;
}

static int read_name(struct rule_value *value, const char *text, struct error *error)
{
	int ret = rule_name_check(text, error);

	if (ret < 0)
		return ret;
	value->n_bytes = (unsigned)strlen(text);
	memcpy(value->bytes, text, value->n_bytes);
	return 0;
}

static int read_ipv4(struct rule_value *value, const struct rule_field *field, const char *text,
	struct error *error)
{
	struct in_addr address;

	if (inet_pton(AF_INET, text, &address) == 1)
		value->number = ntohl(address.s_addr);
	else if (!read_unsigned(text, &value->number) || value->number > UINT32_MAX)
		return needed(field, text, error);
	return 0;
}

int rule_value_read(struct rule_value *value, const struct rule_field *field, bool mask,
	const char *text, struct error *error)
{
	uint8_t address[16];

	value->number = 0;
	value->n_bytes = 0;
	value->refused = NULL;
	switch (field->kind) {
	case RULE_NUMBER:
	case RULE_TYPES:
	case RULE_QUEUES:
		return read_number(value, field, mask, text, error);
	case RULE_SIGNED:
		return read_signed(value, field, text, error);
	case RULE_BOOLEAN:
		return read_word(value, rule_booleans, text, error);
	case RULE_WORD:
	case RULE_VARIANT:
		if (mask && read_unsigned(text, &value->number))
			return read_number(value, field, mask, text, error);
		return read_word(value, field->words, text, error);
	case RULE_WORDS:
		return read_words(value, field, text, error);
	case RULE_MAC:
		value->n_bytes = 6;
		return read_mac(text, value->bytes) ? 0 : needed(field, text, error);
	case RULE_IPV4:
		return read_ipv4(value, field, text, error);
	case RULE_IPV6:
		value->n_bytes = 16;
		return inet_pton(AF_INET6, text, value->bytes) == 1 ? 0
								    : needed(field, text, error);
	case RULE_ADDRESS:
		return inet_pton(AF_INET, text, address) == 1 ||
				       inet_pton(AF_INET6, text, address) == 1
			       ? 0
			       : needed(field, text, error);
	case RULE_NAME:
		return read_name(value, text, error);
	case RULE_INLINE:
	case RULE_HEX:
		return read_hex(value, field, text, error);
	case RULE_STRING:
		return read_string(value, field, text, error);
	case RULE_FLAG:
		value->number = 1;
		break;
	case RULE_PATH:
	case RULE_EMPTY:
		break;
	}
	return 0;
}

static uint64_t load_word(const struct rule_field *field, const void *object)
{
	const uint8_t *bytes = (const uint8_t *)object + field->offset;
	uint64_t word = 0;

	for (unsigned i = 0; i < field->width; i++)
		word |= (uint64_t)bytes[i] << 8 * (field->big_endian ? field->width - 1 - i : i);
	return word;
}

static void store_word(const struct rule_field *field, void *object, uint64_t word)
{
	uint8_t *bytes = (uint8_t *)object + field->offset;

	for (unsigned i = 0; i < field->width; i++)
		bytes[i] = (uint8_t)(word >> 8 * (field->big_endian ? field->width - 1 - i : i));
}

static uint64_t bits_mask(const struct rule_field *field)
{
	unsigned bits = rule_field_bits(field);

	return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

void rule_field_store(const struct rule_field *field, void *object, const struct rule_value *value)
{
	uint8_t *bytes = (uint8_t *)object + field->offset;

	if (rule_field_is_number(field)) {
		uint64_t ones = bits_mask(field);
		uint64_t word = load_word(field, object) & ~(ones << field->shift);

		store_word(field, object, word | (value->number & ones) << field->shift);
	} else {
		memset(bytes, 0, field->width);
		memcpy(bytes, value->bytes, value->n_bytes);
	}
	if (field->also_offset) {
		uint32_t also;

		bytes = (uint8_t *)object + field->also_offset - 1;
		memcpy(&also, bytes, sizeof(also));
		also |= UINT32_C(1) << field->also_shift;
		memcpy(bytes, &also, sizeof(also));
	}
}

void rule_field_load(const struct rule_field *field, const void *object, struct rule_value *value)
{
	value->number = 0;
	value->n_bytes = 0;
	if (rule_field_is_number(field)) {
		value->number = load_word(field, object) >> field->shift & bits_mask(field);
	} else {
		value->n_bytes = field->width;
		memcpy(value->bytes, (const uint8_t *)object + field->offset, field->width);
	}
}

void rule_field_fill(const struct rule_field *field, void *object)
{
	if (rule_field_is_number(field))
		store_word(
			field, object, load_word(field, object) | bits_mask(field) << field->shift);
	else
		memset((uint8_t *)object + field->offset, 0xff, field->width);
}

/* Each byte of an array is `byte`. */
static bool all_bytes(const struct rule_field *field, const void *object, uint8_t byte)
{
	const uint8_t *bytes = (const uint8_t *)object + field->offset;

	for (unsigned i = 0; i < field->width; i++)
		if (bytes[i] != byte)
			return false;
	return true;
}

bool rule_field_is_full(const struct rule_field *field, const void *object)
{
	uint64_t ones = bits_mask(field);

	if (rule_field_is_number(field))
		return (load_word(field, object) >> field->shift & ones) == ones;
	return all_bytes(field, object, 0xff);
}

bool rule_field_is_zero(const struct rule_field *field, const void *object)
{
	if (rule_field_is_number(field))
		return (load_word(field, object) >> field->shift & bits_mask(field)) == 0;
	return all_bytes(field, object, 0);
}

int rule_field_length(const struct rule_field *field, const void *object)
{
	if (!field->length_offset)
		return -1;
	struct rule_field length = {
		.offset = field->length_offset - 1, .width = field->length_width};

	return (int)load_word(&length, object);
}

void rule_field_set_length(const struct rule_field *field, void *object, uint64_t length)
{
	struct rule_field word = {.offset = field->length_offset - 1, .width = field->length_width};

	if (field->length_offset)
		store_word(&word, object, length);
}

const void *rule_field_pointer(const struct rule_field *field, const void *object)
{
	const void *pointer;

	memcpy(&pointer, (const uint8_t *)object + field->offset, sizeof(pointer));
	return pointer;
}

void rule_field_set_pointer(const struct rule_field *field, void *object, const void *pointer)
{
	memcpy((uint8_t *)object + field->offset, &pointer, sizeof(pointer));
}

static void write_bytes(char *text, const struct rule_value *value)
{
	for (unsigned i = 0; i < value->n_bytes; i++)
		sprintf(text + 2 * i, "%02x", value->bytes[i]);
}

/* Words by their name; where there is none, a number, which only masks can be. */
static void write_word(
	char text[RULE_VALUE_TEXT], const struct rule_word *words, bool mask, uint64_t number)
{
	const char *name = mask ? NULL : rule_word_name(words, number);

	if (name)
		snprintf(text, RULE_VALUE_TEXT, "%s", name);
	else
		snprintf(text, RULE_VALUE_TEXT, "0x%" PRIx64, number);
}

/* Some words, each a bit. */
static void write_words(char text[RULE_VALUE_TEXT], const struct rule_word *words, uint64_t number)
{
	size_t at = 0;

	for (; words->name != NULL; words++)
		if ((number & words->value) != 0)
			at += (size_t)snprintf(text + at, RULE_VALUE_TEXT - at, "%s%s",
				at == 0 ? "" : ",", words->name);
}

void rule_value_print(char text[RULE_VALUE_TEXT], const struct rule_field *field, bool mask,
	const struct rule_value *value)
{
	struct in_addr address = {htonl((uint32_t)value->number)};

	text[0] = '\0';
	switch (field->kind) {
	case RULE_NUMBER:
	case RULE_TYPES:
	case RULE_QUEUES:
		if (mask || (field->flags & RULE_IN_HEX))
			snprintf(text, RULE_VALUE_TEXT, "0x%0*" PRIx64,
				field->flags & RULE_IN_HEX ? 2 * field->width : 1, value->number);
		else
			snprintf(text, RULE_VALUE_TEXT, "%" PRIu64, value->number);
		break;
	case RULE_SIGNED:
		snprintf(text, RULE_VALUE_TEXT, "%" PRId32, (int32_t)value->number);
		break;
	case RULE_BOOLEAN:
		write_word(text, rule_booleans, false, value->number);
		break;
	case RULE_WORD:
	case RULE_VARIANT:
		write_word(text, field->words, mask, value->number);
		break;
	case RULE_WORDS:
		write_words(text, field->words, value->number);
		break;
	case RULE_MAC:
		snprintf(text, RULE_VALUE_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", value->bytes[0],
			value->bytes[1], value->bytes[2], value->bytes[3], value->bytes[4],
			value->bytes[5]);
		break;
	case RULE_IPV4:
		inet_ntop(AF_INET, &address, text, RULE_VALUE_TEXT);
		break;
	case RULE_IPV6:
		inet_ntop(AF_INET6, value->bytes, text, RULE_VALUE_TEXT);
		break;
	case RULE_NAME:
		snprintf(text, RULE_VALUE_TEXT, "%.*s", (int)value->n_bytes,
			(const char *)value->bytes);
		break;
	case RULE_INLINE:
	case RULE_HEX:
	case RULE_STRING:
		write_bytes(text, value);
		break;
	case RULE_ADDRESS:
	case RULE_PATH:
	case RULE_FLAG:
	case RULE_EMPTY:
		break;
	}
}
