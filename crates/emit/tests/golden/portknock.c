/* portknock: emitted by millrace, treatment alone (one thread owns an instance).
 *
 * portknock: every packet, XDP
 * sources: hash
 *
 * How to read it: crates/emit/README.md, and codegen.h for the names of locals.
 */
#define MR_NO_TARGETS 1
#include "codegen.h"
#include "state/hash.h"

/* sources: hash, key 4 B, value 4 B, capacity 65536 */
static const struct shape shape0_sources = { .key_bytes = 4u, .value_bytes = 4u, .capacity = 65536u };

struct mr_instance {
	struct hash o0_sources;
};

/* What a prefetch pass found of one packet: at which operation (0: none), with which key, its token, and what the
 * rest of the program reads of registers and stack. */
struct slot {
	u64 token;
	u64 key[1];
	u64 number[1];
	_Alignas(8) u8 stack[8];
	u32 site;
};

/* Whether the slot's token is the one of this key at this operation. */
MR_INLINE int slot_holds(const struct slot *slot, u32 site, const u64 *key, u32 words)
{
	return slot && slot->site == site && mr_words_equal(slot->key, key, words);
}

/* portknock: every packet, XDP */
MR_INLINE void run0_portknock(struct mr_instance *self, struct mr_packet *pkt)
{
	_Alignas(8) u8 s0_8[4];
	_Alignas(8) u8 s0_4[4];
	u64 r0_0, r1_0, r2_0, r3_0, r4_0, r5_0, r6_0;
	u8 *p0_0, *p1_0, *p2_0, *p3_0, *p4_0;

#line 31 "nfs/portknock/portknock.c" /* __u8 *data = (__u8 *)(long)ctx->data; */
	p2_0 = pkt->data;                                        /* 0: r2 = *(u32 *)(r1 +0) */
#line 32
	p1_0 = pkt->end;                                         /* 1: r1 = *(u32 *)(r1 +4) */
#line 38 /* if ((__u8 *)(ip + 1) > end) */
	p3_0 = p2_0;                                             /* 2: r3 = r2 */
	p3_0 += 34;                                              /* 3: r3 += 34 */
	if (p3_0 > p1_0) goto L30;                               /* 4: if r3 > r1 goto 30 */
#line 41 /* if (*(__be16 *)(data + 12) != bpf_htons(ETH_P_IP)) */
	r3_0 = *(const mr_u16 *)(p2_0 + 12);                     /* 5: r3 = *(u16 *)(r2 +12) */
	if ((u32)r3_0 != 8) goto L30;                            /* 6: if w3 != 8 goto 30 */
#line 43 /* header = (*(__u8 *)ip & 0x0f) * 4; */
	r3_0 = *(const volatile u8 *)(p2_0 + 14);                /* 7: r3 = *(u8 *)(r2 +14) */
#line 45 /* if (*(__u8 *)ip >> 4 != 4 || header < sizeof(*ip) || */
	r4_0 = (u32)r3_0;                                        /* 8: w4 = w3 */
	r4_0 = (u32)r4_0 & 240;                                  /* 9: w4 &= 240 */
	if ((u32)r4_0 != 64) goto L30;                           /* 10: if w4 != 64 goto 30 */
	r3_0 = (u32)r3_0 << 2;                                   /* 11: w3 <<= 2 */
	r3_0 = (u32)r3_0 & 60;                                   /* 12: w3 &= 60 */
	if ((u32)r3_0 < 20) goto L30;                            /* 13: if w3 < 20 goto 30 */
	r4_0 = *(const volatile mr_u16 *)(p2_0 + 16);            /* 14: r4 = *(u16 *)(r2 +16) */
	r4_0 = __builtin_bswap16((u16)r4_0);                     /* 15: r4 = bswap16 r4 */
	r5_0 = r3_0;                                             /* 16: r5 = r3 */
	r5_0 += 20;                                              /* 17: r5 += 20 */
	if (r5_0 > r4_0) goto L30;                               /* 18: if r5 > r4 goto 30 */
#line 49 /* if (ip->protocol != IPPROTO_TCP || ip->frag_off & bpf_htons(0x1fff)) */
	r4_0 = *(const u8 *)(p2_0 + 23);                         /* 19: r4 = *(u8 *)(r2 +23) */
	if ((u32)r4_0 != 6) goto L30;                            /* 20: if w4 != 6 goto 30 */
	r4_0 = *(const mr_u16 *)(p2_0 + 20);                     /* 21: r4 = *(u16 *)(r2 +20) */
	r4_0 = (u32)r4_0 & 0xff1fu;                              /* 22: w4 &= 65311 */
	if ((u32)r4_0 != 0) goto L30;                            /* 23: if w4 != 0 goto 30 */
	p4_0 = p2_0;                                             /* 24: r4 = r2 */
	p4_0 += 14;                                              /* 25: r4 += 14 */
#line 51 /* at = (__u8 *)ip + header; */
	p4_0 += (s64)r3_0;                                       /* 26: r4 += r3 */
#line 53 /* if ((__u8 *)(tcp + 1) > end) */
	p3_0 = p4_0;                                             /* 27: r3 = r4 */
	p3_0 += 20;                                              /* 28: r3 += 20 */
	if (p3_0 <= p1_0) goto L32;                              /* 29: if r3 <= r1 goto 32 */
L30:
	r0_0 = 1;                                                /* 30: w0 = 1 */
#line 85 /* } */
	return mr_verdict_xdp(pkt, r0_0);                        /* 31: exit */
L32:
#line 55 /* *source = ip->saddr; */
	r1_0 = *(const mr_u32 *)(p2_0 + 26);                     /* 32: r1 = *(u32 *)(r2 +26) */
	*(mr_u32 *)s0_4 = (u32)r1_0;                             /* 33: *(u32 *)(r10 -4) = r1 */
#line 64 /* __u32 *state, first = KNOCK_2; */
	*(mr_u32 *)s0_8 = 1;                                     /* 34: *(u32 *)(r10 -8) = 1 */
#line 69 /* port = bpf_ntohs(tcp->dest); */
	r6_0 = *(const volatile mr_u16 *)(p4_0 + 2);             /* 35: r6 = *(u16 *)(r4 +2) */
#line 70
	{                                                        /* 40: call map_lookup_elem#1 */
#line 70 /* state = bpf_map_lookup_elem(&sources, &source); */
		u64 key[] = { mr_load32(s0_4) };
		p0_0 = hash_map_lookup_elem(&self->o0_sources, &shape0_sources, key, hash_token(&self->o0_sources, &shape0_sources, key), pkt);
	}
	p1_0 = p0_0;                                             /* 41: r1 = r0 */
#line 71
	if (p1_0) goto L52;                                      /* 42: if r1 != 0 goto 54 */
#line 71 /* if (!state) { */
	r0_0 = 1;                                                /* 43: w0 = 1 */
#line 72
	if ((u32)r6_0 != 0x6400u) return mr_verdict_xdp(pkt, r0_0); /* 44: if w6 != 25600 goto 31 */
#line 73
	r4_0 = 0;                                                /* 51: r4 = 0 */
#line 73 /* bpf_map_update_elem(&sources, &source, &first, BPF_ANY); */
	{                                                        /* 52: call map_update_elem#2 */
		u64 key[] = { mr_load32(s0_4) };
		_Alignas(8) u8 value[4];
		memcpy(value, s0_8, 4);
		hash_map_update_elem(&self->o0_sources, &shape0_sources, key, hash_token(&self->o0_sources, &shape0_sources, key), value, r4_0, pkt);
	}
	goto L30;                                                /* 53: goto 30 */
L52:
	r0_0 = 3;                                                /* 54: w0 = 3 */
#line 76 /* if (*state != OPEN) { */
	r2_0 = *(const volatile mr_u32 *)p1_0;                   /* 55: r2 = *(u32 *)(r1 +0) */
	if ((u32)r2_0 == 3) return mr_verdict_xdp(pkt, r0_0);    /* 56: if w2 == 3 goto 31 */
	r3_0 = r6_0;                                             /* 57: r3 = r6 */
	r3_0 = __builtin_bswap16((u16)r3_0);                     /* 58: r3 = bswap16 r3 */
#line 79 /* if (port == FIRST_PORT + *state) */
	r4_0 = (u32)r2_0;                                        /* 59: w4 = w2 */
	r4_0 = (u32)r4_0 + 100;                                  /* 60: w4 += 100 */
	if ((u32)r4_0 != (u32)r3_0) goto L64;                    /* 61: if w4 != w3 goto 66 */
#line 80
	r2_0 = (u32)r2_0 + 1;                                    /* 62: w2 += 1 */
#line 80 /* *state += 1; */
	*(mr_u32 *)p1_0 = (u32)r2_0;                             /* 63: *(u32 *)(r1 +0) = r2 */
#line 84 /* return *state == OPEN ? XDP_TX : XDP_DROP; */
	if ((u32)r2_0 == 3) return mr_verdict_xdp(pkt, r0_0);    /* 64: if w2 == 3 goto 31 */
	goto L30;                                                /* 65: goto 30 */
L64:
	r0_0 = 1;                                                /* 66: w0 = 1 */
	r2_0 = 1;                                                /* 67: w2 = 1 */
#line 82 /* *state = port == FIRST_PORT ? KNOCK_2 : KNOCK_1; */
	if ((u32)r6_0 == 0x6400u) goto L68;                      /* 68: if w6 == 25600 goto 70 */
	r2_0 = 0;                                                /* 69: w2 = 0 */
L68:
	*(mr_u32 *)p1_0 = (u32)r2_0;                             /* 70: *(u32 *)(r1 +0) = r2 */
	return mr_verdict_xdp(pkt, r0_0);                        /* 71: goto 31 */
}

/* portknock up to its first keyed operation: finds what to prefetch. */
static inline void prefetch0_portknock(struct mr_instance *self, struct mr_packet *pkt, struct slot *slot)
{
	_Alignas(8) u8 s0_8[4];
	_Alignas(8) u8 s0_4[4];
	u64 r1_0, r3_0, r4_0, r5_0, r6_0;
	u8 *p1_0, *p2_0, *p3_0, *p4_0;

#line 31 "nfs/portknock/portknock.c" /* __u8 *data = (__u8 *)(long)ctx->data; */
	p2_0 = pkt->data;                                        /* 0: r2 = *(u32 *)(r1 +0) */
#line 32
	p1_0 = pkt->end;                                         /* 1: r1 = *(u32 *)(r1 +4) */
#line 38 /* if ((__u8 *)(ip + 1) > end) */
	p3_0 = p2_0;                                             /* 2: r3 = r2 */
	p3_0 += 34;                                              /* 3: r3 += 34 */
	if (p3_0 > p1_0) goto L30;                               /* 4: if r3 > r1 goto 30 */
#line 41 /* if (*(__be16 *)(data + 12) != bpf_htons(ETH_P_IP)) */
	r3_0 = *(const mr_u16 *)(p2_0 + 12);                     /* 5: r3 = *(u16 *)(r2 +12) */
	if ((u32)r3_0 != 8) goto L30;                            /* 6: if w3 != 8 goto 30 */
#line 43 /* header = (*(__u8 *)ip & 0x0f) * 4; */
	r3_0 = *(const volatile u8 *)(p2_0 + 14);                /* 7: r3 = *(u8 *)(r2 +14) */
#line 45 /* if (*(__u8 *)ip >> 4 != 4 || header < sizeof(*ip) || */
	r4_0 = (u32)r3_0;                                        /* 8: w4 = w3 */
	r4_0 = (u32)r4_0 & 240;                                  /* 9: w4 &= 240 */
	if ((u32)r4_0 != 64) goto L30;                           /* 10: if w4 != 64 goto 30 */
	r3_0 = (u32)r3_0 << 2;                                   /* 11: w3 <<= 2 */
	r3_0 = (u32)r3_0 & 60;                                   /* 12: w3 &= 60 */
	if ((u32)r3_0 < 20) goto L30;                            /* 13: if w3 < 20 goto 30 */
	r4_0 = *(const volatile mr_u16 *)(p2_0 + 16);            /* 14: r4 = *(u16 *)(r2 +16) */
	r4_0 = __builtin_bswap16((u16)r4_0);                     /* 15: r4 = bswap16 r4 */
	r5_0 = r3_0;                                             /* 16: r5 = r3 */
	r5_0 += 20;                                              /* 17: r5 += 20 */
	if (r5_0 > r4_0) goto L30;                               /* 18: if r5 > r4 goto 30 */
#line 49 /* if (ip->protocol != IPPROTO_TCP || ip->frag_off & bpf_htons(0x1fff)) */
	r4_0 = *(const u8 *)(p2_0 + 23);                         /* 19: r4 = *(u8 *)(r2 +23) */
	if ((u32)r4_0 != 6) goto L30;                            /* 20: if w4 != 6 goto 30 */
	r4_0 = *(const mr_u16 *)(p2_0 + 20);                     /* 21: r4 = *(u16 *)(r2 +20) */
	r4_0 = (u32)r4_0 & 0xff1fu;                              /* 22: w4 &= 65311 */
	if ((u32)r4_0 != 0) goto L30;                            /* 23: if w4 != 0 goto 30 */
	p4_0 = p2_0;                                             /* 24: r4 = r2 */
	p4_0 += 14;                                              /* 25: r4 += 14 */
#line 51 /* at = (__u8 *)ip + header; */
	p4_0 += (s64)r3_0;                                       /* 26: r4 += r3 */
#line 53 /* if ((__u8 *)(tcp + 1) > end) */
	p3_0 = p4_0;                                             /* 27: r3 = r4 */
	p3_0 += 20;                                              /* 28: r3 += 20 */
	if (p3_0 <= p1_0) goto L32;                              /* 29: if r3 <= r1 goto 32 */
L30:
	return;                                                  /* 30: w0 = 1 */
L32:
#line 55
	r1_0 = *(const mr_u32 *)(p2_0 + 26);                     /* 32: r1 = *(u32 *)(r2 +26) */
#line 55 /* *source = ip->saddr; */
	*(mr_u32 *)s0_4 = (u32)r1_0;                             /* 33: *(u32 *)(r10 -4) = r1 */
#line 64 /* __u32 *state, first = KNOCK_2; */
	*(mr_u32 *)s0_8 = 1;                                     /* 34: *(u32 *)(r10 -8) = 1 */
#line 69 /* port = bpf_ntohs(tcp->dest); */
	r6_0 = *(const volatile mr_u16 *)(p4_0 + 2);             /* 35: r6 = *(u16 *)(r4 +2) */
#line 70
	{                                                        /* 40: call map_lookup_elem#1 */
#line 70 /* state = bpf_map_lookup_elem(&sources, &source); */
		u64 key[] = { mr_load32(s0_4) };
		slot->token = hash_token(&self->o0_sources, &shape0_sources, key);
		memcpy(slot->key, key, sizeof(key));
		slot->site = 1;
		memcpy(slot->stack + 0, s0_8, 4);
		memcpy(slot->stack + 4, s0_4, 4);
		slot->number[0] = r6_0;
		hash_prefetch(&self->o0_sources, &shape0_sources, slot->token);
		return;
	}
}

/* portknock from its first keyed operation on. */
MR_INLINE void resume0_portknock(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
{
	_Alignas(8) u8 s0_8[4];
	_Alignas(8) u8 s0_4[4];
	u64 r0_0, r2_0, r3_0, r4_0, r6_0;
	u8 *p0_0, *p1_0;

	memcpy(s0_8, slot->stack + 0, 4);
	memcpy(s0_4, slot->stack + 4, 4);
	r6_0 = slot->number[0];
	goto L39;
L39:
#line 70 "nfs/portknock/portknock.c" /* state = bpf_map_lookup_elem(&sources, &source); */
	{                                                        /* 40: call map_lookup_elem#1 */
		u64 key[1];
		memcpy(key, slot->key, sizeof(key));
		p0_0 = hash_map_lookup_elem(&self->o0_sources, &shape0_sources, key, slot->token, pkt);
	}
	p1_0 = p0_0;                                             /* 41: r1 = r0 */
#line 71
	if (p1_0) goto L52;                                      /* 42: if r1 != 0 goto 54 */
#line 71 /* if (!state) { */
	r0_0 = 1;                                                /* 43: w0 = 1 */
#line 72
	if ((u32)r6_0 != 0x6400u) return mr_verdict_xdp(pkt, r0_0); /* 44: if w6 != 25600 goto 31 */
#line 73
	r4_0 = 0;                                                /* 51: r4 = 0 */
#line 73 /* bpf_map_update_elem(&sources, &source, &first, BPF_ANY); */
	{                                                        /* 52: call map_update_elem#2 */
		u64 key[] = { mr_load32(s0_4) };
		_Alignas(8) u8 value[4];
		memcpy(value, s0_8, 4);
		hash_map_update_elem(&self->o0_sources, &shape0_sources, key, hash_token(&self->o0_sources, &shape0_sources, key), value, r4_0, pkt);
	}
L30:
#line 53 /* if ((__u8 *)(tcp + 1) > end) */
	r0_0 = 1;                                                /* 30: w0 = 1 */
#line 85 /* } */
	return mr_verdict_xdp(pkt, r0_0);                        /* 31: exit */
L52:
#line 73 /* bpf_map_update_elem(&sources, &source, &first, BPF_ANY); */
	r0_0 = 3;                                                /* 54: w0 = 3 */
#line 76 /* if (*state != OPEN) { */
	r2_0 = *(const volatile mr_u32 *)p1_0;                   /* 55: r2 = *(u32 *)(r1 +0) */
	if ((u32)r2_0 == 3) return mr_verdict_xdp(pkt, r0_0);    /* 56: if w2 == 3 goto 31 */
	r3_0 = r6_0;                                             /* 57: r3 = r6 */
	r3_0 = __builtin_bswap16((u16)r3_0);                     /* 58: r3 = bswap16 r3 */
#line 79 /* if (port == FIRST_PORT + *state) */
	r4_0 = (u32)r2_0;                                        /* 59: w4 = w2 */
	r4_0 = (u32)r4_0 + 100;                                  /* 60: w4 += 100 */
	if ((u32)r4_0 != (u32)r3_0) goto L64;                    /* 61: if w4 != w3 goto 66 */
#line 80
	r2_0 = (u32)r2_0 + 1;                                    /* 62: w2 += 1 */
#line 80 /* *state += 1; */
	*(mr_u32 *)p1_0 = (u32)r2_0;                             /* 63: *(u32 *)(r1 +0) = r2 */
#line 84 /* return *state == OPEN ? XDP_TX : XDP_DROP; */
	if ((u32)r2_0 == 3) return mr_verdict_xdp(pkt, r0_0);    /* 64: if w2 == 3 goto 31 */
	goto L30;                                                /* 65: goto 30 */
L64:
	r0_0 = 1;                                                /* 66: w0 = 1 */
	r2_0 = 1;                                                /* 67: w2 = 1 */
#line 82 /* *state = port == FIRST_PORT ? KNOCK_2 : KNOCK_1; */
	if ((u32)r6_0 == 0x6400u) goto L68;                      /* 68: if w6 == 25600 goto 70 */
	r2_0 = 0;                                                /* 69: w2 = 0 */
L68:
	*(mr_u32 *)p1_0 = (u32)r2_0;                             /* 70: *(u32 *)(r1 +0) = r2 */
	return mr_verdict_xdp(pkt, r0_0);                        /* 71: goto 31 */
}

static int create(struct mr_instance *self, const struct mr_config *config)
{
	int error;

	error = hash_create(&self->o0_sources, &shape0_sources, config, config->initial ? config->initial[0] : NULL);
	if (error)
		return error;
	return 0;
}

static void destroy(struct mr_instance *self)
{
	hash_destroy(&self->o0_sources, &shape0_sources);
}

static __attribute__((noinline)) void burst0_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		fetch_ahead(packets, i, n);
		run0_portknock(self, packets[i]);
	}
}

static inline void prefetch0_portknock_entry(struct mr_instance *self, struct slot *slot)
{
	switch (slot->site) {
	case 1:
		slot->token = hash_prefetch_entry(&self->o0_sources, &shape0_sources, slot->token);
		break;
	default:
		break;
	}
}

/* Three passes, so that the misses of a batch overlap. */
static __attribute__((noinline)) void burst0_passes(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	struct slot slots[MR_BATCH];

	while (n > 0) {
		const u32 count = n < MR_BATCH ? n : MR_BATCH;

		for (u32 i = 0; i < count; i++) {
			fetch_ahead(packets, i, count);
			slots[i].site = 0;
			prefetch0_portknock(self, packets[i], &slots[i]);
		}
		for (u32 i = 0; i < count; i++)
			prefetch0_portknock_entry(self, &slots[i]);
		for (u32 i = 0; i < count; i++) {
			if (!slots[i].site) {
				burst0_plain(self, packets + i, 1);
				continue;
			}
			resume0_portknock(self, packets[i], &slots[i]);
		}
		packets += count;
		n -= count;
	}
}

/* A few packets have nothing to overlap; while the state fits the cache the passes would cost more than they save. */
static void burst0(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	if (n >= MR_FEW && (hash_cold(&self->o0_sources, &shape0_sources)))
		burst0_passes(self, packets, n);
	else
		burst0_plain(self, packets, n);
}

static u64 o0_sources_count(struct mr_instance *self, u64 now)
{
	return hash_count(&self->o0_sources, &shape0_sources, now);
}

static int o0_sources_get(struct mr_instance *self, const u8 *key, u8 *value, u64 now)
{
	return hash_get(&self->o0_sources, &shape0_sources, key, value, now);
}

static int o0_sources_set(struct mr_instance *self, const u8 *key, const u8 *value, u64 now)
{
	return hash_set(&self->o0_sources, &shape0_sources, key, value, now);
}

static int o0_sources_remove(struct mr_instance *self, const u8 *key, u64 now)
{
	return hash_remove(&self->o0_sources, &shape0_sources, key, now);
}

static int o0_sources_next(struct mr_instance *self, u64 *cursor, u8 *key, u8 *value, u64 now)
{
	return hash_next(&self->o0_sources, &shape0_sources, cursor, key, value, now);
}

static u64 o0_sources_full(struct mr_instance *self, u64 now)
{
	return hash_full(&self->o0_sources, &shape0_sources, now);
}

static u64 o0_sources_used(struct mr_instance *self, u64 now)
{
	return hash_used(&self->o0_sources, &shape0_sources, now);
}

static int o0_sources_save(struct mr_instance *self, mr_saved_fn *fn, void *context)
{
	return hash_save(&self->o0_sources, &shape0_sources, fn, context);
}

static int o0_sources_load(struct mr_instance *self, const struct mr_saved *piece, u64 now)
{
	return hash_load(&self->o0_sources, &shape0_sources, piece, now);
}

static int o0_sources_list(struct mr_instance *self, u64 from, u64 to, mr_saved_fn *fn, void *context)
{
	return hash_list(&self->o0_sources, &shape0_sources, from, to, fn, context);
}

static int o0_sources_put(struct mr_instance *self, const struct mr_saved *piece, u64 now)
{
	return hash_put(&self->o0_sources, &shape0_sources, piece, now);
}

static const struct mr_object objects[] = {
	{
		.name = "sources", .kind = "hash", .key_bytes = 4, .value_bytes = 4,
		.capacity = 65536ull, .bytes = 4194304ull,
		.count = o0_sources_count,
		.get = o0_sources_get,
		.set = o0_sources_set,
		.remove = o0_sources_remove,
		.next = o0_sources_next,
		.full = o0_sources_full,
		.used = o0_sources_used,
		.save = o0_sources_save,
		.load = o0_sources_load,
		.list = o0_sources_list,
		.put = o0_sources_put,
	},
};

static void (*const bursts[])(struct mr_instance *, struct mr_packet *const *, u32) = {
	burst0,
};

static void (*const bursts_plain[])(struct mr_instance *, struct mr_packet *const *, u32) = {
	burst0_plain,
};

static const struct mr_module module = {
	.abi = MR_ABI,
	.objects = 1,
	.timers = 0,
	.programs = 1,
	.instance_bytes = sizeof(struct mr_instance),
	.instance_align = _Alignof(struct mr_instance),
	.object = objects,
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
