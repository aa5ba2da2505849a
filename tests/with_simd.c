/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * with_simd LEVEL PROGRAM [argument...]: runs a test under a SIMD level. Where the CPU lacks the level the
 * test is skipped, by name: exit code 77, as meson has it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "packet/simd.h"

#define EXIT_SKIPPED 77

int main(int argc, char **argv)
{
	enum simd_level level;

	if (argc < 3) {
		fprintf(stderr, "usage: with_simd LEVEL PROGRAM [argument...]\n");
		return EXIT_FAILURE;
	}
	if (setenv(SIMD_VARIABLE, argv[1], 1) != 0) {
		perror("with_simd");
		return EXIT_FAILURE;
	}
	int ret = simd_choose(&level);

	if (ret == -ENOTSUP) {
		printf("skipped: this CPU lacks %s\n", argv[1]);
		return EXIT_SKIPPED;
	}
	if (ret < 0) {
		fprintf(stderr, "with_simd: no level %s\n", argv[1]);
		return EXIT_FAILURE;
	}
	execv(argv[2], &argv[2]);
	perror(argv[2]);
	return EXIT_FAILURE;
}
