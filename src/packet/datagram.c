/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/datagram.h"

#include "packet/words.h"

uint64_t datagram_fingerprint(const struct hash_secret *secret, const struct packet_info *info)
{
	const struct flow_key *key = &info->key;
	struct address src = address_load(key->addr[info->from]);
	struct address dst = address_load(key->addr[!info->from]);
	uint64_t word[5] = {
		src.word[0],
		src.word[1],
		dst.word[0],
		dst.word[1],
		/*
		 * Not the key's protocol: a first fragment's is that behind the extension headers.
		 * RFC 791's is in the fragment_id, and RFC 8200 section 4.5 wants none.
		 */
		key_tail(info->fragment_id, key->zone, 0, key->version_wire),
	};

	return hash_words(secret, word);
}
