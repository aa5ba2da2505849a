/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A port: one DPDK ethdev, made from what the user calls it.
 *
 * A device is one of
 *	0000:5e:00.0		a PCI address
 *	eth1			a kernel interface: af_xdp, or af_packet where that does not work
 *	net_tap0,iface=ta	any vdev, as DPDK writes it: driver and number, then its arguments
 *
 * Life-cycle: port_device_parse() for every device before EAL starts (EAL wants to know of PCI
 * addresses); port_open() probes the device and checks it; port_start() gives it its queues and lets
 * packets come; port_stop() and port_close() are its mirror. All of it belongs to the control thread,
 * but for port_restart(), which any may call; workers only use the ethdev's number and queues, and
 * read `link_up`.
 */

#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>

#include "base/error.h"
#include "base/topology.h"

#define PORT_NAME_MAX 32
#define PORT_DEVICE_MAX 256
#define PORT_MAX_QUEUES 16
#define PORT_BURST 64

enum port_device_kind {
	PORT_DEVICE_PCI,
	PORT_DEVICE_KERNEL, /* a kernel interface by its name */
	PORT_DEVICE_VDEV,
};

struct port_device {
	enum port_device_kind kind;
	char text[PORT_DEVICE_MAX];
	/* kernel interface, of KERNEL and of a vdev that names one that must exist (af_packet, af_xdp) */
	char interface[IF_NAMESIZE];
	/* the device that names it, where that is not the port's own but one below it; else "" */
	char below[PORT_DEVICE_MAX];
};

/* Says what kind of device a text names. 0 or -EINVAL with a line; the device need not exist. */
int port_device_parse(struct port_device *device, const char *text, struct error *error);

enum port_link {
	PORT_LINK_UP,
	PORT_LINK_DOWN,
	PORT_LINK_REMOVED, /* the device is gone: hot-unplugged, or the kernel interface deleted */
};

/* A line for the user, without its newline. */
typedef void (*port_warn_fn)(void *context, const char *line);

struct port_config {
	const char *name; /* what the user calls it */
	struct port_device device;
	unsigned n_queues;    /* wanted, of rx and of tx: one for each lcore that would use one */
	bool force;	      /* what stands on the interface, or is joined to it, is meant to */
	uint16_t rss_pattern; /* of port/rss.h; 0: packets are not to be spread by it */
	/* rules that may be asked for (rteflow/provider.h); 0: none ever, the port is set up as without */
	uint32_t offload_places;
};

struct port {
	/* set by port_open() */
	char name[PORT_NAME_MAX];
	struct port_device device;
	char driver[RTE_ETH_NAME_MAX_LEN]; /* "net_af_xdp" */
	uint16_t id;			   /* the ethdev */
	int socket;			   /* NUMA node, or SOCKET_ID_ANY */
	uint16_t mtu;
	uint16_t n_rx, n_tx; /* queues that it will have: 1..n_queues wanted */
	uint16_t rx_descriptors, tx_descriptors;
	bool software;	      /* a vdev that never needs IO addresses */
	uint64_t rss;	      /* bit by enum rss_kind: what it spreads symmetrically; 0: nothing */
	uint16_t rss_pattern; /* as it was configured */
	uint32_t offload_places;
	/* set by port_start(), both false without places: see struct provider_config */
	bool marks;	  /* may come: metadata */
	bool flow_queues; /* are set up: async */
	struct rte_ether_addr mac;
	char note[128]; /* one line for the user on how it was opened: "af_xdp, 1 queue" */
	/*
	 * Frames longer than the MTU says may come in by it, or its MTU may change: both ports of its wire look at the
	 * length of what they are to send. Set before the workers begin.
	 */
	bool any_length;
	uint32_t
		rx_room; /* a frame of so many bytes may have been cut by the driver; 0: it cuts none */
	struct packet_tx *packet_tx; /* af_packet's: belongs to the worker that has the tx queue */
	/* control writes, workers read */
	atomic_bool link_up;
	/* bytes of the longest frame that may go out, without check sequence, and of one with a tag (0x8100) */
	atomic_uint longest, longest_tagged;
	/* control's */
	enum port_link link;
	char interface[IF_NAMESIZE];	    /* the kernel interface, by its name of now; "": none */
	char interface_before[IF_NAMESIZE]; /* and its name before the last change */
	uint32_t speed_mbps;		    /* 0: not known */
	uint16_t far_mtu;		    /* of a veth's other end; 0: not known */
	bool started;
	/* port/'s own */
	char ethdev[RTE_ETH_NAME_MAX_LEN]; /* the device's name on its bus */
	unsigned interface_index;	   /* of the kernel interface; 0: none that must exist */
	int tap;			   /* a descriptor of the driver's tap; -1: none */
	int claim;	       /* holds the interface against other engines; negative: none */
	int promiscuous;       /* holds the interface so; -1: the driver does */
	uint16_t data_room;    /* that the driver insists on; 0: any */
	uint64_t *missed;      /* af_packet's: the driver does not count them */
	unsigned packet_frame; /* af_packet's: bytes of a frame of its rings */
	uint16_t driver_mtu;   /* that the driver was set up for */
	int asks;	       /* a socket where the kernel tells of its interface; -1: none yet */
	uint64_t dropped; /* by the kernel on the way out of the interface, before it was opened */
	struct xdp_left *left; /* what af_xdp does not close itself */
	port_warn_fn warn;     /* as port_open() was given it */
	void *warn_context;
	pthread_mutex_t
		asked; /* held while a driver is asked that another thread may stop and start */
};

/*
 * Probes and checks the device, and decides on its queues. Returns 0 or a negative errno, with one line
 * that says what to do. What is only worth a warning is printed by `warn`, a line each.
 */
int port_open(struct port **port, const struct port_config *config, port_warn_fn warn,
	void *context, struct error *error);

/* Do the two ports of a wire fit (MTU)? 0 or -EINVAL with a line. */
int port_check_wire(const struct port *a, const struct port *b, struct error *error);

/*
 * Are the two ports of a wire (`ports`: by their numbers in the topology) joined by the kernel already, as the two ends of a veth pair
 * are, or the members of a bridge? -ELOOP with a line; a warning where `force` is given.
 */
int port_check_loops(struct port *const *ports, const struct topology *topology, bool force,
	port_warn_fn warn, void *context, struct error *error);

/* How many mbufs the port keeps to itself: descriptors and what its driver takes. */
unsigned port_buffers(const struct port *port);

/* Bytes of data that an mbuf of this port's must have room for, with headroom. */
uint16_t port_data_room(const struct port *port);

/*
 * A pool of `n` mbufs, each with `priv_size` private and `data_room` bytes, on a NUMA node, packed as
 * without hugepages only software ports may have it, in memory of its own. NULL and rte_errno.
 */
struct rte_mempool *port_pool_create(const char *name, unsigned n, uint16_t priv_size,
	uint16_t data_room, int socket, bool all_software);

/* Queues set up with mbufs from `pool`, promiscuous, started. 0 or a negative errno with a line. */
int port_start(struct port *port, struct rte_mempool *pool, struct error *error);
/*
 * Stops and starts it; its queues stay, and no worker uses it meanwhile. What its driver had been told since
 * it was started, as rules, is gone. 0 or a negative errno.
 */
int port_restart(struct port *port);
/* No worker may use it any more. */
void port_stop(struct port *port);
/* Accepts NULL. Stops it first if need be, and takes the device away. */
void port_close(struct port *port);

/*
 * Asks for the link, whether the device is still there, and what its interface is called now. Returns what
 * of it changed, as bits; 0 while the port is restarted.
 */
#define PORT_CHANGED_LINK 1u /* `link` */
#define PORT_CHANGED_NAME 2u /* `interface` */
unsigned port_update(struct port *port);
const char *port_link_name(enum port_link link);

/*
 * Asks for the MTU, of a veth's other end too, and has workers heed it. True when either is another one than before,
 * which says what to tell: port_mtu_line().
 */
bool port_update_mtu(struct port *port);
/* One line for the user on what the MTU is now, and what becomes of longer frames. */
void port_mtu_line(const struct port *port, char *line, size_t size);

/* The driver's own counters, as far as it keeps them. 0 or a negative errno; -EBUSY while it is restarted. */
int port_stats(struct port *port, struct rte_eth_stats *stats);
