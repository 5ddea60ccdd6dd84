/* nfs/portknock/portknock.c by rows.
 * 48 bits, 6 bytes a row
 *    32  packet[26..30]                                nfs/portknock/portknock.c:55: *source = ip->saddr;
 *    16  packet[… +2], 2 B                             nfs/portknock/portknock.c:69: port = bpf_ntohs(tcp->dest);
 */

/* Fills a packet's row; 0: it touches no state. */
static __attribute__((noinline)) u32 extract0_row(struct mr_instance *self, struct mr_packet *pkt, u8 *row)
{
	_Alignas(8) u8 s0_4[4] = { 0 };
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
#line 85 /* } */
	return 0;                                                /* 31: exit */
L32:
#line 55 /* *source = ip->saddr; */
	r1_0 = *(const mr_u32 *)(p2_0 + 26);                     /* 32: r1 = *(u32 *)(r2 +26) */
	*(mr_u32 *)s0_4 = (u32)r1_0;                             /* 33: *(u32 *)(r10 -4) = r1 */
#line 69 /* port = bpf_ntohs(tcp->dest); */
	r6_0 = *(const volatile mr_u16 *)(p4_0 + 2);             /* 35: r6 = *(u16 *)(r4 +2) */
#line 70
	memset(row, 0, 6);                                       /* 40: call map_lookup_elem#1 */
#line 70 /* state = bpf_map_lookup_elem(&sources, &source); */
	row_put(row, 0, 32, (row_load(s0_4, 4) & 0xffffffffu));
	row_put(row, 32, 16, (r6_0 & 0xffffu));
	return 1;
}

/* What a packet does to state, from its row. */
MR_INLINE void replay0_0(struct mr_instance *self, struct mr_packet *pkt, const u8 *row, const struct slot *slot)
{
	const u64 t0 = row_take(row, 0, 32); /* packet[26..30] */
	const u64 f0 = t0;
	(void)f0;
	const u64 t1 = row_take(row, 32, 16); /* packet[… +2], 2 B */
	const u64 f1 = t1;
	(void)f1;
	_Alignas(8) u8 s0_8[4] = { 0 };
	_Alignas(8) u8 s0_4[4] = { 0 };
	u64 r2_0 = 0, r3_0 = 0, r4_0 = 0, r6_0 = 0;
	u8 *p0_0 = 0, *p1_0 = 0;

	r6_0 = f1;
	row_store(s0_8, 1, 4);
	row_store(s0_4, f0, 4);
	goto L39;
L39:
#line 70 "nfs/portknock/portknock.c" /* state = bpf_map_lookup_elem(&sources, &source); */
	{                                                        /* 40: call map_lookup_elem#1 */
		u64 key[] = { mr_load32(s0_4) };
		p0_0 = hash_map_lookup_elem(&self->o0_sources, &shape0_sources, key, (slot ? slot->token : hash_token(&self->o0_sources, &shape0_sources, key)), pkt);
	}
	p1_0 = p0_0;                                             /* 41: r1 = r0 */
#line 71
	if (p1_0) goto L52;                                      /* 42: if r1 != 0 goto 54 */
#line 72
	if ((u32)r6_0 != 0x6400u) goto L31;                      /* 44: if w6 != 25600 goto 31 */
#line 73
	r4_0 = 0;                                                /* 51: r4 = 0 */
#line 73 /* bpf_map_update_elem(&sources, &source, &first, BPF_ANY); */
	{                                                        /* 52: call map_update_elem#2 */
		u64 key[] = { mr_load32(s0_4) };
		_Alignas(8) u8 value[4];
		memcpy(value, s0_8, 4);
		hash_map_update_elem(&self->o0_sources, &shape0_sources, key, hash_token(&self->o0_sources, &shape0_sources, key), value, r4_0, pkt);
	}
L31:
#line 85 /* } */
	return;                                                  /* 31: exit */
L52:
#line 76 /* if (*state != OPEN) { */
	r2_0 = *(const volatile mr_u32 *)p1_0;                   /* 55: r2 = *(u32 *)(r1 +0) */
	if ((u32)r2_0 == 3) goto L31;                            /* 56: if w2 == 3 goto 31 */
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
	goto L31;                                                /* 64: if w2 == 3 goto 31 */
L64:
	r2_0 = 1;                                                /* 67: w2 = 1 */
#line 82 /* *state = port == FIRST_PORT ? KNOCK_2 : KNOCK_1; */
	if ((u32)r6_0 == 0x6400u) goto L68;                      /* 68: if w6 == 25600 goto 70 */
	r2_0 = 0;                                                /* 69: w2 = 0 */
L68:
	*(mr_u32 *)p1_0 = (u32)r2_0;                             /* 70: *(u32 *)(r1 +0) = r2 */
	goto L31;                                                /* 71: goto 31 */
}

/* The token of the key with which that begins, and its first prefetch. */
MR_INLINE void token0_0(struct mr_instance *self, struct mr_packet *pkt, const u8 *row, struct slot *slot)
{
	const u64 t0 = row_take(row, 0, 32); /* packet[26..30] */
	const u64 f0 = t0;
	(void)f0;
	const u64 t1 = row_take(row, 32, 16); /* packet[… +2], 2 B */
	const u64 f1 = t1;
	(void)f1;
	_Alignas(8) u8 s0_4[4] = { 0 };

	row_store(s0_4, f0, 4);
	goto L39;
L39:
#line 70 "nfs/portknock/portknock.c" /* state = bpf_map_lookup_elem(&sources, &source); */
	{                                                        /* 40: call map_lookup_elem#1 */
		u64 key[] = { mr_load32(s0_4) };
		slot->token = hash_token(&self->o0_sources, &shape0_sources, key);
		memcpy(slot->key, key, sizeof(key));
		slot->site = 1;
		hash_prefetch(&self->o0_sources, &shape0_sources, slot->token);
		return;
	}
}
