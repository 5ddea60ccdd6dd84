// Every instruction of RFC 9669; behind // is what it must read as, jumps by slot number.
	.section xdp,"ax",@progbits
	.globl f
	.type f,@function
f:
	r1 = 1                          // r1 = 1
	r1 = -1                         // r1 = -1
	w1 = 7                          // w1 = 7
	r1 = r2                         // r1 = r2
	w1 = w2                         // w1 = w2
	r1 += 2                         // r1 += 2
	r1 += r2                        // r1 += r2
	w1 += 2                         // w1 += 2
	w1 += w2                        // w1 += w2
	r1 -= r3                        // r1 -= r3
	w1 -= 4                         // w1 -= 4
	r1 *= r3                        // r1 *= r3
	w1 *= 4                         // w1 *= 4
	r1 /= r3                        // r1 /= r3
	w1 /= 4                         // w1 /= 4
	r1 s/= r3                       // r1 s/= r3
	w1 s/= -4                       // w1 s/= -4
	r1 %= r3                        // r1 %= r3
	w1 %= 4                         // w1 %= 4
	r1 s%= r3                       // r1 s%= r3
	w1 s%= -4                       // w1 s%= -4
	r1 |= r3                        // r1 |= r3
	w1 |= 4                         // w1 |= 4
	r1 &= r3                        // r1 &= r3
	w1 &= 4                         // w1 &= 4
	r1 ^= r3                        // r1 ^= r3
	w1 ^= 4                         // w1 ^= 4
	r1 <<= r3                       // r1 <<= r3
	w1 <<= 4                        // w1 <<= 4
	r1 >>= r3                       // r1 >>= r3
	w1 >>= 4                        // w1 >>= 4
	r1 s>>= r3                      // r1 s>>= r3
	w1 s>>= 4                       // w1 s>>= 4
	r1 = -r1                        // r1 = -r1
	w1 = -w1                        // w1 = -w1
	r1 = (s8)r2                     // r1 = (s8)r2
	r1 = (s16)r2                    // r1 = (s16)r2
	r1 = (s32)r2                    // r1 = (s32)r2
	w1 = (s8)w2                     // w1 = (s8)w2
	w1 = (s16)w2                    // w1 = (s16)w2
	r1 = le16 r1                    // r1 = le16 r1
	r1 = le32 r1                    // r1 = le32 r1
	r1 = le64 r1                    // r1 = le64 r1
	r1 = be16 r1                    // r1 = be16 r1
	r1 = be32 r1                    // r1 = be32 r1
	r1 = be64 r1                    // r1 = be64 r1
	r1 = bswap16 r1                 // r1 = bswap16 r1
	r1 = bswap32 r1                 // r1 = bswap32 r1
	r1 = bswap64 r1                 // r1 = bswap64 r1
	r1 = 0x123456789abcdef0 ll      // r1 = 0x123456789abcdef0 ll
	r1 = 0xffffffff ll              // r1 = 0xffffffff ll
	r1 = -1 ll                      // r1 = 0xffffffffffffffff ll
	r1 = *(u8 *)(r2 + 1)            // r1 = *(u8 *)(r2 +1)
	r1 = *(u16 *)(r2 + 2)           // r1 = *(u16 *)(r2 +2)
	r1 = *(u32 *)(r2 + 4)           // r1 = *(u32 *)(r2 +4)
	r1 = *(u64 *)(r2 - 8)           // r1 = *(u64 *)(r2 -8)
	r1 = *(s8 *)(r2 + 1)            // r1 = *(s8 *)(r2 +1)
	r1 = *(s16 *)(r2 + 2)           // r1 = *(s16 *)(r2 +2)
	r1 = *(s32 *)(r2 + 32767)       // r1 = *(s32 *)(r2 +32767)
	*(u8 *)(r1 + 1) = r2            // *(u8 *)(r1 +1) = r2
	*(u16 *)(r1 + 2) = r2           // *(u16 *)(r1 +2) = r2
	*(u32 *)(r1 + 4) = r2           // *(u32 *)(r1 +4) = r2
	*(u64 *)(r10 - 8) = r2          // *(u64 *)(r10 -8) = r2
	*(u8 *)(r1 + 1) = 5             // *(u8 *)(r1 +1) = 5
	*(u16 *)(r1 + 2) = 5            // *(u16 *)(r1 +2) = 5
	*(u32 *)(r1 + 4) = 5            // *(u32 *)(r1 +4) = 5
	*(u64 *)(r1 - 32768) = -5       // *(u64 *)(r1 -32768) = -5
	lock *(u32 *)(r1 + 4) += w2     // lock *(u32 *)(r1 +4) += r2
	lock *(u64 *)(r1 + 8) += r2     // lock *(u64 *)(r1 +8) += r2
	lock *(u64 *)(r1 + 8) |= r2     // lock *(u64 *)(r1 +8) |= r2
	lock *(u64 *)(r1 + 8) &= r2     // lock *(u64 *)(r1 +8) &= r2
	lock *(u64 *)(r1 + 8) ^= r2     // lock *(u64 *)(r1 +8) ^= r2
	r2 = atomic_fetch_add((u64 *)(r1 + 8), r2)      // r2 = atomic64_fetch_add((u64 *)(r1 +8), r2)
	w2 = atomic_fetch_add((u32 *)(r1 + 8), w2)      // r2 = atomic32_fetch_add((u32 *)(r1 +8), r2)
	r2 = atomic_fetch_or((u64 *)(r1 + 8), r2)       // r2 = atomic64_fetch_or((u64 *)(r1 +8), r2)
	r2 = atomic_fetch_and((u64 *)(r1 + 8), r2)      // r2 = atomic64_fetch_and((u64 *)(r1 +8), r2)
	r2 = atomic_fetch_xor((u64 *)(r1 + 8), r2)      // r2 = atomic64_fetch_xor((u64 *)(r1 +8), r2)
	r2 = xchg_64(r1 + 8, r2)        // r2 = atomic64_xchg((u64 *)(r1 +8), r2)
	w2 = xchg32_32(r1 + 8, w2)      // r2 = atomic32_xchg((u32 *)(r1 +8), r2)
	r0 = cmpxchg_64(r1 + 8, r0, r2) // r0 = atomic64_cmpxchg((u64 *)(r1 +8), r0, r2)
	w0 = cmpxchg32_32(r1 + 8, w0, w2) // r0 = atomic32_cmpxchg((u32 *)(r1 +8), r0, r2)
	goto end                        // goto 115
	gotol end                       // goto 115
	if r1 == r2 goto end            // if r1 == r2 goto 115
	if r1 == 5 goto end             // if r1 == 5 goto 115
	if w1 == w2 goto end            // if w1 == w2 goto 115
	if w1 == -5 goto end            // if w1 == -5 goto 115
	if r1 != r2 goto end            // if r1 != r2 goto 115
	if r1 > r2 goto end             // if r1 > r2 goto 115
	if w1 >= 5 goto end             // if w1 >= 5 goto 115
	if r1 < r2 goto end             // if r1 < r2 goto 115
	if w1 <= w2 goto end            // if w1 <= w2 goto 115
	if r1 s> r2 goto end            // if r1 s> r2 goto 115
	if w1 s>= -5 goto end           // if w1 s>= -5 goto 115
	if r1 s< r2 goto end            // if r1 s< r2 goto 115
	if w1 s<= w2 goto end           // if w1 s<= w2 goto 115
	if r1 & r2 goto end             // if r1 & r2 goto 115
	if w1 & 5 goto end              // if w1 & 5 goto 115
back:
	call 1                          // call map_lookup_elem#1
	call 0x10050                    // call crc32c#65616
	call 999                        // call helper#999
	call f                          // call f
	call g                          // call g
	callx r3                        // callx r3
	r0 = *(u8 *)skb[4]              // r0 = legacy packet load
	r0 = *(u16 *)skb[r1]            // r0 = legacy packet load
	goto back                       // goto 101
	gotol back                      // goto 101
	if r1 == r2 goto back           // if r1 == r2 goto 101
	r1 = g ll                       // r1 = g ll
	r0 = 0                          // r0 = 0
end:
	exit                            // exit
	.size f, .-f

	.section .text,"ax",@progbits
	.type other,@function
other:
	exit
	.size other, .-other
	.type g,@function
g:
	exit                            // exit
	.size g, .-g
