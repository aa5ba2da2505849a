/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/top.h"

static struct flow_report flow(uint32_t number, uint64_t bytes)
{
	struct flow_report report = {0};

	report.record.key.version_wire = FLOW_KEY_VERSION_WIRE(4, 0);
	memcpy(report.record.key.addr[0], &number, sizeof(number));
	/* split between the directions, and over the low and high halves */
	report.record.count[0].bytes_low = (uint32_t)bytes;
	report.record.end[1].bytes_high = (uint32_t)(bytes >> 32);
	return report;
}

static int more_bytes(const void *a, const void *b)
{
	uint64_t a_bytes = *(const uint64_t *)a, b_bytes = *(const uint64_t *)b;

	return (a_bytes < b_bytes) - (a_bytes > b_bytes);
}

/* Against sorting everything, for any number kept and shown. */
static void test_against_sorting(void **state)
{
	uint64_t random = 7, all[300];

	(void)state;
	for (unsigned count = 1; count < 40; count++) {
		for (unsigned shown = 0; shown < 300; shown += 1 + shown / 4) {
			struct top *top = top_create(count);
			unsigned n;

			for (unsigned i = 0; i < shown; i++) {
				random = random * UINT64_C(6364136223846793005) + 1;
				all[i] = random >> 28;

				struct flow_report report = flow(i, all[i]);

				assert_int_equal(top_bytes(&report), all[i]);
				top_add(top, &report);
			}
			qsort(all, shown, sizeof(all[0]), more_bytes);
			const struct flow_report *sorted = top_sorted(top, &n);

			assert_int_equal(n, shown < count ? shown : count);
			for (unsigned i = 0; i < n; i++)
				assert_int_equal(top_bytes(&sorted[i]), all[i]);
			top_destroy(top);
		}
	}
	top_destroy(NULL);
}

/* Among equals, what is kept does not depend on the order of showing. */
static void test_equals(void **state)
{
	(void)state;
	for (unsigned backwards = 0; backwards < 2; backwards++) {
		struct top *top = top_create(3);
		unsigned n;

		for (unsigned i = 0; i < 20; i++) {
			struct flow_report report = flow(backwards ? 19 - i : i, 1000);

			top_add(top, &report);
		}
		const struct flow_report *sorted = top_sorted(top, &n);

		assert_int_equal(n, 3);
		for (uint32_t i = 0; i < 3; i++)
			assert_memory_equal(sorted[i].record.key.addr[0], &i, sizeof(i));
		top_destroy(top);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_sorting),
		cmocka_unit_test(test_equals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
