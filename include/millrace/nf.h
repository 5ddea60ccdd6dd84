/* Everything that a network function in the handler dialect may use. The other headers of this
 * folder are a page each:
 *
 *     handler.h    ON_PACKET, ON_START, ON_STOP, EVERY; PARAM
 *     verdict.h    FORWARD, FLOOD, DROP, DROP_BECAUSE, CONSUME, PASS; PORTS, peer
 *     state.h      MAP, VECTOR, ALLOCATOR, SKETCH, LPM
 *     set.h        PACKET_SET: ON_FIRST_PACKET, ON_PACKET, ON_EXPIRY, ON_ORPHAN; include it by name
 *     packet.h     struct packet, packet_at
 *     ethernet.h   Ethernet and VLAN tags
 *     mac.h        struct mac: their addresses as keys; include it by name
 *     ipv4.h ipv6.h tcp.h udp.h icmp.h
 *     arp.h ndp.h  who has an address: ARP, neighbour discovery; include them by name
 *     flow.h       struct flow: the 5-tuple of IPv4 and IPv6; packet_transport, packet_tcp; flow4.h: of IPv4 alone
 *     transport.h  enum flow_kind: what looking for a tuple can find
 *     checksum.h   incremental update
 *     rewrite.h    another address and port in a packet's headers; include it by name
 *     adjust.h     longer and shorter frames, sums over them; include it by name
 *     time.h       SECONDS, MILLISECONDS …
 *     word.h       load32, ntohs …
 *     intrinsics.h crc32c, multiply_high, rotate64
 *     sequential.h what a function may not use
 */
#ifndef MILLRACE_NF_H
#define MILLRACE_NF_H

#include <millrace/checksum.h>
#include <millrace/ethernet.h>
#include <millrace/flow.h>
#include <millrace/handler.h>
#include <millrace/intrinsics.h>
#include <millrace/packet.h>
#include <millrace/state.h>
#include <millrace/time.h>
#include <millrace/verdict.h>
#include <millrace/word.h>

#ifndef NULL
#define NULL ((void *)0)
#endif

/* A key or value of another type than the object's is a mistake, never a conversion. */
#pragma clang diagnostic error "-Wincompatible-pointer-types"

static const char millrace_license[] __attribute__((section("license"), used)) = "Dual MIT/GPL";

#include <millrace/sequential.h>

#endif
