/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A port's link, and ethdev's calls of it. Called by one thread at a time, but for sim_link_look(): also when
 * a pump finds that the port behind has gone.
 */

#include <ethdev_driver.h>

int sim_link_update(struct rte_eth_dev *dev, int wait);
int sim_link_set_up(struct rte_eth_dev *dev);
int sim_link_set_down(struct rte_eth_dev *dev);
/* The port was started or is about to stop: the link follows. */
void sim_link_look(struct rte_eth_dev *dev);
