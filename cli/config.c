/* SPDX-License-Identifier: BSD-3-Clause */
/* config show: as a configuration file would have it. */
#include "cli/view.h"
#include "cli/yaml.h"

static void config_line(struct cli_show *show, const json_t *line)
{
	yaml_write(show->out, line);
}

const struct cli_view cli_config_show = {config_line, NULL};
