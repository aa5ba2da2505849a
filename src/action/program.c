/* SPDX-License-Identifier: BSD-3-Clause */
#include "action/program.h"

#include <errno.h>

#include "action/tunnel.h"

#define MAX_VLAN 4094
#define MAX_PRIORITY 7
#define TPID_8021Q 0x8100
#define TPID_8021AD 0x88a8

/* A list while it is compiled. */
struct compiler {
	struct action_program program;
	uint32_t seen; /* kinds, as bits */
	unsigned at;   /* the action in hand */
	enum action_kind kind;
	struct error *error;
};

static_assert(ACTION_N_KINDS <= 32, "kinds are bits of compiler.seen");

static int wrong(struct compiler *compiler, const char *why)
{
	return error_set(compiler->error, -EINVAL, "action %u (%s): %s", compiler->at + 1,
		action_kind_name(compiler->kind), why);
}

static int compile_port(struct compiler *compiler, uint16_t port, uint16_t *into)
{
	if (port > ACTION_MAX_PORT)
		return wrong(compiler, "there is no port 65535");
	*into = port;
	return 0;
}

static int compile_mac(struct compiler *compiler, const uint8_t mac[6], unsigned at)
{
	bool source = at != 0;

	if (source && mac[0] & 1)
		return wrong(compiler, "a multicast address can't be a source");
	memcpy(compiler->program.mac + at, mac, 6);
	compiler->program.does |= source ? ACTION_DOES_MAC_SRC : ACTION_DOES_MAC_DST;
	return 0;
}

static int compile_address(
	struct compiler *compiler, unsigned version, unsigned side, const uint8_t *address)
{
	struct action_program *program = &compiler->program;

	if (program->version != 0 && program->version != version)
		return wrong(compiler, "the list has an address of the other IP version, too");
	if (program->does & ACTION_DOES_ADDRESS_SRC << side)
		return wrong(compiler, "the list sets this twice");
	program->version = (uint8_t)version;
	program->does |= ACTION_DOES_ADDRESS_SRC << side;
	memcpy(program->addr[side], address, version == 4 ? 4 : 16);
	return 0;
}

static int compile_push(struct compiler *compiler, const struct action_vlan *vlan)
{
	struct action_program *program = &compiler->program;

	if (vlan->tpid != TPID_8021Q && vlan->tpid != TPID_8021AD)
		return wrong(compiler, "a tag's type is 0x8100 or 0x88a8");
	if (vlan->id > MAX_VLAN)
		return wrong(compiler, "a VLAN id is at most 4094");
	if (vlan->priority > MAX_PRIORITY)
		return wrong(compiler, "a priority is at most 7");
	if (program->n_push == ACTION_MAX_TAGS)
		return wrong(compiler, "more than 4 new tags");
	memmove(program->tags[1], program->tags[0], program->n_push * sizeof(program->tags[0]));
	program->tags[0][0] = (uint8_t)(vlan->tpid >> 8);
	program->tags[0][1] = (uint8_t)vlan->tpid;
	program->tags[0][2] = (uint8_t)(vlan->priority << 5 | vlan->id >> 8);
	program->tags[0][3] = (uint8_t)vlan->id;
	program->n_push++;
	return 0;
}

/* A pop takes back the push before it, or takes off one more of the frame's own tags. */
static int compile_pop(struct compiler *compiler)
{
	struct action_program *program = &compiler->program;

	if (program->n_push > 0) {
		program->n_push--;
		memmove(program->tags[0], program->tags[1],
			program->n_push * sizeof(program->tags[0]));
		memset(program->tags[program->n_push], 0, sizeof(program->tags[0]));
		return 0;
	}
	program->sets_vlan = 0;
	program->vlan = 0;
	program->n_pop++;
	return 0;
}

static int compile_set_vlan(struct compiler *compiler, uint16_t id)
{
	struct action_program *program = &compiler->program;

	if (id > MAX_VLAN)
		return wrong(compiler, "a VLAN id is at most 4094");
	if (program->n_push > 0) {
		program->tags[0][2] = (uint8_t)((program->tags[0][2] & 0xf0) | id >> 8);
		program->tags[0][3] = (uint8_t)id;
		return 0;
	}
	program->sets_vlan = 1;
	program->vlan = id;
	return 0;
}

static int compile_mirror(struct compiler *compiler, const struct action_mirror *mirror)
{
	struct action_program *program = &compiler->program;

	if (mirror->one_in == 0)
		return wrong(compiler, "one packet in 0: 1 mirrors all");
	program->does |= ACTION_DOES_MIRROR;
	program->mirror_below =
		mirror->one_in == 1 ? 0 : (uint32_t)((UINT64_C(1) << 32) / mirror->one_in);
	return compile_port(compiler, mirror->port, &program->mirror_port);
}

static int compile_decap(struct compiler *compiler, const struct action_decap *decap)
{
	struct action_program *program = &compiler->program;

	if ((unsigned)decap->tunnel >= ACTION_N_TUNNELS)
		return wrong(compiler, "there is no such tunnel");
	if (decap->tunnel == ACTION_TUNNEL_BYTES && decap->length == 0)
		return wrong(compiler, "at least one byte comes off");
	program->does |= ACTION_DOES_DECAP;
	program->decap = (uint8_t)decap->tunnel;
	program->decap_length = decap->tunnel == ACTION_TUNNEL_BYTES ? decap->length : 0;
	return 0;
}

static int compile_encap(struct compiler *compiler, const struct action_encap *encap)
{
	const char *why = action_tunnel_compile(&compiler->program, encap);

	compiler->program.does |= ACTION_DOES_ENCAP;
	return why == NULL ? 0 : wrong(compiler, why);
}

/* The packet goes no further. */
static int compile_end(struct compiler *compiler, const struct action *action)
{
	struct action_program *program = &compiler->program;

	if (action->kind == ACTION_DROP) {
		program->does |= ACTION_DOES_DROP;
		return 0;
	}
	if (action->kind == ACTION_REJECT) {
		program->does |= ACTION_DOES_REJECT;
		program->reject = (uint8_t)action->reject;
		return (unsigned)action->reject < REJECT_N_WITH
			       ? 0
			       : wrong(compiler, "there is no such answer");
	}
	if (action->kind == ACTION_PUNT) {
		program->does |= ACTION_DOES_PUNT;
		program->punt = (uint8_t)action->punt;
		return (unsigned)action->punt < PUNT_N_REASONS
			       ? 0
			       : wrong(compiler, "there is no such reason");
	}
	program->does |= ACTION_DOES_DISCARD;
	program->discard = (uint8_t)action->discard;
	return (unsigned)action->discard < ACTION_N_DISCARDS
		       ? 0
		       : wrong(compiler, "there is no such reason");
}

static int compile_one(struct compiler *compiler, const struct action *action)
{
	struct action_program *program = &compiler->program;

	switch (action->kind) {
	case ACTION_FORWARD:
		return 0;
	case ACTION_OUTPUT:
		return compile_port(compiler, action->port, &program->port);
	case ACTION_NEXT_HOP:
		program->does |= ACTION_DOES_NEXT_HOP;
		program->next_hop = action->number;
		if (action->number >= NEXT_HOP_MAX_NUMBERS)
			return wrong(compiler, "a next hop's number is below 65536");
		return 0;
	case ACTION_DROP:
	case ACTION_REJECT:
	case ACTION_PUNT:
	case ACTION_DISCARD:
		return compile_end(compiler, action);
	case ACTION_SET_MAC_SRC:
		return compile_mac(compiler, action->mac, 6);
	case ACTION_SET_MAC_DST:
		return compile_mac(compiler, action->mac, 0);
	case ACTION_DECREMENT_TTL:
		program->does |= ACTION_DOES_TTL;
		return 0;
	case ACTION_SET_TTL:
		program->does |= ACTION_DOES_SET_TTL;
		program->ttl = action->ttl;
		return 0;
	case ACTION_VLAN_PUSH:
		return compile_push(compiler, &action->vlan);
	case ACTION_VLAN_POP:
		return compile_pop(compiler);
	case ACTION_VLAN_SET:
		return compile_set_vlan(compiler, action->vlan.id);
	case ACTION_SET_IPV4_SRC:
	case ACTION_SET_IPV4_DST:
		return compile_address(
			compiler, 4, action->kind == ACTION_SET_IPV4_DST, action->address);
	case ACTION_SET_IPV6_SRC:
	case ACTION_SET_IPV6_DST:
		return compile_address(
			compiler, 6, action->kind == ACTION_SET_IPV6_DST, action->address);
	case ACTION_SET_PORT_SRC:
		program->does |= ACTION_DOES_PORT_SRC;
		program->l4_port[0] = action->l4_port;
		return 0;
	case ACTION_SET_PORT_DST:
		program->does |= ACTION_DOES_PORT_DST;
		program->l4_port[1] = action->l4_port;
		return 0;
	case ACTION_POLICE:
		program->does |= ACTION_DOES_POLICE;
		program->policer = action->number;
		return 0;
	case ACTION_METER:
		program->does |= ACTION_DOES_METER;
		program->meter = action->number;
		return 0;
	case ACTION_MIRROR:
		return compile_mirror(compiler, &action->mirror);
	case ACTION_DECAP:
		return compile_decap(compiler, &action->decap);
	case ACTION_ENCAP:
		return compile_encap(compiler, &action->encap);
	case ACTION_N_KINDS:
		break;
	}
	return wrong(compiler, "there is no such action");
}

/* Refuses an action that can't stand in one list with those before it. */
static int check_together(struct compiler *compiler)
{
	const uint32_t goes = 1u << ACTION_FORWARD | 1u << ACTION_OUTPUT | 1u << ACTION_NEXT_HOP;
	const uint32_t vlan =
		1u << ACTION_VLAN_PUSH | 1u << ACTION_VLAN_POP | 1u << ACTION_VLAN_SET;
	const uint32_t link = vlan | 1u << ACTION_SET_MAC_SRC | 1u << ACTION_SET_MAC_DST;
	const uint32_t bit = 1u << compiler->kind;
	const uint32_t hop = 1u << ACTION_NEXT_HOP;
	const uint32_t ip = 1u << ACTION_DECREMENT_TTL | 1u << ACTION_SET_TTL |
			    1u << ACTION_SET_IPV4_SRC | 1u << ACTION_SET_IPV4_DST |
			    1u << ACTION_SET_IPV6_SRC | 1u << ACTION_SET_IPV6_DST |
			    1u << ACTION_SET_PORT_SRC | 1u << ACTION_SET_PORT_DST;
	const uint32_t ttl = 1u << ACTION_DECREMENT_TTL | 1u << ACTION_SET_TTL;
	const uint32_t drops =
		1u << ACTION_DROP | 1u << ACTION_REJECT | 1u << ACTION_PUNT | 1u << ACTION_DISCARD;
	const uint32_t changes = link | hop | ip | 1u << ACTION_DECAP;

	if (compiler->seen & bit && !(bit & vlan))
		return wrong(compiler, "it stands in the list twice");
	if (compiler->seen != 0 && (bit | compiler->seen) & drops)
		return wrong(compiler, "a list that drops has no other action");
	if (compiler->seen & goes && bit & goes)
		return wrong(compiler, "the list says already where the packet goes");
	if ((bit & hop && compiler->seen & link) || (bit & link && compiler->seen & hop))
		return wrong(compiler, "the next hop makes the link header, no other action can");
	if (compiler->seen & ttl && bit & ttl)
		return wrong(compiler, "the list changes the time to live already");
	if (compiler->seen & 1u << ACTION_ENCAP && bit & changes)
		return wrong(compiler, "a tunnel's headers come on after all other changes");
	if ((bit | compiler->seen) & 1u << ACTION_DECAP &&
		(bit | compiler->seen) & changes & ~(1u << ACTION_DECAP))
		return wrong(compiler, "what is behind a tunnel's headers is not changed");
	return 0;
}

int action_program_compile(
	struct action_program *program, const struct action *list, unsigned n, struct error *error)
{
	struct compiler compiler = {.error = error};

	memset(&compiler.program, 0, sizeof(compiler.program));
	compiler.program.port = ACTION_NO_PORT;
	if (n > ACTION_LIST_MAX)
		return error_set(error, -EINVAL, "%u actions: at most %d", n, ACTION_LIST_MAX);
	for (compiler.at = 0; compiler.at < n; compiler.at++) {
		const struct action *action = &list[compiler.at];
		int code;

		compiler.kind = action->kind;
		if ((unsigned)action->kind >= ACTION_N_KINDS)
			return wrong(&compiler, "there is no such action");
		code = check_together(&compiler);
		if (code == 0)
			code = compile_one(&compiler, action);
		if (code != 0)
			return code;
		compiler.seen |= 1u << action->kind;
	}
	if (compiler.program.n_pop + compiler.program.n_push > 0 || compiler.program.sets_vlan != 0)
		compiler.program.does |= ACTION_DOES_VLAN;
	memcpy(program, &compiler.program, sizeof(*program));
	return 0;
}

const char *action_drop_name(enum action_drop drop)
{
	static const char *const names[ACTION_N_DROPS] = {
		[ACTION_DROP_NONE] = "none",
		[ACTION_DROP_BLOCKED] = "blocked",
		[ACTION_DROP_REJECTED] = "rejected",
		[ACTION_DROP_PUNTED] = "punted",
		[ACTION_DROP_MARTIAN] = "martian",
		[ACTION_DROP_BLACKHOLE] = "blackhole",
		[ACTION_DROP_SOURCE] = "source",
		[ACTION_DROP_TTL_EXPIRED] = "ttl_expired",
		[ACTION_DROP_NO_NEXT_HOP] = "no_next_hop",
		[ACTION_DROP_TOO_BIG] = "too_big",
		[ACTION_DROP_POLICED] = "policed",
		[ACTION_DROP_METERED] = "metered",
		[ACTION_DROP_NOT_POSSIBLE] = "not_possible",
	};

	return (size_t)drop < ACTION_N_DROPS ? names[drop] : "?";
}

/* As action_common_possible(), for any packet. */
static bool any_possible(const struct action_program *program, const struct rte_mbuf *frame,
	const struct rewrite_headers *headers, const struct next_hop *hop)
{
	/* tags come off the front first, as far as it reaches into the first segment */
	int off = (hop != NULL ? headers->n_tags : program->n_pop) * VLAN_TAG_LENGTH;
	int on = (hop != NULL ? hop->vlan != 0 : program->n_push) * VLAN_TAG_LENGTH;
	int first = RTE_MIN(off, (int)frame->data_len);

	if (hop != NULL && headers->version == 0)
		return false;
	if (program->does & (ACTION_DOES_TTL | ACTION_DOES_SET_TTL) && headers->version == 0)
		return false;
	if (program->does & ACTION_DOES_ADDRESSES && program->version != headers->version)
		return false;
	if (program->does & ACTION_DOES_PORTS && rewrite_port_check(headers) != REWRITE_DONE)
		return false;
	if (on > rte_pktmbuf_headroom(frame) + first || frame->data_len - first + on > UINT16_MAX)
		return false;
	return !(program->does & ACTION_DOES_VLAN) ||
	       program->n_pop + program->sets_vlan <= headers->n_tags;
}

/* The link header; action_run_any() has made sure that nothing here fails. */
static void any_link(const struct action_program *program, struct rte_mbuf *frame,
	struct rewrite_headers *headers, const struct next_hop *hop)
{
	unsigned n_pop = hop != NULL ? headers->n_tags : program->n_pop;

	for (unsigned i = 0; i < n_pop; i++)
		rewrite_vlan_pop(frame, headers);
	if (program->sets_vlan)
		rewrite_vlan_set(frame, headers, program->vlan);
	for (unsigned i = program->n_push; i > 0; i--)
		rewrite_vlan_push(frame, headers, load_be16(program->tags[i - 1]),
			load_be16(program->tags[i - 1] + 2));
	if (program->does & ACTION_DOES_MAC_DST)
		rewrite_mac(frame, REWRITE_DESTINATION, program->mac);
	if (program->does & ACTION_DOES_MAC_SRC)
		rewrite_mac(frame, REWRITE_SOURCE, program->mac + 6);
	if (hop == NULL)
		return;
	if (hop->vlan != 0)
		rewrite_vlan_push(frame, headers, TPID_8021Q, hop->vlan);
	rewrite_mac(frame, REWRITE_DESTINATION, hop->mac_dst);
	rewrite_mac(frame, REWRITE_SOURCE, hop->mac_src);
}

static void any_ip(const struct action_program *program, struct rte_mbuf *frame,
	const struct rewrite_headers *headers)
{
	if (program->does & ACTION_DOES_TTL)
		rewrite_ttl(frame, headers);
	if (program->does & ACTION_DOES_SET_TTL)
		rewrite_ttl_set(frame, headers, program->ttl);
	for (unsigned side = 0; side < 2; side++) {
		if (program->does & ACTION_DOES_ADDRESS_SRC << side)
			rewrite_address(
				frame, headers, side, program->version, program->addr[side]);
		if (program->does & ACTION_DOES_PORT_SRC << side)
			rewrite_port(frame, headers, side, program->l4_port[side]);
	}
}

static enum action_drop run_meter(const struct action_program *program,
	struct action_context *context, const struct rte_mbuf *frame, struct action_answer *answer)
{
	struct action_meter_answer said;

	if (!(program->does & ACTION_DOES_METER))
		return ACTION_DROP_NONE;
	if (program->meter >= context->n_meters)
		return ACTION_DROP_NOT_POSSIBLE;
	said = action_meter_color(
		&context->meters[program->meter], context->now_ns, frame->pkt_len);
	answer->color = (uint8_t)said.color;
	return said.drops ? ACTION_DROP_METERED : ACTION_DROP_NONE;
}

static enum action_drop run_any(const struct action_program *program,
	struct action_context *context, struct rte_mbuf *frame, struct action_answer *answer)
{
	struct rewrite_headers headers = {0};
	const struct next_hop *hop = NULL;
	unsigned strip = 0;
	enum action_drop drop;

	if (program->does & ACTION_DOES_DROP)
		return ACTION_DROP_BLOCKED;
	if (program->does & ACTION_DOES_REJECT)
		return ACTION_DROP_REJECTED;
	if (program->does & ACTION_DOES_DISCARD)
		return (enum action_drop)(ACTION_DROP_MARTIAN + program->discard);
	if (program->does & ACTION_DOES_PUNT) {
		answer->punt = program->punt;
		return ACTION_DROP_PUNTED;
	}
	if (program->does & ACTION_DOES_REWRITE) {
		if (!rewrite_read(frame, &headers))
			return ACTION_DROP_NOT_POSSIBLE;
		if (program->does & ACTION_DOES_TTL &&
			rewrite_ttl_check(frame, &headers) == REWRITE_EXPIRED)
			return ACTION_DROP_TTL_EXPIRED;
		drop = action_next_hop(
			program->does, program, context, frame->pkt_len - headers.l3, &hop);
		if (drop != ACTION_DROP_NONE)
			return drop;
		if (!any_possible(program, frame, &headers, hop))
			return ACTION_DROP_NOT_POSSIBLE;
	}
	if (program->does & ACTION_DOES_TUNNEL && !action_tunnel_possible(program, frame, &strip))
		return ACTION_DROP_NOT_POSSIBLE;
	drop = action_police(program->does, program, context, frame, answer);
	if (drop == ACTION_DROP_NONE)
		drop = run_meter(program, context, frame, answer);
	if (drop != ACTION_DROP_NONE)
		return drop;
	if (program->does & ACTION_DOES_REWRITE) {
		any_link(program, frame, &headers, hop);
		any_ip(program, frame, &headers);
	}
	if (program->does & ACTION_DOES_TUNNEL)
		action_tunnel(program, frame, strip);
	if (hop != NULL)
		answer->port = hop->port;
	action_mirror(program->does, program, context, answer);
	return ACTION_DROP_NONE;
}

void action_run_any(const struct action_program *program, struct action_context *context,
	struct rte_mbuf *frame, struct action_answer *answer)
{
	*answer = (struct action_answer){
		.port = program->port,
		.mirror_port = ACTION_NO_PORT,
	};
	answer->drop = (uint8_t)run_any(program, context, frame, answer);
}
