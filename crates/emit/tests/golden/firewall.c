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
	_Alignas(8) u8 s0_56[2];
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
	if (p2_0 > p4_0) goto L115;                              /* 6: if r2 > r4 goto 115 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const mr_u16 *)(p3_0 + 12);                     /* 7: r5 = *(u16 *)(r3 +12) */
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
	if (p2_0 > p4_0) goto L115;                              /* 13: if r2 > r4 goto 115 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const mr_u16 *)(p3_0 + 16);                     /* 14: r5 = *(u16 *)(r3 +16) */
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
	if (p2_0 > p4_0) goto L115;                              /* 20: if r2 > r4 goto 115 */
#line 33
	r7_0 = 22;                                               /* 21: w7 = 22 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const mr_u16 *)(p3_0 + 20);                     /* 22: r5 = *(u16 *)(r3 +20) */
L23:
#line 91 "millrace/flow.h"
	if ((u32)r5_0 == 0xdd86u) goto L119;                     /* 23: if w5 == 56710 goto 119 */
#line 91
	if ((u32)r5_0 != 8) goto L115;                           /* 24: if w5 != 8 goto 115 */
#line 31 "millrace/packet.h"
	p5_0 = pkt->data;                                        /* 29: r5 = *(u32 *)(r1 +0) */
#line 31
	p4_0 = p5_0;                                             /* 30: r4 = r5 */
#line 31
	r9_0 = r7_0;                                             /* 31: r9 = r7 */
#line 31
	p4_0 += (s64)r7_0;                                       /* 32: r4 += r7 */
#line 33
	p2_0 = p4_0;                                             /* 33: r2 = r4 */
#line 33
	p2_0 += 20;                                              /* 34: r2 += 20 */
#line 33
	p6_0 = pkt->end;                                         /* 35: r6 = *(u32 *)(r1 +4) */
#line 33
	if (p2_0 > p6_0) goto L643;                              /* 36: if r2 > r6 goto 670 */
#line 69 "millrace/ipv4.h"
	r2_0 = *(const volatile u8 *)p4_0;                       /* 37: r2 = *(u8 *)(r4 +0) */
#line 69
	r3_0 = (u32)r2_0;                                        /* 38: w3 = w2 */
#line 69
	r3_0 = (u32)r3_0 & 240;                                  /* 39: w3 &= 240 */
#line 69
	if ((u32)r3_0 != 64) goto L643;                          /* 40: if w3 != 64 goto 670 */
#line 71
	r2_0 = (u32)r2_0 << 2;                                   /* 41: w2 <<= 2 */
#line 71
	r2_0 = (u32)r2_0 & 60;                                   /* 42: w2 &= 60 */
#line 73
	if ((u32)r2_0 < 20) goto L643;                           /* 43: if w2 < 20 goto 670 */
#line 73
	r3_0 = *(const volatile mr_u16 *)(p4_0 + 2);             /* 44: r3 = *(u16 *)(r4 +2) */
#line 73
	r3_0 = __builtin_bswap16((u16)r3_0);                     /* 45: r3 = bswap16 r3 */
#line 73
	if ((u32)r2_0 > (u32)r3_0) goto L643;                    /* 46: if w2 > w3 goto 670 */
#line 73
	r2_0 = (u32)r9_0;                                        /* 47: w2 = w9 */
#line 73
	r2_0 = (u32)r2_0 + (u32)r3_0;                            /* 48: w2 += w3 */
#line 46 "millrace/packet.h"
	p3_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p6_0);     /* 49: w3 = w6 */
#line 46
	r3_0 = (u32)(u64)(uintptr_t)p3_0 - (u32)(u64)(uintptr_t)p5_0; /* 50: w3 -= w5 */
#line 73 "millrace/ipv4.h"
	if ((u32)r2_0 > (u32)r3_0) goto L643;                    /* 51: if w2 > w3 goto 670 */
#line 73
	*(mr_pointer *)s0_160 = p5_0;                            /* 52: *(u64 *)(r10 -160) = r5 */
#line 43
	r3_0 = *(const volatile mr_u32 *)p4_0;                   /* 53: r3 = *(u32 *)(r4 +0) */
#line 45
	r2_0 = (u32)r3_0;                                        /* 54: w2 = w3 */
#line 45
	r2_0 = (u32)r2_0 << 2;                                   /* 55: w2 <<= 2 */
#line 45
	r2_0 = (u32)r2_0 & 60;                                   /* 56: w2 &= 60 */
#line 45
	r0_0 = r9_0;                                             /* 57: r0 = r9 */
#line 45
	r5_0 = (u32)r0_0;                                        /* 58: w5 = w0 */
#line 45
	r5_0 = (u32)r5_0 + (u32)r2_0;                            /* 59: w5 += w2 */
#line 43
	r8_0 = *(const mr_u32 *)(p4_0 + 4);                      /* 60: r8 = *(u32 *)(r4 +4) */
#line 43
	*(mr_u64 *)s0_144 = r8_0;                                /* 61: *(u64 *)(r10 -144) = r8 */
#line 43
	*(mr_u64 *)s0_152 = r3_0;                                /* 62: *(u64 *)(r10 -152) = r3 */
#line 43
	r8_0 += r3_0;                                            /* 63: r8 += r3 */
#line 43
	r2_0 = *(const mr_u32 *)(p4_0 + 8);                      /* 64: r2 = *(u32 *)(r4 +8) */
#line 43
	*(mr_u64 *)s0_136 = r2_0;                                /* 65: *(u64 *)(r10 -136) = r2 */
#line 43
	r8_0 += r2_0;                                            /* 66: r8 += r2 */
#line 43
	r2_0 = *(const mr_u32 *)(p4_0 + 12);                     /* 67: r2 = *(u32 *)(r4 +12) */
#line 43
	*(mr_u64 *)s0_168 = r2_0;                                /* 68: *(u64 *)(r10 -168) = r2 */
#line 43
	r8_0 += r2_0;                                            /* 69: r8 += r2 */
	r2_0 = *(const mr_u32 *)(p4_0 + 16);                     /* 70: r2 = *(u32 *)(r4 +16) */
#line 44
	*(mr_u64 *)s0_176 = r2_0;                                /* 71: *(u64 *)(r10 -176) = r2 */
#line 43
	r8_0 += r2_0;                                            /* 72: r8 += r2 */
#line 47
	r0_0 += 20;                                              /* 73: r0 += 20 */
#line 47
	if (r0_0 == r5_0) goto L88;                              /* 74: if r0 == r5 goto 88 */
#line 47
	r3_0 = 0;                                                /* 75: r3 = 0 */
L76:
#line 52
	r2_0 = r0_0;                                             /* 76: r2 = r0 */
#line 52
	r2_0 += r3_0;                                            /* 77: r2 += r3 */
#line 52
	if (r2_0 >= r5_0) goto L88;                              /* 78: if r2 >= r5 goto 88 */
#line 33 "millrace/packet.h"
	p7_0 = p4_0;                                             /* 79: r7 = r4 */
#line 33
	p7_0 += (s64)r3_0;                                       /* 80: r7 += r3 */
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
	r3_0 += 4;                                               /* 86: r3 += 4 */
#line 50
	if ((u32)r3_0 != 40) goto L76;                           /* 87: if w3 != 40 goto 76 */
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
	if (r2_0 != 0xffffu) goto L643;                          /* 105: if r2 != 65535 goto 670 */
#line 75
	r7_0 = *(const mr_u64 *)s0_136;                          /* 106: r7 = *(u64 *)(r10 -136) */
#line 75
	r7_0 = (u32)r7_0 >> 8;                                   /* 107: w7 >>= 8 */
#line 47
	r2_0 = (u32)r7_0;                                        /* 108: w2 = w7 */
#line 47
	r2_0 = (u32)r2_0 & 255;                                  /* 109: w2 &= 255 */
#line 73 "millrace/flow4.h"
	if ((u32)r2_0 > 17) goto L115;                           /* 110: if w2 > 17 goto 115 */
#line 73
	r3_0 = 1;                                                /* 111: w3 = 1 */
#line 73
	r3_0 = (u32)r3_0 << ((u32)r2_0 & 31);                    /* 112: w3 <<= w2 */
#line 73
	r3_0 = (u32)r3_0 & 0x20042u;                             /* 113: w3 &= 131138 */
#line 73
	if ((u32)r3_0 != 0) goto L474;                           /* 114: if w3 != 0 goto 500 */
L115:
#line 34 "millrace/verdict.h"
	r0_0 = pkt->port;                                        /* 115: r0 = *(u32 *)(r1 +12) */
L116:
#line 34
	r0_0 = (u32)r0_0 & 0xffffffu;                            /* 116: w0 &= 16777215 */
#line 34
	r0_0 = (u32)r0_0 ^ 0x1000001u;                           /* 117: w0 ^= 16777217 */
#line 36 "nfs/firewall/firewall.c" /* } */
	return mr_verdict_handlers(pkt, r0_0);                   /* 118: exit */
L119:
#line 36
	r0_0 = 1;                                                /* 119: r0 = 0x1 ll */
#line 31 "millrace/packet.h"
	p6_0 = p3_0;                                             /* 121: r6 = r3 */
#line 31
	r5_0 = r7_0;                                             /* 122: r5 = r7 */
#line 31
	p6_0 += (s64)r7_0;                                       /* 123: r6 += r7 */
#line 33
	p2_0 = p6_0;                                             /* 124: r2 = r6 */
#line 33
	p2_0 += 40;                                              /* 125: r2 += 40 */
#line 33
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 126: if r2 > r4 goto 118 */
#line 40 "millrace/ipv6.h"
	r2_0 = *(const mr_u32 *)p6_0;                            /* 127: r2 = *(u32 *)(r6 +0) */
#line 40
	r2_0 = (u32)r2_0 & 240;                                  /* 128: w2 &= 240 */
#line 40
	if ((u32)r2_0 != 96) return mr_verdict_handlers(pkt, r0_0); /* 129: if w2 != 96 goto 118 */
#line 46 "millrace/packet.h"
	p2_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p4_0);     /* 130: w2 = w4 */
#line 46
	r2_0 = (u32)(u64)(uintptr_t)p2_0 - (u32)(u64)(uintptr_t)p3_0; /* 131: w2 -= w3 */
#line 46
	r7_0 = r5_0;                                             /* 132: r7 = r5 */
#line 42 "millrace/ipv6.h"
	r7_0 += 40;                                              /* 133: r7 += 40 */
#line 42
	r5_0 = *(const volatile mr_u16 *)(p6_0 + 4);             /* 134: r5 = *(u16 *)(r6 +4) */
#line 42
	r5_0 = __builtin_bswap16((u16)r5_0);                     /* 135: r5 = bswap16 r5 */
#line 42
	*(mr_u64 *)s0_136 = r7_0;                                /* 136: *(u64 *)(r10 -136) = r7 */
#line 42
	r7_0 += r5_0;                                            /* 137: r7 += r5 */
#line 42
	*(mr_u64 *)s0_144 = r7_0;                                /* 138: *(u64 *)(r10 -144) = r7 */
#line 42
	if (r7_0 > r2_0) return mr_verdict_handlers(pkt, r0_0);  /* 139: if r7 > r2 goto 118 */
#line 42
	r5_0 = 8;                                                /* 140: w5 = 8 */
#line 67 "millrace/flow.h"
	p9_0 = p6_0;                                             /* 141: r9 = r6 */
#line 67
	p9_0 += 6;                                               /* 142: r9 += 6 */
#line 67
	r2_0 = 0x100000000000ull;                                /* 143: r2 = 0x100000000000 ll */
#line 67
	*(mr_u64 *)s0_152 = r2_0;                                /* 145: *(u64 *)(r10 -152) = r2 */
#line 67
	r2_0 = 0x8000000000000ull;                               /* 146: r2 = 0x8000000000000 ll */
#line 67
	*(mr_u64 *)s0_160 = r2_0;                                /* 148: *(u64 *)(r10 -160) = r2 */
L146:
#line 67
	r7_0 = (u32)r5_0;                                        /* 149: w7 = w5 */
#line 67
	r5_0 = *(const volatile u8 *)p9_0;                       /* 150: r5 = *(u8 *)(r9 +0) */
#line 85 "millrace/ipv6.h"
	if (r5_0 > 63) goto L196;                                /* 151: if r5 > 63 goto 202 */
#line 85
	r2_0 = 0x1008180000000001ull;                            /* 152: r2 = 0x1008180000000001 ll */
#line 85
	r2_0 = r2_0 >> (r5_0 & 63);                              /* 154: r2 >>= r5 */
#line 85
	r2_0 &= 1;                                               /* 155: r2 &= 1 */
#line 85
	if (r2_0 == 0) goto L196;                                /* 156: if r2 == 0 goto 202 */
#line 31 "millrace/packet.h"
	r2_0 = *(const mr_u64 *)s0_136;                          /* 157: r2 = *(u64 *)(r10 -136) */
#line 31
	r2_0 = (u32)r2_0;                                        /* 158: w2 = w2 */
#line 31
	p9_0 = p3_0;                                             /* 159: r9 = r3 */
#line 31
	p9_0 += (s64)r2_0;                                       /* 160: r9 += r2 */
#line 31
	r0_0 = 1;                                                /* 161: r0 = 0x1 ll */
#line 33
	p2_0 = p9_0;                                             /* 163: r2 = r9 */
#line 33
	p2_0 += 8;                                               /* 164: r2 += 8 */
#line 33
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 165: if r2 > r4 goto 118 */
#line 33
	r2_0 = *(const mr_u64 *)s0_136;                          /* 166: r2 = *(u64 *)(r10 -136) */
#line 33
	r2_0 = (u32)r2_0 + 8;                                    /* 167: w2 += 8 */
#line 33
	r8_0 = *(const mr_u64 *)s0_144;                          /* 168: r8 = *(u64 *)(r10 -144) */
#line 33
	if ((u32)r2_0 > (u32)r8_0) return mr_verdict_handlers(pkt, r0_0); /* 169: if w2 > w8 goto 118 */
#line 68 "millrace/ipv6.h"
	r0_0 = *(const mr_u64 *)s0_152;                          /* 170: r0 = *(u64 *)(r10 -152) */
#line 68
	r0_0 = r0_0 >> (r5_0 & 63);                              /* 171: r0 >>= r5 */
#line 68
	r0_0 = (u32)r0_0 & 1;                                    /* 172: w0 &= 1 */
#line 68
	r0_0 = -(u32)r0_0;                                       /* 173: w0 = -w0 */
#line 96
	r2_0 = *(const mr_u16 *)(p9_0 + 2);                      /* 174: r2 = *(u16 *)(r9 +2) */
#line 96
	r2_0 = __builtin_bswap64((u64)r2_0);                     /* 175: r2 = bswap64 r2 */
#line 96
	r2_0 >>= 51;                                             /* 176: r2 >>= 51 */
#line 96
	r8_0 = (u32)r0_0;                                        /* 177: w8 = w0 */
#line 96
	r8_0 = (u32)r8_0 & (u32)r2_0;                            /* 178: w8 &= w2 */
#line 96
	if ((u32)r8_0 != 0) goto L457;                           /* 179: if w8 != 0 goto 479 */
#line 96
	r8_0 = *(const mr_u64 *)s0_160;                          /* 180: r8 = *(u64 *)(r10 -160) */
#line 96
	r8_0 = r8_0 >> (r5_0 & 63);                              /* 181: r8 >>= r5 */
#line 96
	r8_0 = (u32)r8_0 & 1;                                    /* 182: w8 &= 1 */
#line 96
	r8_0 = -(u32)r8_0;                                       /* 183: w8 = -w8 */
#line 103
	r0_0 = (u32)r0_0 ^ 0xffffffffu;                          /* 184: w0 ^= -1 */
#line 103
	r2_0 = *(const volatile u8 *)(p9_0 + 1);                 /* 185: r2 = *(u8 *)(r9 +1) */
#line 103
	r2_0 = (u32)r2_0 & (u32)r0_0;                            /* 186: w2 &= w0 */
	r2_0 = (u32)r2_0 - (u32)r8_0;                            /* 187: w2 -= w8 */
#line 104
	r2_0 = (u32)r2_0 + 1;                                    /* 188: w2 += 1 */
#line 104
	r8_0 = (u32)r8_0 + 3;                                    /* 189: w8 += 3 */
#line 104
	r2_0 = (u32)r2_0 << ((u32)r8_0 & 31);                    /* 190: w2 <<= w8 */
#line 104
	r5_0 = *(const mr_u64 *)s0_136;                          /* 191: r5 = *(u64 *)(r10 -136) */
#line 104
	r2_0 = (u32)r2_0 + (u32)r5_0;                            /* 192: w2 += w5 */
#line 104
	r0_0 = 1;                                                /* 193: r0 = 0x1 ll */
#line 104
	r5_0 = *(const mr_u64 *)s0_144;                          /* 195: r5 = *(u64 *)(r10 -144) */
#line 104
	if ((u32)r2_0 > (u32)r5_0) return mr_verdict_handlers(pkt, r0_0); /* 196: if w2 > w5 goto 118 */
#line 104
	r5_0 = (u32)r7_0;                                        /* 197: w5 = w7 */
#line 104
	r5_0 = (u32)r5_0 + 0xffffffffu;                          /* 198: w5 += -1 */
#line 104
	*(mr_u64 *)s0_136 = r2_0;                                /* 199: *(u64 *)(r10 -136) = r2 */
#line 104
	if ((u32)r7_0 == 0) return mr_verdict_handlers(pkt, r0_0); /* 200: if w7 == 0 goto 118 */
#line 104
	goto L146;                                               /* 201: goto 149 */
L196:
#line 72 "millrace/flow.h"
	if ((u32)r5_0 == 1) goto L115;                           /* 206: if w5 == 1 goto 115 */
#line 27
	r2_0 = *(const mr_u32 *)(p6_0 + 8);                      /* 207: r2 = *(u32 *)(r6 +8) */
#line 27
	r0_0 = *(const mr_u32 *)(p6_0 + 12);                     /* 208: r0 = *(u32 *)(r6 +12) */
#line 27
	r7_0 = *(const mr_u64 *)(p6_0 + 16);                     /* 209: r7 = *(u64 *)(r6 +16) */
	{                                                        /* stores in the order of addresses */
#line 27
		r0_0 <<= 32;                                     /* 211: r0 <<= 32 */
#line 27
		r0_0 |= r2_0;                                    /* 212: r0 |= r2 */
#line 27
		const u64 v206 = r0_0;                           /* 213: *(u64 *)(r10 -120) = r0 */
		r2_0 = *(const mr_u32 *)(p6_0 + 24);             /* 214: r2 = *(u32 *)(r6 +24) */
#line 28
		r0_0 = *(const mr_u32 *)(p6_0 + 28);             /* 215: r0 = *(u32 *)(r6 +28) */
#line 28
		r6_0 = *(const mr_u64 *)(p6_0 + 32);             /* 216: r6 = *(u64 *)(r6 +32) */
#line 28
		r0_0 <<= 32;                                     /* 219: r0 <<= 32 */
#line 28
		r0_0 |= r2_0;                                    /* 220: r0 |= r2 */
#line 27
		*(mr_u64 *)s0_120 = v206;                        /* 213: *(u64 *)(r10 -120) = r0 */
#line 27
		*(mr_u64 *)(s0_120 + 8) = r7_0;                  /* 210: *(u64 *)(r10 -112) = r7 */
		*(mr_u64 *)(s0_120 + 16) = r0_0;                 /* 221: *(u64 *)(r10 -104) = r0 */
#line 28
		*(mr_u64 *)(s0_120 + 24) = r6_0;                 /* 218: *(u64 *)(r10 -96) = r6 */
		*(u8 *)(s0_120 + 36) = (u8)r5_0;                 /* 217: *(u8 *)(r10 -84) = r5 */
		*(u8 *)(s0_120 + 37) = 6;                        /* 223: *(u8 *)(r10 -83) = 6 */
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 222: *(u16 *)(r10 -82) = 0 */
	}
#line 46 "millrace/transport.h"
	if ((u32)r5_0 == 17) goto L239;                          /* 224: if w5 == 17 goto 247 */
#line 46
	r6_0 = *(const mr_u64 *)s0_136;                          /* 225: r6 = *(u64 *)(r10 -136) */
#line 46
	if ((u32)r5_0 != 6) goto L250;                           /* 226: if w5 != 6 goto 259 */
#line 31 "millrace/packet.h"
	r2_0 = (u32)r6_0;                                        /* 227: w2 = w6 */
#line 31
	p3_0 += (s64)r2_0;                                       /* 228: r3 += r2 */
#line 31
	r0_0 = 1;                                                /* 229: r0 = 0x1 ll */
#line 33
	p2_0 = p3_0;                                             /* 231: r2 = r3 */
#line 33
	p2_0 += 20;                                              /* 232: r2 += 20 */
#line 33
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 233: if r2 > r4 goto 118 */
#line 49 "millrace/transport.h"
	r2_0 = *(const volatile u8 *)(p3_0 + 12);                /* 234: r2 = *(u8 *)(r3 +12) */
#line 49
	if ((u32)r2_0 < 80) return mr_verdict_handlers(pkt, r0_0); /* 235: if w2 < 80 goto 118 */
#line 49
	r2_0 = (u32)r2_0 >> 2;                                   /* 236: w2 >>= 2 */
#line 49
	r2_0 = (u32)r2_0 & 60;                                   /* 237: w2 &= 60 */
#line 49
	r4_0 = *(const mr_u64 *)s0_136;                          /* 238: r4 = *(u64 *)(r10 -136) */
#line 49
	r4_0 = (u32)r4_0 + (u32)r2_0;                            /* 239: w4 += w2 */
#line 49
	r2_0 = *(const mr_u64 *)s0_144;                          /* 240: r2 = *(u64 *)(r10 -144) */
#line 49
	if ((u32)r4_0 > (u32)r2_0) return mr_verdict_handlers(pkt, r0_0); /* 241: if w4 > w2 goto 118 */
L234:
#line 49
	r2_0 = *(const mr_u16 *)p3_0;                            /* 242: r2 = *(u16 *)(r3 +0) */
#line 49
	*(mr_u16 *)(s0_120 + 32) = (u16)r2_0;                    /* 243: *(u16 *)(r10 -88) = r2 */
#line 49
	r6_0 = *(const mr_u16 *)(p3_0 + 2);                      /* 244: r6 = *(u16 *)(r3 +2) */
L237:
#line 49
	*(mr_u16 *)(s0_120 + 34) = (u16)r6_0;                    /* 245: *(u16 *)(r10 -86) = r6 */
L419:
#line 29 "nfs/firewall/firewall.c" /* if (p->port == WAN) */
	r1_0 = pkt->port;                                        /* 438: r1 = *(u32 *)(r1 +12) */
#line 29
	if ((u32)r1_0 != 1) goto L432;                           /* 439: if w1 != 1 goto 450 */
#line 123 "millrace/flow.h"
	r1_0 = *(const mr_u64 *)s0_120;                          /* 440: r1 = *(u64 *)(r10 -120) */
#line 126
	r3_0 = *(const mr_u64 *)(s0_120 + 16);                   /* 441: r3 = *(u64 *)(r10 -104) */
#line 126
	*(mr_u64 *)s0_120 = r3_0;                                /* 442: *(u64 *)(r10 -120) = r3 */
#line 123
	r3_0 = *(const mr_u64 *)(s0_120 + 8);                    /* 443: r3 = *(u64 *)(r10 -112) */
#line 126
	r4_0 = *(const mr_u64 *)(s0_120 + 24);                   /* 444: r4 = *(u64 *)(r10 -96) */
	{                                                        /* stores in the order of addresses */
#line 126
		*(mr_u64 *)(s0_120 + 8) = r4_0;                  /* 445: *(u64 *)(r10 -112) = r4 */
		*(mr_u64 *)(s0_120 + 16) = r1_0;                 /* 446: *(u64 *)(r10 -104) = r1 */
#line 127
		*(mr_u64 *)(s0_120 + 24) = r3_0;                 /* 447: *(u64 *)(r10 -96) = r3 */
		*(mr_u16 *)(s0_120 + 32) = (u16)r6_0;            /* 449: *(u16 *)(r10 -88) = r6 */
		*(mr_u16 *)(s0_120 + 34) = (u16)r2_0;            /* 448: *(u16 *)(r10 -86) = r2 */
	}
L432:
#line 31 "nfs/firewall/firewall.c" /* if (map_refresh(&flows, &f)) */
	{                                                        /* 454: call map_refresh#65537 */
#line 31
		u64 key[] = { mr_load64(s0_120), mr_load64(s0_120 + 8), mr_load64(s0_120 + 16), mr_load64(s0_120 + 24), mr_load64(s0_120 + 32) };
#line 31
		const u64 token = slot_holds(slot, 1, key, 5) ? slot->token : hash_token(&self->o0_flows, &shape0_flows, key);
#line 31
		p0_0 = hash_map_refresh(&self->o0_flows, &shape0_flows, key, token, pkt);
#line 31
	}
#line 31
	r1_0 = pkt->port;                                        /* 456: r1 = *(u32 *)(r1 +12) */
#line 31
	if (!p0_0) goto L443;                                    /* 457: if r0 == 0 goto 462 */
	r1_0 = (u32)r1_0 & 0xffffffu;                            /* 458: w1 &= 16777215 */
#line 32 /* return FORWARD(peer(p)); */
	r1_0 = (u32)r1_0 ^ 0x1000001u;                           /* 459: w1 ^= 16777217 */
#line 32
	r0_0 = (u32)r1_0;                                        /* 460: w0 = w1 */
#line 32
	return mr_verdict_handlers(pkt, r0_0);                   /* 461: goto 118 */
L239:
#line 49 "millrace/transport.h"
	r0_0 = 1;                                                /* 247: r0 = 0x1 ll */
#line 31 "millrace/packet.h"
	r2_0 = *(const mr_u64 *)s0_136;                          /* 249: r2 = *(u64 *)(r10 -136) */
#line 31
	r2_0 = (u32)r2_0;                                        /* 250: w2 = w2 */
#line 31
	p3_0 += (s64)r2_0;                                       /* 251: r3 += r2 */
#line 33
	p5_0 = p3_0;                                             /* 252: r5 = r3 */
#line 33
	p5_0 += 8;                                               /* 253: r5 += 8 */
#line 33
	if (p5_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 254: if r5 > r4 goto 118 */
#line 33
	r2_0 += 8;                                               /* 255: r2 += 8 */
#line 33
	r4_0 = *(const mr_u64 *)s0_144;                          /* 256: r4 = *(u64 *)(r10 -144) */
#line 33
	if (r2_0 > r4_0) return mr_verdict_handlers(pkt, r0_0);  /* 257: if r2 > r4 goto 118 */
#line 62 "millrace/transport.h"
	goto L234;                                               /* 258: goto 242 */
L250:
#line 67
	if ((u32)r5_0 == 58) goto L253;                          /* 259: if w5 == 58 goto 262 */
#line 67
	goto L115;                                               /* 261: if w2 != 0 goto 115 */
L253:
#line 67
	r0_0 = 1;                                                /* 262: r0 = 0x1 ll */
#line 31 "millrace/packet.h"
	r2_0 = (u32)r6_0;                                        /* 264: w2 = w6 */
#line 31
	p5_0 = p3_0;                                             /* 265: r5 = r3 */
#line 31
	p5_0 += (s64)r2_0;                                       /* 266: r5 += r2 */
#line 33
	p6_0 = p5_0;                                             /* 267: r6 = r5 */
#line 33
	p6_0 += 8;                                               /* 268: r6 += 8 */
#line 33
	if (p6_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 269: if r6 > r4 goto 118 */
#line 33
	r2_0 += 8;                                               /* 270: r2 += 8 */
#line 33
	r6_0 = *(const mr_u64 *)s0_144;                          /* 271: r6 = *(u64 *)(r10 -144) */
#line 33
	if (r2_0 > r6_0) return mr_verdict_handlers(pkt, r0_0);  /* 272: if r2 > r6 goto 118 */
#line 73 "millrace/transport.h"
	r2_0 = *(const s8 *)p5_0;                                /* 273: r2 = *(s8 *)(r5 +0) */
#line 73
	r0_0 = (u32)r2_0;                                        /* 274: w0 = w2 */
#line 73
	r0_0 = (u32)r0_0 + 0xffffffffu;                          /* 275: w0 += -1 */
#line 73
	r0_0 = (u32)r0_0 & 255;                                  /* 276: w0 &= 255 */
#line 73
	if ((u32)r0_0 < 4) goto L274;                            /* 277: if w0 < 4 goto 284 */
#line 30
	if ((s32)r2_0 > -127) goto L115;                         /* 278: if w2 s> -127 goto 115 */
#line 32
	if ((u32)r2_0 != 0xffffff80u) goto L347;                 /* 279: if w2 != -128 goto 363 */
#line 32
	r6_0 = 0;                                                /* 280: w6 = 0 */
#line 32
	r2_0 = *(const mr_u16 *)(p5_0 + 4);                      /* 281: r2 = *(u16 *)(r5 +4) */
#line 32
	*(mr_u16 *)(s0_120 + 32) = (u16)r2_0;                    /* 282: *(u16 *)(r10 -88) = r2 */
#line 32
	goto L237;                                               /* 283: goto 245 */
L274:
#line 32
	r0_0 = 1;                                                /* 284: r0 = 0x1 ll */
#line 32
	r2_0 = *(const mr_u64 *)s0_136;                          /* 286: r2 = *(u64 *)(r10 -136) */
#line 78 "millrace/flow.h"
	r2_0 = (u32)r2_0 + 8;                                    /* 287: w2 += 8 */
#line 31 "millrace/packet.h"
	p7_0 = p3_0;                                             /* 288: r7 = r3 */
#line 31
	r5_0 = r2_0;                                             /* 289: r5 = r2 */
#line 31
	p7_0 += (s64)r2_0;                                       /* 290: r7 += r2 */
#line 33
	p2_0 = p7_0;                                             /* 291: r2 = r7 */
#line 33
	p2_0 += 40;                                              /* 292: r2 += 40 */
#line 33
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 293: if r2 > r4 goto 118 */
#line 42 "millrace/flow.h"
	r5_0 += 40;                                              /* 294: r5 += 40 */
#line 42
	r6_0 = r5_0;                                             /* 295: r6 = r5 */
#line 42
	r2_0 = *(const mr_u64 *)s0_144;                          /* 296: r2 = *(u64 *)(r10 -144) */
#line 42
	if (r5_0 > r2_0) return mr_verdict_handlers(pkt, r0_0);  /* 297: if r5 > r2 goto 118 */
	r2_0 = *(const mr_u32 *)p7_0;                            /* 298: r2 = *(u32 *)(r7 +0) */
#line 43
	r2_0 = (u32)r2_0 & 240;                                  /* 299: w2 &= 240 */
#line 42
	if ((u32)r2_0 != 96) return mr_verdict_handlers(pkt, r0_0); /* 300: if w2 != 96 goto 118 */
#line 42
	r8_0 = 8;                                                /* 301: w8 = 8 */
#line 45
	p5_0 = p7_0;                                             /* 302: r5 = r7 */
#line 45
	p5_0 += 6;                                               /* 303: r5 += 6 */
#line 45
	r2_0 = 0x100000000000ull;                                /* 304: r2 = 0x100000000000 ll */
#line 45
	*(mr_u64 *)s0_136 = r2_0;                                /* 306: *(u64 *)(r10 -136) = r2 */
#line 45
	r2_0 = 0x8000000000000ull;                               /* 307: r2 = 0x8000000000000 ll */
#line 45
	*(mr_u64 *)s0_152 = r2_0;                                /* 309: *(u64 *)(r10 -152) = r2 */
#line 45
	*(mr_pointer *)s0_184 = (u8 *)pkt;                       /* 310: *(u64 *)(r10 -184) = r1 */
L298:
#line 45
	r9_0 = (u32)r8_0;                                        /* 311: w9 = w8 */
#line 45
	r8_0 = *(const volatile u8 *)p5_0;                       /* 312: r8 = *(u8 *)(r5 +0) */
#line 85 "millrace/ipv6.h"
	if (r8_0 > 63) goto L351;                                /* 313: if r8 > 63 goto 367 */
#line 85
	r1_0 = 0x1008180000000001ull;                            /* 314: r1 = 0x1008180000000001 ll */
#line 85
	r1_0 = r1_0 >> (r8_0 & 63);                              /* 316: r1 >>= r8 */
#line 85
	r1_0 &= 1;                                               /* 317: r1 &= 1 */
#line 85
	if (r1_0 == 0) goto L351;                                /* 318: if r1 == 0 goto 367 */
#line 31 "millrace/packet.h"
	r1_0 = (u32)r6_0;                                        /* 319: w1 = w6 */
#line 31
	p5_0 = p3_0;                                             /* 320: r5 = r3 */
#line 31
	p5_0 += (s64)r1_0;                                       /* 321: r5 += r1 */
#line 31
	r0_0 = 1;                                                /* 322: r0 = 0x1 ll */
#line 33
	p1_0 = p5_0;                                             /* 324: r1 = r5 */
#line 33
	p1_0 += 8;                                               /* 325: r1 += 8 */
#line 33
	if (p1_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 326: if r1 > r4 goto 118 */
#line 33
	r1_0 = (u32)r6_0;                                        /* 327: w1 = w6 */
#line 33
	r1_0 = (u32)r1_0 + 8;                                    /* 328: w1 += 8 */
#line 33
	r2_0 = *(const mr_u64 *)s0_144;                          /* 329: r2 = *(u64 *)(r10 -144) */
#line 33
	if ((u32)r1_0 > (u32)r2_0) return mr_verdict_handlers(pkt, r0_0); /* 330: if w1 > w2 goto 118 */
#line 68 "millrace/ipv6.h"
	r1_0 = *(const mr_u64 *)s0_136;                          /* 331: r1 = *(u64 *)(r10 -136) */
#line 68
	r1_0 = r1_0 >> (r8_0 & 63);                              /* 332: r1 >>= r8 */
#line 68
	r1_0 = (u32)r1_0 & 1;                                    /* 333: w1 &= 1 */
#line 68
	r1_0 = -(u32)r1_0;                                       /* 334: w1 = -w1 */
#line 96
	r2_0 = *(const mr_u16 *)(p5_0 + 2);                      /* 335: r2 = *(u16 *)(r5 +2) */
#line 96
	r2_0 = __builtin_bswap64((u64)r2_0);                     /* 336: r2 = bswap64 r2 */
#line 96
	r2_0 >>= 51;                                             /* 337: r2 >>= 51 */
#line 96
	r0_0 = (u32)r1_0;                                        /* 338: w0 = w1 */
#line 96
	r0_0 = (u32)r0_0 & (u32)r2_0;                            /* 339: w0 &= w2 */
#line 96
	if ((u32)r0_0 != 0) goto L386;                           /* 340: if w0 != 0 goto 403 */
#line 96
	r0_0 = *(const mr_u64 *)s0_152;                          /* 341: r0 = *(u64 *)(r10 -152) */
#line 96
	r0_0 = r0_0 >> (r8_0 & 63);                              /* 342: r0 >>= r8 */
#line 96
	r0_0 = (u32)r0_0 & 1;                                    /* 343: w0 &= 1 */
#line 96
	r0_0 = -(u32)r0_0;                                       /* 344: w0 = -w0 */
#line 103
	r1_0 = (u32)r1_0 ^ 0xffffffffu;                          /* 345: w1 ^= -1 */
#line 103
	r2_0 = *(const volatile u8 *)(p5_0 + 1);                 /* 346: r2 = *(u8 *)(r5 +1) */
#line 103
	r2_0 = (u32)r2_0 & (u32)r1_0;                            /* 347: w2 &= w1 */
	r2_0 = (u32)r2_0 - (u32)r0_0;                            /* 348: w2 -= w0 */
#line 104
	r2_0 = (u32)r2_0 + 1;                                    /* 349: w2 += 1 */
#line 104
	r0_0 = (u32)r0_0 + 3;                                    /* 350: w0 += 3 */
#line 104
	r2_0 = (u32)r2_0 << ((u32)r0_0 & 31);                    /* 351: w2 <<= w0 */
#line 104
	r2_0 = (u32)r2_0 + (u32)r6_0;                            /* 352: w2 += w6 */
#line 104
	r0_0 = 1;                                                /* 353: r0 = 0x1 ll */
#line 104
	r6_0 = *(const mr_u64 *)s0_144;                          /* 356: r6 = *(u64 *)(r10 -144) */
#line 104
	if ((u32)r2_0 > (u32)r6_0) return mr_verdict_handlers(pkt, r0_0); /* 357: if w2 > w6 goto 118 */
#line 104
	r8_0 = (u32)r9_0;                                        /* 358: w8 = w9 */
#line 104
	r8_0 = (u32)r8_0 + 0xffffffffu;                          /* 359: w8 += -1 */
#line 104
	r6_0 = (u32)r2_0;                                        /* 360: w6 = w2 */
#line 104
	if ((u32)r9_0 == 0) return mr_verdict_handlers(pkt, r0_0); /* 361: if w9 == 0 goto 118 */
#line 104
	goto L298;                                               /* 362: goto 311 */
L347:
#line 104
	r2_0 = 0;                                                /* 363: w2 = 0 */
#line 32 "millrace/transport.h"
	*(mr_u16 *)(s0_120 + 32) = 0;                            /* 364: *(u16 *)(r10 -88) = 0 */
	r6_0 = *(const mr_u16 *)(p5_0 + 4);                      /* 365: r6 = *(u16 *)(r5 +4) */
#line 33
	goto L237;                                               /* 366: goto 245 */
L351:
#line 33
	r0_0 = 1;                                                /* 367: r0 = 0x1 ll */
#line 27 "millrace/flow.h"
	r1_0 = *(const mr_u32 *)(p7_0 + 8);                      /* 370: r1 = *(u32 *)(r7 +8) */
#line 27
	r2_0 = *(const mr_u32 *)(p7_0 + 12);                     /* 371: r2 = *(u32 *)(r7 +12) */
#line 27
	r5_0 = *(const mr_u64 *)(p7_0 + 16);                     /* 372: r5 = *(u64 *)(r7 +16) */
	{                                                        /* stores in the order of addresses */
#line 27
		r2_0 <<= 32;                                     /* 374: r2 <<= 32 */
#line 27
		r2_0 |= r1_0;                                    /* 375: r2 |= r1 */
#line 27
		const u64 v359 = r2_0;                           /* 376: *(u64 *)(r10 -120) = r2 */
		r1_0 = *(const mr_u32 *)(p7_0 + 24);             /* 377: r1 = *(u32 *)(r7 +24) */
#line 28
		r2_0 = *(const mr_u32 *)(p7_0 + 28);             /* 378: r2 = *(u32 *)(r7 +28) */
#line 28
		r2_0 <<= 32;                                     /* 379: r2 <<= 32 */
#line 28
		r2_0 |= r1_0;                                    /* 380: r2 |= r1 */
#line 28
		r1_0 = *(const mr_u64 *)(p7_0 + 32);             /* 381: r1 = *(u64 *)(r7 +32) */
#line 28
		const u64 v366 = r1_0;                           /* 383: *(u64 *)(r10 -96) = r1 */
#line 28
		const u64 v367 = r2_0;                           /* 384: *(u64 *)(r10 -104) = r2 */
#line 31 "millrace/packet.h"
		r1_0 = (u32)r6_0;                                /* 385: w1 = w6 */
#line 31
		p3_0 += (s64)r1_0;                               /* 386: r3 += r1 */
#line 33
		p2_0 = p3_0;                                     /* 387: r2 = r3 */
#line 33
		p2_0 += 8;                                       /* 388: r2 += 8 */
#line 27 "millrace/flow.h"
		*(mr_u64 *)s0_120 = v359;                        /* 376: *(u64 *)(r10 -120) = r2 */
#line 27
		*(mr_u64 *)(s0_120 + 8) = r5_0;                  /* 373: *(u64 *)(r10 -112) = r5 */
		*(mr_u64 *)(s0_120 + 16) = v367;                 /* 384: *(u64 *)(r10 -104) = r2 */
#line 28
		*(mr_u64 *)(s0_120 + 24) = v366;                 /* 383: *(u64 *)(r10 -96) = r1 */
		*(u8 *)(s0_120 + 36) = (u8)r8_0;                 /* 382: *(u8 *)(r10 -84) = r8 */
		*(u8 *)(s0_120 + 37) = 6;                        /* 390: *(u8 *)(r10 -83) = 6 */
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 389: *(u16 *)(r10 -82) = 0 */
	}
#line 33 "millrace/packet.h"
	if (p2_0 > p4_0) return mr_verdict_handlers(pkt, r0_0);  /* 391: if r2 > r4 goto 118 */
#line 33
	r1_0 += 8;                                               /* 392: r1 += 8 */
#line 33
	r2_0 = *(const mr_u64 *)s0_144;                          /* 393: r2 = *(u64 *)(r10 -144) */
#line 33
	if (r1_0 > r2_0) return mr_verdict_handlers(pkt, r0_0);  /* 394: if r1 > r2 goto 118 */
#line 94 "millrace/transport.h"
	if ((u32)r8_0 == 17) goto L380;                          /* 395: if w8 == 17 goto 397 */
#line 94
	if ((u32)r8_0 != 6) goto L389;                           /* 396: if w8 != 6 goto 407 */
L380:
#line 95
	r1_0 = *(const mr_u16 *)p3_0;                            /* 397: r1 = *(u16 *)(r3 +0) */
#line 95
	*(mr_u16 *)(s0_120 + 32) = (u16)r1_0;                    /* 398: *(u16 *)(r10 -88) = r1 */
	r1_0 = *(const mr_u16 *)(p3_0 + 2);                      /* 399: r1 = *(u16 *)(r3 +2) */
L383:
#line 96
	*(mr_u16 *)(s0_120 + 34) = (u16)r1_0;                    /* 400: *(u16 *)(r10 -86) = r1 */
L462:
#line 23 "nfs/firewall/firewall.c" /* if (p->port == WAN && !map_get(&flows, &f)) */
	r0_0 = pkt->port;                                        /* 487: r0 = *(u32 *)(r1 +12) */
#line 23
	if ((u32)r0_0 != 1) goto L116;                           /* 488: if w0 != 1 goto 116 */
#line 23
	{                                                        /* 493: call map_get#65536 */
#line 23
		u64 key[] = { mr_load64(s0_120), mr_load64(s0_120 + 8), mr_load64(s0_120 + 16), mr_load64(s0_120 + 24), mr_load64(s0_120 + 32) };
#line 23
		const u64 token = slot_holds(slot, 2, key, 5) ? slot->token : hash_token(&self->o0_flows, &shape0_flows, key);
#line 23
		p0_0 = hash_map_get(&self->o0_flows, &shape0_flows, key, token, pkt);
#line 23
	}
#line 23
	p1_0 = p0_0;                                             /* 494: r1 = r0 */
#line 23
	r0_0 = 3;                                                /* 495: r0 = 0x3 ll */
#line 23
	if (!p1_0) return mr_verdict_handlers(pkt, r0_0);        /* 497: if r1 == 0 goto 118 */
#line 34 "millrace/verdict.h"
	r0_0 = pkt->port;                                        /* 498: r0 = *(u32 *)(r6 +12) */
#line 34
	goto L116;                                               /* 499: goto 116 */
L386:
L460:
#line 68 "millrace/flow.h"
	r0_0 = 2;                                                /* 483: r0 = 0x2 ll */
#line 13 "nfs/firewall/firewall.c" /* switch (packet_find_flow(p, &f)) { */
	return mr_verdict_handlers(pkt, r0_0);                   /* 485: goto 118 */
L389:
#line 99 "millrace/transport.h"
	if ((u32)r8_0 == 58) goto L401;                          /* 407: if w8 == 58 goto 419 */
#line 99
	if ((u32)r8_0 != 1) goto L115;                           /* 409: if w8 != 1 goto 115 */
#line 99
	r2_0 = 8;                                                /* 410: w2 = 8 */
#line 99
	r4_0 = 0;                                                /* 411: w4 = 0 */
#line 102
	r5_0 = *(const volatile u8 *)p3_0;                       /* 412: r5 = *(u8 *)(r3 +0) */
#line 102
	if ((u32)r5_0 > 12) goto L409;                           /* 413: if w5 > 12 goto 427 */
#line 102
	r7_0 = 1;                                                /* 414: w7 = 1 */
#line 102
	r7_0 = (u32)r7_0 << ((u32)r5_0 & 31);                    /* 415: w7 <<= w5 */
#line 102
	r7_0 = (u32)r7_0 & 0x1838u;                              /* 416: w7 &= 6200 */
#line 102
	if ((u32)r7_0 != 0) return mr_verdict_handlers(pkt, r0_0); /* 417: if w7 != 0 goto 118 */
L409:
#line 30
	if ((u32)r2_0 == (u32)r5_0) goto L411;                   /* 427: if w2 == w5 goto 429 */
#line 30
	if ((u32)r4_0 != (u32)r5_0) goto L115;                   /* 428: if w4 != w5 goto 115 */
L411:
	if ((u32)r2_0 != (u32)r5_0) goto L416;                   /* 429: if w2 != w5 goto 434 */
#line 32
	r1_0 = *(const mr_u16 *)(p3_0 + 4);                      /* 430: r1 = *(u16 *)(r3 +4) */
#line 32
	*(mr_u16 *)(s0_120 + 32) = (u16)r1_0;                    /* 431: *(u16 *)(r10 -88) = r1 */
#line 32
	r1_0 = 0;                                                /* 432: w1 = 0 */
#line 32
	goto L383;                                               /* 433: goto 400 */
L401:
#line 102
	r2_0 = 128;                                              /* 419: w2 = 128 */
#line 102
	r4_0 = 129;                                              /* 420: w4 = 129 */
#line 102
	r5_0 = *(const volatile u8 *)p3_0;                       /* 421: r5 = *(u8 *)(r3 +0) */
#line 102
	r7_0 = (u32)r5_0;                                        /* 422: w7 = w5 */
#line 102
	r7_0 = (u32)r7_0 + 0xffffffffu;                          /* 423: w7 += -1 */
#line 102
	r7_0 = (u32)r7_0 & 255;                                  /* 424: w7 &= 255 */
#line 102
	if ((u32)r7_0 < 4) return mr_verdict_handlers(pkt, r0_0); /* 426: if w7 < 4 goto 118 */
#line 102
	goto L409;
L416:
#line 32
	*(mr_u16 *)(s0_120 + 32) = 0;                            /* 434: *(u16 *)(r10 -88) = 0 */
	r1_0 = *(const mr_u16 *)(p3_0 + 4);                      /* 435: r1 = *(u16 *)(r3 +4) */
#line 33
	goto L383;                                               /* 436: goto 400 */
L443:
#line 32 "nfs/firewall/firewall.c" /* return FORWARD(peer(p)); */
	r0_0 = 3;                                                /* 462: r0 = 0x3 ll */
	if ((u32)r1_0 == 1) return mr_verdict_handlers(pkt, r0_0); /* 464: if w1 == 1 goto 118 */
#line 35 /* return map_put(&flows, &f, &(struct session){}) ? FORWARD(peer(p)) : DROP_BECAUSE(table_full); */
	*(mr_u64 *)s0_128 = 0;                                   /* 465: *(u64 *)(r10 -128) = 0 */
#line 35
	{                                                        /* 472: call map_put#65538 */
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
	p1_0 = p0_0;                                             /* 473: r1 = r0 */
#line 35
	r0_0 = 4;                                                /* 474: r0 = 0x4 ll */
#line 35
	if (!p1_0) return mr_verdict_handlers(pkt, r0_0);        /* 476: if r1 == 0 goto 118 */
#line 34 "millrace/verdict.h"
	r0_0 = pkt->port;                                        /* 477: r0 = *(u32 *)(r7 +12) */
#line 34
	goto L116;                                               /* 478: goto 116 */
L457:
#line 68 "millrace/flow.h"
	goto L460;                                               /* 482: if w1 == 0 goto 118 */
L474:
#line 34 "millrace/verdict.h"
	r2_0 = *(const mr_u64 *)s0_144;                          /* 500: r2 = *(u64 *)(r10 -144) */
#line 76 "millrace/flow4.h"
	r2_0 = (u32)r2_0 & 0xff1f0000u;                          /* 501: w2 &= -14745600 */
#line 76
	if ((u32)r2_0 != 0) goto L460;                           /* 502: if w2 != 0 goto 483 */
#line 76
	r2_0 = *(const mr_u64 *)s0_152;                          /* 503: r2 = *(u64 *)(r10 -152) */
#line 76
	r2_0 = (u32)r2_0 >> 16;                                  /* 504: w2 >>= 16 */
#line 78
	*(mr_pointer *)s0_48 = p4_0;                             /* 505: *(u64 *)(r10 -48) = r4 */
	r2_0 = __builtin_bswap16((u16)r2_0);                     /* 506: r2 = bswap16 r2 */
#line 79
	r5_0 = r9_0;                                             /* 507: r5 = r9 */
#line 79
	r8_0 = (u32)r5_0;                                        /* 508: w8 = w5 */
#line 79
	r8_0 = (u32)r8_0 + (u32)r2_0;                            /* 509: w8 += w2 */
#line 79
	*(mr_u32 *)s0_4 = (u32)r8_0;                             /* 510: *(u32 *)(r10 -4) = r8 */
#line 34
	*(mr_u16 *)s0_50 = 0;                                    /* 511: *(u16 *)(r10 -50) = 0 */
#line 34
	*(u8 *)s0_51 = 0;                                        /* 512: *(u8 *)(r10 -51) = 0 */
#line 81
	r2_0 = *(const volatile u8 *)p4_0;                       /* 513: r2 = *(u8 *)(r4 +0) */
#line 81
	r2_0 = (u32)r2_0 << 2;                                   /* 514: w2 <<= 2 */
#line 81
	r2_0 = (u32)r2_0 & 60;                                   /* 515: w2 &= 60 */
#line 81
	r5_0 = (u32)r5_0 + (u32)r2_0;                            /* 516: w5 += w2 */
	r0_0 = *(const u8 *)(p4_0 + 9);                          /* 517: r0 = *(u8 *)(r4 +9) */
#line 46 "millrace/transport.h"
	if ((u32)r0_0 == 17) goto L528;                          /* 518: if w0 == 17 goto 555 */
#line 46
	r9_0 = r7_0;                                             /* 519: r9 = r7 */
#line 46
	if ((u32)r0_0 != 6) goto L537;                           /* 520: if w0 != 6 goto 564 */
#line 46
	p2_0 = *(mr_pointer *)s0_160;                            /* 521: r2 = *(u64 *)(r10 -160) */
#line 31 "millrace/packet.h"
	p2_0 += (s64)r5_0;                                       /* 522: r2 += r5 */
#line 31
	p3_0 = p2_0;                                             /* 523: r3 = r2 */
#line 33
	p2_0 += 20;                                              /* 524: r2 += 20 */
#line 33
	if (p2_0 > p6_0) goto L643;                              /* 525: if r2 > r6 goto 670 */
#line 49 "millrace/transport.h"
	r2_0 = *(const volatile u8 *)(p3_0 + 12);                /* 526: r2 = *(u8 *)(r3 +12) */
#line 49
	if ((u32)r2_0 < 80) goto L643;                           /* 527: if w2 < 80 goto 670 */
#line 49
	r2_0 = (u32)r2_0 >> 2;                                   /* 528: w2 >>= 2 */
#line 49
	r2_0 = (u32)r2_0 & 60;                                   /* 529: w2 &= 60 */
#line 49
	r5_0 = (u32)r5_0 + (u32)r2_0;                            /* 530: w5 += w2 */
#line 49
	if ((u32)r5_0 > (u32)r8_0) goto L643;                    /* 531: if w5 > w8 goto 670 */
L506:
#line 49
	r8_0 = 1;                                                /* 532: w8 = 1 */
#line 49
	r2_0 = *(const mr_u16 *)p3_0;                            /* 533: r2 = *(u16 *)(r3 +0) */
#line 49
	*(mr_u16 *)s0_56 = (u16)r2_0;                            /* 534: *(u16 *)(r10 -56) = r2 */
#line 49
	r6_0 = *(const mr_u16 *)(p3_0 + 2);                      /* 535: r6 = *(u16 *)(r3 +2) */
L510:
	{                                                        /* stores in the order of addresses */
#line 98 "millrace/flow.h"
		*(mr_u16 *)(s0_120 + 32) = (u16)r2_0;            /* 538: *(u16 *)(r10 -88) = r2 */
#line 98
		*(mr_u16 *)(s0_120 + 34) = (u16)r6_0;            /* 537: *(u16 *)(r10 -86) = r6 */
#line 98
		*(u8 *)(s0_120 + 36) = (u8)r9_0;                 /* 536: *(u8 *)(r10 -84) = r9 */
	}
#line 98
	r4_0 = *(const mr_u64 *)s0_176;                          /* 539: r4 = *(u64 *)(r10 -176) */
#line 98
	r4_0 <<= 32;                                             /* 540: r4 <<= 32 */
#line 98
	r3_0 = 0xffff0000u;                                      /* 541: r3 = 0xffff0000 ll */
#line 98
	r4_0 |= r3_0;                                            /* 543: r4 |= r3 */
#line 98
	*(mr_u64 *)(s0_120 + 24) = r4_0;                         /* 544: *(u64 *)(r10 -96) = r4 */
#line 98
	r4_0 = *(const mr_u64 *)s0_168;                          /* 545: r4 = *(u64 *)(r10 -168) */
#line 98
	r4_0 <<= 32;                                             /* 546: r4 <<= 32 */
#line 98
	r4_0 |= r3_0;                                            /* 547: r4 |= r3 */
	{                                                        /* stores in the order of addresses */
#line 98
		*(mr_u64 *)s0_120 = 0;                           /* 552: *(u64 *)(r10 -120) = 0 */
#line 98
		*(mr_u64 *)(s0_120 + 8) = r4_0;                  /* 548: *(u64 *)(r10 -112) = r4 */
#line 98
		*(mr_u64 *)(s0_120 + 16) = 0;                    /* 551: *(u64 *)(r10 -104) = 0 */
#line 98
		*(u8 *)(s0_120 + 37) = 4;                        /* 550: *(u8 *)(r10 -83) = 4 */
#line 98
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 549: *(u16 *)(r10 -82) = 0 */
	}
#line 13 "nfs/firewall/firewall.c" /* switch (packet_find_flow(p, &f)) { */
	if ((u32)r8_0 != 0) goto L419;                           /* 553: if w8 != 0 goto 437 */
#line 13
	goto L462;                                               /* 554: goto 486 */
L528:
#line 13
	r9_0 = r7_0;                                             /* 555: r9 = r7 */
#line 13
	p2_0 = *(mr_pointer *)s0_160;                            /* 556: r2 = *(u64 *)(r10 -160) */
#line 31 "millrace/packet.h"
	p2_0 += (s64)r5_0;                                       /* 557: r2 += r5 */
#line 31
	p3_0 = p2_0;                                             /* 558: r3 = r2 */
#line 33
	p2_0 += 8;                                               /* 559: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L643;                              /* 560: if r2 > r6 goto 670 */
#line 33
	r5_0 += 8;                                               /* 561: r5 += 8 */
#line 33
	if (r5_0 > r8_0) goto L643;                              /* 562: if r5 > r8 goto 670 */
#line 33
	goto L506;                                               /* 563: goto 532 */
L537:
#line 67 "millrace/transport.h"
	if ((u32)r0_0 == 58) goto L539;                          /* 564: if w0 == 58 goto 566 */
#line 67
	if ((u32)r0_0 != 1) goto L115;                           /* 565: if w0 != 1 goto 115 */
L539:
#line 31 "millrace/packet.h"
	p3_0 = *(mr_pointer *)s0_160;                            /* 566: r3 = *(u64 *)(r10 -160) */
#line 31
	p3_0 += (s64)r5_0;                                       /* 567: r3 += r5 */
#line 33
	p2_0 = p3_0;                                             /* 568: r2 = r3 */
#line 33
	p2_0 += 8;                                               /* 569: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L643;                              /* 570: if r2 > r6 goto 670 */
#line 33
	r2_0 = r5_0;                                             /* 571: r2 = r5 */
#line 33
	r2_0 += 8;                                               /* 572: r2 += 8 */
#line 33
	if (r2_0 > r8_0) goto L643;                              /* 573: if r2 > r8 goto 670 */
#line 33
	r4_0 = r5_0;                                             /* 574: r4 = r5 */
#line 72 "millrace/transport.h"
	*(mr_pointer *)s0_40 = p3_0;                             /* 576: *(u64 *)(r10 -40) = r3 */
#line 72
	*(mr_u32 *)s0_32 = 1;                                    /* 577: *(u32 *)(r10 -32) = 1 */
	r5_0 = *(const volatile u8 *)p3_0;                       /* 578: r5 = *(u8 *)(r3 +0) */
#line 73
	if ((u32)r0_0 != 1) goto L611;                           /* 579: if w0 != 1 goto 638 */
#line 73
	r0_0 = 8;                                                /* 580: w0 = 8 */
#line 73
	r2_0 = 0;                                                /* 581: w2 = 0 */
#line 73
	if ((u32)r5_0 > 12) goto L617;                           /* 582: if w5 > 12 goto 644 */
#line 73
	r1_0 = 1;                                                /* 583: w1 = 1 */
#line 73
	r1_0 = (u32)r1_0 << ((u32)r5_0 & 31);                    /* 584: w1 <<= w5 */
#line 73
	r1_0 = (u32)r1_0 & 0x1838u;                              /* 585: w1 &= 6200 */
#line 73
	if ((u32)r1_0 != 0) goto L561;                           /* 586: if w1 != 0 goto 588 */
L617:
#line 30
	if ((u32)r2_0 == (u32)r5_0) goto L620;                   /* 645: if w2 == w5 goto 647 */
#line 30
	if ((u32)r0_0 != (u32)r5_0) goto L115;                   /* 646: if w0 != w5 goto 115 */
L620:
	if ((u32)r0_0 != (u32)r5_0) goto L625;                   /* 647: if w0 != w5 goto 652 */
#line 32
	r8_0 = 1;                                                /* 648: w8 = 1 */
#line 32
	r6_0 = 0;                                                /* 649: w6 = 0 */
#line 32
	r2_0 = *(const mr_u16 *)(p3_0 + 4);                      /* 650: r2 = *(u16 *)(r3 +4) */
L629:
#line 33
	goto L510;                                               /* 657: goto 536 */
L561:
#line 73
	r2_0 = r4_0;                                             /* 588: r2 = r4 */
#line 85 "millrace/flow4.h"
	r2_0 = (u32)r2_0 + 8;                                    /* 589: w2 += 8 */
#line 85
	p5_0 = *(mr_pointer *)s0_160;                            /* 590: r5 = *(u64 *)(r10 -160) */
#line 31 "millrace/packet.h"
	p1_0 = p5_0;                                             /* 591: r1 = r5 */
#line 31
	r4_0 = r2_0;                                             /* 592: r4 = r2 */
#line 31
	p1_0 += (s64)r2_0;                                       /* 593: r1 += r2 */
#line 33
	p2_0 = p1_0;                                             /* 594: r2 = r1 */
#line 33
	p2_0 += 20;                                              /* 595: r2 += 20 */
#line 33
	if (p2_0 > p6_0) goto L643;                              /* 596: if r2 > r6 goto 670 */
#line 44 "millrace/flow4.h"
	r3_0 = *(const volatile u8 *)p1_0;                       /* 597: r3 = *(u8 *)(r1 +0) */
#line 44
	r2_0 = (u32)r3_0;                                        /* 598: w2 = w3 */
#line 44
	r2_0 = (u32)r2_0 & 240;                                  /* 599: w2 &= 240 */
#line 44
	if ((u32)r2_0 != 64) goto L643;                          /* 600: if w2 != 64 goto 670 */
#line 46
	r3_0 = (u32)r3_0 << 2;                                   /* 601: w3 <<= 2 */
#line 46
	r3_0 = (u32)r3_0 & 60;                                   /* 602: w3 &= 60 */
	if ((u32)r3_0 < 20) goto L643;                           /* 603: if w3 < 20 goto 670 */
#line 47
	r3_0 = (u32)r3_0 + (u32)r4_0;                            /* 604: w3 += w4 */
#line 47
	if ((u32)r3_0 > (u32)r8_0) goto L643;                    /* 605: if w3 > w8 goto 670 */
#line 49
	r2_0 = *(const mr_u16 *)(p1_0 + 6);                      /* 606: r2 = *(u16 *)(r1 +6) */
#line 49
	r2_0 = (u32)r2_0 & 0xff1fu;                              /* 607: w2 &= 65311 */
#line 49
	if ((u32)r2_0 != 0) goto L460;                           /* 608: if w2 != 0 goto 483 */
#line 31
	r2_0 = *(const mr_u32 *)(p1_0 + 12);                     /* 609: r2 = *(u32 *)(r1 +12) */
#line 31
	*(mr_u64 *)s0_168 = r2_0;                                /* 610: *(u64 *)(r10 -168) = r2 */
#line 31
	*(mr_u32 *)s0_64 = (u32)r2_0;                            /* 611: *(u32 *)(r10 -64) = r2 */
	r2_0 = *(const mr_u32 *)(p1_0 + 16);                     /* 612: r2 = *(u32 *)(r1 +16) */
#line 32
	*(mr_u64 *)s0_176 = r2_0;                                /* 613: *(u64 *)(r10 -176) = r2 */
#line 32
	*(mr_u32 *)s0_60 = (u32)r2_0;                            /* 614: *(u32 *)(r10 -60) = r2 */
	r2_0 = *(const u8 *)(p1_0 + 9);                          /* 615: r2 = *(u8 *)(r1 +9) */
#line 53
	*(mr_u32 *)s0_8 = (u32)r3_0;                             /* 616: *(u32 *)(r10 -8) = r3 */
#line 31 "millrace/packet.h"
	p5_0 += (s64)r3_0;                                       /* 617: r5 += r3 */
#line 31
	r9_0 = r2_0;                                             /* 618: r9 = r2 */
#line 33 "millrace/flow4.h"
	*(u8 *)s0_52 = (u8)r2_0;                                 /* 619: *(u8 *)(r10 -52) = r2 */
#line 52
	*(mr_pointer *)s0_24 = p1_0;                             /* 620: *(u64 *)(r10 -24) = r1 */
#line 34
	*(mr_u16 *)s0_50 = 0;                                    /* 621: *(u16 *)(r10 -50) = 0 */
#line 34
	*(u8 *)s0_51 = 0;                                        /* 622: *(u8 *)(r10 -51) = 0 */
#line 34
	p0_0 = p5_0;                                             /* 623: r0 = r5 */
#line 33 "millrace/packet.h"
	p2_0 = p5_0;                                             /* 624: r2 = r5 */
#line 33
	p2_0 += 8;                                               /* 625: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L643;                              /* 626: if r2 > r6 goto 670 */
#line 33
	r3_0 += 8;                                               /* 627: r3 += 8 */
#line 33
	if (r3_0 > r8_0) goto L643;                              /* 628: if r3 > r8 goto 670 */
#line 54 "millrace/flow4.h"
	r2_0 = *(const u8 *)(p1_0 + 9);                          /* 629: r2 = *(u8 *)(r1 +9) */
#line 93 "millrace/transport.h"
	*(mr_pointer *)s0_16 = p0_0;                             /* 630: *(u64 *)(r10 -16) = r0 */
	if ((u32)r2_0 == 17) goto L606;                          /* 631: if w2 == 17 goto 633 */
#line 94
	if ((u32)r2_0 != 6) goto L631;                           /* 632: if w2 != 6 goto 658 */
L606:
#line 94
	r8_0 = 0;                                                /* 633: w8 = 0 */
	r2_0 = *(const mr_u16 *)p0_0;                            /* 634: r2 = *(u16 *)(r0 +0) */
#line 95
	*(mr_u16 *)s0_56 = (u16)r2_0;                            /* 635: *(u16 *)(r10 -56) = r2 */
	r6_0 = *(const mr_u16 *)(p0_0 + 2);                      /* 636: r6 = *(u16 *)(r0 +2) */
#line 96
	goto L629;                                               /* 637: goto 656 */
L611:
#line 96
	r0_0 = 128;                                              /* 638: w0 = 128 */
#line 96
	r2_0 = 129;                                              /* 639: w2 = 129 */
#line 73
	r1_0 = (u32)r5_0;                                        /* 640: w1 = w5 */
#line 73
	r1_0 = (u32)r1_0 + 0xffffffffu;                          /* 641: w1 += -1 */
#line 73
	r1_0 = (u32)r1_0 & 255;                                  /* 642: w1 &= 255 */
#line 73
	if ((u32)r1_0 < 4) goto L561;                            /* 643: if w1 < 4 goto 588 */
#line 73
	goto L617;
L625:
#line 32
	r8_0 = 1;                                                /* 652: w8 = 1 */
#line 32
	r2_0 = 0;                                                /* 653: w2 = 0 */
#line 32
	*(mr_u16 *)s0_56 = 0;                                    /* 654: *(u16 *)(r10 -56) = 0 */
	r6_0 = *(const mr_u16 *)(p3_0 + 4);                      /* 655: r6 = *(u16 *)(r3 +4) */
#line 33
	goto L629;
L631:
#line 99
	if ((u32)r2_0 == 58) goto L645;                          /* 658: if w2 == 58 goto 673 */
#line 99
	if ((u32)r2_0 != 1) goto L115;                           /* 660: if w2 != 1 goto 115 */
#line 99
	r2_0 = 8;                                                /* 661: w2 = 8 */
#line 99
	r5_0 = 0;                                                /* 662: w5 = 0 */
#line 102
	r3_0 = *(const volatile u8 *)p0_0;                       /* 663: r3 = *(u8 *)(r0 +0) */
#line 102
	if ((u32)r3_0 > 12) goto L653;                           /* 664: if w3 > 12 goto 681 */
#line 102
	r4_0 = 1;                                                /* 665: w4 = 1 */
#line 102
	r4_0 = (u32)r4_0 << ((u32)r3_0 & 31);                    /* 666: w4 <<= w3 */
#line 102
	r4_0 = (u32)r4_0 & 0x1838u;                              /* 667: w4 &= 6200 */
#line 102
	if ((u32)r4_0 != 0) goto L643;                           /* 668: if w4 != 0 goto 670 */
L653:
#line 30
	if ((u32)r2_0 == (u32)r3_0) goto L655;                   /* 681: if w2 == w3 goto 683 */
#line 30
	if ((u32)r5_0 != (u32)r3_0) goto L115;                   /* 682: if w5 != w3 goto 115 */
L655:
	if ((u32)r2_0 != (u32)r3_0) goto L660;                   /* 683: if w2 != w3 goto 688 */
#line 32
	r6_0 = 0;                                                /* 684: w6 = 0 */
#line 32
	r2_0 = *(const mr_u16 *)(p0_0 + 4);                      /* 685: r2 = *(u16 *)(r0 +4) */
#line 32
	*(mr_u16 *)s0_56 = (u16)r2_0;                            /* 686: *(u16 *)(r10 -56) = r2 */
L663:
#line 33
	r8_0 = 0;                                                /* 691: w8 = 0 */
#line 33
	goto L629;                                               /* 692: goto 656 */
L643:
#line 102
	r0_0 = 1;                                                /* 670: r0 = 0x1 ll */
#line 13 "nfs/firewall/firewall.c" /* switch (packet_find_flow(p, &f)) { */
	return mr_verdict_handlers(pkt, r0_0);                   /* 672: goto 118 */
L645:
#line 13
	r2_0 = 128;                                              /* 673: w2 = 128 */
#line 13
	r5_0 = 129;                                              /* 674: w5 = 129 */
#line 102 "millrace/transport.h"
	r3_0 = *(const volatile u8 *)p0_0;                       /* 675: r3 = *(u8 *)(r0 +0) */
#line 102
	r4_0 = (u32)r3_0;                                        /* 676: w4 = w3 */
#line 102
	r4_0 = (u32)r4_0 + 0xffffffffu;                          /* 677: w4 += -1 */
#line 102
	r4_0 = (u32)r4_0 & 255;                                  /* 678: w4 &= 255 */
#line 102
	if ((u32)r4_0 < 4) goto L643;                            /* 680: if w4 < 4 goto 670 */
#line 102
	goto L653;
L660:
#line 32
	r2_0 = 0;                                                /* 688: w2 = 0 */
#line 32
	*(mr_u16 *)s0_56 = 0;                                    /* 689: *(u16 *)(r10 -56) = 0 */
	r6_0 = *(const mr_u16 *)(p0_0 + 4);                      /* 690: r6 = *(u16 *)(r0 +4) */
#line 33
	goto L663;
#line 1366 "firewall.c"
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
	_Alignas(8) u8 s0_56[2];
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
	if (p2_0 > p4_0) goto L115;                              /* 6: if r2 > r4 goto 115 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const mr_u16 *)(p3_0 + 12);                     /* 7: r5 = *(u16 *)(r3 +12) */
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
	if (p2_0 > p4_0) goto L115;                              /* 13: if r2 > r4 goto 115 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const mr_u16 *)(p3_0 + 16);                     /* 14: r5 = *(u16 *)(r3 +16) */
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
	if (p2_0 > p4_0) goto L115;                              /* 20: if r2 > r4 goto 115 */
#line 33
	r7_0 = 22;                                               /* 21: w7 = 22 */
#line 42 "millrace/ethernet.h"
	r5_0 = *(const mr_u16 *)(p3_0 + 20);                     /* 22: r5 = *(u16 *)(r3 +20) */
L23:
#line 91 "millrace/flow.h"
	if ((u32)r5_0 == 0xdd86u) goto L119;                     /* 23: if w5 == 56710 goto 119 */
#line 91
	if ((u32)r5_0 != 8) goto L115;                           /* 24: if w5 != 8 goto 115 */
#line 31 "millrace/packet.h"
	p5_0 = pkt->data;                                        /* 29: r5 = *(u32 *)(r1 +0) */
#line 31
	p4_0 = p5_0;                                             /* 30: r4 = r5 */
#line 31
	r9_0 = r7_0;                                             /* 31: r9 = r7 */
#line 31
	p4_0 += (s64)r7_0;                                       /* 32: r4 += r7 */
#line 33
	p2_0 = p4_0;                                             /* 33: r2 = r4 */
#line 33
	p2_0 += 20;                                              /* 34: r2 += 20 */
#line 33
	p6_0 = pkt->end;                                         /* 35: r6 = *(u32 *)(r1 +4) */
#line 33
	if (p2_0 > p6_0) goto L643;                              /* 36: if r2 > r6 goto 670 */
#line 69 "millrace/ipv4.h"
	r2_0 = *(const volatile u8 *)p4_0;                       /* 37: r2 = *(u8 *)(r4 +0) */
#line 69
	r3_0 = (u32)r2_0;                                        /* 38: w3 = w2 */
#line 69
	r3_0 = (u32)r3_0 & 240;                                  /* 39: w3 &= 240 */
#line 69
	if ((u32)r3_0 != 64) goto L643;                          /* 40: if w3 != 64 goto 670 */
#line 71
	r2_0 = (u32)r2_0 << 2;                                   /* 41: w2 <<= 2 */
#line 71
	r2_0 = (u32)r2_0 & 60;                                   /* 42: w2 &= 60 */
#line 73
	if ((u32)r2_0 < 20) goto L643;                           /* 43: if w2 < 20 goto 670 */
#line 73
	r3_0 = *(const volatile mr_u16 *)(p4_0 + 2);             /* 44: r3 = *(u16 *)(r4 +2) */
#line 73
	r3_0 = __builtin_bswap16((u16)r3_0);                     /* 45: r3 = bswap16 r3 */
#line 73
	if ((u32)r2_0 > (u32)r3_0) goto L643;                    /* 46: if w2 > w3 goto 670 */
#line 73
	r2_0 = (u32)r9_0;                                        /* 47: w2 = w9 */
#line 73
	r2_0 = (u32)r2_0 + (u32)r3_0;                            /* 48: w2 += w3 */
#line 46 "millrace/packet.h"
	p3_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p6_0);     /* 49: w3 = w6 */
#line 46
	r3_0 = (u32)(u64)(uintptr_t)p3_0 - (u32)(u64)(uintptr_t)p5_0; /* 50: w3 -= w5 */
#line 73 "millrace/ipv4.h"
	if ((u32)r2_0 > (u32)r3_0) goto L643;                    /* 51: if w2 > w3 goto 670 */
#line 73
	*(mr_pointer *)s0_160 = p5_0;                            /* 52: *(u64 *)(r10 -160) = r5 */
#line 43
	r3_0 = *(const volatile mr_u32 *)p4_0;                   /* 53: r3 = *(u32 *)(r4 +0) */
#line 45
	r2_0 = (u32)r3_0;                                        /* 54: w2 = w3 */
#line 45
	r2_0 = (u32)r2_0 << 2;                                   /* 55: w2 <<= 2 */
#line 45
	r2_0 = (u32)r2_0 & 60;                                   /* 56: w2 &= 60 */
#line 45
	r0_0 = r9_0;                                             /* 57: r0 = r9 */
#line 45
	r5_0 = (u32)r0_0;                                        /* 58: w5 = w0 */
#line 45
	r5_0 = (u32)r5_0 + (u32)r2_0;                            /* 59: w5 += w2 */
#line 43
	r8_0 = *(const mr_u32 *)(p4_0 + 4);                      /* 60: r8 = *(u32 *)(r4 +4) */
#line 43
	*(mr_u64 *)s0_144 = r8_0;                                /* 61: *(u64 *)(r10 -144) = r8 */
#line 43
	*(mr_u64 *)s0_152 = r3_0;                                /* 62: *(u64 *)(r10 -152) = r3 */
#line 43
	r8_0 += r3_0;                                            /* 63: r8 += r3 */
#line 43
	r2_0 = *(const mr_u32 *)(p4_0 + 8);                      /* 64: r2 = *(u32 *)(r4 +8) */
#line 43
	*(mr_u64 *)s0_136 = r2_0;                                /* 65: *(u64 *)(r10 -136) = r2 */
#line 43
	r8_0 += r2_0;                                            /* 66: r8 += r2 */
#line 43
	r2_0 = *(const mr_u32 *)(p4_0 + 12);                     /* 67: r2 = *(u32 *)(r4 +12) */
#line 43
	*(mr_u64 *)s0_168 = r2_0;                                /* 68: *(u64 *)(r10 -168) = r2 */
#line 43
	r8_0 += r2_0;                                            /* 69: r8 += r2 */
	r2_0 = *(const mr_u32 *)(p4_0 + 16);                     /* 70: r2 = *(u32 *)(r4 +16) */
#line 44
	*(mr_u64 *)s0_176 = r2_0;                                /* 71: *(u64 *)(r10 -176) = r2 */
#line 43
	r8_0 += r2_0;                                            /* 72: r8 += r2 */
#line 47
	r0_0 += 20;                                              /* 73: r0 += 20 */
#line 47
	if (r0_0 == r5_0) goto L88;                              /* 74: if r0 == r5 goto 88 */
#line 47
	r3_0 = 0;                                                /* 75: r3 = 0 */
L76:
#line 52
	r2_0 = r0_0;                                             /* 76: r2 = r0 */
#line 52
	r2_0 += r3_0;                                            /* 77: r2 += r3 */
#line 52
	if (r2_0 >= r5_0) goto L88;                              /* 78: if r2 >= r5 goto 88 */
#line 33 "millrace/packet.h"
	p7_0 = p4_0;                                             /* 79: r7 = r4 */
#line 33
	p7_0 += (s64)r3_0;                                       /* 80: r7 += r3 */
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
	r3_0 += 4;                                               /* 86: r3 += 4 */
#line 50
	if ((u32)r3_0 != 40) goto L76;                           /* 87: if w3 != 40 goto 76 */
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
	if (r2_0 != 0xffffu) goto L643;                          /* 105: if r2 != 65535 goto 670 */
#line 75
	r7_0 = *(const mr_u64 *)s0_136;                          /* 106: r7 = *(u64 *)(r10 -136) */
#line 75
	r7_0 = (u32)r7_0 >> 8;                                   /* 107: w7 >>= 8 */
#line 47
	r2_0 = (u32)r7_0;                                        /* 108: w2 = w7 */
#line 47
	r2_0 = (u32)r2_0 & 255;                                  /* 109: w2 &= 255 */
#line 73 "millrace/flow4.h"
	if ((u32)r2_0 > 17) goto L115;                           /* 110: if w2 > 17 goto 115 */
#line 73
	r3_0 = 1;                                                /* 111: w3 = 1 */
#line 73
	r3_0 = (u32)r3_0 << ((u32)r2_0 & 31);                    /* 112: w3 <<= w2 */
#line 73
	r3_0 = (u32)r3_0 & 0x20042u;                             /* 113: w3 &= 131138 */
#line 73
	if ((u32)r3_0 != 0) goto L474;                           /* 114: if w3 != 0 goto 500 */
L115:
#line 34 "millrace/verdict.h"
	return;                                                  /* 115: r0 = *(u32 *)(r1 +12) */
L119:
#line 31 "millrace/packet.h"
	p6_0 = p3_0;                                             /* 121: r6 = r3 */
#line 31
	r5_0 = r7_0;                                             /* 122: r5 = r7 */
#line 31
	p6_0 += (s64)r7_0;                                       /* 123: r6 += r7 */
#line 33
	p2_0 = p6_0;                                             /* 124: r2 = r6 */
#line 33
	p2_0 += 40;                                              /* 125: r2 += 40 */
#line 33
	if (p2_0 > p4_0) goto L118;                              /* 126: if r2 > r4 goto 118 */
#line 40 "millrace/ipv6.h"
	r2_0 = *(const mr_u32 *)p6_0;                            /* 127: r2 = *(u32 *)(r6 +0) */
#line 40
	r2_0 = (u32)r2_0 & 240;                                  /* 128: w2 &= 240 */
#line 40
	if ((u32)r2_0 != 96) goto L118;                          /* 129: if w2 != 96 goto 118 */
#line 46 "millrace/packet.h"
	p2_0 = (u8 *)(uintptr_t)((u32)(u64)(uintptr_t)p4_0);     /* 130: w2 = w4 */
#line 46
	r2_0 = (u32)(u64)(uintptr_t)p2_0 - (u32)(u64)(uintptr_t)p3_0; /* 131: w2 -= w3 */
#line 46
	r7_0 = r5_0;                                             /* 132: r7 = r5 */
#line 42 "millrace/ipv6.h"
	r7_0 += 40;                                              /* 133: r7 += 40 */
#line 42
	r5_0 = *(const volatile mr_u16 *)(p6_0 + 4);             /* 134: r5 = *(u16 *)(r6 +4) */
#line 42
	r5_0 = __builtin_bswap16((u16)r5_0);                     /* 135: r5 = bswap16 r5 */
#line 42
	*(mr_u64 *)s0_136 = r7_0;                                /* 136: *(u64 *)(r10 -136) = r7 */
#line 42
	r7_0 += r5_0;                                            /* 137: r7 += r5 */
#line 42
	*(mr_u64 *)s0_144 = r7_0;                                /* 138: *(u64 *)(r10 -144) = r7 */
#line 42
	if (r7_0 > r2_0) goto L118;                              /* 139: if r7 > r2 goto 118 */
#line 42
	r5_0 = 8;                                                /* 140: w5 = 8 */
#line 67 "millrace/flow.h"
	p9_0 = p6_0;                                             /* 141: r9 = r6 */
#line 67
	p9_0 += 6;                                               /* 142: r9 += 6 */
#line 67
	r2_0 = 0x100000000000ull;                                /* 143: r2 = 0x100000000000 ll */
#line 67
	*(mr_u64 *)s0_152 = r2_0;                                /* 145: *(u64 *)(r10 -152) = r2 */
#line 67
	r2_0 = 0x8000000000000ull;                               /* 146: r2 = 0x8000000000000 ll */
#line 67
	*(mr_u64 *)s0_160 = r2_0;                                /* 148: *(u64 *)(r10 -160) = r2 */
L146:
#line 67
	r7_0 = (u32)r5_0;                                        /* 149: w7 = w5 */
#line 67
	r5_0 = *(const volatile u8 *)p9_0;                       /* 150: r5 = *(u8 *)(r9 +0) */
#line 85 "millrace/ipv6.h"
	if (r5_0 > 63) goto L196;                                /* 151: if r5 > 63 goto 202 */
#line 85
	r2_0 = 0x1008180000000001ull;                            /* 152: r2 = 0x1008180000000001 ll */
#line 85
	r2_0 = r2_0 >> (r5_0 & 63);                              /* 154: r2 >>= r5 */
#line 85
	r2_0 &= 1;                                               /* 155: r2 &= 1 */
#line 85
	if (r2_0 == 0) goto L196;                                /* 156: if r2 == 0 goto 202 */
#line 31 "millrace/packet.h"
	r2_0 = *(const mr_u64 *)s0_136;                          /* 157: r2 = *(u64 *)(r10 -136) */
#line 31
	r2_0 = (u32)r2_0;                                        /* 158: w2 = w2 */
#line 31
	p9_0 = p3_0;                                             /* 159: r9 = r3 */
#line 31
	p9_0 += (s64)r2_0;                                       /* 160: r9 += r2 */
#line 33
	p2_0 = p9_0;                                             /* 163: r2 = r9 */
#line 33
	p2_0 += 8;                                               /* 164: r2 += 8 */
#line 33
	if (p2_0 > p4_0) goto L118;                              /* 165: if r2 > r4 goto 118 */
#line 33
	r2_0 = *(const mr_u64 *)s0_136;                          /* 166: r2 = *(u64 *)(r10 -136) */
#line 33
	r2_0 = (u32)r2_0 + 8;                                    /* 167: w2 += 8 */
#line 33
	r8_0 = *(const mr_u64 *)s0_144;                          /* 168: r8 = *(u64 *)(r10 -144) */
#line 33
	if ((u32)r2_0 > (u32)r8_0) goto L118;                    /* 169: if w2 > w8 goto 118 */
#line 68 "millrace/ipv6.h"
	r0_0 = *(const mr_u64 *)s0_152;                          /* 170: r0 = *(u64 *)(r10 -152) */
#line 68
	r0_0 = r0_0 >> (r5_0 & 63);                              /* 171: r0 >>= r5 */
#line 68
	r0_0 = (u32)r0_0 & 1;                                    /* 172: w0 &= 1 */
#line 68
	r0_0 = -(u32)r0_0;                                       /* 173: w0 = -w0 */
#line 96
	r2_0 = *(const mr_u16 *)(p9_0 + 2);                      /* 174: r2 = *(u16 *)(r9 +2) */
#line 96
	r2_0 = __builtin_bswap64((u64)r2_0);                     /* 175: r2 = bswap64 r2 */
#line 96
	r2_0 >>= 51;                                             /* 176: r2 >>= 51 */
#line 96
	r8_0 = (u32)r0_0;                                        /* 177: w8 = w0 */
#line 96
	r8_0 = (u32)r8_0 & (u32)r2_0;                            /* 178: w8 &= w2 */
#line 96
	if ((u32)r8_0 != 0) goto L457;                           /* 179: if w8 != 0 goto 479 */
#line 96
	r8_0 = *(const mr_u64 *)s0_160;                          /* 180: r8 = *(u64 *)(r10 -160) */
#line 96
	r8_0 = r8_0 >> (r5_0 & 63);                              /* 181: r8 >>= r5 */
#line 96
	r8_0 = (u32)r8_0 & 1;                                    /* 182: w8 &= 1 */
#line 96
	r8_0 = -(u32)r8_0;                                       /* 183: w8 = -w8 */
#line 103
	r0_0 = (u32)r0_0 ^ 0xffffffffu;                          /* 184: w0 ^= -1 */
#line 103
	r2_0 = *(const volatile u8 *)(p9_0 + 1);                 /* 185: r2 = *(u8 *)(r9 +1) */
#line 103
	r2_0 = (u32)r2_0 & (u32)r0_0;                            /* 186: w2 &= w0 */
	r2_0 = (u32)r2_0 - (u32)r8_0;                            /* 187: w2 -= w8 */
#line 104
	r2_0 = (u32)r2_0 + 1;                                    /* 188: w2 += 1 */
#line 104
	r8_0 = (u32)r8_0 + 3;                                    /* 189: w8 += 3 */
#line 104
	r2_0 = (u32)r2_0 << ((u32)r8_0 & 31);                    /* 190: w2 <<= w8 */
#line 104
	r5_0 = *(const mr_u64 *)s0_136;                          /* 191: r5 = *(u64 *)(r10 -136) */
#line 104
	r2_0 = (u32)r2_0 + (u32)r5_0;                            /* 192: w2 += w5 */
#line 104
	r5_0 = *(const mr_u64 *)s0_144;                          /* 195: r5 = *(u64 *)(r10 -144) */
#line 104
	if ((u32)r2_0 > (u32)r5_0) goto L118;                    /* 196: if w2 > w5 goto 118 */
#line 104
	r5_0 = (u32)r7_0;                                        /* 197: w5 = w7 */
#line 104
	r5_0 = (u32)r5_0 + 0xffffffffu;                          /* 198: w5 += -1 */
#line 104
	*(mr_u64 *)s0_136 = r2_0;                                /* 199: *(u64 *)(r10 -136) = r2 */
#line 104
	if ((u32)r7_0 == 0) goto L118;                           /* 200: if w7 == 0 goto 118 */
#line 104
	goto L146;                                               /* 201: goto 149 */
L118:
#line 36 "nfs/firewall/firewall.c" /* } */
	return;                                                  /* 118: exit */
L196:
#line 72 "millrace/flow.h"
	if ((u32)r5_0 == 1) goto L115;                           /* 206: if w5 == 1 goto 115 */
#line 27
	r2_0 = *(const mr_u32 *)(p6_0 + 8);                      /* 207: r2 = *(u32 *)(r6 +8) */
#line 27
	r0_0 = *(const mr_u32 *)(p6_0 + 12);                     /* 208: r0 = *(u32 *)(r6 +12) */
#line 27
	r7_0 = *(const mr_u64 *)(p6_0 + 16);                     /* 209: r7 = *(u64 *)(r6 +16) */
	{                                                        /* stores in the order of addresses */
#line 27
		r0_0 <<= 32;                                     /* 211: r0 <<= 32 */
#line 27
		r0_0 |= r2_0;                                    /* 212: r0 |= r2 */
#line 27
		const u64 v206 = r0_0;                           /* 213: *(u64 *)(r10 -120) = r0 */
		r2_0 = *(const mr_u32 *)(p6_0 + 24);             /* 214: r2 = *(u32 *)(r6 +24) */
#line 28
		r0_0 = *(const mr_u32 *)(p6_0 + 28);             /* 215: r0 = *(u32 *)(r6 +28) */
#line 28
		r6_0 = *(const mr_u64 *)(p6_0 + 32);             /* 216: r6 = *(u64 *)(r6 +32) */
#line 28
		r0_0 <<= 32;                                     /* 219: r0 <<= 32 */
#line 28
		r0_0 |= r2_0;                                    /* 220: r0 |= r2 */
#line 27
		*(mr_u64 *)s0_120 = v206;                        /* 213: *(u64 *)(r10 -120) = r0 */
#line 27
		*(mr_u64 *)(s0_120 + 8) = r7_0;                  /* 210: *(u64 *)(r10 -112) = r7 */
		*(mr_u64 *)(s0_120 + 16) = r0_0;                 /* 221: *(u64 *)(r10 -104) = r0 */
#line 28
		*(mr_u64 *)(s0_120 + 24) = r6_0;                 /* 218: *(u64 *)(r10 -96) = r6 */
		*(u8 *)(s0_120 + 36) = (u8)r5_0;                 /* 217: *(u8 *)(r10 -84) = r5 */
		*(u8 *)(s0_120 + 37) = 6;                        /* 223: *(u8 *)(r10 -83) = 6 */
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 222: *(u16 *)(r10 -82) = 0 */
	}
#line 46 "millrace/transport.h"
	if ((u32)r5_0 == 17) goto L239;                          /* 224: if w5 == 17 goto 247 */
#line 46
	r6_0 = *(const mr_u64 *)s0_136;                          /* 225: r6 = *(u64 *)(r10 -136) */
#line 46
	if ((u32)r5_0 != 6) goto L250;                           /* 226: if w5 != 6 goto 259 */
#line 31 "millrace/packet.h"
	r2_0 = (u32)r6_0;                                        /* 227: w2 = w6 */
#line 31
	p3_0 += (s64)r2_0;                                       /* 228: r3 += r2 */
#line 33
	p2_0 = p3_0;                                             /* 231: r2 = r3 */
#line 33
	p2_0 += 20;                                              /* 232: r2 += 20 */
#line 33
	if (p2_0 > p4_0) goto L118;                              /* 233: if r2 > r4 goto 118 */
#line 49 "millrace/transport.h"
	r2_0 = *(const volatile u8 *)(p3_0 + 12);                /* 234: r2 = *(u8 *)(r3 +12) */
#line 49
	if ((u32)r2_0 < 80) goto L118;                           /* 235: if w2 < 80 goto 118 */
#line 49
	r2_0 = (u32)r2_0 >> 2;                                   /* 236: w2 >>= 2 */
#line 49
	r2_0 = (u32)r2_0 & 60;                                   /* 237: w2 &= 60 */
#line 49
	r4_0 = *(const mr_u64 *)s0_136;                          /* 238: r4 = *(u64 *)(r10 -136) */
#line 49
	r4_0 = (u32)r4_0 + (u32)r2_0;                            /* 239: w4 += w2 */
#line 49
	r2_0 = *(const mr_u64 *)s0_144;                          /* 240: r2 = *(u64 *)(r10 -144) */
#line 49
	if ((u32)r4_0 > (u32)r2_0) goto L118;                    /* 241: if w4 > w2 goto 118 */
L234:
#line 49
	r2_0 = *(const mr_u16 *)p3_0;                            /* 242: r2 = *(u16 *)(r3 +0) */
#line 49
	*(mr_u16 *)(s0_120 + 32) = (u16)r2_0;                    /* 243: *(u16 *)(r10 -88) = r2 */
#line 49
	r6_0 = *(const mr_u16 *)(p3_0 + 2);                      /* 244: r6 = *(u16 *)(r3 +2) */
L237:
#line 49
	*(mr_u16 *)(s0_120 + 34) = (u16)r6_0;                    /* 245: *(u16 *)(r10 -86) = r6 */
L419:
#line 29 "nfs/firewall/firewall.c" /* if (p->port == WAN) */
	r1_0 = pkt->port;                                        /* 438: r1 = *(u32 *)(r1 +12) */
#line 29
	if ((u32)r1_0 != 1) goto L432;                           /* 439: if w1 != 1 goto 450 */
#line 123 "millrace/flow.h"
	r1_0 = *(const mr_u64 *)s0_120;                          /* 440: r1 = *(u64 *)(r10 -120) */
#line 126
	r3_0 = *(const mr_u64 *)(s0_120 + 16);                   /* 441: r3 = *(u64 *)(r10 -104) */
#line 126
	*(mr_u64 *)s0_120 = r3_0;                                /* 442: *(u64 *)(r10 -120) = r3 */
#line 123
	r3_0 = *(const mr_u64 *)(s0_120 + 8);                    /* 443: r3 = *(u64 *)(r10 -112) */
#line 126
	r4_0 = *(const mr_u64 *)(s0_120 + 24);                   /* 444: r4 = *(u64 *)(r10 -96) */
	{                                                        /* stores in the order of addresses */
#line 126
		*(mr_u64 *)(s0_120 + 8) = r4_0;                  /* 445: *(u64 *)(r10 -112) = r4 */
		*(mr_u64 *)(s0_120 + 16) = r1_0;                 /* 446: *(u64 *)(r10 -104) = r1 */
#line 127
		*(mr_u64 *)(s0_120 + 24) = r3_0;                 /* 447: *(u64 *)(r10 -96) = r3 */
		*(mr_u16 *)(s0_120 + 32) = (u16)r6_0;            /* 449: *(u16 *)(r10 -88) = r6 */
		*(mr_u16 *)(s0_120 + 34) = (u16)r2_0;            /* 448: *(u16 *)(r10 -86) = r2 */
	}
L432:
#line 31 "nfs/firewall/firewall.c" /* if (map_refresh(&flows, &f)) */
	{                                                        /* 454: call map_refresh#65537 */
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
L239:
#line 31 "millrace/packet.h"
	r2_0 = *(const mr_u64 *)s0_136;                          /* 249: r2 = *(u64 *)(r10 -136) */
#line 31
	r2_0 = (u32)r2_0;                                        /* 250: w2 = w2 */
#line 31
	p3_0 += (s64)r2_0;                                       /* 251: r3 += r2 */
#line 33
	p5_0 = p3_0;                                             /* 252: r5 = r3 */
#line 33
	p5_0 += 8;                                               /* 253: r5 += 8 */
#line 33
	if (p5_0 > p4_0) goto L118;                              /* 254: if r5 > r4 goto 118 */
#line 33
	r2_0 += 8;                                               /* 255: r2 += 8 */
#line 33
	r4_0 = *(const mr_u64 *)s0_144;                          /* 256: r4 = *(u64 *)(r10 -144) */
#line 33
	if (r2_0 > r4_0) goto L118;                              /* 257: if r2 > r4 goto 118 */
#line 62 "millrace/transport.h"
	goto L234;                                               /* 258: goto 242 */
L250:
#line 67
	if ((u32)r5_0 == 58) goto L253;                          /* 259: if w5 == 58 goto 262 */
#line 67
	return;                                                  /* 260: w2 = 1 */
L253:
#line 31 "millrace/packet.h"
	r2_0 = (u32)r6_0;                                        /* 264: w2 = w6 */
#line 31
	p5_0 = p3_0;                                             /* 265: r5 = r3 */
#line 31
	p5_0 += (s64)r2_0;                                       /* 266: r5 += r2 */
#line 33
	p6_0 = p5_0;                                             /* 267: r6 = r5 */
#line 33
	p6_0 += 8;                                               /* 268: r6 += 8 */
#line 33
	if (p6_0 > p4_0) goto L118;                              /* 269: if r6 > r4 goto 118 */
#line 33
	r2_0 += 8;                                               /* 270: r2 += 8 */
#line 33
	r6_0 = *(const mr_u64 *)s0_144;                          /* 271: r6 = *(u64 *)(r10 -144) */
#line 33
	if (r2_0 > r6_0) goto L118;                              /* 272: if r2 > r6 goto 118 */
#line 73 "millrace/transport.h"
	r2_0 = *(const s8 *)p5_0;                                /* 273: r2 = *(s8 *)(r5 +0) */
#line 73
	r0_0 = (u32)r2_0;                                        /* 274: w0 = w2 */
#line 73
	r0_0 = (u32)r0_0 + 0xffffffffu;                          /* 275: w0 += -1 */
#line 73
	r0_0 = (u32)r0_0 & 255;                                  /* 276: w0 &= 255 */
#line 73
	if ((u32)r0_0 < 4) goto L274;                            /* 277: if w0 < 4 goto 284 */
#line 30
	if ((s32)r2_0 > -127) goto L115;                         /* 278: if w2 s> -127 goto 115 */
#line 32
	if ((u32)r2_0 != 0xffffff80u) goto L347;                 /* 279: if w2 != -128 goto 363 */
#line 32
	r6_0 = 0;                                                /* 280: w6 = 0 */
#line 32
	r2_0 = *(const mr_u16 *)(p5_0 + 4);                      /* 281: r2 = *(u16 *)(r5 +4) */
#line 32
	*(mr_u16 *)(s0_120 + 32) = (u16)r2_0;                    /* 282: *(u16 *)(r10 -88) = r2 */
#line 32
	goto L237;                                               /* 283: goto 245 */
L274:
#line 32
	r2_0 = *(const mr_u64 *)s0_136;                          /* 286: r2 = *(u64 *)(r10 -136) */
#line 78 "millrace/flow.h"
	r2_0 = (u32)r2_0 + 8;                                    /* 287: w2 += 8 */
#line 31 "millrace/packet.h"
	p7_0 = p3_0;                                             /* 288: r7 = r3 */
#line 31
	r5_0 = r2_0;                                             /* 289: r5 = r2 */
#line 31
	p7_0 += (s64)r2_0;                                       /* 290: r7 += r2 */
#line 33
	p2_0 = p7_0;                                             /* 291: r2 = r7 */
#line 33
	p2_0 += 40;                                              /* 292: r2 += 40 */
#line 33
	if (p2_0 > p4_0) goto L118;                              /* 293: if r2 > r4 goto 118 */
#line 42 "millrace/flow.h"
	r5_0 += 40;                                              /* 294: r5 += 40 */
#line 42
	r6_0 = r5_0;                                             /* 295: r6 = r5 */
#line 42
	r2_0 = *(const mr_u64 *)s0_144;                          /* 296: r2 = *(u64 *)(r10 -144) */
#line 42
	if (r5_0 > r2_0) goto L118;                              /* 297: if r5 > r2 goto 118 */
	r2_0 = *(const mr_u32 *)p7_0;                            /* 298: r2 = *(u32 *)(r7 +0) */
#line 43
	r2_0 = (u32)r2_0 & 240;                                  /* 299: w2 &= 240 */
#line 42
	if ((u32)r2_0 != 96) goto L118;                          /* 300: if w2 != 96 goto 118 */
#line 42
	r8_0 = 8;                                                /* 301: w8 = 8 */
#line 45
	p5_0 = p7_0;                                             /* 302: r5 = r7 */
#line 45
	p5_0 += 6;                                               /* 303: r5 += 6 */
#line 45
	r2_0 = 0x100000000000ull;                                /* 304: r2 = 0x100000000000 ll */
#line 45
	*(mr_u64 *)s0_136 = r2_0;                                /* 306: *(u64 *)(r10 -136) = r2 */
#line 45
	r2_0 = 0x8000000000000ull;                               /* 307: r2 = 0x8000000000000 ll */
#line 45
	*(mr_u64 *)s0_152 = r2_0;                                /* 309: *(u64 *)(r10 -152) = r2 */
#line 45
	*(mr_pointer *)s0_184 = (u8 *)pkt;                       /* 310: *(u64 *)(r10 -184) = r1 */
L298:
#line 45
	r9_0 = (u32)r8_0;                                        /* 311: w9 = w8 */
#line 45
	r8_0 = *(const volatile u8 *)p5_0;                       /* 312: r8 = *(u8 *)(r5 +0) */
#line 85 "millrace/ipv6.h"
	if (r8_0 > 63) goto L351;                                /* 313: if r8 > 63 goto 367 */
#line 85
	r1_0 = 0x1008180000000001ull;                            /* 314: r1 = 0x1008180000000001 ll */
#line 85
	r1_0 = r1_0 >> (r8_0 & 63);                              /* 316: r1 >>= r8 */
#line 85
	r1_0 &= 1;                                               /* 317: r1 &= 1 */
#line 85
	if (r1_0 == 0) goto L351;                                /* 318: if r1 == 0 goto 367 */
#line 31 "millrace/packet.h"
	r1_0 = (u32)r6_0;                                        /* 319: w1 = w6 */
#line 31
	p5_0 = p3_0;                                             /* 320: r5 = r3 */
#line 31
	p5_0 += (s64)r1_0;                                       /* 321: r5 += r1 */
#line 33
	p1_0 = p5_0;                                             /* 324: r1 = r5 */
#line 33
	p1_0 += 8;                                               /* 325: r1 += 8 */
#line 33
	if (p1_0 > p4_0) goto L118;                              /* 326: if r1 > r4 goto 118 */
#line 33
	r1_0 = (u32)r6_0;                                        /* 327: w1 = w6 */
#line 33
	r1_0 = (u32)r1_0 + 8;                                    /* 328: w1 += 8 */
#line 33
	r2_0 = *(const mr_u64 *)s0_144;                          /* 329: r2 = *(u64 *)(r10 -144) */
#line 33
	if ((u32)r1_0 > (u32)r2_0) goto L118;                    /* 330: if w1 > w2 goto 118 */
#line 68 "millrace/ipv6.h"
	r1_0 = *(const mr_u64 *)s0_136;                          /* 331: r1 = *(u64 *)(r10 -136) */
#line 68
	r1_0 = r1_0 >> (r8_0 & 63);                              /* 332: r1 >>= r8 */
#line 68
	r1_0 = (u32)r1_0 & 1;                                    /* 333: w1 &= 1 */
#line 68
	r1_0 = -(u32)r1_0;                                       /* 334: w1 = -w1 */
#line 96
	r2_0 = *(const mr_u16 *)(p5_0 + 2);                      /* 335: r2 = *(u16 *)(r5 +2) */
#line 96
	r2_0 = __builtin_bswap64((u64)r2_0);                     /* 336: r2 = bswap64 r2 */
#line 96
	r2_0 >>= 51;                                             /* 337: r2 >>= 51 */
#line 96
	r0_0 = (u32)r1_0;                                        /* 338: w0 = w1 */
#line 96
	r0_0 = (u32)r0_0 & (u32)r2_0;                            /* 339: w0 &= w2 */
#line 96
	if ((u32)r0_0 != 0) goto L386;                           /* 340: if w0 != 0 goto 403 */
#line 96
	r0_0 = *(const mr_u64 *)s0_152;                          /* 341: r0 = *(u64 *)(r10 -152) */
#line 96
	r0_0 = r0_0 >> (r8_0 & 63);                              /* 342: r0 >>= r8 */
#line 96
	r0_0 = (u32)r0_0 & 1;                                    /* 343: w0 &= 1 */
#line 96
	r0_0 = -(u32)r0_0;                                       /* 344: w0 = -w0 */
#line 103
	r1_0 = (u32)r1_0 ^ 0xffffffffu;                          /* 345: w1 ^= -1 */
#line 103
	r2_0 = *(const volatile u8 *)(p5_0 + 1);                 /* 346: r2 = *(u8 *)(r5 +1) */
#line 103
	r2_0 = (u32)r2_0 & (u32)r1_0;                            /* 347: w2 &= w1 */
	r2_0 = (u32)r2_0 - (u32)r0_0;                            /* 348: w2 -= w0 */
#line 104
	r2_0 = (u32)r2_0 + 1;                                    /* 349: w2 += 1 */
#line 104
	r0_0 = (u32)r0_0 + 3;                                    /* 350: w0 += 3 */
#line 104
	r2_0 = (u32)r2_0 << ((u32)r0_0 & 31);                    /* 351: w2 <<= w0 */
#line 104
	r2_0 = (u32)r2_0 + (u32)r6_0;                            /* 352: w2 += w6 */
#line 104
	r6_0 = *(const mr_u64 *)s0_144;                          /* 356: r6 = *(u64 *)(r10 -144) */
#line 104
	if ((u32)r2_0 > (u32)r6_0) goto L118;                    /* 357: if w2 > w6 goto 118 */
#line 104
	r8_0 = (u32)r9_0;                                        /* 358: w8 = w9 */
#line 104
	r8_0 = (u32)r8_0 + 0xffffffffu;                          /* 359: w8 += -1 */
#line 104
	r6_0 = (u32)r2_0;                                        /* 360: w6 = w2 */
#line 104
	if ((u32)r9_0 == 0) goto L118;                           /* 361: if w9 == 0 goto 118 */
#line 104
	goto L298;                                               /* 362: goto 311 */
L347:
#line 104
	r2_0 = 0;                                                /* 363: w2 = 0 */
#line 32 "millrace/transport.h"
	*(mr_u16 *)(s0_120 + 32) = 0;                            /* 364: *(u16 *)(r10 -88) = 0 */
	r6_0 = *(const mr_u16 *)(p5_0 + 4);                      /* 365: r6 = *(u16 *)(r5 +4) */
#line 33
	goto L237;                                               /* 366: goto 245 */
L351:
#line 27 "millrace/flow.h"
	r1_0 = *(const mr_u32 *)(p7_0 + 8);                      /* 370: r1 = *(u32 *)(r7 +8) */
#line 27
	r2_0 = *(const mr_u32 *)(p7_0 + 12);                     /* 371: r2 = *(u32 *)(r7 +12) */
#line 27
	r5_0 = *(const mr_u64 *)(p7_0 + 16);                     /* 372: r5 = *(u64 *)(r7 +16) */
	{                                                        /* stores in the order of addresses */
#line 27
		r2_0 <<= 32;                                     /* 374: r2 <<= 32 */
#line 27
		r2_0 |= r1_0;                                    /* 375: r2 |= r1 */
#line 27
		const u64 v359 = r2_0;                           /* 376: *(u64 *)(r10 -120) = r2 */
		r1_0 = *(const mr_u32 *)(p7_0 + 24);             /* 377: r1 = *(u32 *)(r7 +24) */
#line 28
		r2_0 = *(const mr_u32 *)(p7_0 + 28);             /* 378: r2 = *(u32 *)(r7 +28) */
#line 28
		r2_0 <<= 32;                                     /* 379: r2 <<= 32 */
#line 28
		r2_0 |= r1_0;                                    /* 380: r2 |= r1 */
#line 28
		r1_0 = *(const mr_u64 *)(p7_0 + 32);             /* 381: r1 = *(u64 *)(r7 +32) */
#line 28
		const u64 v366 = r1_0;                           /* 383: *(u64 *)(r10 -96) = r1 */
#line 28
		const u64 v367 = r2_0;                           /* 384: *(u64 *)(r10 -104) = r2 */
#line 31 "millrace/packet.h"
		r1_0 = (u32)r6_0;                                /* 385: w1 = w6 */
#line 31
		p3_0 += (s64)r1_0;                               /* 386: r3 += r1 */
#line 33
		p2_0 = p3_0;                                     /* 387: r2 = r3 */
#line 33
		p2_0 += 8;                                       /* 388: r2 += 8 */
#line 27 "millrace/flow.h"
		*(mr_u64 *)s0_120 = v359;                        /* 376: *(u64 *)(r10 -120) = r2 */
#line 27
		*(mr_u64 *)(s0_120 + 8) = r5_0;                  /* 373: *(u64 *)(r10 -112) = r5 */
		*(mr_u64 *)(s0_120 + 16) = v367;                 /* 384: *(u64 *)(r10 -104) = r2 */
#line 28
		*(mr_u64 *)(s0_120 + 24) = v366;                 /* 383: *(u64 *)(r10 -96) = r1 */
		*(u8 *)(s0_120 + 36) = (u8)r8_0;                 /* 382: *(u8 *)(r10 -84) = r8 */
		*(u8 *)(s0_120 + 37) = 6;                        /* 390: *(u8 *)(r10 -83) = 6 */
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 389: *(u16 *)(r10 -82) = 0 */
	}
#line 33 "millrace/packet.h"
	if (p2_0 > p4_0) goto L118;                              /* 391: if r2 > r4 goto 118 */
#line 33
	r1_0 += 8;                                               /* 392: r1 += 8 */
#line 33
	r2_0 = *(const mr_u64 *)s0_144;                          /* 393: r2 = *(u64 *)(r10 -144) */
#line 33
	if (r1_0 > r2_0) goto L118;                              /* 394: if r1 > r2 goto 118 */
#line 94 "millrace/transport.h"
	if ((u32)r8_0 == 17) goto L380;                          /* 395: if w8 == 17 goto 397 */
#line 94
	if ((u32)r8_0 != 6) goto L389;                           /* 396: if w8 != 6 goto 407 */
L380:
#line 95
	r1_0 = *(const mr_u16 *)p3_0;                            /* 397: r1 = *(u16 *)(r3 +0) */
#line 95
	*(mr_u16 *)(s0_120 + 32) = (u16)r1_0;                    /* 398: *(u16 *)(r10 -88) = r1 */
	r1_0 = *(const mr_u16 *)(p3_0 + 2);                      /* 399: r1 = *(u16 *)(r3 +2) */
L383:
#line 96
	*(mr_u16 *)(s0_120 + 34) = (u16)r1_0;                    /* 400: *(u16 *)(r10 -86) = r1 */
L462:
#line 23 "nfs/firewall/firewall.c" /* if (p->port == WAN && !map_get(&flows, &f)) */
	r0_0 = pkt->port;                                        /* 487: r0 = *(u32 *)(r1 +12) */
#line 23
	if ((u32)r0_0 != 1) goto L116;                           /* 488: if w0 != 1 goto 116 */
#line 23
	{                                                        /* 493: call map_get#65536 */
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
L116:
#line 34 "millrace/verdict.h"
	return;                                                  /* 116: w0 &= 16777215 */
L386:
#line 96 "millrace/transport.h"
	return;                                                  /* 403: r0 = 0x1 ll */
L389:
#line 99
	if ((u32)r8_0 == 58) goto L401;                          /* 407: if w8 == 58 goto 419 */
#line 99
	if ((u32)r8_0 != 1) goto L115;                           /* 409: if w8 != 1 goto 115 */
#line 99
	r2_0 = 8;                                                /* 410: w2 = 8 */
#line 99
	r4_0 = 0;                                                /* 411: w4 = 0 */
#line 102
	r5_0 = *(const volatile u8 *)p3_0;                       /* 412: r5 = *(u8 *)(r3 +0) */
#line 102
	if ((u32)r5_0 > 12) goto L409;                           /* 413: if w5 > 12 goto 427 */
#line 102
	r7_0 = 1;                                                /* 414: w7 = 1 */
#line 102
	r7_0 = (u32)r7_0 << ((u32)r5_0 & 31);                    /* 415: w7 <<= w5 */
#line 102
	r7_0 = (u32)r7_0 & 0x1838u;                              /* 416: w7 &= 6200 */
#line 102
	if ((u32)r7_0 != 0) goto L118;                           /* 417: if w7 != 0 goto 118 */
L409:
#line 30
	if ((u32)r2_0 == (u32)r5_0) goto L411;                   /* 427: if w2 == w5 goto 429 */
#line 30
	if ((u32)r4_0 != (u32)r5_0) goto L115;                   /* 428: if w4 != w5 goto 115 */
L411:
	if ((u32)r2_0 != (u32)r5_0) goto L416;                   /* 429: if w2 != w5 goto 434 */
#line 32
	r1_0 = *(const mr_u16 *)(p3_0 + 4);                      /* 430: r1 = *(u16 *)(r3 +4) */
#line 32
	*(mr_u16 *)(s0_120 + 32) = (u16)r1_0;                    /* 431: *(u16 *)(r10 -88) = r1 */
#line 32
	r1_0 = 0;                                                /* 432: w1 = 0 */
#line 32
	goto L383;                                               /* 433: goto 400 */
L401:
#line 102
	r2_0 = 128;                                              /* 419: w2 = 128 */
#line 102
	r4_0 = 129;                                              /* 420: w4 = 129 */
#line 102
	r5_0 = *(const volatile u8 *)p3_0;                       /* 421: r5 = *(u8 *)(r3 +0) */
#line 102
	r7_0 = (u32)r5_0;                                        /* 422: w7 = w5 */
#line 102
	r7_0 = (u32)r7_0 + 0xffffffffu;                          /* 423: w7 += -1 */
#line 102
	r7_0 = (u32)r7_0 & 255;                                  /* 424: w7 &= 255 */
#line 102
	if ((u32)r7_0 < 4) goto L118;                            /* 426: if w7 < 4 goto 118 */
#line 102
	goto L409;
L416:
#line 32
	*(mr_u16 *)(s0_120 + 32) = 0;                            /* 434: *(u16 *)(r10 -88) = 0 */
	r1_0 = *(const mr_u16 *)(p3_0 + 4);                      /* 435: r1 = *(u16 *)(r3 +4) */
#line 33
	goto L383;                                               /* 436: goto 400 */
L457:
#line 34 "millrace/verdict.h"
	return;                                                  /* 479: r0 = 0x1 ll */
L474:
#line 34
	r2_0 = *(const mr_u64 *)s0_144;                          /* 500: r2 = *(u64 *)(r10 -144) */
#line 76 "millrace/flow4.h"
	r2_0 = (u32)r2_0 & 0xff1f0000u;                          /* 501: w2 &= -14745600 */
#line 76
	if ((u32)r2_0 != 0) goto L460;                           /* 502: if w2 != 0 goto 483 */
#line 76
	r2_0 = *(const mr_u64 *)s0_152;                          /* 503: r2 = *(u64 *)(r10 -152) */
#line 76
	r2_0 = (u32)r2_0 >> 16;                                  /* 504: w2 >>= 16 */
#line 78
	*(mr_pointer *)s0_48 = p4_0;                             /* 505: *(u64 *)(r10 -48) = r4 */
	r2_0 = __builtin_bswap16((u16)r2_0);                     /* 506: r2 = bswap16 r2 */
#line 79
	r5_0 = r9_0;                                             /* 507: r5 = r9 */
#line 79
	r8_0 = (u32)r5_0;                                        /* 508: w8 = w5 */
#line 79
	r8_0 = (u32)r8_0 + (u32)r2_0;                            /* 509: w8 += w2 */
#line 79
	*(mr_u32 *)s0_4 = (u32)r8_0;                             /* 510: *(u32 *)(r10 -4) = r8 */
#line 34
	*(mr_u16 *)s0_50 = 0;                                    /* 511: *(u16 *)(r10 -50) = 0 */
#line 34
	*(u8 *)s0_51 = 0;                                        /* 512: *(u8 *)(r10 -51) = 0 */
#line 81
	r2_0 = *(const volatile u8 *)p4_0;                       /* 513: r2 = *(u8 *)(r4 +0) */
#line 81
	r2_0 = (u32)r2_0 << 2;                                   /* 514: w2 <<= 2 */
#line 81
	r2_0 = (u32)r2_0 & 60;                                   /* 515: w2 &= 60 */
#line 81
	r5_0 = (u32)r5_0 + (u32)r2_0;                            /* 516: w5 += w2 */
	r0_0 = *(const u8 *)(p4_0 + 9);                          /* 517: r0 = *(u8 *)(r4 +9) */
#line 46 "millrace/transport.h"
	if ((u32)r0_0 == 17) goto L528;                          /* 518: if w0 == 17 goto 555 */
#line 46
	r9_0 = r7_0;                                             /* 519: r9 = r7 */
#line 46
	if ((u32)r0_0 != 6) goto L537;                           /* 520: if w0 != 6 goto 564 */
#line 46
	p2_0 = *(mr_pointer *)s0_160;                            /* 521: r2 = *(u64 *)(r10 -160) */
#line 31 "millrace/packet.h"
	p2_0 += (s64)r5_0;                                       /* 522: r2 += r5 */
#line 31
	p3_0 = p2_0;                                             /* 523: r3 = r2 */
#line 33
	p2_0 += 20;                                              /* 524: r2 += 20 */
#line 33
	if (p2_0 > p6_0) goto L643;                              /* 525: if r2 > r6 goto 670 */
#line 49 "millrace/transport.h"
	r2_0 = *(const volatile u8 *)(p3_0 + 12);                /* 526: r2 = *(u8 *)(r3 +12) */
#line 49
	if ((u32)r2_0 < 80) goto L643;                           /* 527: if w2 < 80 goto 670 */
#line 49
	r2_0 = (u32)r2_0 >> 2;                                   /* 528: w2 >>= 2 */
#line 49
	r2_0 = (u32)r2_0 & 60;                                   /* 529: w2 &= 60 */
#line 49
	r5_0 = (u32)r5_0 + (u32)r2_0;                            /* 530: w5 += w2 */
#line 49
	if ((u32)r5_0 > (u32)r8_0) goto L643;                    /* 531: if w5 > w8 goto 670 */
L506:
#line 49
	r8_0 = 1;                                                /* 532: w8 = 1 */
#line 49
	r2_0 = *(const mr_u16 *)p3_0;                            /* 533: r2 = *(u16 *)(r3 +0) */
#line 49
	*(mr_u16 *)s0_56 = (u16)r2_0;                            /* 534: *(u16 *)(r10 -56) = r2 */
#line 49
	r6_0 = *(const mr_u16 *)(p3_0 + 2);                      /* 535: r6 = *(u16 *)(r3 +2) */
L510:
	{                                                        /* stores in the order of addresses */
#line 98 "millrace/flow.h"
		*(mr_u16 *)(s0_120 + 32) = (u16)r2_0;            /* 538: *(u16 *)(r10 -88) = r2 */
#line 98
		*(mr_u16 *)(s0_120 + 34) = (u16)r6_0;            /* 537: *(u16 *)(r10 -86) = r6 */
#line 98
		*(u8 *)(s0_120 + 36) = (u8)r9_0;                 /* 536: *(u8 *)(r10 -84) = r9 */
	}
#line 98
	r4_0 = *(const mr_u64 *)s0_176;                          /* 539: r4 = *(u64 *)(r10 -176) */
#line 98
	r4_0 <<= 32;                                             /* 540: r4 <<= 32 */
#line 98
	r3_0 = 0xffff0000u;                                      /* 541: r3 = 0xffff0000 ll */
#line 98
	r4_0 |= r3_0;                                            /* 543: r4 |= r3 */
#line 98
	*(mr_u64 *)(s0_120 + 24) = r4_0;                         /* 544: *(u64 *)(r10 -96) = r4 */
#line 98
	r4_0 = *(const mr_u64 *)s0_168;                          /* 545: r4 = *(u64 *)(r10 -168) */
#line 98
	r4_0 <<= 32;                                             /* 546: r4 <<= 32 */
#line 98
	r4_0 |= r3_0;                                            /* 547: r4 |= r3 */
	{                                                        /* stores in the order of addresses */
#line 98
		*(mr_u64 *)s0_120 = 0;                           /* 552: *(u64 *)(r10 -120) = 0 */
#line 98
		*(mr_u64 *)(s0_120 + 8) = r4_0;                  /* 548: *(u64 *)(r10 -112) = r4 */
#line 98
		*(mr_u64 *)(s0_120 + 16) = 0;                    /* 551: *(u64 *)(r10 -104) = 0 */
#line 98
		*(u8 *)(s0_120 + 37) = 4;                        /* 550: *(u8 *)(r10 -83) = 4 */
#line 98
		*(mr_u16 *)(s0_120 + 38) = 0;                    /* 549: *(u16 *)(r10 -82) = 0 */
	}
#line 13 "nfs/firewall/firewall.c" /* switch (packet_find_flow(p, &f)) { */
	if ((u32)r8_0 != 0) goto L419;                           /* 553: if w8 != 0 goto 437 */
#line 13
	goto L462;                                               /* 554: goto 486 */
L460:
#line 68 "millrace/flow.h"
	return;                                                  /* 483: r0 = 0x2 ll */
L528:
#line 13 "nfs/firewall/firewall.c" /* switch (packet_find_flow(p, &f)) { */
	r9_0 = r7_0;                                             /* 555: r9 = r7 */
#line 13
	p2_0 = *(mr_pointer *)s0_160;                            /* 556: r2 = *(u64 *)(r10 -160) */
#line 31 "millrace/packet.h"
	p2_0 += (s64)r5_0;                                       /* 557: r2 += r5 */
#line 31
	p3_0 = p2_0;                                             /* 558: r3 = r2 */
#line 33
	p2_0 += 8;                                               /* 559: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L643;                              /* 560: if r2 > r6 goto 670 */
#line 33
	r5_0 += 8;                                               /* 561: r5 += 8 */
#line 33
	if (r5_0 > r8_0) goto L643;                              /* 562: if r5 > r8 goto 670 */
#line 33
	goto L506;                                               /* 563: goto 532 */
L537:
#line 67 "millrace/transport.h"
	if ((u32)r0_0 == 58) goto L539;                          /* 564: if w0 == 58 goto 566 */
#line 67
	if ((u32)r0_0 != 1) goto L115;                           /* 565: if w0 != 1 goto 115 */
L539:
#line 31 "millrace/packet.h"
	p3_0 = *(mr_pointer *)s0_160;                            /* 566: r3 = *(u64 *)(r10 -160) */
#line 31
	p3_0 += (s64)r5_0;                                       /* 567: r3 += r5 */
#line 33
	p2_0 = p3_0;                                             /* 568: r2 = r3 */
#line 33
	p2_0 += 8;                                               /* 569: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L643;                              /* 570: if r2 > r6 goto 670 */
#line 33
	r2_0 = r5_0;                                             /* 571: r2 = r5 */
#line 33
	r2_0 += 8;                                               /* 572: r2 += 8 */
#line 33
	if (r2_0 > r8_0) goto L643;                              /* 573: if r2 > r8 goto 670 */
#line 33
	r4_0 = r5_0;                                             /* 574: r4 = r5 */
#line 72 "millrace/transport.h"
	*(mr_pointer *)s0_40 = p3_0;                             /* 576: *(u64 *)(r10 -40) = r3 */
#line 72
	*(mr_u32 *)s0_32 = 1;                                    /* 577: *(u32 *)(r10 -32) = 1 */
	r5_0 = *(const volatile u8 *)p3_0;                       /* 578: r5 = *(u8 *)(r3 +0) */
#line 73
	if ((u32)r0_0 != 1) goto L611;                           /* 579: if w0 != 1 goto 638 */
#line 73
	r0_0 = 8;                                                /* 580: w0 = 8 */
#line 73
	r2_0 = 0;                                                /* 581: w2 = 0 */
#line 73
	if ((u32)r5_0 > 12) goto L617;                           /* 582: if w5 > 12 goto 644 */
#line 73
	r1_0 = 1;                                                /* 583: w1 = 1 */
#line 73
	r1_0 = (u32)r1_0 << ((u32)r5_0 & 31);                    /* 584: w1 <<= w5 */
#line 73
	r1_0 = (u32)r1_0 & 0x1838u;                              /* 585: w1 &= 6200 */
#line 73
	if ((u32)r1_0 != 0) goto L561;                           /* 586: if w1 != 0 goto 588 */
L617:
#line 30
	if ((u32)r2_0 == (u32)r5_0) goto L620;                   /* 645: if w2 == w5 goto 647 */
#line 30
	if ((u32)r0_0 != (u32)r5_0) goto L115;                   /* 646: if w0 != w5 goto 115 */
L620:
	if ((u32)r0_0 != (u32)r5_0) goto L625;                   /* 647: if w0 != w5 goto 652 */
#line 32
	r8_0 = 1;                                                /* 648: w8 = 1 */
#line 32
	r6_0 = 0;                                                /* 649: w6 = 0 */
#line 32
	r2_0 = *(const mr_u16 *)(p3_0 + 4);                      /* 650: r2 = *(u16 *)(r3 +4) */
L629:
#line 33
	goto L510;                                               /* 657: goto 536 */
L561:
#line 73
	r2_0 = r4_0;                                             /* 588: r2 = r4 */
#line 85 "millrace/flow4.h"
	r2_0 = (u32)r2_0 + 8;                                    /* 589: w2 += 8 */
#line 85
	p5_0 = *(mr_pointer *)s0_160;                            /* 590: r5 = *(u64 *)(r10 -160) */
#line 31 "millrace/packet.h"
	p1_0 = p5_0;                                             /* 591: r1 = r5 */
#line 31
	r4_0 = r2_0;                                             /* 592: r4 = r2 */
#line 31
	p1_0 += (s64)r2_0;                                       /* 593: r1 += r2 */
#line 33
	p2_0 = p1_0;                                             /* 594: r2 = r1 */
#line 33
	p2_0 += 20;                                              /* 595: r2 += 20 */
#line 33
	if (p2_0 > p6_0) goto L643;                              /* 596: if r2 > r6 goto 670 */
#line 44 "millrace/flow4.h"
	r3_0 = *(const volatile u8 *)p1_0;                       /* 597: r3 = *(u8 *)(r1 +0) */
#line 44
	r2_0 = (u32)r3_0;                                        /* 598: w2 = w3 */
#line 44
	r2_0 = (u32)r2_0 & 240;                                  /* 599: w2 &= 240 */
#line 44
	if ((u32)r2_0 != 64) goto L643;                          /* 600: if w2 != 64 goto 670 */
#line 46
	r3_0 = (u32)r3_0 << 2;                                   /* 601: w3 <<= 2 */
#line 46
	r3_0 = (u32)r3_0 & 60;                                   /* 602: w3 &= 60 */
	if ((u32)r3_0 < 20) goto L643;                           /* 603: if w3 < 20 goto 670 */
#line 47
	r3_0 = (u32)r3_0 + (u32)r4_0;                            /* 604: w3 += w4 */
#line 47
	if ((u32)r3_0 > (u32)r8_0) goto L643;                    /* 605: if w3 > w8 goto 670 */
#line 49
	r2_0 = *(const mr_u16 *)(p1_0 + 6);                      /* 606: r2 = *(u16 *)(r1 +6) */
#line 49
	r2_0 = (u32)r2_0 & 0xff1fu;                              /* 607: w2 &= 65311 */
#line 49
	if ((u32)r2_0 != 0) goto L460;                           /* 608: if w2 != 0 goto 483 */
#line 31
	r2_0 = *(const mr_u32 *)(p1_0 + 12);                     /* 609: r2 = *(u32 *)(r1 +12) */
#line 31
	*(mr_u64 *)s0_168 = r2_0;                                /* 610: *(u64 *)(r10 -168) = r2 */
#line 31
	*(mr_u32 *)s0_64 = (u32)r2_0;                            /* 611: *(u32 *)(r10 -64) = r2 */
	r2_0 = *(const mr_u32 *)(p1_0 + 16);                     /* 612: r2 = *(u32 *)(r1 +16) */
#line 32
	*(mr_u64 *)s0_176 = r2_0;                                /* 613: *(u64 *)(r10 -176) = r2 */
#line 32
	*(mr_u32 *)s0_60 = (u32)r2_0;                            /* 614: *(u32 *)(r10 -60) = r2 */
	r2_0 = *(const u8 *)(p1_0 + 9);                          /* 615: r2 = *(u8 *)(r1 +9) */
#line 53
	*(mr_u32 *)s0_8 = (u32)r3_0;                             /* 616: *(u32 *)(r10 -8) = r3 */
#line 31 "millrace/packet.h"
	p5_0 += (s64)r3_0;                                       /* 617: r5 += r3 */
#line 31
	r9_0 = r2_0;                                             /* 618: r9 = r2 */
#line 33 "millrace/flow4.h"
	*(u8 *)s0_52 = (u8)r2_0;                                 /* 619: *(u8 *)(r10 -52) = r2 */
#line 52
	*(mr_pointer *)s0_24 = p1_0;                             /* 620: *(u64 *)(r10 -24) = r1 */
#line 34
	*(mr_u16 *)s0_50 = 0;                                    /* 621: *(u16 *)(r10 -50) = 0 */
#line 34
	*(u8 *)s0_51 = 0;                                        /* 622: *(u8 *)(r10 -51) = 0 */
#line 34
	p0_0 = p5_0;                                             /* 623: r0 = r5 */
#line 33 "millrace/packet.h"
	p2_0 = p5_0;                                             /* 624: r2 = r5 */
#line 33
	p2_0 += 8;                                               /* 625: r2 += 8 */
#line 33
	if (p2_0 > p6_0) goto L643;                              /* 626: if r2 > r6 goto 670 */
#line 33
	r3_0 += 8;                                               /* 627: r3 += 8 */
#line 33
	if (r3_0 > r8_0) goto L643;                              /* 628: if r3 > r8 goto 670 */
#line 54 "millrace/flow4.h"
	r2_0 = *(const u8 *)(p1_0 + 9);                          /* 629: r2 = *(u8 *)(r1 +9) */
#line 93 "millrace/transport.h"
	*(mr_pointer *)s0_16 = p0_0;                             /* 630: *(u64 *)(r10 -16) = r0 */
	if ((u32)r2_0 == 17) goto L606;                          /* 631: if w2 == 17 goto 633 */
#line 94
	if ((u32)r2_0 != 6) goto L631;                           /* 632: if w2 != 6 goto 658 */
L606:
#line 94
	r8_0 = 0;                                                /* 633: w8 = 0 */
	r2_0 = *(const mr_u16 *)p0_0;                            /* 634: r2 = *(u16 *)(r0 +0) */
#line 95
	*(mr_u16 *)s0_56 = (u16)r2_0;                            /* 635: *(u16 *)(r10 -56) = r2 */
	r6_0 = *(const mr_u16 *)(p0_0 + 2);                      /* 636: r6 = *(u16 *)(r0 +2) */
#line 96
	goto L629;                                               /* 637: goto 656 */
L611:
#line 96
	r0_0 = 128;                                              /* 638: w0 = 128 */
#line 96
	r2_0 = 129;                                              /* 639: w2 = 129 */
#line 73
	r1_0 = (u32)r5_0;                                        /* 640: w1 = w5 */
#line 73
	r1_0 = (u32)r1_0 + 0xffffffffu;                          /* 641: w1 += -1 */
#line 73
	r1_0 = (u32)r1_0 & 255;                                  /* 642: w1 &= 255 */
#line 73
	if ((u32)r1_0 < 4) goto L561;                            /* 643: if w1 < 4 goto 588 */
#line 73
	goto L617;
L625:
#line 32
	r8_0 = 1;                                                /* 652: w8 = 1 */
#line 32
	r2_0 = 0;                                                /* 653: w2 = 0 */
#line 32
	*(mr_u16 *)s0_56 = 0;                                    /* 654: *(u16 *)(r10 -56) = 0 */
	r6_0 = *(const mr_u16 *)(p3_0 + 4);                      /* 655: r6 = *(u16 *)(r3 +4) */
#line 33
	goto L629;
L631:
#line 99
	if ((u32)r2_0 == 58) goto L645;                          /* 658: if w2 == 58 goto 673 */
#line 99
	if ((u32)r2_0 != 1) goto L115;                           /* 660: if w2 != 1 goto 115 */
#line 99
	r2_0 = 8;                                                /* 661: w2 = 8 */
#line 99
	r5_0 = 0;                                                /* 662: w5 = 0 */
#line 102
	r3_0 = *(const volatile u8 *)p0_0;                       /* 663: r3 = *(u8 *)(r0 +0) */
#line 102
	if ((u32)r3_0 > 12) goto L653;                           /* 664: if w3 > 12 goto 681 */
#line 102
	r4_0 = 1;                                                /* 665: w4 = 1 */
#line 102
	r4_0 = (u32)r4_0 << ((u32)r3_0 & 31);                    /* 666: w4 <<= w3 */
#line 102
	r4_0 = (u32)r4_0 & 0x1838u;                              /* 667: w4 &= 6200 */
#line 102
	if ((u32)r4_0 != 0) goto L643;                           /* 668: if w4 != 0 goto 670 */
L653:
#line 30
	if ((u32)r2_0 == (u32)r3_0) goto L655;                   /* 681: if w2 == w3 goto 683 */
#line 30
	if ((u32)r5_0 != (u32)r3_0) goto L115;                   /* 682: if w5 != w3 goto 115 */
L655:
	if ((u32)r2_0 != (u32)r3_0) goto L660;                   /* 683: if w2 != w3 goto 688 */
#line 32
	r6_0 = 0;                                                /* 684: w6 = 0 */
#line 32
	r2_0 = *(const mr_u16 *)(p0_0 + 4);                      /* 685: r2 = *(u16 *)(r0 +4) */
#line 32
	*(mr_u16 *)s0_56 = (u16)r2_0;                            /* 686: *(u16 *)(r10 -56) = r2 */
L663:
#line 33
	r8_0 = 0;                                                /* 691: w8 = 0 */
#line 33
	goto L629;                                               /* 692: goto 656 */
L643:
#line 102
	return;                                                  /* 670: r0 = 0x1 ll */
L645:
#line 13 "nfs/firewall/firewall.c" /* switch (packet_find_flow(p, &f)) { */
	r2_0 = 128;                                              /* 673: w2 = 128 */
#line 13
	r5_0 = 129;                                              /* 674: w5 = 129 */
#line 102 "millrace/transport.h"
	r3_0 = *(const volatile u8 *)p0_0;                       /* 675: r3 = *(u8 *)(r0 +0) */
#line 102
	r4_0 = (u32)r3_0;                                        /* 676: w4 = w3 */
#line 102
	r4_0 = (u32)r4_0 + 0xffffffffu;                          /* 677: w4 += -1 */
#line 102
	r4_0 = (u32)r4_0 & 255;                                  /* 678: w4 &= 255 */
#line 102
	if ((u32)r4_0 < 4) goto L643;                            /* 680: if w4 < 4 goto 670 */
#line 102
	goto L653;
L660:
#line 32
	r2_0 = 0;                                                /* 688: w2 = 0 */
#line 32
	*(mr_u16 *)s0_56 = 0;                                    /* 689: *(u16 *)(r10 -56) = 0 */
	r6_0 = *(const mr_u16 *)(p0_0 + 4);                      /* 690: r6 = *(u16 *)(r0 +4) */
#line 33
	goto L663;
#line 2642 "firewall.c"
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
