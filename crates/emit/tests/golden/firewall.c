/* firewall: emitted by millrace, treatment alone (one thread owns an instance).
 *
 * millrace_on_packet: every packet
 * flows: map
 *
 * How to read it: crates/emit/README.md, and alone.h for the names of locals.
 */
#include "alone.h"
#include "state/hash.h"

/* flows: map, key 40 B, value 8 B, capacity 65536, expires after 60000000000 ns */
static const struct shape shape0_flows = { .key_bytes = 40u, .value_bytes = 8u, .capacity = 65536u, .expire_after = 60000000000ull };

struct mr_instance {
	struct hash o0_flows;
};

/* What a scout found of one packet: at which operation (0: none), with which key, and its token. */
struct slot {
	u64 token;
	u64 key[5];
	u32 site;
};

/* Whether the slot's token is the one of this key at this operation. */
MR_INLINE int slot_holds(const struct slot *slot, u32 site, const u64 *key, u32 words)
{
	return slot && slot->site == site && mr_words_equal(slot->key, key, words);
}

/* millrace_on_packet: every packet */
MR_INLINE void run0_millrace_on_packet(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
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
	u64 r0_0, r1_0, r2_0, r3_0, r4_0, r5_0, r6_0, r7_0, r8_0, r9_0;
	u8 *p0_0, *p1_0, *p2_0, *p3_0, *p4_0, *p5_0, *p6_0, *p7_0, *p9_0;

#line 33 "millrace/packet.h"
	p4_0 = pkt->end;                                         /* 2: r4 = *(u32 *)(r1 +4) */
#line 31
	p3_0 = pkt->data;                                        /* 3: r3 = *(u32 *)(r1 +0) */
#line 33
	p2_0 = p3_0;                                             /* 4: r2 = r3 */
#line 33
	p2_0 += 14;                                              /* 5: r2 += 14 */
#line 33
	if (p2_0 > p4_0) goto L117;                              /* 6: if r2 > r4 goto 117 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const volatile mr_u16 *)(p3_0 + 12);            /* 7: r5 = *(u16 *)(r3 +12) */
#line 46
	if ((u32)r5_0 == 0xa888u) goto L11;                      /* 8: if w5 == 43144 goto 11 */
#line 46
	r7_0 = 14;                                               /* 9: w7 = 14 */
#line 46
	if ((u32)r5_0 != 129) goto L23;                          /* 10: if w5 != 129 goto 23 */
L11:
#line 33 "millrace/packet.h"
	p2_0 = p3_0;                                             /* 11: r2 = r3 */
#line 33
	p2_0 += 18;                                              /* 12: r2 += 18 */
#line 33
	if (p2_0 > p4_0) goto L117;                              /* 13: if r2 > r4 goto 117 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const volatile mr_u16 *)(p3_0 + 16);            /* 14: r5 = *(u16 *)(r3 +16) */
#line 46
	if ((u32)r5_0 == 0xa888u) goto L18;                      /* 15: if w5 == 43144 goto 18 */
#line 46
	r7_0 = 18;                                               /* 16: w7 = 18 */
#line 46
	if ((u32)r5_0 != 129) goto L23;                          /* 17: if w5 != 129 goto 23 */
L18:
#line 33 "millrace/packet.h"
	p2_0 = p3_0;                                             /* 18: r2 = r3 */
#line 33
	p2_0 += 22;                                              /* 19: r2 += 22 */
#line 33
	if (p2_0 > p4_0) goto L117;                              /* 20: if r2 > r4 goto 117 */
#line 33
	r7_0 = 22;                                               /* 21: w7 = 22 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const volatile mr_u16 *)(p3_0 + 20);            /* 22: r5 = *(u16 *)(r3 +20) */
L23:
#line 96 "millrace/flow.h"
	if ((u32)r5_0 == 0xdd86u) goto L121;                     /* 23: if w5 == 56710 goto 121 */
#line 96
	if ((u32)r5_0 != 8) goto L117;                           /* 24: if w5 != 8 goto 117 */
#line 31 "millrace/packet.h"
	p5_0 = pkt->data;                                        /* 29: r5 = *(u32 *)(r1 +0) */
#line 31
	p3_0 = p5_0;                                             /* 30: r3 = r5 */
#line 31
	p3_0 += (s64)r7_0;                                       /* 31: r3 += r7 */
#line 33
	p2_0 = p3_0;                                             /* 32: r2 = r3 */
#line 33
	p2_0 += 20;                                              /* 33: r2 += 20 */
#line 33
	p6_0 = pkt->end;                                         /* 34: r6 = *(u32 *)(r1 +4) */
#line 33
	if (p2_0 > p6_0) goto L623;                              /* 35: if r2 > r6 goto 650 */
#line 69 "millrace/ipv4.h"
	r2_0 = *(const volatile u8 *)p3_0;                       /* 36: r2 = *(u8 *)(r3 +0) */
#line 69
	r4_0 = (u32)r2_0;                                        /* 37: w4 = w2 */
#line 69
	r4_0 = (u32)r4_0 & 240;                                  /* 38: w4 &= 240 */
#line 69
	if ((u32)r4_0 != 64) goto L623;                          /* 39: if w4 != 64 goto 650 */
#line 71
	r2_0 = (u32)r2_0 << 2;                                   /* 40: w2 <<= 2 */
#line 71
	r2_0 = (u32)r2_0 & 60;                                   /* 41: w2 &= 60 */
#line 73
	if ((u32)r2_0 < 20) goto L623;                           /* 42: if w2 < 20 goto 650 */
#line 73
	r4_0 = *(const volatile mr_u16 *)(p3_0 + 2);             /* 43: r4 = *(u16 *)(r3 +2) */
#line 73
	r4_0 = __builtin_bswap16((u16)r4_0);                     /* 44: r4 = bswap16 r4 */
#line 73
	if ((u32)r2_0 > (u32)r4_0) goto L623;                    /* 45: if w2 > w4 goto 650 */
#line 73
	r2_0 = (u32)r7_0;                                        /* 46: w2 = w7 */
#line 73
	r2_0 = (u32)r2_0 + (u32)r4_0;                            /* 47: w2 += w4 */
#line 46 "millrace/packet.h"
	p4_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p6_0);     /* 48: w4 = w6 */
#line 46
	r4_0 = (u32)(u64)(uintptr_t)p4_0 - (u32)(u64)(uintptr_t)p5_0; /* 49: w4 -= w5 */
#line 73 "millrace/ipv4.h"
	if ((u32)r2_0 > (u32)r4_0) goto L623;                    /* 50: if w2 > w4 goto 650 */
#line 73
	*(mr_pointer *)s0_144 = p5_0;                            /* 51: *(u64 *)(r10 -144) = r5 */
#line 43
	r0_0 = *(const volatile mr_u32 *)p3_0;                   /* 52: r0 = *(u32 *)(r3 +0) */
#line 45
	r2_0 = (u32)r0_0;                                        /* 53: w2 = w0 */
#line 45
	r2_0 = (u32)r2_0 << 2;                                   /* 54: w2 <<= 2 */
#line 45
	r2_0 = (u32)r2_0 & 60;                                   /* 55: w2 &= 60 */
#line 45
	r5_0 = (u32)r7_0;                                        /* 56: w5 = w7 */
#line 45
	r5_0 = (u32)r5_0 + (u32)r2_0;                            /* 57: w5 += w2 */
#line 43
	r4_0 = *(const mr_u32 *)(p3_0 + 4);                      /* 58: r4 = *(u32 *)(r3 +4) */
#line 43
	r8_0 = r4_0;                                             /* 59: r8 = r4 */
#line 43
	*(mr_u64 *)s0_176 = r0_0;                                /* 60: *(u64 *)(r10 -176) = r0 */
#line 43
	r8_0 += r0_0;                                            /* 61: r8 += r0 */
#line 43
	r2_0 = *(const mr_u32 *)(p3_0 + 8);                      /* 62: r2 = *(u32 *)(r3 +8) */
#line 43
	*(mr_u64 *)s0_152 = r2_0;                                /* 63: *(u64 *)(r10 -152) = r2 */
#line 43
	r8_0 += r2_0;                                            /* 64: r8 += r2 */
#line 43
	r2_0 = *(const mr_u32 *)(p3_0 + 12);                     /* 65: r2 = *(u32 *)(r3 +12) */
#line 43
	*(mr_u64 *)s0_160 = r2_0;                                /* 66: *(u64 *)(r10 -160) = r2 */
#line 43
	r8_0 += r2_0;                                            /* 67: r8 += r2 */
	r2_0 = *(const mr_u32 *)(p3_0 + 16);                     /* 68: r2 = *(u32 *)(r3 +16) */
#line 44
	*(mr_u64 *)s0_168 = r2_0;                                /* 69: *(u64 *)(r10 -168) = r2 */
#line 43
	r8_0 += r2_0;                                            /* 70: r8 += r2 */
#line 43
	*(mr_u64 *)s0_136 = r7_0;                                /* 71: *(u64 *)(r10 -136) = r7 */
#line 47
	r0_0 = r7_0;                                             /* 72: r0 = r7 */
#line 47
	r0_0 += 20;                                              /* 73: r0 += 20 */
#line 47
	if (r0_0 == r5_0) goto L88;                              /* 74: if r0 == r5 goto 88 */
#line 47
	r9_0 = 0;                                                /* 75: r9 = 0 */
L76:
#line 52
	r2_0 = r0_0;                                             /* 76: r2 = r0 */
#line 52
	r2_0 += r9_0;                                            /* 77: r2 += r9 */
#line 52
	if (r2_0 >= r5_0) goto L88;                              /* 78: if r2 >= r5 goto 88 */
#line 33 "millrace/packet.h"
	p7_0 = p3_0;                                             /* 79: r7 = r3 */
#line 33
	p7_0 += (s64)r9_0;                                       /* 80: r7 += r9 */
#line 33
	p2_0 = p7_0;                                             /* 81: r2 = r7 */
#line 33
	p2_0 += 24;                                              /* 82: r2 += 24 */
#line 33
	if (p2_0 > p6_0) goto L88;                               /* 83: if r2 > r6 goto 88 */
#line 57 "millrace/ipv4.h"
	r2_0 = *(const mr_u32 *)(p7_0 + 20);                     /* 84: r2 = *(u32 *)(r7 +20) */
#line 57
	r8_0 += r2_0;                                            /* 85: r8 += r2 */
#line 50
	r9_0 += 4;                                               /* 86: r9 += 4 */
#line 50
	if ((u32)r9_0 != 40) goto L76;                           /* 87: if w9 != 40 goto 76 */
L88:
#line 16 "millrace/checksum.h"
	r2_0 = r8_0;                                             /* 88: r2 = r8 */
#line 16
	r2_0 >>= 32;                                             /* 89: r2 >>= 32 */
#line 16
	r8_0 <<= 32;                                             /* 90: r8 <<= 32 */
#line 16
	r8_0 >>= 32;                                             /* 91: r8 >>= 32 */
#line 16
	r8_0 += r2_0;                                            /* 92: r8 += r2 */
	r2_0 = r8_0;                                             /* 93: r2 = r8 */
#line 17
	r2_0 >>= 16;                                             /* 94: r2 >>= 16 */
#line 17
	r8_0 &= 0xffffu;                                         /* 95: r8 &= 65535 */
#line 17
	r8_0 += r2_0;                                            /* 96: r8 += r2 */
	r2_0 = r8_0;                                             /* 97: r2 = r8 */
#line 18
	r2_0 >>= 16;                                             /* 98: r2 >>= 16 */
#line 18
	r8_0 = (u32)r8_0 & 0xffffu;                              /* 99: w8 &= 65535 */
#line 18
	r8_0 = (u32)r8_0 + (u32)r2_0;                            /* 100: w8 += w2 */
	r2_0 = (u32)r8_0;                                        /* 101: w2 = w8 */
#line 19
	r2_0 = (u32)r2_0 >> 16;                                  /* 102: w2 >>= 16 */
#line 19
	r2_0 = (u32)r2_0 + (u32)r8_0;                            /* 103: w2 += w8 */
#line 75 "millrace/ipv4.h"
	r2_0 &= 0xffffu;                                         /* 104: r2 &= 65535 */
#line 75
	r7_0 = *(const mr_u64 *)s0_136;                          /* 105: r7 = *(u64 *)(r10 -136) */
#line 75
	p9_0 = *(mr_pointer *)s0_144;                            /* 106: r9 = *(u64 *)(r10 -144) */
#line 75
	if (r2_0 != 0xffffu) goto L623;                          /* 107: if r2 != 65535 goto 650 */
#line 75
	r0_0 = *(const mr_u64 *)s0_152;                          /* 108: r0 = *(u64 *)(r10 -152) */
#line 75
	r0_0 = (u32)r0_0 >> 8;                                   /* 109: w0 >>= 8 */
#line 47
	r2_0 = (u32)r0_0;                                        /* 110: w2 = w0 */
#line 47
	r2_0 = (u32)r2_0 & 255;                                  /* 111: w2 &= 255 */
#line 78 "millrace/flow4.h"
	if ((u32)r2_0 > 17) goto L117;                           /* 112: if w2 > 17 goto 117 */
#line 78
	r5_0 = 1;                                                /* 113: w5 = 1 */
#line 78
	r5_0 = (u32)r5_0 << ((u32)r2_0 & 31);                    /* 114: w5 <<= w2 */
#line 78
	r5_0 = (u32)r5_0 & 0x20042u;                             /* 115: w5 &= 131138 */
#line 78
	if ((u32)r5_0 != 0) goto L412;                           /* 116: if w5 != 0 goto 432 */
L117:
#line 34 "millrace/verdict.h"
	r0_0 = pkt->port;                                        /* 117: r0 = *(u32 *)(r1 +12) */
L118:
#line 34
	r0_0 = (u32)r0_0 & 0xffffffu;                            /* 118: w0 &= 16777215 */
#line 34
	r0_0 = (u32)r0_0 ^ 0x1000001u;                           /* 119: w0 ^= 16777217 */
#line 36 "nfs/firewall/firewall.c" /* } */
	return mr_verdict_handlers(pkt, r0_0);                   /* 120: exit */
L121:
#line 36
	r0_0 = 1;                                                /* 121: r0 = 0x1 ll */
#line 31 "millrace/packet.h"
	p6_0 = p3_0;                                             /* 123: r6 = r3 */
#line 31
	r5_0 = r7_0;                                             /* 124: r5 = r7 */
#line 31
	p6_0 += (s64)r7_0;                                       /* 125: r6 += r7 */
#line 33
	p2_0 = p6_0;                                             /* 126: r2 = r6 */
#line 33
	p2_0 += 40;                                              /* 127: r2 += 40 */
#line 33
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 128: if r2 > r4 goto 120 */
#line 40 "millrace/ipv6.h"
	r2_0 = *(const volatile mr_u32 *)p6_0;                   /* 129: r2 = *(u32 *)(r6 +0) */
#line 40
	r2_0 = (u32)r2_0 & 240;                                  /* 130: w2 &= 240 */
#line 40
	if ((u32)r2_0 != 96) return mr_verdict_handlers(pkt, r0_0); /* 131: if w2 != 96 goto 120 */
#line 46 "millrace/packet.h"
	p2_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p4_0);     /* 132: w2 = w4 */
#line 46
	r2_0 = (u32)(u64)(uintptr_t)p2_0 - (u32)(u64)(uintptr_t)p3_0; /* 133: w2 -= w3 */
#line 46
	r7_0 = r5_0;                                             /* 134: r7 = r5 */
#line 42 "millrace/ipv6.h"
	r7_0 += 40;                                              /* 135: r7 += 40 */
#line 42
	r5_0 = *(const volatile mr_u16 *)(p6_0 + 4);             /* 136: r5 = *(u16 *)(r6 +4) */
#line 42
	r5_0 = __builtin_bswap16((u16)r5_0);                     /* 137: r5 = bswap16 r5 */
#line 42
	*(mr_u64 *)s0_136 = r7_0;                                /* 138: *(u64 *)(r10 -136) = r7 */
#line 42
	r7_0 += r5_0;                                            /* 139: r7 += r5 */
#line 42
	*(mr_u64 *)s0_144 = r7_0;                                /* 140: *(u64 *)(r10 -144) = r7 */
#line 42
	if (r7_0 > r2_0) return mr_verdict_handlers(pkt, r0_0);  /* 141: if r7 > r2 goto 120 */
#line 42
	r5_0 = 8;                                                /* 142: w5 = 8 */
#line 72 "millrace/flow.h"
	p9_0 = p6_0;                                             /* 143: r9 = r6 */
#line 72
	p9_0 += 6;                                               /* 144: r9 += 6 */
#line 72
	r2_0 = 0x100000000000ull;                                /* 145: r2 = 0x100000000000 ll */
#line 72
	*(mr_u64 *)s0_152 = r2_0;                                /* 147: *(u64 *)(r10 -152) = r2 */
#line 72
	r2_0 = 0x8000000000000ull;                               /* 148: r2 = 0x8000000000000 ll */
#line 72
	*(mr_u64 *)s0_160 = r2_0;                                /* 150: *(u64 *)(r10 -160) = r2 */
L148:
#line 72
	r7_0 = (u32)r5_0;                                        /* 151: w7 = w5 */
#line 72
	r5_0 = *(const volatile u8 *)p9_0;                       /* 152: r5 = *(u8 *)(r9 +0) */
#line 85 "millrace/ipv6.h"
	if (r5_0 > 63) goto L198;                                /* 153: if r5 > 63 goto 204 */
#line 85
	r2_0 = 0x1008180000000001ull;                            /* 154: r2 = 0x1008180000000001 ll */
#line 85
	r2_0 = r2_0 >> (r5_0 & 63);                              /* 156: r2 >>= r5 */
#line 85
	r2_0 &= 1;                                               /* 157: r2 &= 1 */
#line 85
	if (r2_0 == 0) goto L198;                                /* 158: if r2 == 0 goto 204 */
#line 31 "millrace/packet.h"
	r2_0 = *(const mr_u64 *)s0_136;                          /* 159: r2 = *(u64 *)(r10 -136) */
#line 31
	r2_0 = (u32)r2_0;                                        /* 160: w2 = w2 */
#line 31
	p9_0 = p3_0;                                             /* 161: r9 = r3 */
#line 31
	p9_0 += (s64)r2_0;                                       /* 162: r9 += r2 */
#line 31
	r0_0 = 1;                                                /* 163: r0 = 0x1 ll */
#line 33
	p2_0 = p9_0;                                             /* 165: r2 = r9 */
#line 33
	p2_0 += 8;                                               /* 166: r2 += 8 */
#line 33
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 167: if r2 > r4 goto 120 */
#line 33
	r2_0 = *(const mr_u64 *)s0_136;                          /* 168: r2 = *(u64 *)(r10 -136) */
#line 33
	r2_0 = (u32)r2_0 + 8;                                    /* 169: w2 += 8 */
#line 33
	r8_0 = *(const mr_u64 *)s0_144;                          /* 170: r8 = *(u64 *)(r10 -144) */
#line 33
	if ((u32)r2_0 > (u32)r8_0) return mr_verdict_handlers(pkt, r0_0); /* 171: if w2 > w8 goto 120 */
#line 68 "millrace/ipv6.h"
	r0_0 = *(const mr_u64 *)s0_152;                          /* 172: r0 = *(u64 *)(r10 -152) */
#line 68
	r0_0 = r0_0 >> (r5_0 & 63);                              /* 173: r0 >>= r5 */
#line 68
	r0_0 = (u32)r0_0 & 1;                                    /* 174: w0 &= 1 */
#line 68
	r0_0 = -(u32)r0_0;                                       /* 175: w0 = -w0 */
#line 96
	r2_0 = *(const volatile mr_u16 *)(p9_0 + 2);             /* 176: r2 = *(u16 *)(r9 +2) */
#line 96
	r2_0 = __builtin_bswap64((u64)r2_0);                     /* 177: r2 = bswap64 r2 */
#line 96
	r2_0 >>= 51;                                             /* 178: r2 >>= 51 */
#line 96
	r8_0 = (u32)r0_0;                                        /* 179: w8 = w0 */
#line 96
	r8_0 = (u32)r8_0 & (u32)r2_0;                            /* 180: w8 &= w2 */
#line 96
	if ((u32)r8_0 != 0) goto L237;                           /* 181: if w8 != 0 goto 245 */
#line 96
	r8_0 = *(const mr_u64 *)s0_160;                          /* 182: r8 = *(u64 *)(r10 -160) */
#line 96
	r8_0 = r8_0 >> (r5_0 & 63);                              /* 183: r8 >>= r5 */
#line 96
	r8_0 = (u32)r8_0 & 1;                                    /* 184: w8 &= 1 */
#line 96
	r8_0 = -(u32)r8_0;                                       /* 185: w8 = -w8 */
#line 103
	r0_0 = (u32)r0_0 ^ 0xffffffffu;                          /* 186: w0 ^= -1 */
#line 103
	r2_0 = *(const volatile u8 *)(p9_0 + 1);                 /* 187: r2 = *(u8 *)(r9 +1) */
#line 103
	r2_0 = (u32)r2_0 & (u32)r0_0;                            /* 188: w2 &= w0 */
	r2_0 = (u32)r2_0 - (u32)r8_0;                            /* 189: w2 -= w8 */
#line 104
	r2_0 = (u32)r2_0 + 1;                                    /* 190: w2 += 1 */
#line 104
	r8_0 = (u32)r8_0 + 3;                                    /* 191: w8 += 3 */
#line 104
	r2_0 = (u32)r2_0 << ((u32)r8_0 & 31);                    /* 192: w2 <<= w8 */
#line 104
	r5_0 = *(const mr_u64 *)s0_136;                          /* 193: r5 = *(u64 *)(r10 -136) */
#line 104
	r2_0 = (u32)r2_0 + (u32)r5_0;                            /* 194: w2 += w5 */
#line 104
	r0_0 = 1;                                                /* 195: r0 = 0x1 ll */
#line 104
	r5_0 = *(const mr_u64 *)s0_144;                          /* 197: r5 = *(u64 *)(r10 -144) */
#line 104
	if ((u32)r2_0 > (u32)r5_0) return mr_verdict_handlers(pkt, r0_0); /* 198: if w2 > w5 goto 120 */
#line 104
	r5_0 = (u32)r7_0;                                        /* 199: w5 = w7 */
#line 104
	r5_0 = (u32)r5_0 + 0xffffffffu;                          /* 200: w5 += -1 */
#line 104
	*(mr_u64 *)s0_136 = r2_0;                                /* 201: *(u64 *)(r10 -136) = r2 */
#line 104
	if ((u32)r7_0 == 0) return mr_verdict_handlers(pkt, r0_0); /* 202: if w7 == 0 goto 120 */
#line 104
	goto L148;                                               /* 203: goto 151 */
L198:
#line 73 "millrace/flow.h"
	r8_0 = *(const mr_u64 *)s0_136;                          /* 208: r8 = *(u64 *)(r10 -136) */
#line 77
	if ((u32)r5_0 == 1) goto L117;                           /* 209: if w5 == 1 goto 117 */
#line 32
	r2_0 = *(const mr_u32 *)(p6_0 + 8);                      /* 210: r2 = *(u32 *)(r6 +8) */
#line 32
	r0_0 = *(const mr_u32 *)(p6_0 + 12);                     /* 211: r0 = *(u32 *)(r6 +12) */
#line 32
	r7_0 = *(const mr_u64 *)(p6_0 + 16);                     /* 212: r7 = *(u64 *)(r6 +16) */
	{                                                        /* stores in the order of addresses */
#line 32
		r0_0 <<= 32;                                     /* 214: r0 <<= 32 */
#line 32
		r0_0 |= r2_0;                                    /* 215: r0 |= r2 */
#line 32
		const u64 v209 = r0_0;                           /* 216: *(u64 *)(r10 -120) = r0 */
		r2_0 = *(const mr_u32 *)(p6_0 + 24);             /* 217: r2 = *(u32 *)(r6 +24) */
#line 33
		r0_0 = *(const mr_u32 *)(p6_0 + 28);             /* 218: r0 = *(u32 *)(r6 +28) */
#line 33
		r6_0 = *(const mr_u64 *)(p6_0 + 32);             /* 219: r6 = *(u64 *)(r6 +32) */
#line 33
		r0_0 <<= 32;                                     /* 222: r0 <<= 32 */
#line 33
		r0_0 |= r2_0;                                    /* 223: r0 |= r2 */
#line 32
		*(mr_u64 *)s0_120 = v209;                        /* 216: *(u64 *)(r10 -120) = r0 */
#line 32
		*(mr_u64 *)(s0_120 + 8) = r7_0;                  /* 213: *(u64 *)(r10 -112) = r7 */
		*(mr_u64 *)(s0_120 + 16) = r0_0;                 /* 224: *(u64 *)(r10 -104) = r0 */
#line 33
		*(mr_u64 *)(s0_120 + 24) = r6_0;                 /* 221: *(u64 *)(r10 -96) = r6 */
		*(u8 *)(s0_120 + 36) = (u8)r5_0;                 /* 220: *(u8 *)(r10 -84) = r5 */
		*(u8 *)(s0_120 + 37) = 6;                        /* 226: *(u8 *)(r10 -83) = 6 */
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 225: *(u16 *)(r10 -82) = 0 */
	}
#line 49 "millrace/transport.h"
	if ((u32)r5_0 == 17) goto L242;                          /* 227: if w5 == 17 goto 252 */
#line 49
	if ((u32)r5_0 != 6) goto L254;                           /* 228: if w5 != 6 goto 265 */
#line 31 "millrace/packet.h"
	r2_0 = (u32)r8_0;                                        /* 229: w2 = w8 */
#line 31
	p3_0 += (s64)r2_0;                                       /* 230: r3 += r2 */
#line 31
	r0_0 = 1;                                                /* 231: r0 = 0x1 ll */
#line 33
	p2_0 = p3_0;                                             /* 233: r2 = r3 */
#line 33
	p2_0 += 20;                                              /* 234: r2 += 20 */
#line 33
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 235: if r2 > r4 goto 120 */
#line 52 "millrace/transport.h"
	r2_0 = *(const volatile u8 *)(p3_0 + 12);                /* 236: r2 = *(u8 *)(r3 +12) */
#line 52
	if ((u32)r2_0 < 80) return mr_verdict_handlers(pkt, r0_0); /* 237: if w2 < 80 goto 120 */
#line 52
	r2_0 = (u32)r2_0 >> 2;                                   /* 238: w2 >>= 2 */
#line 52
	r2_0 = (u32)r2_0 & 60;                                   /* 239: w2 &= 60 */
#line 52
	r4_0 = *(const mr_u64 *)s0_136;                          /* 240: r4 = *(u64 *)(r10 -136) */
#line 52
	r4_0 = (u32)r4_0 + (u32)r2_0;                            /* 241: w4 += w2 */
#line 52
	r2_0 = *(const mr_u64 *)s0_144;                          /* 242: r2 = *(u64 *)(r10 -144) */
#line 52
	if ((u32)r4_0 > (u32)r2_0) return mr_verdict_handlers(pkt, r0_0); /* 243: if w4 > w2 goto 120 */
L251:
#line 33 "millrace/packet.h"
	r2_0 = *(const mr_u32 *)p3_0;                            /* 262: r2 = *(u32 *)(r3 +0) */
L252:
#line 33
	*(mr_u32 *)(s0_120 + 32) = (u32)r2_0;                    /* 263: *(u32 *)(r10 -88) = r2 */
L476:
#line 29 "nfs/firewall/firewall.c" /* if (p->port == WAN) */
	r1_0 = pkt->port;                                        /* 500: r1 = *(u32 *)(r1 +12) */
#line 29
	if ((u32)r1_0 != 1) goto L492;                           /* 501: if w1 != 1 goto 515 */
#line 133 "millrace/flow.h"
	r1_0 = *(const mr_u64 *)s0_120;                          /* 502: r1 = *(u64 *)(r10 -120) */
#line 135
	r3_0 = *(const mr_u64 *)(s0_120 + 16);                   /* 503: r3 = *(u64 *)(r10 -104) */
#line 135
	*(mr_u64 *)s0_120 = r3_0;                                /* 504: *(u64 *)(r10 -120) = r3 */
#line 133
	r3_0 = *(const mr_u64 *)(s0_120 + 8);                    /* 505: r3 = *(u64 *)(r10 -112) */
#line 135
	r4_0 = *(const mr_u64 *)(s0_120 + 24);                   /* 506: r4 = *(u64 *)(r10 -96) */
#line 135
	*(mr_u64 *)(s0_120 + 8) = r4_0;                          /* 507: *(u64 *)(r10 -112) = r4 */
	*(mr_u64 *)(s0_120 + 16) = r1_0;                         /* 508: *(u64 *)(r10 -104) = r1 */
#line 136
	*(mr_u64 *)(s0_120 + 24) = r3_0;                         /* 509: *(u64 *)(r10 -96) = r3 */
	r1_0 = (u32)r2_0;                                        /* 510: w1 = w2 */
#line 137
	r1_0 = (u32)r1_0 >> 16;                                  /* 511: w1 >>= 16 */
#line 137
	r2_0 = (u32)r2_0 << 16;                                  /* 512: w2 <<= 16 */
#line 137
	r2_0 = (u32)r2_0 | (u32)r1_0;                            /* 513: w2 |= w1 */
#line 137
	*(mr_u32 *)(s0_120 + 32) = (u32)r2_0;                    /* 514: *(u32 *)(r10 -88) = r2 */
L492:
#line 31 "nfs/firewall/firewall.c" /* if (map_refresh(&flows, &f)) */
	{                                                        /* 519: call map_refresh#65537 */
#line 31
		u64 key[] = { mr_load64(s0_120), mr_load64(s0_120 + 8), mr_load64(s0_120 + 16), mr_load64(s0_120 + 24), mr_load64(s0_120 + 32) };
#line 31
		read_once(key, sizeof(key) / sizeof(*key));
#line 31
		mr_store64(s0_120, key[0]);
#line 31
		mr_store64(s0_120 + 8, key[1]);
#line 31
		mr_store64(s0_120 + 16, key[2]);
#line 31
		mr_store64(s0_120 + 24, key[3]);
#line 31
		mr_store64(s0_120 + 32, key[4]);
#line 31
		const u64 token = slot_holds(slot, 2, key, 5) ? slot->token : hash_token(&self->o0_flows, &shape0_flows, key);
#line 31
		p0_0 = hash_map_refresh(&self->o0_flows, &shape0_flows, key, token, pkt);
#line 31
	}
#line 31
	r1_0 = pkt->port;                                        /* 521: r1 = *(u32 *)(r1 +12) */
#line 31
	if (!p0_0) goto L582;                                    /* 522: if r0 == 0 goto 606 */
	r1_0 = (u32)r1_0 & 0xffffffu;                            /* 523: w1 &= 16777215 */
#line 32 /* return FORWARD(peer(p)); */
	r1_0 = (u32)r1_0 ^ 0x1000001u;                           /* 524: w1 ^= 16777217 */
#line 32
	r0_0 = (u32)r1_0;                                        /* 525: w0 = w1 */
#line 32
	return mr_verdict_handlers(pkt, r0_0);                   /* 526: goto 120 */
L237:
L240:
#line 73 "millrace/flow.h"
	r0_0 = 2;                                                /* 249: r0 = 0x2 ll */
#line 19 "nfs/firewall/firewall.c" /* return DROP_BECAUSE(fragment); */
	return mr_verdict_handlers(pkt, r0_0);                   /* 251: goto 120 */
L242:
#line 19
	r0_0 = 1;                                                /* 252: r0 = 0x1 ll */
#line 31 "millrace/packet.h"
	r2_0 = (u32)r8_0;                                        /* 254: w2 = w8 */
#line 31
	p3_0 += (s64)r2_0;                                       /* 255: r3 += r2 */
#line 33
	p5_0 = p3_0;                                             /* 256: r5 = r3 */
#line 33
	p5_0 += 8;                                               /* 257: r5 += 8 */
#line 33
	if (p5_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 258: if r5 > r4 goto 120 */
#line 33
	r2_0 += 8;                                               /* 259: r2 += 8 */
#line 33
	r4_0 = *(const mr_u64 *)s0_144;                          /* 260: r4 = *(u64 *)(r10 -144) */
#line 33
	if (r2_0 > r4_0) return mr_verdict_handlers(pkt, r0_0);  /* 261: if r2 > r4 goto 120 */
#line 33
	goto L251;
L254:
#line 68 "millrace/transport.h"
	if ((u32)r5_0 == 58) goto L257;                          /* 265: if w5 == 58 goto 268 */
#line 68
	goto L117;                                               /* 267: if w2 != 0 goto 117 */
L257:
#line 68
	r0_0 = 1;                                                /* 268: r0 = 0x1 ll */
#line 31 "millrace/packet.h"
	r2_0 = (u32)r8_0;                                        /* 270: w2 = w8 */
#line 31
	p5_0 = p3_0;                                             /* 271: r5 = r3 */
#line 31
	p5_0 += (s64)r2_0;                                       /* 272: r5 += r2 */
#line 33
	p6_0 = p5_0;                                             /* 273: r6 = r5 */
#line 33
	p6_0 += 8;                                               /* 274: r6 += 8 */
#line 33
	if (p6_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 275: if r6 > r4 goto 120 */
#line 33
	r2_0 += 8;                                               /* 276: r2 += 8 */
#line 33
	r6_0 = *(const mr_u64 *)s0_144;                          /* 277: r6 = *(u64 *)(r10 -144) */
#line 33
	if (r2_0 > r6_0) return mr_verdict_handlers(pkt, r0_0);  /* 278: if r2 > r6 goto 120 */
#line 74 "millrace/transport.h"
	r0_0 = *(const s8 *)p5_0;                                /* 279: r0 = *(s8 *)(r5 +0) */
#line 74
	r2_0 = (u32)r0_0;                                        /* 280: w2 = w0 */
#line 74
	r2_0 = (u32)r2_0 + 0xffffffffu;                          /* 281: w2 += -1 */
#line 74
	r2_0 = (u32)r2_0 & 255;                                  /* 282: w2 &= 255 */
#line 74
	if ((u32)r2_0 < 4) goto L277;                            /* 283: if w2 < 4 goto 289 */
#line 34
	if ((s32)r0_0 > -127) goto L117;                         /* 284: if w0 s> -127 goto 117 */
#line 36
	r2_0 = *(const mr_u16 *)(p5_0 + 4);                      /* 285: r2 = *(u16 *)(r5 +4) */
#line 36
	if ((u32)r0_0 == 0xffffff80u) goto L252;                 /* 286: if w0 == -128 goto 263 */
#line 36
	r2_0 = (u32)r2_0 << 16;                                  /* 287: w2 <<= 16 */
#line 36
	goto L252;                                               /* 288: goto 263 */
L277:
#line 36
	r0_0 = 1;                                                /* 289: r0 = 0x1 ll */
#line 36
	r2_0 = *(const mr_u64 *)s0_136;                          /* 291: r2 = *(u64 *)(r10 -136) */
#line 83 "millrace/flow.h"
	r2_0 = (u32)r2_0 + 8;                                    /* 292: w2 += 8 */
#line 31 "millrace/packet.h"
	p7_0 = p3_0;                                             /* 293: r7 = r3 */
#line 31
	r5_0 = r2_0;                                             /* 294: r5 = r2 */
#line 31
	p7_0 += (s64)r2_0;                                       /* 295: r7 += r2 */
#line 33
	p2_0 = p7_0;                                             /* 296: r2 = r7 */
#line 33
	p2_0 += 40;                                              /* 297: r2 += 40 */
#line 33
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 298: if r2 > r4 goto 120 */
#line 47 "millrace/flow.h"
	r5_0 += 40;                                              /* 299: r5 += 40 */
#line 47
	r6_0 = r5_0;                                             /* 300: r6 = r5 */
#line 47
	r2_0 = *(const mr_u64 *)s0_144;                          /* 301: r2 = *(u64 *)(r10 -144) */
#line 47
	if (r5_0 > r2_0) return mr_verdict_handlers(pkt, r0_0);  /* 302: if r5 > r2 goto 120 */
	r2_0 = *(const mr_u32 *)p7_0;                            /* 303: r2 = *(u32 *)(r7 +0) */
#line 48
	r2_0 = (u32)r2_0 & 240;                                  /* 304: w2 &= 240 */
#line 47
	if ((u32)r2_0 != 96) return mr_verdict_handlers(pkt, r0_0); /* 305: if w2 != 96 goto 120 */
#line 47
	r8_0 = 8;                                                /* 306: w8 = 8 */
#line 50
	p5_0 = p7_0;                                             /* 307: r5 = r7 */
#line 50
	p5_0 += 6;                                               /* 308: r5 += 6 */
#line 50
	r2_0 = 0x100000000000ull;                                /* 309: r2 = 0x100000000000 ll */
#line 50
	*(mr_u64 *)s0_136 = r2_0;                                /* 311: *(u64 *)(r10 -136) = r2 */
#line 50
	r2_0 = 0x8000000000000ull;                               /* 312: r2 = 0x8000000000000 ll */
#line 50
	*(mr_u64 *)s0_152 = r2_0;                                /* 314: *(u64 *)(r10 -152) = r2 */
#line 50
	*(mr_pointer *)s0_184 = (u8 *)pkt;                       /* 315: *(u64 *)(r10 -184) = r1 */
L301:
#line 50
	r9_0 = (u32)r8_0;                                        /* 316: w9 = w8 */
#line 50
	r8_0 = *(const volatile u8 *)p5_0;                       /* 317: r8 = *(u8 *)(r5 +0) */
#line 85 "millrace/ipv6.h"
	if (r8_0 > 63) goto L350;                                /* 318: if r8 > 63 goto 368 */
#line 85
	r1_0 = 0x1008180000000001ull;                            /* 319: r1 = 0x1008180000000001 ll */
#line 85
	r1_0 = r1_0 >> (r8_0 & 63);                              /* 321: r1 >>= r8 */
#line 85
	r1_0 &= 1;                                               /* 322: r1 &= 1 */
#line 85
	if (r1_0 == 0) goto L350;                                /* 323: if r1 == 0 goto 368 */
#line 31 "millrace/packet.h"
	r1_0 = (u32)r6_0;                                        /* 324: w1 = w6 */
#line 31
	p5_0 = p3_0;                                             /* 325: r5 = r3 */
#line 31
	p5_0 += (s64)r1_0;                                       /* 326: r5 += r1 */
#line 31
	r0_0 = 1;                                                /* 327: r0 = 0x1 ll */
#line 33
	p1_0 = p5_0;                                             /* 329: r1 = r5 */
#line 33
	p1_0 += 8;                                               /* 330: r1 += 8 */
#line 33
	if (p1_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 331: if r1 > r4 goto 120 */
#line 33
	r1_0 = (u32)r6_0;                                        /* 332: w1 = w6 */
#line 33
	r1_0 = (u32)r1_0 + 8;                                    /* 333: w1 += 8 */
#line 33
	r2_0 = *(const mr_u64 *)s0_144;                          /* 334: r2 = *(u64 *)(r10 -144) */
#line 33
	if ((u32)r1_0 > (u32)r2_0) return mr_verdict_handlers(pkt, r0_0); /* 335: if w1 > w2 goto 120 */
#line 68 "millrace/ipv6.h"
	r1_0 = *(const mr_u64 *)s0_136;                          /* 336: r1 = *(u64 *)(r10 -136) */
#line 68
	r1_0 = r1_0 >> (r8_0 & 63);                              /* 337: r1 >>= r8 */
#line 68
	r1_0 = (u32)r1_0 & 1;                                    /* 338: w1 &= 1 */
#line 68
	r1_0 = -(u32)r1_0;                                       /* 339: w1 = -w1 */
#line 96
	r2_0 = *(const mr_u16 *)(p5_0 + 2);                      /* 340: r2 = *(u16 *)(r5 +2) */
#line 96
	r2_0 = __builtin_bswap64((u64)r2_0);                     /* 341: r2 = bswap64 r2 */
#line 96
	r2_0 >>= 51;                                             /* 342: r2 >>= 51 */
#line 96
	r0_0 = (u32)r1_0;                                        /* 343: w0 = w1 */
#line 96
	r0_0 = (u32)r0_0 & (u32)r2_0;                            /* 344: w0 &= w2 */
#line 96
	if ((u32)r0_0 != 0) goto L383;                           /* 345: if w0 != 0 goto 402 */
#line 96
	r0_0 = *(const mr_u64 *)s0_152;                          /* 346: r0 = *(u64 *)(r10 -152) */
#line 96
	r0_0 = r0_0 >> (r8_0 & 63);                              /* 347: r0 >>= r8 */
#line 96
	r0_0 = (u32)r0_0 & 1;                                    /* 348: w0 &= 1 */
#line 96
	r0_0 = -(u32)r0_0;                                       /* 349: w0 = -w0 */
#line 103
	r1_0 = (u32)r1_0 ^ 0xffffffffu;                          /* 350: w1 ^= -1 */
#line 103
	r2_0 = *(const volatile u8 *)(p5_0 + 1);                 /* 351: r2 = *(u8 *)(r5 +1) */
#line 103
	r2_0 = (u32)r2_0 & (u32)r1_0;                            /* 352: w2 &= w1 */
	r2_0 = (u32)r2_0 - (u32)r0_0;                            /* 353: w2 -= w0 */
#line 104
	r2_0 = (u32)r2_0 + 1;                                    /* 354: w2 += 1 */
#line 104
	r0_0 = (u32)r0_0 + 3;                                    /* 355: w0 += 3 */
#line 104
	r2_0 = (u32)r2_0 << ((u32)r0_0 & 31);                    /* 356: w2 <<= w0 */
#line 104
	r2_0 = (u32)r2_0 + (u32)r6_0;                            /* 357: w2 += w6 */
#line 104
	r0_0 = 1;                                                /* 358: r0 = 0x1 ll */
#line 104
	r6_0 = *(const mr_u64 *)s0_144;                          /* 361: r6 = *(u64 *)(r10 -144) */
#line 104
	if ((u32)r2_0 > (u32)r6_0) return mr_verdict_handlers(pkt, r0_0); /* 362: if w2 > w6 goto 120 */
#line 104
	r8_0 = (u32)r9_0;                                        /* 363: w8 = w9 */
#line 104
	r8_0 = (u32)r8_0 + 0xffffffffu;                          /* 364: w8 += -1 */
#line 104
	r6_0 = (u32)r2_0;                                        /* 365: w6 = w2 */
#line 104
	if ((u32)r9_0 == 0) return mr_verdict_handlers(pkt, r0_0); /* 366: if w9 == 0 goto 120 */
#line 104
	goto L301;                                               /* 367: goto 316 */
L350:
#line 104
	r0_0 = 1;                                                /* 368: r0 = 0x1 ll */
#line 32 "millrace/flow.h"
	r1_0 = *(const mr_u32 *)(p7_0 + 8);                      /* 371: r1 = *(u32 *)(r7 +8) */
#line 32
	r2_0 = *(const mr_u32 *)(p7_0 + 12);                     /* 372: r2 = *(u32 *)(r7 +12) */
#line 32
	r5_0 = *(const mr_u64 *)(p7_0 + 16);                     /* 373: r5 = *(u64 *)(r7 +16) */
	{                                                        /* stores in the order of addresses */
#line 32
		r2_0 <<= 32;                                     /* 375: r2 <<= 32 */
#line 32
		r2_0 |= r1_0;                                    /* 376: r2 |= r1 */
#line 32
		const u64 v358 = r2_0;                           /* 377: *(u64 *)(r10 -120) = r2 */
		r1_0 = *(const mr_u32 *)(p7_0 + 24);             /* 378: r1 = *(u32 *)(r7 +24) */
#line 33
		r2_0 = *(const mr_u32 *)(p7_0 + 28);             /* 379: r2 = *(u32 *)(r7 +28) */
#line 33
		r2_0 <<= 32;                                     /* 380: r2 <<= 32 */
#line 33
		r2_0 |= r1_0;                                    /* 381: r2 |= r1 */
#line 33
		r1_0 = *(const mr_u64 *)(p7_0 + 32);             /* 382: r1 = *(u64 *)(r7 +32) */
#line 33
		const u64 v365 = r1_0;                           /* 384: *(u64 *)(r10 -96) = r1 */
#line 33
		const u64 v366 = r2_0;                           /* 385: *(u64 *)(r10 -104) = r2 */
#line 31 "millrace/packet.h"
		r1_0 = (u32)r6_0;                                /* 386: w1 = w6 */
#line 31
		p3_0 += (s64)r1_0;                               /* 387: r3 += r1 */
#line 33
		p2_0 = p3_0;                                     /* 388: r2 = r3 */
#line 33
		p2_0 += 8;                                       /* 389: r2 += 8 */
#line 32 "millrace/flow.h"
		*(mr_u64 *)s0_120 = v358;                        /* 377: *(u64 *)(r10 -120) = r2 */
#line 32
		*(mr_u64 *)(s0_120 + 8) = r5_0;                  /* 374: *(u64 *)(r10 -112) = r5 */
		*(mr_u64 *)(s0_120 + 16) = v366;                 /* 385: *(u64 *)(r10 -104) = r2 */
#line 33
		*(mr_u64 *)(s0_120 + 24) = v365;                 /* 384: *(u64 *)(r10 -96) = r1 */
		*(u8 *)(s0_120 + 36) = (u8)r8_0;                 /* 383: *(u8 *)(r10 -84) = r8 */
		*(u8 *)(s0_120 + 37) = 6;                        /* 391: *(u8 *)(r10 -83) = 6 */
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 390: *(u16 *)(r10 -82) = 0 */
	}
#line 33 "millrace/packet.h"
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 392: if r2 > r4 goto 120 */
#line 33
	r1_0 += 8;                                               /* 393: r1 += 8 */
#line 33
	r2_0 = *(const mr_u64 *)s0_144;                          /* 394: r2 = *(u64 *)(r10 -144) */
#line 33
	if (r1_0 > r2_0) return mr_verdict_handlers(pkt, r0_0);  /* 395: if r1 > r2 goto 120 */
#line 95 "millrace/transport.h"
	if ((u32)r8_0 == 17) goto L379;                          /* 396: if w8 == 17 goto 398 */
#line 95
	if ((u32)r8_0 != 6) goto L386;                           /* 397: if w8 != 6 goto 406 */
L379:
#line 96
	r1_0 = *(const mr_u32 *)p3_0;                            /* 398: r1 = *(u32 *)(r3 +0) */
L380:
#line 96
	*(mr_u32 *)(s0_120 + 32) = (u32)r1_0;                    /* 399: *(u32 *)(r10 -88) = r1 */
L465:
#line 23 "nfs/firewall/firewall.c" /* if (p->port == WAN && !map_get(&flows, &f)) */
	r0_0 = pkt->port;                                        /* 487: r0 = *(u32 *)(r1 +12) */
#line 23
	if ((u32)r0_0 != 1) goto L118;                           /* 488: if w0 != 1 goto 118 */
#line 23
	{                                                        /* 493: call map_get#65536 */
#line 23
		u64 key[] = { mr_load64(s0_120), mr_load64(s0_120 + 8), mr_load64(s0_120 + 16), mr_load64(s0_120 + 24), mr_load64(s0_120 + 32) };
#line 23
		read_once(key, sizeof(key) / sizeof(*key));
#line 23
		mr_store64(s0_120, key[0]);
#line 23
		mr_store64(s0_120 + 8, key[1]);
#line 23
		mr_store64(s0_120 + 16, key[2]);
#line 23
		mr_store64(s0_120 + 24, key[3]);
#line 23
		mr_store64(s0_120 + 32, key[4]);
#line 23
		const u64 token = slot_holds(slot, 1, key, 5) ? slot->token : hash_token(&self->o0_flows, &shape0_flows, key);
#line 23
		p0_0 = hash_map_get(&self->o0_flows, &shape0_flows, key, token, pkt);
#line 23
	}
#line 23
	p1_0 = p0_0;                                             /* 494: r1 = r0 */
#line 23
	r0_0 = 3;                                                /* 495: r0 = 0x3 ll */
#line 23
	if (!p1_0) return mr_verdict_handlers(pkt, r0_0);        /* 497: if r1 == 0 goto 120 */
L594:
#line 34 "millrace/verdict.h"
	r0_0 = pkt->port;                                        /* 621: r0 = *(u32 *)(r6 +12) */
#line 34
	goto L118;                                               /* 622: goto 118 */
L383:
#line 51 "millrace/flow.h"
	goto L240;                                               /* 405: goto 249 */
L386:
#line 99 "millrace/transport.h"
	if ((u32)r8_0 == 58) goto L398;                          /* 406: if w8 == 58 goto 418 */
#line 99
	if ((u32)r8_0 != 1) goto L117;                           /* 408: if w8 != 1 goto 117 */
#line 99
	r2_0 = 8;                                                /* 409: w2 = 8 */
#line 99
	r5_0 = 0;                                                /* 410: w5 = 0 */
#line 102
	r4_0 = *(const volatile u8 *)p3_0;                       /* 411: r4 = *(u8 *)(r3 +0) */
#line 102
	if ((u32)r4_0 > 12) goto L406;                           /* 412: if w4 > 12 goto 426 */
#line 102
	r7_0 = 1;                                                /* 413: w7 = 1 */
#line 102
	r7_0 = (u32)r7_0 << ((u32)r4_0 & 31);                    /* 414: w7 <<= w4 */
#line 102
	r7_0 = (u32)r7_0 & 0x1838u;                              /* 415: w7 &= 6200 */
#line 102
	if ((u32)r7_0 != 0) return mr_verdict_handlers(pkt, r0_0); /* 416: if w7 != 0 goto 120 */
L406:
#line 34
	if ((u32)r2_0 == (u32)r4_0) goto L408;                   /* 426: if w2 == w4 goto 428 */
#line 34
	if ((u32)r5_0 != (u32)r4_0) goto L117;                   /* 427: if w5 != w4 goto 117 */
L408:
	r1_0 = *(const mr_u16 *)(p3_0 + 4);                      /* 428: r1 = *(u16 *)(r3 +4) */
#line 36
	if ((u32)r2_0 == (u32)r4_0) goto L380;                   /* 429: if w2 == w4 goto 399 */
#line 36
	r1_0 = (u32)r1_0 << 16;                                  /* 430: w1 <<= 16 */
#line 36
	goto L380;                                               /* 431: goto 399 */
L398:
#line 102
	r2_0 = 128;                                              /* 418: w2 = 128 */
#line 102
	r5_0 = 129;                                              /* 419: w5 = 129 */
#line 102
	r4_0 = *(const volatile u8 *)p3_0;                       /* 420: r4 = *(u8 *)(r3 +0) */
#line 102
	r7_0 = (u32)r4_0;                                        /* 421: w7 = w4 */
#line 102
	r7_0 = (u32)r7_0 + 0xffffffffu;                          /* 422: w7 += -1 */
#line 102
	r7_0 = (u32)r7_0 & 255;                                  /* 423: w7 &= 255 */
#line 102
	if ((u32)r7_0 < 4) return mr_verdict_handlers(pkt, r0_0); /* 425: if w7 < 4 goto 120 */
#line 102
	goto L406;
L412:
#line 81 "millrace/flow4.h"
	r4_0 = (u32)r4_0 & 0xff1f0000u;                          /* 432: w4 &= -14745600 */
#line 81
	if ((u32)r4_0 != 0) goto L240;                           /* 433: if w4 != 0 goto 249 */
#line 81
	r4_0 = *(const mr_u64 *)s0_176;                          /* 434: r4 = *(u64 *)(r10 -176) */
#line 81
	r4_0 = (u32)r4_0 >> 16;                                  /* 435: w4 >>= 16 */
#line 81
	r5_0 = r0_0;                                             /* 436: r5 = r0 */
#line 38
	*(u8 *)s0_52 = (u8)r0_0;                                 /* 437: *(u8 *)(r10 -52) = r0 */
#line 37
	r2_0 = *(const mr_u64 *)s0_168;                          /* 438: r2 = *(u64 *)(r10 -168) */
#line 37
	*(mr_u32 *)s0_60 = (u32)r2_0;                            /* 439: *(u32 *)(r10 -60) = r2 */
#line 36
	r2_0 = *(const mr_u64 *)s0_160;                          /* 440: r2 = *(u64 *)(r10 -160) */
#line 36
	*(mr_u32 *)s0_64 = (u32)r2_0;                            /* 441: *(u32 *)(r10 -64) = r2 */
#line 83
	*(mr_pointer *)s0_48 = p3_0;                             /* 442: *(u64 *)(r10 -48) = r3 */
	r4_0 = __builtin_bswap16((u16)r4_0);                     /* 443: r4 = bswap16 r4 */
#line 84
	r8_0 = (u32)r7_0;                                        /* 444: w8 = w7 */
#line 84
	r8_0 = (u32)r8_0 + (u32)r4_0;                            /* 445: w8 += w4 */
#line 84
	*(mr_u32 *)s0_4 = (u32)r8_0;                             /* 446: *(u32 *)(r10 -4) = r8 */
#line 39
	*(mr_u16 *)s0_50 = 0;                                    /* 447: *(u16 *)(r10 -50) = 0 */
#line 39
	*(u8 *)s0_51 = 0;                                        /* 448: *(u8 *)(r10 -51) = 0 */
#line 86
	r2_0 = *(const volatile u8 *)p3_0;                       /* 449: r2 = *(u8 *)(r3 +0) */
#line 86
	r2_0 = (u32)r2_0 << 2;                                   /* 450: w2 <<= 2 */
#line 86
	r2_0 = (u32)r2_0 & 60;                                   /* 451: w2 &= 60 */
#line 86
	r7_0 = (u32)r7_0 + (u32)r2_0;                            /* 452: w7 += w2 */
	r0_0 = *(const volatile u8 *)(p3_0 + 9);                 /* 453: r0 = *(u8 *)(r3 +9) */
#line 49 "millrace/transport.h"
	if ((u32)r0_0 == 17) goto L503;                          /* 454: if w0 == 17 goto 527 */
#line 49
	if ((u32)r0_0 != 6) goto L510;                           /* 455: if w0 != 6 goto 534 */
#line 31 "millrace/packet.h"
	p9_0 += (s64)r7_0;                                       /* 456: r9 += r7 */
#line 33
	p2_0 = p9_0;                                             /* 457: r2 = r9 */
#line 33
	p2_0 += 20;                                              /* 458: r2 += 20 */
#line 33
	if (p2_0 > p6_0) goto L623;                              /* 459: if r2 > r6 goto 650 */
#line 52 "millrace/transport.h"
	r2_0 = *(const volatile u8 *)(p9_0 + 12);                /* 460: r2 = *(u8 *)(r9 +12) */
#line 52
	if ((u32)r2_0 < 80) goto L623;                           /* 461: if w2 < 80 goto 650 */
#line 52
	r2_0 = (u32)r2_0 >> 2;                                   /* 462: w2 >>= 2 */
#line 52
	r2_0 = (u32)r2_0 & 60;                                   /* 463: w2 &= 60 */
#line 52
	r7_0 = (u32)r7_0 + (u32)r2_0;                            /* 464: w7 += w2 */
#line 52
	if ((u32)r7_0 > (u32)r8_0) goto L623;                    /* 465: if w7 > w8 goto 650 */
L446:
#line 52
	r4_0 = 0;                                                /* 466: w4 = 0 */
#line 52
	r2_0 = *(const mr_u32 *)p9_0;                            /* 467: r2 = *(u32 *)(r9 +0) */
L448:
	{                                                        /* stores in the order of addresses */
#line 103 "millrace/flow.h"
		*(mr_u32 *)(s0_120 + 32) = (u32)r2_0;            /* 469: *(u32 *)(r10 -88) = r2 */
#line 103
		*(u8 *)(s0_120 + 36) = (u8)r5_0;                 /* 468: *(u8 *)(r10 -84) = r5 */
	}
#line 103
	r5_0 = *(const mr_u64 *)s0_168;                          /* 470: r5 = *(u64 *)(r10 -168) */
#line 105
	r5_0 <<= 32;                                             /* 471: r5 <<= 32 */
#line 105
	r3_0 = 0xffff0000u;                                      /* 472: r3 = 0xffff0000 ll */
#line 105
	r5_0 |= r3_0;                                            /* 474: r5 |= r3 */
#line 103
	*(mr_u64 *)(s0_120 + 24) = r5_0;                         /* 475: *(u64 *)(r10 -96) = r5 */
#line 103
	r5_0 = *(const mr_u64 *)s0_160;                          /* 476: r5 = *(u64 *)(r10 -160) */
	r5_0 <<= 32;                                             /* 477: r5 <<= 32 */
#line 104
	r5_0 |= r3_0;                                            /* 478: r5 |= r3 */
	{                                                        /* stores in the order of addresses */
#line 103
		*(mr_u64 *)s0_120 = 0;                           /* 483: *(u64 *)(r10 -120) = 0 */
#line 103
		*(mr_u64 *)(s0_120 + 8) = r5_0;                  /* 479: *(u64 *)(r10 -112) = r5 */
#line 103
		*(mr_u64 *)(s0_120 + 16) = 0;                    /* 482: *(u64 *)(r10 -104) = 0 */
#line 103
		*(u8 *)(s0_120 + 37) = 4;                        /* 481: *(u8 *)(r10 -83) = 4 */
#line 103
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 480: *(u16 *)(r10 -82) = 0 */
	}
#line 13 "nfs/firewall/firewall.c" /* switch (packet_find_flow(p, &f)) { */
	if ((u32)r4_0 != 0) goto L465;                           /* 484: if w4 != 0 goto 486 */
#line 13
	goto L476;                                               /* 485: goto 499 */
L503:
#line 31 "millrace/packet.h"
	p9_0 += (s64)r7_0;                                       /* 527: r9 += r7 */
#line 33
	p2_0 = p9_0;                                             /* 528: r2 = r9 */
#line 33
	p2_0 += 8;                                               /* 529: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L623;                              /* 530: if r2 > r6 goto 650 */
#line 33
	r7_0 += 8;                                               /* 531: r7 += 8 */
#line 33
	if (r7_0 > r8_0) goto L623;                              /* 532: if r7 > r8 goto 650 */
#line 33
	goto L446;                                               /* 533: goto 466 */
L510:
#line 68 "millrace/transport.h"
	if ((u32)r0_0 == 58) goto L512;                          /* 534: if w0 == 58 goto 536 */
#line 68
	if ((u32)r0_0 != 1) goto L117;                           /* 535: if w0 != 1 goto 117 */
L512:
#line 31 "millrace/packet.h"
	p4_0 = p9_0;                                             /* 536: r4 = r9 */
#line 31
	p4_0 += (s64)r7_0;                                       /* 537: r4 += r7 */
#line 33
	p2_0 = p4_0;                                             /* 538: r2 = r4 */
#line 33
	p2_0 += 8;                                               /* 539: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L623;                              /* 540: if r2 > r6 goto 650 */
#line 33
	r2_0 = r7_0;                                             /* 541: r2 = r7 */
#line 33
	r2_0 += 8;                                               /* 542: r2 += 8 */
#line 33
	if (r2_0 > r8_0) goto L623;                              /* 543: if r2 > r8 goto 650 */
#line 33
	r2_0 = r7_0;                                             /* 544: r2 = r7 */
#line 73 "millrace/transport.h"
	*(mr_pointer *)s0_40 = p4_0;                             /* 546: *(u64 *)(r10 -40) = r4 */
#line 73
	*(mr_u32 *)s0_32 = 1;                                    /* 547: *(u32 *)(r10 -32) = 1 */
	r3_0 = *(const volatile u8 *)p4_0;                       /* 548: r3 = *(u8 *)(r4 +0) */
#line 74
	if ((u32)r0_0 != 1) goto L596;                           /* 549: if w0 != 1 goto 623 */
#line 74
	r0_0 = 8;                                                /* 550: w0 = 8 */
#line 74
	r9_0 = 0;                                                /* 551: w9 = 0 */
#line 74
	if ((u32)r3_0 > 12) goto L602;                           /* 552: if w3 > 12 goto 629 */
#line 74
	r1_0 = 1;                                                /* 553: w1 = 1 */
#line 74
	r1_0 = (u32)r1_0 << ((u32)r3_0 & 31);                    /* 554: w1 <<= w3 */
#line 74
	r1_0 = (u32)r1_0 & 0x1838u;                              /* 555: w1 &= 6200 */
#line 74
	if ((u32)r1_0 != 0) goto L534;                           /* 556: if w1 != 0 goto 558 */
L602:
#line 34
	if ((u32)r9_0 == (u32)r3_0) goto L605;                   /* 630: if w9 == w3 goto 632 */
#line 34
	if ((u32)r0_0 != (u32)r3_0) goto L117;                   /* 631: if w0 != w3 goto 117 */
L605:
	r2_0 = *(const mr_u16 *)(p4_0 + 4);                      /* 632: r2 = *(u16 *)(r4 +4) */
#line 36
	if ((u32)r0_0 == (u32)r3_0) goto L608;                   /* 633: if w0 == w3 goto 635 */
#line 36
	r2_0 = (u32)r2_0 << 16;                                  /* 634: w2 <<= 16 */
L608:
#line 36
	r4_0 = 0;                                                /* 635: w4 = 0 */
	goto L448;                                               /* 637: goto 468 */
L534:
#line 74
	r3_0 = r2_0;                                             /* 558: r3 = r2 */
#line 90 "millrace/flow4.h"
	r3_0 = (u32)r3_0 + 8;                                    /* 559: w3 += 8 */
#line 90
	p9_0 = *(mr_pointer *)s0_144;                            /* 560: r9 = *(u64 *)(r10 -144) */
#line 31 "millrace/packet.h"
	p1_0 = p9_0;                                             /* 561: r1 = r9 */
#line 31
	p1_0 += (s64)r3_0;                                       /* 562: r1 += r3 */
#line 33
	p2_0 = p1_0;                                             /* 563: r2 = r1 */
#line 33
	p2_0 += 20;                                              /* 564: r2 += 20 */
#line 33
	if (p2_0 > p6_0) goto L623;                              /* 565: if r2 > r6 goto 650 */
#line 49 "millrace/flow4.h"
	r4_0 = *(const volatile u8 *)p1_0;                       /* 566: r4 = *(u8 *)(r1 +0) */
#line 49
	r2_0 = (u32)r4_0;                                        /* 567: w2 = w4 */
#line 49
	r2_0 = (u32)r2_0 & 240;                                  /* 568: w2 &= 240 */
#line 49
	if ((u32)r2_0 != 64) goto L623;                          /* 569: if w2 != 64 goto 650 */
#line 51
	r4_0 = (u32)r4_0 << 2;                                   /* 570: w4 <<= 2 */
#line 51
	r4_0 = (u32)r4_0 & 60;                                   /* 571: w4 &= 60 */
	if ((u32)r4_0 < 20) goto L623;                           /* 572: if w4 < 20 goto 650 */
#line 52
	r4_0 = (u32)r4_0 + (u32)r3_0;                            /* 573: w4 += w3 */
#line 52
	if ((u32)r4_0 > (u32)r8_0) goto L623;                    /* 574: if w4 > w8 goto 650 */
#line 54
	r2_0 = *(const mr_u16 *)(p1_0 + 6);                      /* 575: r2 = *(u16 *)(r1 +6) */
#line 54
	r2_0 = (u32)r2_0 & 0xff1fu;                              /* 576: w2 &= 65311 */
#line 54
	if ((u32)r2_0 != 0) goto L240;                           /* 577: if w2 != 0 goto 249 */
#line 36
	r2_0 = *(const mr_u32 *)(p1_0 + 12);                     /* 578: r2 = *(u32 *)(r1 +12) */
#line 36
	*(mr_u64 *)s0_160 = r2_0;                                /* 579: *(u64 *)(r10 -160) = r2 */
#line 36
	*(mr_u32 *)s0_64 = (u32)r2_0;                            /* 580: *(u32 *)(r10 -64) = r2 */
	r2_0 = *(const mr_u32 *)(p1_0 + 16);                     /* 581: r2 = *(u32 *)(r1 +16) */
#line 37
	*(mr_u64 *)s0_168 = r2_0;                                /* 582: *(u64 *)(r10 -168) = r2 */
#line 37
	*(mr_u32 *)s0_60 = (u32)r2_0;                            /* 583: *(u32 *)(r10 -60) = r2 */
	r2_0 = *(const u8 *)(p1_0 + 9);                          /* 584: r2 = *(u8 *)(r1 +9) */
#line 58
	*(mr_u32 *)s0_8 = (u32)r4_0;                             /* 585: *(u32 *)(r10 -8) = r4 */
#line 31 "millrace/packet.h"
	p9_0 += (s64)r4_0;                                       /* 586: r9 += r4 */
#line 31
	r5_0 = r2_0;                                             /* 587: r5 = r2 */
#line 38 "millrace/flow4.h"
	*(u8 *)s0_52 = (u8)r2_0;                                 /* 588: *(u8 *)(r10 -52) = r2 */
#line 57
	*(mr_pointer *)s0_24 = p1_0;                             /* 589: *(u64 *)(r10 -24) = r1 */
#line 39
	*(mr_u16 *)s0_50 = 0;                                    /* 590: *(u16 *)(r10 -50) = 0 */
#line 39
	*(u8 *)s0_51 = 0;                                        /* 591: *(u8 *)(r10 -51) = 0 */
#line 33 "millrace/packet.h"
	p2_0 = p9_0;                                             /* 592: r2 = r9 */
#line 33
	p2_0 += 8;                                               /* 593: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L623;                              /* 594: if r2 > r6 goto 650 */
#line 33
	r4_0 += 8;                                               /* 595: r4 += 8 */
#line 33
	if (r4_0 > r8_0) goto L623;                              /* 596: if r4 > r8 goto 650 */
#line 59 "millrace/flow4.h"
	r2_0 = *(const u8 *)(p1_0 + 9);                          /* 597: r2 = *(u8 *)(r1 +9) */
#line 59
	p0_0 = p9_0;                                             /* 598: r0 = r9 */
#line 94 "millrace/transport.h"
	*(mr_pointer *)s0_16 = p9_0;                             /* 599: *(u64 *)(r10 -16) = r9 */
	if ((u32)r2_0 == 17) goto L578;                          /* 600: if w2 == 17 goto 602 */
#line 95
	if ((u32)r2_0 != 6) goto L611;                           /* 601: if w2 != 6 goto 638 */
L578:
#line 95
	r4_0 = 1;                                                /* 602: w4 = 1 */
	r2_0 = *(const mr_u32 *)p0_0;                            /* 603: r2 = *(u32 *)(r0 +0) */
#line 37
	goto L448;                                               /* 605: goto 468 */
L582:
#line 37
	r0_0 = 3;                                                /* 606: r0 = 0x3 ll */
#line 33 "nfs/firewall/firewall.c" /* if (p->port == WAN) */
	if ((u32)r1_0 == 1) return mr_verdict_handlers(pkt, r0_0); /* 608: if w1 == 1 goto 120 */
#line 35 /* return map_put(&flows, &f, &(struct session){}) ? FORWARD(peer(p)) : DROP_BECAUSE(table_full); */
	*(mr_u64 *)s0_128 = 0;                                   /* 609: *(u64 *)(r10 -128) = 0 */
#line 35
	{                                                        /* 616: call map_put#65538 */
#line 35
		u64 key[] = { mr_load64(s0_120), mr_load64(s0_120 + 8), mr_load64(s0_120 + 16), mr_load64(s0_120 + 24), mr_load64(s0_120 + 32) };
#line 35
		_Alignas(8) u8 value[8];
#line 35
		memcpy(value, s0_128, 8);
#line 35
		p0_0 = hash_map_put(&self->o0_flows, &shape0_flows, key, hash_token(&self->o0_flows, &shape0_flows, key), value, pkt);
#line 35
	}
#line 35
	p1_0 = p0_0;                                             /* 617: r1 = r0 */
#line 35
	r0_0 = 4;                                                /* 618: r0 = 0x4 ll */
#line 35
	if (!p1_0) return mr_verdict_handlers(pkt, r0_0);        /* 620: if r1 == 0 goto 120 */
#line 35
	goto L594;
L596:
#line 34 "millrace/verdict.h"
	r0_0 = 128;                                              /* 623: w0 = 128 */
#line 34
	r9_0 = 129;                                              /* 624: w9 = 129 */
#line 74 "millrace/transport.h"
	r1_0 = (u32)r3_0;                                        /* 625: w1 = w3 */
#line 74
	r1_0 = (u32)r1_0 + 0xffffffffu;                          /* 626: w1 += -1 */
#line 74
	r1_0 = (u32)r1_0 & 255;                                  /* 627: w1 &= 255 */
#line 74
	if ((u32)r1_0 < 4) goto L534;                            /* 628: if w1 < 4 goto 558 */
#line 74
	goto L602;
L611:
#line 99
	if ((u32)r2_0 == 58) goto L625;                          /* 638: if w2 == 58 goto 653 */
#line 99
	if ((u32)r2_0 != 1) goto L117;                           /* 640: if w2 != 1 goto 117 */
#line 99
	r4_0 = 8;                                                /* 641: w4 = 8 */
#line 99
	r2_0 = 0;                                                /* 642: w2 = 0 */
#line 102
	r6_0 = *(const volatile u8 *)p0_0;                       /* 643: r6 = *(u8 *)(r0 +0) */
#line 102
	if ((u32)r6_0 > 12) goto L633;                           /* 644: if w6 > 12 goto 661 */
#line 102
	r3_0 = 1;                                                /* 645: w3 = 1 */
#line 102
	r3_0 = (u32)r3_0 << ((u32)r6_0 & 31);                    /* 646: w3 <<= w6 */
#line 102
	r3_0 = (u32)r3_0 & 0x1838u;                              /* 647: w3 &= 6200 */
#line 102
	if ((u32)r3_0 != 0) goto L623;                           /* 648: if w3 != 0 goto 650 */
L633:
#line 34
	if ((u32)r4_0 == (u32)r6_0) goto L635;                   /* 661: if w4 == w6 goto 663 */
#line 34
	if ((u32)r2_0 != (u32)r6_0) goto L117;                   /* 662: if w2 != w6 goto 117 */
L635:
	r2_0 = *(const mr_u16 *)(p0_0 + 4);                      /* 663: r2 = *(u16 *)(r0 +4) */
#line 36
	if ((u32)r4_0 == (u32)r6_0) goto L638;                   /* 664: if w4 == w6 goto 666 */
#line 36
	r2_0 = (u32)r2_0 << 16;                                  /* 665: w2 <<= 16 */
L638:
#line 36
	r4_0 = 1;                                                /* 666: w4 = 1 */
	goto L448;                                               /* 668: goto 468 */
L623:
#line 102
	r0_0 = 1;                                                /* 650: r0 = 0x1 ll */
#line 19 "nfs/firewall/firewall.c" /* return DROP_BECAUSE(fragment); */
	return mr_verdict_handlers(pkt, r0_0);                   /* 652: goto 120 */
L625:
#line 19
	r4_0 = 128;                                              /* 653: w4 = 128 */
#line 19
	r2_0 = 129;                                              /* 654: w2 = 129 */
#line 102 "millrace/transport.h"
	r6_0 = *(const volatile u8 *)p0_0;                       /* 655: r6 = *(u8 *)(r0 +0) */
#line 102
	r3_0 = (u32)r6_0;                                        /* 656: w3 = w6 */
#line 102
	r3_0 = (u32)r3_0 + 0xffffffffu;                          /* 657: w3 += -1 */
#line 102
	r3_0 = (u32)r3_0 & 255;                                  /* 658: w3 &= 255 */
#line 102
	if ((u32)r3_0 < 4) goto L623;                            /* 660: if w3 < 4 goto 650 */
#line 102
	goto L633;
#line 1337 "firewall.c"
}

/* millrace_on_packet up to its first keyed operation: finds what to prefetch. */
static inline void scout0_millrace_on_packet(struct mr_instance *self, struct mr_packet *pkt, struct slot *slot)
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
	u64 r0_0, r1_0, r2_0, r3_0, r4_0, r5_0, r6_0, r7_0, r8_0, r9_0;
	u8 *p0_0, *p1_0, *p2_0, *p3_0, *p4_0, *p5_0, *p6_0, *p7_0, *p9_0;

#line 33 "millrace/packet.h"
	p4_0 = pkt->end;                                         /* 2: r4 = *(u32 *)(r1 +4) */
#line 31
	p3_0 = pkt->data;                                        /* 3: r3 = *(u32 *)(r1 +0) */
#line 33
	p2_0 = p3_0;                                             /* 4: r2 = r3 */
#line 33
	p2_0 += 14;                                              /* 5: r2 += 14 */
#line 33
	if (p2_0 > p4_0) goto L117;                              /* 6: if r2 > r4 goto 117 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const volatile mr_u16 *)(p3_0 + 12);            /* 7: r5 = *(u16 *)(r3 +12) */
#line 46
	if ((u32)r5_0 == 0xa888u) goto L11;                      /* 8: if w5 == 43144 goto 11 */
#line 46
	r7_0 = 14;                                               /* 9: w7 = 14 */
#line 46
	if ((u32)r5_0 != 129) goto L23;                          /* 10: if w5 != 129 goto 23 */
L11:
#line 33 "millrace/packet.h"
	p2_0 = p3_0;                                             /* 11: r2 = r3 */
#line 33
	p2_0 += 18;                                              /* 12: r2 += 18 */
#line 33
	if (p2_0 > p4_0) goto L117;                              /* 13: if r2 > r4 goto 117 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const volatile mr_u16 *)(p3_0 + 16);            /* 14: r5 = *(u16 *)(r3 +16) */
#line 46
	if ((u32)r5_0 == 0xa888u) goto L18;                      /* 15: if w5 == 43144 goto 18 */
#line 46
	r7_0 = 18;                                               /* 16: w7 = 18 */
#line 46
	if ((u32)r5_0 != 129) goto L23;                          /* 17: if w5 != 129 goto 23 */
L18:
#line 33 "millrace/packet.h"
	p2_0 = p3_0;                                             /* 18: r2 = r3 */
#line 33
	p2_0 += 22;                                              /* 19: r2 += 22 */
#line 33
	if (p2_0 > p4_0) goto L117;                              /* 20: if r2 > r4 goto 117 */
#line 33
	r7_0 = 22;                                               /* 21: w7 = 22 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const volatile mr_u16 *)(p3_0 + 20);            /* 22: r5 = *(u16 *)(r3 +20) */
L23:
#line 96 "millrace/flow.h"
	if ((u32)r5_0 == 0xdd86u) goto L121;                     /* 23: if w5 == 56710 goto 121 */
#line 96
	if ((u32)r5_0 != 8) goto L117;                           /* 24: if w5 != 8 goto 117 */
#line 31 "millrace/packet.h"
	p5_0 = pkt->data;                                        /* 29: r5 = *(u32 *)(r1 +0) */
#line 31
	p3_0 = p5_0;                                             /* 30: r3 = r5 */
#line 31
	p3_0 += (s64)r7_0;                                       /* 31: r3 += r7 */
#line 33
	p2_0 = p3_0;                                             /* 32: r2 = r3 */
#line 33
	p2_0 += 20;                                              /* 33: r2 += 20 */
#line 33
	p6_0 = pkt->end;                                         /* 34: r6 = *(u32 *)(r1 +4) */
#line 33
	if (p2_0 > p6_0) goto L623;                              /* 35: if r2 > r6 goto 650 */
#line 69 "millrace/ipv4.h"
	r2_0 = *(const volatile u8 *)p3_0;                       /* 36: r2 = *(u8 *)(r3 +0) */
#line 69
	r4_0 = (u32)r2_0;                                        /* 37: w4 = w2 */
#line 69
	r4_0 = (u32)r4_0 & 240;                                  /* 38: w4 &= 240 */
#line 69
	if ((u32)r4_0 != 64) goto L623;                          /* 39: if w4 != 64 goto 650 */
#line 71
	r2_0 = (u32)r2_0 << 2;                                   /* 40: w2 <<= 2 */
#line 71
	r2_0 = (u32)r2_0 & 60;                                   /* 41: w2 &= 60 */
#line 73
	if ((u32)r2_0 < 20) goto L623;                           /* 42: if w2 < 20 goto 650 */
#line 73
	r4_0 = *(const volatile mr_u16 *)(p3_0 + 2);             /* 43: r4 = *(u16 *)(r3 +2) */
#line 73
	r4_0 = __builtin_bswap16((u16)r4_0);                     /* 44: r4 = bswap16 r4 */
#line 73
	if ((u32)r2_0 > (u32)r4_0) goto L623;                    /* 45: if w2 > w4 goto 650 */
#line 73
	r2_0 = (u32)r7_0;                                        /* 46: w2 = w7 */
#line 73
	r2_0 = (u32)r2_0 + (u32)r4_0;                            /* 47: w2 += w4 */
#line 46 "millrace/packet.h"
	p4_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p6_0);     /* 48: w4 = w6 */
#line 46
	r4_0 = (u32)(u64)(uintptr_t)p4_0 - (u32)(u64)(uintptr_t)p5_0; /* 49: w4 -= w5 */
#line 73 "millrace/ipv4.h"
	if ((u32)r2_0 > (u32)r4_0) goto L623;                    /* 50: if w2 > w4 goto 650 */
#line 73
	*(mr_pointer *)s0_144 = p5_0;                            /* 51: *(u64 *)(r10 -144) = r5 */
#line 43
	r0_0 = *(const volatile mr_u32 *)p3_0;                   /* 52: r0 = *(u32 *)(r3 +0) */
#line 45
	r2_0 = (u32)r0_0;                                        /* 53: w2 = w0 */
#line 45
	r2_0 = (u32)r2_0 << 2;                                   /* 54: w2 <<= 2 */
#line 45
	r2_0 = (u32)r2_0 & 60;                                   /* 55: w2 &= 60 */
#line 45
	r5_0 = (u32)r7_0;                                        /* 56: w5 = w7 */
#line 45
	r5_0 = (u32)r5_0 + (u32)r2_0;                            /* 57: w5 += w2 */
#line 43
	r4_0 = *(const mr_u32 *)(p3_0 + 4);                      /* 58: r4 = *(u32 *)(r3 +4) */
#line 43
	r8_0 = r4_0;                                             /* 59: r8 = r4 */
#line 43
	*(mr_u64 *)s0_176 = r0_0;                                /* 60: *(u64 *)(r10 -176) = r0 */
#line 43
	r8_0 += r0_0;                                            /* 61: r8 += r0 */
#line 43
	r2_0 = *(const mr_u32 *)(p3_0 + 8);                      /* 62: r2 = *(u32 *)(r3 +8) */
#line 43
	*(mr_u64 *)s0_152 = r2_0;                                /* 63: *(u64 *)(r10 -152) = r2 */
#line 43
	r8_0 += r2_0;                                            /* 64: r8 += r2 */
#line 43
	r2_0 = *(const mr_u32 *)(p3_0 + 12);                     /* 65: r2 = *(u32 *)(r3 +12) */
#line 43
	*(mr_u64 *)s0_160 = r2_0;                                /* 66: *(u64 *)(r10 -160) = r2 */
#line 43
	r8_0 += r2_0;                                            /* 67: r8 += r2 */
	r2_0 = *(const mr_u32 *)(p3_0 + 16);                     /* 68: r2 = *(u32 *)(r3 +16) */
#line 44
	*(mr_u64 *)s0_168 = r2_0;                                /* 69: *(u64 *)(r10 -168) = r2 */
#line 43
	r8_0 += r2_0;                                            /* 70: r8 += r2 */
#line 43
	*(mr_u64 *)s0_136 = r7_0;                                /* 71: *(u64 *)(r10 -136) = r7 */
#line 47
	r0_0 = r7_0;                                             /* 72: r0 = r7 */
#line 47
	r0_0 += 20;                                              /* 73: r0 += 20 */
#line 47
	if (r0_0 == r5_0) goto L88;                              /* 74: if r0 == r5 goto 88 */
#line 47
	r9_0 = 0;                                                /* 75: r9 = 0 */
L76:
#line 52
	r2_0 = r0_0;                                             /* 76: r2 = r0 */
#line 52
	r2_0 += r9_0;                                            /* 77: r2 += r9 */
#line 52
	if (r2_0 >= r5_0) goto L88;                              /* 78: if r2 >= r5 goto 88 */
#line 33 "millrace/packet.h"
	p7_0 = p3_0;                                             /* 79: r7 = r3 */
#line 33
	p7_0 += (s64)r9_0;                                       /* 80: r7 += r9 */
#line 33
	p2_0 = p7_0;                                             /* 81: r2 = r7 */
#line 33
	p2_0 += 24;                                              /* 82: r2 += 24 */
#line 33
	if (p2_0 > p6_0) goto L88;                               /* 83: if r2 > r6 goto 88 */
#line 57 "millrace/ipv4.h"
	r2_0 = *(const mr_u32 *)(p7_0 + 20);                     /* 84: r2 = *(u32 *)(r7 +20) */
#line 57
	r8_0 += r2_0;                                            /* 85: r8 += r2 */
#line 50
	r9_0 += 4;                                               /* 86: r9 += 4 */
#line 50
	if ((u32)r9_0 != 40) goto L76;                           /* 87: if w9 != 40 goto 76 */
L88:
#line 16 "millrace/checksum.h"
	r2_0 = r8_0;                                             /* 88: r2 = r8 */
#line 16
	r2_0 >>= 32;                                             /* 89: r2 >>= 32 */
#line 16
	r8_0 <<= 32;                                             /* 90: r8 <<= 32 */
#line 16
	r8_0 >>= 32;                                             /* 91: r8 >>= 32 */
#line 16
	r8_0 += r2_0;                                            /* 92: r8 += r2 */
	r2_0 = r8_0;                                             /* 93: r2 = r8 */
#line 17
	r2_0 >>= 16;                                             /* 94: r2 >>= 16 */
#line 17
	r8_0 &= 0xffffu;                                         /* 95: r8 &= 65535 */
#line 17
	r8_0 += r2_0;                                            /* 96: r8 += r2 */
	r2_0 = r8_0;                                             /* 97: r2 = r8 */
#line 18
	r2_0 >>= 16;                                             /* 98: r2 >>= 16 */
#line 18
	r8_0 = (u32)r8_0 & 0xffffu;                              /* 99: w8 &= 65535 */
#line 18
	r8_0 = (u32)r8_0 + (u32)r2_0;                            /* 100: w8 += w2 */
	r2_0 = (u32)r8_0;                                        /* 101: w2 = w8 */
#line 19
	r2_0 = (u32)r2_0 >> 16;                                  /* 102: w2 >>= 16 */
#line 19
	r2_0 = (u32)r2_0 + (u32)r8_0;                            /* 103: w2 += w8 */
#line 75 "millrace/ipv4.h"
	r2_0 &= 0xffffu;                                         /* 104: r2 &= 65535 */
#line 75
	r7_0 = *(const mr_u64 *)s0_136;                          /* 105: r7 = *(u64 *)(r10 -136) */
#line 75
	p9_0 = *(mr_pointer *)s0_144;                            /* 106: r9 = *(u64 *)(r10 -144) */
#line 75
	if (r2_0 != 0xffffu) goto L623;                          /* 107: if r2 != 65535 goto 650 */
#line 75
	r0_0 = *(const mr_u64 *)s0_152;                          /* 108: r0 = *(u64 *)(r10 -152) */
#line 75
	r0_0 = (u32)r0_0 >> 8;                                   /* 109: w0 >>= 8 */
#line 47
	r2_0 = (u32)r0_0;                                        /* 110: w2 = w0 */
#line 47
	r2_0 = (u32)r2_0 & 255;                                  /* 111: w2 &= 255 */
#line 78 "millrace/flow4.h"
	if ((u32)r2_0 > 17) goto L117;                           /* 112: if w2 > 17 goto 117 */
#line 78
	r5_0 = 1;                                                /* 113: w5 = 1 */
#line 78
	r5_0 = (u32)r5_0 << ((u32)r2_0 & 31);                    /* 114: w5 <<= w2 */
#line 78
	r5_0 = (u32)r5_0 & 0x20042u;                             /* 115: w5 &= 131138 */
#line 78
	if ((u32)r5_0 != 0) goto L412;                           /* 116: if w5 != 0 goto 432 */
L117:
#line 34 "millrace/verdict.h"
	return;                                                  /* 117: r0 = *(u32 *)(r1 +12) */
L121:
#line 31 "millrace/packet.h"
	p6_0 = p3_0;                                             /* 123: r6 = r3 */
#line 31
	r5_0 = r7_0;                                             /* 124: r5 = r7 */
#line 31
	p6_0 += (s64)r7_0;                                       /* 125: r6 += r7 */
#line 33
	p2_0 = p6_0;                                             /* 126: r2 = r6 */
#line 33
	p2_0 += 40;                                              /* 127: r2 += 40 */
#line 33
	if (p2_0 > p4_0) goto L120;                              /* 128: if r2 > r4 goto 120 */
#line 40 "millrace/ipv6.h"
	r2_0 = *(const volatile mr_u32 *)p6_0;                   /* 129: r2 = *(u32 *)(r6 +0) */
#line 40
	r2_0 = (u32)r2_0 & 240;                                  /* 130: w2 &= 240 */
#line 40
	if ((u32)r2_0 != 96) goto L120;                          /* 131: if w2 != 96 goto 120 */
#line 46 "millrace/packet.h"
	p2_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p4_0);     /* 132: w2 = w4 */
#line 46
	r2_0 = (u32)(u64)(uintptr_t)p2_0 - (u32)(u64)(uintptr_t)p3_0; /* 133: w2 -= w3 */
#line 46
	r7_0 = r5_0;                                             /* 134: r7 = r5 */
#line 42 "millrace/ipv6.h"
	r7_0 += 40;                                              /* 135: r7 += 40 */
#line 42
	r5_0 = *(const volatile mr_u16 *)(p6_0 + 4);             /* 136: r5 = *(u16 *)(r6 +4) */
#line 42
	r5_0 = __builtin_bswap16((u16)r5_0);                     /* 137: r5 = bswap16 r5 */
#line 42
	*(mr_u64 *)s0_136 = r7_0;                                /* 138: *(u64 *)(r10 -136) = r7 */
#line 42
	r7_0 += r5_0;                                            /* 139: r7 += r5 */
#line 42
	*(mr_u64 *)s0_144 = r7_0;                                /* 140: *(u64 *)(r10 -144) = r7 */
#line 42
	if (r7_0 > r2_0) goto L120;                              /* 141: if r7 > r2 goto 120 */
#line 42
	r5_0 = 8;                                                /* 142: w5 = 8 */
#line 72 "millrace/flow.h"
	p9_0 = p6_0;                                             /* 143: r9 = r6 */
#line 72
	p9_0 += 6;                                               /* 144: r9 += 6 */
#line 72
	r2_0 = 0x100000000000ull;                                /* 145: r2 = 0x100000000000 ll */
#line 72
	*(mr_u64 *)s0_152 = r2_0;                                /* 147: *(u64 *)(r10 -152) = r2 */
#line 72
	r2_0 = 0x8000000000000ull;                               /* 148: r2 = 0x8000000000000 ll */
#line 72
	*(mr_u64 *)s0_160 = r2_0;                                /* 150: *(u64 *)(r10 -160) = r2 */
L148:
#line 72
	r7_0 = (u32)r5_0;                                        /* 151: w7 = w5 */
#line 72
	r5_0 = *(const volatile u8 *)p9_0;                       /* 152: r5 = *(u8 *)(r9 +0) */
#line 85 "millrace/ipv6.h"
	if (r5_0 > 63) goto L198;                                /* 153: if r5 > 63 goto 204 */
#line 85
	r2_0 = 0x1008180000000001ull;                            /* 154: r2 = 0x1008180000000001 ll */
#line 85
	r2_0 = r2_0 >> (r5_0 & 63);                              /* 156: r2 >>= r5 */
#line 85
	r2_0 &= 1;                                               /* 157: r2 &= 1 */
#line 85
	if (r2_0 == 0) goto L198;                                /* 158: if r2 == 0 goto 204 */
#line 31 "millrace/packet.h"
	r2_0 = *(const mr_u64 *)s0_136;                          /* 159: r2 = *(u64 *)(r10 -136) */
#line 31
	r2_0 = (u32)r2_0;                                        /* 160: w2 = w2 */
#line 31
	p9_0 = p3_0;                                             /* 161: r9 = r3 */
#line 31
	p9_0 += (s64)r2_0;                                       /* 162: r9 += r2 */
#line 33
	p2_0 = p9_0;                                             /* 165: r2 = r9 */
#line 33
	p2_0 += 8;                                               /* 166: r2 += 8 */
#line 33
	if (p2_0 > p4_0) goto L120;                              /* 167: if r2 > r4 goto 120 */
#line 33
	r2_0 = *(const mr_u64 *)s0_136;                          /* 168: r2 = *(u64 *)(r10 -136) */
#line 33
	r2_0 = (u32)r2_0 + 8;                                    /* 169: w2 += 8 */
#line 33
	r8_0 = *(const mr_u64 *)s0_144;                          /* 170: r8 = *(u64 *)(r10 -144) */
#line 33
	if ((u32)r2_0 > (u32)r8_0) goto L120;                    /* 171: if w2 > w8 goto 120 */
#line 68 "millrace/ipv6.h"
	r0_0 = *(const mr_u64 *)s0_152;                          /* 172: r0 = *(u64 *)(r10 -152) */
#line 68
	r0_0 = r0_0 >> (r5_0 & 63);                              /* 173: r0 >>= r5 */
#line 68
	r0_0 = (u32)r0_0 & 1;                                    /* 174: w0 &= 1 */
#line 68
	r0_0 = -(u32)r0_0;                                       /* 175: w0 = -w0 */
#line 96
	r2_0 = *(const volatile mr_u16 *)(p9_0 + 2);             /* 176: r2 = *(u16 *)(r9 +2) */
#line 96
	r2_0 = __builtin_bswap64((u64)r2_0);                     /* 177: r2 = bswap64 r2 */
#line 96
	r2_0 >>= 51;                                             /* 178: r2 >>= 51 */
#line 96
	r8_0 = (u32)r0_0;                                        /* 179: w8 = w0 */
#line 96
	r8_0 = (u32)r8_0 & (u32)r2_0;                            /* 180: w8 &= w2 */
#line 96
	if ((u32)r8_0 != 0) goto L237;                           /* 181: if w8 != 0 goto 245 */
#line 96
	r8_0 = *(const mr_u64 *)s0_160;                          /* 182: r8 = *(u64 *)(r10 -160) */
#line 96
	r8_0 = r8_0 >> (r5_0 & 63);                              /* 183: r8 >>= r5 */
#line 96
	r8_0 = (u32)r8_0 & 1;                                    /* 184: w8 &= 1 */
#line 96
	r8_0 = -(u32)r8_0;                                       /* 185: w8 = -w8 */
#line 103
	r0_0 = (u32)r0_0 ^ 0xffffffffu;                          /* 186: w0 ^= -1 */
#line 103
	r2_0 = *(const volatile u8 *)(p9_0 + 1);                 /* 187: r2 = *(u8 *)(r9 +1) */
#line 103
	r2_0 = (u32)r2_0 & (u32)r0_0;                            /* 188: w2 &= w0 */
	r2_0 = (u32)r2_0 - (u32)r8_0;                            /* 189: w2 -= w8 */
#line 104
	r2_0 = (u32)r2_0 + 1;                                    /* 190: w2 += 1 */
#line 104
	r8_0 = (u32)r8_0 + 3;                                    /* 191: w8 += 3 */
#line 104
	r2_0 = (u32)r2_0 << ((u32)r8_0 & 31);                    /* 192: w2 <<= w8 */
#line 104
	r5_0 = *(const mr_u64 *)s0_136;                          /* 193: r5 = *(u64 *)(r10 -136) */
#line 104
	r2_0 = (u32)r2_0 + (u32)r5_0;                            /* 194: w2 += w5 */
#line 104
	r5_0 = *(const mr_u64 *)s0_144;                          /* 197: r5 = *(u64 *)(r10 -144) */
#line 104
	if ((u32)r2_0 > (u32)r5_0) goto L120;                    /* 198: if w2 > w5 goto 120 */
#line 104
	r5_0 = (u32)r7_0;                                        /* 199: w5 = w7 */
#line 104
	r5_0 = (u32)r5_0 + 0xffffffffu;                          /* 200: w5 += -1 */
#line 104
	*(mr_u64 *)s0_136 = r2_0;                                /* 201: *(u64 *)(r10 -136) = r2 */
#line 104
	if ((u32)r7_0 == 0) goto L120;                           /* 202: if w7 == 0 goto 120 */
#line 104
	goto L148;                                               /* 203: goto 151 */
L120:
#line 36 "nfs/firewall/firewall.c" /* } */
	return;                                                  /* 120: exit */
L198:
#line 73 "millrace/flow.h"
	r8_0 = *(const mr_u64 *)s0_136;                          /* 208: r8 = *(u64 *)(r10 -136) */
#line 77
	if ((u32)r5_0 == 1) goto L117;                           /* 209: if w5 == 1 goto 117 */
#line 32
	r2_0 = *(const mr_u32 *)(p6_0 + 8);                      /* 210: r2 = *(u32 *)(r6 +8) */
#line 32
	r0_0 = *(const mr_u32 *)(p6_0 + 12);                     /* 211: r0 = *(u32 *)(r6 +12) */
#line 32
	r7_0 = *(const mr_u64 *)(p6_0 + 16);                     /* 212: r7 = *(u64 *)(r6 +16) */
	{                                                        /* stores in the order of addresses */
#line 32
		r0_0 <<= 32;                                     /* 214: r0 <<= 32 */
#line 32
		r0_0 |= r2_0;                                    /* 215: r0 |= r2 */
#line 32
		const u64 v209 = r0_0;                           /* 216: *(u64 *)(r10 -120) = r0 */
		r2_0 = *(const mr_u32 *)(p6_0 + 24);             /* 217: r2 = *(u32 *)(r6 +24) */
#line 33
		r0_0 = *(const mr_u32 *)(p6_0 + 28);             /* 218: r0 = *(u32 *)(r6 +28) */
#line 33
		r6_0 = *(const mr_u64 *)(p6_0 + 32);             /* 219: r6 = *(u64 *)(r6 +32) */
#line 33
		r0_0 <<= 32;                                     /* 222: r0 <<= 32 */
#line 33
		r0_0 |= r2_0;                                    /* 223: r0 |= r2 */
#line 32
		*(mr_u64 *)s0_120 = v209;                        /* 216: *(u64 *)(r10 -120) = r0 */
#line 32
		*(mr_u64 *)(s0_120 + 8) = r7_0;                  /* 213: *(u64 *)(r10 -112) = r7 */
		*(mr_u64 *)(s0_120 + 16) = r0_0;                 /* 224: *(u64 *)(r10 -104) = r0 */
#line 33
		*(mr_u64 *)(s0_120 + 24) = r6_0;                 /* 221: *(u64 *)(r10 -96) = r6 */
		*(u8 *)(s0_120 + 36) = (u8)r5_0;                 /* 220: *(u8 *)(r10 -84) = r5 */
		*(u8 *)(s0_120 + 37) = 6;                        /* 226: *(u8 *)(r10 -83) = 6 */
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 225: *(u16 *)(r10 -82) = 0 */
	}
#line 49 "millrace/transport.h"
	if ((u32)r5_0 == 17) goto L242;                          /* 227: if w5 == 17 goto 252 */
#line 49
	if ((u32)r5_0 != 6) goto L254;                           /* 228: if w5 != 6 goto 265 */
#line 31 "millrace/packet.h"
	r2_0 = (u32)r8_0;                                        /* 229: w2 = w8 */
#line 31
	p3_0 += (s64)r2_0;                                       /* 230: r3 += r2 */
#line 33
	p2_0 = p3_0;                                             /* 233: r2 = r3 */
#line 33
	p2_0 += 20;                                              /* 234: r2 += 20 */
#line 33
	if (p2_0 > p4_0) goto L120;                              /* 235: if r2 > r4 goto 120 */
#line 52 "millrace/transport.h"
	r2_0 = *(const volatile u8 *)(p3_0 + 12);                /* 236: r2 = *(u8 *)(r3 +12) */
#line 52
	if ((u32)r2_0 < 80) goto L120;                           /* 237: if w2 < 80 goto 120 */
#line 52
	r2_0 = (u32)r2_0 >> 2;                                   /* 238: w2 >>= 2 */
#line 52
	r2_0 = (u32)r2_0 & 60;                                   /* 239: w2 &= 60 */
#line 52
	r4_0 = *(const mr_u64 *)s0_136;                          /* 240: r4 = *(u64 *)(r10 -136) */
#line 52
	r4_0 = (u32)r4_0 + (u32)r2_0;                            /* 241: w4 += w2 */
#line 52
	r2_0 = *(const mr_u64 *)s0_144;                          /* 242: r2 = *(u64 *)(r10 -144) */
#line 52
	if ((u32)r4_0 > (u32)r2_0) goto L120;                    /* 243: if w4 > w2 goto 120 */
L251:
#line 33 "millrace/packet.h"
	r2_0 = *(const mr_u32 *)p3_0;                            /* 262: r2 = *(u32 *)(r3 +0) */
L252:
#line 33
	*(mr_u32 *)(s0_120 + 32) = (u32)r2_0;                    /* 263: *(u32 *)(r10 -88) = r2 */
L476:
#line 29 "nfs/firewall/firewall.c" /* if (p->port == WAN) */
	r1_0 = pkt->port;                                        /* 500: r1 = *(u32 *)(r1 +12) */
#line 29
	if ((u32)r1_0 != 1) goto L492;                           /* 501: if w1 != 1 goto 515 */
#line 133 "millrace/flow.h"
	r1_0 = *(const mr_u64 *)s0_120;                          /* 502: r1 = *(u64 *)(r10 -120) */
#line 135
	r3_0 = *(const mr_u64 *)(s0_120 + 16);                   /* 503: r3 = *(u64 *)(r10 -104) */
#line 135
	*(mr_u64 *)s0_120 = r3_0;                                /* 504: *(u64 *)(r10 -120) = r3 */
#line 133
	r3_0 = *(const mr_u64 *)(s0_120 + 8);                    /* 505: r3 = *(u64 *)(r10 -112) */
#line 135
	r4_0 = *(const mr_u64 *)(s0_120 + 24);                   /* 506: r4 = *(u64 *)(r10 -96) */
#line 135
	*(mr_u64 *)(s0_120 + 8) = r4_0;                          /* 507: *(u64 *)(r10 -112) = r4 */
	*(mr_u64 *)(s0_120 + 16) = r1_0;                         /* 508: *(u64 *)(r10 -104) = r1 */
#line 136
	*(mr_u64 *)(s0_120 + 24) = r3_0;                         /* 509: *(u64 *)(r10 -96) = r3 */
	r1_0 = (u32)r2_0;                                        /* 510: w1 = w2 */
#line 137
	r1_0 = (u32)r1_0 >> 16;                                  /* 511: w1 >>= 16 */
#line 137
	r2_0 = (u32)r2_0 << 16;                                  /* 512: w2 <<= 16 */
#line 137
	r2_0 = (u32)r2_0 | (u32)r1_0;                            /* 513: w2 |= w1 */
#line 137
	*(mr_u32 *)(s0_120 + 32) = (u32)r2_0;                    /* 514: *(u32 *)(r10 -88) = r2 */
L492:
#line 31 "nfs/firewall/firewall.c" /* if (map_refresh(&flows, &f)) */
	{                                                        /* 519: call map_refresh#65537 */
#line 31
		u64 key[] = { mr_load64(s0_120), mr_load64(s0_120 + 8), mr_load64(s0_120 + 16), mr_load64(s0_120 + 24), mr_load64(s0_120 + 32) };
#line 31
		slot->token = hash_token(&self->o0_flows, &shape0_flows, key);
#line 31
		memcpy(slot->key, key, sizeof(key));
#line 31
		slot->site = 2;
#line 31
		hash_prefetch(&self->o0_flows, &shape0_flows, slot->token);
#line 31
		return;
#line 31
	}
L237:
#line 55 "millrace/transport.h"
	return;                                                  /* 245: r0 = 0x1 ll */
L242:
#line 31 "millrace/packet.h"
	r2_0 = (u32)r8_0;                                        /* 254: w2 = w8 */
#line 31
	p3_0 += (s64)r2_0;                                       /* 255: r3 += r2 */
#line 33
	p5_0 = p3_0;                                             /* 256: r5 = r3 */
#line 33
	p5_0 += 8;                                               /* 257: r5 += 8 */
#line 33
	if (p5_0 > p4_0) goto L120;                              /* 258: if r5 > r4 goto 120 */
#line 33
	r2_0 += 8;                                               /* 259: r2 += 8 */
#line 33
	r4_0 = *(const mr_u64 *)s0_144;                          /* 260: r4 = *(u64 *)(r10 -144) */
#line 33
	if (r2_0 > r4_0) goto L120;                              /* 261: if r2 > r4 goto 120 */
#line 33
	goto L251;
L254:
#line 68 "millrace/transport.h"
	if ((u32)r5_0 == 58) goto L257;                          /* 265: if w5 == 58 goto 268 */
#line 68
	return;                                                  /* 266: w2 = 1 */
L257:
#line 31 "millrace/packet.h"
	r2_0 = (u32)r8_0;                                        /* 270: w2 = w8 */
#line 31
	p5_0 = p3_0;                                             /* 271: r5 = r3 */
#line 31
	p5_0 += (s64)r2_0;                                       /* 272: r5 += r2 */
#line 33
	p6_0 = p5_0;                                             /* 273: r6 = r5 */
#line 33
	p6_0 += 8;                                               /* 274: r6 += 8 */
#line 33
	if (p6_0 > p4_0) goto L120;                              /* 275: if r6 > r4 goto 120 */
#line 33
	r2_0 += 8;                                               /* 276: r2 += 8 */
#line 33
	r6_0 = *(const mr_u64 *)s0_144;                          /* 277: r6 = *(u64 *)(r10 -144) */
#line 33
	if (r2_0 > r6_0) goto L120;                              /* 278: if r2 > r6 goto 120 */
#line 74 "millrace/transport.h"
	r0_0 = *(const s8 *)p5_0;                                /* 279: r0 = *(s8 *)(r5 +0) */
#line 74
	r2_0 = (u32)r0_0;                                        /* 280: w2 = w0 */
#line 74
	r2_0 = (u32)r2_0 + 0xffffffffu;                          /* 281: w2 += -1 */
#line 74
	r2_0 = (u32)r2_0 & 255;                                  /* 282: w2 &= 255 */
#line 74
	if ((u32)r2_0 < 4) goto L277;                            /* 283: if w2 < 4 goto 289 */
#line 34
	if ((s32)r0_0 > -127) goto L117;                         /* 284: if w0 s> -127 goto 117 */
#line 36
	r2_0 = *(const mr_u16 *)(p5_0 + 4);                      /* 285: r2 = *(u16 *)(r5 +4) */
#line 36
	if ((u32)r0_0 == 0xffffff80u) goto L252;                 /* 286: if w0 == -128 goto 263 */
#line 36
	r2_0 = (u32)r2_0 << 16;                                  /* 287: w2 <<= 16 */
#line 36
	goto L252;                                               /* 288: goto 263 */
L277:
#line 36
	r2_0 = *(const mr_u64 *)s0_136;                          /* 291: r2 = *(u64 *)(r10 -136) */
#line 83 "millrace/flow.h"
	r2_0 = (u32)r2_0 + 8;                                    /* 292: w2 += 8 */
#line 31 "millrace/packet.h"
	p7_0 = p3_0;                                             /* 293: r7 = r3 */
#line 31
	r5_0 = r2_0;                                             /* 294: r5 = r2 */
#line 31
	p7_0 += (s64)r2_0;                                       /* 295: r7 += r2 */
#line 33
	p2_0 = p7_0;                                             /* 296: r2 = r7 */
#line 33
	p2_0 += 40;                                              /* 297: r2 += 40 */
#line 33
	if (p2_0 > p4_0) goto L120;                              /* 298: if r2 > r4 goto 120 */
#line 47 "millrace/flow.h"
	r5_0 += 40;                                              /* 299: r5 += 40 */
#line 47
	r6_0 = r5_0;                                             /* 300: r6 = r5 */
#line 47
	r2_0 = *(const mr_u64 *)s0_144;                          /* 301: r2 = *(u64 *)(r10 -144) */
#line 47
	if (r5_0 > r2_0) goto L120;                              /* 302: if r5 > r2 goto 120 */
	r2_0 = *(const mr_u32 *)p7_0;                            /* 303: r2 = *(u32 *)(r7 +0) */
#line 48
	r2_0 = (u32)r2_0 & 240;                                  /* 304: w2 &= 240 */
#line 47
	if ((u32)r2_0 != 96) goto L120;                          /* 305: if w2 != 96 goto 120 */
#line 47
	r8_0 = 8;                                                /* 306: w8 = 8 */
#line 50
	p5_0 = p7_0;                                             /* 307: r5 = r7 */
#line 50
	p5_0 += 6;                                               /* 308: r5 += 6 */
#line 50
	r2_0 = 0x100000000000ull;                                /* 309: r2 = 0x100000000000 ll */
#line 50
	*(mr_u64 *)s0_136 = r2_0;                                /* 311: *(u64 *)(r10 -136) = r2 */
#line 50
	r2_0 = 0x8000000000000ull;                               /* 312: r2 = 0x8000000000000 ll */
#line 50
	*(mr_u64 *)s0_152 = r2_0;                                /* 314: *(u64 *)(r10 -152) = r2 */
#line 50
	*(mr_pointer *)s0_184 = (u8 *)pkt;                       /* 315: *(u64 *)(r10 -184) = r1 */
L301:
#line 50
	r9_0 = (u32)r8_0;                                        /* 316: w9 = w8 */
#line 50
	r8_0 = *(const volatile u8 *)p5_0;                       /* 317: r8 = *(u8 *)(r5 +0) */
#line 85 "millrace/ipv6.h"
	if (r8_0 > 63) goto L350;                                /* 318: if r8 > 63 goto 368 */
#line 85
	r1_0 = 0x1008180000000001ull;                            /* 319: r1 = 0x1008180000000001 ll */
#line 85
	r1_0 = r1_0 >> (r8_0 & 63);                              /* 321: r1 >>= r8 */
#line 85
	r1_0 &= 1;                                               /* 322: r1 &= 1 */
#line 85
	if (r1_0 == 0) goto L350;                                /* 323: if r1 == 0 goto 368 */
#line 31 "millrace/packet.h"
	r1_0 = (u32)r6_0;                                        /* 324: w1 = w6 */
#line 31
	p5_0 = p3_0;                                             /* 325: r5 = r3 */
#line 31
	p5_0 += (s64)r1_0;                                       /* 326: r5 += r1 */
#line 33
	p1_0 = p5_0;                                             /* 329: r1 = r5 */
#line 33
	p1_0 += 8;                                               /* 330: r1 += 8 */
#line 33
	if (p1_0 > p4_0) goto L120;                              /* 331: if r1 > r4 goto 120 */
#line 33
	r1_0 = (u32)r6_0;                                        /* 332: w1 = w6 */
#line 33
	r1_0 = (u32)r1_0 + 8;                                    /* 333: w1 += 8 */
#line 33
	r2_0 = *(const mr_u64 *)s0_144;                          /* 334: r2 = *(u64 *)(r10 -144) */
#line 33
	if ((u32)r1_0 > (u32)r2_0) goto L120;                    /* 335: if w1 > w2 goto 120 */
#line 68 "millrace/ipv6.h"
	r1_0 = *(const mr_u64 *)s0_136;                          /* 336: r1 = *(u64 *)(r10 -136) */
#line 68
	r1_0 = r1_0 >> (r8_0 & 63);                              /* 337: r1 >>= r8 */
#line 68
	r1_0 = (u32)r1_0 & 1;                                    /* 338: w1 &= 1 */
#line 68
	r1_0 = -(u32)r1_0;                                       /* 339: w1 = -w1 */
#line 96
	r2_0 = *(const mr_u16 *)(p5_0 + 2);                      /* 340: r2 = *(u16 *)(r5 +2) */
#line 96
	r2_0 = __builtin_bswap64((u64)r2_0);                     /* 341: r2 = bswap64 r2 */
#line 96
	r2_0 >>= 51;                                             /* 342: r2 >>= 51 */
#line 96
	r0_0 = (u32)r1_0;                                        /* 343: w0 = w1 */
#line 96
	r0_0 = (u32)r0_0 & (u32)r2_0;                            /* 344: w0 &= w2 */
#line 96
	if ((u32)r0_0 != 0) goto L383;                           /* 345: if w0 != 0 goto 402 */
#line 96
	r0_0 = *(const mr_u64 *)s0_152;                          /* 346: r0 = *(u64 *)(r10 -152) */
#line 96
	r0_0 = r0_0 >> (r8_0 & 63);                              /* 347: r0 >>= r8 */
#line 96
	r0_0 = (u32)r0_0 & 1;                                    /* 348: w0 &= 1 */
#line 96
	r0_0 = -(u32)r0_0;                                       /* 349: w0 = -w0 */
#line 103
	r1_0 = (u32)r1_0 ^ 0xffffffffu;                          /* 350: w1 ^= -1 */
#line 103
	r2_0 = *(const volatile u8 *)(p5_0 + 1);                 /* 351: r2 = *(u8 *)(r5 +1) */
#line 103
	r2_0 = (u32)r2_0 & (u32)r1_0;                            /* 352: w2 &= w1 */
	r2_0 = (u32)r2_0 - (u32)r0_0;                            /* 353: w2 -= w0 */
#line 104
	r2_0 = (u32)r2_0 + 1;                                    /* 354: w2 += 1 */
#line 104
	r0_0 = (u32)r0_0 + 3;                                    /* 355: w0 += 3 */
#line 104
	r2_0 = (u32)r2_0 << ((u32)r0_0 & 31);                    /* 356: w2 <<= w0 */
#line 104
	r2_0 = (u32)r2_0 + (u32)r6_0;                            /* 357: w2 += w6 */
#line 104
	r6_0 = *(const mr_u64 *)s0_144;                          /* 361: r6 = *(u64 *)(r10 -144) */
#line 104
	if ((u32)r2_0 > (u32)r6_0) goto L120;                    /* 362: if w2 > w6 goto 120 */
#line 104
	r8_0 = (u32)r9_0;                                        /* 363: w8 = w9 */
#line 104
	r8_0 = (u32)r8_0 + 0xffffffffu;                          /* 364: w8 += -1 */
#line 104
	r6_0 = (u32)r2_0;                                        /* 365: w6 = w2 */
#line 104
	if ((u32)r9_0 == 0) goto L120;                           /* 366: if w9 == 0 goto 120 */
#line 104
	goto L301;                                               /* 367: goto 316 */
L350:
#line 32 "millrace/flow.h"
	r1_0 = *(const mr_u32 *)(p7_0 + 8);                      /* 371: r1 = *(u32 *)(r7 +8) */
#line 32
	r2_0 = *(const mr_u32 *)(p7_0 + 12);                     /* 372: r2 = *(u32 *)(r7 +12) */
#line 32
	r5_0 = *(const mr_u64 *)(p7_0 + 16);                     /* 373: r5 = *(u64 *)(r7 +16) */
	{                                                        /* stores in the order of addresses */
#line 32
		r2_0 <<= 32;                                     /* 375: r2 <<= 32 */
#line 32
		r2_0 |= r1_0;                                    /* 376: r2 |= r1 */
#line 32
		const u64 v358 = r2_0;                           /* 377: *(u64 *)(r10 -120) = r2 */
		r1_0 = *(const mr_u32 *)(p7_0 + 24);             /* 378: r1 = *(u32 *)(r7 +24) */
#line 33
		r2_0 = *(const mr_u32 *)(p7_0 + 28);             /* 379: r2 = *(u32 *)(r7 +28) */
#line 33
		r2_0 <<= 32;                                     /* 380: r2 <<= 32 */
#line 33
		r2_0 |= r1_0;                                    /* 381: r2 |= r1 */
#line 33
		r1_0 = *(const mr_u64 *)(p7_0 + 32);             /* 382: r1 = *(u64 *)(r7 +32) */
#line 33
		const u64 v365 = r1_0;                           /* 384: *(u64 *)(r10 -96) = r1 */
#line 33
		const u64 v366 = r2_0;                           /* 385: *(u64 *)(r10 -104) = r2 */
#line 31 "millrace/packet.h"
		r1_0 = (u32)r6_0;                                /* 386: w1 = w6 */
#line 31
		p3_0 += (s64)r1_0;                               /* 387: r3 += r1 */
#line 33
		p2_0 = p3_0;                                     /* 388: r2 = r3 */
#line 33
		p2_0 += 8;                                       /* 389: r2 += 8 */
#line 32 "millrace/flow.h"
		*(mr_u64 *)s0_120 = v358;                        /* 377: *(u64 *)(r10 -120) = r2 */
#line 32
		*(mr_u64 *)(s0_120 + 8) = r5_0;                  /* 374: *(u64 *)(r10 -112) = r5 */
		*(mr_u64 *)(s0_120 + 16) = v366;                 /* 385: *(u64 *)(r10 -104) = r2 */
#line 33
		*(mr_u64 *)(s0_120 + 24) = v365;                 /* 384: *(u64 *)(r10 -96) = r1 */
		*(u8 *)(s0_120 + 36) = (u8)r8_0;                 /* 383: *(u8 *)(r10 -84) = r8 */
		*(u8 *)(s0_120 + 37) = 6;                        /* 391: *(u8 *)(r10 -83) = 6 */
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 390: *(u16 *)(r10 -82) = 0 */
	}
#line 33 "millrace/packet.h"
	if (p2_0 > p4_0) goto L120;                              /* 392: if r2 > r4 goto 120 */
#line 33
	r1_0 += 8;                                               /* 393: r1 += 8 */
#line 33
	r2_0 = *(const mr_u64 *)s0_144;                          /* 394: r2 = *(u64 *)(r10 -144) */
#line 33
	if (r1_0 > r2_0) goto L120;                              /* 395: if r1 > r2 goto 120 */
#line 95 "millrace/transport.h"
	if ((u32)r8_0 == 17) goto L379;                          /* 396: if w8 == 17 goto 398 */
#line 95
	if ((u32)r8_0 != 6) goto L386;                           /* 397: if w8 != 6 goto 406 */
L379:
#line 96
	r1_0 = *(const mr_u32 *)p3_0;                            /* 398: r1 = *(u32 *)(r3 +0) */
L380:
#line 96
	*(mr_u32 *)(s0_120 + 32) = (u32)r1_0;                    /* 399: *(u32 *)(r10 -88) = r1 */
L465:
#line 23 "nfs/firewall/firewall.c" /* if (p->port == WAN && !map_get(&flows, &f)) */
	r0_0 = pkt->port;                                        /* 487: r0 = *(u32 *)(r1 +12) */
#line 23
	if ((u32)r0_0 != 1) goto L118;                           /* 488: if w0 != 1 goto 118 */
#line 23
	{                                                        /* 493: call map_get#65536 */
#line 23
		u64 key[] = { mr_load64(s0_120), mr_load64(s0_120 + 8), mr_load64(s0_120 + 16), mr_load64(s0_120 + 24), mr_load64(s0_120 + 32) };
#line 23
		slot->token = hash_token(&self->o0_flows, &shape0_flows, key);
#line 23
		memcpy(slot->key, key, sizeof(key));
#line 23
		slot->site = 1;
#line 23
		hash_prefetch(&self->o0_flows, &shape0_flows, slot->token);
#line 23
		return;
#line 23
	}
L118:
#line 34 "millrace/verdict.h"
	return;                                                  /* 118: w0 &= 16777215 */
L383:
#line 96 "millrace/transport.h"
	return;                                                  /* 402: r0 = 0x1 ll */
L386:
#line 99
	if ((u32)r8_0 == 58) goto L398;                          /* 406: if w8 == 58 goto 418 */
#line 99
	if ((u32)r8_0 != 1) goto L117;                           /* 408: if w8 != 1 goto 117 */
#line 99
	r2_0 = 8;                                                /* 409: w2 = 8 */
#line 99
	r5_0 = 0;                                                /* 410: w5 = 0 */
#line 102
	r4_0 = *(const volatile u8 *)p3_0;                       /* 411: r4 = *(u8 *)(r3 +0) */
#line 102
	if ((u32)r4_0 > 12) goto L406;                           /* 412: if w4 > 12 goto 426 */
#line 102
	r7_0 = 1;                                                /* 413: w7 = 1 */
#line 102
	r7_0 = (u32)r7_0 << ((u32)r4_0 & 31);                    /* 414: w7 <<= w4 */
#line 102
	r7_0 = (u32)r7_0 & 0x1838u;                              /* 415: w7 &= 6200 */
#line 102
	if ((u32)r7_0 != 0) goto L120;                           /* 416: if w7 != 0 goto 120 */
L406:
#line 34
	if ((u32)r2_0 == (u32)r4_0) goto L408;                   /* 426: if w2 == w4 goto 428 */
#line 34
	if ((u32)r5_0 != (u32)r4_0) goto L117;                   /* 427: if w5 != w4 goto 117 */
L408:
	r1_0 = *(const mr_u16 *)(p3_0 + 4);                      /* 428: r1 = *(u16 *)(r3 +4) */
#line 36
	if ((u32)r2_0 == (u32)r4_0) goto L380;                   /* 429: if w2 == w4 goto 399 */
#line 36
	r1_0 = (u32)r1_0 << 16;                                  /* 430: w1 <<= 16 */
#line 36
	goto L380;                                               /* 431: goto 399 */
L398:
#line 102
	r2_0 = 128;                                              /* 418: w2 = 128 */
#line 102
	r5_0 = 129;                                              /* 419: w5 = 129 */
#line 102
	r4_0 = *(const volatile u8 *)p3_0;                       /* 420: r4 = *(u8 *)(r3 +0) */
#line 102
	r7_0 = (u32)r4_0;                                        /* 421: w7 = w4 */
#line 102
	r7_0 = (u32)r7_0 + 0xffffffffu;                          /* 422: w7 += -1 */
#line 102
	r7_0 = (u32)r7_0 & 255;                                  /* 423: w7 &= 255 */
#line 102
	if ((u32)r7_0 < 4) goto L120;                            /* 425: if w7 < 4 goto 120 */
#line 102
	goto L406;
L412:
#line 81 "millrace/flow4.h"
	r4_0 = (u32)r4_0 & 0xff1f0000u;                          /* 432: w4 &= -14745600 */
#line 81
	if ((u32)r4_0 != 0) goto L240;                           /* 433: if w4 != 0 goto 249 */
#line 81
	r4_0 = *(const mr_u64 *)s0_176;                          /* 434: r4 = *(u64 *)(r10 -176) */
#line 81
	r4_0 = (u32)r4_0 >> 16;                                  /* 435: w4 >>= 16 */
#line 81
	r5_0 = r0_0;                                             /* 436: r5 = r0 */
#line 38
	*(u8 *)s0_52 = (u8)r0_0;                                 /* 437: *(u8 *)(r10 -52) = r0 */
#line 37
	r2_0 = *(const mr_u64 *)s0_168;                          /* 438: r2 = *(u64 *)(r10 -168) */
#line 37
	*(mr_u32 *)s0_60 = (u32)r2_0;                            /* 439: *(u32 *)(r10 -60) = r2 */
#line 36
	r2_0 = *(const mr_u64 *)s0_160;                          /* 440: r2 = *(u64 *)(r10 -160) */
#line 36
	*(mr_u32 *)s0_64 = (u32)r2_0;                            /* 441: *(u32 *)(r10 -64) = r2 */
#line 83
	*(mr_pointer *)s0_48 = p3_0;                             /* 442: *(u64 *)(r10 -48) = r3 */
	r4_0 = __builtin_bswap16((u16)r4_0);                     /* 443: r4 = bswap16 r4 */
#line 84
	r8_0 = (u32)r7_0;                                        /* 444: w8 = w7 */
#line 84
	r8_0 = (u32)r8_0 + (u32)r4_0;                            /* 445: w8 += w4 */
#line 84
	*(mr_u32 *)s0_4 = (u32)r8_0;                             /* 446: *(u32 *)(r10 -4) = r8 */
#line 39
	*(mr_u16 *)s0_50 = 0;                                    /* 447: *(u16 *)(r10 -50) = 0 */
#line 39
	*(u8 *)s0_51 = 0;                                        /* 448: *(u8 *)(r10 -51) = 0 */
#line 86
	r2_0 = *(const volatile u8 *)p3_0;                       /* 449: r2 = *(u8 *)(r3 +0) */
#line 86
	r2_0 = (u32)r2_0 << 2;                                   /* 450: w2 <<= 2 */
#line 86
	r2_0 = (u32)r2_0 & 60;                                   /* 451: w2 &= 60 */
#line 86
	r7_0 = (u32)r7_0 + (u32)r2_0;                            /* 452: w7 += w2 */
	r0_0 = *(const volatile u8 *)(p3_0 + 9);                 /* 453: r0 = *(u8 *)(r3 +9) */
#line 49 "millrace/transport.h"
	if ((u32)r0_0 == 17) goto L503;                          /* 454: if w0 == 17 goto 527 */
#line 49
	if ((u32)r0_0 != 6) goto L510;                           /* 455: if w0 != 6 goto 534 */
#line 31 "millrace/packet.h"
	p9_0 += (s64)r7_0;                                       /* 456: r9 += r7 */
#line 33
	p2_0 = p9_0;                                             /* 457: r2 = r9 */
#line 33
	p2_0 += 20;                                              /* 458: r2 += 20 */
#line 33
	if (p2_0 > p6_0) goto L623;                              /* 459: if r2 > r6 goto 650 */
#line 52 "millrace/transport.h"
	r2_0 = *(const volatile u8 *)(p9_0 + 12);                /* 460: r2 = *(u8 *)(r9 +12) */
#line 52
	if ((u32)r2_0 < 80) goto L623;                           /* 461: if w2 < 80 goto 650 */
#line 52
	r2_0 = (u32)r2_0 >> 2;                                   /* 462: w2 >>= 2 */
#line 52
	r2_0 = (u32)r2_0 & 60;                                   /* 463: w2 &= 60 */
#line 52
	r7_0 = (u32)r7_0 + (u32)r2_0;                            /* 464: w7 += w2 */
#line 52
	if ((u32)r7_0 > (u32)r8_0) goto L623;                    /* 465: if w7 > w8 goto 650 */
L446:
#line 52
	r4_0 = 0;                                                /* 466: w4 = 0 */
#line 52
	r2_0 = *(const mr_u32 *)p9_0;                            /* 467: r2 = *(u32 *)(r9 +0) */
L448:
	{                                                        /* stores in the order of addresses */
#line 103 "millrace/flow.h"
		*(mr_u32 *)(s0_120 + 32) = (u32)r2_0;            /* 469: *(u32 *)(r10 -88) = r2 */
#line 103
		*(u8 *)(s0_120 + 36) = (u8)r5_0;                 /* 468: *(u8 *)(r10 -84) = r5 */
	}
#line 103
	r5_0 = *(const mr_u64 *)s0_168;                          /* 470: r5 = *(u64 *)(r10 -168) */
#line 105
	r5_0 <<= 32;                                             /* 471: r5 <<= 32 */
#line 105
	r3_0 = 0xffff0000u;                                      /* 472: r3 = 0xffff0000 ll */
#line 105
	r5_0 |= r3_0;                                            /* 474: r5 |= r3 */
#line 103
	*(mr_u64 *)(s0_120 + 24) = r5_0;                         /* 475: *(u64 *)(r10 -96) = r5 */
#line 103
	r5_0 = *(const mr_u64 *)s0_160;                          /* 476: r5 = *(u64 *)(r10 -160) */
	r5_0 <<= 32;                                             /* 477: r5 <<= 32 */
#line 104
	r5_0 |= r3_0;                                            /* 478: r5 |= r3 */
	{                                                        /* stores in the order of addresses */
#line 103
		*(mr_u64 *)s0_120 = 0;                           /* 483: *(u64 *)(r10 -120) = 0 */
#line 103
		*(mr_u64 *)(s0_120 + 8) = r5_0;                  /* 479: *(u64 *)(r10 -112) = r5 */
#line 103
		*(mr_u64 *)(s0_120 + 16) = 0;                    /* 482: *(u64 *)(r10 -104) = 0 */
#line 103
		*(u8 *)(s0_120 + 37) = 4;                        /* 481: *(u8 *)(r10 -83) = 4 */
#line 103
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 480: *(u16 *)(r10 -82) = 0 */
	}
#line 13 "nfs/firewall/firewall.c" /* switch (packet_find_flow(p, &f)) { */
	if ((u32)r4_0 != 0) goto L465;                           /* 484: if w4 != 0 goto 486 */
#line 13
	goto L476;                                               /* 485: goto 499 */
L240:
#line 73 "millrace/flow.h"
	return;                                                  /* 249: r0 = 0x2 ll */
L503:
#line 31 "millrace/packet.h"
	p9_0 += (s64)r7_0;                                       /* 527: r9 += r7 */
#line 33
	p2_0 = p9_0;                                             /* 528: r2 = r9 */
#line 33
	p2_0 += 8;                                               /* 529: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L623;                              /* 530: if r2 > r6 goto 650 */
#line 33
	r7_0 += 8;                                               /* 531: r7 += 8 */
#line 33
	if (r7_0 > r8_0) goto L623;                              /* 532: if r7 > r8 goto 650 */
#line 33
	goto L446;                                               /* 533: goto 466 */
L510:
#line 68 "millrace/transport.h"
	if ((u32)r0_0 == 58) goto L512;                          /* 534: if w0 == 58 goto 536 */
#line 68
	if ((u32)r0_0 != 1) goto L117;                           /* 535: if w0 != 1 goto 117 */
L512:
#line 31 "millrace/packet.h"
	p4_0 = p9_0;                                             /* 536: r4 = r9 */
#line 31
	p4_0 += (s64)r7_0;                                       /* 537: r4 += r7 */
#line 33
	p2_0 = p4_0;                                             /* 538: r2 = r4 */
#line 33
	p2_0 += 8;                                               /* 539: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L623;                              /* 540: if r2 > r6 goto 650 */
#line 33
	r2_0 = r7_0;                                             /* 541: r2 = r7 */
#line 33
	r2_0 += 8;                                               /* 542: r2 += 8 */
#line 33
	if (r2_0 > r8_0) goto L623;                              /* 543: if r2 > r8 goto 650 */
#line 33
	r2_0 = r7_0;                                             /* 544: r2 = r7 */
#line 73 "millrace/transport.h"
	*(mr_pointer *)s0_40 = p4_0;                             /* 546: *(u64 *)(r10 -40) = r4 */
#line 73
	*(mr_u32 *)s0_32 = 1;                                    /* 547: *(u32 *)(r10 -32) = 1 */
	r3_0 = *(const volatile u8 *)p4_0;                       /* 548: r3 = *(u8 *)(r4 +0) */
#line 74
	if ((u32)r0_0 != 1) goto L596;                           /* 549: if w0 != 1 goto 623 */
#line 74
	r0_0 = 8;                                                /* 550: w0 = 8 */
#line 74
	r9_0 = 0;                                                /* 551: w9 = 0 */
#line 74
	if ((u32)r3_0 > 12) goto L602;                           /* 552: if w3 > 12 goto 629 */
#line 74
	r1_0 = 1;                                                /* 553: w1 = 1 */
#line 74
	r1_0 = (u32)r1_0 << ((u32)r3_0 & 31);                    /* 554: w1 <<= w3 */
#line 74
	r1_0 = (u32)r1_0 & 0x1838u;                              /* 555: w1 &= 6200 */
#line 74
	if ((u32)r1_0 != 0) goto L534;                           /* 556: if w1 != 0 goto 558 */
L602:
#line 34
	if ((u32)r9_0 == (u32)r3_0) goto L605;                   /* 630: if w9 == w3 goto 632 */
#line 34
	if ((u32)r0_0 != (u32)r3_0) goto L117;                   /* 631: if w0 != w3 goto 117 */
L605:
	r2_0 = *(const mr_u16 *)(p4_0 + 4);                      /* 632: r2 = *(u16 *)(r4 +4) */
#line 36
	if ((u32)r0_0 == (u32)r3_0) goto L608;                   /* 633: if w0 == w3 goto 635 */
#line 36
	r2_0 = (u32)r2_0 << 16;                                  /* 634: w2 <<= 16 */
L608:
#line 36
	r4_0 = 0;                                                /* 635: w4 = 0 */
	goto L448;                                               /* 637: goto 468 */
L534:
#line 74
	r3_0 = r2_0;                                             /* 558: r3 = r2 */
#line 90 "millrace/flow4.h"
	r3_0 = (u32)r3_0 + 8;                                    /* 559: w3 += 8 */
#line 90
	p9_0 = *(mr_pointer *)s0_144;                            /* 560: r9 = *(u64 *)(r10 -144) */
#line 31 "millrace/packet.h"
	p1_0 = p9_0;                                             /* 561: r1 = r9 */
#line 31
	p1_0 += (s64)r3_0;                                       /* 562: r1 += r3 */
#line 33
	p2_0 = p1_0;                                             /* 563: r2 = r1 */
#line 33
	p2_0 += 20;                                              /* 564: r2 += 20 */
#line 33
	if (p2_0 > p6_0) goto L623;                              /* 565: if r2 > r6 goto 650 */
#line 49 "millrace/flow4.h"
	r4_0 = *(const volatile u8 *)p1_0;                       /* 566: r4 = *(u8 *)(r1 +0) */
#line 49
	r2_0 = (u32)r4_0;                                        /* 567: w2 = w4 */
#line 49
	r2_0 = (u32)r2_0 & 240;                                  /* 568: w2 &= 240 */
#line 49
	if ((u32)r2_0 != 64) goto L623;                          /* 569: if w2 != 64 goto 650 */
#line 51
	r4_0 = (u32)r4_0 << 2;                                   /* 570: w4 <<= 2 */
#line 51
	r4_0 = (u32)r4_0 & 60;                                   /* 571: w4 &= 60 */
	if ((u32)r4_0 < 20) goto L623;                           /* 572: if w4 < 20 goto 650 */
#line 52
	r4_0 = (u32)r4_0 + (u32)r3_0;                            /* 573: w4 += w3 */
#line 52
	if ((u32)r4_0 > (u32)r8_0) goto L623;                    /* 574: if w4 > w8 goto 650 */
#line 54
	r2_0 = *(const mr_u16 *)(p1_0 + 6);                      /* 575: r2 = *(u16 *)(r1 +6) */
#line 54
	r2_0 = (u32)r2_0 & 0xff1fu;                              /* 576: w2 &= 65311 */
#line 54
	if ((u32)r2_0 != 0) goto L240;                           /* 577: if w2 != 0 goto 249 */
#line 36
	r2_0 = *(const mr_u32 *)(p1_0 + 12);                     /* 578: r2 = *(u32 *)(r1 +12) */
#line 36
	*(mr_u64 *)s0_160 = r2_0;                                /* 579: *(u64 *)(r10 -160) = r2 */
#line 36
	*(mr_u32 *)s0_64 = (u32)r2_0;                            /* 580: *(u32 *)(r10 -64) = r2 */
	r2_0 = *(const mr_u32 *)(p1_0 + 16);                     /* 581: r2 = *(u32 *)(r1 +16) */
#line 37
	*(mr_u64 *)s0_168 = r2_0;                                /* 582: *(u64 *)(r10 -168) = r2 */
#line 37
	*(mr_u32 *)s0_60 = (u32)r2_0;                            /* 583: *(u32 *)(r10 -60) = r2 */
	r2_0 = *(const u8 *)(p1_0 + 9);                          /* 584: r2 = *(u8 *)(r1 +9) */
#line 58
	*(mr_u32 *)s0_8 = (u32)r4_0;                             /* 585: *(u32 *)(r10 -8) = r4 */
#line 31 "millrace/packet.h"
	p9_0 += (s64)r4_0;                                       /* 586: r9 += r4 */
#line 31
	r5_0 = r2_0;                                             /* 587: r5 = r2 */
#line 38 "millrace/flow4.h"
	*(u8 *)s0_52 = (u8)r2_0;                                 /* 588: *(u8 *)(r10 -52) = r2 */
#line 57
	*(mr_pointer *)s0_24 = p1_0;                             /* 589: *(u64 *)(r10 -24) = r1 */
#line 39
	*(mr_u16 *)s0_50 = 0;                                    /* 590: *(u16 *)(r10 -50) = 0 */
#line 39
	*(u8 *)s0_51 = 0;                                        /* 591: *(u8 *)(r10 -51) = 0 */
#line 33 "millrace/packet.h"
	p2_0 = p9_0;                                             /* 592: r2 = r9 */
#line 33
	p2_0 += 8;                                               /* 593: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L623;                              /* 594: if r2 > r6 goto 650 */
#line 33
	r4_0 += 8;                                               /* 595: r4 += 8 */
#line 33
	if (r4_0 > r8_0) goto L623;                              /* 596: if r4 > r8 goto 650 */
#line 59 "millrace/flow4.h"
	r2_0 = *(const u8 *)(p1_0 + 9);                          /* 597: r2 = *(u8 *)(r1 +9) */
#line 59
	p0_0 = p9_0;                                             /* 598: r0 = r9 */
#line 94 "millrace/transport.h"
	*(mr_pointer *)s0_16 = p9_0;                             /* 599: *(u64 *)(r10 -16) = r9 */
	if ((u32)r2_0 == 17) goto L578;                          /* 600: if w2 == 17 goto 602 */
#line 95
	if ((u32)r2_0 != 6) goto L611;                           /* 601: if w2 != 6 goto 638 */
L578:
#line 95
	r4_0 = 1;                                                /* 602: w4 = 1 */
	r2_0 = *(const mr_u32 *)p0_0;                            /* 603: r2 = *(u32 *)(r0 +0) */
#line 37
	goto L448;                                               /* 605: goto 468 */
L596:
#line 34 "millrace/verdict.h"
	r0_0 = 128;                                              /* 623: w0 = 128 */
#line 34
	r9_0 = 129;                                              /* 624: w9 = 129 */
#line 74 "millrace/transport.h"
	r1_0 = (u32)r3_0;                                        /* 625: w1 = w3 */
#line 74
	r1_0 = (u32)r1_0 + 0xffffffffu;                          /* 626: w1 += -1 */
#line 74
	r1_0 = (u32)r1_0 & 255;                                  /* 627: w1 &= 255 */
#line 74
	if ((u32)r1_0 < 4) goto L534;                            /* 628: if w1 < 4 goto 558 */
#line 74
	goto L602;
L611:
#line 99
	if ((u32)r2_0 == 58) goto L625;                          /* 638: if w2 == 58 goto 653 */
#line 99
	if ((u32)r2_0 != 1) goto L117;                           /* 640: if w2 != 1 goto 117 */
#line 99
	r4_0 = 8;                                                /* 641: w4 = 8 */
#line 99
	r2_0 = 0;                                                /* 642: w2 = 0 */
#line 102
	r6_0 = *(const volatile u8 *)p0_0;                       /* 643: r6 = *(u8 *)(r0 +0) */
#line 102
	if ((u32)r6_0 > 12) goto L633;                           /* 644: if w6 > 12 goto 661 */
#line 102
	r3_0 = 1;                                                /* 645: w3 = 1 */
#line 102
	r3_0 = (u32)r3_0 << ((u32)r6_0 & 31);                    /* 646: w3 <<= w6 */
#line 102
	r3_0 = (u32)r3_0 & 0x1838u;                              /* 647: w3 &= 6200 */
#line 102
	if ((u32)r3_0 != 0) goto L623;                           /* 648: if w3 != 0 goto 650 */
L633:
#line 34
	if ((u32)r4_0 == (u32)r6_0) goto L635;                   /* 661: if w4 == w6 goto 663 */
#line 34
	if ((u32)r2_0 != (u32)r6_0) goto L117;                   /* 662: if w2 != w6 goto 117 */
L635:
	r2_0 = *(const mr_u16 *)(p0_0 + 4);                      /* 663: r2 = *(u16 *)(r0 +4) */
#line 36
	if ((u32)r4_0 == (u32)r6_0) goto L638;                   /* 664: if w4 == w6 goto 666 */
#line 36
	r2_0 = (u32)r2_0 << 16;                                  /* 665: w2 <<= 16 */
L638:
#line 36
	r4_0 = 1;                                                /* 666: w4 = 1 */
	goto L448;                                               /* 668: goto 468 */
L623:
#line 102
	return;                                                  /* 650: r0 = 0x1 ll */
L625:
#line 19 "nfs/firewall/firewall.c" /* return DROP_BECAUSE(fragment); */
	r4_0 = 128;                                              /* 653: w4 = 128 */
#line 19
	r2_0 = 129;                                              /* 654: w2 = 129 */
#line 102 "millrace/transport.h"
	r6_0 = *(const volatile u8 *)p0_0;                       /* 655: r6 = *(u8 *)(r0 +0) */
#line 102
	r3_0 = (u32)r6_0;                                        /* 656: w3 = w6 */
#line 102
	r3_0 = (u32)r3_0 + 0xffffffffu;                          /* 657: w3 += -1 */
#line 102
	r3_0 = (u32)r3_0 & 255;                                  /* 658: w3 &= 255 */
#line 102
	if ((u32)r3_0 < 4) goto L623;                            /* 660: if w3 < 4 goto 650 */
#line 102
	goto L633;
#line 2560 "firewall.c"
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

static void burst0_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	if (n > 0)
		age(self, packets[0]->time);
	for (u32 i = 0; i < n; i++) {
		run0_millrace_on_packet(self, packets[i], NULL);
	}
}

static inline void scout0_millrace_on_packet_entry(struct mr_instance *self, const struct slot *slot)
{
	switch (slot->site) {
	case 1:
	case 2:
		hash_prefetch_entry(&self->o0_flows, &shape0_flows, slot->token);
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

	if (!(hash_cold(&self->o0_flows, &shape0_flows))) {
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
			run0_millrace_on_packet(self, packets[i], &slots[i]);
		}
		packets += count;
		n -= count;
	}
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

static const struct mr_object objects[] = {
	{
		.name = "flows", .kind = "map", .key_bytes = 40, .value_bytes = 8,
		.capacity = 65536ull, .bytes = 8388608ull,
		.count = o0_flows_count,
		.get = o0_flows_get,
		.set = o0_flows_set,
		.remove = o0_flows_remove,
		.next = o0_flows_next,
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
