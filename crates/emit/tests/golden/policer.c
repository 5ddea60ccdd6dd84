/* policer: emitted by millrace, treatment alone (one thread owns an instance).
 *
 * millrace_on_packet: every packet
 * .rodata.params: global
 * buckets: map
 *
 * How to read it: crates/emit/README.md, and alone.h for the names of locals.
 */
#include "alone.h"
#include "helpers/multiply_high.h"
#include "state/global.h"
#include "state/hash.h"

/* .rodata.params: global, value 16 B */
static const struct shape shape0__rodata_params = { .value_bytes = 16u, .capacity = 1u };

/* buckets: map, key 16 B, value 16 B, capacity 65536, expires after 60000000000 ns */
static const struct shape shape1_buckets = { .key_bytes = 16u, .value_bytes = 16u, .capacity = 65536u, .expire_after = 60000000000ull };

struct mr_instance {
	struct global o0__rodata_params;
	struct hash o1_buckets;
};

/* What a scout found of one packet: at which operation (0: none), with which key, and its token. */
struct slot {
	u64 token;
	u64 key[2];
	u32 site;
};

/* Whether the slot's token is the one of this key at this operation. */
MR_INLINE int slot_holds(const struct slot *slot, u32 site, const u64 *key, u32 words)
{
	return slot && slot->site == site && mr_words_equal(slot->key, key, words);
}

/* millrace_on_packet: every packet */
MR_INLINE u64 run0_millrace_on_packet(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
{
	_Alignas(8) u8 s0_48[8];
	_Alignas(8) u8 s0_40[8];
	_Alignas(8) u8 s0_32[16];
	_Alignas(8) u8 s0_16[16];
	u64 r0_0, r1_0, r2_0, r3_0, r4_0, r5_0, r6_0, r8_0, r9_0;
	u8 *p0_0, *p1_0, *p2_0, *p3_0, *p4_0, *p5_0, *p6_0, *p7_0, *p9_0;

#line 74 "nfs/policer/policer.c" /* ON_PACKET(p) */
	r0_0 = 0x1000001u;                                       /* 0: w0 = 16777217 */
#line 81 /* if (p->port == LAN) */
	r2_0 = pkt->port;                                        /* 1: r2 = *(u32 *)(r1 +12) */
#line 81
	if ((u32)r2_0 == 0) goto L194;                           /* 2: if w2 == 0 goto 207 */
#line 81
	p3_0 = pkt->end;                                         /* 3: r3 = *(u32 *)(r1 +4) */
#line 81
	p7_0 = pkt->data;                                        /* 4: r7 = *(u32 *)(r1 +0) */
#line 35 "millrace/packet.h"
	p4_0 = p7_0;                                             /* 5: r4 = r7 */
#line 35
	p4_0 += 14;                                              /* 6: r4 += 14 */
#line 35
	r0_0 = 0x1000000u;                                       /* 7: w0 = 16777216 */
#line 35
	if (p4_0 > p3_0) goto L194;                              /* 8: if r4 > r3 goto 207 */
#line 43 "millrace/ethernet.h"
	r5_0 = *(const mr_u16 *)(p7_0 + 12);                     /* 9: r5 = *(u16 *)(r7 +12) */
#line 47
	if ((u32)r5_0 == 0xa888u) goto L13;                      /* 10: if w5 == 43144 goto 13 */
#line 47
	r4_0 = 14;                                               /* 11: w4 = 14 */
#line 47
	if ((u32)r5_0 != 129) goto L27;                          /* 12: if w5 != 129 goto 27 */
L13:
#line 35 "millrace/packet.h"
	p4_0 = p7_0;                                             /* 13: r4 = r7 */
#line 35
	p4_0 += 18;                                              /* 14: r4 += 18 */
#line 35
	r0_0 = 0x1000000u;                                       /* 15: w0 = 16777216 */
#line 35
	if (p4_0 > p3_0) goto L194;                              /* 16: if r4 > r3 goto 207 */
#line 43 "millrace/ethernet.h"
	r5_0 = *(const mr_u16 *)(p7_0 + 16);                     /* 17: r5 = *(u16 *)(r7 +16) */
#line 47
	if ((u32)r5_0 == 0xa888u) goto L21;                      /* 18: if w5 == 43144 goto 21 */
#line 47
	r4_0 = 18;                                               /* 19: w4 = 18 */
#line 47
	if ((u32)r5_0 != 129) goto L27;                          /* 20: if w5 != 129 goto 27 */
L21:
#line 35 "millrace/packet.h"
	p4_0 = p7_0;                                             /* 21: r4 = r7 */
#line 35
	p4_0 += 22;                                              /* 22: r4 += 22 */
#line 35
	r0_0 = 0x1000000u;                                       /* 23: w0 = 16777216 */
#line 35
	if (p4_0 > p3_0) goto L194;                              /* 24: if r4 > r3 goto 207 */
#line 35
	r4_0 = 22;                                               /* 25: w4 = 22 */
#line 43 "millrace/ethernet.h"
	r5_0 = *(const mr_u16 *)(p7_0 + 20);                     /* 26: r5 = *(u16 *)(r7 +20) */
L27:
#line 43
	p2_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p3_0);     /* 27: w2 = w3 */
#line 43
	r2_0 = (u32)(u64)(uintptr_t)p2_0 - (u32)(u64)(uintptr_t)p7_0; /* 28: w2 -= w7 */
#line 43
	*(mr_u64 *)s0_40 = r2_0;                                 /* 29: *(u64 *)(r10 -40) = r2 */
#line 31 "nfs/policer/policer.c" /* if (type == htons(ETHERTYPE_IPV4)) { */
	if ((u32)r5_0 == 0xdd86u) goto L105;                     /* 30: if w5 == 56710 goto 108 */
#line 31
	r0_0 = 0x1000000u;                                       /* 31: w0 = 16777216 */
#line 31
	if ((u32)r5_0 != 8) goto L194;                           /* 32: if w5 != 8 goto 207 */
#line 31
	r0_0 = 1;                                                /* 33: r0 = 0x1 ll */
#line 33 "millrace/packet.h"
	p7_0 += (s64)r4_0;                                       /* 35: r7 += r4 */
#line 35
	p5_0 = p7_0;                                             /* 36: r5 = r7 */
#line 35
	p5_0 += 20;                                              /* 37: r5 += 20 */
#line 35
	if (p5_0 > p3_0) goto L194;                              /* 38: if r5 > r3 goto 207 */
#line 68 "millrace/ipv4.h"
	r5_0 = *(const volatile u8 *)p7_0;                       /* 39: r5 = *(u8 *)(r7 +0) */
#line 68
	r6_0 = (u32)r5_0;                                        /* 40: w6 = w5 */
#line 68
	r6_0 = (u32)r6_0 & 240;                                  /* 41: w6 &= 240 */
#line 68
	if ((u32)r6_0 != 64) goto L194;                          /* 42: if w6 != 64 goto 207 */
#line 70
	r5_0 = (u32)r5_0 << 2;                                   /* 43: w5 <<= 2 */
#line 70
	r5_0 = (u32)r5_0 & 60;                                   /* 44: w5 &= 60 */
#line 72
	if ((u32)r5_0 < 20) goto L194;                           /* 45: if w5 < 20 goto 207 */
#line 72
	r6_0 = *(const volatile mr_u16 *)(p7_0 + 2);             /* 46: r6 = *(u16 *)(r7 +2) */
#line 72
	r6_0 = __builtin_bswap16((u16)r6_0);                     /* 47: r6 = bswap16 r6 */
#line 72
	if ((u32)r5_0 > (u32)r6_0) goto L194;                    /* 48: if w5 > w6 goto 207 */
#line 72
	r5_0 = (u32)r4_0;                                        /* 49: w5 = w4 */
#line 72
	r5_0 = (u32)r5_0 + (u32)r6_0;                            /* 50: w5 += w6 */
#line 72
	r2_0 = *(const mr_u64 *)s0_40;                           /* 51: r2 = *(u64 *)(r10 -40) */
#line 72
	if ((u32)r5_0 > (u32)r2_0) goto L194;                    /* 52: if w5 > w2 goto 207 */
#line 42
	r5_0 = *(const volatile mr_u32 *)p7_0;                   /* 53: r5 = *(u32 *)(r7 +0) */
#line 42
	r0_0 = *(const mr_u32 *)(p7_0 + 4);                      /* 54: r0 = *(u32 *)(r7 +4) */
#line 42
	r0_0 += r5_0;                                            /* 55: r0 += r5 */
#line 42
	r6_0 = *(const mr_u32 *)(p7_0 + 8);                      /* 56: r6 = *(u32 *)(r7 +8) */
#line 42
	r0_0 += r6_0;                                            /* 57: r0 += r6 */
#line 44
	r5_0 = (u32)r5_0 << 2;                                   /* 58: w5 <<= 2 */
#line 44
	r5_0 = (u32)r5_0 & 60;                                   /* 59: w5 &= 60 */
#line 44
	r6_0 = (u32)r4_0;                                        /* 60: w6 = w4 */
#line 44
	r6_0 = (u32)r6_0 + (u32)r5_0;                            /* 61: w6 += w5 */
#line 42
	r5_0 = *(const mr_u32 *)(p7_0 + 12);                     /* 62: r5 = *(u32 *)(r7 +12) */
#line 42
	r0_0 += r5_0;                                            /* 63: r0 += r5 */
	r5_0 = *(const mr_u32 *)(p7_0 + 16);                     /* 64: r5 = *(u32 *)(r7 +16) */
#line 42
	r0_0 += r5_0;                                            /* 65: r0 += r5 */
#line 46
	r4_0 += 20;                                              /* 66: r4 += 20 */
#line 46
	if (r4_0 == r6_0) goto L80;                              /* 67: if r4 == r6 goto 81 */
#line 46
	r8_0 = 0;                                                /* 68: r8 = 0 */
L68:
#line 51
	r9_0 = r4_0;                                             /* 69: r9 = r4 */
#line 51
	r9_0 += r8_0;                                            /* 70: r9 += r8 */
#line 51
	if (r9_0 >= r6_0) goto L80;                              /* 71: if r9 >= r6 goto 81 */
#line 35 "millrace/packet.h"
	p2_0 = p7_0;                                             /* 72: r2 = r7 */
#line 35
	p2_0 += (s64)r8_0;                                       /* 73: r2 += r8 */
#line 35
	p9_0 = p2_0;                                             /* 74: r9 = r2 */
#line 35
	p9_0 += 24;                                              /* 75: r9 += 24 */
#line 35
	if (p9_0 > p3_0) goto L80;                               /* 76: if r9 > r3 goto 81 */
#line 56 "millrace/ipv4.h"
	r2_0 = *(const mr_u32 *)(p2_0 + 20);                     /* 77: r2 = *(u32 *)(r2 +20) */
#line 56
	r0_0 += r2_0;                                            /* 78: r0 += r2 */
#line 49
	r8_0 += 4;                                               /* 79: r8 += 4 */
#line 49
	if ((u32)r8_0 != 40) goto L68;                           /* 80: if w8 != 40 goto 69 */
L80:
#line 17 "millrace/checksum.h"
	r2_0 = r0_0;                                             /* 81: r2 = r0 */
#line 17
	r2_0 >>= 32;                                             /* 82: r2 >>= 32 */
#line 17
	r0_0 <<= 32;                                             /* 83: r0 <<= 32 */
#line 17
	r0_0 >>= 32;                                             /* 84: r0 >>= 32 */
#line 17
	r0_0 += r2_0;                                            /* 85: r0 += r2 */
	r2_0 = r0_0;                                             /* 86: r2 = r0 */
#line 18
	r2_0 >>= 16;                                             /* 87: r2 >>= 16 */
#line 18
	r0_0 &= 0xffffu;                                         /* 88: r0 &= 65535 */
#line 18
	r0_0 += r2_0;                                            /* 89: r0 += r2 */
	r2_0 = r0_0;                                             /* 90: r2 = r0 */
#line 19
	r2_0 >>= 16;                                             /* 91: r2 >>= 16 */
#line 19
	r0_0 = (u32)r0_0 & 0xffffu;                              /* 92: w0 &= 65535 */
#line 19
	r0_0 = (u32)r0_0 + (u32)r2_0;                            /* 93: w0 += w2 */
	r2_0 = (u32)r0_0;                                        /* 94: w2 = w0 */
#line 20
	r2_0 = (u32)r2_0 >> 16;                                  /* 95: w2 >>= 16 */
#line 20
	r2_0 = (u32)r2_0 + (u32)r0_0;                            /* 96: w2 += w0 */
#line 20
	r0_0 = 1;                                                /* 97: r0 = 0x1 ll */
#line 74 "millrace/ipv4.h"
	r2_0 &= 0xffffu;                                         /* 99: r2 &= 65535 */
#line 74
	if (r2_0 != 0xffffu) goto L194;                          /* 100: if r2 != 65535 goto 207 */
#line 74
	*(mr_pointer *)s0_48 = (u8 *)pkt;                        /* 101: *(u64 *)(r10 -48) = r1 */
#line 36 "nfs/policer/policer.c" /* *to = address_from_ipv4(ip->dst); */
	r5_0 <<= 32;                                             /* 102: r5 <<= 32 */
#line 36
	r1_0 = 0xffff0000u;                                      /* 103: r1 = 0xffff0000 ll */
#line 36
	r5_0 |= r1_0;                                            /* 105: r5 |= r1 */
#line 36
	r1_0 = 0;                                                /* 106: r1 = 0 */
L125:
	{                                                        /* stores in the order of addresses */
#line 44 /* *to = address_from_ipv6(ip->dst); */
		*(mr_u64 *)s0_32 = r1_0;                         /* 130: *(u64 *)(r10 -32) = r1 */
#line 44
		*(mr_u64 *)(s0_32 + 8) = r5_0;                   /* 129: *(u64 *)(r10 -24) = r5 */
	}
#line 89 /* bucket = map_refresh(&buckets, &to); */
	{                                                        /* 135: call map_refresh#65537 */
#line 89
		u64 key[2];
#line 89
		memcpy(key, s0_32, 16);
#line 89
		const u64 token = slot_holds(slot, 1, key, 2) ? slot->token : hash_token(&self->o1_buckets, &shape1_buckets, key);
#line 89
		p0_0 = hash_map_refresh(&self->o1_buckets, &shape1_buckets, key, token, pkt);
#line 89
	}
#line 89
	p6_0 = p0_0;                                             /* 136: r6 = r0 */
#line 55 /* if (multiply_high(rate, FORGET) == 0) { */
	p9_0 = global_base(&self->o0__rodata_params, &shape0__rodata_params); /* 137: r9 = .rodata.params+0 ll */
#line 55
	r1_0 = *(const mr_u64 *)p9_0;                            /* 139: r1 = *(u64 *)(r9 +0) */
#line 55
	r2_0 = 60;                                               /* 140: r2 = 60 */
#line 55
	r0_0 = helper_multiply_high(r1_0, r2_0, pkt);            /* 141: call multiply_high#65617 */
#line 55
	r8_0 = 0x44b82fa09ull;                                   /* 142: r8 = 0x44b82fa09 ll */
#line 55
	if (r0_0 != 0) goto L143;                                /* 144: if r0 != 0 goto 151 */
	r1_0 = *(const volatile mr_u64 *)p9_0;                   /* 145: r1 = *(u64 *)(r9 +0) */
#line 56 /* minute = rate * FORGET; */
	r1_0 *= 60;                                              /* 146: r1 *= 60 */
#line 56
	r2_0 = 0x44b82fa08ull;                                   /* 147: r2 = 0x44b82fa08 ll */
	if (r1_0 > r2_0) goto L143;                              /* 149: if r1 > r2 goto 151 */
#line 57 /* if (minute < most) */
	r8_0 = r1_0;                                             /* 150: r8 = r1 */
L143:
#line 60 /* return (burst < most ? burst : most) * SCALE; */
	p1_0 = (global_base(&self->o0__rodata_params, &shape0__rodata_params) + 8); /* 151: r1 = .rodata.params+8 ll */
#line 60
	r2_0 = *(const volatile mr_u64 *)p1_0;                   /* 153: r2 = *(u64 *)(r1 +0) */
#line 60
	if (r2_0 >= r8_0) goto L148;                             /* 155: if r2 >= r8 goto 157 */
#line 60
	r8_0 = *(const volatile mr_u64 *)p1_0;                   /* 156: r8 = *(u64 *)(r1 +0) */
L148:
#line 60
	r1_0 = pkt->time;                                        /* 157: r1 = *(u64 *)(r9 +24) */
#line 60
	r8_0 *= 0x3b9aca00u;                                     /* 158: r8 *= 1000000000 */
#line 91 /* if (!bucket) { */
	if (p6_0) goto L163;                                     /* 159: if r6 != 0 goto 174 */
	{                                                        /* stores in the order of addresses */
#line 92 /* fresh = (struct bucket){ .tokens = full, .time = p->time }; */
		*(mr_u64 *)s0_16 = r8_0;                         /* 161: *(u64 *)(r10 -16) = r8 */
#line 92
		*(mr_u64 *)(s0_16 + 8) = r1_0;                   /* 160: *(u64 *)(r10 -8) = r1 */
	}
#line 93 /* bucket = map_put(&buckets, &to, &fresh); */
	{                                                        /* 168: call map_put#65538 */
#line 93
		u64 key[2];
#line 93
		memcpy(key, s0_32, 16);
#line 93
		_Alignas(8) u8 value[16];
#line 93
		memcpy(value, s0_16, 16);
#line 93
		p0_0 = hash_map_put(&self->o1_buckets, &shape1_buckets, key, hash_token(&self->o1_buckets, &shape1_buckets, key), value, pkt);
#line 93
	}
#line 93
	p6_0 = p0_0;                                             /* 169: r6 = r0 */
#line 93
	r0_0 = 2;                                                /* 170: r0 = 0x2 ll */
	if (!p6_0) goto L194;                                    /* 172: if r6 == 0 goto 207 */
L185:
#line 98 /* bucket->time = p->time; */
	r3_0 = *(const mr_u64 *)s0_40;                           /* 197: r3 = *(u64 *)(r10 -40) */
#line 98
	r3_0 *= 0x3b9aca00u;                                     /* 198: r3 *= 1000000000 */
#line 98
	r0_0 = 3;                                                /* 199: r0 = 0x3 ll */
#line 100 /* if (bucket->tokens < cost) */
	r1_0 = *(const volatile mr_u64 *)p6_0;                   /* 201: r1 = *(u64 *)(r6 +0) */
#line 100
	r2_0 = r3_0;                                             /* 202: r2 = r3 */
#line 100
	if (r1_0 < r3_0) goto L194;                              /* 203: if r1 < r3 goto 207 */
#line 102 /* bucket->tokens -= cost; */
	r1_0 -= r2_0;                                            /* 204: r1 -= r2 */
#line 102
	*(mr_u64 *)p6_0 = r1_0;                                  /* 205: *(u64 *)(r6 +0) = r1 */
#line 102
	r0_0 = 0x1000000u;                                       /* 206: w0 = 16777216 */
L194:
	return r0_0;                                             /* 207: exit */
L105:
#line 37 /* return 1; */
	r0_0 = 1;                                                /* 108: r0 = 0x1 ll */
#line 33 "millrace/packet.h"
	p7_0 += (s64)r4_0;                                       /* 110: r7 += r4 */
#line 35
	p2_0 = p7_0;                                             /* 111: r2 = r7 */
#line 35
	p2_0 += 40;                                              /* 112: r2 += 40 */
#line 35
	if (p2_0 > p3_0) goto L194;                              /* 113: if r2 > r3 goto 207 */
#line 41 "millrace/ipv6.h"
	r2_0 = *(const mr_u32 *)p7_0;                            /* 114: r2 = *(u32 *)(r7 +0) */
#line 41
	r2_0 = (u32)r2_0 & 240;                                  /* 115: w2 &= 240 */
#line 41
	if ((u32)r2_0 != 96) goto L194;                          /* 116: if w2 != 96 goto 207 */
#line 43
	r2_0 = *(const volatile mr_u16 *)(p7_0 + 4);             /* 117: r2 = *(u16 *)(r7 +4) */
#line 43
	r2_0 = __builtin_bswap16((u16)r2_0);                     /* 118: r2 = bswap16 r2 */
#line 43
	r4_0 += r2_0;                                            /* 119: r4 += r2 */
#line 43
	r4_0 += 40;                                              /* 120: r4 += 40 */
#line 43
	r2_0 = *(const mr_u64 *)s0_40;                           /* 121: r2 = *(u64 *)(r10 -40) */
#line 43
	if (r4_0 > r2_0) goto L194;                              /* 122: if r4 > r2 goto 207 */
#line 43
	*(mr_pointer *)s0_48 = (u8 *)pkt;                        /* 123: *(u64 *)(r10 -48) = r1 */
#line 44 "nfs/policer/policer.c" /* *to = address_from_ipv6(ip->dst); */
	r2_0 = *(const mr_u32 *)(p7_0 + 24);                     /* 124: r2 = *(u32 *)(r7 +24) */
#line 44
	r1_0 = *(const mr_u32 *)(p7_0 + 28);                     /* 125: r1 = *(u32 *)(r7 +28) */
#line 44
	r1_0 <<= 32;                                             /* 126: r1 <<= 32 */
#line 44
	r1_0 |= r2_0;                                            /* 127: r1 |= r2 */
#line 44
	r5_0 = *(const mr_u64 *)(p7_0 + 32);                     /* 128: r5 = *(u64 *)(r7 +32) */
#line 44
	goto L125;
L163:
#line 96 /* } else if (p->time > bucket->time) { */
	r2_0 = *(const volatile mr_u64 *)(p6_0 + 8);             /* 174: r2 = *(u64 *)(r6 +8) */
#line 96
	if (r1_0 <= r2_0) goto L185;                             /* 175: if r1 <= r2 goto 197 */
#line 96
	*(mr_pointer *)s0_48 = (u8 *)pkt;                        /* 176: *(u64 *)(r10 -48) = r9 */
	r1_0 -= r2_0;                                            /* 177: r1 -= r2 */
#line 97 /* bucket->tokens = fill(bucket->tokens, full, p->time - bucket->time); */
	r3_0 = *(const volatile mr_u64 *)p6_0;                   /* 178: r3 = *(u64 *)(r6 +0) */
#line 67 /* __u64 earned = elapsed * rate; */
	p2_0 = global_base(&self->o0__rodata_params, &shape0__rodata_params); /* 179: r2 = .rodata.params+0 ll */
#line 67
	r4_0 = *(const volatile mr_u64 *)p2_0;                   /* 181: r4 = *(u64 *)(r2 +0) */
#line 67
	r4_0 *= r1_0;                                            /* 182: r4 *= r1 */
#line 67
	r5_0 = r8_0;                                             /* 183: r5 = r8 */
#line 67
	r5_0 -= r3_0;                                            /* 184: r5 -= r3 */
#line 69 /* if (multiply_high(elapsed, rate) || earned >= room) */
	r9_0 = r4_0;                                             /* 185: r9 = r4 */
#line 69
	r9_0 += r3_0;                                            /* 186: r9 += r3 */
#line 69
	if (r4_0 < r5_0) goto L177;                              /* 187: if r4 < r5 goto 189 */
#line 69
	r9_0 = r8_0;                                             /* 188: r9 = r8 */
L177:
#line 69
	r2_0 = *(const mr_u64 *)p2_0;                            /* 189: r2 = *(u64 *)(r2 +0) */
#line 69
	r0_0 = helper_multiply_high(r1_0, r2_0, pkt);            /* 190: call multiply_high#65617 */
#line 69
	if (r0_0 == 0) goto L181;                                /* 191: if r0 == 0 goto 193 */
#line 69
	r9_0 = r8_0;                                             /* 192: r9 = r8 */
L181:
#line 97 /* bucket->tokens = fill(bucket->tokens, full, p->time - bucket->time); */
	*(mr_u64 *)p6_0 = r9_0;                                  /* 193: *(u64 *)(r6 +0) = r9 */
	r1_0 = pkt->time;                                        /* 195: r1 = *(u64 *)(r1 +24) */
#line 98 /* bucket->time = p->time; */
	*(mr_u64 *)(p6_0 + 8) = r1_0;                            /* 196: *(u64 *)(r6 +8) = r1 */
#line 98
	goto L185;
#line 449 "policer.c"
}

/* millrace_on_packet up to its first keyed operation: finds what to prefetch. */
static inline void scout0_millrace_on_packet(struct mr_instance *self, struct mr_packet *pkt, struct slot *slot)
{
	_Alignas(8) u8 s0_48[8];
	_Alignas(8) u8 s0_40[8];
	_Alignas(8) u8 s0_32[16];
	u64 r0_0, r1_0, r2_0, r4_0, r5_0, r6_0, r8_0, r9_0;
	u8 *p2_0, *p3_0, *p4_0, *p5_0, *p7_0, *p9_0;

#line 81 "nfs/policer/policer.c" /* if (p->port == LAN) */
	r2_0 = pkt->port;                                        /* 1: r2 = *(u32 *)(r1 +12) */
#line 81
	if ((u32)r2_0 == 0) goto L194;                           /* 2: if w2 == 0 goto 207 */
#line 81
	p3_0 = pkt->end;                                         /* 3: r3 = *(u32 *)(r1 +4) */
#line 81
	p7_0 = pkt->data;                                        /* 4: r7 = *(u32 *)(r1 +0) */
#line 35 "millrace/packet.h"
	p4_0 = p7_0;                                             /* 5: r4 = r7 */
#line 35
	p4_0 += 14;                                              /* 6: r4 += 14 */
#line 35
	if (p4_0 > p3_0) goto L194;                              /* 8: if r4 > r3 goto 207 */
#line 43 "millrace/ethernet.h"
	r5_0 = *(const mr_u16 *)(p7_0 + 12);                     /* 9: r5 = *(u16 *)(r7 +12) */
#line 47
	if ((u32)r5_0 == 0xa888u) goto L13;                      /* 10: if w5 == 43144 goto 13 */
#line 47
	r4_0 = 14;                                               /* 11: w4 = 14 */
#line 47
	if ((u32)r5_0 != 129) goto L27;                          /* 12: if w5 != 129 goto 27 */
L13:
#line 35 "millrace/packet.h"
	p4_0 = p7_0;                                             /* 13: r4 = r7 */
#line 35
	p4_0 += 18;                                              /* 14: r4 += 18 */
#line 35
	if (p4_0 > p3_0) goto L194;                              /* 16: if r4 > r3 goto 207 */
#line 43 "millrace/ethernet.h"
	r5_0 = *(const mr_u16 *)(p7_0 + 16);                     /* 17: r5 = *(u16 *)(r7 +16) */
#line 47
	if ((u32)r5_0 == 0xa888u) goto L21;                      /* 18: if w5 == 43144 goto 21 */
#line 47
	r4_0 = 18;                                               /* 19: w4 = 18 */
#line 47
	if ((u32)r5_0 != 129) goto L27;                          /* 20: if w5 != 129 goto 27 */
L21:
#line 35 "millrace/packet.h"
	p4_0 = p7_0;                                             /* 21: r4 = r7 */
#line 35
	p4_0 += 22;                                              /* 22: r4 += 22 */
#line 35
	if (p4_0 > p3_0) goto L194;                              /* 24: if r4 > r3 goto 207 */
#line 35
	r4_0 = 22;                                               /* 25: w4 = 22 */
#line 43 "millrace/ethernet.h"
	r5_0 = *(const mr_u16 *)(p7_0 + 20);                     /* 26: r5 = *(u16 *)(r7 +20) */
L27:
#line 43
	p2_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p3_0);     /* 27: w2 = w3 */
#line 43
	r2_0 = (u32)(u64)(uintptr_t)p2_0 - (u32)(u64)(uintptr_t)p7_0; /* 28: w2 -= w7 */
#line 43
	*(mr_u64 *)s0_40 = r2_0;                                 /* 29: *(u64 *)(r10 -40) = r2 */
#line 31 "nfs/policer/policer.c" /* if (type == htons(ETHERTYPE_IPV4)) { */
	if ((u32)r5_0 == 0xdd86u) goto L105;                     /* 30: if w5 == 56710 goto 108 */
#line 31
	if ((u32)r5_0 != 8) goto L194;                           /* 32: if w5 != 8 goto 207 */
#line 33 "millrace/packet.h"
	p7_0 += (s64)r4_0;                                       /* 35: r7 += r4 */
#line 35
	p5_0 = p7_0;                                             /* 36: r5 = r7 */
#line 35
	p5_0 += 20;                                              /* 37: r5 += 20 */
#line 35
	if (p5_0 > p3_0) goto L194;                              /* 38: if r5 > r3 goto 207 */
#line 68 "millrace/ipv4.h"
	r5_0 = *(const volatile u8 *)p7_0;                       /* 39: r5 = *(u8 *)(r7 +0) */
#line 68
	r6_0 = (u32)r5_0;                                        /* 40: w6 = w5 */
#line 68
	r6_0 = (u32)r6_0 & 240;                                  /* 41: w6 &= 240 */
#line 68
	if ((u32)r6_0 != 64) goto L194;                          /* 42: if w6 != 64 goto 207 */
#line 70
	r5_0 = (u32)r5_0 << 2;                                   /* 43: w5 <<= 2 */
#line 70
	r5_0 = (u32)r5_0 & 60;                                   /* 44: w5 &= 60 */
#line 72
	if ((u32)r5_0 < 20) goto L194;                           /* 45: if w5 < 20 goto 207 */
#line 72
	r6_0 = *(const volatile mr_u16 *)(p7_0 + 2);             /* 46: r6 = *(u16 *)(r7 +2) */
#line 72
	r6_0 = __builtin_bswap16((u16)r6_0);                     /* 47: r6 = bswap16 r6 */
#line 72
	if ((u32)r5_0 > (u32)r6_0) goto L194;                    /* 48: if w5 > w6 goto 207 */
#line 72
	r5_0 = (u32)r4_0;                                        /* 49: w5 = w4 */
#line 72
	r5_0 = (u32)r5_0 + (u32)r6_0;                            /* 50: w5 += w6 */
#line 72
	r2_0 = *(const mr_u64 *)s0_40;                           /* 51: r2 = *(u64 *)(r10 -40) */
#line 72
	if ((u32)r5_0 > (u32)r2_0) goto L194;                    /* 52: if w5 > w2 goto 207 */
#line 42
	r5_0 = *(const volatile mr_u32 *)p7_0;                   /* 53: r5 = *(u32 *)(r7 +0) */
#line 42
	r0_0 = *(const mr_u32 *)(p7_0 + 4);                      /* 54: r0 = *(u32 *)(r7 +4) */
#line 42
	r0_0 += r5_0;                                            /* 55: r0 += r5 */
#line 42
	r6_0 = *(const mr_u32 *)(p7_0 + 8);                      /* 56: r6 = *(u32 *)(r7 +8) */
#line 42
	r0_0 += r6_0;                                            /* 57: r0 += r6 */
#line 44
	r5_0 = (u32)r5_0 << 2;                                   /* 58: w5 <<= 2 */
#line 44
	r5_0 = (u32)r5_0 & 60;                                   /* 59: w5 &= 60 */
#line 44
	r6_0 = (u32)r4_0;                                        /* 60: w6 = w4 */
#line 44
	r6_0 = (u32)r6_0 + (u32)r5_0;                            /* 61: w6 += w5 */
#line 42
	r5_0 = *(const mr_u32 *)(p7_0 + 12);                     /* 62: r5 = *(u32 *)(r7 +12) */
#line 42
	r0_0 += r5_0;                                            /* 63: r0 += r5 */
	r5_0 = *(const mr_u32 *)(p7_0 + 16);                     /* 64: r5 = *(u32 *)(r7 +16) */
#line 42
	r0_0 += r5_0;                                            /* 65: r0 += r5 */
#line 46
	r4_0 += 20;                                              /* 66: r4 += 20 */
#line 46
	if (r4_0 == r6_0) goto L80;                              /* 67: if r4 == r6 goto 81 */
#line 46
	r8_0 = 0;                                                /* 68: r8 = 0 */
L68:
#line 51
	r9_0 = r4_0;                                             /* 69: r9 = r4 */
#line 51
	r9_0 += r8_0;                                            /* 70: r9 += r8 */
#line 51
	if (r9_0 >= r6_0) goto L80;                              /* 71: if r9 >= r6 goto 81 */
#line 35 "millrace/packet.h"
	p2_0 = p7_0;                                             /* 72: r2 = r7 */
#line 35
	p2_0 += (s64)r8_0;                                       /* 73: r2 += r8 */
#line 35
	p9_0 = p2_0;                                             /* 74: r9 = r2 */
#line 35
	p9_0 += 24;                                              /* 75: r9 += 24 */
#line 35
	if (p9_0 > p3_0) goto L80;                               /* 76: if r9 > r3 goto 81 */
#line 56 "millrace/ipv4.h"
	r2_0 = *(const mr_u32 *)(p2_0 + 20);                     /* 77: r2 = *(u32 *)(r2 +20) */
#line 56
	r0_0 += r2_0;                                            /* 78: r0 += r2 */
#line 49
	r8_0 += 4;                                               /* 79: r8 += 4 */
#line 49
	if ((u32)r8_0 != 40) goto L68;                           /* 80: if w8 != 40 goto 69 */
L80:
#line 17 "millrace/checksum.h"
	r2_0 = r0_0;                                             /* 81: r2 = r0 */
#line 17
	r2_0 >>= 32;                                             /* 82: r2 >>= 32 */
#line 17
	r0_0 <<= 32;                                             /* 83: r0 <<= 32 */
#line 17
	r0_0 >>= 32;                                             /* 84: r0 >>= 32 */
#line 17
	r0_0 += r2_0;                                            /* 85: r0 += r2 */
	r2_0 = r0_0;                                             /* 86: r2 = r0 */
#line 18
	r2_0 >>= 16;                                             /* 87: r2 >>= 16 */
#line 18
	r0_0 &= 0xffffu;                                         /* 88: r0 &= 65535 */
#line 18
	r0_0 += r2_0;                                            /* 89: r0 += r2 */
	r2_0 = r0_0;                                             /* 90: r2 = r0 */
#line 19
	r2_0 >>= 16;                                             /* 91: r2 >>= 16 */
#line 19
	r0_0 = (u32)r0_0 & 0xffffu;                              /* 92: w0 &= 65535 */
#line 19
	r0_0 = (u32)r0_0 + (u32)r2_0;                            /* 93: w0 += w2 */
	r2_0 = (u32)r0_0;                                        /* 94: w2 = w0 */
#line 20
	r2_0 = (u32)r2_0 >> 16;                                  /* 95: w2 >>= 16 */
#line 20
	r2_0 = (u32)r2_0 + (u32)r0_0;                            /* 96: w2 += w0 */
#line 74 "millrace/ipv4.h"
	r2_0 &= 0xffffu;                                         /* 99: r2 &= 65535 */
#line 74
	if (r2_0 != 0xffffu) goto L194;                          /* 100: if r2 != 65535 goto 207 */
#line 74
	*(mr_pointer *)s0_48 = (u8 *)pkt;                        /* 101: *(u64 *)(r10 -48) = r1 */
#line 36 "nfs/policer/policer.c" /* *to = address_from_ipv4(ip->dst); */
	r5_0 <<= 32;                                             /* 102: r5 <<= 32 */
#line 36
	r1_0 = 0xffff0000u;                                      /* 103: r1 = 0xffff0000 ll */
#line 36
	r5_0 |= r1_0;                                            /* 105: r5 |= r1 */
#line 36
	r1_0 = 0;                                                /* 106: r1 = 0 */
L125:
	{                                                        /* stores in the order of addresses */
#line 44 /* *to = address_from_ipv6(ip->dst); */
		*(mr_u64 *)s0_32 = r1_0;                         /* 130: *(u64 *)(r10 -32) = r1 */
#line 44
		*(mr_u64 *)(s0_32 + 8) = r5_0;                   /* 129: *(u64 *)(r10 -24) = r5 */
	}
#line 89 /* bucket = map_refresh(&buckets, &to); */
	{                                                        /* 135: call map_refresh#65537 */
#line 89
		u64 key[2];
#line 89
		memcpy(key, s0_32, 16);
#line 89
		slot->token = hash_token(&self->o1_buckets, &shape1_buckets, key);
#line 89
		memcpy(slot->key, key, sizeof(key));
#line 89
		slot->site = 1;
#line 89
		hash_prefetch(&self->o1_buckets, &shape1_buckets, slot->token);
#line 89
		return;
#line 89
	}
L105:
#line 33 "millrace/packet.h"
	p7_0 += (s64)r4_0;                                       /* 110: r7 += r4 */
#line 35
	p2_0 = p7_0;                                             /* 111: r2 = r7 */
#line 35
	p2_0 += 40;                                              /* 112: r2 += 40 */
#line 35
	if (p2_0 > p3_0) goto L194;                              /* 113: if r2 > r3 goto 207 */
#line 41 "millrace/ipv6.h"
	r2_0 = *(const mr_u32 *)p7_0;                            /* 114: r2 = *(u32 *)(r7 +0) */
#line 41
	r2_0 = (u32)r2_0 & 240;                                  /* 115: w2 &= 240 */
#line 41
	if ((u32)r2_0 != 96) goto L194;                          /* 116: if w2 != 96 goto 207 */
#line 43
	r2_0 = *(const volatile mr_u16 *)(p7_0 + 4);             /* 117: r2 = *(u16 *)(r7 +4) */
#line 43
	r2_0 = __builtin_bswap16((u16)r2_0);                     /* 118: r2 = bswap16 r2 */
#line 43
	r4_0 += r2_0;                                            /* 119: r4 += r2 */
#line 43
	r4_0 += 40;                                              /* 120: r4 += 40 */
#line 43
	r2_0 = *(const mr_u64 *)s0_40;                           /* 121: r2 = *(u64 *)(r10 -40) */
#line 43
	if (r4_0 > r2_0) goto L194;                              /* 122: if r4 > r2 goto 207 */
#line 43
	*(mr_pointer *)s0_48 = (u8 *)pkt;                        /* 123: *(u64 *)(r10 -48) = r1 */
#line 44 "nfs/policer/policer.c" /* *to = address_from_ipv6(ip->dst); */
	r2_0 = *(const mr_u32 *)(p7_0 + 24);                     /* 124: r2 = *(u32 *)(r7 +24) */
#line 44
	r1_0 = *(const mr_u32 *)(p7_0 + 28);                     /* 125: r1 = *(u32 *)(r7 +28) */
#line 44
	r1_0 <<= 32;                                             /* 126: r1 <<= 32 */
#line 44
	r1_0 |= r2_0;                                            /* 127: r1 |= r2 */
#line 44
	r5_0 = *(const mr_u64 *)(p7_0 + 32);                     /* 128: r5 = *(u64 *)(r7 +32) */
#line 44
	goto L125;
L194:
#line 104 /* } */
	return;                                                  /* 207: exit */
#line 725 "policer.c"
}

static int create(struct mr_instance *self, const struct mr_config *config)
{
	int error;

	error = global_create(&self->o0__rodata_params, &shape0__rodata_params, config, config->initial ? config->initial[0] : NULL);
	if (error)
		return error;
	error = hash_create(&self->o1_buckets, &shape1_buckets, config, config->initial ? config->initial[1] : NULL);
	if (error)
		goto undo0;
	return 0;

undo0:
	global_destroy(&self->o0__rodata_params, &shape0__rodata_params);
	return error;
}

static void destroy(struct mr_instance *self)
{
	hash_destroy(&self->o1_buckets, &shape1_buckets);
	global_destroy(&self->o0__rodata_params, &shape0__rodata_params);
}

/* Once a burst, at its first packet's time. */
static void age(struct mr_instance *self, u64 now)
{
	hash_age(&self->o1_buckets, &shape1_buckets, now);
}

static void burst0_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	if (n > 0)
		age(self, packets[0]->time);
	for (u32 i = 0; i < n; i++) {
		mr_verdict_handlers(packets[i], run0_millrace_on_packet(self, packets[i], NULL));
	}
}

static inline void scout0_millrace_on_packet_entry(struct mr_instance *self, const struct slot *slot)
{
	switch (slot->site) {
	case 1:
		hash_prefetch_entry(&self->o1_buckets, &shape1_buckets, slot->token);
		break;
	default:
		break;
	}
}

/* Three passes, so that the misses of a batch overlap. While the state fits the cache they would
 * cost more than they save. */
static void burst0(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	struct slot slots[MR_BATCH];

	if (!(hash_cold(&self->o1_buckets, &shape1_buckets))) {
		burst0_plain(self, packets, n);
		return;
	}
	if (n > 0)
		age(self, packets[0]->time);
	while (n > 0) {
		const u32 count = n < MR_BATCH ? n : MR_BATCH;

		for (u32 i = 0; i < count; i++) {
			slots[i].site = 0;
			scout0_millrace_on_packet(self, packets[i], &slots[i]);
		}
		for (u32 i = 0; i < count; i++)
			scout0_millrace_on_packet_entry(self, &slots[i]);
		for (u32 i = 0; i < count; i++) {
			mr_verdict_handlers(packets[i], run0_millrace_on_packet(self, packets[i], &slots[i]));
		}
		packets += count;
		n -= count;
	}
}

static u64 o0__rodata_params_count(struct mr_instance *self, u64 now)
{
	return global_count(&self->o0__rodata_params, &shape0__rodata_params, now);
}

static int o0__rodata_params_get(struct mr_instance *self, const u8 *key, u8 *value, u64 now)
{
	return global_get(&self->o0__rodata_params, &shape0__rodata_params, key, value, now);
}

static int o0__rodata_params_set(struct mr_instance *self, const u8 *key, const u8 *value, u64 now)
{
	return global_set(&self->o0__rodata_params, &shape0__rodata_params, key, value, now);
}

static int o0__rodata_params_remove(struct mr_instance *self, const u8 *key, u64 now)
{
	return global_remove(&self->o0__rodata_params, &shape0__rodata_params, key, now);
}

static int o0__rodata_params_next(struct mr_instance *self, u64 *cursor, u8 *key, u8 *value, u64 now)
{
	return global_next(&self->o0__rodata_params, &shape0__rodata_params, cursor, key, value, now);
}

static u64 o1_buckets_count(struct mr_instance *self, u64 now)
{
	return hash_count(&self->o1_buckets, &shape1_buckets, now);
}

static int o1_buckets_get(struct mr_instance *self, const u8 *key, u8 *value, u64 now)
{
	return hash_get(&self->o1_buckets, &shape1_buckets, key, value, now);
}

static int o1_buckets_set(struct mr_instance *self, const u8 *key, const u8 *value, u64 now)
{
	return hash_set(&self->o1_buckets, &shape1_buckets, key, value, now);
}

static int o1_buckets_remove(struct mr_instance *self, const u8 *key, u64 now)
{
	return hash_remove(&self->o1_buckets, &shape1_buckets, key, now);
}

static int o1_buckets_next(struct mr_instance *self, u64 *cursor, u8 *key, u8 *value, u64 now)
{
	return hash_next(&self->o1_buckets, &shape1_buckets, cursor, key, value, now);
}

static const struct mr_object objects[] = {
	{
		.name = ".rodata.params", .kind = "global", .key_bytes = 0, .value_bytes = 16,
		.capacity = 1ull, .bytes = 4096ull,
		.count = o0__rodata_params_count,
		.get = o0__rodata_params_get,
		.set = o0__rodata_params_set,
		.remove = o0__rodata_params_remove,
		.next = o0__rodata_params_next,
	},
	{
		.name = "buckets", .kind = "map", .key_bytes = 16, .value_bytes = 16,
		.capacity = 65536ull, .bytes = 8388608ull,
		.count = o1_buckets_count,
		.get = o1_buckets_get,
		.set = o1_buckets_set,
		.remove = o1_buckets_remove,
		.next = o1_buckets_next,
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
	.objects = 2,
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
