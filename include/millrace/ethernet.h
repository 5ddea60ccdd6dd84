/* Ethernet II, and up to two VLAN tags (IEEE 802.1Q; 802.1ad, QinQ). */
#ifndef MILLRACE_ETHERNET_H
#define MILLRACE_ETHERNET_H

#include <millrace/packet.h>

/* Addresses as three 16-bit words: a frame starts on an even address at best. */
struct ethernet {
	__u16 dst[3];
	__u16 src[3];
	__be16 type;
};

/* What follows the addresses of a tagged frame, from the tag's own number on: the tag control
 * information, and the type of what comes next. */
struct vlan {
	__be16 tci;
	__be16 type;
};

#define VLAN_ID(tci)       (ntohs(tci) & 0x0fff)
#define VLAN_PRIORITY(tci) (ntohs(tci) >> 13)

enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_ARP = 0x0806,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_SERVICE_VLAN = 0x88a8,
};

/* Offset of what the frame carries behind its tags, and its type; 0 when the frame ends before. A
 * third tag is a type like any other. */
MILLRACE_LIBRARY __u32 packet_network(const struct packet *p, __be16 *type)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	__u32 at = sizeof(struct ethernet);

	*type = 0;
	if (!ethernet)
		return 0;
	*type = ethernet->type;
	for (int tags = 0; tags < 2; tags++) {
		struct vlan *vlan;

		if (*type != htons(ETHERTYPE_VLAN) && *type != htons(ETHERTYPE_SERVICE_VLAN))
			break;
		vlan = packet_at(p, at, struct vlan);
		if (!vlan)
			return 0;
		*type = vlan->type;
		at += sizeof(struct vlan);
	}
	return at;
}

#endif
