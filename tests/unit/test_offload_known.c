/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "offload/known.h"

static const char report_text[] =
	"{\"driver\":\"net_x\",\"firmware\":\"7.1\",\"dpdk\":\"DPDK 22.11\",\"arguments\":\"a=1\","
	"\"time\":\"2026-11-23T04:20:00Z\",\"marks\":{\"accepted_bits\":32,\"seen_bits\":24},"
	"\"tables\":[{\"back_end\":\"rte_flow\",\"rules\":7168,\"end\":\"full\","
	"\"insert\":{\"times\":1000,\"p50_ns\":22000,\"p99_ns\":31000,\"per_s\":45000},"
	"\"delete\":{\"times\":1000,\"p50_ns\":20000,\"p99_ns\":30000,\"per_s\":50000}}],"
	"\"cells\":[{\"pattern\":\"eth / ipv4 / udp\",\"actions\":\"mark + count\","
	"\"kind\":\"ipv4/udp\",\"level\":\"works\"},"
	"{\"pattern\":\"eth / ipv4 / tcp\",\"actions\":\"mark\",\"kind\":\"ipv4/tcp\","
	"\"level\":\"accepts\"},"
	"{\"pattern\":\"eth / ipv6 / udp\",\"actions\":\"drop\",\"kind\":\"ipv6/udp\","
	"\"level\":\"works\"}]}";

static const struct known_key key = {"net_x", "7.1", "DPDK 22.11", "a=1"};

struct place {
	char top[64], directory[128];
	json_t *report;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	snprintf(place->top, sizeof(place->top), "/tmp/known-XXXXXX");
	assert_non_null(mkdtemp(place->top));
	snprintf(place->directory, sizeof(place->directory), "%s/some/where", place->top);
	place->report = json_loads(report_text, 0, NULL);
	assert_non_null(place->report);
	*state = place;
	return 0;
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
	(void)about;
	(void)type;
	(void)where;
	return remove(path);
}

static int tear_down(void **state)
{
	struct place *place = *state;

	nftw(place->top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	json_decref(place->report);
	free(place);
	return 0;
}

static void what_was_stored_is_known(void **state)
{
	struct place *place = *state;
	struct known known;
	struct error error;

	assert_int_equal(known_load(&known, place->directory, &key, &error), -ENOENT);
	assert_int_equal(known_store(place->report, place->directory, &error), 0);
	assert_int_equal(known_load(&known, place->directory, &key, &error), 0);
	assert_string_equal(known.time, "2026-11-23T04:20:00Z");
	assert_string_equal(known.back_end, "rte_flow");
	assert_true(known.sized);
	assert_true(known.full);
	assert_int_equal(known.rules, 7168);
	assert_int_equal(known.inserts_per_s, 45000);
	assert_int_equal(known.deletes_per_s, 50000);
	assert_int_equal(known.insert_p50_ns, 22000);
	assert_int_equal(known.insert_p99_ns, 31000);
	assert_int_equal(known.delete_p50_ns, 20000);
	assert_int_equal(known.delete_p99_ns, 30000);
	assert_int_equal(known.mark_bits, 24);
	assert_true(known.counts);
	for (unsigned i = 0; i < PROVIDER_N_KINDS; i++)
		assert_int_equal(known.works[i], i == PROVIDER_IPV4_UDP);
}

static void another_card_is_not_known(void **state)
{
	struct known_key others[] = {key, key, key, key};
	struct place *place = *state;
	struct known known;
	struct error error;

	others[0].driver[0] = 'm';
	others[1].firmware[0] = '8';
	others[2].dpdk[6] = '3';
	others[3].arguments[2] = '2';
	assert_int_equal(known_store(place->report, place->directory, &error), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(known_load(&known, place->directory, &others[i], &error), -ENOENT);
}

/* By chance, or by somebody's copy. */
static void a_file_of_another_card_is_not_believed(void **state)
{
	struct known_key other = key;
	char from[PATH_MAX], to[PATH_MAX];
	struct place *place = *state;
	struct known known;
	struct error error;

	other.firmware[0] = '8';
	assert_int_equal(known_store(place->report, place->directory, &error), 0);
	assert_int_equal(known_path(from, sizeof(from), place->directory, &key), 0);
	assert_int_equal(known_path(to, sizeof(to), place->directory, &other), 0);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(known_load(&known, place->directory, &other, &error), -ENOENT);
}

static void a_newer_report_replaces_the_older(void **state)
{
	struct place *place = *state;
	struct known known;
	struct error error;

	assert_int_equal(known_store(place->report, place->directory, &error), 0);
	json_object_set_new(place->report, "time", json_string("2027-01-01T00:00:00Z"));
	json_object_set_new(place->report, "firmware", json_null());
	assert_int_equal(known_store(place->report, place->directory, &error), 0);
	assert_int_equal(known_load(&known, place->directory, &key, &error), 0);
	assert_string_equal(known.time, "2026-11-23T04:20:00Z");
	/* a driver that tells no firmware is one more card */
	struct known_key silent = key;

	memset(silent.firmware, 0, sizeof(silent.firmware));
	assert_int_equal(known_load(&known, place->directory, &silent, &error), 0);
	assert_string_equal(known.time, "2027-01-01T00:00:00Z");
}

/* Stores the report, and says where it is. */
static void store(const struct place *place, char path[PATH_MAX])
{
	struct error error;

	assert_int_equal(known_store(place->report, place->directory, &error), 0);
	assert_int_equal(known_path(path, PATH_MAX, place->directory, &key), 0);
}

static void damage_is_told(void **state)
{
	static const char *const texts[] = {"", "{", "[]", "7", "{\"driver\":7}", "\xff\xfe"};
	struct place *place = *state;
	char path[PATH_MAX];
	struct known known;
	struct error error;

	store(place, path);
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		fputs(texts[i], file);
		fclose(file);
		assert_int_equal(known_load(&known, place->directory, &key, &error), -EINVAL);
		assert_non_null(strstr(error.text, path));
	}
}

/* Whoever read from it would wait for a writer. */
static void what_is_no_file_is_told(void **state)
{
	struct place *place = *state;
	char path[PATH_MAX];
	struct known known;
	struct error error;

	store(place, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(known_load(&known, place->directory, &key, &error), -EINVAL);
	assert_non_null(strstr(error.text, path));
}

/* Members of other types, or none at all, are what is not known. */
static void a_report_may_lack_anything(void **state)
{
	json_t *report = json_loads(
		"{\"time\":\"t\",\"tables\":7,\"cells\":{\"a\":1},\"marks\":[]}", 0, NULL);
	struct known known;

	(void)state;
	assert_int_equal(known_read(&known, report), 0);
	assert_false(known.sized);
	assert_int_equal(known.rules, 0);
	assert_int_equal(known.mark_bits, 0);
	json_object_set_new(report, "tables",
		json_loads("[{\"rules\":-5,\"end\":\"full\",\"insert\":\"x\"}]", 0, NULL));
	assert_int_equal(known_read(&known, report), 0);
	assert_false(known.sized);
	assert_int_equal(known.inserts_per_s, 0);
	json_decref(report);
	assert_int_equal(known_read(&known, NULL), -EINVAL);
}

static void a_directory_that_cannot_be_made_is_told(void **state)
{
	struct place *place = *state;
	char path[sizeof(place->top) + 16];
	struct error error;
	FILE *file;

	snprintf(path, sizeof(path), "%s/file", place->top);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	snprintf(path, sizeof(path), "%s/file/in", place->top);
	assert_int_equal(known_store(place->report, path, &error), -ENOTDIR);
	assert_non_null(strstr(error.text, path));
}

static void the_directory_is_where_others_keep_such_things(void **state)
{
	char path[PATH_MAX];

	(void)state;
	setenv("XDG_STATE_HOME", "/x/state", 1);
	assert_int_equal(known_directory(path, sizeof(path)), 0);
	assert_string_equal(path, "/x/state/millrace");
	/* what is no absolute path is to be ignored, says the specification */
	setenv("XDG_STATE_HOME", "state", 1);
	setenv("HOME", "/x/somebody", 1);
	assert_int_equal(known_directory(path, sizeof(path)), 0);
	assert_string_equal(
		path, geteuid() == 0 ? "/var/lib/millrace" : "/x/somebody/.local/state/millrace");
	unsetenv("XDG_STATE_HOME");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_stored_is_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_card_is_not_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_file_of_another_card_is_not_believed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_newer_report_replaces_the_older, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damage_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_file_is_told, set_up, tear_down),
		cmocka_unit_test(a_report_may_lack_anything),
		cmocka_unit_test_setup_teardown(
			a_directory_that_cannot_be_made_is_told, set_up, tear_down),
		cmocka_unit_test(the_directory_is_where_others_keep_such_things),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
