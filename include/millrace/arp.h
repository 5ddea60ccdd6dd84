/* ARP over Ethernet for IPv4 (RFC 826). */
#ifndef MILLRACE_ARP_H
#define MILLRACE_ARP_H

#include <millrace/ethernet.h>

/* Addresses as 16-bit words, as in struct ethernet; an IPv4 address is load32(arp->sender). */
struct arp {
	__be16 hardware;
	__be16 protocol;
	__u8 hardware_bytes;
	__u8 protocol_bytes;
	__be16 operation;
	__u16 sender_mac[3];
	__u16 sender[2];
	__u16 target_mac[3];
	__u16 target[2];
};

enum {
	ARP_ETHERNET = 1,
	ARP_REQUEST = 1,
	ARP_REPLY = 2,
};

/* The header at an offset, or NULL when it is not one for IPv4 over Ethernet. */
MILLRACE_LIBRARY struct arp *arp_at(const struct packet *p, __u32 at)
{
	struct arp *arp = packet_at(p, at, struct arp);

	if (!arp || arp->hardware != htons(ARP_ETHERNET) || arp->protocol != htons(ETHERTYPE_IPV4) ||
	    arp->hardware_bytes != 6 || arp->protocol_bytes != 4)
		return (void *)0;
	return arp;
}

#endif
