/* Everything that a network function in the handler dialect may use. The other headers of this
 * folder are a page each:
 *
 *     handler.h    ON_PACKET, ON_START, ON_STOP, EVERY; PARAM
 *     verdict.h    FORWARD, FLOOD, DROP, DROP_BECAUSE, CONSUME, PASS; PORTS, peer
 *     state.h      MAP, VECTOR, ALLOCATOR, SKETCH, LPM
 *     packet.h     struct packet, packet_at
 *     ethernet.h   Ethernet and VLAN tags
 *     ipv4.h ipv6.h tcp.h udp.h icmp.h
 *     flow.h       struct flow: the 5-tuple of IPv4 and IPv6; flow4.h: of IPv4 alone
 *     checksum.h   incremental update
 *     time.h       SECONDS, MILLISECONDS …
 *     word.h       load32, ntohs …
 *     intrinsics.h crc32c, multiply_high, rotate64
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

static const char millrace_license[] __attribute__((section("license"), used)) = "Dual MIT/GPL";

/* A function is written for one packet at a time; how it runs on many cores is decided later, and a
 * lock, an atomic operation or a thread of its own would only hide from that decision what it needs
 * to know. Using one of these is an error at the author's line. */
#pragma GCC poison _Atomic _Thread_local __thread
#pragma GCC poison __sync_fetch_and_add __sync_fetch_and_sub __sync_fetch_and_or
#pragma GCC poison __sync_fetch_and_and __sync_fetch_and_xor __sync_add_and_fetch
#pragma GCC poison __sync_lock_test_and_set __sync_val_compare_and_swap
#pragma GCC poison __sync_bool_compare_and_swap __sync_synchronize
#pragma GCC poison __atomic_fetch_add __atomic_fetch_sub __atomic_add_fetch __atomic_load_n
#pragma GCC poison __atomic_store_n __atomic_exchange_n __atomic_compare_exchange_n
#pragma GCC poison bpf_spin_lock bpf_spin_unlock pthread_create pthread_mutex_lock

#endif
