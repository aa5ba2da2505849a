/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Symmetric RSS, asked for and checked. For the files of port/. */

#include "port/port.h"

/* Asks for the symmetric key while the port is configured; what it made of it, once it is started. */
void port_rss_configure(
	const struct port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf);
uint64_t port_rss_accepted(const struct port *port, const struct rte_eth_dev_info *info);
