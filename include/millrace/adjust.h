/* Frames that become longer or shorter, and sums over their bytes. Include it by name.
 *
 * After packet_push, packet_pull, packet_resize, packet_trim or packet_renew, whatever it returned, pointers
 * that packet_at gave are invalid: take new ones. A program that uses an old one is refused.
 */
#ifndef MILLRACE_ADJUST_H
#define MILLRACE_ADJUST_H

#include <millrace/checksum.h>
#include <millrace/packet.h>

static long (*const millrace_adjust_head)(struct packet *, int) = (void *)44;
static long (*const millrace_adjust_tail)(struct packet *, int) = (void *)65;

/* Puts `bytes` bytes in front of the frame, for a header: what is in them is to be written. False, and
 * nothing moved, where a frame has grown by more than 256 bytes already or would be longer than 65535. */
MILLRACE_LIBRARY _Bool packet_push(const struct packet *p, __u32 bytes)
{
	return !millrace_adjust_head((struct packet *)p, -(int)bytes);
}

/* Takes `bytes` bytes from the front. False, and nothing moved, if that would leave less than an Ethernet
 * header, 14 bytes. */
MILLRACE_LIBRARY _Bool packet_pull(const struct packet *p, __u32 bytes)
{
	return !millrace_adjust_head((struct packet *)p, (int)bytes);
}

/* The frame's length as a number that clang does not compute from halves of pointers. */
MILLRACE_LIBRARY __u32 millrace_length(const struct packet *p)
{
	__u64 length = (__u64)((__u8 *)(long)p->data_end - (__u8 *)(long)p->data);

	__asm__("" : "+r"(length));
	return (__u32)length;
}

/* Moves the frame's end, so that it has `length` bytes; those that come are zero. False, and nothing moved,
 * for less than 14 or more than 65535 bytes, and where there is no room behind the frame. */
MILLRACE_LIBRARY _Bool packet_resize(const struct packet *p, __u32 length)
{
	return !millrace_adjust_tail((struct packet *)p, (int)(length - millrace_length(p)));
}

/* Cuts the frame to `length` bytes; one that is not longer stays as it is. False, and nothing moved, for less
 * than 14. */
MILLRACE_LIBRARY _Bool packet_trim(const struct packet *p, __u32 length)
{
	__u32 now = millrace_length(p);

	return now <= length || !millrace_adjust_tail((struct packet *)p, -(int)(now - length));
}

/* Gives the frame `length` bytes, all of which are to be written: the answer to a packet, or a question
 * instead of it. It grows in front, where there is room for 256 bytes. */
MILLRACE_LIBRARY _Bool packet_renew(const struct packet *p, __u32 length)
{
	__u32 now = millrace_length(p);

	return now < length ? packet_push(p, length - now) : packet_trim(p, length);
}

/* The sum of `bytes` bytes of the frame from offset `at` on, at most 65535, as 32-bit words for
 * checksum_fold; of an odd last byte the other half counts as zero. 0 where the frame ends before. */
MILLRACE_LIBRARY __u64 packet_sum(const struct packet *p, __u32 at, __u32 bytes)
{
	__u32 done = 0;
	__u64 sum = 0;
	__u8 *part;

	MILLRACE_ROLLED
	for (; done < 0x10000; done += 8) {
		__u64 word;

		if (done + 8 > bytes)
			break;
		part = packet_bytes(p, at + done, 8);
		if (!part)
			return 0;
		word = load64(part);
		sum += (word & 0xffffffff) + (word >> 32);
	}
	at += done;
	if (bytes & 4) {
		part = packet_bytes(p, at, 4);
		sum += part ? load32(part) : 0;
		at += 4;
	}
	if (bytes & 2) {
		part = packet_bytes(p, at, 2);
		sum += part ? load16(part) : 0;
		at += 2;
	}
	if (bytes & 1) {
		part = packet_bytes(p, at, 1);
		sum += part ? *part : 0;
	}
	return sum;
}

#endif
