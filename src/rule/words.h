/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The lists of words that fields take. Each ends with a row without a name. */

#include "rule/grammar.h"

/* Why a row of the table is refused. */
#define RULE_CAME(release) "it came with DPDK " release
#define RULE_WENT(release) "DPDK " release " took it away"

extern const struct rule_word rule_colors[];
extern const struct rule_word rule_color_letters[];
extern const struct rule_word rule_ecpri_types[];
extern const struct rule_word rule_l2tpv2_types[];
extern const struct rule_word rule_quota_states[];
extern const struct rule_word rule_quota_modes[];
extern const struct rule_word rule_quota_ops[];
extern const struct rule_word rule_compare_ops[];
extern const struct rule_word rule_field_ids[];
extern const struct rule_word rule_modify_ops[];
extern const struct rule_word rule_hash_functions[];
extern const struct rule_word rule_ip_versions[];
extern const struct rule_word rule_query_modes[];
extern const struct rule_word rule_reject_types[];
extern const struct rule_word rule_ct_states[];
extern const struct rule_word rule_directions[];
extern const struct rule_word rule_times[];
extern const struct rule_word rule_replies[];
