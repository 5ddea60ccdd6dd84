/* The Internet checksum (RFC 1071) and its incremental update.
 *
 * The update is equation 3 of RFC 1624, HC' = ~(~HC + ~m + m'). Equation 2 of RFC 1141 yields the
 * other zero of one's complement in corner cases, and with it a checksum that receivers refuse.
 * Every sum is of words as they lie in the packet: one's complement addition does not mind the byte
 * order.
 */
#ifndef MILLRACE_CHECKSUM_H
#define MILLRACE_CHECKSUM_H

#include <millrace/word.h>

/* A sum of 32-bit words, reduced to 16 bits with end-around carry. */
MILLRACE_LIBRARY __u16 checksum_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)sum;
}

/* Whether a sum that includes the checksum, and anything that is not zero, is all ones when it is folded:
 * folding keeps the remainder by 0xffff, and only a sum of zeros folds to zero. */
MILLRACE_LIBRARY _Bool checksum_holds(__u64 sum)
{
	return sum % 0xffff == 0;
}

/* The checksum after 16 of the bits that it covers changed. */
MILLRACE_LIBRARY __u16 checksum_replace16(__u16 checksum, __u16 old, __u16 new)
{
	return (__u16)~checksum_fold((__u64)(__u16)~checksum + (__u16)~old + new);
}

/* … after 32 of them, aligned to 16, changed. */
MILLRACE_LIBRARY __u16 checksum_replace32(__u16 checksum, __u32 old, __u32 new)
{
	return (__u16)~checksum_fold((__u64)(__u16)~checksum + (__u32)~old + new);
}

/* UDP over IPv4 (RFC 768): a checksum of zero says that there is none and stays; one that comes out
 * as zero is sent as all ones. */
MILLRACE_LIBRARY __u16 checksum_udp_replace16(__u16 checksum, __u16 old, __u16 new)
{
	__u16 updated;

	if (!checksum)
		return 0;
	updated = checksum_replace16(checksum, old, new);
	return updated ? updated : 0xffff;
}

MILLRACE_LIBRARY __u16 checksum_udp_replace32(__u16 checksum, __u32 old, __u32 new)
{
	__u16 updated;

	if (!checksum)
		return 0;
	updated = checksum_replace32(checksum, old, new);
	return updated ? updated : 0xffff;
}

#endif
