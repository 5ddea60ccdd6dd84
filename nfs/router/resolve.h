/* ARP (RFC 826): who asks for an address of ours is answered, and a packet whose next hop is not known
 * becomes the question. */
#ifndef ROUTER_RESOLVE_H
#define ROUTER_RESOLVE_H

#include "errors.h"

#define ARP_FRAME (NETWORK_AT + sizeof(struct arp))

MILLRACE_INLINE int on_arp(const struct packet *p, const struct interface *interface)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct arp *arp = arp_at(p, NETWORK_AT);
	struct address sender;
	struct hop hop;

	if (!ethernet || !arp)
		return DROP_BECAUSE(bad_header);
	sender = address_from_ipv4(load32(arp->sender));
	hop = (struct hop){ sender, p->port, 0 };
	/* Others' questions tell where their senders are; who was never needed is not kept. */
	if (!interface->address || load32(arp->target) != interface->address) {
		if (map_get(&neighbours, &hop))
			learn(p, &sender, arp->sender_mac);
		return DROP_BECAUSE(not_ours);
	}
	learn(p, &sender, arp->sender_mac);
	if (arp->operation != htons(ARP_REQUEST))
		return CONSUME;
	arp->operation = htons(ARP_REPLY);
	turn_frame(ethernet, arp->sender_mac, interface);
	copy_mac(arp->target_mac, arp->sender_mac);
	store32(arp->target, load32(arp->sender));
	copy_mac(arp->sender_mac, interface->mac);
	store32(arp->sender, interface->address);
	return FORWARD(p->port);
}

/* Makes the packet the question where `address` is. */
MILLRACE_INLINE int ask4(const struct packet *p, __be32 address, __u32 port, const struct interface *out)
{
	struct ethernet *ethernet;
	struct arp *arp;

	if (!packet_renew(p, ARP_FRAME))
		return DROP_BECAUSE(no_room);
	ethernet = packet_at(p, 0, struct ethernet);
	arp = packet_at(p, NETWORK_AT, struct arp);
	if (!ethernet || !arp)
		return DROP_BECAUSE(bad_header);
	turn_frame(ethernet, (const __u16[3]){ 0xffff, 0xffff, 0xffff }, out);
	ethernet->type = htons(ETHERTYPE_ARP);
	*arp = (struct arp){
		.hardware = htons(ARP_ETHERNET),
		.protocol = htons(ETHERTYPE_IPV4),
		.hardware_bytes = 6,
		.protocol_bytes = 4,
		.operation = htons(ARP_REQUEST),
	};
	copy_mac(arp->sender_mac, out->mac);
	store32(arp->sender, out->address);
	store32(arp->target, address);
	return FORWARD(port);
}

enum resolution {
	RESOLVED,
	ASK,      /* this packet may be the question */
	WAIT,     /* one was sent within the last second */
	NO_ANSWER /* to three of them */
};

/* Where a next hop is, or what to do about it. */
MILLRACE_INLINE enum resolution resolve(const struct packet *p, const struct hop *hop, __u16 *mac)
{
	struct neighbour *neighbour = map_get(&neighbours, hop);
	struct question *question;

	if (neighbour) {
		copy_mac(mac, neighbour->mac);
		return RESOLVED;
	}
	question = map_get(&asked, hop);
	if (!question)
		return map_put(&asked, hop, &(struct question){ p->time, 1 }) ? ASK : WAIT;
	if (question->requests >= 3)
		return NO_ANSWER;
	if (p->time - question->time < SECONDS(1))
		return WAIT;
	question->time = p->time;
	question->requests++;
	return ASK;
}

#endif
