/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/shared.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct shared_list {
	struct shared_list *next; /* added before it */
	struct rule_command *command;
	uint32_t number;
	uint64_t serial; /* how many were added before, and one more */
	struct rule_use use;
};

struct rule_shared {
	struct shared_list *lists;
	uint64_t last_serial;
};

struct rule_shared *rule_shared_create(void)
{
	return calloc(1, sizeof(struct rule_shared));
}

static void free_list(struct shared_list *list)
{
	rule_command_destroy(list->command);
	free(list);
}

void rule_shared_destroy(struct rule_shared *shared)
{
	if (shared == NULL)
		return;
	while (shared->lists != NULL) {
		struct shared_list *list = shared->lists;

		shared->lists = list->next;
		free_list(list);
	}
	free(shared);
}

/* The link that leads to a list, or to NULL. */
static struct shared_list **link_of(struct rule_shared *shared, uint16_t port, uint64_t number)
{
	struct shared_list **link = &shared->lists;

	while (*link != NULL && ((*link)->command->port != port || (*link)->number != number))
		link = &(*link)->next;
	return link;
}

const struct rte_flow_action *rule_shared_find(
	const struct rule_shared *shared, uint16_t port, uint64_t number, struct rule_use **use)
{
	struct shared_list *list = shared == NULL ? NULL : shared->lists;

	while (list != NULL && (list->command->port != port || list->number != number))
		list = list->next;
	if (list == NULL)
		return NULL;
	*use = &list->use;
	return list->command->actions[0];
}

static uint64_t next_number(const struct rule_shared *shared, uint16_t port)
{
	uint64_t number = 0;

	for (const struct shared_list *list = shared->lists; list != NULL; list = list->next)
		if (list->command->port == port && list->number >= number)
			number = (uint64_t)list->number + 1;
	return number;
}

int rule_shared_add(struct rule_shared *shared, struct rule_command *command, uint32_t *number,
	struct error *error)
{
	const struct rule_argument *given = rule_command_argument(command, RULE_ARG_ACTION_ID, 0);
	const uint64_t wanted = given != NULL ? given->number : next_number(shared, command->port);
	struct shared_list *list;

	if (wanted > UINT32_MAX)
		return error_set(
			error, -EINVAL, "action_id: %" PRIu64 ": a number has 32 bits", wanted);
	if (*link_of(shared, command->port, wanted) != NULL)
		return error_set(error, -EEXIST,
			"indirect action %" PRIu64 " of port %u is there already", wanted,
			command->port);
	list = calloc(1, sizeof(*list));
	if (list == NULL)
		return error_set(error, -ENOMEM, "no memory for the action");
	*list = (struct shared_list){
		.next = shared->lists,
		.command = command,
		.number = (uint32_t)wanted,
		.serial = ++shared->last_serial,
	};
	shared->lists = list;
	*number = list->number;
	return 0;
}

bool rule_shared_has(const struct rule_shared *shared, const struct rule_command *command)
{
	char *wanted = rule_command_text(command), *text = NULL;
	bool has = false;

	for (const struct shared_list *list = shared->lists; !has && list != NULL && wanted != NULL;
		list = list->next) {
		text = rule_command_text(list->command);
		has = text != NULL && strcmp(text, wanted) == 0;
		free(text);
	}
	free(wanted);
	return has;
}

int rule_shared_remove(
	struct rule_shared *shared, uint16_t port, uint64_t number, struct error *error)
{
	struct shared_list **link = link_of(shared, port, number), *list = *link;

	if (list == NULL)
		return error_set(error, -ENOENT,
			"there is no indirect action %" PRIu64 " of port %u", number, port);
	if (list->use.rules != 0)
		return error_set(error, -EBUSY,
			"indirect action %u of port %u is used by %u rule%s", list->number, port,
			list->use.rules, list->use.rules == 1 ? "" : "s");
	*link = list->next;
	free_list(list);
	return 0;
}

uint64_t rule_shared_mark(const struct rule_shared *shared)
{
	return shared->last_serial;
}

void rule_shared_undo(struct rule_shared *shared, uint64_t mark)
{
	struct shared_list **link = &shared->lists;

	while (*link != NULL && (*link)->serial > mark) {
		struct shared_list *list = *link;

		if (list->use.rules != 0) {
			link = &list->next;
			continue;
		}
		*link = list->next;
		free_list(list);
	}
}
