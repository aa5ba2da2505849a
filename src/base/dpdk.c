/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/dpdk.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>

/* EAL tries no more names for its socket. */
#define TELEMETRY_MAX 20

/* EAL is there once in a process. */
static bool started;

/* The processors that we may use, as EAL writes a set: "(0,1,5)". */
static void allowed_processors(char *text, size_t size)
{
	cpu_set_t allowed;
	size_t used = 0;

	CPU_ZERO(&allowed);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		CPU_SET(0, &allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE && used + 8 < size; cpu++) {
		if (CPU_ISSET(cpu, &allowed))
			used += (size_t)snprintf(
				&text[used], size - used, "%c%d", used == 0 ? '(' : ',', cpu);
	}
	snprintf(&text[used], size - used, ")");
}

/* Megabytes of hugepages of the default size that nobody uses. */
static unsigned long free_hugepages(void)
{
	unsigned long pages = 0, kilobytes = 0;
	char line[128];
	FILE *meminfo = fopen("/proc/meminfo", "re");

	while (meminfo != NULL && fgets(line, sizeof(line), meminfo) != NULL) {
		(void)sscanf(line, "HugePages_Free: %lu", &pages);
		(void)sscanf(line, "Hugepagesize: %lu", &kilobytes);
	}
	if (meminfo != NULL)
		(void)fclose(meminfo);
	return pages * kilobytes / 1024;
}

/* What EAL prints to standard error while it starts: some of it goes there past its log. */
struct said {
	int fd, before; /* -1: it is not kept */
	char text[4096];
};

static void said_begin(struct said *said)
{
	said->text[0] = '\0';
	said->fd = memfd_create("said", MFD_CLOEXEC);
	said->before = said->fd < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (said->before >= 0)
		(void)dup2(said->fd, STDERR_FILENO);
}

static void said_end(struct said *said)
{
	fflush(stderr);
	if (said->before >= 0) {
		ssize_t n = pread(said->fd, said->text, sizeof(said->text) - 1, 0);

		said->text[n > 0 ? n : 0] = '\0';
		(void)dup2(said->before, STDERR_FILENO);
		close(said->before);
	}
	if (said->fd >= 0)
		close(said->fd);
}

/* Of what EAL said while it did not start: the first thing that went wrong. "": nothing. */
static const char *said_cause(struct said *said)
{
	static const char fatal[] = "FATAL: ", prefix[] = "EAL: ";
	const char *last = "";
	char *rest = NULL;

	for (char *line = strtok_r(said->text, "\n", &rest); line != NULL;
		line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, prefix, strlen(prefix)) == 0)
			line += strlen(prefix);
		if (strncmp(line, fatal, strlen(fatal)) != 0 && *line != '\0')
			return line;
		/* the step that failed, twice */
		last = *line == '\0' ? last : line + strlen(fatal);
	}
	return last;
}

static void said_tell(struct said *said)
{
	char *rest = NULL;

	for (char *line = strtok_r(said->text, "\n", &rest); line != NULL;
		line = strtok_r(NULL, "\n", &rest))
		fprintf(stderr, "millrace: DPDK: %s\n", line);
}

static int start_eal(int n, const char **argv, struct error *error)
{
	struct said said;

	/* a limit of files' sizes is an error like others; what it would kill has files of its own to remove */
	(void)signal(SIGXFSZ, SIG_IGN);
	said_begin(&said);
	/* EAL only moves the pointers about */
	int ret = rte_eal_init(n, (char **)(uintptr_t)argv),
	    code = rte_errno != 0 ? rte_errno : EIO;

	said_end(&said);
	if (ret >= 0) {
		said_tell(&said);
		started = true;
		return 0;
	}
	const char *cause = said_cause(&said);

	return error_set(error, -code, "DPDK does not start: %s%s%s%s",
		*cause != '\0' ? cause : strerror(code), *cause != '\0' ? " (" : "",
		*cause != '\0' ? strerror(code) : "", *cause != '\0' ? ")" : "");
}

int dpdk_start_for(const struct dpdk_needs *needs, struct error *error)
{
	char processors[2048];
	char lcores[sizeof(processors) + 2];
	char memory[16];
	bool huge = needs->hugepages && free_hugepages() >= needs->megabytes;
	/* the prefix names the directory of the telemetry socket */
	const char *argv[16 + 2 * DPDK_MAX_PCI] = {"millrace",
		needs->telemetry ? "--file-prefix=millrace" : "--no-telemetry",
		"--log-level=*:error"};
	int n = 3;

	if (needs->n_pci != 0 && !huge)
		return error_set(error, -ENOMEM,
			"PCI ports need %u MB of free hugepages (as root: sysctl "
			"vm.nr_hugepages=%u)",
			needs->megabytes, needs->megabytes / 2 + 1);
	/* One lcore, free to run wherever we may: EAL would pin it, and all of us to the same. */
	allowed_processors(processors, sizeof(processors));
	snprintf(lcores, sizeof(lcores), "0@%s", processors);
	snprintf(memory, sizeof(memory), "%u", needs->megabytes);
	argv[n++] = "--lcores";
	argv[n++] = lcores;
	if (huge) {
		argv[n++] = "--in-memory";
	} else {
		argv[n++] = "--no-huge";
		argv[n++] = "--no-shconf";
		argv[n++] = "-m";
		argv[n++] = memory;
	}
	if (needs->n_pci == 0)
		argv[n++] = "--no-pci";
	for (unsigned i = 0; i < needs->n_pci; i++) {
		argv[n++] = "-a";
		argv[n++] = needs->pci[i];
	}

	return start_eal(n, argv, error);
}

int dpdk_start(unsigned megabytes, struct error *error)
{
	const struct dpdk_needs needs = {.megabytes = megabytes};

	return dpdk_start_for(&needs, error);
}

/* Whether who answers there is this process: it says so in its greeting. */
static bool is_our_telemetry(const struct sockaddr_un *address)
{
	const struct timeval patience = {.tv_sec = 1};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char greeting[1024], ours[32];
	ssize_t n = -1;

	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		n = read(fd, greeting, sizeof(greeting) - 1);
	close(fd);
	if (n <= 0)
		return false;
	greeting[n] = '\0';
	snprintf(ours, sizeof(ours), "\"pid\":%ld,", (long)getpid());
	return strstr(greeting, ours) != NULL;
}

int dpdk_telemetry_socket(char *path, size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	for (unsigned i = 0; i < TELEMETRY_MAX; i++) {
		char number[16] = "";

		if (i > 0)
			snprintf(number, sizeof(number), ":%u", i);
		int n = snprintf(address.sun_path, sizeof(address.sun_path),
			"%s/dpdk_telemetry.v2%s", rte_eal_get_runtime_dir(), number);

		if (n >= (int)sizeof(address.sun_path))
			return -ENOENT;
		if (!is_our_telemetry(&address))
			continue;
		snprintf(path, size, "%s", address.sun_path);
		return 0;
	}
	return -ENOENT;
}

void dpdk_stop(void)
{
	/* of what never started EAL would print that it cannot take it down */
	if (started)
		rte_eal_cleanup();
	started = false;
}
