/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/file_uses.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

/* Two of them fit into a line that says what is wrong. */
#define WORD_MAX 160

static void add(struct file_uses *uses, const struct file_use *use)
{
	if (uses->n < FILE_USES_MAX)
		uses->use[uses->n++] = *use;
}

void file_uses_read(struct file_uses *uses, const char *option, const char *path)
{
	if (path != NULL)
		add(uses, &(struct file_use){.option = option, .value = path, .path = path});
}

static void add_written(
	struct file_uses *uses, const char *option, const char *value, const char *path)
{
	add(uses, &(struct file_use){.option = option,
			  .value = value,
			  .path = strcmp(path, "-") == 0 ? NULL : path,
			  .written = true});
}

void file_uses_write(struct file_uses *uses, const char *option, const char *path)
{
	if (path != NULL)
		add_written(uses, option, path, path);
}

void file_uses_export(struct file_uses *uses, const char *option, const struct exports *exports)
{
	for (unsigned i = 0; i < exports->n; i++) {
		const struct export_target *target = &exports->targets[i];

		if (target->transport == EXPORT_FILE)
			add_written(uses, option, target->text, target->path);
	}
}

/*
 * Where a path leads. Of a file that is not there yet that is the path with everything resolved that is there: the GNU C
 * library leaves it in `real`, also at the far end of a symbolic link.
 */
static bool resolve(const char *path, char real[PATH_MAX])
{
	return realpath(path, real) != NULL || errno == ENOENT;
}

bool file_uses_are_same(const char *a, const char *b)
{
	char a_real[PATH_MAX], b_real[PATH_MAX];
	struct stat a_stat, b_stat;

	if (a == NULL && b == NULL)
		return true;
	a = a != NULL ? a : "/dev/stdout";
	b = b != NULL ? b : "/dev/stdout";

	const bool a_is = stat(a, &a_stat) == 0, b_is = stat(b, &b_stat) == 0;

	/* terminals and devices like /dev/null take everything from everybody */
	if (a_is && b_is)
		return (S_ISREG(a_stat.st_mode) || S_ISFIFO(a_stat.st_mode)) &&
		       a_stat.st_dev == b_stat.st_dev && a_stat.st_ino == b_stat.st_ino;
	return !a_is && !b_is && resolve(a, a_real) && resolve(b, b_real) &&
	       strcmp(a_real, b_real) == 0;
}

static int refuse(const struct file_use *a, const struct file_use *b, struct error *error)
{
	char a_word[WORD_MAX], b_word[WORD_MAX];
	const struct file_use *out = a->written ? a : b, *other = a->written ? b : a;

	text_printable(a_word, sizeof(a_word), out->value);
	text_printable(b_word, sizeof(b_word), other->value);
	if (other->written)
		return error_set(error, -EINVAL,
			"%s %s and %s %s write to the same place: records would be mixed",
			out->option, a_word, other->option, b_word);
	return error_set(error, -EINVAL, "%s %s: this is the file that %s %s reads", out->option,
		a_word, other->option, b_word);
}

int file_uses_check(const struct file_uses *uses, struct error *error)
{
	for (unsigned i = 0; i < uses->n; i++) {
		for (unsigned j = i + 1; j < uses->n; j++) {
			const struct file_use *a = &uses->use[i], *b = &uses->use[j];

			if ((a->written || b->written) && file_uses_are_same(a->path, b->path))
				return refuse(a, b, error);
		}
	}
	return 0;
}
