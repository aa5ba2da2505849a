/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/port/fault_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/suggest.h"
#include "base/text.h"

enum word {
	WORD_EVERY,
	WORD_AFTER,
	WORD_AFTER_MS,
	WORD_TIMES,
	WORD_MARK,
	WORD_VALUE,
	WORD_ERRNO,
	WORD_OP,
	WORD_MS,
	WORD_BITS,
	WORD_RULES,
	N_WORDS,
};

static const char *const words[N_WORDS] = {
	[WORD_EVERY] = "every",
	[WORD_AFTER] = "after",
	[WORD_AFTER_MS] = "after_ms",
	[WORD_TIMES] = "times",
	[WORD_MARK] = "mark",
	[WORD_VALUE] = "value",
	[WORD_ERRNO] = "errno",
	[WORD_OP] = "op",
	[WORD_MS] = "ms",
	[WORD_BITS] = "bits",
	[WORD_RULES] = "rules",
};

static const struct {
	uint64_t least, most;
} limits[N_WORDS] = {
	[WORD_EVERY] = {1, UINT64_MAX},
	[WORD_AFTER] = {0, UINT64_MAX},
	[WORD_AFTER_MS] = {0, UINT32_MAX},
	[WORD_TIMES] = {1, UINT64_MAX},
	[WORD_MARK] = {0, UINT32_MAX},
	[WORD_VALUE] = {1, UINT32_MAX},
	[WORD_ERRNO] = {1, 133},
	[WORD_OP] = {0, 0}, /* a name */
	[WORD_MS] = {1, 3600000},
	[WORD_BITS] = {1, 63},
	[WORD_RULES] = {1, UINT32_MAX},
};

static const char *const names[SIM_N_FAULTS] = {
	[SIM_FAULT_STOP_MARK] = "stop_mark",
	[SIM_FAULT_WRONG_MARK] = "wrong_mark",
	[SIM_FAULT_DEAD] = "dead",
	[SIM_FAULT_LOSE] = "lose",
	[SIM_FAULT_FAIL] = "fail",
	[SIM_FAULT_STALL_DELETE] = "stall_delete",
	[SIM_FAULT_LATE] = "late",
	[SIM_FAULT_DROP_COMPLETION] = "drop_completion",
	[SIM_FAULT_COUNT_NOTHING] = "count_nothing",
	[SIM_FAULT_FORGET] = "forget",
	[SIM_FAULT_RESET] = "reset",
	[SIM_FAULT_EVICT] = "evict",
	[SIM_FAULT_WRAP] = "wrap",
	[SIM_FAULT_GHOST] = "ghost",
};

#define CHANCES (1u << WORD_EVERY | 1u << WORD_AFTER | 1u << WORD_TIMES)

static const struct {
	unsigned words; /* that it takes: bits by enum word */
	uint64_t value; /* when none is told */
} kinds[SIM_N_FAULTS] = {
	[SIM_FAULT_STOP_MARK] = {CHANCES | 1u << WORD_AFTER_MS | 1u << WORD_MARK, 0},
	[SIM_FAULT_WRONG_MARK] = {CHANCES | 1u << WORD_AFTER_MS | 1u << WORD_MARK |
					  1u << WORD_VALUE,
		1},
	[SIM_FAULT_DEAD] = {1u << WORD_AFTER, 0},
	[SIM_FAULT_LOSE] = {CHANCES, 0},
	[SIM_FAULT_FAIL] = {CHANCES | 1u << WORD_ERRNO | 1u << WORD_OP, EIO},
	[SIM_FAULT_STALL_DELETE] = {CHANCES | 1u << WORD_MS, 100},
	[SIM_FAULT_LATE] = {CHANCES | 1u << WORD_MS, 100},
	[SIM_FAULT_DROP_COMPLETION] = {CHANCES, 0},
	[SIM_FAULT_COUNT_NOTHING] = {CHANCES, 0},
	[SIM_FAULT_FORGET] = {0, 0},
	[SIM_FAULT_RESET] = {0, 0},
	[SIM_FAULT_EVICT] = {CHANCES, 0},
	[SIM_FAULT_WRAP] = {1u << WORD_BITS, 32},
	[SIM_FAULT_GHOST] = {1u << WORD_RULES, 1},
};

static const char *const ops[] = {
	[SIM_OP_CREATE] = "create",
	[SIM_OP_DESTROY] = "destroy",
	[SIM_OP_QUERY] = "query",
	[SIM_OP_PUSH] = "push",
	[SIM_OP_ANY] = "any",
};

const char *sim_fault_name(unsigned number)
{
	return number < SIM_N_FAULTS ? names[number] : NULL;
}

static int find(const char *word, const char *const *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(word, list[i]) == 0)
			return (int)i;
	}
	return -1;
}

/* A line about a word that is not known, with the known one that is nearest. */
static int unknown(struct error *error, const char *what, const char *word, const char *const *list,
	unsigned n)
{
	char text[64];
	const char *near = suggest(word, list, n);

	text_printable(text, sizeof(text), word);
	if (near == NULL)
		return error_set(error, -EINVAL, "there is no %s '%s'", what, text);
	return error_set(
		error, -EINVAL, "there is no %s '%s': did you mean '%s'?", what, text, near);
}

static bool read_number(const char *text, uint64_t *number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return *end == '\0' && errno == 0;
}

/* "5" or "EIO". */
static bool read_errno(const char *text, uint64_t *number)
{
	if (read_number(text, number))
		return true;
	for (int code = 1; code <= (int)limits[WORD_ERRNO].most; code++) {
		const char *name = strerrorname_np(code);

		if (name != NULL && strcmp(text, name) == 0) {
			*number = (uint64_t)code;
			return true;
		}
	}
	return false;
}

static int read_value(enum word word, const char *text, uint64_t *number, struct error *error)
{
	char shown[64];
	bool read;

	if (word == WORD_OP) {
		int op = find(text, ops, RTE_DIM(ops));

		if (op < 0)
			return unknown(error, "operation", text, ops, RTE_DIM(ops));
		*number = (unsigned)op;
		return 0;
	}
	read = word == WORD_ERRNO ? read_errno(text, number) : read_number(text, number);
	if (!read)
		return error_set(error, -EINVAL, "%s= takes %s, not '%s'", words[word],
			word == WORD_ERRNO ? "an errno" : "a number",
			text_printable(shown, sizeof(shown), text));
	if (*number < limits[word].least || *number > limits[word].most)
		return error_set(error, -EINVAL, "%s=%llu is not from %llu to %llu", words[word],
			(unsigned long long)*number, (unsigned long long)limits[word].least,
			(unsigned long long)limits[word].most);
	return 0;
}

static void set_word(struct sim_fault_state *state, enum word word, uint64_t number)
{
	switch (word) {
	case WORD_EVERY:
		state->every = number;
		break;
	case WORD_AFTER:
		state->after = number;
		break;
	case WORD_AFTER_MS:
		state->after_ms = number;
		break;
	case WORD_TIMES:
		state->times = number;
		break;
	case WORD_MARK:
		state->has_mark = true;
		state->mark = (uint32_t)number;
		break;
	case WORD_OP:
		state->op = (unsigned)number;
		break;
	case WORD_VALUE:
	case WORD_ERRNO:
	case WORD_MS:
	case WORD_BITS:
	case WORD_RULES:
		state->value = number;
		break;
	case N_WORDS:
		break;
	}
}

/* A word of a fault and its value, NULL: there is none. */
static int read_word(struct sim_fault_state *state, unsigned fault, const char *text,
	const char *value, struct error *error)
{
	uint64_t number = 0;
	int word = find(text, words, N_WORDS);
	int status;

	if (word < 0)
		return unknown(error, "word", text, words, N_WORDS);
	if ((kinds[fault].words & 1u << word) == 0)
		return error_set(error, -EINVAL, "%s takes no %s=", names[fault], text);
	if (value == NULL)
		return error_set(error, -EINVAL, "%s of %s has no value", text, names[fault]);
	status = read_value((enum word)word, value, &number, error);
	if (status == 0)
		set_word(state, (enum word)word, number);
	return status;
}

/* "lose:every=10": what it was told, for listings, is kept as it came. */
static int read_fault(struct sim_fault_order *order, char *text, struct error *error)
{
	char *rest = strpbrk(text, ":,");
	struct sim_fault_state *state;
	int fault, status = 0;
	char *saved = NULL;

	if (rest != NULL)
		*rest++ = '\0';
	fault = find(text, names, SIM_N_FAULTS);
	if (fault < 0)
		return unknown(error, "fault", text, names, SIM_N_FAULTS);

	order->said[fault] = true;
	state = &order->to[fault];
	*state =
		(struct sim_fault_state){.on = true, .value = kinds[fault].value, .op = SIM_OP_ANY};
	if (rest == NULL)
		return 0;
	text_printable(state->told, sizeof(state->told), rest);
	if (strcmp(rest, "off") == 0) {
		state->on = false;
		return 0;
	}
	for (char *word = strtok_r(rest, ":,=", &saved); word != NULL && status == 0;
		word = strtok_r(NULL, ":,=", &saved))
		status = read_word(
			state, (unsigned)fault, word, strtok_r(NULL, ":,=", &saved), error);
	return status;
}

int sim_fault_read(struct sim_fault_order *order, const char *text, struct error *error)
{
	char *copy, *saved = NULL;
	unsigned n = 0;
	int status = 0;

	memset(order, 0, sizeof(*order));
	copy = strdup(text);
	if (copy == NULL)
		return error_set(error, -ENOMEM, "no memory to read '%.64s'", text);
	for (char *fault = strtok_r(copy, "/", &saved); fault != NULL && status == 0;
		fault = strtok_r(NULL, "/", &saved), n++)
		status = read_fault(order, fault, error);
	free(copy);
	if (status == 0 && n == 0)
		return error_set(error, -EINVAL, "no fault is named");
	return status;
}
