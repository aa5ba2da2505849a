/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a port is not asked for rules: by what everybody may know of its installer. */
#include "offload/installer.h"

uint8_t installer_reason(struct installer *installer, enum provider_kind kind)
{
	const struct provider_abilities *abilities;

	if (!installer_ready(installer))
		return OFFLOAD_TRIAL;
	abilities = installer_abilities(installer);
	if (kind != PROVIDER_N_KINDS && abilities->trying[kind])
		return OFFLOAD_TRIAL;
	if (abilities->unable[0] != '\0')
		return OFFLOAD_NO_NIC;
	if (kind == PROVIDER_N_KINDS || !abilities->kind[kind])
		return OFFLOAD_KIND;
	if (health_kind_out(installer_health(installer), kind) != 0)
		return OFFLOAD_MARKLESS;
	return health_state(installer_health(installer)) != HEALTH_CLOSED ? OFFLOAD_BREAKER
									  : OFFLOAD_QUIET;
}
