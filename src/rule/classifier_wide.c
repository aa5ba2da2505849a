/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules whose match fits no tuple: all of their fields are compared. */
#include "rule/classifier_private.h"

static bool wide_equal(const struct wide *wide, const uint32_t word[WIDE_WORDS])
{
	uint32_t differs = 0;

	for (unsigned i = 0; i < WIDE_WORDS; i++)
		differs |= (word[i] & wide->mask[i]) ^ wide->value[i];
	return differs == 0;
}

bool classifier_wide_matches(
	const struct classifier *classifier, uint32_t wide, const struct classifier_header *header)
{
	const struct wide *part = &classifier->wides[wide];
	uint32_t word[WIDE_WORDS];

	wide_words(header, word);
	if (!wide_equal(part, word))
		return false;
	if (part->src_set != 0 &&
		!sets_contain(&classifier->sets, part->src_set, header->version, header->src))
		return false;
	return part->dst_set == 0 ||
	       sets_contain(&classifier->sets, part->dst_set, header->version, header->dst);
}
