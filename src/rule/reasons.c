/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/reasons.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapping.h"
#include "packet/hash.h"

struct reason {
	uint32_t uses; /* 0: free */
	uint32_t next; /* in its bucket, or among the free ones */
	uint16_t length;
	char text[REASON_MAX];
};

static_assert(sizeof(struct reason) == 128, "two lines each");

struct reasons {
	uint32_t max, count, n_buckets;
	uint32_t free;	/* the first of those that were released */
	uint32_t begun; /* numbers below were in use at some time */
	uint64_t seed;
	size_t size;
	struct reason *reasons; /* by number, the first one unused */
	uint32_t *buckets;
};

static uint32_t reason_bucket(const struct reasons *reasons, const char *text, size_t length)
{
	uint64_t hash = reasons->seed ^ length, word;

	for (; length >= sizeof(word); text += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		hash = hash_fold(hash ^ word, UINT64_C(0x9e3779b97f4a7c15));
	}
	word = 0;
	memcpy(&word, text, length);
	hash = hash_fold(hash ^ word, reasons->seed | 1);
	return (uint32_t)hash & (reasons->n_buckets - 1);
}

int reasons_create(struct reasons **reasons, uint32_t max, uint64_t seed)
{
	if (max >= UINT32_C(1) << 24)
		return -EINVAL;
	struct reasons *created = calloc(1, sizeof(*created));

	if (!created)
		return -ENOMEM;
	created->max = max;
	created->seed = seed;
	created->begun = 1;
	created->n_buckets = 1;
	while (created->n_buckets < max)
		created->n_buckets *= 2;
	size_t texts = ((size_t)max + 1) * sizeof(struct reason);

	created->size = texts + created->n_buckets * sizeof(uint32_t);
	created->reasons = mapping_create(created->size, MAPPING_HUGE | MAPPING_POPULATE);
	if (!created->reasons) {
		int code = -errno;

		free(created);
		return code;
	}
	created->buckets = (uint32_t *)((char *)created->reasons + texts);
	*reasons = created;
	return 0;
}

void reasons_destroy(struct reasons *reasons)
{
	if (!reasons)
		return;
	mapping_destroy(reasons->reasons, reasons->size);
	free(reasons);
}

size_t reasons_memory(const struct reasons *reasons)
{
	return sizeof(*reasons) + reasons->size;
}

static uint32_t find(
	const struct reasons *reasons, const char *text, size_t length, uint32_t bucket)
{
	uint32_t number = reasons->buckets[bucket];

	while (number != 0) {
		const struct reason *reason = &reasons->reasons[number];

		if (reason->length == length && memcmp(reason->text, text, length) == 0)
			break;
		number = reason->next;
	}
	return number;
}

uint32_t reasons_find(const struct reasons *reasons, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	return length == 0 ? 0 : find(reasons, text, length, reason_bucket(reasons, text, length));
}

int reasons_take(struct reasons *reasons, const char *text, uint32_t *number)
{
	size_t length = text ? strlen(text) : 0;

	*number = 0;
	if (length == 0)
		return 0;
	uint32_t bucket = reason_bucket(reasons, text, length);
	uint32_t found = find(reasons, text, length, bucket);

	if (found == 0) {
		if (reasons->count == reasons->max)
			return -ENOSPC;
		found = reasons->free != 0 ? reasons->free : reasons->begun++;
		struct reason *reason = &reasons->reasons[found];

		if (found == reasons->free)
			reasons->free = reason->next;
		reason->length = (uint16_t)length;
		memcpy(reason->text, text, length + 1);
		reason->next = reasons->buckets[bucket];
		reasons->buckets[bucket] = found;
		reasons->count++;
	}
	reasons->reasons[found].uses++;
	*number = found;
	return 0;
}

void reasons_release(struct reasons *reasons, uint32_t number)
{
	if (number == 0 || --reasons->reasons[number].uses > 0)
		return;
	struct reason *reason = &reasons->reasons[number];
	uint32_t *at = &reasons->buckets[reason_bucket(reasons, reason->text, reason->length)];

	while (*at != number)
		at = &reasons->reasons[*at].next;
	*at = reason->next;
	reason->next = reasons->free;
	reasons->free = number;
	reasons->count--;
}

const char *reasons_text(const struct reasons *reasons, uint32_t number)
{
	return number == 0 ? NULL : reasons->reasons[number].text;
}

uint32_t reasons_uses(const struct reasons *reasons, uint32_t number)
{
	return number == 0 ? 0 : reasons->reasons[number].uses;
}

uint32_t reasons_count(const struct reasons *reasons)
{
	return reasons->count;
}

uint32_t reasons_room(const struct reasons *reasons)
{
	return reasons->max - reasons->count;
}
