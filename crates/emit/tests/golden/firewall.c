/* firewall: emitted by millrace, treatment alone (one thread owns an instance).
 *
 * millrace_on_packet: every packet
 * flows: map
 *
 * How to read it: crates/emit/README.md, and codegen.h for the names of locals.
 */
#include "codegen.h"
#include "state/hash.h"

/* flows: map, key 40 B, value 8 B, capacity 65536, expires after 60000000000 ns */
static const struct shape shape0_flows = { .key_bytes = 40u, .value_bytes = 8u, .capacity = 65536u, .expire_after = 60000000000ull };

struct mr_instance {
	struct hash o0_flows;
};

/* What a prefetch pass found of one packet: at which operation (0: none), with which key, its token, and what the
 * rest of the program reads of registers and stack. */
struct slot {
	u64 token;
	u64 key[5];
	u32 site;
};

/* MR_INLINE int slot_holds(const struct slot *slot, u32 site, const u64 *key, u32 words): as before */

/* millrace_on_packet: every packet */
MR_INLINE void run0_millrace_on_packet(struct mr_instance *self, struct mr_packet *pkt)
{
	_Alignas(8) u8 s0_184[8];
	_Alignas(8) u8 s0_176[8];
	_Alignas(8) u8 s0_168[8];
	_Alignas(8) u8 s0_160[8];
	_Alignas(8) u8 s0_152[8];
	_Alignas(8) u8 s0_144[8];
	_Alignas(8) u8 s0_136[8];
	_Alignas(8) u8 s0_128[8];
	_Alignas(8) u8 s0_120[40];
	_Alignas(8) u8 s0_64[4];
	_Alignas(8) u8 s0_60[4];
	_Alignas(8) u8 s0_52[1];
	_Alignas(8) u8 s0_51[1];
	_Alignas(8) u8 s0_50[2];
	_Alignas(8) u8 s0_48[8];
	_Alignas(8) u8 s0_40[8];
	_Alignas(8) u8 s0_32[4];
	_Alignas(8) u8 s0_24[8];
	_Alignas(8) u8 s0_16[8];
	_Alignas(8) u8 s0_8[4];
	_Alignas(8) u8 s0_4[4];
	u64 r0_0, r1_0, r2_0, r3_0, r4_0, r5_0, r6_0, r7_0, r8_0, r9_0, k18;
	u8 *p0_0, *p1_0, *p2_0, *p3_0, *p4_0, *p5_0, *p6_0, *p7_0, *p9_0;

#line 13 "nfs/firewall/firewall.c" /* switch (packet_find_flow(p, &f)) { */
	p4_0 = pkt->end;                                         /* 2: r4 = *(u32 *)(r1 +4) */
	p3_0 = pkt->data;                                        /* 3: r3 = *(u32 *)(r1 +0) */
	/* ... 687 lines ... */
	if ((u32)r7_0 < 4) return mr_verdict_handlers(pkt, r0_0); /* 636: if w7 < 4 goto 102 */
	goto L609;
L615:
	r4_0 = 128;                                              /* 643: w4 = 128 */
	r2_0 = 129;                                              /* 644: w2 = 129 */
	r3_0 = *(const volatile u8 *)p5_0;                       /* 645: r3 = *(u8 *)(r5 +0) */
	r0_0 = (u32)r3_0;                                        /* 646: w0 = w3 */
	r0_0 = (u32)r0_0 + 0xffffffffu;                          /* 647: w0 += -1 */
	r0_0 = (u32)r0_0 & 255;                                  /* 648: w0 &= 255 */
	if ((u32)r0_0 < 4) goto L599;                            /* 650: if w0 < 4 goto 626 */
	goto L623;
}

/* millrace_on_packet up to its first keyed operation: finds what to prefetch. */
static inline void prefetch0_millrace_on_packet(struct mr_instance *self, struct mr_packet *pkt, struct slot *slot)
{
	_Alignas(8) u8 s0_184[8];
	_Alignas(8) u8 s0_176[8];
	_Alignas(8) u8 s0_168[8];
	_Alignas(8) u8 s0_160[8];
	_Alignas(8) u8 s0_152[8];
	_Alignas(8) u8 s0_144[8];
	_Alignas(8) u8 s0_136[8];
	_Alignas(8) u8 s0_120[40];
	_Alignas(8) u8 s0_64[4];
	_Alignas(8) u8 s0_60[4];
	_Alignas(8) u8 s0_52[1];
	_Alignas(8) u8 s0_51[1];
	_Alignas(8) u8 s0_50[2];
	_Alignas(8) u8 s0_48[8];
	_Alignas(8) u8 s0_40[8];
	_Alignas(8) u8 s0_32[4];
	_Alignas(8) u8 s0_24[8];
	_Alignas(8) u8 s0_16[8];
	_Alignas(8) u8 s0_8[4];
	_Alignas(8) u8 s0_4[4];
	u64 r0_0, r1_0, r2_0, r3_0, r4_0, r5_0, r6_0, r7_0, r8_0, r9_0, k18;
	u8 *p0_0, *p1_0, *p2_0, *p3_0, *p4_0, *p5_0, *p6_0, *p7_0, *p9_0;

#line 13 "nfs/firewall/firewall.c" /* switch (packet_find_flow(p, &f)) { */
	p4_0 = pkt->end;                                         /* 2: r4 = *(u32 *)(r1 +4) */
	p3_0 = pkt->data;                                        /* 3: r3 = *(u32 *)(r1 +0) */
	p2_0 = p3_0;                                             /* 4: r2 = r3 */
	/* ... 654 lines ... */
	if ((u32)r7_0 < 4) goto L102;                            /* 636: if w7 < 4 goto 102 */
	goto L609;
L615:
	r4_0 = 128;                                              /* 643: w4 = 128 */
	r2_0 = 129;                                              /* 644: w2 = 129 */
	r3_0 = *(const volatile u8 *)p5_0;                       /* 645: r3 = *(u8 *)(r5 +0) */
	r0_0 = (u32)r3_0;                                        /* 646: w0 = w3 */
	r0_0 = (u32)r0_0 + 0xffffffffu;                          /* 647: w0 += -1 */
	r0_0 = (u32)r0_0 & 255;                                  /* 648: w0 &= 255 */
	if ((u32)r0_0 < 4) goto L599;                            /* 650: if w0 < 4 goto 626 */
	goto L623;
}

/* millrace_on_packet from its first keyed operation on. */
MR_INLINE void resume0_millrace_on_packet(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
{
	_Alignas(8) u8 s0_128[8];
	_Alignas(8) u8 s0_120[40];
	u64 r0_0, r1_0;
	u8 *p0_0, *p1_0;

	switch (slot->site) {
	case 1:
		goto L292;
	default:
		goto L355;
	}
L292:
#line 31 "nfs/firewall/firewall.c" /* if (map_refresh(&flows, &f)) */
	{                                                        /* 304: call map_refresh#65537 */
		u64 key[5];
		memcpy(key, slot->key, sizeof(key));
		mr_store64(s0_120, key[0]);
		mr_store64(s0_120 + 8, key[1]);
		mr_store64(s0_120 + 16, key[2]);
		mr_store64(s0_120 + 24, key[3]);
		mr_store64(s0_120 + 32, key[4]);
		p0_0 = hash_map_refresh(&self->o0_flows, &shape0_flows, key, slot->token, pkt);
	}
	r1_0 = pkt->port;                                        /* 306: r1 = *(u32 *)(r1 +12) */
	if (!p0_0) goto L434;                                    /* 307: if r0 == 0 goto 450 */
#line 32
	r1_0 = (u32)r1_0 & 0xffffffu;                            /* 308: w1 &= 16777215 */
	/* ... 33 lines ... */
	*(mr_u64 *)s0_128 = 0;                                   /* 453: *(u64 *)(r10 -128) = 0 */
	{                                                        /* 460: call map_put#65538 */
		u64 key[] = { mr_load64(s0_120), mr_load64(s0_120 + 8), mr_load64(s0_120 + 16), mr_load64(s0_120 + 24), mr_load64(s0_120 + 32) };
		_Alignas(8) u8 value[8];
		memcpy(value, s0_128, 8);
		p0_0 = hash_map_put(&self->o0_flows, &shape0_flows, key, hash_token(&self->o0_flows, &shape0_flows, key), value, pkt);
	}
	p1_0 = p0_0;                                             /* 461: r1 = r0 */
	r0_0 = 4;                                                /* 462: r0 = 0x4 ll */
	if (!p1_0) return mr_verdict_handlers(pkt, r0_0);        /* 464: if r1 == 0 goto 102 */
	goto L446;
}

static int create(struct mr_instance *self, const struct mr_config *config)
{
	int error;

	error = hash_create(&self->o0_flows, &shape0_flows, config, config->initial ? config->initial[0] : NULL);
	if (error)
		return error;
	return 0;
}

static void destroy(struct mr_instance *self)
{
	hash_destroy(&self->o0_flows, &shape0_flows);
}

/* Once a burst, at its first packet's time. */
static void age(struct mr_instance *self, u64 now)
{
	hash_age(&self->o0_flows, &shape0_flows, now);
}

static __attribute__((noinline)) void burst0_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	if (n > 0)
		age(self, packets[0]->time);
	for (u32 i = 0; i < n; i++) {
		fetch_ahead(packets, i, n);
		run0_millrace_on_packet(self, packets[i]);
	}
}

static inline void prefetch0_millrace_on_packet_entry(struct mr_instance *self, struct slot *slot)
{
	switch (slot->site) {
	case 1:
	case 2:
		slot->token = hash_prefetch_entry(&self->o0_flows, &shape0_flows, slot->token);
		break;
	default:
		break;
	}
}

/* Three passes, so that the misses of a batch overlap. */
static __attribute__((noinline)) void burst0_passes(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	struct slot slots[MR_BATCH];

	if (n > 0)
		age(self, packets[0]->time);
	while (n > 0) {
		const u32 count = n < MR_BATCH ? n : MR_BATCH;

		for (u32 i = 0; i < count; i++) {
			fetch_ahead(packets, i, count);
			slots[i].site = 0;
			prefetch0_millrace_on_packet(self, packets[i], &slots[i]);
		}
		for (u32 i = 0; i < count; i++)
			prefetch0_millrace_on_packet_entry(self, &slots[i]);
		for (u32 i = 0; i < count; i++) {
			if (!slots[i].site) {
				burst0_plain(self, packets + i, 1);
				continue;
			}
			resume0_millrace_on_packet(self, packets[i], &slots[i]);
		}
		packets += count;
		n -= count;
	}
}

/* A few packets have nothing to overlap. */
static void burst0(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	if (n >= MR_FEW)
		burst0_passes(self, packets, n);
	else
		burst0_plain(self, packets, n);
}

static u64 o0_flows_count(struct mr_instance *self, u64 now)
{
	return hash_count(&self->o0_flows, &shape0_flows, now);
}

static int o0_flows_get(struct mr_instance *self, const u8 *key, u8 *value, u64 now)
{
	return hash_get(&self->o0_flows, &shape0_flows, key, value, now);
}

static int o0_flows_set(struct mr_instance *self, const u8 *key, const u8 *value, u64 now)
{
	return hash_set(&self->o0_flows, &shape0_flows, key, value, now);
}

static int o0_flows_remove(struct mr_instance *self, const u8 *key, u64 now)
{
	return hash_remove(&self->o0_flows, &shape0_flows, key, now);
}

static int o0_flows_next(struct mr_instance *self, u64 *cursor, u8 *key, u8 *value, u64 now)
{
	return hash_next(&self->o0_flows, &shape0_flows, cursor, key, value, now);
}

static u64 o0_flows_full(struct mr_instance *self, u64 now)
{
	return hash_full(&self->o0_flows, &shape0_flows, now);
}

static u64 o0_flows_used(struct mr_instance *self, u64 now)
{
	return hash_used(&self->o0_flows, &shape0_flows, now);
}

static int o0_flows_save(struct mr_instance *self, mr_saved_fn *fn, void *context)
{
	return hash_save(&self->o0_flows, &shape0_flows, fn, context);
}

static int o0_flows_load(struct mr_instance *self, const struct mr_saved *piece, u64 now)
{
	return hash_load(&self->o0_flows, &shape0_flows, piece, now);
}

static int o0_flows_list(struct mr_instance *self, u64 from, u64 to, mr_saved_fn *fn, void *context)
{
	return hash_list(&self->o0_flows, &shape0_flows, from, to, fn, context);
}

static int o0_flows_put(struct mr_instance *self, const struct mr_saved *piece, u64 now)
{
	return hash_put(&self->o0_flows, &shape0_flows, piece, now);
}

static const struct mr_object objects[] = {
	{
		.name = "flows", .kind = "map", .key_bytes = 40, .value_bytes = 8,
		.capacity = 65536ull, .bytes = 8388608ull,
		.count = o0_flows_count,
		.get = o0_flows_get,
		.set = o0_flows_set,
		.remove = o0_flows_remove,
		.next = o0_flows_next,
		.full = o0_flows_full,
		.used = o0_flows_used,
		.save = o0_flows_save,
		.load = o0_flows_load,
		.list = o0_flows_list,
		.put = o0_flows_put,
	},
};

/* static void (*const bursts[]): as before */

/* static void (*const bursts_plain[]): as before */

/* static const struct mr_module module = {: as before */

__attribute__((visibility("default"))) const struct mr_module *millrace_module(void);

/* const struct mr_module *millrace_module(void): as before */
