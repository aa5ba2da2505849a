/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* `millrace config check`: is a configuration file right, and what does it come to? argv[0] is "check". */
int config_check_main(int argc, char **argv);
