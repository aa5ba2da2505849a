/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* "Did you mean ...?": the known word that is nearest to one that is not known. */

/*
 * Returns the candidate that takes the fewest changes (a letter more, less, another, or two
 * neighbours swapped), or NULL when none is near enough to be what was meant. The last part of a single one
 * of them, behind a '-', means that one.
 */
const char *suggest(const char *word, const char *const *candidates, unsigned n);
