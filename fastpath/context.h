/* What a verdict means, in both dialects (docs/dialect.md): sets the packet's fate. Fields of the
 * context itself need no function; they are fields of `struct mr_packet`.
 */
#ifndef MR_CONTEXT_H
#define MR_CONTEXT_H

#include "base.h"

/* What `redirect` holds besides ports: */
#define MR_NO_PORT 0xffffffffu   /* none is named: until a program names one, or what it named is no port */
#define MR_TO_OTHERS 0xfffffffeu /* every port but the ingress */
#define MR_TO_HOST 0xfffffffdu   /* the host's network stack */
#define MR_TO_USER 0xfffffffcu   /* a socket */
#define MR_TO_NOBODY 0xfffffffbu /* an empty broadcast */
#define MR_TO_FIRST 0xfffffff0u  /* ports are below */

enum { MR_XDP_ABORTED, MR_XDP_DROP, MR_XDP_PASS, MR_XDP_TX, MR_XDP_REDIRECT };

enum {
    MR_VERDICT_DROP,
    MR_VERDICT_FORWARD,
    MR_VERDICT_FLOOD,
    MR_VERDICT_CONSUME,
    MR_VERDICT_PASS,
};

/* Before a packet of a program that names targets: the descriptor may be of an earlier packet, and
 * XDP_REDIRECT without a call must not follow that one's target. A module of programs that never name one
 * defines MR_NO_TARGETS instead, and its XDP_REDIRECT leads nowhere. */
MR_INLINE void mr_packet_begin(struct mr_packet *pkt) { pkt->redirect = MR_NO_PORT; }

/* Whether there is such a port is for the host to say, which counts the packets that go nowhere. */
MR_INLINE void mr_forward(struct mr_packet *pkt, u32 port)
{
    pkt->fate = MR_FORWARD;
    pkt->out = port;
}

MR_INLINE void mr_redirect(struct mr_packet *pkt)
{
    switch (pkt->redirect) {
    case MR_TO_OTHERS:
        pkt->fate = MR_FLOOD;
        break;
    case MR_TO_HOST:
        pkt->fate = MR_PASS;
        break;
    case MR_TO_USER:
        pkt->fate = MR_CONSUME;
        break;
    case MR_TO_NOBODY:
        pkt->fate = MR_DROP;
        break;
    default:
        mr_forward(pkt, pkt->redirect);
        break;
    }
}

MR_INLINE void mr_verdict_xdp(struct mr_packet *pkt, u64 r0)
{
    pkt->out = 0;
    switch ((u32)r0) {
    case MR_XDP_DROP:
        pkt->fate = MR_DROP;
        break;
    case MR_XDP_PASS:
        pkt->fate = MR_PASS;
        break;
    case MR_XDP_TX:
        mr_forward(pkt, pkt->port);
        break;
    case MR_XDP_REDIRECT:
#ifdef MR_NO_TARGETS
        mr_forward(pkt, MR_NO_PORT);
#else
        mr_redirect(pkt);
#endif
        break;
    default:
        pkt->fate = MR_ABORTED;
        break;
    }
}

/* A kind that takes no argument must come without one: `(FLOOD, 7)` is no verdict. */
MR_INLINE void mr_verdict_handlers(struct mr_packet *pkt, u64 r0)
{
    u32 kind = (u32)r0 >> 24;
    u32 argument = (u32)r0 & 0xffffff;

    pkt->out = 0;
    pkt->fate = MR_ABORTED;
    switch (kind) {
    case MR_VERDICT_DROP:
        pkt->fate = MR_DROP;
        pkt->out = argument;
        break;
    case MR_VERDICT_FORWARD:
        mr_forward(pkt, argument);
        break;
    case MR_VERDICT_FLOOD:
        if (argument == 0)
            pkt->fate = MR_FLOOD;
        break;
    case MR_VERDICT_CONSUME:
        if (argument == 0)
            pkt->fate = MR_CONSUME;
        break;
    case MR_VERDICT_PASS:
        pkt->fate = MR_PASS;
        pkt->out = argument;
        break;
    default:
        break;
    }
}

#endif
