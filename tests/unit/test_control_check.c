/* SPDX-License-Identifier: BSD-3-Clause */

/* offload check: what is in the way of a flow, one thing after the other. */

#include "unit/control_scene.h"

#include "offload/rate.h"

#define UDP                                                                                   \
	"{\"ask\":\"offload check\",\"with\":{\"src\":\"10.0.0.1\",\"sport\":7,\"dst\":\"10." \
	"0.0.2\","                                                                            \
	"\"dport\":80,\"proto\":\"udp\"}}"
#define GRE                                                                               \
	"{\"ask\":\"offload check\",\"with\":{\"src\":\"10.0.0.1\",\"dst\":\"10.0.0.2\"," \
	"\"proto\":47}}"

/* A port that takes UDP over IPv4, and refuses SCTP. */
static struct installer *add_installer(struct scene *scene, unsigned port)
{
	struct installer *installer = &scene->plane.installers[port];
	struct provider_abilities *abilities = &installer->abilities;

	scene->plane.config.offload.on = true;
	scene->plane.config.offload.threshold = 1000;
	scene->plane.slots[port / 2] = (struct plane_slots){.n = 100, .used = 3};
	installer->there = true;
	abilities->back_end = "rte_flow";
	abilities->kind[PROVIDER_IPV4_UDP] = true;
	strcpy(abilities->shape[PROVIDER_IPV4_UDP], "eth / ipv4 / udp, mark");
	return installer;
}

/* Of the first port. */
static void expect(struct scene *scene, const char *request, const char *reason, const char *words)
{
	json_t *lines = expect_lines(scene, request, 2);
	const json_t *line = json_array_get(lines, 0);

	assert_string_equal(text_of(line, "port"), "left");
	if (reason == NULL) {
		assert_true(json_is_true(json_object_get(line, "would")));
		assert_null(json_object_get(line, "reason"));
		assert_string_equal(text_of(line, "shape"), "eth / ipv4 / udp, mark");
	} else {
		assert_true(json_is_false(json_object_get(line, "would")));
		assert_string_equal(text_of(line, "reason"), reason);
		assert_null(json_object_get(line, "shape"));
	}
	if (strstr(text_of(line, "because"), words) == NULL)
		fail_msg("%s", text_of(line, "because"));
	json_decref(lines);
}

static void what_is_in_the_way(void **state)
{
	struct scene *scene = *state;
	struct installer *installer;
	struct provider_abilities *abilities;

	expect(scene, UDP, "off", "offload is turned off");
	installer = add_installer(scene, 0);
	abilities = &installer->abilities;
	expect(scene, UDP, NULL, "at 1,000 a second or more");
	scene->plane.config.offload.threshold = 0;
	expect(scene, UDP, NULL, "with its first packet");
	expect(scene, GRE, "kind", "TCP, UDP and SCTP only, of ICMP over IPv4");

	installer->not_ready = true;
	expect(scene, UDP, "trial", "is being tried");
	installer->not_ready = false;
	scene->plane.slots[0] = (struct plane_slots){0};
	expect(scene, UDP, "trial", "slots are being made");
	scene->plane.no_slots = true;
	expect(scene, UDP, "no_slot", "no memory for");
	scene->plane.no_slots = false;
	scene->plane.slots[0] = (struct plane_slots){.n = 100, .used = 100};
	expect(scene, UDP, "no_slot", "no mark is free");
	scene->plane.slots[0].used = 7;

	abilities->kind[PROVIDER_IPV4_UDP] = false;
	abilities->trying[PROVIDER_IPV4_UDP] = true;
	expect(scene, UDP, "trial", "could not be tried yet");
	abilities->trying[PROVIDER_IPV4_UDP] = false;
	abilities->refused[PROVIDER_IPV4_UDP].error = EINVAL;
	strcpy(abilities->refused[PROVIDER_IPV4_UDP].words, "Not supported");
	expect(scene, UDP, "kind", "EINVAL, \"Not supported\"");
	abilities->kind[PROVIDER_IPV4_UDP] = true;
	installer->health.out[PROVIDER_IPV4_UDP] = 1;
	expect(scene, UDP, "markless", "none has ever marked");
	installer->health.out[PROVIDER_IPV4_UDP] = 0;
	installer->health.state = HEALTH_OPEN;
	installer->health.why = OFFLOAD_UNMARKED;
	expect(scene, UDP, "breaker", "put to software");
	installer->health.state = HEALTH_CLOSED;
	strcpy(abilities->unable, "it takes nothing");
	expect(scene, UDP, "no_nic", "it takes nothing");
	abilities->unable[0] = '\0';
	scene->plane.config.offload.off_port[0] = true;
	installer->there = false;
	expect(scene, UDP, "off", "left out of offload");
}

static void a_card_that_is_full(void **state)
{
	struct scene *scene = *state;
	struct agent_rank *rank = &scene->plane.flow.bar[0];

	add_installer(scene, 0);
	*rank = (struct agent_rank){
		.room = 512, .has_room = true, .has_slots = true, .bar = rate_of_pps(1000)};
	expect(scene, UDP, NULL, "at 1,000 a second or more");
	/* the least busy flow gives way, to one that is busier than it */
	rank->has_room = false;
	rank->bar = rate_of_pps(4000) + 1;
	expect(scene, UDP, NULL, "at 4,001 a second or more, as all places are taken");
	rank->bar = UINT32_MAX;
	expect(scene, UDP, "no_room", "more than 512 rules");
	rank->has_slots = false;
	expect(scene, UDP, "no_slot", "no mark is free");
	rank->bar = rate_of_pps(4000);
	expect(scene, UDP, NULL, "at 4,000 a second or more, as all places are taken");
	rank->has_slots = true;
	/* nor may there be a place in the queue */
	rank->has_room = rank->crowded = true;
	expect(scene, UDP, NULL, "at 4,000 a second or more, as the queue for the card is full");
	scene->plane.config.offload.threshold = 0;
	expect(scene, UDP, "displaced", "the queue for the NIC is full");
	rank->has_room = rank->crowded = false;
	rank->bar = 0;
	expect(scene, UDP, "no_room", "no flow in it gives way");
}

/* Of one that is there: where it is, and that it is there by its own rule is nothing in its way. */
static void a_flow_that_is_there(void **state)
{
	struct scene *scene = *state;
	const struct flow_record record = fake_flow("10.0.0.1", 7, "10.0.0.2", 80, 17);
	struct flow_offload *offload = &scene->plane.offload[0][0];
	const json_t *line, *now;
	json_t *lines;

	fake_add(&scene->plane, 0, 0, &record);
	add_installer(scene, 0);
	scene->plane.flow.port[1] = 1;
	scene->plane.flow.rank[0] = (struct agent_rank){.room = 5, .bar = UINT32_MAX};
	*offload = (struct flow_offload){.told = true,
		.state = {OFFLOAD_PROVEN, OFFLOAD_SOFTWARE},
		.reason = {OFFLOAD_BUSY, OFFLOAD_QUIET}};
	expect(scene, UDP, NULL, "1,000");
	lines = expect_lines(scene, UDP, 2);
	line = json_array_get(lines, 0);
	now = json_object_get(line, "now");
	assert_true(json_is_true(json_object_get(line, "live")));
	assert_string_equal(text_of(now, "state"), "in_hw");
	assert_string_equal(text_of(now, "reason"), "busy");
	assert_string_equal(text_of(now, "direction"), "forward");
	json_decref(lines);
	/* one that waits is told how long */
	*offload = (struct flow_offload){.told = true, .reason = {OFFLOAD_QUARANTINE}};
	scene->plane.flow.retry_us[0] = scene->plane.now_us + 2000000;
	expect(scene, UDP, "quarantine", "it fell out of the NIC");
	/* so is one that was refused; then it is held against others as any flow is */
	*offload = (struct flow_offload){
		.told = true, .state = {OFFLOAD_REFUSED}, .reason = {OFFLOAD_STALLED}};
	expect(scene, UDP, "stalled", "did not answer in time");
	scene->plane.flow.retry_us[0] = 0;
	scene->plane.flow.rank[0].has_slots = true;
	expect(scene, UDP, "no_room", "more than 5 rules");
}

static void nobody_answers(void **state)
{
	struct scene *scene = *state;

	scene->plane.silent = true;
	expect_error(scene, UDP, "offload check: a thread of the packet path does not answer", 1);
}

static void wrong_names(void **state)
{
	struct scene *scene = *state;

	expect_error(scene, "{\"ask\":\"offload check\"}",
		"offload check: src: is needed, but missing", 2);
	expect_error(scene,
		"{\"ask\":\"offload check\",\"with\":{\"src\":\"::1\",\"dst\":\"10.0.0.1\","
		"\"proto\":6}}",
		"offload check: src is of IPv6, dst of IPv4", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(what_is_in_the_way),
		SCENE_TEST(a_card_that_is_full),
		SCENE_TEST(a_flow_that_is_there),
		SCENE_TEST(nobody_answers),
		SCENE_TEST(wrong_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
