/* nop: emitted by millrace, treatment alone (one thread owns an instance).
 *
 * nop: every packet, XDP
 *
 * How to read it: crates/emit/README.md, and codegen.h for the names of locals.
 */
#include "codegen.h"
#include "helpers/redirect.h"

struct mr_instance {
	u8 stateless;
};

/* nop: every packet, XDP */
MR_INLINE void run0_nop(struct mr_instance *self, struct mr_packet *pkt)
{
	u64 r0_0, r1_0, r2_0;

#line 10 "nfs/nop/nop.c" /* return bpf_redirect(ctx->ingress_ifindex == 1 ? 2 : 1, 0); */
	r2_0 = (pkt->port + 1);                                  /* 0: r2 = *(u32 *)(r1 +12) */
	r1_0 = 2;                                                /* 1: w1 = 2 */
	if ((u32)r2_0 == 1) goto L4;                             /* 2: if w2 == 1 goto 4 */
	r1_0 = 1;                                                /* 3: w1 = 1 */
L4:
	r2_0 = 0;                                                /* 4: r2 = 0 */
	r0_0 = helper_redirect(r1_0, r2_0, pkt);                 /* 5: call redirect#23 */
	return mr_verdict_xdp(pkt, r0_0);                        /* 6: exit */
}

static int create(struct mr_instance *self, const struct mr_config *config)
{
	return 0;
}

static void destroy(struct mr_instance *self)
{
}

static __attribute__((noinline)) void burst0_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		fetch_ahead(packets, i, n);
		mr_packet_begin(packets[i]);
		run0_nop(self, packets[i]);
	}
}

static void (*const bursts[])(struct mr_instance *, struct mr_packet *const *, u32) = {
	burst0_plain,
};

static void (*const bursts_plain[])(struct mr_instance *, struct mr_packet *const *, u32) = {
	burst0_plain,
};

static const struct mr_module module = {
	.abi = MR_ABI,
	.objects = 0,
	.timers = 0,
	.programs = 1,
	.instance_bytes = sizeof(struct mr_instance),
	.instance_align = _Alignof(struct mr_instance),
	.object = NULL,
	.timer = NULL,
	.create = create,
	.destroy = destroy,
	.start = NULL,
	.stop = NULL,
	.burst = bursts,
	.burst_plain = bursts_plain,
};

__attribute__((visibility("default"))) const struct mr_module *millrace_module(void);

const struct mr_module *millrace_module(void)
{
	return &module;
}
