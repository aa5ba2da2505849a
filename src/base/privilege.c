/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/privilege.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

void privilege_drop_admin(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	struct __user_cap_data_struct *of = &data[CAP_TO_INDEX(CAP_SYS_ADMIN)];
	const __u32 others = ~CAP_TO_MASK(CAP_SYS_ADMIN);

	/* while it is still allowed: what the thread starts cannot get it back either */
	(void)prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0);
	if (syscall(SYS_capget, &header, data) != 0)
		return;
	of->effective &= others;
	of->permitted &= others;
	of->inheritable &= others;
	(void)syscall(SYS_capset, &header, data);
}
