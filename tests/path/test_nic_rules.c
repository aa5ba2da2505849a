/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules that NICs do in software's place, one by one: where they are, what they count, and that nothing passes that is
 * to be dropped, whatever becomes of the NIC.
 */
#include "nic_rules_line.h"

#include <netinet/in.h>

#define DNS                                                                                      \
	"flow create 0 ingress pattern eth / ipv4 / udp dst is 53 / end actions count / drop / " \
	"end"

static struct frame udp_frame(const char *src, unsigned port, bool fragment)
{
	struct frame frame;

	frame_start(&frame);
	frame_ipv4(&frame, src, "10.0.0.2", IPPROTO_UDP);
	if (fragment)
		frame_ipv4_fragment(&frame, 77, 0, true);
	frame_udp(&frame, 1000, port);
	frame_fill(&frame, 32);
	put_be16(frame.bytes + frame.upper - 4, 40);
	frame_finish(&frame);
	return frame;
}

/* How many of `n` such packets come through. */
static unsigned send_some(struct nic_line *line, const char *src, unsigned port, unsigned n)
{
	const struct frame frame = udp_frame(src, port, false);
	const uint64_t before = line->n_passed;

	for (unsigned i = 0; i < n; i++) {
		nic_line_send(line, 0, &frame);
		if (line->sent == 16)
			nic_line_collect(line);
	}
	nic_line_collect(line);
	return (unsigned)(line->n_passed - before);
}

static struct plane_rule_where where_is(
	struct nic_line *line, uint32_t number, struct rules_view *view)
{
	struct plane_rule_where where;

	assert_int_equal(rules_get(plane_rules(line->plane), 0, number, view), 0);
	plane_rule_where(line->plane, view, &where);
	return where;
}

/* What a rule has counted, in NICs and in software. */
static void expect_counts(
	struct nic_line *line, uint32_t number, uint64_t in_nic, uint64_t in_software)
{
	struct rules_view view;

	nic_line_count(line);
	const struct plane_rule_where where = where_is(line, number, &view);

	assert_false(where.uncounted);
	assert_int_equal(where.packets, in_nic);
	assert_int_equal(view.nic_packets + view.now_packets, in_nic);
	assert_int_equal(view.count.packets, in_software);
}

static void a_rule_that_drops_is_in_the_nic(void **state)
{
	struct nic_line line;
	struct rules_view view;
	uint64_t nic_dropped;

	(void)state;
	nic_line_begin(&line, "", true, 0);
	const uint32_t dns = nic_line_rule(&line, DNS);

	nic_line_settle(&line);
	assert_int_equal(where_is(&line, dns, &view).where, PLANE_RULE_NIC);
	assert_int_equal(send_some(&line, "10.0.0.1", 53, 100), 0);
	assert_int_equal(send_some(&line, "10.0.0.1", 54, 100), 100);
	expect_counts(&line, dns, 100, 0);
	nic_line_check(&line, &nic_dropped);
	assert_int_equal(nic_dropped, 100);
	/* a first fragment is for software: later ones have its port */
	const struct frame first = udp_frame("10.0.0.1", 53, true);

	nic_line_send(&line, 0, &first);
	nic_line_collect(&line);
	expect_counts(&line, dns, 100, 1);
	/* when it goes its packets pass, and what NICs dropped stays in the wire's sum */
	nic_line_rule(&line, "flow destroy 0 rule 0");
	nic_line_settle(&line);
	assert_int_equal(send_some(&line, "10.0.0.1", 53, 100), 100);
	nic_line_check(&line, &nic_dropped);
	assert_int_equal(nic_dropped, 100);
	nic_line_end(&line);
}

/* A rule that comes before it takes some of its packets: it leaves the NIC first, and comes back when that one goes. */
static void it_leaves_for_a_rule_before_it(void **state)
{
	struct nic_line line;
	struct rules_view view;
	uint64_t nic_dropped;

	(void)state;
	nic_line_begin(&line, "", true, 0);
	const uint32_t dns = nic_line_rule(&line,
		"flow create 0 ingress priority 5 pattern eth / ipv4 / udp dst is 53 / end actions "
		"drop / end");

	nic_line_settle(&line);
	assert_int_equal(send_some(&line, "10.0.0.1", 53, 10), 0);
	nic_line_rule(&line,
		"flow create 0 ingress priority 4 pattern eth / ipv4 src is 10.0.0.9 / end actions "
		"mark id 1 / end");
	nic_line_settle(&line);
	const struct plane_rule_where where = where_is(&line, dns, &view);

	assert_int_equal(where.where, PLANE_RULE_SOFTWARE);
	assert_non_null(strstr(where.why, "rule #1 of port 0 comes before it"));
	assert_int_equal(send_some(&line, "10.0.0.9", 53, 10), 10);
	assert_int_equal(send_some(&line, "10.0.0.1", 53, 10), 0);
	expect_counts(&line, dns, 10, 10);
	/* one of the same priority comes after it, and one of other packets is not in its way */
	nic_line_rule(&line, "flow destroy 0 rule 1");
	nic_line_rule(&line, "flow create 0 ingress priority 5 pattern eth / ipv4 / end actions "
			     "mark id 1 / end");
	nic_line_rule(&line,
		"flow create 0 ingress priority 1 pattern eth / ipv4 / tcp / end actions mark id 1 "
		"/ end");
	nic_line_settle(&line);
	assert_int_equal(where_is(&line, dns, &view).where, PLANE_RULE_NIC);
	assert_int_equal(send_some(&line, "10.0.0.9", 53, 10), 0);
	expect_counts(&line, dns, 20, 10);
	nic_line_check(&line, &nic_dropped);
	assert_int_equal(nic_dropped, 20);
	nic_line_end(&line);
}

static bool is_renewed(struct nic_line *line, uint32_t number)
{
	struct rules_view view;

	assert_int_equal(send_some(line, "10.0.0.1", 53, 20), 0);
	return strstr(where_is(line, number, &view).why, "made anew") != NULL;
}

/* The NIC loses the rule: software drops what it lets through, and the rule is made anew. */
static void lose_a_rule(const char *fault)
{
	struct nic_line line;
	struct rules_view view;
	uint64_t nic_dropped;

	nic_line_begin(&line, "", true, 0);
	const uint32_t dns = nic_line_rule(&line, DNS);

	nic_line_settle(&line);
	assert_int_equal(send_some(&line, "10.0.0.1", 53, 100), 0);
	expect_counts(&line, dns, 100, 0);
	nic_line_fault(&line, 0, fault);
	assert_int_equal(send_some(&line, "10.0.0.1", 53, 100), 0);
	expect_counts(&line, dns, 100, 100);
	NIC_LINE_UNTIL(&line, is_renewed(&line, dns));
	NIC_LINE_UNTIL(&line, where_is(&line, dns, &view).where == PLANE_RULE_NIC);
	nic_line_check(&line, &nic_dropped);
	const uint64_t before = nic_dropped;

	assert_int_equal(send_some(&line, "10.0.0.1", 53, 100), 0);
	nic_line_check(&line, &nic_dropped);
	assert_int_equal(nic_dropped, before + 100);
	nic_line_end(&line);
}

static void a_forgotten_rule_drops_in_software(void **state)
{
	(void)state;
	lose_a_rule("forget");
}

static void after_a_reset_software_drops(void **state)
{
	(void)state;
	lose_a_rule("reset");
}

/* The NIC is full: what finds no room is dropped by software, until a rule goes. */
static void without_room_it_waits(void **state)
{
	struct nic_line line;
	struct rules_view view;
	uint64_t nic_dropped;
	char rule[160];
	unsigned n = 0;

	(void)state;
	nic_line_begin(&line, "rules=2", true, 1000000000);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(rule, sizeof(rule),
			"flow create 0 ingress pattern eth / ipv4 / udp dst is %u / end actions "
			"drop "
			"/ end",
			100 + i);
		nic_line_rule(&line, rule);
	}
	nic_line_settle(&line);
	for (unsigned i = 0; i < 3; i++) {
		n += where_is(&line, i, &view).where == PLANE_RULE_NIC;
		assert_int_equal(send_some(&line, "10.0.0.1", 100 + i, 10), 0);
	}
	assert_int_equal(n, 2);
	assert_int_equal(where_is(&line, 2, &view).where, PLANE_RULE_SOFTWARE);
	nic_line_check(&line, &nic_dropped);
	assert_int_equal(nic_dropped, 20);
	nic_line_rule(&line, "flow destroy 0 rule 0");
	NIC_LINE_UNTIL(&line, where_is(&line, 2, &view).where == PLANE_RULE_NIC);
	assert_int_equal(send_some(&line, "10.0.0.1", 102, 10), 0);
	expect_counts(&line, 2, 10, 10);
	nic_line_end(&line);
}

/* Whether a call has failed since the fault was set. */
static bool has_failed(const struct nic_line *line, unsigned side)
{
	struct sim_port *sim = rte_eth_devices[line->port[side]->id].data->dev_private;

	pthread_mutex_lock(&sim->lock);
	const bool failed = sim->faults.fault[SIM_FAULT_FAIL].strikes > 0;

	pthread_mutex_unlock(&sim->lock);
	return failed;
}

/* The engine tries again after the NIC has refused to insert a rule, and after it has failed to remove one. */
static void a_refusal_is_not_the_last_word(void **state)
{
	struct nic_line line;
	struct rules_view view;

	(void)state;
	nic_line_begin(&line, "", true, 1000000000);
	nic_line_fault(&line, 0, "fail:op=create:errno=EIO");
	const uint32_t dns = nic_line_rule(&line, DNS);

	nic_line_settle(&line);
	assert_non_null(strstr(where_is(&line, dns, &view).why, "refuses"));
	assert_int_equal(send_some(&line, "10.0.0.1", 53, 10), 0);
	nic_line_fault(&line, 0, "fail:off");
	NIC_LINE_UNTIL(&line, where_is(&line, dns, &view).where == PLANE_RULE_NIC);
	assert_int_equal(send_some(&line, "10.0.0.1", 53, 10), 0);
	expect_counts(&line, dns, 10, 10);
	nic_line_fault(&line, 0, "fail:op=destroy:errno=EIO");
	nic_line_rule(&line, "flow destroy 0 rule 0");
	NIC_LINE_UNTIL(&line, has_failed(&line, 0));
	nic_line_fault(&line, 0, "fail:off");
	nic_line_settle(&line);
	assert_int_equal(send_some(&line, "10.0.0.1", 53, 10), 10);
	nic_line_end(&line);
}

/* What a NIC does not count is not 0. */
static void a_nic_without_counters(void **state)
{
	struct nic_line line;
	struct rules_view view;
	struct error error;
	unsigned column;
	char query[] = "flow query 0 0 count";

	(void)state;
	nic_line_begin(&line, "actions=-count", true, 1000000000);
	const uint32_t dns = nic_line_rule(&line, DNS);

	nic_line_settle(&line);
	assert_int_equal(send_some(&line, "10.0.0.1", 53, 10), 0);
	nic_line_count(&line);
	const struct plane_rule_where where = where_is(&line, dns, &view);

	assert_int_equal(where.where, PLANE_RULE_NIC);
	assert_true(where.uncounted);
	assert_int_equal(view.count.packets, 0);
	assert_true(rules_command(plane_rules(line.plane), query, strlen(query), &column,
			    nic_line_tell, &column, &error) < 0);
	assert_non_null(strstr(error.text, "does not count"));
	nic_line_end(&line);
}

/* A rule for all ports is in both NICs, and in one where the other cannot. */
static void a_rule_of_all_ports(void **state)
{
	struct nic_line line;
	struct rules_view view;
	uint64_t nic_dropped;

	(void)state;
	nic_line_begin(&line, "", true, 1000000000);
	const uint32_t number = nic_line_rule(&line, "flow create 0 transfer pattern eth / ipv4 / "
						     "udp dst is 53 / end actions drop / end");
	const struct frame frame = udp_frame("10.0.0.1", 53, false);

	nic_line_settle(&line);
	assert_int_equal(where_is(&line, number, &view).where, PLANE_RULE_NIC);
	for (unsigned i = 0; i < 20; i++)
		nic_line_send(&line, i % 2, &frame);
	nic_line_collect(&line);
	expect_counts(&line, number, 20, 0);
	nic_line_check(&line, &nic_dropped);
	assert_int_equal(nic_dropped, 20);
	nic_line_end(&line);
}

/* Without the setting nothing is given to NICs. */
static void not_asked_for(void **state)
{
	struct nic_line line;
	struct rules_view view;
	uint64_t nic_dropped;

	(void)state;
	nic_line_begin(&line, "", false, 1000000000);
	const uint32_t dns = nic_line_rule(&line, DNS);

	nic_line_settle(&line);
	assert_int_equal(where_is(&line, dns, &view).where, PLANE_RULE_SOFTWARE);
	assert_int_equal(send_some(&line, "10.0.0.1", 53, 10), 0);
	expect_counts(&line, dns, 0, 10);
	nic_line_check(&line, &nic_dropped);
	assert_int_equal(nic_dropped, 0);
	nic_line_end(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_that_drops_is_in_the_nic),
		cmocka_unit_test(it_leaves_for_a_rule_before_it),
		cmocka_unit_test(a_forgotten_rule_drops_in_software),
		cmocka_unit_test(after_a_reset_software_drops),
		cmocka_unit_test(without_room_it_waits),
		cmocka_unit_test(a_refusal_is_not_the_last_word),
		cmocka_unit_test(a_nic_without_counters),
		cmocka_unit_test(a_rule_of_all_ports),
		cmocka_unit_test(not_asked_for),
	};

	return cmocka_run_group_tests(tests, nic_line_environment, NULL);
}
