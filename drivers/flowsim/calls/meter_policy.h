/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <rte_mtr_driver.h>

/* Calls of rte_mtr_ops: profiles and policies of meters. */
int sim_mtr_profile_add(struct rte_eth_dev *dev, uint32_t id, struct rte_mtr_meter_profile *profile,
	struct rte_mtr_error *error);
int sim_mtr_profile_delete(struct rte_eth_dev *dev, uint32_t id, struct rte_mtr_error *error);
int sim_mtr_policy_validate(struct rte_eth_dev *dev, struct rte_mtr_meter_policy_params *policy,
	struct rte_mtr_error *error);
int sim_mtr_policy_add(struct rte_eth_dev *dev, uint32_t id,
	struct rte_mtr_meter_policy_params *policy, struct rte_mtr_error *error);
int sim_mtr_policy_delete(struct rte_eth_dev *dev, uint32_t id, struct rte_mtr_error *error);
