/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and the queue that they wait in. What they say is tested by a decoder (tests/behaviour/test_export.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "export/ipfix.h"
#include "export/queue.h"

/* The shortest message has room for each template, whatever the format. */
static void templates_fit(void **state)
{
	uint8_t bytes[IPFIX_LEAST];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		const struct ipfix_format format = {.pen = i & 1 ? 32473 : 0, .biflow = i & 2};
		struct ipfix_message message;

		for (unsigned number = 0; number < ipfix_n_templates(&format); number++) {
			ipfix_begin(&message, bytes, sizeof(bytes));
			assert_true(ipfix_add_template(&message, &format, number));
			ipfix_end(&message, &format);
			assert_int_equal(message.records, 0);
		}
	}
}

/* What does not fit leaves the message as it was. */
static void no_room(void **state)
{
	const struct ipfix_format format = {.domain = 7};
	const struct ipfix_way way = {0};
	struct flow_report report = {.record.key.version_wire = 0x60};
	uint8_t bytes[160] = {0};
	struct ipfix_message message, before;

	(void)state;
	ipfix_begin(&message, bytes, sizeof(bytes));
	assert_true(ipfix_add_flow(&message, &format, &report, &way));
	before = message;
	assert_false(ipfix_add_flow(&message, &format, &report, &way));
	assert_false(ipfix_add_template(&message, &format, 0));
	assert_memory_equal(&message, &before, sizeof(message));
	assert_int_equal(message.records, 1);
}

/* Messages of many lengths come out as they went in, however the queue is wrapped round. */
static void queue_keeps_order(void **state)
{
	struct queue queue;
	uint32_t in = 0, out = 0;

	(void)state;
	assert_int_equal(queue_init(&queue, 1000), 0);
	for (unsigned round = 0; round < 5000; round++) {
		const uint32_t length = 1 + in * 37 % 190;
		uint8_t *room = queue_room(&queue, length);

		if (room != NULL) {
			memset(room, (int)(in & 0xff), length);
			queue_add(&queue, &(struct queued){.length = length, .records = in++});
		}
		/* a walk sees all of them, in order */
		const struct queued *message;
		size_t cursor = 0;
		uint32_t n = 0;
		uint8_t *bytes;

		while ((message = queue_next(&queue, &cursor, &bytes)) != NULL) {
			assert_int_equal(message->records, out + n);
			assert_int_equal(bytes[0], (out + n) & 0xff);
			assert_int_equal(bytes[message->length - 1], (out + n++) & 0xff);
		}
		assert_int_equal(n, in - out);
		if (room == NULL || round % 3 == 0)
			for (unsigned i = 0; i < 1 + round % 4 && out < in; i++, out++)
				queue_drop(&queue);
	}
	assert_true(in > 2000);
	queue_fini(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(templates_fit),
		cmocka_unit_test(no_room),
		cmocka_unit_test(queue_keeps_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
