/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/copy.h"

#include <rte_common.h>

/*
 * The one symbol that is exported, by the library and by programs that have the driver in them: the
 * loader then binds all copies to the first one's.
 */
extern unsigned net_flowsim_copies;
__attribute__((visibility("default"))) unsigned net_flowsim_copies;

static bool first;

/* Before any other constructor of this copy. */
RTE_INIT_PRIO(copy_count, LOG)
{
	first = net_flowsim_copies++ == 0;
}

bool sim_copy_is_first(void)
{
	return first;
}
