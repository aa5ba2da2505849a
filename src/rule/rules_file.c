/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of rules as text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "rule/default_mask.h"
#include "rule/rules_private.h"

#define NAME_MAX_SHOWN 256
/* What went wrong, at most: the name and the place come before it. */
#define WHAT_MAX 200
#define WARNING_MAX 500

struct loading {
	struct rules *rules;
	const char *name;
	struct rules_list *list;
	bool again; /* what rules share may be there already, if it is the same */
	rules_tell_fn tell;
	void *context;
	struct error *error;
};

static int refuse_rules(const struct loading *loading, int code, const char *what)
{
	char name[NAME_MAX_SHOWN];

	return error_set(loading->error, code, "%s: %.*s",
		text_printable(name, sizeof(name), loading->name), WHAT_MAX, what);
}

static int refuse_rule(
	const struct loading *loading, unsigned line, unsigned column, const char *what)
{
	char name[NAME_MAX_SHOWN];

	return error_set(loading->error, -EBADMSG, "%s:%u:%u: %.*s",
		text_printable(name, sizeof(name), loading->name), line, column, WHAT_MAX, what);
}

static int make_room_for_rule(struct loading *loading)
{
	struct rules_list *list = loading->list;

	if (list->n < list->room)
		return 0;
	const uint32_t room = list->room == 0 ? 1024 : list->room * 2;
	struct rules_made **made = realloc(list->made, room * sizeof(struct rules_made *));

	if (made == NULL)
		return refuse_rules(loading, -ENOMEM, "no memory to read the rules");
	list->made = made;
	uint32_t *lines = realloc(list->lines, room * sizeof(*lines));

	if (lines == NULL)
		return refuse_rules(loading, -ENOMEM, "no memory to read the rules");
	list->lines = lines;
	list->room = room;
	return 0;
}

/* What is wrong, in a line of its own after the place of the rule. */
struct warned {
	const struct loading *loading;
	unsigned line;
};

static void tell_warned(void *context, const char *what)
{
	const struct warned *warned = context;
	char name[NAME_MAX_SHOWN], line[NAME_MAX_SHOWN + WARNING_MAX + 32];

	snprintf(line, sizeof(line), "%s:%u: warning: %.*s",
		text_printable(name, sizeof(name), warned->loading->name), warned->line,
		WARNING_MAX, what);
	warned->loading->tell(warned->loading->context, line);
}

static void warn_of_rule(const struct loading *loading, const struct rule_command *command,
	const struct rules_made *made, unsigned number)
{
	struct warned warned = {.loading = loading, .line = number};
	struct error error;

	if (loading->tell == NULL)
		return;
	rule_default_mask_warn(command, tell_warned, &warned);
	if (classifier_contradiction(loading->rules->full, &made->rule, &error) < 0)
		tell_warned(&warned, error.text);
}

/* When all rules are in force; of groups once for each. */
static void warn_of_groups(const struct loading *loading)
{
	uint64_t warned_of = 0;
	struct error error;

	for (uint32_t i = 0; loading->tell != NULL && i < loading->list->n; i++) {
		const struct rules_made *made = loading->list->made[i];
		struct warned warned = {.loading = loading, .line = loading->list->lines[i]};

		if (rules_no_beginning(loading->rules, &made->rule, &error))
			tell_warned(&warned, error.text);
		if (warned_of >> made->rule.group & 1 ||
			!rules_no_jump(loading->rules, made->rule.group, &error))
			continue;
		warned_of |= UINT64_C(1) << made->rule.group;
		tell_warned(&warned, error.text);
	}
}

static_assert(RULE_MAX_GROUPS <= 64, "a bit for each");

static int make_shared(const struct loading *loading, const struct rule_command *command,
	const char *text, size_t length, unsigned number)
{
	struct rule_refusal refusal = {.part = RULE_PART_COMMAND};
	char told[WHAT_MAX];
	const struct rules_line line = {
		.command = command,
		.text = text,
		.length = length,
		.told = told,
		.size = sizeof(told),
		.again = loading->again,
	};
	struct error said;
	int ret = rule_port_check(&loading->rules->ground, command->port, &said);

	if (ret == 0)
		ret = rules_share(loading->rules, &line, &refusal, &said);
	else
		refusal.part = RULE_PART_PORT;
	if (ret == -ENOMEM)
		return refuse_rules(loading, ret, said.text);
	return ret < 0 ? refuse_rule(loading, number, rule_refusal_column(text, length, &refusal),
				 said.text)
		       : 0;
}

static int take_command(struct loading *loading, const struct rule_command *command,
	const char *line, size_t length, unsigned number)
{
	struct rule_refusal refusal = {.part = RULE_PART_COMMAND};
	struct rules_list *list = loading->list;
	struct rules_made *made = NULL;
	struct error said;
	int ret;

	if (command->verb == RULE_SET)
		return rule_setup_learn(loading->rules->setup, command) < 0
			       ? refuse_rules(loading, -ENOMEM, "no memory to read the rules")
			       : 0;
	if (rules_makes_shared(command))
		return make_shared(loading, command, line, length, number);
	if (command->verb != RULE_CREATE)
		return refuse_rule(loading, number, 1,
			"a list of rules has only lines of flow create, of set, and those that "
			"make meters and indirect actions");
	ret = rules_make(loading->rules, command, line, length, &made, &refusal, &said);
	if (ret == -ENOMEM || ret == -EAGAIN || ret == -ENOSPC)
		return refuse_rules(loading, ret, said.text);
	if (ret < 0)
		return refuse_rule(
			loading, number, rule_refusal_column(line, length, &refusal), said.text);
	warn_of_rule(loading, command, made, number);
	list->made[list->n] = made;
	list->lines[list->n++] = number;
	return 0;
}

/* A rule in force that the line would make again needs not be read. */
static bool take_again(
	const struct loading *loading, const char *line, size_t length, unsigned number)
{
	struct rules_list *list = loading->list;
	struct rules_made *made;
	const char *text;

	if (list->index.chains == NULL)
		return false;
	length = rules_find_text(line, length, &text);
	made = rules_index_find(loading->rules, &list->index, text, length);
	if (made == NULL)
		return false;
	made->refs++;
	list->made[list->n] = made;
	list->lines[list->n++] = number;
	return true;
}

static int take_rule_line(struct loading *loading, const char *line, size_t length, unsigned number)
{
	struct rule_command *command;
	struct error said;
	unsigned column = 1;
	int ret = make_room_for_rule(loading);

	if (ret < 0 || take_again(loading, line, length, number))
		return ret;
	ret = rule_command_parse(&command, loading->rules->setup, line, length, &column, &said);
	if (ret == -ENODATA)
		return 0;
	if (ret == -ENOMEM)
		return refuse_rules(loading, ret, "no memory to read the rules");
	if (ret < 0)
		return refuse_rule(loading, number, column, said.text);
	ret = take_command(loading, command, line, length, number);
	rule_command_destroy(command);
	return ret;
}

static int read_rule_lines(struct loading *loading, const char *text, size_t size)
{
	const char *end = text + size;
	unsigned number = 0;
	int ret = 0;

	while (ret == 0 && text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		if (newline == NULL)
			newline = end;
		ret = take_rule_line(loading, text, (size_t)(newline - text), ++number);
		text = newline + 1;
	}
	return ret;
}

/* All of them or none; the room was looked for. */
static int apply_rules(struct loading *loading)
{
	const struct rules_list *list = loading->list;
	uint32_t *slots = malloc(((size_t)list->n + 1) * sizeof(*slots));
	struct error said;
	uint32_t n = 0;
	int ret;

	if (slots == NULL)
		return refuse_rules(loading, -ENOMEM, "no memory to read the rules");
	ret = rules_room(loading->rules, list->n, &said);
	if (ret < 0)
		refuse_rules(loading, ret, said.text);
	while (ret == 0 && n < list->n) {
		ret = rules_add(loading->rules, list->made[n], &slots[n], &said);
		if (ret < 0)
			refuse_rules(loading, ret, said.text);
		else
			n++;
	}
	for (uint32_t i = 0; i < n; i++)
		loading->rules->own[slots[i]].line = list->lines[i];
	if (ret < 0)
		while (n > 0)
			rules_drop(loading->rules, slots[--n]);
	rules_touch(loading->rules);
	free(slots);
	return ret;
}

/* Gives back the rules of the list, and all that was made for it alone. */
static void empty_list(struct rules *rules, struct rules_list *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		rules_release(rules, list->made[i]);
	list->n = 0;
}

static void undo_shared(struct rules *rules, const struct rules_list *list)
{
	rule_meters_undo(rules->meters, list->meters);
	rule_shared_undo(rules->shared, list->shared);
}

int rules_load_bytes(struct rules *rules, const char *name, const char *bytes, size_t size,
	uint32_t *added, rules_tell_fn tell, void *context, struct error *error)
{
	struct rules_list list = {
		.meters = rule_meters_mark(rules->meters),
		.shared = rule_shared_mark(rules->shared),
	};
	struct loading loading = {.rules = rules,
		.name = name,
		.list = &list,
		.tell = tell,
		.context = context,
		.error = error};
	int ret;

	*added = 0;
	if (size > RULES_FILE_MAX_BYTES)
		return refuse_rules(&loading, -EFBIG, "a list of rules has at most 1 GiB");
	const size_t mark = text_byte_order_mark(bytes, size);

	ret = read_rule_lines(&loading, bytes + mark, size - mark);
	if (ret == 0)
		ret = apply_rules(&loading);
	if (ret == 0) {
		*added = list.n;
		warn_of_groups(&loading);
	}
	empty_list(rules, &list);
	if (ret < 0)
		undo_shared(rules, &list);
	free(list.made);
	free(list.lines);
	return ret;
}

/* A whole file. The caller frees the text, in any case. */
static int read_whole(const char *path, char **text, size_t *size, struct error *error)
{
	struct loading loading = {.name = path, .error = error};
	const int ret = file_read_all(path, RULES_FILE_MAX_BYTES, text, size);

	if (ret == -EFBIG)
		return refuse_rules(&loading, ret, "a list of rules has at most 1 GiB");
	if (ret == -ENOMEM)
		return refuse_rules(&loading, ret, "no memory to read the rules");
	return ret < 0 ? refuse_rules(&loading, ret, strerror(-ret)) : 0;
}

/* Lists that replace others. */

int rules_list_create(struct rules *rules, struct rules_list **out)
{
	struct rules_list *list = calloc(1, sizeof(*list));

	if (list == NULL)
		return -ENOMEM;
	list->setup = rule_setup_create();
	if (list->setup == NULL || rules_index_create(rules, &list->index) < 0) {
		rule_setup_destroy(list->setup);
		free(list);
		return -ENOMEM;
	}
	list->meters = rule_meters_mark(rules->meters);
	list->shared = rule_shared_mark(rules->shared);
	*out = list;
	return 0;
}

void rules_list_destroy(struct rules *rules, struct rules_list *list)
{
	if (list == NULL)
		return;
	empty_list(rules, list);
	undo_shared(rules, list);
	rules_list_free(rules, list);
}

int rules_list_read(struct rules *rules, struct rules_list *list, const char *name,
	const char *bytes, size_t size, rules_tell_fn tell, void *context, struct error *error)
{
	struct rule_setup *setup = rules->setup;
	struct loading loading = {.rules = rules,
		.name = name,
		.list = list,
		.again = true,
		.tell = tell,
		.context = context,
		.error = error};

	if (size > RULES_FILE_MAX_BYTES)
		return refuse_rules(&loading, -EFBIG, "a list of rules has at most 1 GiB");
	/* lines of `set` hold for their own list alone */
	rules->setup = list->setup;
	const size_t mark = text_byte_order_mark(bytes, size);
	int ret = read_rule_lines(&loading, bytes + mark, size - mark);

	rules->setup = setup;
	return ret;
}

int rules_list_read_file(struct rules *rules, struct rules_list *list, const char *path,
	rules_tell_fn tell, void *context, struct error *error)
{
	char *text = NULL;
	size_t size = 0;
	int ret = read_whole(path, &text, &size, error);

	if (ret == 0)
		ret = rules_list_read(rules, list, path, text, size, tell, context, error);
	free(text);
	return ret;
}

int rules_load_file(struct rules *rules, const char *path, uint32_t *added, rules_tell_fn tell,
	void *context, struct error *error)
{
	char *text = NULL;
	size_t size = 0;
	int ret = read_whole(path, &text, &size, error);

	*added = 0;
	if (ret == 0)
		ret = rules_load_bytes(rules, path, text, size, added, tell, context, error);
	free(text);
	return ret;
}
