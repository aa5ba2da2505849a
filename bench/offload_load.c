/* SPDX-License-Identifier: BSD-3-Clause */
/* The loads of the founding experiment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pcap/pcap.h>
#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include "bench/offload.h"

#define IMIX_UDP 1194
#define IMIX_SCTP 1
#define TCP_FLOWS 1194
#define ZIPF_FLOWS 1000000
#define SEED 17
#define SNAPLEN 65535

#define TCP_SYN 0x02
#define TCP_ACK 0x10

const char *const offload_loads[] = {"imix", "tcp64", "zipf", NULL};

static const struct {
	const char *what;
	uint32_t flows;
} loads[OFFLOAD_N_LOADS + 1] = {
	{"2 x 1,194 UDP and 2 SCTP flows, 64 to 1,518 bytes (7:4:1)", IMIX_UDP + IMIX_SCTP},
	{"SYN one way, SYN-ACK the other, 64 bytes, 1,194 flows", TCP_FLOWS},
	{"UDP, 64 bytes, a million flows by Zipf's law", ZIPF_FLOWS},
	[OFFLOAD_N_LOADS] = {"UDP both ways, 64 bytes, 1,194 flows", TCP_FLOWS},
};

/*
 * A frame of TCP over IPv4 becomes a SYN of side 0, or of side 1 the SYN-ACK that acknowledges it. Its data is padding
 * then: who opens a connection sends none.
 */
static void make_handshake(uint8_t *frame, unsigned side)
{
	struct rte_ipv4_hdr *ip = (void *)(frame + sizeof(struct rte_ether_hdr));
	struct rte_tcp_hdr *tcp = (void *)(ip + 1);

	ip->total_length = rte_cpu_to_be_16(sizeof(*ip) + sizeof(*tcp));
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	tcp->tcp_flags = side == 0 ? TCP_SYN : TCP_SYN | TCP_ACK;
	tcp->recv_ack = side == 0 ? 0 : rte_cpu_to_be_32(rte_be_to_cpu_32(tcp->recv_ack) + 1);
	tcp->cksum = 0;
	tcp->cksum = rte_ipv4_udptcp_cksum(ip, tcp);
}

static int write_set(pcap_dumper_t *dump, const struct stream_config *config, unsigned side,
	bool handshake, struct error *error)
{
	struct pcap_pkthdr header = {.ts = {.tv_sec = 0}};
	uint8_t frame[STREAM_MAX_BYTES];
	struct stream_set *set;
	int ret = stream_set_create(&set, config, error);

	if (ret < 0)
		return ret;
	for (uint32_t flow = 0; flow < config->flows; flow++) {
		header.len = header.caplen = stream_frame(set, 2 * flow + side, frame);
		if (handshake)
			make_handshake(frame, side);
		pcap_dump((u_char *)dump, &header, frame);
	}
	stream_set_destroy(set);
	return 0;
}

static int write_side(
	const struct offload_load *load, pcap_dumper_t *dump, unsigned side, struct error *error)
{
	const struct stream_config udp = {.flows = IMIX_UDP, .seed = SEED, .imix = true};
	const struct stream_config sctp = {.flows = IMIX_SCTP,
		.seed = SEED,
		.proto_share = {[STREAM_SCTP] = 256},
		.size_min = 594};
	const struct stream_config tcp = {
		.flows = TCP_FLOWS, .seed = SEED, .proto_share = {[STREAM_TCP] = 256}};
	const struct stream_config udp64 = {.flows = TCP_FLOWS, .seed = SEED};

	if (strcmp(load->name, "tcp64") == 0)
		return write_set(dump, &tcp, side, true, error);
	if (strcmp(load->name, OFFLOAD_UDP64) == 0)
		return write_set(dump, &udp64, side, false, error);
	int ret = write_set(dump, &udp, side, false, error);

	return ret < 0 ? ret : write_set(dump, &sctp, side, false, error);
}

static int write_capture(struct offload_load *load, unsigned side, struct error *error)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, SNAPLEN);
	int ret = -EIO;

	if (pcap == NULL)
		return error_set(error, -ENOMEM, "no memory for a capture");
	pcap_dumper_t *dump = pcap_dump_open(pcap, load->capture[side]);

	if (dump == NULL)
		error_set(error, ret, "%s: %s", load->capture[side], pcap_geterr(pcap));
	else
		ret = write_side(load, dump, side, error);
	if (dump != NULL)
		pcap_dump_close(dump);
	pcap_close(pcap);
	return ret;
}

int offload_load_init(struct offload_load *load, const char *name, struct error *error)
{
	const char *place = getenv("TMPDIR");
	unsigned which = 0;
	int ret = 0;

	while (which < OFFLOAD_N_LOADS && strcmp(offload_loads[which], name) != 0)
		which++;
	*load = (struct offload_load){
		.name = name,
		.what = loads[which].what,
		.flows = loads[which].flows,
		.load = SEQUENCE_ZIPF,
		.streams = strcmp(name, "zipf") == 0,
	};
	if (load->streams)
		return 0;
	snprintf(load->directory, sizeof(load->directory), "%.40s/millrace-XXXXXX",
		place == NULL ? "/tmp" : place);
	if (mkdtemp(load->directory) == NULL)
		return error_set(error, -errno, "%s: %s", load->directory, strerror(errno));
	for (unsigned side = 0; ret == 0 && side < 2; side++) {
		snprintf(load->capture[side], sizeof(load->capture[side]), "%s/%s.pcap",
			load->directory, side == 0 ? "forward" : "reverse");
		ret = write_capture(load, side, error);
	}
	return ret;
}

void offload_load_fini(struct offload_load *load)
{
	for (unsigned side = 0; side < 2; side++)
		if (load->capture[side][0] != '\0')
			unlink(load->capture[side]);
	if (load->directory[0] != '\0')
		rmdir(load->directory);
}
