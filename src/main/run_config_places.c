/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_config_places.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/text.h"

/* A whole configuration has some 250 places in three levels. */
#define MAX_PLACES 1024
#define MAX_DEPTH 6

#define NAME_MAX_PRINTED 128

struct place {
	char *key;	 /* in a mapping; NULL: an entry of a list */
	unsigned number; /* in a list */
	unsigned parent;
	unsigned line;
};

struct run_places {
	char name[NAME_MAX_PRINTED];
	unsigned n;
	struct place place[MAX_PLACES]; /* the first is the whole file */
};

/* A mapping or list that the pass is in. */
struct level {
	bool mapping;
	unsigned place;
	unsigned n;    /* entries so far, of a list */
	bool keyed;    /* the key has come, its value not yet */
	unsigned next; /* place of that key */
};

struct pass {
	struct run_places *places;
	struct level level[MAX_DEPTH];
	unsigned depth;
	unsigned n_documents;
	struct error *error;
};

static void write_path(const struct run_places *places, unsigned number, char path[RUN_PATH_MAX])
{
	const struct place *place = &places->place[number];
	char key[RUN_KEY_MAX];

	path[0] = '\0';
	if (number == 0)
		return;
	write_path(places, place->parent, path);
	size_t length = strlen(path);

	if (place->key)
		snprintf(path + length, RUN_PATH_MAX - length, "%s%s", length > 0 ? "." : "",
			text_printable(key, sizeof(key), place->key));
	else
		snprintf(path + length, RUN_PATH_MAX - length, "[%u]", place->number);
}

/* "FILE:LINE: PATH: text" */
static int places_refuse(struct pass *pass, unsigned number, unsigned line, const char *text)
{
	char path[RUN_PATH_MAX];

	write_path(pass->places, number, path);
	return error_set(pass->error, -EBADMSG, "%s:%u: %s%s%s", pass->places->name, line, path,
		*path ? ": " : "", text);
}

static int add_place(
	struct pass *pass, const struct level *level, const char *key, unsigned line, unsigned *out)
{
	struct run_places *places = pass->places;
	struct place *place = &places->place[places->n];

	if (places->n == MAX_PLACES)
		return places_refuse(
			pass, 0, line, "more keys and values than any configuration has");
	*place = (struct place){.parent = level->place, .number = level->n, .line = line};
	if (key) {
		place->key = strdup(key);
		if (!place->key)
			return error_set(pass->error, -ENOMEM, "no memory");
	}
	*out = places->n++;
	return 0;
}

/* A key has come. */
static int take_key(
	struct pass *pass, struct level *level, const yaml_event_t *event, unsigned line)
{
	const struct run_places *places = pass->places;
	char text[64];

	if (event->type != YAML_SCALAR_EVENT)
		return places_refuse(pass, level->place, line, "a key must be one word");
	const char *key = (const char *)event->data.scalar.value;

	if (strlen(key) != event->data.scalar.length)
		return places_refuse(pass, level->place, line, "a key with a zero byte");
	for (unsigned i = 1; i < places->n; i++) {
		const struct place *other = &places->place[i];

		if (other->parent != level->place || strcmp(other->key, key) != 0)
			continue;
		snprintf(text, sizeof(text), "said twice, first in line %u", other->line);
		return places_refuse(pass, i, line, text);
	}
	level->keyed = true;
	return add_place(pass, level, key, line, &level->next);
}

static int enter(struct pass *pass, unsigned place, unsigned line, bool mapping)
{
	if (pass->depth == MAX_DEPTH)
		return places_refuse(pass, place, line, "nested too deeply");
	pass->level[pass->depth++] = (struct level){.mapping = mapping, .place = place};
	return 0;
}

/* A key, or a value of any kind. */
static int take_node(struct pass *pass, const yaml_event_t *event)
{
	unsigned line = (unsigned)event->start_mark.line + 1, place = 0;
	int ret = 0;

	if (pass->depth > 0) {
		struct level *level = &pass->level[pass->depth - 1];

		if (level->mapping && !level->keyed)
			return take_key(pass, level, event, line);
		if (level->mapping) {
			level->keyed = false;
			place = level->next;
		} else {
			ret = add_place(pass, level, NULL, line, &place);
			level->n++;
		}
		if (ret < 0)
			return ret;
	} else {
		pass->places->place[0].line = line;
	}
	if (event->type != YAML_SCALAR_EVENT)
		return enter(pass, place, line, event->type == YAML_MAPPING_START_EVENT);
	if (memchr(event->data.scalar.value, '\0', event->data.scalar.length))
		return places_refuse(pass, place, line, "a zero byte in the value");
	return 0;
}

static int take_event(struct pass *pass, const yaml_event_t *event)
{
	unsigned line = (unsigned)event->start_mark.line + 1;

	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (pass->n_documents++ > 0)
			return places_refuse(
				pass, 0, line, "a second document; there can be one only");
		return 0;
	case YAML_ALIAS_EVENT:
		return places_refuse(
			pass, 0, line, "aliases (*NAME) are not known here: write it out");
	case YAML_SCALAR_EVENT:
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		return take_node(pass, event);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		pass->depth--;
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
	default:
		return 0;
	}
}

static int not_yaml(const struct pass *pass, const yaml_parser_t *parser)
{
	const char *name = pass->places->name;
	const char *problem = parser->problem ? parser->problem : "unknown";

	if (parser->error == YAML_MEMORY_ERROR)
		return error_set(pass->error, -ENOMEM, "%s: no memory", name);
	if (parser->error == YAML_READER_ERROR)
		return error_set(pass->error, -EBADMSG, "%s: not YAML: %s (byte %zu)", name,
			problem, parser->problem_offset + 1);
	return error_set(pass->error, -EBADMSG, "%s:%zu: not YAML: %s", name,
		parser->problem_mark.line + 1, problem);
}

static int walk(struct pass *pass, yaml_parser_t *parser)
{
	bool end = false;
	int ret = 0;

	while (ret == 0 && !end) {
		yaml_event_t event;

		if (!yaml_parser_parse(parser, &event))
			return not_yaml(pass, parser);
		ret = take_event(pass, &event);
		end = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	return ret;
}

int run_places_read(struct run_places **out, const char *name, const char *bytes, size_t size,
	struct error *error)
{
	struct run_places *places = calloc(1, sizeof(*places));
	struct pass pass = {.places = places, .error = error};
	yaml_parser_t parser;

	if (!places || !yaml_parser_initialize(&parser)) {
		free(places);
		return error_set(error, -ENOMEM, "no memory");
	}
	text_printable(places->name, sizeof(places->name), name);
	places->n = 1;
	yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, size);
	int ret = walk(&pass, &parser);

	yaml_parser_delete(&parser);
	if (ret < 0) {
		run_places_destroy(places);
		return ret;
	}
	*out = places;
	return 0;
}

void run_places_destroy(struct run_places *places)
{
	if (!places)
		return;
	for (unsigned i = 0; i < places->n; i++)
		free(places->place[i].key);
	free(places);
}

unsigned run_places_line(const struct run_places *places, const char *path)
{
	char other[RUN_PATH_MAX];

	for (unsigned i = 0; i < places->n; i++) {
		write_path(places, i, other);
		if (strcmp(other, path) == 0 && places->place[i].line != 0)
			return places->place[i].line;
	}
	return 0;
}

const char *run_places_where(
	const struct run_places *places, const char *path, char where[RUN_WHERE_MAX])
{
	const unsigned number = run_places_line(places, path);
	char line[16] = "";

	if (number != 0)
		snprintf(line, sizeof(line), "%u:", number);
	snprintf(where, RUN_WHERE_MAX, "%s:%s%s%s%s", places->name, line, *path ? " " : "", path,
		*path ? ":" : "");
	return where;
}
