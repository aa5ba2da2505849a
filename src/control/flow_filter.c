/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/flow_filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "export/json.h"
#include "offload/state.h"

#define ADDRESS_MAX 64

unsigned flow_filter_address(uint8_t address[16], const char *text)
{
	memset(address, 0, 16);
	if (inet_pton(AF_INET, text, address) == 1)
		return 4;
	return inet_pton(AF_INET6, text, address) == 1 ? 6 : 0;
}

/* Digits and nothing else, at most `max`; -1 when it is not that. */
static int read_length(const char *text, int max)
{
	int number = 0;

	if (*text == '\0' || strlen(text) > 3)
		return -1;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		number = number * 10 + (*text - '0');
	}
	return number <= max ? number : -1;
}

/* An address, or a prefix: ADDRESS/LENGTH, whose other bits do not matter. */
static int take_address(
	struct flow_filter *filter, const char *ask, const char *text, struct error *error)
{
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	char address[ADDRESS_MAX] = "";

	if (n < sizeof(address))
		memcpy(address, text, n);
	filter->version = flow_filter_address(filter->address, address);
	if (filter->version == 0)
		return request_bad(error, ask, "address", text, "no IP address or prefix");
	int bits = filter->version == 4 ? 32 : 128;
	int length = slash ? read_length(slash + 1, bits) : bits;

	if (length < 0)
		return request_bad(error, ask, "address", text,
			bits == 32 ? "a prefix of IPv4 has a length from 0 to 32"
				   : "a prefix of IPv6 has a length from 0 to 128");
	for (int i = 0; i < length; i++)
		filter->mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
	return 0;
}

/* A phase stands for all its states. */
static int take_state(
	struct flow_filter *filter, const char *ask, const char *text, struct error *error)
{
	const char *names[(unsigned)FLOW_N_PHASES + FLOW_N_STATES];
	unsigned n = 0;

	filter->states = 0;
	for (unsigned i = 0; i < FLOW_N_PHASES; i++)
		names[n++] = flow_phase_name((enum flow_phase)i);
	for (unsigned i = FLOW_FREE + 1; i < FLOW_N_STATES; i++) {
		enum flow_state state = (enum flow_state)i;

		names[n++] = flow_state_name(state);
		if (strcmp(text, flow_state_name(state)) == 0 ||
			strcmp(text, flow_phase_name(flow_phase(state))) == 0)
			filter->states |= UINT32_C(1) << i;
	}
	if (filter->states == 0)
		return request_unknown(error, ask, "state", text, "no such state", names, n);
	return 0;
}

/* By the side that is further on, as the list shows it. */
static int take_offload(
	struct flow_filter *filter, const char *ask, const char *text, struct error *error)
{
	const char *names[OFFLOAD_N_STATES];
	unsigned n = 0;

	filter->places = 0;
	for (unsigned i = 0; i < OFFLOAD_N_STATES; i++) {
		const char *name = offload_state_name((enum offload_state)i);

		/* the two values of in_hw are neighbours */
		if (n == 0 || strcmp(names[n - 1], name) != 0)
			names[n++] = name;
		if (strcmp(text, name) == 0)
			filter->places |= UINT32_C(1) << i;
	}
	if (filter->places == 0)
		return request_unknown(error, ask, "offload", text, "no such state", names, n);
	return 0;
}

int flow_filter_check(const char *ask, const char *key, const struct request_value *value,
	unsigned n, struct error *error)
{
	if (!value->given || value->number < n)
		return 0;
	if (n == 1)
		return error_set(error, -EINVAL, "%s: %s %u: this engine has %s 0 only", ask, key,
			value->number, key);
	return error_set(error, -EINVAL, "%s: %s %u: this engine has 0 to %u", ask, key,
		value->number, n - 1);
}

static int number_of(const struct request_value *value)
{
	return value->given ? (int)value->number : FLOW_FILTER_ANY;
}

int flow_filter_init_fixed(struct flow_filter *filter, const char *ask,
	const struct request_value *values, const struct plane_config *config, struct error *error)
{
	const struct request_value *address = &values[FLOW_FILTER_ADDRESS];
	const struct request_value *wire = &values[FLOW_FILTER_WIRE];

	*filter = (struct flow_filter){
		.port = number_of(&values[FLOW_FILTER_PORT]),
		.proto = number_of(&values[FLOW_FILTER_PROTO]),
		.wire = number_of(wire),
		.worker = FLOW_FILTER_ANY,
		.zone = number_of(&values[FLOW_FILTER_ZONE]),
		.blocked = FLOW_FILTER_ANY,
		.states = UINT32_MAX,
		.places = UINT32_MAX,
	};
	if (flow_filter_check(ask, "wire", wire, config->topology.n_domains, error) < 0)
		return -EINVAL;
	return address->given ? take_address(filter, ask, address->text, error) : 0;
}

int flow_filter_init(struct flow_filter *filter, const char *ask,
	const struct request_value *values, const struct plane_config *config, struct error *error)
{
	const struct request_value *state = &values[FLOW_FILTER_STATE];
	const struct request_value *worker = &values[FLOW_FILTER_WORKER];
	const struct request_value *offload = &values[FLOW_FILTER_OFFLOAD];

	if (flow_filter_init_fixed(filter, ask, values, config, error) < 0 ||
		flow_filter_check(ask, "worker", worker, config->n_workers, error) < 0)
		return -EINVAL;
	filter->worker = number_of(worker);
	if (values[FLOW_FILTER_BLOCKED].given)
		filter->blocked = values[FLOW_FILTER_BLOCKED].flag;
	if (offload->given && take_offload(filter, ask, offload->text, error) < 0)
		return -EINVAL;
	return state->given ? take_state(filter, ask, state->text, error) : 0;
}

static bool holds(const struct flow_filter *filter, const uint8_t address[16])
{
	for (unsigned i = 0; i < 16; i++)
		if ((address[i] ^ filter->address[i]) & filter->mask[i])
			return false;
	return true;
}

static bool allows(int wanted, unsigned number)
{
	return wanted == FLOW_FILTER_ANY || (unsigned)wanted == number;
}

bool flow_filter_key(const struct flow_filter *filter, const struct flow_key *key)
{
	if (!allows(filter->proto, key->proto) || !allows(filter->wire, flow_key_wire(key)) ||
		!allows(filter->zone, key->zone))
		return false;
	if (!allows(filter->port, rte_be_to_cpu_16(key->port[0])) &&
		!allows(filter->port, rte_be_to_cpu_16(key->port[1])))
		return false;
	if (filter->version == 0)
		return true;
	return flow_key_version(key) == filter->version &&
	       (holds(filter, key->addr[0]) || holds(filter, key->addr[1]));
}

bool flow_filter_match(const struct flow_filter *filter, const struct flow_record *record,
	const struct flow_offload *offload)
{
	unsigned place = offload->told ? offload->state[export_json_direction(record, offload)]
				       : OFFLOAD_SOFTWARE;

	return filter->states >> record->state & 1 && filter->places >> place & 1 &&
	       allows(filter->blocked, flow_is_blocked(record)) &&
	       flow_filter_key(filter, &record->key);
}
