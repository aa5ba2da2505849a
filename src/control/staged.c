/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/staged.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"

void staged_drop(struct control_staged *staged)
{
	free(staged->text);
	*staged = (struct control_staged){0};
}

int staged_add(
	struct answer *answer, const char *text, size_t most, const char *what, struct error *error)
{
	struct control_staged *staged = answer->staged;
	const size_t length = strlen(text);
	json_t *line;

	if (staged->length + length > most)
		return error_set(error, -EFBIG, "%s: %s", answer->verb->ask, what);
	if (staged->length + length > staged->room) {
		const size_t room = 2 * (staged->length + length);
		char *larger = realloc(staged->text, room);

		if (larger == NULL)
			return control_silent(error, -ENOMEM, answer->verb->ask);
		staged->text = larger;
		staged->room = room;
	}
	memcpy(staged->text + staged->length, text, length);
	staged->length += length;
	line = json_object();
	answer_number(line, "bytes", staged->length);
	int ret = answer_add(answer, line);

	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}
