/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_inputs DIRECTORY: a fuzzer without libFuzzer, as the tests have it: runs every input below the directory,
 * whatever kind of file it was meant as, once. It finds a fuzzer that no longer builds, or no longer tells the truth.
 */
#include <ftw.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv)
	__attribute__((weak)); /* not every fuzzer has it */

static unsigned n_run;

static int run(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)place;
	if (kind != FTW_F)
		return 0;
	size_t size = (size_t)status->st_size;
	uint8_t *data =
		malloc(size + (size == 0)); /* of its exact size: a sanitizer sees the end */
	FILE *file = fopen(path, "rb");

	if (data == NULL || file == NULL || fread(data, 1, size, file) != size) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	n_run++;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return EXIT_FAILURE;
	}
	if (LLVMFuzzerInitialize != NULL && LLVMFuzzerInitialize(&argc, &argv) != 0)
		return EXIT_FAILURE;
	if (nftw(argv[1], run, 16, FTW_PHYS) != 0) {
		perror(argv[1]);
		return EXIT_FAILURE;
	}
	printf("%u inputs\n", n_run);
	return n_run > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
