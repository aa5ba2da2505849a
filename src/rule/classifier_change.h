/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* How a checked rule gets into the memory that readers read, and out of it. The writer's alone. */

#include "rule/classifier_parts.h"

void change_begin_space(struct space *space);

/* 0, -ENOSPC or -EAGAIN. */
int change_add(
	struct classifier *classifier, const struct classifier_rule *rule, uint32_t *position);
bool change_is_there(const struct classifier *classifier, uint32_t position);
void change_remove(struct classifier *classifier, uint32_t position);
void change_get(
	const struct classifier *classifier, uint32_t position, struct classifier_rule *rule);

/* The rule without the bits of its value that do not count. */
struct classifier_rule change_normal(const struct classifier_rule *rule);
/* The number of the space that a rule belongs to. */
uint32_t change_space_of(const struct classifier_rule *rule);

static inline enum space_kind space_kind_of(uint32_t space)
{
	return (enum space_kind)(space % N_SPACES);
}
