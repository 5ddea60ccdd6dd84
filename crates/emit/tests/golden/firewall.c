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

/* What a scout found of one packet: at which operation (0: none), with which key, its token, and what the
 * rest of the program reads of registers and stack. */
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
	if (p2_0 > p4_0) goto L99;                               /* 6: if r2 > r4 goto 99 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const volatile mr_u16 *)(p3_0 + 12);            /* 7: r5 = *(u16 *)(r3 +12) */
#line 46
	if ((u32)r5_0 == 0xa888u) goto L11;                      /* 8: if w5 == 43144 goto 11 */
#line 46
	r9_0 = 14;                                               /* 9: w9 = 14 */
#line 46
	if ((u32)r5_0 != 129) goto L23;                          /* 10: if w5 != 129 goto 23 */
L11:
#line 33 "millrace/packet.h"
	p2_0 = p3_0;                                             /* 11: r2 = r3 */
#line 33
	p2_0 += 18;                                              /* 12: r2 += 18 */
#line 33
	if (p2_0 > p4_0) goto L99;                               /* 13: if r2 > r4 goto 99 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const volatile mr_u16 *)(p3_0 + 16);            /* 14: r5 = *(u16 *)(r3 +16) */
#line 46
	if ((u32)r5_0 == 0xa888u) goto L18;                      /* 15: if w5 == 43144 goto 18 */
#line 46
	r9_0 = 18;                                               /* 16: w9 = 18 */
#line 46
	if ((u32)r5_0 != 129) goto L23;                          /* 17: if w5 != 129 goto 23 */
L18:
#line 33 "millrace/packet.h"
	p2_0 = p3_0;                                             /* 18: r2 = r3 */
#line 33
	p2_0 += 22;                                              /* 19: r2 += 22 */
#line 33
	if (p2_0 > p4_0) goto L99;                               /* 20: if r2 > r4 goto 99 */
#line 33
	r9_0 = 22;                                               /* 21: w9 = 22 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const volatile mr_u16 *)(p3_0 + 20);            /* 22: r5 = *(u16 *)(r3 +20) */
L23:
#line 96 "millrace/flow.h"
	if ((u32)r5_0 == 0xdd86u) goto L103;                     /* 23: if w5 == 56710 goto 103 */
#line 96
	if ((u32)r5_0 != 8) goto L99;                            /* 24: if w5 != 8 goto 99 */
#line 31 "millrace/packet.h"
	p5_0 = pkt->data;                                        /* 29: r5 = *(u32 *)(r1 +0) */
#line 31
	p7_0 = p5_0;                                             /* 30: r7 = r5 */
#line 31
	p7_0 += (s64)r9_0;                                       /* 31: r7 += r9 */
#line 33
	p2_0 = p7_0;                                             /* 32: r2 = r7 */
#line 33
	p2_0 += 20;                                              /* 33: r2 += 20 */
#line 33
	p6_0 = pkt->end;                                         /* 34: r6 = *(u32 *)(r1 +4) */
#line 33
	if (p2_0 > p6_0) goto L599;                              /* 35: if r2 > r6 goto 626 */
#line 66 "millrace/ipv4.h"
	r8_0 = *(const volatile u8 *)p7_0;                       /* 36: r8 = *(u8 *)(r7 +0) */
#line 66
	r2_0 = (u32)r8_0;                                        /* 37: w2 = w8 */
#line 66
	r2_0 = (u32)r2_0 & 240;                                  /* 38: w2 &= 240 */
#line 66
	if ((u32)r2_0 != 64) goto L599;                          /* 39: if w2 != 64 goto 626 */
#line 68
	r8_0 = (u32)r8_0 << 2;                                   /* 40: w8 <<= 2 */
#line 68
	r8_0 = (u32)r8_0 & 60;                                   /* 41: w8 &= 60 */
#line 70
	if ((u32)r8_0 < 20) goto L599;                           /* 42: if w8 < 20 goto 626 */
#line 70
	r2_0 = *(const volatile mr_u16 *)(p7_0 + 2);             /* 43: r2 = *(u16 *)(r7 +2) */
#line 70
	r2_0 = __builtin_bswap16((u16)r2_0);                     /* 44: r2 = bswap16 r2 */
#line 70
	if ((u32)r8_0 > (u32)r2_0) goto L599;                    /* 45: if w8 > w2 goto 626 */
#line 70
	r3_0 = (u32)r9_0;                                        /* 46: w3 = w9 */
#line 70
	r3_0 = (u32)r3_0 + (u32)r2_0;                            /* 47: w3 += w2 */
#line 46 "millrace/packet.h"
	p2_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p6_0);     /* 48: w2 = w6 */
#line 46
	r2_0 = (u32)(u64)(uintptr_t)p2_0 - (u32)(u64)(uintptr_t)p5_0; /* 49: w2 -= w5 */
#line 70 "millrace/ipv4.h"
	if ((u32)r3_0 > (u32)r2_0) goto L599;                    /* 50: if w3 > w2 goto 626 */
#line 70
	*(mr_u64 *)s0_136 = r9_0;                                /* 51: *(u64 *)(r10 -136) = r9 */
#line 44
	r2_0 = *(const mr_u32 *)(p7_0 + 8);                      /* 52: r2 = *(u32 *)(r7 +8) */
#line 44
	r3_0 = *(const volatile mr_u32 *)p7_0;                   /* 53: r3 = *(u32 *)(r7 +0) */
#line 44
	r4_0 = *(const mr_u32 *)(p7_0 + 4);                      /* 54: r4 = *(u32 *)(r7 +4) */
#line 44
	*(mr_u64 *)s0_152 = r4_0;                                /* 55: *(u64 *)(r10 -152) = r4 */
#line 44
	*(mr_u64 *)s0_176 = r3_0;                                /* 56: *(u64 *)(r10 -176) = r3 */
#line 44
	r4_0 += r3_0;                                            /* 57: r4 += r3 */
#line 44
	*(mr_u64 *)s0_144 = r2_0;                                /* 58: *(u64 *)(r10 -144) = r2 */
#line 44
	r4_0 += r2_0;                                            /* 59: r4 += r2 */
#line 44
	r2_0 = *(const mr_u32 *)(p7_0 + 12);                     /* 60: r2 = *(u32 *)(r7 +12) */
#line 44
	*(mr_u64 *)s0_160 = r2_0;                                /* 61: *(u64 *)(r10 -160) = r2 */
#line 44
	r4_0 += r2_0;                                            /* 62: r4 += r2 */
	r2_0 = *(const mr_u32 *)(p7_0 + 16);                     /* 63: r2 = *(u32 *)(r7 +16) */
#line 45
	*(mr_u64 *)s0_168 = r2_0;                                /* 64: *(u64 *)(r10 -168) = r2 */
#line 44
	r4_0 += r2_0;                                            /* 65: r4 += r2 */
#line 48
	if ((u32)r8_0 < 21) goto L87;                            /* 68: if w8 < 21 goto 87 */
#line 48
	p0_0 = p5_0;                                             /* 69: r0 = r5 */
#line 48
	r2_0 = *(const mr_u64 *)s0_136;                          /* 70: r2 = *(u64 *)(r10 -136) */
#line 48
	p0_0 += (s64)r2_0;                                       /* 71: r0 += r2 */
#line 48
	r9_0 = 0;                                                /* 72: r9 = 0 */
L73:
#line 33 "millrace/packet.h"
	p3_0 = p0_0;                                             /* 73: r3 = r0 */
#line 33
	p3_0 += (s64)r9_0;                                       /* 74: r3 += r9 */
#line 33
	p2_0 = p3_0;                                             /* 75: r2 = r3 */
#line 33
	p2_0 += 24;                                              /* 76: r2 += 24 */
#line 33
	if (p2_0 > p6_0) goto L87;                               /* 77: if r2 > r6 goto 87 */
#line 33
	r2_0 = r9_0;                                             /* 78: r2 = r9 */
#line 33
	r2_0 += 20;                                              /* 79: r2 += 20 */
#line 54 "millrace/ipv4.h"
	r3_0 = *(const mr_u32 *)(p3_0 + 20);                     /* 80: r3 = *(u32 *)(r3 +20) */
#line 54
	r4_0 += r3_0;                                            /* 81: r4 += r3 */
#line 48
	if (r2_0 > 55) goto L87;                                 /* 82: if r2 > 55 goto 87 */
#line 48
	r2_0 = r9_0;                                             /* 83: r2 = r9 */
#line 48
	r2_0 += 24;                                              /* 84: r2 += 24 */
#line 48
	r9_0 += 4;                                               /* 85: r9 += 4 */
#line 48
	if (r2_0 < r8_0) goto L73;                               /* 86: if r2 < r8 goto 73 */
L87:
#line 27 "millrace/checksum.h"
	r4_0 %= 0xffffu;                                         /* 87: r4 %= 65535 */
#line 27
	r0_0 = *(const mr_u64 *)s0_136;                          /* 88: r0 = *(u64 *)(r10 -136) */
#line 27
	if (r4_0 != 0) goto L599;                                /* 89: if r4 != 0 goto 626 */
#line 27
	r4_0 = *(const mr_u64 *)s0_144;                          /* 90: r4 = *(u64 *)(r10 -144) */
#line 27
	r4_0 = (u32)r4_0 >> 8;                                   /* 91: w4 >>= 8 */
#line 48 "millrace/ipv4.h"
	r2_0 = (u32)r4_0;                                        /* 92: w2 = w4 */
#line 48
	r2_0 = (u32)r2_0 & 255;                                  /* 93: w2 &= 255 */
#line 83 "millrace/flow4.h"
	if ((u32)r2_0 > 17) goto L99;                            /* 94: if w2 > 17 goto 99 */
#line 83
	r3_0 = 1;                                                /* 95: w3 = 1 */
#line 83
	r3_0 = (u32)r3_0 << ((u32)r2_0 & 31);                    /* 96: w3 <<= w2 */
#line 83
	r3_0 = (u32)r3_0 & 0x20042u;                             /* 97: w3 &= 131138 */
#line 83
	if ((u32)r3_0 != 0) goto L224;                           /* 98: if w3 != 0 goto 234 */
L99:
#line 34 "millrace/verdict.h"
	r0_0 = pkt->port;                                        /* 99: r0 = *(u32 *)(r1 +12) */
L100:
#line 34
	r0_0 = (u32)r0_0 & 0xffffffu;                            /* 100: w0 &= 16777215 */
#line 34
	r0_0 = (u32)r0_0 ^ 0x1000001u;                           /* 101: w0 ^= 16777217 */
#line 36 "nfs/firewall/firewall.c" /* } */
	return mr_verdict_handlers(pkt, r0_0);                   /* 102: exit */
L103:
#line 36
	r0_0 = 1;                                                /* 103: r0 = 0x1 ll */
#line 31 "millrace/packet.h"
	p6_0 = p3_0;                                             /* 105: r6 = r3 */
#line 31
	r5_0 = r9_0;                                             /* 106: r5 = r9 */
#line 31
	p6_0 += (s64)r9_0;                                       /* 107: r6 += r9 */
#line 33
	p2_0 = p6_0;                                             /* 108: r2 = r6 */
#line 33
	p2_0 += 40;                                              /* 109: r2 += 40 */
#line 33
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 110: if r2 > r4 goto 102 */
#line 40 "millrace/ipv6.h"
	r2_0 = *(const volatile mr_u32 *)p6_0;                   /* 111: r2 = *(u32 *)(r6 +0) */
#line 40
	r2_0 = (u32)r2_0 & 240;                                  /* 112: w2 &= 240 */
#line 40
	if ((u32)r2_0 != 96) return mr_verdict_handlers(pkt, r0_0); /* 113: if w2 != 96 goto 102 */
#line 46 "millrace/packet.h"
	p2_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p4_0);     /* 114: w2 = w4 */
#line 46
	r2_0 = (u32)(u64)(uintptr_t)p2_0 - (u32)(u64)(uintptr_t)p3_0; /* 115: w2 -= w3 */
#line 46
	r7_0 = r5_0;                                             /* 116: r7 = r5 */
#line 42 "millrace/ipv6.h"
	r7_0 += 40;                                              /* 117: r7 += 40 */
#line 42
	r5_0 = *(const volatile mr_u16 *)(p6_0 + 4);             /* 118: r5 = *(u16 *)(r6 +4) */
#line 42
	r5_0 = __builtin_bswap16((u16)r5_0);                     /* 119: r5 = bswap16 r5 */
#line 42
	*(mr_u64 *)s0_136 = r7_0;                                /* 120: *(u64 *)(r10 -136) = r7 */
#line 42
	r7_0 += r5_0;                                            /* 121: r7 += r5 */
#line 42
	*(mr_u64 *)s0_144 = r7_0;                                /* 122: *(u64 *)(r10 -144) = r7 */
#line 42
	if (r7_0 > r2_0) return mr_verdict_handlers(pkt, r0_0);  /* 123: if r7 > r2 goto 102 */
#line 42
	r5_0 = 8;                                                /* 124: w5 = 8 */
#line 72 "millrace/flow.h"
	p9_0 = p6_0;                                             /* 125: r9 = r6 */
#line 72
	p9_0 += 6;                                               /* 126: r9 += 6 */
#line 72
	r2_0 = 0x100000000000ull;                                /* 127: r2 = 0x100000000000 ll */
#line 72
	*(mr_u64 *)s0_152 = r2_0;                                /* 129: *(u64 *)(r10 -152) = r2 */
#line 72
	r2_0 = 0x8000000000000ull;                               /* 130: r2 = 0x8000000000000 ll */
#line 72
	*(mr_u64 *)s0_160 = r2_0;                                /* 132: *(u64 *)(r10 -160) = r2 */
L130:
#line 72
	r7_0 = (u32)r5_0;                                        /* 133: w7 = w5 */
#line 72
	r5_0 = *(const volatile u8 *)p9_0;                       /* 134: r5 = *(u8 *)(r9 +0) */
#line 85 "millrace/ipv6.h"
	if (r5_0 > 63) goto L180;                                /* 135: if r5 > 63 goto 186 */
#line 85
	r2_0 = 0x1008180000000001ull;                            /* 136: r2 = 0x1008180000000001 ll */
#line 85
	r2_0 = r2_0 >> (r5_0 & 63);                              /* 138: r2 >>= r5 */
#line 85
	r2_0 &= 1;                                               /* 139: r2 &= 1 */
#line 85
	if (r2_0 == 0) goto L180;                                /* 140: if r2 == 0 goto 186 */
#line 31 "millrace/packet.h"
	r2_0 = *(const mr_u64 *)s0_136;                          /* 141: r2 = *(u64 *)(r10 -136) */
#line 31
	r2_0 = (u32)r2_0;                                        /* 142: w2 = w2 */
#line 31
	p9_0 = p3_0;                                             /* 143: r9 = r3 */
#line 31
	p9_0 += (s64)r2_0;                                       /* 144: r9 += r2 */
#line 31
	r0_0 = 1;                                                /* 145: r0 = 0x1 ll */
#line 33
	p2_0 = p9_0;                                             /* 147: r2 = r9 */
#line 33
	p2_0 += 8;                                               /* 148: r2 += 8 */
#line 33
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 149: if r2 > r4 goto 102 */
#line 33
	r2_0 = *(const mr_u64 *)s0_136;                          /* 150: r2 = *(u64 *)(r10 -136) */
#line 33
	r2_0 = (u32)r2_0 + 8;                                    /* 151: w2 += 8 */
#line 33
	r8_0 = *(const mr_u64 *)s0_144;                          /* 152: r8 = *(u64 *)(r10 -144) */
#line 33
	if ((u32)r2_0 > (u32)r8_0) return mr_verdict_handlers(pkt, r0_0); /* 153: if w2 > w8 goto 102 */
#line 68 "millrace/ipv6.h"
	r0_0 = *(const mr_u64 *)s0_152;                          /* 154: r0 = *(u64 *)(r10 -152) */
#line 68
	r0_0 = r0_0 >> (r5_0 & 63);                              /* 155: r0 >>= r5 */
#line 68
	r0_0 = (u32)r0_0 & 1;                                    /* 156: w0 &= 1 */
#line 68
	r0_0 = -(u32)r0_0;                                       /* 157: w0 = -w0 */
#line 96
	r2_0 = *(const volatile mr_u16 *)(p9_0 + 2);             /* 158: r2 = *(u16 *)(r9 +2) */
#line 96
	r2_0 = __builtin_bswap64((u64)r2_0);                     /* 159: r2 = bswap64 r2 */
#line 96
	r2_0 >>= 51;                                             /* 160: r2 >>= 51 */
#line 96
	r8_0 = (u32)r0_0;                                        /* 161: w8 = w0 */
#line 96
	r8_0 = (u32)r8_0 & (u32)r2_0;                            /* 162: w8 &= w2 */
#line 96
	if ((u32)r8_0 != 0) goto L219;                           /* 163: if w8 != 0 goto 227 */
#line 96
	r8_0 = *(const mr_u64 *)s0_160;                          /* 164: r8 = *(u64 *)(r10 -160) */
#line 96
	r8_0 = r8_0 >> (r5_0 & 63);                              /* 165: r8 >>= r5 */
#line 96
	r8_0 = (u32)r8_0 & 1;                                    /* 166: w8 &= 1 */
#line 96
	r8_0 = -(u32)r8_0;                                       /* 167: w8 = -w8 */
#line 103
	r0_0 = (u32)r0_0 ^ 0xffffffffu;                          /* 168: w0 ^= -1 */
#line 103
	r2_0 = *(const volatile u8 *)(p9_0 + 1);                 /* 169: r2 = *(u8 *)(r9 +1) */
#line 103
	r2_0 = (u32)r2_0 & (u32)r0_0;                            /* 170: w2 &= w0 */
	r2_0 = (u32)r2_0 - (u32)r8_0;                            /* 171: w2 -= w8 */
#line 104
	r2_0 = (u32)r2_0 + 1;                                    /* 172: w2 += 1 */
#line 104
	r8_0 = (u32)r8_0 + 3;                                    /* 173: w8 += 3 */
#line 104
	r2_0 = (u32)r2_0 << ((u32)r8_0 & 31);                    /* 174: w2 <<= w8 */
#line 104
	r5_0 = *(const mr_u64 *)s0_136;                          /* 175: r5 = *(u64 *)(r10 -136) */
#line 104
	r2_0 = (u32)r2_0 + (u32)r5_0;                            /* 176: w2 += w5 */
#line 104
	r0_0 = 1;                                                /* 177: r0 = 0x1 ll */
#line 104
	r5_0 = *(const mr_u64 *)s0_144;                          /* 179: r5 = *(u64 *)(r10 -144) */
#line 104
	if ((u32)r2_0 > (u32)r5_0) return mr_verdict_handlers(pkt, r0_0); /* 180: if w2 > w5 goto 102 */
#line 104
	r5_0 = (u32)r7_0;                                        /* 181: w5 = w7 */
#line 104
	r5_0 = (u32)r5_0 + 0xffffffffu;                          /* 182: w5 += -1 */
#line 104
	*(mr_u64 *)s0_136 = r2_0;                                /* 183: *(u64 *)(r10 -136) = r2 */
#line 104
	if ((u32)r7_0 == 0) return mr_verdict_handlers(pkt, r0_0); /* 184: if w7 == 0 goto 102 */
#line 104
	goto L130;                                               /* 185: goto 133 */
L180:
#line 73 "millrace/flow.h"
	r8_0 = *(const mr_u64 *)s0_136;                          /* 190: r8 = *(u64 *)(r10 -136) */
#line 77
	if ((u32)r5_0 == 1) goto L99;                            /* 191: if w5 == 1 goto 99 */
#line 32
	r2_0 = *(const mr_u32 *)(p6_0 + 8);                      /* 192: r2 = *(u32 *)(r6 +8) */
#line 32
	r0_0 = *(const mr_u32 *)(p6_0 + 12);                     /* 193: r0 = *(u32 *)(r6 +12) */
#line 32
	r7_0 = *(const mr_u64 *)(p6_0 + 16);                     /* 194: r7 = *(u64 *)(r6 +16) */
	{                                                        /* stores in the order of addresses */
#line 32
		r0_0 <<= 32;                                     /* 196: r0 <<= 32 */
#line 32
		r0_0 |= r2_0;                                    /* 197: r0 |= r2 */
#line 32
		const u64 v191 = r0_0;                           /* 198: *(u64 *)(r10 -120) = r0 */
		r2_0 = *(const mr_u32 *)(p6_0 + 24);             /* 199: r2 = *(u32 *)(r6 +24) */
#line 33
		r0_0 = *(const mr_u32 *)(p6_0 + 28);             /* 200: r0 = *(u32 *)(r6 +28) */
#line 33
		r6_0 = *(const mr_u64 *)(p6_0 + 32);             /* 201: r6 = *(u64 *)(r6 +32) */
#line 33
		r0_0 <<= 32;                                     /* 204: r0 <<= 32 */
#line 33
		r0_0 |= r2_0;                                    /* 205: r0 |= r2 */
#line 32
		*(mr_u64 *)s0_120 = v191;                        /* 198: *(u64 *)(r10 -120) = r0 */
#line 32
		*(mr_u64 *)(s0_120 + 8) = r7_0;                  /* 195: *(u64 *)(r10 -112) = r7 */
		*(mr_u64 *)(s0_120 + 16) = r0_0;                 /* 206: *(u64 *)(r10 -104) = r0 */
#line 33
		*(mr_u64 *)(s0_120 + 24) = r6_0;                 /* 203: *(u64 *)(r10 -96) = r6 */
		*(u8 *)(s0_120 + 36) = (u8)r5_0;                 /* 202: *(u8 *)(r10 -84) = r5 */
		*(u8 *)(s0_120 + 37) = 6;                        /* 208: *(u8 *)(r10 -83) = 6 */
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 207: *(u16 *)(r10 -82) = 0 */
	}
#line 49 "millrace/transport.h"
	if ((u32)r5_0 == 17) goto L262;                          /* 209: if w5 == 17 goto 272 */
#line 49
	if ((u32)r5_0 != 6) goto L300;                           /* 210: if w5 != 6 goto 312 */
#line 31 "millrace/packet.h"
	r2_0 = (u32)r8_0;                                        /* 211: w2 = w8 */
#line 31
	p3_0 += (s64)r2_0;                                       /* 212: r3 += r2 */
#line 31
	r0_0 = 1;                                                /* 213: r0 = 0x1 ll */
#line 33
	p2_0 = p3_0;                                             /* 215: r2 = r3 */
#line 33
	p2_0 += 20;                                              /* 216: r2 += 20 */
#line 33
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 217: if r2 > r4 goto 102 */
#line 52 "millrace/transport.h"
	r2_0 = *(const volatile u8 *)(p3_0 + 12);                /* 218: r2 = *(u8 *)(r3 +12) */
#line 52
	if ((u32)r2_0 < 80) return mr_verdict_handlers(pkt, r0_0); /* 219: if w2 < 80 goto 102 */
#line 52
	r2_0 = (u32)r2_0 >> 2;                                   /* 220: w2 >>= 2 */
#line 52
	r2_0 = (u32)r2_0 & 60;                                   /* 221: w2 &= 60 */
#line 52
	r4_0 = *(const mr_u64 *)s0_136;                          /* 222: r4 = *(u64 *)(r10 -136) */
#line 52
	r4_0 = (u32)r4_0 + (u32)r2_0;                            /* 223: w4 += w2 */
#line 52
	r2_0 = *(const mr_u64 *)s0_144;                          /* 224: r2 = *(u64 *)(r10 -144) */
#line 52
	if ((u32)r4_0 > (u32)r2_0) return mr_verdict_handlers(pkt, r0_0); /* 225: if w4 > w2 goto 102 */
L271:
#line 33 "millrace/packet.h"
	r2_0 = *(const mr_u32 *)p3_0;                            /* 282: r2 = *(u32 *)(r3 +0) */
L272:
#line 33
	*(mr_u32 *)(s0_120 + 32) = (u32)r2_0;                    /* 283: *(u32 *)(r10 -88) = r2 */
L273:
#line 29 "nfs/firewall/firewall.c" /* if (p->port == WAN) */
	r1_0 = pkt->port;                                        /* 285: r1 = *(u32 *)(r1 +12) */
#line 29
	if ((u32)r1_0 != 1) goto L289;                           /* 286: if w1 != 1 goto 300 */
#line 133 "millrace/flow.h"
	r1_0 = *(const mr_u64 *)s0_120;                          /* 287: r1 = *(u64 *)(r10 -120) */
#line 135
	r3_0 = *(const mr_u64 *)(s0_120 + 16);                   /* 288: r3 = *(u64 *)(r10 -104) */
#line 135
	*(mr_u64 *)s0_120 = r3_0;                                /* 289: *(u64 *)(r10 -120) = r3 */
#line 133
	r3_0 = *(const mr_u64 *)(s0_120 + 8);                    /* 290: r3 = *(u64 *)(r10 -112) */
#line 135
	r4_0 = *(const mr_u64 *)(s0_120 + 24);                   /* 291: r4 = *(u64 *)(r10 -96) */
#line 135
	*(mr_u64 *)(s0_120 + 8) = r4_0;                          /* 292: *(u64 *)(r10 -112) = r4 */
	*(mr_u64 *)(s0_120 + 16) = r1_0;                         /* 293: *(u64 *)(r10 -104) = r1 */
#line 136
	*(mr_u64 *)(s0_120 + 24) = r3_0;                         /* 294: *(u64 *)(r10 -96) = r3 */
	r1_0 = (u32)r2_0;                                        /* 295: w1 = w2 */
#line 137
	r1_0 = (u32)r1_0 >> 16;                                  /* 296: w1 >>= 16 */
#line 137
	r2_0 = (u32)r2_0 << 16;                                  /* 297: w2 <<= 16 */
#line 137
	r2_0 = (u32)r2_0 | (u32)r1_0;                            /* 298: w2 |= w1 */
#line 137
	*(mr_u32 *)(s0_120 + 32) = (u32)r2_0;                    /* 299: *(u32 *)(r10 -88) = r2 */
L289:
#line 31 "nfs/firewall/firewall.c" /* if (map_refresh(&flows, &f)) */
	{                                                        /* 304: call map_refresh#65537 */
#line 31
		u64 key[] = { mr_load64(s0_120), mr_load64(s0_120 + 8), mr_load64(s0_120 + 16), mr_load64(s0_120 + 24), mr_load64(s0_120 + 32) };
#line 31
		p0_0 = hash_map_refresh(&self->o0_flows, &shape0_flows, key, hash_token(&self->o0_flows, &shape0_flows, key), pkt);
#line 31
	}
#line 31
	r1_0 = pkt->port;                                        /* 306: r1 = *(u32 *)(r1 +12) */
#line 31
	if (!p0_0) goto L434;                                    /* 307: if r0 == 0 goto 450 */
	r1_0 = (u32)r1_0 & 0xffffffu;                            /* 308: w1 &= 16777215 */
#line 32 /* return FORWARD(peer(p)); */
	r1_0 = (u32)r1_0 ^ 0x1000001u;                           /* 309: w1 ^= 16777217 */
#line 32
	r0_0 = (u32)r1_0;                                        /* 310: w0 = w1 */
#line 32
	return mr_verdict_handlers(pkt, r0_0);                   /* 311: goto 102 */
L219:
L222:
#line 73 "millrace/flow.h"
	r0_0 = 2;                                                /* 231: r0 = 0x2 ll */
#line 19 "nfs/firewall/firewall.c" /* return DROP_BECAUSE(fragment); */
	return mr_verdict_handlers(pkt, r0_0);                   /* 233: goto 102 */
L224:
#line 19
	r2_0 = *(const mr_u64 *)s0_152;                          /* 234: r2 = *(u64 *)(r10 -152) */
#line 85 "millrace/flow4.h"
	r2_0 = (u32)r2_0 & 0xff1f0000u;                          /* 235: w2 &= -14745600 */
#line 85
	if ((u32)r2_0 != 0) goto L222;                           /* 236: if w2 != 0 goto 231 */
#line 85
	r3_0 = *(const mr_u64 *)s0_176;                          /* 237: r3 = *(u64 *)(r10 -176) */
#line 85
	r2_0 = (u32)r3_0;                                        /* 238: w2 = w3 */
#line 85
	r2_0 = (u32)r2_0 >> 16;                                  /* 239: w2 >>= 16 */
#line 85
	r3_0 = (u32)r3_0 << 2;                                   /* 240: w3 <<= 2 */
#line 85
	r3_0 = (u32)r3_0 & 60;                                   /* 241: w3 &= 60 */
#line 85
	r8_0 = (u32)r0_0;                                        /* 242: w8 = w0 */
#line 85
	r8_0 = (u32)r8_0 + (u32)r3_0;                            /* 243: w8 += w3 */
#line 85
	r2_0 = __builtin_bswap16((u16)r2_0);                     /* 244: r2 = bswap16 r2 */
#line 85
	r0_0 = (u32)r0_0 + (u32)r2_0;                            /* 245: w0 += w2 */
#line 37
	r2_0 = *(const mr_u64 *)s0_168;                          /* 246: r2 = *(u64 *)(r10 -168) */
#line 37
	*(mr_u32 *)s0_60 = (u32)r2_0;                            /* 247: *(u32 *)(r10 -60) = r2 */
#line 36
	r2_0 = *(const mr_u64 *)s0_160;                          /* 248: r2 = *(u64 *)(r10 -160) */
#line 36
	*(mr_u32 *)s0_64 = (u32)r2_0;                            /* 249: *(u32 *)(r10 -64) = r2 */
#line 89
	*(mr_u32 *)s0_4 = (u32)r0_0;                             /* 250: *(u32 *)(r10 -4) = r0 */
#line 88
	*(mr_pointer *)s0_48 = p7_0;                             /* 251: *(u64 *)(r10 -48) = r7 */
#line 38
	*(u8 *)s0_52 = (u8)r4_0;                                 /* 252: *(u8 *)(r10 -52) = r4 */
	*(mr_u16 *)s0_50 = 0;                                    /* 253: *(u16 *)(r10 -50) = 0 */
#line 39
	*(u8 *)s0_51 = 0;                                        /* 254: *(u8 *)(r10 -51) = 0 */
#line 48 "millrace/ipv4.h"
	r2_0 = (u32)r4_0;                                        /* 255: w2 = w4 */
#line 48
	r2_0 = (u32)r2_0 & 255;                                  /* 256: w2 &= 255 */
#line 49 "millrace/transport.h"
	if ((u32)r2_0 == 17) goto L323;                          /* 257: if w2 == 17 goto 336 */
#line 49
	if ((u32)r2_0 != 6) goto L360;                           /* 258: if w2 != 6 goto 376 */
#line 31 "millrace/packet.h"
	p5_0 += (s64)r8_0;                                       /* 259: r5 += r8 */
#line 33
	p2_0 = p5_0;                                             /* 260: r2 = r5 */
#line 33
	p2_0 += 20;                                              /* 261: r2 += 20 */
#line 33
	if (p2_0 > p6_0) goto L599;                              /* 262: if r2 > r6 goto 626 */
#line 52 "millrace/transport.h"
	r2_0 = *(const volatile u8 *)(p5_0 + 12);                /* 263: r2 = *(u8 *)(r5 +12) */
#line 52
	if ((u32)r2_0 < 80) goto L599;                           /* 264: if w2 < 80 goto 626 */
#line 52
	r2_0 = (u32)r2_0 >> 2;                                   /* 265: w2 >>= 2 */
#line 52
	r2_0 = (u32)r2_0 & 60;                                   /* 266: w2 &= 60 */
#line 52
	r8_0 = (u32)r8_0 + (u32)r2_0;                            /* 267: w8 += w2 */
#line 52
	if ((u32)r8_0 > (u32)r0_0) goto L599;                    /* 268: if w8 > w0 goto 626 */
#line 52
	r4_0 = 0;                                                /* 269: w4 = 0 */
#line 52
	r7_0 = 6;                                                /* 270: w7 = 6 */
L331:
#line 33 "millrace/packet.h"
	r2_0 = *(const mr_u32 *)p5_0;                            /* 344: r2 = *(u32 *)(r5 +0) */
L332:
	{                                                        /* stores in the order of addresses */
#line 103 "millrace/flow.h"
		*(mr_u32 *)(s0_120 + 32) = (u32)r2_0;            /* 346: *(u32 *)(r10 -88) = r2 */
#line 103
		*(u8 *)(s0_120 + 36) = (u8)r7_0;                 /* 345: *(u8 *)(r10 -84) = r7 */
	}
#line 103
	r5_0 = *(const mr_u64 *)s0_168;                          /* 347: r5 = *(u64 *)(r10 -168) */
#line 105
	r5_0 <<= 32;                                             /* 348: r5 <<= 32 */
#line 105
	r3_0 = 0xffff0000u;                                      /* 349: r3 = 0xffff0000 ll */
#line 105
	r5_0 |= r3_0;                                            /* 351: r5 |= r3 */
#line 103
	*(mr_u64 *)(s0_120 + 24) = r5_0;                         /* 352: *(u64 *)(r10 -96) = r5 */
#line 103
	r5_0 = *(const mr_u64 *)s0_160;                          /* 353: r5 = *(u64 *)(r10 -160) */
	r5_0 <<= 32;                                             /* 354: r5 <<= 32 */
#line 104
	r5_0 |= r3_0;                                            /* 355: r5 |= r3 */
	{                                                        /* stores in the order of addresses */
#line 103
		*(mr_u64 *)s0_120 = 0;                           /* 360: *(u64 *)(r10 -120) = 0 */
#line 103
		*(mr_u64 *)(s0_120 + 8) = r5_0;                  /* 356: *(u64 *)(r10 -112) = r5 */
#line 103
		*(mr_u64 *)(s0_120 + 16) = 0;                    /* 359: *(u64 *)(r10 -104) = 0 */
#line 103
		*(u8 *)(s0_120 + 37) = 4;                        /* 358: *(u8 *)(r10 -83) = 4 */
#line 103
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 357: *(u16 *)(r10 -82) = 0 */
	}
#line 13 "nfs/firewall/firewall.c" /* switch (packet_find_flow(p, &f)) { */
	if ((u32)r4_0 != 0) goto L349;                           /* 361: if w4 != 0 goto 363 */
#line 13
	goto L273;                                               /* 362: goto 284 */
L262:
#line 55 "millrace/transport.h"
	r0_0 = 1;                                                /* 272: r0 = 0x1 ll */
#line 31 "millrace/packet.h"
	r2_0 = (u32)r8_0;                                        /* 274: w2 = w8 */
#line 31
	p3_0 += (s64)r2_0;                                       /* 275: r3 += r2 */
#line 33
	p5_0 = p3_0;                                             /* 276: r5 = r3 */
#line 33
	p5_0 += 8;                                               /* 277: r5 += 8 */
#line 33
	if (p5_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 278: if r5 > r4 goto 102 */
#line 33
	r2_0 += 8;                                               /* 279: r2 += 8 */
#line 33
	r4_0 = *(const mr_u64 *)s0_144;                          /* 280: r4 = *(u64 *)(r10 -144) */
#line 33
	if (r2_0 > r4_0) return mr_verdict_handlers(pkt, r0_0);  /* 281: if r2 > r4 goto 102 */
#line 33
	goto L271;
L300:
#line 68 "millrace/transport.h"
	if ((u32)r5_0 == 58) goto L303;                          /* 312: if w5 == 58 goto 315 */
#line 68
	goto L99;                                                /* 314: if w2 != 0 goto 99 */
L303:
#line 68
	r0_0 = 1;                                                /* 315: r0 = 0x1 ll */
#line 31 "millrace/packet.h"
	r2_0 = (u32)r8_0;                                        /* 317: w2 = w8 */
#line 31
	p5_0 = p3_0;                                             /* 318: r5 = r3 */
#line 31
	p5_0 += (s64)r2_0;                                       /* 319: r5 += r2 */
#line 33
	p6_0 = p5_0;                                             /* 320: r6 = r5 */
#line 33
	p6_0 += 8;                                               /* 321: r6 += 8 */
#line 33
	if (p6_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 322: if r6 > r4 goto 102 */
#line 33
	r2_0 += 8;                                               /* 323: r2 += 8 */
#line 33
	r6_0 = *(const mr_u64 *)s0_144;                          /* 324: r6 = *(u64 *)(r10 -144) */
#line 33
	if (r2_0 > r6_0) return mr_verdict_handlers(pkt, r0_0);  /* 325: if r2 > r6 goto 102 */
#line 74 "millrace/transport.h"
	r0_0 = *(const s8 *)p5_0;                                /* 326: r0 = *(s8 *)(r5 +0) */
#line 74
	r2_0 = (u32)r0_0;                                        /* 327: w2 = w0 */
#line 74
	r2_0 = (u32)r2_0 + 0xffffffffu;                          /* 328: w2 += -1 */
#line 74
	r2_0 = (u32)r2_0 & 255;                                  /* 329: w2 &= 255 */
#line 74
	if ((u32)r2_0 < 4) goto L448;                            /* 330: if w2 < 4 goto 467 */
#line 34
	if ((s32)r0_0 > -127) goto L99;                          /* 331: if w0 s> -127 goto 99 */
#line 36
	r2_0 = *(const mr_u16 *)(p5_0 + 4);                      /* 332: r2 = *(u16 *)(r5 +4) */
#line 36
	if ((u32)r0_0 == 0xffffff80u) goto L272;                 /* 333: if w0 == -128 goto 283 */
#line 36
	r2_0 = (u32)r2_0 << 16;                                  /* 334: w2 <<= 16 */
#line 36
	goto L272;                                               /* 335: goto 283 */
L323:
#line 31 "millrace/packet.h"
	p5_0 += (s64)r8_0;                                       /* 336: r5 += r8 */
#line 33
	p2_0 = p5_0;                                             /* 337: r2 = r5 */
#line 33
	p2_0 += 8;                                               /* 338: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L599;                              /* 339: if r2 > r6 goto 626 */
#line 33
	r8_0 += 8;                                               /* 340: r8 += 8 */
#line 33
	if (r8_0 > r0_0) goto L599;                              /* 341: if r8 > r0 goto 626 */
#line 33
	r4_0 = 0;                                                /* 342: w4 = 0 */
#line 33
	r7_0 = 17;                                               /* 343: w7 = 17 */
#line 33
	goto L331;
L349:
#line 23 "nfs/firewall/firewall.c" /* if (p->port == WAN && !map_get(&flows, &f)) */
	r0_0 = pkt->port;                                        /* 364: r0 = *(u32 *)(r1 +12) */
#line 23
	if ((u32)r0_0 != 1) goto L100;                           /* 365: if w0 != 1 goto 100 */
#line 23
	{                                                        /* 370: call map_get#65536 */
#line 23
		u64 key[] = { mr_load64(s0_120), mr_load64(s0_120 + 8), mr_load64(s0_120 + 16), mr_load64(s0_120 + 24), mr_load64(s0_120 + 32) };
#line 23
		p0_0 = hash_map_get(&self->o0_flows, &shape0_flows, key, hash_token(&self->o0_flows, &shape0_flows, key), pkt);
#line 23
	}
#line 23
	p1_0 = p0_0;                                             /* 371: r1 = r0 */
#line 23
	r0_0 = 3;                                                /* 372: r0 = 0x3 ll */
#line 23
	if (!p1_0) return mr_verdict_handlers(pkt, r0_0);        /* 374: if r1 == 0 goto 102 */
L446:
#line 34 "millrace/verdict.h"
	r0_0 = pkt->port;                                        /* 465: r0 = *(u32 *)(r6 +12) */
#line 34
	goto L100;                                               /* 466: goto 100 */
L360:
#line 34
	r7_0 = r4_0;                                             /* 376: r7 = r4 */
#line 48 "millrace/ipv4.h"
	r2_0 = (u32)r4_0;                                        /* 377: w2 = w4 */
#line 48
	r2_0 = (u32)r2_0 & 255;                                  /* 378: w2 &= 255 */
#line 68 "millrace/transport.h"
	if ((u32)r2_0 != 1) goto L99;                            /* 379: if w2 != 1 goto 99 */
#line 31 "millrace/packet.h"
	p4_0 = p5_0;                                             /* 380: r4 = r5 */
#line 31
	p4_0 += (s64)r8_0;                                       /* 381: r4 += r8 */
#line 33
	p2_0 = p4_0;                                             /* 382: r2 = r4 */
#line 33
	p2_0 += 8;                                               /* 383: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L599;                              /* 384: if r2 > r6 goto 626 */
#line 33
	r2_0 = r8_0;                                             /* 385: r2 = r8 */
#line 33
	r2_0 += 8;                                               /* 386: r2 += 8 */
#line 33
	if (r2_0 > r0_0) goto L599;                              /* 387: if r2 > r0 goto 626 */
#line 33
	r3_0 = r0_0;                                             /* 388: r3 = r0 */
#line 33
	*(mr_pointer *)s0_184 = (u8 *)pkt;                       /* 389: *(u64 *)(r10 -184) = r1 */
#line 73 "millrace/transport.h"
	*(mr_pointer *)s0_40 = p4_0;                             /* 390: *(u64 *)(r10 -40) = r4 */
#line 73
	*(mr_u32 *)s0_32 = 1;                                    /* 391: *(u32 *)(r10 -32) = 1 */
	r0_0 = *(const volatile u8 *)p4_0;                       /* 392: r0 = *(u8 *)(r4 +0) */
#line 48 "millrace/ipv4.h"
	r1_0 = (u32)r7_0;                                        /* 393: w1 = w7 */
#line 48
	r1_0 = (u32)r1_0 & 255;                                  /* 394: w1 &= 255 */
#line 74 "millrace/transport.h"
	if ((u32)r1_0 != 1) goto L521;                           /* 395: if w1 != 1 goto 546 */
#line 74
	r1_0 = 8;                                                /* 396: w1 = 8 */
#line 74
	*(mr_u32 *)s0_136 = (u32)r1_0;                           /* 397: *(u32 *)(r10 -136) = r1 */
#line 74
	r9_0 = 0;                                                /* 398: w9 = 0 */
#line 74
	if ((u32)r0_0 > 12) goto L528;                           /* 399: if w0 > 12 goto 553 */
#line 74
	r1_0 = 1;                                                /* 400: w1 = 1 */
#line 74
	r1_0 = (u32)r1_0 << ((u32)r0_0 & 31);                    /* 401: w1 <<= w0 */
#line 74
	r1_0 = (u32)r1_0 & 0x1838u;                              /* 402: w1 &= 6200 */
#line 74
	if ((u32)r1_0 != 0) goto L389;                           /* 403: if w1 != 0 goto 405 */
L528:
#line 34
	if ((u32)r9_0 == (u32)r0_0) goto L532;                   /* 554: if w9 == w0 goto 557 */
#line 34
	r2_0 = *(const mr_u32 *)s0_136;                          /* 555: r2 = *(u32 *)(r10 -136) */
#line 34
	if ((u32)r2_0 != (u32)r0_0) goto L99;                    /* 556: if w2 != w0 goto 99 */
L532:
	r2_0 = *(const mr_u16 *)(p4_0 + 4);                      /* 557: r2 = *(u16 *)(r4 +4) */
#line 36
	r1_0 = *(const mr_u32 *)s0_136;                          /* 558: r1 = *(u32 *)(r10 -136) */
#line 36
	if ((u32)r1_0 == (u32)r0_0) goto L536;                   /* 559: if w1 == w0 goto 561 */
#line 36
	r2_0 = (u32)r2_0 << 16;                                  /* 560: w2 <<= 16 */
L536:
#line 36
	r4_0 = 0;                                                /* 561: w4 = 0 */
	goto L332;                                               /* 563: goto 345 */
L389:
#line 92 "millrace/flow4.h"
	r8_0 = (u32)r8_0 + 8;                                    /* 405: w8 += 8 */
#line 31 "millrace/packet.h"
	p1_0 = p5_0;                                             /* 406: r1 = r5 */
#line 31
	p1_0 += (s64)r8_0;                                       /* 407: r1 += r8 */
#line 33
	p2_0 = p1_0;                                             /* 408: r2 = r1 */
#line 33
	p2_0 += 20;                                              /* 409: r2 += 20 */
#line 33
	if (p2_0 > p6_0) goto L599;                              /* 410: if r2 > r6 goto 626 */
#line 49 "millrace/flow4.h"
	r4_0 = *(const volatile u8 *)p1_0;                       /* 411: r4 = *(u8 *)(r1 +0) */
#line 49
	r2_0 = (u32)r4_0;                                        /* 412: w2 = w4 */
#line 49
	r2_0 = (u32)r2_0 & 240;                                  /* 413: w2 &= 240 */
#line 49
	if ((u32)r2_0 != 64) goto L599;                          /* 414: if w2 != 64 goto 626 */
#line 51
	r4_0 = (u32)r4_0 << 2;                                   /* 415: w4 <<= 2 */
#line 51
	r4_0 = (u32)r4_0 & 60;                                   /* 416: w4 &= 60 */
	if ((u32)r4_0 < 20) goto L599;                           /* 417: if w4 < 20 goto 626 */
#line 52
	r4_0 = (u32)r4_0 + (u32)r8_0;                            /* 418: w4 += w8 */
#line 52
	if ((u32)r4_0 > (u32)r3_0) goto L599;                    /* 419: if w4 > w3 goto 626 */
#line 54
	r2_0 = *(const mr_u16 *)(p1_0 + 6);                      /* 420: r2 = *(u16 *)(r1 +6) */
#line 54
	r2_0 = (u32)r2_0 & 0xff1fu;                              /* 421: w2 &= 65311 */
#line 54
	if ((u32)r2_0 != 0) goto L222;                           /* 422: if w2 != 0 goto 231 */
#line 36
	r2_0 = *(const mr_u32 *)(p1_0 + 12);                     /* 423: r2 = *(u32 *)(r1 +12) */
#line 36
	*(mr_u64 *)s0_160 = r2_0;                                /* 424: *(u64 *)(r10 -160) = r2 */
#line 36
	*(mr_u32 *)s0_64 = (u32)r2_0;                            /* 425: *(u32 *)(r10 -64) = r2 */
	r2_0 = *(const mr_u32 *)(p1_0 + 16);                     /* 426: r2 = *(u32 *)(r1 +16) */
#line 37
	*(mr_u64 *)s0_168 = r2_0;                                /* 427: *(u64 *)(r10 -168) = r2 */
#line 37
	*(mr_u32 *)s0_60 = (u32)r2_0;                            /* 428: *(u32 *)(r10 -60) = r2 */
	r2_0 = *(const u8 *)(p1_0 + 9);                          /* 429: r2 = *(u8 *)(r1 +9) */
#line 58
	*(mr_u32 *)s0_8 = (u32)r4_0;                             /* 430: *(u32 *)(r10 -8) = r4 */
#line 31 "millrace/packet.h"
	p5_0 += (s64)r4_0;                                       /* 431: r5 += r4 */
#line 31
	r7_0 = r2_0;                                             /* 432: r7 = r2 */
#line 38 "millrace/flow4.h"
	*(u8 *)s0_52 = (u8)r2_0;                                 /* 433: *(u8 *)(r10 -52) = r2 */
#line 57
	*(mr_pointer *)s0_24 = p1_0;                             /* 434: *(u64 *)(r10 -24) = r1 */
#line 39
	*(mr_u16 *)s0_50 = 0;                                    /* 435: *(u16 *)(r10 -50) = 0 */
#line 39
	*(u8 *)s0_51 = 0;                                        /* 436: *(u8 *)(r10 -51) = 0 */
#line 33 "millrace/packet.h"
	p2_0 = p5_0;                                             /* 437: r2 = r5 */
#line 33
	p2_0 += 8;                                               /* 438: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L599;                              /* 439: if r2 > r6 goto 626 */
#line 33
	r4_0 += 8;                                               /* 440: r4 += 8 */
#line 33
	if (r4_0 > r3_0) goto L599;                              /* 441: if r4 > r3 goto 626 */
#line 59 "millrace/flow4.h"
	r2_0 = *(const u8 *)(p1_0 + 9);                          /* 442: r2 = *(u8 *)(r1 +9) */
#line 94 "millrace/transport.h"
	*(mr_pointer *)s0_16 = p5_0;                             /* 443: *(u64 *)(r10 -16) = r5 */
	if ((u32)r2_0 == 17) goto L430;                          /* 444: if w2 == 17 goto 446 */
#line 95
	if ((u32)r2_0 != 6) goto L587;                           /* 445: if w2 != 6 goto 614 */
L430:
#line 95
	r4_0 = 1;                                                /* 446: w4 = 1 */
	r2_0 = *(const mr_u32 *)p5_0;                            /* 447: r2 = *(u32 *)(r5 +0) */
#line 37
	goto L332;                                               /* 449: goto 345 */
L434:
#line 37
	r0_0 = 3;                                                /* 450: r0 = 0x3 ll */
#line 33 "nfs/firewall/firewall.c" /* if (p->port == WAN) */
	if ((u32)r1_0 == 1) return mr_verdict_handlers(pkt, r0_0); /* 452: if w1 == 1 goto 102 */
#line 35 /* return map_put(&flows, &f, &(struct session){}) ? FORWARD(peer(p)) : DROP_BECAUSE(table_full); */
	*(mr_u64 *)s0_128 = 0;                                   /* 453: *(u64 *)(r10 -128) = 0 */
#line 35
	{                                                        /* 460: call map_put#65538 */
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
	p1_0 = p0_0;                                             /* 461: r1 = r0 */
#line 35
	r0_0 = 4;                                                /* 462: r0 = 0x4 ll */
#line 35
	if (!p1_0) return mr_verdict_handlers(pkt, r0_0);        /* 464: if r1 == 0 goto 102 */
#line 35
	goto L446;
L448:
#line 34 "millrace/verdict.h"
	r0_0 = 1;                                                /* 467: r0 = 0x1 ll */
#line 34
	r2_0 = *(const mr_u64 *)s0_136;                          /* 469: r2 = *(u64 *)(r10 -136) */
#line 83 "millrace/flow.h"
	r2_0 = (u32)r2_0 + 8;                                    /* 470: w2 += 8 */
#line 31 "millrace/packet.h"
	p7_0 = p3_0;                                             /* 471: r7 = r3 */
#line 31
	r5_0 = r2_0;                                             /* 472: r5 = r2 */
#line 31
	p7_0 += (s64)r2_0;                                       /* 473: r7 += r2 */
#line 33
	p2_0 = p7_0;                                             /* 474: r2 = r7 */
#line 33
	p2_0 += 40;                                              /* 475: r2 += 40 */
#line 33
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 476: if r2 > r4 goto 102 */
#line 47 "millrace/flow.h"
	r5_0 += 40;                                              /* 477: r5 += 40 */
#line 47
	r6_0 = r5_0;                                             /* 478: r6 = r5 */
#line 47
	r2_0 = *(const mr_u64 *)s0_144;                          /* 479: r2 = *(u64 *)(r10 -144) */
#line 47
	if (r5_0 > r2_0) return mr_verdict_handlers(pkt, r0_0);  /* 480: if r5 > r2 goto 102 */
	r2_0 = *(const mr_u32 *)p7_0;                            /* 481: r2 = *(u32 *)(r7 +0) */
#line 48
	r2_0 = (u32)r2_0 & 240;                                  /* 482: w2 &= 240 */
#line 47
	if ((u32)r2_0 != 96) return mr_verdict_handlers(pkt, r0_0); /* 483: if w2 != 96 goto 102 */
#line 47
	r8_0 = 8;                                                /* 484: w8 = 8 */
#line 50
	p5_0 = p7_0;                                             /* 485: r5 = r7 */
#line 50
	p5_0 += 6;                                               /* 486: r5 += 6 */
#line 50
	r2_0 = 0x100000000000ull;                                /* 487: r2 = 0x100000000000 ll */
#line 50
	*(mr_u64 *)s0_136 = r2_0;                                /* 489: *(u64 *)(r10 -136) = r2 */
#line 50
	r2_0 = 0x8000000000000ull;                               /* 490: r2 = 0x8000000000000 ll */
#line 50
	*(mr_u64 *)s0_152 = r2_0;                                /* 492: *(u64 *)(r10 -152) = r2 */
#line 50
	*(mr_pointer *)s0_184 = (u8 *)pkt;                       /* 493: *(u64 *)(r10 -184) = r1 */
L472:
#line 50
	r9_0 = (u32)r8_0;                                        /* 494: w9 = w8 */
#line 50
	r8_0 = *(const volatile u8 *)p5_0;                       /* 495: r8 = *(u8 *)(r5 +0) */
#line 85 "millrace/ipv6.h"
	if (r8_0 > 63) goto L539;                                /* 496: if r8 > 63 goto 564 */
#line 85
	r1_0 = 0x1008180000000001ull;                            /* 497: r1 = 0x1008180000000001 ll */
#line 85
	r1_0 = r1_0 >> (r8_0 & 63);                              /* 499: r1 >>= r8 */
#line 85
	r1_0 &= 1;                                               /* 500: r1 &= 1 */
#line 85
	if (r1_0 == 0) goto L539;                                /* 501: if r1 == 0 goto 564 */
#line 31 "millrace/packet.h"
	r1_0 = (u32)r6_0;                                        /* 502: w1 = w6 */
#line 31
	p5_0 = p3_0;                                             /* 503: r5 = r3 */
#line 31
	p5_0 += (s64)r1_0;                                       /* 504: r5 += r1 */
#line 31
	r0_0 = 1;                                                /* 505: r0 = 0x1 ll */
#line 33
	p1_0 = p5_0;                                             /* 507: r1 = r5 */
#line 33
	p1_0 += 8;                                               /* 508: r1 += 8 */
#line 33
	if (p1_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 509: if r1 > r4 goto 102 */
#line 33
	r1_0 = (u32)r6_0;                                        /* 510: w1 = w6 */
#line 33
	r1_0 = (u32)r1_0 + 8;                                    /* 511: w1 += 8 */
#line 33
	r2_0 = *(const mr_u64 *)s0_144;                          /* 512: r2 = *(u64 *)(r10 -144) */
#line 33
	if ((u32)r1_0 > (u32)r2_0) return mr_verdict_handlers(pkt, r0_0); /* 513: if w1 > w2 goto 102 */
#line 68 "millrace/ipv6.h"
	r1_0 = *(const mr_u64 *)s0_136;                          /* 514: r1 = *(u64 *)(r10 -136) */
#line 68
	r1_0 = r1_0 >> (r8_0 & 63);                              /* 515: r1 >>= r8 */
#line 68
	r1_0 = (u32)r1_0 & 1;                                    /* 516: w1 &= 1 */
#line 68
	r1_0 = -(u32)r1_0;                                       /* 517: w1 = -w1 */
#line 96
	r2_0 = *(const mr_u16 *)(p5_0 + 2);                      /* 518: r2 = *(u16 *)(r5 +2) */
#line 96
	r2_0 = __builtin_bswap64((u64)r2_0);                     /* 519: r2 = bswap64 r2 */
#line 96
	r2_0 >>= 51;                                             /* 520: r2 >>= 51 */
#line 96
	r0_0 = (u32)r1_0;                                        /* 521: w0 = w1 */
#line 96
	r0_0 = (u32)r0_0 & (u32)r2_0;                            /* 522: w0 &= w2 */
#line 96
	if ((u32)r0_0 != 0) goto L572;                           /* 523: if w0 != 0 goto 598 */
#line 96
	r0_0 = *(const mr_u64 *)s0_152;                          /* 524: r0 = *(u64 *)(r10 -152) */
#line 96
	r0_0 = r0_0 >> (r8_0 & 63);                              /* 525: r0 >>= r8 */
#line 96
	r0_0 = (u32)r0_0 & 1;                                    /* 526: w0 &= 1 */
#line 96
	r0_0 = -(u32)r0_0;                                       /* 527: w0 = -w0 */
#line 103
	r1_0 = (u32)r1_0 ^ 0xffffffffu;                          /* 528: w1 ^= -1 */
#line 103
	r2_0 = *(const volatile u8 *)(p5_0 + 1);                 /* 529: r2 = *(u8 *)(r5 +1) */
#line 103
	r2_0 = (u32)r2_0 & (u32)r1_0;                            /* 530: w2 &= w1 */
	r2_0 = (u32)r2_0 - (u32)r0_0;                            /* 531: w2 -= w0 */
#line 104
	r2_0 = (u32)r2_0 + 1;                                    /* 532: w2 += 1 */
#line 104
	r0_0 = (u32)r0_0 + 3;                                    /* 533: w0 += 3 */
#line 104
	r2_0 = (u32)r2_0 << ((u32)r0_0 & 31);                    /* 534: w2 <<= w0 */
#line 104
	r2_0 = (u32)r2_0 + (u32)r6_0;                            /* 535: w2 += w6 */
#line 104
	r0_0 = 1;                                                /* 536: r0 = 0x1 ll */
#line 104
	r6_0 = *(const mr_u64 *)s0_144;                          /* 539: r6 = *(u64 *)(r10 -144) */
#line 104
	if ((u32)r2_0 > (u32)r6_0) return mr_verdict_handlers(pkt, r0_0); /* 540: if w2 > w6 goto 102 */
#line 104
	r8_0 = (u32)r9_0;                                        /* 541: w8 = w9 */
#line 104
	r8_0 = (u32)r8_0 + 0xffffffffu;                          /* 542: w8 += -1 */
#line 104
	r6_0 = (u32)r2_0;                                        /* 543: w6 = w2 */
#line 104
	if ((u32)r9_0 == 0) return mr_verdict_handlers(pkt, r0_0); /* 544: if w9 == 0 goto 102 */
#line 104
	goto L472;                                               /* 545: goto 494 */
L521:
#line 104
	r1_0 = 128;                                              /* 546: w1 = 128 */
#line 104
	*(mr_u32 *)s0_136 = (u32)r1_0;                           /* 547: *(u32 *)(r10 -136) = r1 */
#line 104
	r9_0 = 129;                                              /* 548: w9 = 129 */
#line 74 "millrace/transport.h"
	r1_0 = (u32)r0_0;                                        /* 549: w1 = w0 */
#line 74
	r1_0 = (u32)r1_0 + 0xffffffffu;                          /* 550: w1 += -1 */
#line 74
	r1_0 = (u32)r1_0 & 255;                                  /* 551: w1 &= 255 */
#line 74
	if ((u32)r1_0 < 4) goto L389;                            /* 552: if w1 < 4 goto 405 */
#line 74
	goto L528;
L539:
#line 37
	r0_0 = 1;                                                /* 564: r0 = 0x1 ll */
#line 32 "millrace/flow.h"
	r1_0 = *(const mr_u32 *)(p7_0 + 8);                      /* 567: r1 = *(u32 *)(r7 +8) */
#line 32
	r2_0 = *(const mr_u32 *)(p7_0 + 12);                     /* 568: r2 = *(u32 *)(r7 +12) */
#line 32
	r5_0 = *(const mr_u64 *)(p7_0 + 16);                     /* 569: r5 = *(u64 *)(r7 +16) */
	{                                                        /* stores in the order of addresses */
#line 32
		r2_0 <<= 32;                                     /* 571: r2 <<= 32 */
#line 32
		r2_0 |= r1_0;                                    /* 572: r2 |= r1 */
#line 32
		const u64 v547 = r2_0;                           /* 573: *(u64 *)(r10 -120) = r2 */
		r1_0 = *(const mr_u32 *)(p7_0 + 24);             /* 574: r1 = *(u32 *)(r7 +24) */
#line 33
		r2_0 = *(const mr_u32 *)(p7_0 + 28);             /* 575: r2 = *(u32 *)(r7 +28) */
#line 33
		r2_0 <<= 32;                                     /* 576: r2 <<= 32 */
#line 33
		r2_0 |= r1_0;                                    /* 577: r2 |= r1 */
#line 33
		r1_0 = *(const mr_u64 *)(p7_0 + 32);             /* 578: r1 = *(u64 *)(r7 +32) */
#line 33
		const u64 v554 = r1_0;                           /* 580: *(u64 *)(r10 -96) = r1 */
#line 33
		const u64 v555 = r2_0;                           /* 581: *(u64 *)(r10 -104) = r2 */
#line 31 "millrace/packet.h"
		r1_0 = (u32)r6_0;                                /* 582: w1 = w6 */
#line 31
		p3_0 += (s64)r1_0;                               /* 583: r3 += r1 */
#line 33
		p2_0 = p3_0;                                     /* 584: r2 = r3 */
#line 33
		p2_0 += 8;                                       /* 585: r2 += 8 */
#line 32 "millrace/flow.h"
		*(mr_u64 *)s0_120 = v547;                        /* 573: *(u64 *)(r10 -120) = r2 */
#line 32
		*(mr_u64 *)(s0_120 + 8) = r5_0;                  /* 570: *(u64 *)(r10 -112) = r5 */
		*(mr_u64 *)(s0_120 + 16) = v555;                 /* 581: *(u64 *)(r10 -104) = r2 */
#line 33
		*(mr_u64 *)(s0_120 + 24) = v554;                 /* 580: *(u64 *)(r10 -96) = r1 */
		*(u8 *)(s0_120 + 36) = (u8)r8_0;                 /* 579: *(u8 *)(r10 -84) = r8 */
		*(u8 *)(s0_120 + 37) = 6;                        /* 587: *(u8 *)(r10 -83) = 6 */
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 586: *(u16 *)(r10 -82) = 0 */
	}
#line 33 "millrace/packet.h"
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 588: if r2 > r4 goto 102 */
#line 33
	r1_0 += 8;                                               /* 589: r1 += 8 */
#line 33
	r2_0 = *(const mr_u64 *)s0_144;                          /* 590: r2 = *(u64 *)(r10 -144) */
#line 33
	if (r1_0 > r2_0) return mr_verdict_handlers(pkt, r0_0);  /* 591: if r1 > r2 goto 102 */
#line 95 "millrace/transport.h"
	if ((u32)r8_0 == 17) goto L568;                          /* 592: if w8 == 17 goto 594 */
#line 95
	if ((u32)r8_0 != 6) goto L575;                           /* 593: if w8 != 6 goto 602 */
L568:
#line 96
	r1_0 = *(const mr_u32 *)p3_0;                            /* 594: r1 = *(u32 *)(r3 +0) */
L569:
#line 96
	*(mr_u32 *)(s0_120 + 32) = (u32)r1_0;                    /* 595: *(u32 *)(r10 -88) = r1 */
#line 96
	goto L349;                                               /* 597: goto 363 */
L572:
#line 51 "millrace/flow.h"
	goto L222;                                               /* 601: goto 231 */
L575:
#line 99 "millrace/transport.h"
	if ((u32)r8_0 == 58) goto L601;                          /* 602: if w8 == 58 goto 629 */
#line 99
	if ((u32)r8_0 != 1) goto L99;                            /* 604: if w8 != 1 goto 99 */
#line 99
	r2_0 = 8;                                                /* 605: w2 = 8 */
#line 99
	r5_0 = 0;                                                /* 606: w5 = 0 */
#line 102
	r4_0 = *(const volatile u8 *)p3_0;                       /* 607: r4 = *(u8 *)(r3 +0) */
#line 102
	if ((u32)r4_0 > 12) goto L609;                           /* 608: if w4 > 12 goto 637 */
#line 102
	r7_0 = 1;                                                /* 609: w7 = 1 */
#line 102
	r7_0 = (u32)r7_0 << ((u32)r4_0 & 31);                    /* 610: w7 <<= w4 */
#line 102
	r7_0 = (u32)r7_0 & 0x1838u;                              /* 611: w7 &= 6200 */
#line 102
	if ((u32)r7_0 != 0) return mr_verdict_handlers(pkt, r0_0); /* 612: if w7 != 0 goto 102 */
L609:
#line 34
	if ((u32)r2_0 == (u32)r4_0) goto L611;                   /* 637: if w2 == w4 goto 639 */
#line 34
	if ((u32)r5_0 != (u32)r4_0) goto L99;                    /* 638: if w5 != w4 goto 99 */
L611:
	r1_0 = *(const mr_u16 *)(p3_0 + 4);                      /* 639: r1 = *(u16 *)(r3 +4) */
#line 36
	if ((u32)r2_0 == (u32)r4_0) goto L569;                   /* 640: if w2 == w4 goto 595 */
#line 36
	r1_0 = (u32)r1_0 << 16;                                  /* 641: w1 <<= 16 */
#line 36
	goto L569;                                               /* 642: goto 595 */
L587:
#line 99
	if ((u32)r2_0 == 58) goto L615;                          /* 614: if w2 == 58 goto 643 */
#line 99
	if ((u32)r2_0 != 1) goto L99;                            /* 616: if w2 != 1 goto 99 */
#line 99
	r4_0 = 8;                                                /* 617: w4 = 8 */
#line 99
	r2_0 = 0;                                                /* 618: w2 = 0 */
#line 102
	r3_0 = *(const volatile u8 *)p5_0;                       /* 619: r3 = *(u8 *)(r5 +0) */
#line 102
	if ((u32)r3_0 > 12) goto L623;                           /* 620: if w3 > 12 goto 651 */
#line 102
	r0_0 = 1;                                                /* 621: w0 = 1 */
#line 102
	r0_0 = (u32)r0_0 << ((u32)r3_0 & 31);                    /* 622: w0 <<= w3 */
#line 102
	r0_0 = (u32)r0_0 & 0x1838u;                              /* 623: w0 &= 6200 */
#line 102
	if ((u32)r0_0 != 0) goto L599;                           /* 624: if w0 != 0 goto 626 */
L623:
#line 34
	if ((u32)r4_0 == (u32)r3_0) goto L625;                   /* 651: if w4 == w3 goto 653 */
#line 34
	if ((u32)r2_0 != (u32)r3_0) goto L99;                    /* 652: if w2 != w3 goto 99 */
L625:
	r2_0 = *(const mr_u16 *)(p5_0 + 4);                      /* 653: r2 = *(u16 *)(r5 +4) */
#line 36
	if ((u32)r4_0 == (u32)r3_0) goto L628;                   /* 654: if w4 == w3 goto 656 */
#line 36
	r2_0 = (u32)r2_0 << 16;                                  /* 655: w2 <<= 16 */
L628:
#line 36
	r4_0 = 1;                                                /* 656: w4 = 1 */
	goto L332;                                               /* 658: goto 345 */
L599:
#line 102
	r0_0 = 1;                                                /* 626: r0 = 0x1 ll */
#line 19 "nfs/firewall/firewall.c" /* return DROP_BECAUSE(fragment); */
	return mr_verdict_handlers(pkt, r0_0);                   /* 628: goto 102 */
L601:
#line 19
	r2_0 = 128;                                              /* 629: w2 = 128 */
#line 19
	r5_0 = 129;                                              /* 630: w5 = 129 */
#line 102 "millrace/transport.h"
	r4_0 = *(const volatile u8 *)p3_0;                       /* 631: r4 = *(u8 *)(r3 +0) */
#line 102
	r7_0 = (u32)r4_0;                                        /* 632: w7 = w4 */
#line 102
	r7_0 = (u32)r7_0 + 0xffffffffu;                          /* 633: w7 += -1 */
#line 102
	r7_0 = (u32)r7_0 & 255;                                  /* 634: w7 &= 255 */
#line 102
	if ((u32)r7_0 < 4) return mr_verdict_handlers(pkt, r0_0); /* 636: if w7 < 4 goto 102 */
#line 102
	goto L609;
L615:
#line 36
	r4_0 = 128;                                              /* 643: w4 = 128 */
#line 36
	r2_0 = 129;                                              /* 644: w2 = 129 */
#line 102
	r3_0 = *(const volatile u8 *)p5_0;                       /* 645: r3 = *(u8 *)(r5 +0) */
#line 102
	r0_0 = (u32)r3_0;                                        /* 646: w0 = w3 */
#line 102
	r0_0 = (u32)r0_0 + 0xffffffffu;                          /* 647: w0 += -1 */
#line 102
	r0_0 = (u32)r0_0 & 255;                                  /* 648: w0 &= 255 */
#line 102
	if ((u32)r0_0 < 4) goto L599;                            /* 650: if w0 < 4 goto 626 */
#line 102
	goto L623;
#line 1295 "firewall.c"
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
	if (p2_0 > p4_0) goto L99;                               /* 6: if r2 > r4 goto 99 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const volatile mr_u16 *)(p3_0 + 12);            /* 7: r5 = *(u16 *)(r3 +12) */
#line 46
	if ((u32)r5_0 == 0xa888u) goto L11;                      /* 8: if w5 == 43144 goto 11 */
#line 46
	r9_0 = 14;                                               /* 9: w9 = 14 */
#line 46
	if ((u32)r5_0 != 129) goto L23;                          /* 10: if w5 != 129 goto 23 */
L11:
#line 33 "millrace/packet.h"
	p2_0 = p3_0;                                             /* 11: r2 = r3 */
#line 33
	p2_0 += 18;                                              /* 12: r2 += 18 */
#line 33
	if (p2_0 > p4_0) goto L99;                               /* 13: if r2 > r4 goto 99 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const volatile mr_u16 *)(p3_0 + 16);            /* 14: r5 = *(u16 *)(r3 +16) */
#line 46
	if ((u32)r5_0 == 0xa888u) goto L18;                      /* 15: if w5 == 43144 goto 18 */
#line 46
	r9_0 = 18;                                               /* 16: w9 = 18 */
#line 46
	if ((u32)r5_0 != 129) goto L23;                          /* 17: if w5 != 129 goto 23 */
L18:
#line 33 "millrace/packet.h"
	p2_0 = p3_0;                                             /* 18: r2 = r3 */
#line 33
	p2_0 += 22;                                              /* 19: r2 += 22 */
#line 33
	if (p2_0 > p4_0) goto L99;                               /* 20: if r2 > r4 goto 99 */
#line 33
	r9_0 = 22;                                               /* 21: w9 = 22 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const volatile mr_u16 *)(p3_0 + 20);            /* 22: r5 = *(u16 *)(r3 +20) */
L23:
#line 96 "millrace/flow.h"
	if ((u32)r5_0 == 0xdd86u) goto L103;                     /* 23: if w5 == 56710 goto 103 */
#line 96
	if ((u32)r5_0 != 8) goto L99;                            /* 24: if w5 != 8 goto 99 */
#line 31 "millrace/packet.h"
	p5_0 = pkt->data;                                        /* 29: r5 = *(u32 *)(r1 +0) */
#line 31
	p7_0 = p5_0;                                             /* 30: r7 = r5 */
#line 31
	p7_0 += (s64)r9_0;                                       /* 31: r7 += r9 */
#line 33
	p2_0 = p7_0;                                             /* 32: r2 = r7 */
#line 33
	p2_0 += 20;                                              /* 33: r2 += 20 */
#line 33
	p6_0 = pkt->end;                                         /* 34: r6 = *(u32 *)(r1 +4) */
#line 33
	if (p2_0 > p6_0) goto L599;                              /* 35: if r2 > r6 goto 626 */
#line 66 "millrace/ipv4.h"
	r8_0 = *(const volatile u8 *)p7_0;                       /* 36: r8 = *(u8 *)(r7 +0) */
#line 66
	r2_0 = (u32)r8_0;                                        /* 37: w2 = w8 */
#line 66
	r2_0 = (u32)r2_0 & 240;                                  /* 38: w2 &= 240 */
#line 66
	if ((u32)r2_0 != 64) goto L599;                          /* 39: if w2 != 64 goto 626 */
#line 68
	r8_0 = (u32)r8_0 << 2;                                   /* 40: w8 <<= 2 */
#line 68
	r8_0 = (u32)r8_0 & 60;                                   /* 41: w8 &= 60 */
#line 70
	if ((u32)r8_0 < 20) goto L599;                           /* 42: if w8 < 20 goto 626 */
#line 70
	r2_0 = *(const volatile mr_u16 *)(p7_0 + 2);             /* 43: r2 = *(u16 *)(r7 +2) */
#line 70
	r2_0 = __builtin_bswap16((u16)r2_0);                     /* 44: r2 = bswap16 r2 */
#line 70
	if ((u32)r8_0 > (u32)r2_0) goto L599;                    /* 45: if w8 > w2 goto 626 */
#line 70
	r3_0 = (u32)r9_0;                                        /* 46: w3 = w9 */
#line 70
	r3_0 = (u32)r3_0 + (u32)r2_0;                            /* 47: w3 += w2 */
#line 46 "millrace/packet.h"
	p2_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p6_0);     /* 48: w2 = w6 */
#line 46
	r2_0 = (u32)(u64)(uintptr_t)p2_0 - (u32)(u64)(uintptr_t)p5_0; /* 49: w2 -= w5 */
#line 70 "millrace/ipv4.h"
	if ((u32)r3_0 > (u32)r2_0) goto L599;                    /* 50: if w3 > w2 goto 626 */
#line 70
	*(mr_u64 *)s0_136 = r9_0;                                /* 51: *(u64 *)(r10 -136) = r9 */
#line 44
	r2_0 = *(const mr_u32 *)(p7_0 + 8);                      /* 52: r2 = *(u32 *)(r7 +8) */
#line 44
	r3_0 = *(const volatile mr_u32 *)p7_0;                   /* 53: r3 = *(u32 *)(r7 +0) */
#line 44
	r4_0 = *(const mr_u32 *)(p7_0 + 4);                      /* 54: r4 = *(u32 *)(r7 +4) */
#line 44
	*(mr_u64 *)s0_152 = r4_0;                                /* 55: *(u64 *)(r10 -152) = r4 */
#line 44
	*(mr_u64 *)s0_176 = r3_0;                                /* 56: *(u64 *)(r10 -176) = r3 */
#line 44
	r4_0 += r3_0;                                            /* 57: r4 += r3 */
#line 44
	*(mr_u64 *)s0_144 = r2_0;                                /* 58: *(u64 *)(r10 -144) = r2 */
#line 44
	r4_0 += r2_0;                                            /* 59: r4 += r2 */
#line 44
	r2_0 = *(const mr_u32 *)(p7_0 + 12);                     /* 60: r2 = *(u32 *)(r7 +12) */
#line 44
	*(mr_u64 *)s0_160 = r2_0;                                /* 61: *(u64 *)(r10 -160) = r2 */
#line 44
	r4_0 += r2_0;                                            /* 62: r4 += r2 */
	r2_0 = *(const mr_u32 *)(p7_0 + 16);                     /* 63: r2 = *(u32 *)(r7 +16) */
#line 45
	*(mr_u64 *)s0_168 = r2_0;                                /* 64: *(u64 *)(r10 -168) = r2 */
#line 44
	r4_0 += r2_0;                                            /* 65: r4 += r2 */
#line 48
	if ((u32)r8_0 < 21) goto L87;                            /* 68: if w8 < 21 goto 87 */
#line 48
	p0_0 = p5_0;                                             /* 69: r0 = r5 */
#line 48
	r2_0 = *(const mr_u64 *)s0_136;                          /* 70: r2 = *(u64 *)(r10 -136) */
#line 48
	p0_0 += (s64)r2_0;                                       /* 71: r0 += r2 */
#line 48
	r9_0 = 0;                                                /* 72: r9 = 0 */
L73:
#line 33 "millrace/packet.h"
	p3_0 = p0_0;                                             /* 73: r3 = r0 */
#line 33
	p3_0 += (s64)r9_0;                                       /* 74: r3 += r9 */
#line 33
	p2_0 = p3_0;                                             /* 75: r2 = r3 */
#line 33
	p2_0 += 24;                                              /* 76: r2 += 24 */
#line 33
	if (p2_0 > p6_0) goto L87;                               /* 77: if r2 > r6 goto 87 */
#line 33
	r2_0 = r9_0;                                             /* 78: r2 = r9 */
#line 33
	r2_0 += 20;                                              /* 79: r2 += 20 */
#line 54 "millrace/ipv4.h"
	r3_0 = *(const mr_u32 *)(p3_0 + 20);                     /* 80: r3 = *(u32 *)(r3 +20) */
#line 54
	r4_0 += r3_0;                                            /* 81: r4 += r3 */
#line 48
	if (r2_0 > 55) goto L87;                                 /* 82: if r2 > 55 goto 87 */
#line 48
	r2_0 = r9_0;                                             /* 83: r2 = r9 */
#line 48
	r2_0 += 24;                                              /* 84: r2 += 24 */
#line 48
	r9_0 += 4;                                               /* 85: r9 += 4 */
#line 48
	if (r2_0 < r8_0) goto L73;                               /* 86: if r2 < r8 goto 73 */
L87:
#line 27 "millrace/checksum.h"
	r4_0 %= 0xffffu;                                         /* 87: r4 %= 65535 */
#line 27
	r0_0 = *(const mr_u64 *)s0_136;                          /* 88: r0 = *(u64 *)(r10 -136) */
#line 27
	if (r4_0 != 0) goto L599;                                /* 89: if r4 != 0 goto 626 */
#line 27
	r4_0 = *(const mr_u64 *)s0_144;                          /* 90: r4 = *(u64 *)(r10 -144) */
#line 27
	r4_0 = (u32)r4_0 >> 8;                                   /* 91: w4 >>= 8 */
#line 48 "millrace/ipv4.h"
	r2_0 = (u32)r4_0;                                        /* 92: w2 = w4 */
#line 48
	r2_0 = (u32)r2_0 & 255;                                  /* 93: w2 &= 255 */
#line 83 "millrace/flow4.h"
	if ((u32)r2_0 > 17) goto L99;                            /* 94: if w2 > 17 goto 99 */
#line 83
	r3_0 = 1;                                                /* 95: w3 = 1 */
#line 83
	r3_0 = (u32)r3_0 << ((u32)r2_0 & 31);                    /* 96: w3 <<= w2 */
#line 83
	r3_0 = (u32)r3_0 & 0x20042u;                             /* 97: w3 &= 131138 */
#line 83
	if ((u32)r3_0 != 0) goto L224;                           /* 98: if w3 != 0 goto 234 */
L99:
#line 34 "millrace/verdict.h"
	return;                                                  /* 99: r0 = *(u32 *)(r1 +12) */
L103:
#line 31 "millrace/packet.h"
	p6_0 = p3_0;                                             /* 105: r6 = r3 */
#line 31
	r5_0 = r9_0;                                             /* 106: r5 = r9 */
#line 31
	p6_0 += (s64)r9_0;                                       /* 107: r6 += r9 */
#line 33
	p2_0 = p6_0;                                             /* 108: r2 = r6 */
#line 33
	p2_0 += 40;                                              /* 109: r2 += 40 */
#line 33
	if (p2_0 > p4_0) goto L102;                              /* 110: if r2 > r4 goto 102 */
#line 40 "millrace/ipv6.h"
	r2_0 = *(const volatile mr_u32 *)p6_0;                   /* 111: r2 = *(u32 *)(r6 +0) */
#line 40
	r2_0 = (u32)r2_0 & 240;                                  /* 112: w2 &= 240 */
#line 40
	if ((u32)r2_0 != 96) goto L102;                          /* 113: if w2 != 96 goto 102 */
#line 46 "millrace/packet.h"
	p2_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p4_0);     /* 114: w2 = w4 */
#line 46
	r2_0 = (u32)(u64)(uintptr_t)p2_0 - (u32)(u64)(uintptr_t)p3_0; /* 115: w2 -= w3 */
#line 46
	r7_0 = r5_0;                                             /* 116: r7 = r5 */
#line 42 "millrace/ipv6.h"
	r7_0 += 40;                                              /* 117: r7 += 40 */
#line 42
	r5_0 = *(const volatile mr_u16 *)(p6_0 + 4);             /* 118: r5 = *(u16 *)(r6 +4) */
#line 42
	r5_0 = __builtin_bswap16((u16)r5_0);                     /* 119: r5 = bswap16 r5 */
#line 42
	*(mr_u64 *)s0_136 = r7_0;                                /* 120: *(u64 *)(r10 -136) = r7 */
#line 42
	r7_0 += r5_0;                                            /* 121: r7 += r5 */
#line 42
	*(mr_u64 *)s0_144 = r7_0;                                /* 122: *(u64 *)(r10 -144) = r7 */
#line 42
	if (r7_0 > r2_0) goto L102;                              /* 123: if r7 > r2 goto 102 */
#line 42
	r5_0 = 8;                                                /* 124: w5 = 8 */
#line 72 "millrace/flow.h"
	p9_0 = p6_0;                                             /* 125: r9 = r6 */
#line 72
	p9_0 += 6;                                               /* 126: r9 += 6 */
#line 72
	r2_0 = 0x100000000000ull;                                /* 127: r2 = 0x100000000000 ll */
#line 72
	*(mr_u64 *)s0_152 = r2_0;                                /* 129: *(u64 *)(r10 -152) = r2 */
#line 72
	r2_0 = 0x8000000000000ull;                               /* 130: r2 = 0x8000000000000 ll */
#line 72
	*(mr_u64 *)s0_160 = r2_0;                                /* 132: *(u64 *)(r10 -160) = r2 */
L130:
#line 72
	r7_0 = (u32)r5_0;                                        /* 133: w7 = w5 */
#line 72
	r5_0 = *(const volatile u8 *)p9_0;                       /* 134: r5 = *(u8 *)(r9 +0) */
#line 85 "millrace/ipv6.h"
	if (r5_0 > 63) goto L180;                                /* 135: if r5 > 63 goto 186 */
#line 85
	r2_0 = 0x1008180000000001ull;                            /* 136: r2 = 0x1008180000000001 ll */
#line 85
	r2_0 = r2_0 >> (r5_0 & 63);                              /* 138: r2 >>= r5 */
#line 85
	r2_0 &= 1;                                               /* 139: r2 &= 1 */
#line 85
	if (r2_0 == 0) goto L180;                                /* 140: if r2 == 0 goto 186 */
#line 31 "millrace/packet.h"
	r2_0 = *(const mr_u64 *)s0_136;                          /* 141: r2 = *(u64 *)(r10 -136) */
#line 31
	r2_0 = (u32)r2_0;                                        /* 142: w2 = w2 */
#line 31
	p9_0 = p3_0;                                             /* 143: r9 = r3 */
#line 31
	p9_0 += (s64)r2_0;                                       /* 144: r9 += r2 */
#line 33
	p2_0 = p9_0;                                             /* 147: r2 = r9 */
#line 33
	p2_0 += 8;                                               /* 148: r2 += 8 */
#line 33
	if (p2_0 > p4_0) goto L102;                              /* 149: if r2 > r4 goto 102 */
#line 33
	r2_0 = *(const mr_u64 *)s0_136;                          /* 150: r2 = *(u64 *)(r10 -136) */
#line 33
	r2_0 = (u32)r2_0 + 8;                                    /* 151: w2 += 8 */
#line 33
	r8_0 = *(const mr_u64 *)s0_144;                          /* 152: r8 = *(u64 *)(r10 -144) */
#line 33
	if ((u32)r2_0 > (u32)r8_0) goto L102;                    /* 153: if w2 > w8 goto 102 */
#line 68 "millrace/ipv6.h"
	r0_0 = *(const mr_u64 *)s0_152;                          /* 154: r0 = *(u64 *)(r10 -152) */
#line 68
	r0_0 = r0_0 >> (r5_0 & 63);                              /* 155: r0 >>= r5 */
#line 68
	r0_0 = (u32)r0_0 & 1;                                    /* 156: w0 &= 1 */
#line 68
	r0_0 = -(u32)r0_0;                                       /* 157: w0 = -w0 */
#line 96
	r2_0 = *(const volatile mr_u16 *)(p9_0 + 2);             /* 158: r2 = *(u16 *)(r9 +2) */
#line 96
	r2_0 = __builtin_bswap64((u64)r2_0);                     /* 159: r2 = bswap64 r2 */
#line 96
	r2_0 >>= 51;                                             /* 160: r2 >>= 51 */
#line 96
	r8_0 = (u32)r0_0;                                        /* 161: w8 = w0 */
#line 96
	r8_0 = (u32)r8_0 & (u32)r2_0;                            /* 162: w8 &= w2 */
#line 96
	if ((u32)r8_0 != 0) goto L219;                           /* 163: if w8 != 0 goto 227 */
#line 96
	r8_0 = *(const mr_u64 *)s0_160;                          /* 164: r8 = *(u64 *)(r10 -160) */
#line 96
	r8_0 = r8_0 >> (r5_0 & 63);                              /* 165: r8 >>= r5 */
#line 96
	r8_0 = (u32)r8_0 & 1;                                    /* 166: w8 &= 1 */
#line 96
	r8_0 = -(u32)r8_0;                                       /* 167: w8 = -w8 */
#line 103
	r0_0 = (u32)r0_0 ^ 0xffffffffu;                          /* 168: w0 ^= -1 */
#line 103
	r2_0 = *(const volatile u8 *)(p9_0 + 1);                 /* 169: r2 = *(u8 *)(r9 +1) */
#line 103
	r2_0 = (u32)r2_0 & (u32)r0_0;                            /* 170: w2 &= w0 */
	r2_0 = (u32)r2_0 - (u32)r8_0;                            /* 171: w2 -= w8 */
#line 104
	r2_0 = (u32)r2_0 + 1;                                    /* 172: w2 += 1 */
#line 104
	r8_0 = (u32)r8_0 + 3;                                    /* 173: w8 += 3 */
#line 104
	r2_0 = (u32)r2_0 << ((u32)r8_0 & 31);                    /* 174: w2 <<= w8 */
#line 104
	r5_0 = *(const mr_u64 *)s0_136;                          /* 175: r5 = *(u64 *)(r10 -136) */
#line 104
	r2_0 = (u32)r2_0 + (u32)r5_0;                            /* 176: w2 += w5 */
#line 104
	r5_0 = *(const mr_u64 *)s0_144;                          /* 179: r5 = *(u64 *)(r10 -144) */
#line 104
	if ((u32)r2_0 > (u32)r5_0) goto L102;                    /* 180: if w2 > w5 goto 102 */
#line 104
	r5_0 = (u32)r7_0;                                        /* 181: w5 = w7 */
#line 104
	r5_0 = (u32)r5_0 + 0xffffffffu;                          /* 182: w5 += -1 */
#line 104
	*(mr_u64 *)s0_136 = r2_0;                                /* 183: *(u64 *)(r10 -136) = r2 */
#line 104
	if ((u32)r7_0 == 0) goto L102;                           /* 184: if w7 == 0 goto 102 */
#line 104
	goto L130;                                               /* 185: goto 133 */
L102:
#line 36 "nfs/firewall/firewall.c" /* } */
	return;                                                  /* 102: exit */
L180:
#line 73 "millrace/flow.h"
	r8_0 = *(const mr_u64 *)s0_136;                          /* 190: r8 = *(u64 *)(r10 -136) */
#line 77
	if ((u32)r5_0 == 1) goto L99;                            /* 191: if w5 == 1 goto 99 */
#line 32
	r2_0 = *(const mr_u32 *)(p6_0 + 8);                      /* 192: r2 = *(u32 *)(r6 +8) */
#line 32
	r0_0 = *(const mr_u32 *)(p6_0 + 12);                     /* 193: r0 = *(u32 *)(r6 +12) */
#line 32
	r7_0 = *(const mr_u64 *)(p6_0 + 16);                     /* 194: r7 = *(u64 *)(r6 +16) */
	{                                                        /* stores in the order of addresses */
#line 32
		r0_0 <<= 32;                                     /* 196: r0 <<= 32 */
#line 32
		r0_0 |= r2_0;                                    /* 197: r0 |= r2 */
#line 32
		const u64 v191 = r0_0;                           /* 198: *(u64 *)(r10 -120) = r0 */
		r2_0 = *(const mr_u32 *)(p6_0 + 24);             /* 199: r2 = *(u32 *)(r6 +24) */
#line 33
		r0_0 = *(const mr_u32 *)(p6_0 + 28);             /* 200: r0 = *(u32 *)(r6 +28) */
#line 33
		r6_0 = *(const mr_u64 *)(p6_0 + 32);             /* 201: r6 = *(u64 *)(r6 +32) */
#line 33
		r0_0 <<= 32;                                     /* 204: r0 <<= 32 */
#line 33
		r0_0 |= r2_0;                                    /* 205: r0 |= r2 */
#line 32
		*(mr_u64 *)s0_120 = v191;                        /* 198: *(u64 *)(r10 -120) = r0 */
#line 32
		*(mr_u64 *)(s0_120 + 8) = r7_0;                  /* 195: *(u64 *)(r10 -112) = r7 */
		*(mr_u64 *)(s0_120 + 16) = r0_0;                 /* 206: *(u64 *)(r10 -104) = r0 */
#line 33
		*(mr_u64 *)(s0_120 + 24) = r6_0;                 /* 203: *(u64 *)(r10 -96) = r6 */
		*(u8 *)(s0_120 + 36) = (u8)r5_0;                 /* 202: *(u8 *)(r10 -84) = r5 */
		*(u8 *)(s0_120 + 37) = 6;                        /* 208: *(u8 *)(r10 -83) = 6 */
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 207: *(u16 *)(r10 -82) = 0 */
	}
#line 49 "millrace/transport.h"
	if ((u32)r5_0 == 17) goto L262;                          /* 209: if w5 == 17 goto 272 */
#line 49
	if ((u32)r5_0 != 6) goto L300;                           /* 210: if w5 != 6 goto 312 */
#line 31 "millrace/packet.h"
	r2_0 = (u32)r8_0;                                        /* 211: w2 = w8 */
#line 31
	p3_0 += (s64)r2_0;                                       /* 212: r3 += r2 */
#line 33
	p2_0 = p3_0;                                             /* 215: r2 = r3 */
#line 33
	p2_0 += 20;                                              /* 216: r2 += 20 */
#line 33
	if (p2_0 > p4_0) goto L102;                              /* 217: if r2 > r4 goto 102 */
#line 52 "millrace/transport.h"
	r2_0 = *(const volatile u8 *)(p3_0 + 12);                /* 218: r2 = *(u8 *)(r3 +12) */
#line 52
	if ((u32)r2_0 < 80) goto L102;                           /* 219: if w2 < 80 goto 102 */
#line 52
	r2_0 = (u32)r2_0 >> 2;                                   /* 220: w2 >>= 2 */
#line 52
	r2_0 = (u32)r2_0 & 60;                                   /* 221: w2 &= 60 */
#line 52
	r4_0 = *(const mr_u64 *)s0_136;                          /* 222: r4 = *(u64 *)(r10 -136) */
#line 52
	r4_0 = (u32)r4_0 + (u32)r2_0;                            /* 223: w4 += w2 */
#line 52
	r2_0 = *(const mr_u64 *)s0_144;                          /* 224: r2 = *(u64 *)(r10 -144) */
#line 52
	if ((u32)r4_0 > (u32)r2_0) goto L102;                    /* 225: if w4 > w2 goto 102 */
L271:
#line 33 "millrace/packet.h"
	r2_0 = *(const mr_u32 *)p3_0;                            /* 282: r2 = *(u32 *)(r3 +0) */
L272:
#line 33
	*(mr_u32 *)(s0_120 + 32) = (u32)r2_0;                    /* 283: *(u32 *)(r10 -88) = r2 */
L273:
#line 29 "nfs/firewall/firewall.c" /* if (p->port == WAN) */
	r1_0 = pkt->port;                                        /* 285: r1 = *(u32 *)(r1 +12) */
#line 29
	if ((u32)r1_0 != 1) goto L289;                           /* 286: if w1 != 1 goto 300 */
#line 133 "millrace/flow.h"
	r1_0 = *(const mr_u64 *)s0_120;                          /* 287: r1 = *(u64 *)(r10 -120) */
#line 135
	r3_0 = *(const mr_u64 *)(s0_120 + 16);                   /* 288: r3 = *(u64 *)(r10 -104) */
#line 135
	*(mr_u64 *)s0_120 = r3_0;                                /* 289: *(u64 *)(r10 -120) = r3 */
#line 133
	r3_0 = *(const mr_u64 *)(s0_120 + 8);                    /* 290: r3 = *(u64 *)(r10 -112) */
#line 135
	r4_0 = *(const mr_u64 *)(s0_120 + 24);                   /* 291: r4 = *(u64 *)(r10 -96) */
#line 135
	*(mr_u64 *)(s0_120 + 8) = r4_0;                          /* 292: *(u64 *)(r10 -112) = r4 */
	*(mr_u64 *)(s0_120 + 16) = r1_0;                         /* 293: *(u64 *)(r10 -104) = r1 */
#line 136
	*(mr_u64 *)(s0_120 + 24) = r3_0;                         /* 294: *(u64 *)(r10 -96) = r3 */
	r1_0 = (u32)r2_0;                                        /* 295: w1 = w2 */
#line 137
	r1_0 = (u32)r1_0 >> 16;                                  /* 296: w1 >>= 16 */
#line 137
	r2_0 = (u32)r2_0 << 16;                                  /* 297: w2 <<= 16 */
#line 137
	r2_0 = (u32)r2_0 | (u32)r1_0;                            /* 298: w2 |= w1 */
#line 137
	*(mr_u32 *)(s0_120 + 32) = (u32)r2_0;                    /* 299: *(u32 *)(r10 -88) = r2 */
L289:
#line 31 "nfs/firewall/firewall.c" /* if (map_refresh(&flows, &f)) */
	{                                                        /* 304: call map_refresh#65537 */
#line 31
		u64 key[] = { mr_load64(s0_120), mr_load64(s0_120 + 8), mr_load64(s0_120 + 16), mr_load64(s0_120 + 24), mr_load64(s0_120 + 32) };
#line 31
		slot->token = hash_token(&self->o0_flows, &shape0_flows, key);
#line 31
		memcpy(slot->key, key, sizeof(key));
#line 31
		slot->site = 1;
#line 31
		hash_prefetch(&self->o0_flows, &shape0_flows, slot->token);
#line 31
		return;
#line 31
	}
L219:
#line 55 "millrace/transport.h"
	return;                                                  /* 227: r0 = 0x1 ll */
L224:
#line 19 "nfs/firewall/firewall.c" /* return DROP_BECAUSE(fragment); */
	r2_0 = *(const mr_u64 *)s0_152;                          /* 234: r2 = *(u64 *)(r10 -152) */
#line 85 "millrace/flow4.h"
	r2_0 = (u32)r2_0 & 0xff1f0000u;                          /* 235: w2 &= -14745600 */
#line 85
	if ((u32)r2_0 != 0) goto L222;                           /* 236: if w2 != 0 goto 231 */
#line 85
	r3_0 = *(const mr_u64 *)s0_176;                          /* 237: r3 = *(u64 *)(r10 -176) */
#line 85
	r2_0 = (u32)r3_0;                                        /* 238: w2 = w3 */
#line 85
	r2_0 = (u32)r2_0 >> 16;                                  /* 239: w2 >>= 16 */
#line 85
	r3_0 = (u32)r3_0 << 2;                                   /* 240: w3 <<= 2 */
#line 85
	r3_0 = (u32)r3_0 & 60;                                   /* 241: w3 &= 60 */
#line 85
	r8_0 = (u32)r0_0;                                        /* 242: w8 = w0 */
#line 85
	r8_0 = (u32)r8_0 + (u32)r3_0;                            /* 243: w8 += w3 */
#line 85
	r2_0 = __builtin_bswap16((u16)r2_0);                     /* 244: r2 = bswap16 r2 */
#line 85
	r0_0 = (u32)r0_0 + (u32)r2_0;                            /* 245: w0 += w2 */
#line 37
	r2_0 = *(const mr_u64 *)s0_168;                          /* 246: r2 = *(u64 *)(r10 -168) */
#line 37
	*(mr_u32 *)s0_60 = (u32)r2_0;                            /* 247: *(u32 *)(r10 -60) = r2 */
#line 36
	r2_0 = *(const mr_u64 *)s0_160;                          /* 248: r2 = *(u64 *)(r10 -160) */
#line 36
	*(mr_u32 *)s0_64 = (u32)r2_0;                            /* 249: *(u32 *)(r10 -64) = r2 */
#line 89
	*(mr_u32 *)s0_4 = (u32)r0_0;                             /* 250: *(u32 *)(r10 -4) = r0 */
#line 88
	*(mr_pointer *)s0_48 = p7_0;                             /* 251: *(u64 *)(r10 -48) = r7 */
#line 38
	*(u8 *)s0_52 = (u8)r4_0;                                 /* 252: *(u8 *)(r10 -52) = r4 */
	*(mr_u16 *)s0_50 = 0;                                    /* 253: *(u16 *)(r10 -50) = 0 */
#line 39
	*(u8 *)s0_51 = 0;                                        /* 254: *(u8 *)(r10 -51) = 0 */
#line 48 "millrace/ipv4.h"
	r2_0 = (u32)r4_0;                                        /* 255: w2 = w4 */
#line 48
	r2_0 = (u32)r2_0 & 255;                                  /* 256: w2 &= 255 */
#line 49 "millrace/transport.h"
	if ((u32)r2_0 == 17) goto L323;                          /* 257: if w2 == 17 goto 336 */
#line 49
	if ((u32)r2_0 != 6) goto L360;                           /* 258: if w2 != 6 goto 376 */
#line 31 "millrace/packet.h"
	p5_0 += (s64)r8_0;                                       /* 259: r5 += r8 */
#line 33
	p2_0 = p5_0;                                             /* 260: r2 = r5 */
#line 33
	p2_0 += 20;                                              /* 261: r2 += 20 */
#line 33
	if (p2_0 > p6_0) goto L599;                              /* 262: if r2 > r6 goto 626 */
#line 52 "millrace/transport.h"
	r2_0 = *(const volatile u8 *)(p5_0 + 12);                /* 263: r2 = *(u8 *)(r5 +12) */
#line 52
	if ((u32)r2_0 < 80) goto L599;                           /* 264: if w2 < 80 goto 626 */
#line 52
	r2_0 = (u32)r2_0 >> 2;                                   /* 265: w2 >>= 2 */
#line 52
	r2_0 = (u32)r2_0 & 60;                                   /* 266: w2 &= 60 */
#line 52
	r8_0 = (u32)r8_0 + (u32)r2_0;                            /* 267: w8 += w2 */
#line 52
	if ((u32)r8_0 > (u32)r0_0) goto L599;                    /* 268: if w8 > w0 goto 626 */
#line 52
	r4_0 = 0;                                                /* 269: w4 = 0 */
#line 52
	r7_0 = 6;                                                /* 270: w7 = 6 */
L331:
#line 33 "millrace/packet.h"
	r2_0 = *(const mr_u32 *)p5_0;                            /* 344: r2 = *(u32 *)(r5 +0) */
L332:
	{                                                        /* stores in the order of addresses */
#line 103 "millrace/flow.h"
		*(mr_u32 *)(s0_120 + 32) = (u32)r2_0;            /* 346: *(u32 *)(r10 -88) = r2 */
#line 103
		*(u8 *)(s0_120 + 36) = (u8)r7_0;                 /* 345: *(u8 *)(r10 -84) = r7 */
	}
#line 103
	r5_0 = *(const mr_u64 *)s0_168;                          /* 347: r5 = *(u64 *)(r10 -168) */
#line 105
	r5_0 <<= 32;                                             /* 348: r5 <<= 32 */
#line 105
	r3_0 = 0xffff0000u;                                      /* 349: r3 = 0xffff0000 ll */
#line 105
	r5_0 |= r3_0;                                            /* 351: r5 |= r3 */
#line 103
	*(mr_u64 *)(s0_120 + 24) = r5_0;                         /* 352: *(u64 *)(r10 -96) = r5 */
#line 103
	r5_0 = *(const mr_u64 *)s0_160;                          /* 353: r5 = *(u64 *)(r10 -160) */
	r5_0 <<= 32;                                             /* 354: r5 <<= 32 */
#line 104
	r5_0 |= r3_0;                                            /* 355: r5 |= r3 */
	{                                                        /* stores in the order of addresses */
#line 103
		*(mr_u64 *)s0_120 = 0;                           /* 360: *(u64 *)(r10 -120) = 0 */
#line 103
		*(mr_u64 *)(s0_120 + 8) = r5_0;                  /* 356: *(u64 *)(r10 -112) = r5 */
#line 103
		*(mr_u64 *)(s0_120 + 16) = 0;                    /* 359: *(u64 *)(r10 -104) = 0 */
#line 103
		*(u8 *)(s0_120 + 37) = 4;                        /* 358: *(u8 *)(r10 -83) = 4 */
#line 103
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 357: *(u16 *)(r10 -82) = 0 */
	}
#line 13 "nfs/firewall/firewall.c" /* switch (packet_find_flow(p, &f)) { */
	if ((u32)r4_0 != 0) goto L349;                           /* 361: if w4 != 0 goto 363 */
#line 13
	goto L273;                                               /* 362: goto 284 */
L222:
#line 73 "millrace/flow.h"
	return;                                                  /* 231: r0 = 0x2 ll */
L262:
#line 31 "millrace/packet.h"
	r2_0 = (u32)r8_0;                                        /* 274: w2 = w8 */
#line 31
	p3_0 += (s64)r2_0;                                       /* 275: r3 += r2 */
#line 33
	p5_0 = p3_0;                                             /* 276: r5 = r3 */
#line 33
	p5_0 += 8;                                               /* 277: r5 += 8 */
#line 33
	if (p5_0 > p4_0) goto L102;                              /* 278: if r5 > r4 goto 102 */
#line 33
	r2_0 += 8;                                               /* 279: r2 += 8 */
#line 33
	r4_0 = *(const mr_u64 *)s0_144;                          /* 280: r4 = *(u64 *)(r10 -144) */
#line 33
	if (r2_0 > r4_0) goto L102;                              /* 281: if r2 > r4 goto 102 */
#line 33
	goto L271;
L300:
#line 68 "millrace/transport.h"
	if ((u32)r5_0 == 58) goto L303;                          /* 312: if w5 == 58 goto 315 */
#line 68
	return;                                                  /* 313: w2 = 1 */
L303:
#line 31 "millrace/packet.h"
	r2_0 = (u32)r8_0;                                        /* 317: w2 = w8 */
#line 31
	p5_0 = p3_0;                                             /* 318: r5 = r3 */
#line 31
	p5_0 += (s64)r2_0;                                       /* 319: r5 += r2 */
#line 33
	p6_0 = p5_0;                                             /* 320: r6 = r5 */
#line 33
	p6_0 += 8;                                               /* 321: r6 += 8 */
#line 33
	if (p6_0 > p4_0) goto L102;                              /* 322: if r6 > r4 goto 102 */
#line 33
	r2_0 += 8;                                               /* 323: r2 += 8 */
#line 33
	r6_0 = *(const mr_u64 *)s0_144;                          /* 324: r6 = *(u64 *)(r10 -144) */
#line 33
	if (r2_0 > r6_0) goto L102;                              /* 325: if r2 > r6 goto 102 */
#line 74 "millrace/transport.h"
	r0_0 = *(const s8 *)p5_0;                                /* 326: r0 = *(s8 *)(r5 +0) */
#line 74
	r2_0 = (u32)r0_0;                                        /* 327: w2 = w0 */
#line 74
	r2_0 = (u32)r2_0 + 0xffffffffu;                          /* 328: w2 += -1 */
#line 74
	r2_0 = (u32)r2_0 & 255;                                  /* 329: w2 &= 255 */
#line 74
	if ((u32)r2_0 < 4) goto L448;                            /* 330: if w2 < 4 goto 467 */
#line 34
	if ((s32)r0_0 > -127) goto L99;                          /* 331: if w0 s> -127 goto 99 */
#line 36
	r2_0 = *(const mr_u16 *)(p5_0 + 4);                      /* 332: r2 = *(u16 *)(r5 +4) */
#line 36
	if ((u32)r0_0 == 0xffffff80u) goto L272;                 /* 333: if w0 == -128 goto 283 */
#line 36
	r2_0 = (u32)r2_0 << 16;                                  /* 334: w2 <<= 16 */
#line 36
	goto L272;                                               /* 335: goto 283 */
L323:
#line 31 "millrace/packet.h"
	p5_0 += (s64)r8_0;                                       /* 336: r5 += r8 */
#line 33
	p2_0 = p5_0;                                             /* 337: r2 = r5 */
#line 33
	p2_0 += 8;                                               /* 338: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L599;                              /* 339: if r2 > r6 goto 626 */
#line 33
	r8_0 += 8;                                               /* 340: r8 += 8 */
#line 33
	if (r8_0 > r0_0) goto L599;                              /* 341: if r8 > r0 goto 626 */
#line 33
	r4_0 = 0;                                                /* 342: w4 = 0 */
#line 33
	r7_0 = 17;                                               /* 343: w7 = 17 */
#line 33
	goto L331;
L349:
#line 23 "nfs/firewall/firewall.c" /* if (p->port == WAN && !map_get(&flows, &f)) */
	r0_0 = pkt->port;                                        /* 364: r0 = *(u32 *)(r1 +12) */
#line 23
	if ((u32)r0_0 != 1) goto L100;                           /* 365: if w0 != 1 goto 100 */
#line 23
	{                                                        /* 370: call map_get#65536 */
#line 23
		u64 key[] = { mr_load64(s0_120), mr_load64(s0_120 + 8), mr_load64(s0_120 + 16), mr_load64(s0_120 + 24), mr_load64(s0_120 + 32) };
#line 23
		slot->token = hash_token(&self->o0_flows, &shape0_flows, key);
#line 23
		memcpy(slot->key, key, sizeof(key));
#line 23
		slot->site = 2;
#line 23
		hash_prefetch(&self->o0_flows, &shape0_flows, slot->token);
#line 23
		return;
#line 23
	}
L100:
#line 34 "millrace/verdict.h"
	return;                                                  /* 100: w0 &= 16777215 */
L360:
#line 34
	r7_0 = r4_0;                                             /* 376: r7 = r4 */
#line 48 "millrace/ipv4.h"
	r2_0 = (u32)r4_0;                                        /* 377: w2 = w4 */
#line 48
	r2_0 = (u32)r2_0 & 255;                                  /* 378: w2 &= 255 */
#line 68 "millrace/transport.h"
	if ((u32)r2_0 != 1) goto L99;                            /* 379: if w2 != 1 goto 99 */
#line 31 "millrace/packet.h"
	p4_0 = p5_0;                                             /* 380: r4 = r5 */
#line 31
	p4_0 += (s64)r8_0;                                       /* 381: r4 += r8 */
#line 33
	p2_0 = p4_0;                                             /* 382: r2 = r4 */
#line 33
	p2_0 += 8;                                               /* 383: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L599;                              /* 384: if r2 > r6 goto 626 */
#line 33
	r2_0 = r8_0;                                             /* 385: r2 = r8 */
#line 33
	r2_0 += 8;                                               /* 386: r2 += 8 */
#line 33
	if (r2_0 > r0_0) goto L599;                              /* 387: if r2 > r0 goto 626 */
#line 33
	r3_0 = r0_0;                                             /* 388: r3 = r0 */
#line 33
	*(mr_pointer *)s0_184 = (u8 *)pkt;                       /* 389: *(u64 *)(r10 -184) = r1 */
#line 73 "millrace/transport.h"
	*(mr_pointer *)s0_40 = p4_0;                             /* 390: *(u64 *)(r10 -40) = r4 */
#line 73
	*(mr_u32 *)s0_32 = 1;                                    /* 391: *(u32 *)(r10 -32) = 1 */
	r0_0 = *(const volatile u8 *)p4_0;                       /* 392: r0 = *(u8 *)(r4 +0) */
#line 48 "millrace/ipv4.h"
	r1_0 = (u32)r7_0;                                        /* 393: w1 = w7 */
#line 48
	r1_0 = (u32)r1_0 & 255;                                  /* 394: w1 &= 255 */
#line 74 "millrace/transport.h"
	if ((u32)r1_0 != 1) goto L521;                           /* 395: if w1 != 1 goto 546 */
#line 74
	r1_0 = 8;                                                /* 396: w1 = 8 */
#line 74
	*(mr_u32 *)s0_136 = (u32)r1_0;                           /* 397: *(u32 *)(r10 -136) = r1 */
#line 74
	r9_0 = 0;                                                /* 398: w9 = 0 */
#line 74
	if ((u32)r0_0 > 12) goto L528;                           /* 399: if w0 > 12 goto 553 */
#line 74
	r1_0 = 1;                                                /* 400: w1 = 1 */
#line 74
	r1_0 = (u32)r1_0 << ((u32)r0_0 & 31);                    /* 401: w1 <<= w0 */
#line 74
	r1_0 = (u32)r1_0 & 0x1838u;                              /* 402: w1 &= 6200 */
#line 74
	if ((u32)r1_0 != 0) goto L389;                           /* 403: if w1 != 0 goto 405 */
L528:
#line 34
	if ((u32)r9_0 == (u32)r0_0) goto L532;                   /* 554: if w9 == w0 goto 557 */
#line 34
	r2_0 = *(const mr_u32 *)s0_136;                          /* 555: r2 = *(u32 *)(r10 -136) */
#line 34
	if ((u32)r2_0 != (u32)r0_0) goto L99;                    /* 556: if w2 != w0 goto 99 */
L532:
	r2_0 = *(const mr_u16 *)(p4_0 + 4);                      /* 557: r2 = *(u16 *)(r4 +4) */
#line 36
	r1_0 = *(const mr_u32 *)s0_136;                          /* 558: r1 = *(u32 *)(r10 -136) */
#line 36
	if ((u32)r1_0 == (u32)r0_0) goto L536;                   /* 559: if w1 == w0 goto 561 */
#line 36
	r2_0 = (u32)r2_0 << 16;                                  /* 560: w2 <<= 16 */
L536:
#line 36
	r4_0 = 0;                                                /* 561: w4 = 0 */
	goto L332;                                               /* 563: goto 345 */
L389:
#line 92 "millrace/flow4.h"
	r8_0 = (u32)r8_0 + 8;                                    /* 405: w8 += 8 */
#line 31 "millrace/packet.h"
	p1_0 = p5_0;                                             /* 406: r1 = r5 */
#line 31
	p1_0 += (s64)r8_0;                                       /* 407: r1 += r8 */
#line 33
	p2_0 = p1_0;                                             /* 408: r2 = r1 */
#line 33
	p2_0 += 20;                                              /* 409: r2 += 20 */
#line 33
	if (p2_0 > p6_0) goto L599;                              /* 410: if r2 > r6 goto 626 */
#line 49 "millrace/flow4.h"
	r4_0 = *(const volatile u8 *)p1_0;                       /* 411: r4 = *(u8 *)(r1 +0) */
#line 49
	r2_0 = (u32)r4_0;                                        /* 412: w2 = w4 */
#line 49
	r2_0 = (u32)r2_0 & 240;                                  /* 413: w2 &= 240 */
#line 49
	if ((u32)r2_0 != 64) goto L599;                          /* 414: if w2 != 64 goto 626 */
#line 51
	r4_0 = (u32)r4_0 << 2;                                   /* 415: w4 <<= 2 */
#line 51
	r4_0 = (u32)r4_0 & 60;                                   /* 416: w4 &= 60 */
	if ((u32)r4_0 < 20) goto L599;                           /* 417: if w4 < 20 goto 626 */
#line 52
	r4_0 = (u32)r4_0 + (u32)r8_0;                            /* 418: w4 += w8 */
#line 52
	if ((u32)r4_0 > (u32)r3_0) goto L599;                    /* 419: if w4 > w3 goto 626 */
#line 54
	r2_0 = *(const mr_u16 *)(p1_0 + 6);                      /* 420: r2 = *(u16 *)(r1 +6) */
#line 54
	r2_0 = (u32)r2_0 & 0xff1fu;                              /* 421: w2 &= 65311 */
#line 54
	if ((u32)r2_0 != 0) goto L222;                           /* 422: if w2 != 0 goto 231 */
#line 36
	r2_0 = *(const mr_u32 *)(p1_0 + 12);                     /* 423: r2 = *(u32 *)(r1 +12) */
#line 36
	*(mr_u64 *)s0_160 = r2_0;                                /* 424: *(u64 *)(r10 -160) = r2 */
#line 36
	*(mr_u32 *)s0_64 = (u32)r2_0;                            /* 425: *(u32 *)(r10 -64) = r2 */
	r2_0 = *(const mr_u32 *)(p1_0 + 16);                     /* 426: r2 = *(u32 *)(r1 +16) */
#line 37
	*(mr_u64 *)s0_168 = r2_0;                                /* 427: *(u64 *)(r10 -168) = r2 */
#line 37
	*(mr_u32 *)s0_60 = (u32)r2_0;                            /* 428: *(u32 *)(r10 -60) = r2 */
	r2_0 = *(const u8 *)(p1_0 + 9);                          /* 429: r2 = *(u8 *)(r1 +9) */
#line 58
	*(mr_u32 *)s0_8 = (u32)r4_0;                             /* 430: *(u32 *)(r10 -8) = r4 */
#line 31 "millrace/packet.h"
	p5_0 += (s64)r4_0;                                       /* 431: r5 += r4 */
#line 31
	r7_0 = r2_0;                                             /* 432: r7 = r2 */
#line 38 "millrace/flow4.h"
	*(u8 *)s0_52 = (u8)r2_0;                                 /* 433: *(u8 *)(r10 -52) = r2 */
#line 57
	*(mr_pointer *)s0_24 = p1_0;                             /* 434: *(u64 *)(r10 -24) = r1 */
#line 39
	*(mr_u16 *)s0_50 = 0;                                    /* 435: *(u16 *)(r10 -50) = 0 */
#line 39
	*(u8 *)s0_51 = 0;                                        /* 436: *(u8 *)(r10 -51) = 0 */
#line 33 "millrace/packet.h"
	p2_0 = p5_0;                                             /* 437: r2 = r5 */
#line 33
	p2_0 += 8;                                               /* 438: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L599;                              /* 439: if r2 > r6 goto 626 */
#line 33
	r4_0 += 8;                                               /* 440: r4 += 8 */
#line 33
	if (r4_0 > r3_0) goto L599;                              /* 441: if r4 > r3 goto 626 */
#line 59 "millrace/flow4.h"
	r2_0 = *(const u8 *)(p1_0 + 9);                          /* 442: r2 = *(u8 *)(r1 +9) */
#line 94 "millrace/transport.h"
	*(mr_pointer *)s0_16 = p5_0;                             /* 443: *(u64 *)(r10 -16) = r5 */
	if ((u32)r2_0 == 17) goto L430;                          /* 444: if w2 == 17 goto 446 */
#line 95
	if ((u32)r2_0 != 6) goto L587;                           /* 445: if w2 != 6 goto 614 */
L430:
#line 95
	r4_0 = 1;                                                /* 446: w4 = 1 */
	r2_0 = *(const mr_u32 *)p5_0;                            /* 447: r2 = *(u32 *)(r5 +0) */
#line 37
	goto L332;                                               /* 449: goto 345 */
L448:
#line 34 "millrace/verdict.h"
	r2_0 = *(const mr_u64 *)s0_136;                          /* 469: r2 = *(u64 *)(r10 -136) */
#line 83 "millrace/flow.h"
	r2_0 = (u32)r2_0 + 8;                                    /* 470: w2 += 8 */
#line 31 "millrace/packet.h"
	p7_0 = p3_0;                                             /* 471: r7 = r3 */
#line 31
	r5_0 = r2_0;                                             /* 472: r5 = r2 */
#line 31
	p7_0 += (s64)r2_0;                                       /* 473: r7 += r2 */
#line 33
	p2_0 = p7_0;                                             /* 474: r2 = r7 */
#line 33
	p2_0 += 40;                                              /* 475: r2 += 40 */
#line 33
	if (p2_0 > p4_0) goto L102;                              /* 476: if r2 > r4 goto 102 */
#line 47 "millrace/flow.h"
	r5_0 += 40;                                              /* 477: r5 += 40 */
#line 47
	r6_0 = r5_0;                                             /* 478: r6 = r5 */
#line 47
	r2_0 = *(const mr_u64 *)s0_144;                          /* 479: r2 = *(u64 *)(r10 -144) */
#line 47
	if (r5_0 > r2_0) goto L102;                              /* 480: if r5 > r2 goto 102 */
	r2_0 = *(const mr_u32 *)p7_0;                            /* 481: r2 = *(u32 *)(r7 +0) */
#line 48
	r2_0 = (u32)r2_0 & 240;                                  /* 482: w2 &= 240 */
#line 47
	if ((u32)r2_0 != 96) goto L102;                          /* 483: if w2 != 96 goto 102 */
#line 47
	r8_0 = 8;                                                /* 484: w8 = 8 */
#line 50
	p5_0 = p7_0;                                             /* 485: r5 = r7 */
#line 50
	p5_0 += 6;                                               /* 486: r5 += 6 */
#line 50
	r2_0 = 0x100000000000ull;                                /* 487: r2 = 0x100000000000 ll */
#line 50
	*(mr_u64 *)s0_136 = r2_0;                                /* 489: *(u64 *)(r10 -136) = r2 */
#line 50
	r2_0 = 0x8000000000000ull;                               /* 490: r2 = 0x8000000000000 ll */
#line 50
	*(mr_u64 *)s0_152 = r2_0;                                /* 492: *(u64 *)(r10 -152) = r2 */
#line 50
	*(mr_pointer *)s0_184 = (u8 *)pkt;                       /* 493: *(u64 *)(r10 -184) = r1 */
L472:
#line 50
	r9_0 = (u32)r8_0;                                        /* 494: w9 = w8 */
#line 50
	r8_0 = *(const volatile u8 *)p5_0;                       /* 495: r8 = *(u8 *)(r5 +0) */
#line 85 "millrace/ipv6.h"
	if (r8_0 > 63) goto L539;                                /* 496: if r8 > 63 goto 564 */
#line 85
	r1_0 = 0x1008180000000001ull;                            /* 497: r1 = 0x1008180000000001 ll */
#line 85
	r1_0 = r1_0 >> (r8_0 & 63);                              /* 499: r1 >>= r8 */
#line 85
	r1_0 &= 1;                                               /* 500: r1 &= 1 */
#line 85
	if (r1_0 == 0) goto L539;                                /* 501: if r1 == 0 goto 564 */
#line 31 "millrace/packet.h"
	r1_0 = (u32)r6_0;                                        /* 502: w1 = w6 */
#line 31
	p5_0 = p3_0;                                             /* 503: r5 = r3 */
#line 31
	p5_0 += (s64)r1_0;                                       /* 504: r5 += r1 */
#line 33
	p1_0 = p5_0;                                             /* 507: r1 = r5 */
#line 33
	p1_0 += 8;                                               /* 508: r1 += 8 */
#line 33
	if (p1_0 > p4_0) goto L102;                              /* 509: if r1 > r4 goto 102 */
#line 33
	r1_0 = (u32)r6_0;                                        /* 510: w1 = w6 */
#line 33
	r1_0 = (u32)r1_0 + 8;                                    /* 511: w1 += 8 */
#line 33
	r2_0 = *(const mr_u64 *)s0_144;                          /* 512: r2 = *(u64 *)(r10 -144) */
#line 33
	if ((u32)r1_0 > (u32)r2_0) goto L102;                    /* 513: if w1 > w2 goto 102 */
#line 68 "millrace/ipv6.h"
	r1_0 = *(const mr_u64 *)s0_136;                          /* 514: r1 = *(u64 *)(r10 -136) */
#line 68
	r1_0 = r1_0 >> (r8_0 & 63);                              /* 515: r1 >>= r8 */
#line 68
	r1_0 = (u32)r1_0 & 1;                                    /* 516: w1 &= 1 */
#line 68
	r1_0 = -(u32)r1_0;                                       /* 517: w1 = -w1 */
#line 96
	r2_0 = *(const mr_u16 *)(p5_0 + 2);                      /* 518: r2 = *(u16 *)(r5 +2) */
#line 96
	r2_0 = __builtin_bswap64((u64)r2_0);                     /* 519: r2 = bswap64 r2 */
#line 96
	r2_0 >>= 51;                                             /* 520: r2 >>= 51 */
#line 96
	r0_0 = (u32)r1_0;                                        /* 521: w0 = w1 */
#line 96
	r0_0 = (u32)r0_0 & (u32)r2_0;                            /* 522: w0 &= w2 */
#line 96
	if ((u32)r0_0 != 0) goto L572;                           /* 523: if w0 != 0 goto 598 */
#line 96
	r0_0 = *(const mr_u64 *)s0_152;                          /* 524: r0 = *(u64 *)(r10 -152) */
#line 96
	r0_0 = r0_0 >> (r8_0 & 63);                              /* 525: r0 >>= r8 */
#line 96
	r0_0 = (u32)r0_0 & 1;                                    /* 526: w0 &= 1 */
#line 96
	r0_0 = -(u32)r0_0;                                       /* 527: w0 = -w0 */
#line 103
	r1_0 = (u32)r1_0 ^ 0xffffffffu;                          /* 528: w1 ^= -1 */
#line 103
	r2_0 = *(const volatile u8 *)(p5_0 + 1);                 /* 529: r2 = *(u8 *)(r5 +1) */
#line 103
	r2_0 = (u32)r2_0 & (u32)r1_0;                            /* 530: w2 &= w1 */
	r2_0 = (u32)r2_0 - (u32)r0_0;                            /* 531: w2 -= w0 */
#line 104
	r2_0 = (u32)r2_0 + 1;                                    /* 532: w2 += 1 */
#line 104
	r0_0 = (u32)r0_0 + 3;                                    /* 533: w0 += 3 */
#line 104
	r2_0 = (u32)r2_0 << ((u32)r0_0 & 31);                    /* 534: w2 <<= w0 */
#line 104
	r2_0 = (u32)r2_0 + (u32)r6_0;                            /* 535: w2 += w6 */
#line 104
	r6_0 = *(const mr_u64 *)s0_144;                          /* 539: r6 = *(u64 *)(r10 -144) */
#line 104
	if ((u32)r2_0 > (u32)r6_0) goto L102;                    /* 540: if w2 > w6 goto 102 */
#line 104
	r8_0 = (u32)r9_0;                                        /* 541: w8 = w9 */
#line 104
	r8_0 = (u32)r8_0 + 0xffffffffu;                          /* 542: w8 += -1 */
#line 104
	r6_0 = (u32)r2_0;                                        /* 543: w6 = w2 */
#line 104
	if ((u32)r9_0 == 0) goto L102;                           /* 544: if w9 == 0 goto 102 */
#line 104
	goto L472;                                               /* 545: goto 494 */
L521:
#line 104
	r1_0 = 128;                                              /* 546: w1 = 128 */
#line 104
	*(mr_u32 *)s0_136 = (u32)r1_0;                           /* 547: *(u32 *)(r10 -136) = r1 */
#line 104
	r9_0 = 129;                                              /* 548: w9 = 129 */
#line 74 "millrace/transport.h"
	r1_0 = (u32)r0_0;                                        /* 549: w1 = w0 */
#line 74
	r1_0 = (u32)r1_0 + 0xffffffffu;                          /* 550: w1 += -1 */
#line 74
	r1_0 = (u32)r1_0 & 255;                                  /* 551: w1 &= 255 */
#line 74
	if ((u32)r1_0 < 4) goto L389;                            /* 552: if w1 < 4 goto 405 */
#line 74
	goto L528;
L539:
#line 32 "millrace/flow.h"
	r1_0 = *(const mr_u32 *)(p7_0 + 8);                      /* 567: r1 = *(u32 *)(r7 +8) */
#line 32
	r2_0 = *(const mr_u32 *)(p7_0 + 12);                     /* 568: r2 = *(u32 *)(r7 +12) */
#line 32
	r5_0 = *(const mr_u64 *)(p7_0 + 16);                     /* 569: r5 = *(u64 *)(r7 +16) */
	{                                                        /* stores in the order of addresses */
#line 32
		r2_0 <<= 32;                                     /* 571: r2 <<= 32 */
#line 32
		r2_0 |= r1_0;                                    /* 572: r2 |= r1 */
#line 32
		const u64 v547 = r2_0;                           /* 573: *(u64 *)(r10 -120) = r2 */
		r1_0 = *(const mr_u32 *)(p7_0 + 24);             /* 574: r1 = *(u32 *)(r7 +24) */
#line 33
		r2_0 = *(const mr_u32 *)(p7_0 + 28);             /* 575: r2 = *(u32 *)(r7 +28) */
#line 33
		r2_0 <<= 32;                                     /* 576: r2 <<= 32 */
#line 33
		r2_0 |= r1_0;                                    /* 577: r2 |= r1 */
#line 33
		r1_0 = *(const mr_u64 *)(p7_0 + 32);             /* 578: r1 = *(u64 *)(r7 +32) */
#line 33
		const u64 v554 = r1_0;                           /* 580: *(u64 *)(r10 -96) = r1 */
#line 33
		const u64 v555 = r2_0;                           /* 581: *(u64 *)(r10 -104) = r2 */
#line 31 "millrace/packet.h"
		r1_0 = (u32)r6_0;                                /* 582: w1 = w6 */
#line 31
		p3_0 += (s64)r1_0;                               /* 583: r3 += r1 */
#line 33
		p2_0 = p3_0;                                     /* 584: r2 = r3 */
#line 33
		p2_0 += 8;                                       /* 585: r2 += 8 */
#line 32 "millrace/flow.h"
		*(mr_u64 *)s0_120 = v547;                        /* 573: *(u64 *)(r10 -120) = r2 */
#line 32
		*(mr_u64 *)(s0_120 + 8) = r5_0;                  /* 570: *(u64 *)(r10 -112) = r5 */
		*(mr_u64 *)(s0_120 + 16) = v555;                 /* 581: *(u64 *)(r10 -104) = r2 */
#line 33
		*(mr_u64 *)(s0_120 + 24) = v554;                 /* 580: *(u64 *)(r10 -96) = r1 */
		*(u8 *)(s0_120 + 36) = (u8)r8_0;                 /* 579: *(u8 *)(r10 -84) = r8 */
		*(u8 *)(s0_120 + 37) = 6;                        /* 587: *(u8 *)(r10 -83) = 6 */
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 586: *(u16 *)(r10 -82) = 0 */
	}
#line 33 "millrace/packet.h"
	if (p2_0 > p4_0) goto L102;                              /* 588: if r2 > r4 goto 102 */
#line 33
	r1_0 += 8;                                               /* 589: r1 += 8 */
#line 33
	r2_0 = *(const mr_u64 *)s0_144;                          /* 590: r2 = *(u64 *)(r10 -144) */
#line 33
	if (r1_0 > r2_0) goto L102;                              /* 591: if r1 > r2 goto 102 */
#line 95 "millrace/transport.h"
	if ((u32)r8_0 == 17) goto L568;                          /* 592: if w8 == 17 goto 594 */
#line 95
	if ((u32)r8_0 != 6) goto L575;                           /* 593: if w8 != 6 goto 602 */
L568:
#line 96
	r1_0 = *(const mr_u32 *)p3_0;                            /* 594: r1 = *(u32 *)(r3 +0) */
L569:
#line 96
	*(mr_u32 *)(s0_120 + 32) = (u32)r1_0;                    /* 595: *(u32 *)(r10 -88) = r1 */
#line 96
	goto L349;                                               /* 597: goto 363 */
L572:
#line 96
	return;                                                  /* 598: r0 = 0x1 ll */
L575:
#line 99
	if ((u32)r8_0 == 58) goto L601;                          /* 602: if w8 == 58 goto 629 */
#line 99
	if ((u32)r8_0 != 1) goto L99;                            /* 604: if w8 != 1 goto 99 */
#line 99
	r2_0 = 8;                                                /* 605: w2 = 8 */
#line 99
	r5_0 = 0;                                                /* 606: w5 = 0 */
#line 102
	r4_0 = *(const volatile u8 *)p3_0;                       /* 607: r4 = *(u8 *)(r3 +0) */
#line 102
	if ((u32)r4_0 > 12) goto L609;                           /* 608: if w4 > 12 goto 637 */
#line 102
	r7_0 = 1;                                                /* 609: w7 = 1 */
#line 102
	r7_0 = (u32)r7_0 << ((u32)r4_0 & 31);                    /* 610: w7 <<= w4 */
#line 102
	r7_0 = (u32)r7_0 & 0x1838u;                              /* 611: w7 &= 6200 */
#line 102
	if ((u32)r7_0 != 0) goto L102;                           /* 612: if w7 != 0 goto 102 */
L609:
#line 34
	if ((u32)r2_0 == (u32)r4_0) goto L611;                   /* 637: if w2 == w4 goto 639 */
#line 34
	if ((u32)r5_0 != (u32)r4_0) goto L99;                    /* 638: if w5 != w4 goto 99 */
L611:
	r1_0 = *(const mr_u16 *)(p3_0 + 4);                      /* 639: r1 = *(u16 *)(r3 +4) */
#line 36
	if ((u32)r2_0 == (u32)r4_0) goto L569;                   /* 640: if w2 == w4 goto 595 */
#line 36
	r1_0 = (u32)r1_0 << 16;                                  /* 641: w1 <<= 16 */
#line 36
	goto L569;                                               /* 642: goto 595 */
L587:
#line 99
	if ((u32)r2_0 == 58) goto L615;                          /* 614: if w2 == 58 goto 643 */
#line 99
	if ((u32)r2_0 != 1) goto L99;                            /* 616: if w2 != 1 goto 99 */
#line 99
	r4_0 = 8;                                                /* 617: w4 = 8 */
#line 99
	r2_0 = 0;                                                /* 618: w2 = 0 */
#line 102
	r3_0 = *(const volatile u8 *)p5_0;                       /* 619: r3 = *(u8 *)(r5 +0) */
#line 102
	if ((u32)r3_0 > 12) goto L623;                           /* 620: if w3 > 12 goto 651 */
#line 102
	r0_0 = 1;                                                /* 621: w0 = 1 */
#line 102
	r0_0 = (u32)r0_0 << ((u32)r3_0 & 31);                    /* 622: w0 <<= w3 */
#line 102
	r0_0 = (u32)r0_0 & 0x1838u;                              /* 623: w0 &= 6200 */
#line 102
	if ((u32)r0_0 != 0) goto L599;                           /* 624: if w0 != 0 goto 626 */
L623:
#line 34
	if ((u32)r4_0 == (u32)r3_0) goto L625;                   /* 651: if w4 == w3 goto 653 */
#line 34
	if ((u32)r2_0 != (u32)r3_0) goto L99;                    /* 652: if w2 != w3 goto 99 */
L625:
	r2_0 = *(const mr_u16 *)(p5_0 + 4);                      /* 653: r2 = *(u16 *)(r5 +4) */
#line 36
	if ((u32)r4_0 == (u32)r3_0) goto L628;                   /* 654: if w4 == w3 goto 656 */
#line 36
	r2_0 = (u32)r2_0 << 16;                                  /* 655: w2 <<= 16 */
L628:
#line 36
	r4_0 = 1;                                                /* 656: w4 = 1 */
	goto L332;                                               /* 658: goto 345 */
L599:
#line 102
	return;                                                  /* 626: r0 = 0x1 ll */
L601:
#line 19 "nfs/firewall/firewall.c" /* return DROP_BECAUSE(fragment); */
	r2_0 = 128;                                              /* 629: w2 = 128 */
#line 19
	r5_0 = 129;                                              /* 630: w5 = 129 */
#line 102 "millrace/transport.h"
	r4_0 = *(const volatile u8 *)p3_0;                       /* 631: r4 = *(u8 *)(r3 +0) */
#line 102
	r7_0 = (u32)r4_0;                                        /* 632: w7 = w4 */
#line 102
	r7_0 = (u32)r7_0 + 0xffffffffu;                          /* 633: w7 += -1 */
#line 102
	r7_0 = (u32)r7_0 & 255;                                  /* 634: w7 &= 255 */
#line 102
	if ((u32)r7_0 < 4) goto L102;                            /* 636: if w7 < 4 goto 102 */
#line 102
	goto L609;
L615:
#line 36
	r4_0 = 128;                                              /* 643: w4 = 128 */
#line 36
	r2_0 = 129;                                              /* 644: w2 = 129 */
#line 102
	r3_0 = *(const volatile u8 *)p5_0;                       /* 645: r3 = *(u8 *)(r5 +0) */
#line 102
	r0_0 = (u32)r3_0;                                        /* 646: w0 = w3 */
#line 102
	r0_0 = (u32)r0_0 + 0xffffffffu;                          /* 647: w0 += -1 */
#line 102
	r0_0 = (u32)r0_0 & 255;                                  /* 648: w0 &= 255 */
#line 102
	if ((u32)r0_0 < 4) goto L599;                            /* 650: if w0 < 4 goto 626 */
#line 102
	goto L623;
#line 2503 "firewall.c"
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
#line 31
		u64 key[5];
#line 31
		memcpy(key, slot->key, sizeof(key));
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
		p0_0 = hash_map_refresh(&self->o0_flows, &shape0_flows, key, slot->token, pkt);
#line 31
	}
#line 31
	r1_0 = pkt->port;                                        /* 306: r1 = *(u32 *)(r1 +12) */
#line 31
	if (!p0_0) goto L434;                                    /* 307: if r0 == 0 goto 450 */
	r1_0 = (u32)r1_0 & 0xffffffu;                            /* 308: w1 &= 16777215 */
#line 32 /* return FORWARD(peer(p)); */
	r1_0 = (u32)r1_0 ^ 0x1000001u;                           /* 309: w1 ^= 16777217 */
#line 32
	r0_0 = (u32)r1_0;                                        /* 310: w0 = w1 */
#line 36 /* } */
	return mr_verdict_handlers(pkt, r0_0);                   /* 102: exit */
L355:
#line 23 /* if (p->port == WAN && !map_get(&flows, &f)) */
	{                                                        /* 370: call map_get#65536 */
#line 23
		u64 key[5];
#line 23
		memcpy(key, slot->key, sizeof(key));
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
		p0_0 = hash_map_get(&self->o0_flows, &shape0_flows, key, slot->token, pkt);
#line 23
	}
#line 23
	p1_0 = p0_0;                                             /* 371: r1 = r0 */
#line 23
	r0_0 = 3;                                                /* 372: r0 = 0x3 ll */
#line 23
	if (!p1_0) return mr_verdict_handlers(pkt, r0_0);        /* 374: if r1 == 0 goto 102 */
L446:
#line 34 "millrace/verdict.h"
	r0_0 = pkt->port;                                        /* 465: r0 = *(u32 *)(r6 +12) */
#line 34
	r0_0 = (u32)r0_0 & 0xffffffu;                            /* 100: w0 &= 16777215 */
#line 34
	r0_0 = (u32)r0_0 ^ 0x1000001u;                           /* 101: w0 ^= 16777217 */
#line 34
	return mr_verdict_handlers(pkt, r0_0);
L434:
#line 37 "millrace/transport.h"
	r0_0 = 3;                                                /* 450: r0 = 0x3 ll */
#line 33 "nfs/firewall/firewall.c" /* if (p->port == WAN) */
	if ((u32)r1_0 == 1) return mr_verdict_handlers(pkt, r0_0); /* 452: if w1 == 1 goto 102 */
#line 35 /* return map_put(&flows, &f, &(struct session){}) ? FORWARD(peer(p)) : DROP_BECAUSE(table_full); */
	*(mr_u64 *)s0_128 = 0;                                   /* 453: *(u64 *)(r10 -128) = 0 */
#line 35
	{                                                        /* 460: call map_put#65538 */
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
	p1_0 = p0_0;                                             /* 461: r1 = r0 */
#line 35
	r0_0 = 4;                                                /* 462: r0 = 0x4 ll */
#line 35
	if (!p1_0) return mr_verdict_handlers(pkt, r0_0);        /* 464: if r1 == 0 goto 102 */
#line 35
	goto L446;
#line 2615 "firewall.c"
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

static inline void scout0_millrace_on_packet_entry(struct mr_instance *self, struct slot *slot)
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
			scout0_millrace_on_packet(self, packets[i], &slots[i]);
		}
		for (u32 i = 0; i < count; i++)
			scout0_millrace_on_packet_entry(self, &slots[i]);
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
