/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "main/service.h"

/* A manager's socket, in the abstract name space: nothing is left behind. */
static int manager = -1;

static int listen_as_manager(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char name[64];

	(void)state;
	snprintf(name, sizeof(name), "@millrace-test-%d", getpid());
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name + 1);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (manager < 0 ||
		bind(manager, (struct sockaddr *)&address,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))) < 0)
		return -1;
	return setenv("NOTIFY_SOCKET", name, 1);
}

static int close_manager(void **state)
{
	(void)state;
	close(manager);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return 0;
}

static const char *heard(void)
{
	static char text[2048];
	ssize_t n = recv(manager, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void test_states(void **state)
{
	const char *text;

	(void)state;
	service_ready("%u wires", 2);
	assert_string_equal(heard(), "READY=1\nSTATUS=2 wires\n");
	service_status("records are being lost");
	assert_string_equal(heard(), "STATUS=records are being lost\n");
	service_reloading();
	text = heard();
	assert_int_equal(strncmp(text, "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
	assert_true(strtoull(text + 27, NULL, 10) > 0);
	service_stopping("flows are being reported");
	assert_string_equal(heard(), "STOPPING=1\nSTATUS=flows are being reported\n");
	service_alive();
	assert_string_equal(heard(), "WATCHDOG=1");
	assert_string_equal(heard(), "");
}

/* A status cannot say more than a status, and not too much of that. */
static void test_odd_status(void **state)
{
	char name[1000];

	(void)state;
	service_status("%s", "a\nMAINPID=1");
	assert_string_equal(heard(), "STATUS=a?MAINPID=1\n");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	service_status("%s", name);
	assert_true(strlen(heard()) < 300);
}

static void test_watchdog(void **state)
{
	char pid[32];

	(void)state;
	assert_int_equal(service_watchdog_interval_us(), 0);
	setenv("WATCHDOG_USEC", "30000000", 1);
	assert_int_equal(service_watchdog_interval_us(), 15000000);
	/* meant for another process */
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(service_watchdog_interval_us(), 0);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(service_watchdog_interval_us(), 15000000);
	setenv("WATCHDOG_USEC", "soon", 1);
	assert_int_equal(service_watchdog_interval_us(), 0);
}

/* Started by hand: nobody is told anything, and nobody minds. */
static void test_no_manager(void **state)
{
	(void)state;
	unsetenv("NOTIFY_SOCKET");
	service_ready("here");
	service_alive();
	service_stopping("gone");
	assert_string_equal(heard(), "");
	setenv("NOTIFY_SOCKET", "/no/such/socket", 1);
	service_ready("here");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_states, listen_as_manager, close_manager),
		cmocka_unit_test_setup_teardown(test_odd_status, listen_as_manager, close_manager),
		cmocka_unit_test_setup_teardown(test_watchdog, listen_as_manager, close_manager),
		cmocka_unit_test_setup_teardown(test_no_manager, listen_as_manager, close_manager),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
