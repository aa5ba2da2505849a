/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewrite_capture IN.pcap LISTS OUT.pcap: runs a list of actions over each packet of a capture.
 *
 * LISTS has a line for each packet, of actions with commas between them: "vlan-push 0x8100 7 0, set-port-dst 80,
 * decrement-ttl"; "reject usual"; "decap vxlan", "decap bytes 14", "encap" with hexadecimal digits. What goes on is written to OUT.pcap; a line of standard output says for each packet why it was
 * dropped, or "none", and the port that it goes to. Of a rejected packet the answer is written, if there is one. The first packet of three is run by what extract() says of it, the
 * second without, the third in segments of 1 to 30 bytes.
 */
#include <stdio.h>

#include <pcap/pcap.h>

#include "action/program.h"
#include "packet/reject.h"
#include "rule/words.h"
#include "unit/frames.h"

enum { ROOM_FOR_TAGS = 4 * ACTION_MAX_TAGS, LINE_MAX_BYTES = 4096 };

static const struct hash_secret secret = {.word = {1, 2, 3, 4, 5, 6}};
static const struct extract_options options = {.secret = &secret};

static _Noreturn void fail(const char *what, const char *more)
{
	fprintf(stderr, "rewrite_capture: %s: %s\n", what, more);
	exit(EXIT_FAILURE);
}

static enum action_kind kind_of(const char *word)
{
	for (unsigned kind = 0; kind < ACTION_N_KINDS; kind++)
		if (strcmp(word, action_kind_name(kind)) == 0)
			return kind;
	return ACTION_N_KINDS;
}

static bool parse_mac(const char *text, uint8_t mac[6])
{
	return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
		       &mac[4], &mac[5]) == 6;
}

static bool parse_vlan(const char *text, bool push, struct action_vlan *vlan)
{
	unsigned tpid = 0, id, priority = 0;
	int n = push ? sscanf(text, "%x %u %u", &tpid, &id, &priority) : sscanf(text, "%u", &id);

	if (n != (push ? 3 : 1))
		return false;
	*vlan = (struct action_vlan){(uint16_t)tpid, (uint16_t)id, (uint8_t)priority};
	return true;
}

static bool parse_decap(const char *text, struct action_decap *decap)
{
	static const char *const names[ACTION_N_TUNNELS] = {
		[ACTION_TUNNEL_BYTES] = "bytes",
		[ACTION_TUNNEL_VXLAN] = "vxlan",
		[ACTION_TUNNEL_NVGRE] = "nvgre",
	};
	char word[16];
	unsigned length = 0;

	if (sscanf(text, "%15s %u", word, &length) < 1)
		return false;
	for (unsigned i = 0; i < ACTION_N_TUNNELS; i++) {
		if (strcmp(word, names[i]) != 0)
			continue;
		*decap = (struct action_decap){(enum action_tunnel)i, (uint8_t)length};
		return true;
	}
	return false;
}

static bool parse_encap(const char *text, struct action_encap *encap)
{
	unsigned byte;

	for (; *text != '\0' && sscanf(text, "%2x", &byte) == 1; text += 2) {
		if (encap->length == ACTION_ENCAP_MAX)
			return false;
		encap->bytes[encap->length++] = (uint8_t)byte;
	}
	return *text == '\0';
}

static bool parse_reject(const char *text, enum reject_with *with)
{
	const struct rule_word *word = rule_word_find(rule_reject_types, text);

	if (word != NULL)
		*with = (enum reject_with)word->value;
	return word != NULL;
}

/* Reads the argument behind the word of an action. */
static bool parse_argument(struct action *action, const char *text)
{
	unsigned number = 0;
	bool has_number = sscanf(text, "%u", &number) == 1;

	switch (action->kind) {
	case ACTION_FORWARD:
	case ACTION_DROP:
	case ACTION_DECREMENT_TTL:
	case ACTION_VLAN_POP:
		return *text == '\0';
	case ACTION_REJECT:
		return parse_reject(text, &action->reject);
	case ACTION_OUTPUT:
		action->port = (uint16_t)number;
		return has_number;
	case ACTION_SET_MAC_SRC:
	case ACTION_SET_MAC_DST:
		return parse_mac(text, action->mac);
	case ACTION_VLAN_PUSH:
	case ACTION_VLAN_SET:
		return parse_vlan(text, action->kind == ACTION_VLAN_PUSH, &action->vlan);
	case ACTION_SET_IPV4_SRC:
	case ACTION_SET_IPV4_DST:
		return inet_pton(AF_INET, text, action->address) == 1;
	case ACTION_SET_IPV6_SRC:
	case ACTION_SET_IPV6_DST:
		return inet_pton(AF_INET6, text, action->address) == 1;
	case ACTION_SET_PORT_SRC:
	case ACTION_SET_PORT_DST:
		action->l4_port = rte_cpu_to_be_16((uint16_t)number);
		return has_number;
	case ACTION_SET_TTL:
		action->ttl = (uint8_t)number;
		return has_number && number <= UINT8_MAX;
	case ACTION_DECAP:
		return parse_decap(text, &action->decap);
	case ACTION_ENCAP:
		return parse_encap(text, &action->encap);
	case ACTION_NEXT_HOP:
	case ACTION_POLICE:
	case ACTION_METER:
	case ACTION_MIRROR:
	case ACTION_PUNT:
	case ACTION_DISCARD:
	case ACTION_N_KINDS:
		break;
	}
	return false;
}

static struct action_program parse_line(char *line)
{
	struct action list[ACTION_LIST_MAX];
	struct action_program program;
	struct error error;
	unsigned n = 0;
	char *rest = line;

	line[strcspn(line, "\n")] = '\0';
	for (char *part = strtok_r(line, ",", &rest); part != NULL;
		part = strtok_r(NULL, ",", &rest)) {
		char word[32];
		int end = 0;

		if (n == ACTION_LIST_MAX || sscanf(part, " %31s %n", word, &end) != 1)
			fail("no action", part);
		memset(&list[n], 0, sizeof(list[n]));
		list[n].kind = kind_of(word);
		if (!parse_argument(&list[n], part + end))
			fail("no action", part);
		n++;
	}
	if (action_program_compile(&program, list, n, &error) != 0)
		fail("list", error.text);
	return program;
}

/* The frame with so much room in front as the program may need. */
static struct rte_mbuf *mbuf_of(
	const struct action_program *program, const uint8_t *bytes, size_t length, uint32_t number)
{
	const uint16_t headroom = (uint16_t)(ROOM_FOR_TAGS + program->encap_length);
	uint32_t seed = number;
	uint16_t sizes[64];

	for (size_t i = 0; i < RTE_DIM(sizes); i++) {
		seed = seed * 1664525 + 1013904223;
		sizes[i] = (uint16_t)(1 + (seed >> 16) % 30);
	}

	struct rte_mbuf *mbuf =
		frame_mbuf_sized(bytes, length, sizes, number % 3 == 2 ? RTE_DIM(sizes) : 0);
	uint8_t *room = malloc(headroom + mbuf->data_len);

	assert(room != NULL);
	memcpy(room + headroom, mbuf->buf_addr, mbuf->data_len);
	free(mbuf->buf_addr);
	mbuf->buf_addr = room;
	mbuf->buf_len = (uint16_t)(headroom + mbuf->data_len);
	mbuf->data_off = headroom;
	return mbuf;
}

static void write_frame(pcap_dumper_t *out, const struct rte_mbuf *mbuf)
{
	struct pcap_pkthdr header = {.caplen = mbuf->pkt_len, .len = mbuf->pkt_len};
	uint8_t *bytes = malloc(mbuf->pkt_len);
	size_t at = 0;

	assert(bytes != NULL);
	for (; mbuf != NULL; mbuf = mbuf->next) {
		memcpy(bytes + at, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len);
		at += mbuf->data_len;
	}
	pcap_dump((uint8_t *)out, &header, bytes);
	free(bytes);
}

/* Writes the answer to its sender, made in a buffer that is just as large as it may be; the line says how long it is. */
static void write_answer(pcap_dumper_t *out, const struct rte_mbuf *mbuf, enum reject_with with)
{
	uint8_t *bytes = malloc(REJECT_MAX);
	struct pcap_pkthdr header = {0};

	assert(bytes != NULL);
	header.len = header.caplen = (uint32_t)reject_build(mbuf, with, bytes, REJECT_MAX);
	printf("rejected %u\n", header.len);
	if (header.len != 0)
		pcap_dump((uint8_t *)out, &header, bytes);
	free(bytes);
}

static void run_one(const struct action_program *program, const uint8_t *bytes, size_t length,
	uint32_t number, pcap_dumper_t *out)
{
	struct rte_mbuf *mbuf = mbuf_of(program, bytes, length, number);
	struct action_packet packet = {.common = false};
	struct action_context context = {0};
	struct action_answer answer;
	struct packet_info info;

	if (number % 3 != 1 && extract(&options, mbuf, 0, &info) == EXTRACT_IP)
		packet = action_packet_of(mbuf, &info);
	action_run(program, &context, mbuf, &packet, &answer);
	if (answer.drop != ACTION_DROP_REJECTED)
		printf("%s %u\n", action_drop_name(answer.drop), answer.port);
	if (answer.drop == ACTION_DROP_NONE)
		write_frame(out, mbuf);
	else if (answer.drop == ACTION_DROP_REJECTED)
		write_answer(out, mbuf, (enum reject_with)program->reject);
	frame_mbuf_free(mbuf);
}

int main(int argc, char **argv)
{
	char text[PCAP_ERRBUF_SIZE] = "", line[LINE_MAX_BYTES];
	struct pcap_pkthdr header;
	const uint8_t *bytes;

	if (argc != 4)
		fail("usage", "rewrite_capture IN.pcap LISTS OUT.pcap");

	pcap_t *in = pcap_open_offline(argv[1], text);
	FILE *lists = fopen(argv[2], "r");

	if (in == NULL || lists == NULL)
		fail(argv[in == NULL ? 1 : 2], in == NULL ? text : "can't be read");

	pcap_dumper_t *out = pcap_dump_open(in, argv[3]);

	if (out == NULL)
		fail(argv[3], pcap_geterr(in));
	for (uint32_t number = 0; (bytes = pcap_next(in, &header)) != NULL; number++) {
		if (fgets(line, sizeof(line), lists) == NULL)
			fail(argv[2], "fewer lines than packets");

		struct action_program program = parse_line(line);

		run_one(&program, bytes, header.caplen, number, out);
	}
	pcap_dump_close(out);
	pcap_close(in);
	fclose(lists);
	return EXIT_SUCCESS;
}
