/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/installer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/installer_parts.h"

static int make_desk(struct desk *desk)
{
	desk->answered =
		mailbox_create("answers", sizeof(struct installer_answer), INSTALLER_UNDER_WAY);
	for (unsigned i = 0; i < INSTALLER_N_OPS; i++) {
		desk->asked[i] = mailbox_create(
			"requests", sizeof(struct installer_request), INSTALLER_UNDER_WAY);
		if (!desk->asked[i])
			return -ENOMEM;
	}
	return desk->answered ? 0 : -ENOMEM;
}

static int make_room(struct installer *installer)
{
	const struct installer_config *config = &installer->config;
	uint32_t n_places = config->provider.n_places;
	uint32_t n = config->n_workers * INSTALLER_UNDER_WAY + INSTALLER_OWN;

	installer->awaited = calloc(n, sizeof(*installer->awaited));
	installer->places = calloc(n_places, sizeof(*installer->places));
	installer->changes =
		mailbox_create("changes", sizeof(struct offload_change), INSTALLER_CHANGES);
	if (!installer->awaited || !installer->places || !installer->changes)
		return -ENOMEM;
	for (unsigned i = 0; i < config->n_workers; i++) {
		if (make_desk(&installer->desk[i]) < 0)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < n_places; i++)
		installer->places[i].awaited = AWAIT_NONE;
	await_init(installer, n);
	return 0;
}

/* Signals are the main thread's: this one starts with all of them blocked. */
static int start_thread(struct installer *installer)
{
	pthread_attr_t attr;
	sigset_t all, before;
	char name[16];
	int ret = pthread_attr_init(&attr);

	if (ret != 0)
		return -ret;
	if (installer->config.cpus)
		ret = pthread_attr_setaffinity_np(
			&attr, sizeof(*installer->config.cpus), installer->config.cpus);
	if (ret == 0) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		ret = pthread_create(&installer->thread, &attr, installer_run, installer);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attr);
	if (ret != 0)
		return -ret;
	snprintf(name, sizeof(name), "installer-%u", installer->config.number);
	pthread_setname_np(installer->thread, name);
	installer->running = true;
	return 0;
}

int installer_create(
	struct installer **out, const struct installer_config *config, struct error *error)
{
	struct installer *installer;
	int ret = -ENOMEM;

	if (config->n_workers == 0 || config->n_workers > INSTALLER_MAX_WORKERS ||
		config->provider.n_places == 0 || config->provider.n_places > INT32_MAX)
		return error_set(error, -EINVAL,
			"an installer has 1 to %d workers, and a place at least",
			INSTALLER_MAX_WORKERS);
	installer = aligned_alloc(_Alignof(struct installer), sizeof(*installer));
	if (installer) {
		memset(installer, 0, sizeof(*installer));
		installer->config = *config;
		installer->most_rules = config->rules;
		installer->config.provider.stop = &installer->stopping;
		pthread_mutex_init(&installer->marks_lock, NULL);
		health_init(&installer->health, &config->health);
		share_init(&installer->share, config->room);
		ret = make_room(installer);
	}
	if (ret == 0 && config->static_rules != 0)
		ret = static_rules_create(
			&installer->static_rules, config->provider.port_id, config->static_rules);
	if (ret == 0)
		ret = start_thread(installer);
	if (ret < 0) {
		installer_destroy(installer);
		return error_set(error, ret, "the installer of port %u does not start: %s",
			config->number, strerror(-ret));
	}
	*out = installer;
	return 0;
}

void installer_set_rules(struct installer *installer, uint32_t rules)
{
	atomic_store_explicit(&installer->most_rules, rules, memory_order_relaxed);
}

void installer_stop(struct installer *installer)
{
	if (!installer->running)
		return;
	atomic_store_explicit(&installer->stopping, true, memory_order_release);
	pthread_join(installer->thread, NULL);
	installer->running = false;
}

void installer_destroy(struct installer *installer)
{
	if (!installer)
		return;
	installer_stop(installer);
	for (unsigned i = 0; i < installer->config.n_workers; i++) {
		for (unsigned j = 0; j < INSTALLER_N_OPS; j++)
			mailbox_destroy(installer->desk[i].asked[j]);
		mailbox_destroy(installer->desk[i].answered);
	}
	mailbox_destroy(installer->changes);
	static_rules_destroy(installer->static_rules);
	free(installer->awaited);
	free(installer->places);
	pthread_mutex_destroy(&installer->marks_lock);
	free(installer);
}

bool installer_ask(
	struct installer *installer, unsigned worker, const struct installer_request *request)
{
	struct desk *desk = &installer->desk[worker];

	if (desk->n_out >= INSTALLER_UNDER_WAY ||
		(request->op == INSTALLER_COUNT && desk->n_counts >= INSTALLER_COUNTS) ||
		!installer_ready(installer) ||
		atomic_load_explicit(&installer->stopping, memory_order_relaxed))
		return false;
	/* each mailbox has room for all that may be under way */
	mailbox_push(desk->asked[request->op], request, 1);
	desk->n_out++;
	desk->n_counts += request->op == INSTALLER_COUNT;
	return true;
}

/* What came too late for the thread, which has ended, its worker answers itself. */
static unsigned answer_the_rest(struct desk *desk, struct installer_answer *answers, unsigned max)
{
	struct installer_request request;
	unsigned n = 0;

	for (unsigned op = 0; op < INSTALLER_N_OPS; op++) {
		while (n < max && mailbox_pop(desk->asked[op], &request, 1) == 1)
			answers[n++] = (struct installer_answer){
				.place = request.place,
				/* the provider was closed: all rules are gone */
				.result = op == INSTALLER_REMOVE ? 0 : -EIO,
				.op = request.op,
				.from = request.from,
				.reason = OFFLOAD_STOPPING,
			};
	}
	return n;
}

unsigned installer_answers(struct installer *installer, unsigned worker,
	struct installer_answer *answers, unsigned max)
{
	struct desk *desk = &installer->desk[worker];
	/* read before the mailbox: when it has ended, all that it answered is there */
	bool done = atomic_load_explicit(&installer->done, memory_order_acquire);
	unsigned n = mailbox_pop(desk->answered, answers, max);

	if (done && n == 0 && desk->n_out > 0)
		n = answer_the_rest(desk, answers, max);
	desk->n_out -= n;
	for (unsigned i = 0; i < n; i++)
		desk->n_counts -= answers[i].op == INSTALLER_COUNT;
	return n;
}

uint32_t installer_count_us(const struct installer *installer)
{
	return 1 + atomic_load_explicit(&installer->count_16us, memory_order_relaxed) / 16;
}

bool installer_ready(const struct installer *installer)
{
	return atomic_load_explicit(&installer->ready, memory_order_acquire);
}

struct health *installer_health(struct installer *installer)
{
	return &installer->health;
}

struct share *installer_share(struct installer *installer)
{
	return &installer->share;
}

struct static_rules *installer_static_rules(const struct installer *installer)
{
	return installer->static_rules;
}

const struct refusals *installer_refusals(const struct installer *installer)
{
	return &installer->refusals;
}

const struct installer_counters *installer_counters(const struct installer *installer)
{
	return &installer->counters;
}

const struct installer_histograms *installer_histograms(const struct installer *installer)
{
	return &installer->histograms;
}

unsigned installer_changes(
	struct installer *installer, struct offload_change *changes, unsigned max)
{
	return mailbox_pop(installer->changes, changes, max);
}
