/* What becomes of a packet: a handler returns one of these. */
#ifndef MILLRACE_VERDICT_H
#define MILLRACE_VERDICT_H

#include <millrace/packet.h>

/* Out of a port. A port that does not exist aborts the packet. */
#define FORWARD(port) ((int)(1u << 24 | ((__u32)(port) & 0xffffff)))
/* Out of every port but the one it came in by. */
#define FLOOD ((int)(2u << 24))
/* Taken: the function keeps what it needs of it, the packet goes nowhere. */
#define CONSUME ((int)(3u << 24))
/* To the network stack of the host. */
#define PASS ((int)(4u << 24))
/* To the host for a purpose of its own, from 1: the slow path of a synthesised function, a number an element
 * (docs/click.md). Where nobody takes it the packet is passed, as by PASS. */
#define HAND_OVER(purpose) ((int)(4u << 24 | ((__u32)(purpose) & 0xffffff)))
/* Discarded, without or with a reason. The reason is a plain word, DROP_BECAUSE(no_flow); each is
 * counted by itself. */
#define DROP ((int)0)
#define DROP_BECAUSE(reason)                                                                   \
	({                                                                                     \
		static const char millrace_reason[]                                            \
			__attribute__((section("millrace/reasons"), used)) = #reason;          \
		(int)(long)millrace_reason;                                                    \
	})

/* PORTS(LAN, WAN) names the ports, from 0: LAN is 0, WAN is 1. Once in a file; at most eight. */
#define PORTS(...)                                                                             \
	enum millrace_port { __VA_ARGS__ };                                                    \
	static const char millrace_ports[]                                                     \
		__attribute__((section("millrace/ports"), used)) = MILLRACE_NAMES(__VA_ARGS__)

/* The port at the other side of a function that has two. */
MILLRACE_LIBRARY __u32 peer(const struct packet *p)
{
	return p->port ^ 1;
}

#define MILLRACE_NAMES(...)                                                                    \
	MILLRACE_PICK(__VA_ARGS__, MILLRACE_N8, MILLRACE_N7, MILLRACE_N6, MILLRACE_N5,         \
		      MILLRACE_N4, MILLRACE_N3, MILLRACE_N2, MILLRACE_N1, 0)(__VA_ARGS__)
#define MILLRACE_PICK(a, b, c, d, e, f, g, h, macro, ...) macro
#define MILLRACE_N1(a)      #a
#define MILLRACE_N2(a, ...) #a "\0" MILLRACE_N1(__VA_ARGS__)
#define MILLRACE_N3(a, ...) #a "\0" MILLRACE_N2(__VA_ARGS__)
#define MILLRACE_N4(a, ...) #a "\0" MILLRACE_N3(__VA_ARGS__)
#define MILLRACE_N5(a, ...) #a "\0" MILLRACE_N4(__VA_ARGS__)
#define MILLRACE_N6(a, ...) #a "\0" MILLRACE_N5(__VA_ARGS__)
#define MILLRACE_N7(a, ...) #a "\0" MILLRACE_N6(__VA_ARGS__)
#define MILLRACE_N8(a, ...) #a "\0" MILLRACE_N7(__VA_ARGS__)

#endif
