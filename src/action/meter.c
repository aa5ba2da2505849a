/* SPDX-License-Identifier: BSD-3-Clause */
#include "action/meter.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_cycles.h>

/* Buckets fill in steps that are at least so long: the rounding of a step is less than 0.05 % of it. */
#define STEP_NS 1000
/*
 * A silence longer than this counts as this long: librte_meter multiplies the steps by units, and the product must fit
 * 63 bits. It is six days.
 */
#define SILENCE_MAX_NS (UINT64_C(1) << 49)

static const char *const rate_names[][2] = {
	[ACTION_METER_SRTCM] = {"cir", "cir"},
	[ACTION_METER_TRTCM] = {"cir", "pir"},
	[ACTION_METER_TRTCM_EXCESS] = {"cir", "eir"},
};
static const char *const burst_names[][2] = {
	[ACTION_METER_SRTCM] = {"cbs", "ebs"},
	[ACTION_METER_TRTCM] = {"cbs", "pbs"},
	[ACTION_METER_TRTCM_EXCESS] = {"cbs", "ebs"},
};

/* Steps of a bucket: every `period` ns it gets `units`. */
static void set_steps(uint64_t rate, uint64_t *period, uint64_t *units)
{
	*period = STEP_NS;
	*units = 0;
	if (rate == 0)
		return;
	*units = (rate * STEP_NS + NS_PER_S - 1) / NS_PER_S;
	*period = (*units * NS_PER_S + rate / 2) / rate;
}

static int check_limits(const struct action_meter_limits *limits, struct error *error)
{
	const char *const *rate = rate_names[limits->kind], *const *burst =
								    burst_names[limits->kind];
	const bool excess = limits->kind == ACTION_METER_TRTCM_EXCESS;

	for (unsigned i = 0; i < 2; i++) {
		if (limits->rate[i] > ACTION_METER_MAX_RATE)
			return error_set(error, -EINVAL,
				"%s %" PRIu64 ": at most %" PRIu64 " a second", rate[i],
				limits->rate[i], ACTION_METER_MAX_RATE);
		if (limits->burst[i] > ACTION_METER_MAX_BURST)
			return error_set(error, -EINVAL, "%s %" PRIu64 ": at most %" PRIu64,
				burst[i], limits->burst[i], ACTION_METER_MAX_BURST);
		if (excess && limits->rate[i] != 0 && limits->burst[i] == 0)
			return error_set(
				error, -EINVAL, "%s 0: no packet would ever fit it", burst[i]);
	}
	if (excess)
		return 0;
	if (limits->rate[0] == 0)
		return error_set(error, -EINVAL, "cir 0: it has to be 1 or more");
	if (limits->kind == ACTION_METER_SRTCM && limits->burst[0] == 0 && limits->burst[1] == 0)
		return error_set(
			error, -EINVAL, "cbs and ebs are 0: no packet would ever fit them");
	if (limits->kind == ACTION_METER_TRTCM && (limits->burst[0] == 0 || limits->burst[1] == 0))
		return error_set(error, -EINVAL, "%s 0: no packet would ever fit it",
			limits->burst[0] == 0 ? "cbs" : "pbs");
	if (limits->kind == ACTION_METER_TRTCM && limits->rate[1] < limits->rate[0])
		return error_set(error, -EINVAL, "pir %" PRIu64 ": it is less than cir %" PRIu64,
			limits->rate[1], limits->rate[0]);
	return 0;
}

int action_meter_profile_init(struct action_meter_profile *profile,
	const struct action_meter_limits *limits, struct error *error)
{
	int ret = check_limits(limits, error);

	if (ret < 0)
		return ret;
	memset(profile, 0, sizeof(*profile));
	profile->kind = limits->kind;
	profile->packets = limits->packets;
	switch (limits->kind) {
	case ACTION_METER_SRTCM:
		profile->srtcm.cbs = limits->burst[0];
		profile->srtcm.ebs = limits->burst[1];
		set_steps(limits->rate[0], &profile->srtcm.cir_period,
			&profile->srtcm.cir_bytes_per_period);
		break;
	case ACTION_METER_TRTCM:
		profile->trtcm.cbs = limits->burst[0];
		profile->trtcm.pbs = limits->burst[1];
		set_steps(limits->rate[0], &profile->trtcm.cir_period,
			&profile->trtcm.cir_bytes_per_period);
		set_steps(limits->rate[1], &profile->trtcm.pir_period,
			&profile->trtcm.pir_bytes_per_period);
		break;
	case ACTION_METER_TRTCM_EXCESS:
		profile->excess.cbs = limits->burst[0];
		profile->excess.ebs = limits->burst[1];
		set_steps(limits->rate[0], &profile->excess.cir_period,
			&profile->excess.cir_bytes_per_period);
		set_steps(limits->rate[1], &profile->excess.eir_period,
			&profile->excess.eir_bytes_per_period);
		break;
	}
	return 0;
}

/* Full buckets, at the meter's time. */
static void fill(struct action_meter *meter)
{
	const struct action_meter_profile *profile = &meter->profile;

	switch (profile->kind) {
	case ACTION_METER_SRTCM:
		meter->srtcm = (struct rte_meter_srtcm){
			.time = meter->now_ns, .tc = profile->srtcm.cbs, .te = profile->srtcm.ebs};
		break;
	case ACTION_METER_TRTCM:
		meter->trtcm = (struct rte_meter_trtcm){.time_tc = meter->now_ns,
			.time_tp = meter->now_ns,
			.tc = profile->trtcm.cbs,
			.tp = profile->trtcm.pbs};
		break;
	case ACTION_METER_TRTCM_EXCESS:
		meter->excess = (struct rte_meter_trtcm_rfc4115){.time_tc = meter->now_ns,
			.time_te = meter->now_ns,
			.tc = profile->excess.cbs,
			.te = profile->excess.ebs};
		break;
	}
}

void action_meter_init(struct action_meter *meter, const struct action_meter_profile *profile,
	uint8_t drops, bool enabled)
{
	memset(meter, 0, sizeof(*meter));
	rte_spinlock_init(&meter->lock);
	meter->profile = *profile;
	meter->drops = drops;
	meter->enabled = enabled;
	fill(meter);
}

void action_meter_change(struct action_meter *meter, const struct action_meter_profile *profile)
{
	rte_spinlock_lock(&meter->lock);
	meter->profile = *profile;
	fill(meter);
	rte_spinlock_unlock(&meter->lock);
}

void action_meter_enable(struct action_meter *meter, bool enabled)
{
	rte_spinlock_lock(&meter->lock);
	meter->enabled = enabled;
	rte_spinlock_unlock(&meter->lock);
}

void action_meter_restart(struct action_meter *meter)
{
	rte_spinlock_lock(&meter->lock);
	meter->now_ns = 0;
	fill(meter);
	rte_spinlock_unlock(&meter->lock);
}

static void skip_silence(uint64_t *time, uint64_t now_ns)
{
	if (now_ns - *time > SILENCE_MAX_NS)
		*time = now_ns - SILENCE_MAX_NS;
}

static enum rte_color color_of(struct action_meter *meter, uint32_t units)
{
	struct action_meter_profile *profile = &meter->profile;
	const uint64_t now_ns = meter->now_ns;

	switch (profile->kind) {
	case ACTION_METER_SRTCM:
		skip_silence(&meter->srtcm.time, now_ns);
		return rte_meter_srtcm_color_blind_check(
			&meter->srtcm, &profile->srtcm, now_ns, units);
	case ACTION_METER_TRTCM:
		skip_silence(&meter->trtcm.time_tc, now_ns);
		skip_silence(&meter->trtcm.time_tp, now_ns);
		return rte_meter_trtcm_color_blind_check(
			&meter->trtcm, &profile->trtcm, now_ns, units);
	case ACTION_METER_TRTCM_EXCESS:
		skip_silence(&meter->excess.time_tc, now_ns);
		skip_silence(&meter->excess.time_te, now_ns);
		return rte_meter_trtcm_rfc4115_color_blind_check(
			&meter->excess, &profile->excess, now_ns, units);
	}
	return RTE_COLOR_GREEN;
}

struct action_meter_answer action_meter_color(
	struct action_meter *meter, uint64_t now_ns, uint32_t bytes)
{
	struct action_meter_answer answer = {.color = RTE_COLOR_GREEN};

	rte_spinlock_lock(&meter->lock);
	if (now_ns > meter->now_ns)
		meter->now_ns = now_ns;
	if (meter->enabled) {
		answer.color = color_of(meter, meter->profile.packets ? 1 : bytes);
		answer.drops = meter->drops >> answer.color & 1;
	}
	rte_spinlock_unlock(&meter->lock);
	return answer;
}
