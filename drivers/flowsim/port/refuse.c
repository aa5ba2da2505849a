/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "drivers/flowsim/port/port.h"

/* What is said when the refusal has no words of its own: of the errnos that a flow call ends with. */
static const char *words_for(int code)
{
	switch (-code) {
	case EIO:
		return "the NIC does not answer";
	case ENOMEM:
		return "no memory";
	case ENOSPC:
		return "no room in the table";
	case ENOENT:
		return "no such rule or handle";
	case EBUSY:
		return "in use";
	case ENOTSUP:
		return "not supported";
	default:
		return "refused";
	}
}

int sim_refuse(const struct sim_port *port, struct rte_flow_error *error, int code,
	const struct sim_fault_at *fault)
{
	uint32_t quirks = port->args.profile.quirks;
	enum rte_flow_error_type type = RTE_FLOW_ERROR_TYPE_UNSPECIFIED;
	const char *message = words_for(code);
	const void *cause = NULL;

	rte_errno = -code;
	if (quirks & SIM_QUIRK_UNFILLED)
		return code;
	if (quirks & SIM_QUIRK_BLAME) {
		/* the last of several parsers that tried has the word */
		type = RTE_FLOW_ERROR_TYPE_ACTION;
		message = "Not supported action.";
	} else if (fault != NULL) {
		cause = fault->cause;
		if (fault->type != RTE_FLOW_ERROR_TYPE_NONE)
			type = fault->type;
		if (fault->message != NULL)
			message = fault->message;
	}
	rte_flow_error_set(error, -code, type, cause, message);
	return code;
}
